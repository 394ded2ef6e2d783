"""The timers in memory: those that are due, and those in the ring."""

from collections.abc import Iterator
from heapq import heappop, heappush, merge
from itertools import chain

from sortedcontainers import SortedDict

from trailboss.params import CalendarParams
from trailboss.timer_queue.bucket import Bucket, IsOut, Pending
from trailboss.timer_queue.ring import Ring


class NearTimers:
    """Timers of heights up to the ring's last, by height and by id.

    The ring holds the buckets of heights to come. A due bucket waits beside it for as long as it has timers.
    """

    __slots__ = ("_died", "_due", "_due_count", "_entries", "_expired_at", "_mortal", "_now", "_ring")

    def __init__(self, calendar: CalendarParams, now: int) -> None:
        self._now = now
        self._ring = Ring(calendar, now)
        self._due = SortedDict()  # height to bucket
        self._due_count = 0
        self._entries: dict[bytes, Pending] = {}
        self._mortal: list[tuple[int, int]] = []  # A heap: when the first of a due bucket may expire, and its height.
        self._expired_at: set[int] = set()  # Heights of due buckets that hold expired timers.
        self._died: list[bytes] = []  # Those that the last move of the clock has found so.

    def __len__(self) -> int:
        """Return how many timers are in memory. Complexity: O(1)."""
        return len(self._entries)

    @property
    def heights(self) -> int:
        """How many heights have a bucket."""
        return len(self._due) + len(self._ring)

    def entry(self, timer_id: bytes) -> Pending | None:
        """Return a timer, or None. Complexity: O(1)."""
        return self._entries.get(timer_id)

    def add(self, timer: Pending) -> None:
        """Put a timer in. Complexity: O(log k) for the k timers of its height."""
        height = timer.height
        bucket = self._bucket(height)
        if bucket is None:
            bucket = Bucket()
            if height <= self._now:
                self._due[height] = bucket
            else:
                self._ring.put(height, bucket)
        is_expired = timer.expires_at < max(height, self._now)
        bucket.add(timer, is_expired=is_expired)
        self._entries[timer.timer_id] = timer
        if height <= self._now:
            self._due_count += 1
            if is_expired or bucket.next_death() == timer.expires_at:
                self._watch(height, bucket)

    def take(self, timer_id: bytes) -> int | None:
        """Take a timer out, and its bucket with the last one; return its height, or None if it is not here.

        Complexity: as `add`.
        """
        timer = self._entries.pop(timer_id, None)
        bucket = None if timer is None else self._bucket(timer.height)
        if timer is None or bucket is None:
            return None
        height = timer.height
        bucket.remove(timer)
        if height <= self._now:
            self._due_count -= 1
            if not bucket.expired:
                self._expired_at.discard(height)
        if not bucket:
            if height <= self._now:
                del self._due[height]
            else:
                self._ring.drop(height)
        return height

    def at(self, height: int) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence, timer id) of a height that is due or in the ring, in no order. Complexity: O(1) a timer."""
        bucket = self._bucket(height)
        for timer in () if bucket is None else chain(bucket.alive, bucket.expired):
            yield timer.sequence, timer.timer_id

    @property
    def due_count(self) -> int:
        """How many timers are due, those that have expired included."""
        return self._due_count

    @property
    def expired_count(self) -> int:
        """How many timers are due and have expired. Complexity: O(h) for the h heights of these."""
        return sum(len(self._due[height].expired) for height in self._expired_at)

    def next_expiry(self) -> int | None:
        """Return the last height of the first due timer to expire, or one before it; None if none will."""
        return self._mortal[0][0] if self._mortal else None

    def due(self, after: tuple[int, int], is_out: IsOut | None = None) -> Iterator[Pending]:
        """Yield what is due and alive behind a height and sequence, in order; see `Bucket.walk`.

        Complexity: O(log n) for the first, and what `Bucket.walk` takes.
        """
        for height in self._due.irange(after[0]):
            yield from self._due[height].walk(after[1] if height == after[0] else -1, is_out)

    def expired(self) -> Iterator[Pending]:
        """Yield what is due and has expired, the first to expire first, then in due order.

        Complexity: O(h) for the h heights that have any, O(log h) a timer.
        """
        return merge(*(self._due[height].expired for height in self._expired_at), key=_by_expiry)

    def died(self) -> list[bytes]:
        """Return the timers that waited when the clock was moved last and have expired with that, in no order."""
        return [
            timer_id
            for timer_id in self._died
            if (timer := self._entries.get(timer_id)) is not None and timer.expires_at < self._now
        ]

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
        """Move the clock forward: heights up to ``now`` leave the ring, and what has expired is set apart.

        Complexity: O(log d) for each height, beside d due; O(log k) for each timer that expires while it waits.
        """
        self._now = now
        self._died = []
        while self._mortal and self._mortal[0][0] < now:
            _, height = heappop(self._mortal)
            bucket = self._due.get(height)
            if bucket is not None:
                self._died += bucket.bury(now)
                self._watch(height, bucket)
        for height, bucket in self._ring.take_through(now):
            self._due[height] = bucket
            self._due_count += len(bucket)
            for _ in bucket.bury(now):
                pass
            self._watch(height, bucket)

    def faults(self) -> Iterator[str]:
        """Yield a reason for each rule that is broken. Complexity: O(ring size + timers)."""
        yield from self._ring.faults()
        held = 0
        for height, bucket in chain(self._due.items(), self._ring.walk()):
            held += len(bucket)
            if not bucket:
                yield f"height {height} has an empty bucket; the last timer to leave must take the bucket with it"
            for timer in chain(bucket.alive, bucket.expired):
                if timer.height != height or self._entries.get(timer.timer_id) != timer:
                    yield f"timer {timer.timer_id.hex()} lies at height {height}, but its entry says otherwise"
                if (timer in bucket.expired) != (timer.expires_at < max(height, self._now)):
                    yield f"timer {timer.timer_id.hex()} expires after {timer.expires_at} and lies on the wrong side"
        due = sum(map(len, self._due.values()))
        if due != self._due_count:
            yield f"{due} timers are due, but {self._due_count} are counted"
        if held != len(self._entries):
            yield f"the buckets hold {held} timers, but {len(self._entries)} have an entry"

    def entries(self) -> dict[bytes, Pending]:
        """Return every timer here by id; live, for reading."""
        return self._entries

    def _watch(self, height: int, bucket: Bucket) -> None:
        """Note when a due bucket's timers expire, and whether any have."""
        death = bucket.next_death()
        if death is not None:
            heappush(self._mortal, (death, height))
        if bucket.expired:
            self._expired_at.add(height)

    def _bucket(self, height: int) -> Bucket | None:
        """Return the bucket of a height, or None."""
        return self._due.get(height) if height <= self._now else self._ring.find(height)


def _by_expiry(timer: Pending) -> tuple[int, int, int]:
    return timer.expires_at, timer.height, timer.sequence
