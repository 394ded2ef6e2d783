"""The timers in memory: those that are due, and those in the ring."""

from collections.abc import Iterator
from itertools import chain

from sortedcontainers import SortedDict, SortedList

from trailboss.params import CalendarParams
from trailboss.timer_queue.ring import Ring


class NearTimers:
    """Timers of heights up to the ring's last, by height and by id.

    A bucket is a sorted list of (sequence, timer id): the timers of one height in FIFO order, whatever order they
    arrived in. Buckets of heights to come lie in the ring. When its height has come, a bucket leaves the ring and waits
    beside it for as long as it has timers.
    """

    __slots__ = ("_due", "_due_count", "_entries", "_now", "_ring")

    def __init__(self, calendar: CalendarParams, now: int) -> None:
        self._now = now
        self._ring = Ring(calendar, now)
        self._due = SortedDict()  # height to bucket
        self._due_count = 0
        self._entries: dict[bytes, tuple[int, int]] = {}  # timer id to height and sequence

    def __len__(self) -> int:
        """Return how many timers are in memory. Complexity: O(1)."""
        return len(self._entries)

    @property
    def heights(self) -> int:
        """How many heights have a bucket."""
        return len(self._due) + len(self._ring)

    def entry(self, timer_id: bytes) -> tuple[int, int] | None:
        """Return the height and sequence of a timer, or None. Complexity: O(1)."""
        return self._entries.get(timer_id)

    def add(self, height: int, sequence: int, timer_id: bytes) -> None:
        """Put a timer in. Complexity: O(log k) for the k timers of its height."""
        bucket = self._bucket(height)
        if bucket is None:
            bucket = SortedList()
            if height <= self._now:
                self._due[height] = bucket
            else:
                self._ring.put(height, bucket)
        bucket.add((sequence, timer_id))
        self._entries[timer_id] = (height, sequence)
        if height <= self._now:
            self._due_count += 1

    def take(self, timer_id: bytes) -> int | None:
        """Take a timer out and return its height, or None if it is not here. Complexity: as `add`.

        The last timer of its height takes the bucket with it.
        """
        entry = self._entries.pop(timer_id, None)
        if entry is None:
            return None
        height, sequence = entry
        bucket = self._bucket(height)
        bucket.remove((sequence, timer_id))
        if height <= self._now:
            self._due_count -= 1
        if not bucket:
            if height <= self._now:
                del self._due[height]
            else:
                self._ring.drop(height)
        return height

    def at(self, height: int) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence, timer id) of a height that is due or in the ring, in order. Complexity: O(1) a timer."""
        return iter(self._bucket(height) or ())

    @property
    def due_count(self) -> int:
        """How many timers are due."""
        return self._due_count

    def due(self, after: tuple[int, int]) -> Iterator[tuple[int, int, bytes]]:
        """Yield (height, sequence, timer id) of what is due behind a height and sequence, in order.

        Complexity: O(log n) for the first, O(1) a timer.
        """
        for height in self._due.irange(after[0]):
            least = after[1] + 1 if height == after[0] else 0
            for sequence, timer_id in self._due[height].irange((least, b"")):
                yield height, sequence, timer_id

    def first_due(self) -> int | None:
        """Return the lowest height whose timers are due, or None. Complexity: O(1)."""
        if not self._due:
            return None
        lowest: int = self._due.peekitem(0)[0]
        return lowest

    def first_to_come(self) -> int | None:
        """Return the lowest height to come that has a timer here, or None. Complexity: O(1)."""
        return self._ring.first_height()

    def advance(self, now: int) -> None:
        """Move the clock forward: heights up to ``now`` leave the ring. Complexity: O(log d) for each, beside d due."""
        self._now = now
        for height, bucket in self._ring.take_through(now):
            self._due[height] = bucket
            self._due_count += len(bucket)

    def faults(self) -> Iterator[str]:
        """Yield a reason for each rule that is broken. Complexity: O(ring size + timers)."""
        yield from self._ring.faults()
        held = 0
        for height, bucket in chain(self._due.items(), self._ring.walk()):
            held += len(bucket)
            if not bucket:
                yield f"height {height} has an empty bucket; the last timer to leave must take the bucket with it"
            for sequence, timer_id in bucket:
                if self._entries.get(timer_id) != (height, sequence):
                    yield f"timer {timer_id.hex()} lies at height {height}, but its entry says otherwise"
        due = sum(map(len, self._due.values()))
        if due != self._due_count:
            yield f"{due} timers are due, but {self._due_count} are counted"
        if held != len(self._entries):
            yield f"the buckets hold {held} timers, but {len(self._entries)} have an entry"

    def entries(self) -> dict[bytes, tuple[int, int]]:
        """Return height and sequence of every timer here by id; live, for reading."""
        return self._entries

    def _bucket(self, height: int) -> SortedList:
        """Return the bucket of a height, or None."""
        return self._due.get(height) if height <= self._now else self._ring.find(height)
