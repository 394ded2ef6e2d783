"""CIP-1 v3: the timer lane, in which timers compete by what they offer, weighed by how few fires their actors have had.

Weighing offers by past use is the idea of weighted fair queueing.
"""

from typing import Final

from trailboss.mechanisms.base import DeliveryPolicy, DueTimers, IndexedMechanism
from trailboss.mechanisms.context import LaneMarket, SelectionContext
from trailboss.mechanisms.fee_lane.index import LaneIndex
from trailboss.mechanisms.fee_lane.selection import LaneSelection
from trailboss.model import calls
from trailboss.model.configs import MarketKind
from trailboss.model.decisions import Order
from trailboss.params import ChainParams

NAME: Final = "lane"


class Lane(IndexedMechanism[LaneIndex]):
    """After the transactions, each timer is settled before the next. Spec: CIP-1v3 §3. Decision: D-12, D-39, D-54."""

    name = NAME

    def select(self, due: DueTimers, context: SelectionContext[LaneMarket]) -> LaneSelection:
        """Let timers join, and return the block's selection among those that have.

        What changes between two decisions counts from the next block on, except that timers leave at once.
        Spec: CIP-1v3 §3. Decision: D-39, D-51, D-54. Complexity: O(log n) for each timer that joins or has changed
        since the last block; to build the index, where there is none or the cap for one fire has changed, O(n log n).

        Raises:
            InvariantError: If a timer joins twice.
        """
        market = context.market
        limits = market.max_cycles_per_fire, market.clamps_before
        if self.index is None:
            index = LaneIndex(*limits, market.weight_age_blocks)
            index.join(due.waiting, market.fires_of, market.counted_for)
            self.index = index
        else:
            self.index.settle(*limits)
        self.index.join(due.joining, market.fires_of, market.counted_for)
        return LaneSelection(self.index, due, context, self.policy)

    def only_wait(self, due: int) -> bool:
        """Return whether all due timers are above the cap and their owners know it. Complexity: O(1)."""
        return self.index is not None and self.index.is_set_aside(due)


def build_lane(params: ChainParams) -> Lane:
    """Return the mechanism with the chain's parameters."""
    return Lane(
        DeliveryPolicy(
            examined_max=params.timers.due_examined_max,
            dead_examined_max=params.timers.dead_examined_max,
            joined_max=params.lane.joined_max,
            passed_over_max=params.lane.passed_over_max,
            order=Order.PRIORITY,
            calls=frozenset({calls.SCHEDULE, calls.EXTEND, calls.CANCEL, calls.SET_AGENT}),
            keeps=MarketKind.LANE,
        )
    )
