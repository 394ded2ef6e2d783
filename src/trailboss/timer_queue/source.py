"""Where the queue reads the timers that it does not hold in memory: the committed state."""

from collections.abc import Iterator
from typing import Protocol

from trailboss.model.timers import Timer, decode_timer
from trailboss.primitives.units import U64_MAX
from trailboss.state.keys import TIMERS, timer_key
from trailboss.state.store import ReadableStore
from trailboss.timer_queue.bucket import Pending


def pending_of(timer: Timer) -> Pending:
    """Return what the queue holds of a timer."""
    return Pending(timer.expires_at, timer.sequence, timer.timer_id, timer.fee_payer, timer.height)


class TimerSource(Protocol):
    """Where a queue finds the timers that it does not hold in memory."""

    def scan(self, height: int, timer_id: bytes = b"") -> Iterator[Pending]:
        """Yield timers from a height and an id, or the beginning of one, on, ascending."""

    def count_below(self, height: int) -> int:
        """Return how many timers are due below a height, which may be 2**64."""

    def height_of(self, timer_id: bytes) -> int | None:
        """Return the height of a timer, or None if there is none of that id."""


class StoredTimers:
    """The timers of a store, read at every call: it never falls behind a commit. Spec: CIP-1v3 §2.3. Decision: D-02."""

    __slots__ = ("_store",)

    def __init__(self, store: ReadableStore) -> None:
        self._store = store

    def scan(self, height: int, timer_id: bytes = b"") -> Iterator[Pending]:
        """Yield timers from a height and an id, or the beginning of one, on; the store must not change meanwhile.

        Complexity: O(log n) for the first of n timers, O(1) for each one after it.
        """
        for _, octets in self._store.iterate(TIMERS, timer_key(height, timer_id)):
            yield pending_of(decode_timer(octets))

    def count_below(self, height: int) -> int:
        """Return how many timers are due below a height, which may be 2**64. Complexity: O(log n), from the tree."""
        keys = (timer_key(height, b""),) if height <= U64_MAX else ()
        return self._store.count(TIMERS, *keys)

    def height_of(self, timer_id: bytes) -> int | None:
        """Return the height of a timer, or None if there is none of that id. Complexity: one look-up of the store."""
        return self._store.timer_height(timer_id)
