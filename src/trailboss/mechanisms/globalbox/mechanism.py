"""The first draft of CIP-5: heights and changes put fires into one queue, and quotas take them out of it."""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from trailboss.mechanisms.base import Charging, DeliveryPolicy, DueTimers, Phase
from trailboss.mechanisms.context import GlobalboxMarket, SelectionContext
from trailboss.mechanisms.globalbox.index import GlobalboxIndex
from trailboss.mechanisms.globalbox.selection import GlobalboxSelection
from trailboss.model import calls
from trailboss.model.decisions import Order
from trailboss.model.markets import MarketKind
from trailboss.model.timers import Timer
from trailboss.params import ChainParams
from trailboss.primitives.errors import InvariantError

NAME: Final = "globalbox"


class Globalbox:
    """The mechanism of the first draft of CIP-5. Spec: CIP-5old §4. Decision: D-31, D-61, D-65, D-67.

    Attributes:
        policy: After the transactions; each is settled before the next is decided.
        name: Always ``globalbox``.
    """

    __slots__ = ("_has_joined", "_index", "_shards", "policy")

    name = NAME

    def __init__(self, policy: DeliveryPolicy, shards: int) -> None:
        self.policy = policy
        self._shards = shards
        self._index: GlobalboxIndex | None = None
        self._has_joined = False

    def begin(self, pending: Callable[[], Iterator[Timer]]) -> None:
        """Remember what watches and what is queued, unless it is remembered.

        Args:
            pending: Returns all timers as the block before left them; it is read only where there is no index yet.
        """
        if self._index is None:
            self._index = GlobalboxIndex(pending())
            self._has_joined = False

    def select(self, due: DueTimers, context: SelectionContext[GlobalboxMarket]) -> GlobalboxSelection:
        """Let timers join, and return the block's selection.

        Spec: CIP-5old §4
        Decision: D-51
        Complexity: O(log n) for each that joins; the first time, and after the chain has gone back, O(n log n).

        Args:
            due: The due timers; ``waiting`` is read only where the index is new.
            context: The block's prices, budgets and balances, and Globalbox.

        Raises:
            InvariantError: If the block has not begun.
        """
        index = self._index
        if index is None:
            raise InvariantError("Globalbox selects in a block that has begun")
        if not self._has_joined:
            index.join(due.waiting, context.height)
            self._has_joined = True
        index.join(due.joining, context.height)
        return GlobalboxSelection(index, context, self.policy, due=due, shards=self._shards)

    def schedule(self, timer: Timer) -> None:
        """Note a new timer. Complexity: O(log n), and O(1) a watch key."""
        if self._index is not None:
            self._index.schedule(timer)

    def leave(self, timer_id: bytes) -> None:
        """Hear that a timer has left. Complexity: O(log n), and O(1) a watch key."""
        if self._index is not None:
            self._index.leave(timer_id)

    def expire(self, timer_ids: Collection[bytes]) -> None:
        """Nothing to forget: its index has an order by expiry of its own."""

    def replace(self, timer: Timer) -> None:
        """Hear that a timer's record has changed: its fire is queued, or has left the queue. Complexity: as `leave`."""
        if self._index is not None:
            self._index.replace(timer)

    def recount(self, actor: bytes, fires: int) -> None:
        """Nothing to count."""

    def is_watched(self, key: bytes) -> bool:
        """Return whether a timer that is there now watches a prefix of a key. Spec: CIP-5old §5.2. Decision: D-65."""
        return self._index is not None and self._index.is_watched(key)

    def only_wait(self, due: int) -> bool:
        """Any of them may run in the next block."""
        del due
        return False

    def next_end(self) -> int | None:
        """Return the block after the first expiry; 0 while nothing is remembered.

        Spec: CIP-5old §14
        Decision: D-84
        Complexity: O(1).
        """
        if self._index is None:
            return 0
        expiry = self._index.first_expiry()
        return None if expiry is None else expiry + 1

    def rewind(self) -> None:
        """Forget the index; the next block makes it anew."""
        self._index = None


def build_globalbox(params: ChainParams) -> Globalbox:
    """Return the mechanism with the chain's parameters."""
    policy = DeliveryPolicy(
        phase=Phase.AFTER_TRANSACTIONS,
        charging=Charging.IN_TURN,
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
