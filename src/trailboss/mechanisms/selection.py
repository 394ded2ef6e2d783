"""What the selections of all mechanisms with an index share: priced bids, clean-up, and what a walk leaves."""

from collections.abc import Iterable
from itertools import islice
from typing import Final, Generic, TypeVar

import msgspec

from trailboss.fees import Prices
from trailboss.mechanisms.base import DeliveryPolicy, Follower, Rest, Verdict
from trailboss.mechanisms.context import MarketT_co, SelectionContext
from trailboss.model.decisions import RUNNERS_UP_MAX, FeeSource
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import Cycles, Price

FIRE: Final = Verdict.FIRE  # bound once: looking up a member of an enum takes a third of the time of a decision
FROZEN: Final = FeeSource.FROZEN
NO_TIP: Final = Price(0)
NO_CYCLES: Final = Cycles(0)

KeptIndex = TypeVar("KeptIndex", bound=Follower)
Removable = TypeVar("Removable")


class PricedBid(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What a timer bids in this block, and what follows from it."""

    prices: Prices
    cycle_price: int  # what a fire is charged for a cycle in all. Decision: D-14.
    cells_cost: int  # what the cells of a fire can cost at most. Decision: D-86.
    weight: int
    max_fee: Price  # cap of basefee and tip together
    source: FeeSource
    agent_cycles: Cycles  # what asking the agent has used


class IndexSelection(Generic[KeptIndex, MarketT_co]):
    """One block's decisions from an index, each made when the one before has been carried out."""

    def __init__(self, index: KeptIndex, context: SelectionContext[MarketT_co], policy: DeliveryPolicy) -> None:
        self._index, self._context, self._market, self._policy = index, context, context.market, policy
        self._gc_left: int = context.gc_cycles_max
        self._dead_left = policy.dead_examined_max
        self._out: set[bytes] = set()
        self._rest: Rest | None = None

    def rest(self) -> Rest:
        """Return what was left, after the walk. `InvariantError` if the walk is not over."""
        if self._rest is None:
            raise InvariantError("what a walk leaves is known when it is over")
        return self._rest

    def _removable(self, found: Iterable[Removable]) -> list[Removable]:
        """Return as many as the clean-up budget removes, and take the cost. Decision: D-23."""
        price = self._context.gc_cycles_per_timer
        removed = list(islice(found, self._gc_left // price))
        self._gc_left -= len(removed) * price
        return removed

    def _asked_for(self, smallest_gas: int) -> int:
        """Return how many timers may be asked for in rank; more are, if fires use less than their gas limits."""
        room = self._context.lane_cycles_left() // max(1, smallest_gas)
        return min(room, self._policy.examined_max) + RUNNERS_UP_MAX

    def _price(
        self,
        max_fee: Price,
        source: FeeSource,
        tip: Price,
        *,
        weight: int,
        cell_tip: Price = NO_TIP,
        agent_cycles: Cycles = NO_CYCLES,
        lane_basefee: Price = NO_TIP,
    ) -> PricedBid:
        """Return a bid with its prices, where a fire pays the tips and a lane basefee beside the basefees."""
        context = self._context
        return PricedBid(
            prices=Prices(context.cycle_basefee, context.cell_basefee, tip, cell_tip, lane_basefee),
            cycle_price=context.cycle_basefee + lane_basefee + tip,
            cells_cost=context.max_cells_per_fire * (context.cell_basefee + cell_tip),
            weight=weight,
            max_fee=max_fee,
            source=source,
            agent_cycles=agent_cycles,
        )
