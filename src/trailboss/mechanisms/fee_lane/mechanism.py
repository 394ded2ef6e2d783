"""CIP-1 v3: the timer lane, in which those who wait compete by what they offer, weighed by how little they have had."""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from trailboss.mechanisms.base import Charging, DeliveryPolicy, DueTimers, Phase
from trailboss.mechanisms.context import LaneMarket, SelectionContext
from trailboss.mechanisms.fee_lane.index import LaneIndex
from trailboss.mechanisms.fee_lane.selection import LaneSelection
from trailboss.model import calls
from trailboss.model.decisions import Order
from trailboss.model.markets import MarketKind
from trailboss.model.timers import Timer
from trailboss.params import ChainParams

NAME: Final = "lane"


class Lane:
    """The mechanism of CIP-1 v3. Spec: CIP-1v3 §3. Decision: D-12, D-39, D-54.

    Attributes:
        policy: After the transactions; each is settled before the next is decided.
        name: Always ``lane``.
    """

    __slots__ = ("_index", "policy")

    name = NAME

    def __init__(self, policy: DeliveryPolicy) -> None:
        self.policy = policy
        self._index: LaneIndex | None = None

    def begin(self, pending: Callable[[], Iterator[Timer]]) -> None:
        """Nothing to remember: those that wait are read when they join."""

    def select(self, due: DueTimers, context: SelectionContext[LaneMarket]) -> LaneSelection:
        """Let timers join, and return the block's selection among those that have.

        It stands on what was heard before it. What is heard between two decisions counts from the next block on, but
        for who has left.

        Spec: CIP-1v3 §3
        Decision: D-39, D-51, D-54
        Complexity: O(log n) for each that joins and for what was heard since the last block; the first time, and after
            the chain has gone back or the cap for one fire has changed, that of an index over all n.

        Args:
            due: The due timers; ``waiting`` is read only where there is no index yet.
            context: The block's prices, budgets and balances, and the lane.

        Raises:
            InvariantError: If a timer joins twice.
        """
        market = context.market
        terms = market.max_cycles_per_fire, market.clamps_before
        if self._index is None:
            index = LaneIndex(*terms)
            index.join(due.waiting, market.fires_of)
            self._index = index
        else:
            self._index.settle(*terms)
        self._index.join(due.joining, market.fires_of)
        return LaneSelection(self._index, due, context, self.policy)

    def schedule(self, timer: Timer) -> None:
        """Nothing to remember: it is not due."""

    def leave(self, timer_id: bytes) -> None:
        """Hear that a timer has left. Complexity: O(1), and O(log n) in the next block."""
        if self._index is not None:
            self._index.leave(timer_id)

    def expire(self, timer_ids: Collection[bytes]) -> None:
        """Hear which timers can fire no more. Complexity: O(log n) each, and again when it leaves the ranking."""
        if self._index is not None:
            self._index.expire(timer_ids)

    def replace(self, timer: Timer) -> None:
        """Hear that a timer's record has changed. Complexity: as `leave`."""
        if self._index is not None:
            self._index.replace(timer)

    def recount(self, actor: bytes, fires: int) -> None:
        """Hear an actor's fires. Complexity: O(1), and in the next block O(log n) for each different offer it makes."""
        if self._index is not None:
            self._index.recount(actor, fires)

    def is_watched(self, key: bytes) -> bool:
        """Nobody watches."""
        del key
        return False

    def only_wait(self, due: int) -> bool:
        """Return whether all that are due are above the cap and have been told so. Complexity: O(1)."""
        return self._index is not None and self._index.is_set_aside(due)

    def next_end(self) -> None:
        """Only due timers end."""

    def rewind(self) -> None:
        """Forget the index; the next selection makes it anew."""
        self._index = None


def build_lane(params: ChainParams) -> Lane:
    """Return the mechanism with the chain's parameters."""
    return Lane(
        DeliveryPolicy(
            phase=Phase.AFTER_TRANSACTIONS,
            charging=Charging.IN_TURN,
            examined_max=params.timers.due_examined_max,
            dead_examined_max=params.timers.dead_examined_max,
            joined_max=params.lane.joined_max,
            passed_over_max=params.lane.passed_over_max,
            order=Order.PRIORITY,
            keeps=MarketKind.LANE,
            calls=frozenset({calls.SCHEDULE, calls.EXTEND, calls.CANCEL, calls.SET_AGENT}),
        )
    )
