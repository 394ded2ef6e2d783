"""The first draft of CIP-5: heights and changes put fires into one queue, and quotas take them out of it."""

from collections.abc import Callable, Iterator
from typing import Final

from trailboss.mechanisms.base import DeliveryPolicy, DueTimers, IndexedMechanism
from trailboss.mechanisms.context import GlobalboxMarket, SelectionContext
from trailboss.mechanisms.globalbox.index import GlobalboxIndex
from trailboss.mechanisms.globalbox.selection import GlobalboxSelection
from trailboss.model import calls
from trailboss.model.configs import MarketKind
from trailboss.model.decisions import Order
from trailboss.model.timers import Timer
from trailboss.params import ChainParams
from trailboss.primitives.errors import InvariantError

NAME: Final = "globalbox"


class Globalbox(IndexedMechanism[GlobalboxIndex]):
    """After transactions, each fire is settled before the next. Spec: CIP-5old §4. Decision: D-31, D-61, D-65, D-67."""

    name = NAME

    def __init__(self, policy: DeliveryPolicy, shards: int) -> None:
        super().__init__(policy)
        self._shards, self._has_joined = shards, False

    def begin(self, pending: Callable[[], Iterator[Timer]]) -> None:
        """Build the index of watches and queued fires, unless there is one; only then is ``pending`` read."""
        if self.index is None:
            self.index = GlobalboxIndex(pending())
            self._has_joined = False

    def select(self, due: DueTimers, context: SelectionContext[GlobalboxMarket]) -> GlobalboxSelection:
        """Let timers join, and return the block's selection.

        Spec: CIP-5old §4. Decision: D-51. Complexity: O(log n) for each timer that joins; where the index is new, O(n
        log n).

        Raises:
            InvariantError: If the block has not begun.
        """
        index = self.index
        if index is None:
            raise InvariantError("Globalbox selects in a block that has begun")
        if not self._has_joined:
            index.join(due.waiting, context.height)
            self._has_joined = True
        index.join(due.joining, context.height)
        return GlobalboxSelection(index, context, self.policy, due=due, shards=self._shards)

    def next_end(self) -> int | None:
        """Return the block after the first expiry; 0 without an index. O(1). Spec: CIP-5old §14. Decision: D-84."""
        if self.index is None:
            return 0
        expiry = self.index.first_expiry()
        return None if expiry is None else expiry + 1


def build_globalbox(params: ChainParams) -> Globalbox:
    """Return the mechanism with the chain's parameters."""
    policy = DeliveryPolicy(
        examined_max=params.timers.due_examined_max,
        joined_max=params.globalbox.joined_max,
        passed_over_max=params.globalbox.passed_over_max,
        order=Order.STANDING,
        calls=frozenset(
            {calls.SET_TIMEOUT_GLOBALBOX, calls.SET_STATE_WATCH, calls.UPDATE, calls.CANCEL_GLOBALBOX, calls.CANCEL}
        ),
        keeps=MarketKind.GLOBALBOX,
    )
    return Globalbox(policy, params.globalbox.shards)
