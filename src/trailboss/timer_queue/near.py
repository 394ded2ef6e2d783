"""The timers in memory: those that are due, and those in the ring, tier 1."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, merge
from itertools import chain
from typing import Final

from sortedcontainers import SortedDict

from trailboss.params import CalendarParams
from trailboss.timer_queue.bucket import Bucket, IsOut, Pending

MORTAL_MIN: Final = 64  # notes of expiries that are kept whatever is due


class Ring:
    """Buckets of the next ``ring_size`` heights, each in the slot of its height modulo that size.

    One integer has a bit for each taken slot, so the next height needs no scan and no heap.
    Spec: CIP-1v3 §2.1. Decision: D-10
    """

    __slots__ = ("_size", "_slots", "_taken", "first")

    def __init__(self, size: int, now: int) -> None:
        self._size = size
        self.first = now + 1  # the lowest height with a slot
        self._slots: list[Bucket | None] = [None] * size
        self._taken = 0  # bit i stands for slot i

    def __len__(self) -> int:
        """Return how many heights have a bucket. Complexity: O(1) in heights and timers."""
        return self._taken.bit_count()

    def put(self, height: int, bucket: Bucket) -> None:
        """Hold the bucket of one of the next heights. Complexity: O(1)."""
        slot = height % self._size
        self._slots[slot] = bucket
        self._taken |= 1 << slot

    def find(self, height: int) -> Bucket | None:
        """Return the bucket of one of the next heights, or None. Complexity: O(1)."""
        return self._slots[height % self._size]

    def take(self, height: int) -> Bucket | None:
        """Remove and return the bucket of one of the next heights, or None. Complexity: O(1)."""
        slot = height % self._size
        bucket, self._slots[slot] = self._slots[slot], None
        self._taken &= ~(1 << slot)
        return bucket

    def first_height(self) -> int | None:
        """Return the lowest height with a bucket. Complexity: O(1)."""
        if not self._taken:
            return None
        # The slots of the heights to come start at the first one's and go around.
        start = self.first % self._size
        ahead = self._taken >> start
        mask, skipped = (ahead, 0) if ahead else (self._taken, self._size - start)
        return self.first + (mask & -mask).bit_length() - 1 + skipped

    def walk(self) -> Iterator[tuple[int, Bucket]]:
        """Yield height and bucket, lowest height first. Complexity: O(ring size)."""
        for height in range(self.first, self.first + self._size):
            bucket = self.find(height)
            if bucket is not None:
                yield height, bucket

    def faults(self) -> Iterator[str]:
        """Yield a reason for each slot whose bit is wrong. Complexity: O(ring size)."""
        for slot, bucket in enumerate(self._slots):
            if (bucket is not None) != bool(self._taken >> slot & 1):
                yield f"ring slot {slot} is {'free' if bucket is None else 'taken'}, but its bit says otherwise"


class NearTimers:
    """Timers of heights up to the ring's last, by height and by id; a due bucket waits beside the ring until empty."""

    __slots__ = ("_died", "_due", "_expired_at", "_mortal", "_now", "due_count", "entries", "ring")

    def __init__(self, calendar: CalendarParams, now: int) -> None:
        self._now = now
        self.ring = Ring(calendar.ring_size, now)
        self._due = SortedDict()  # height to bucket
        self.due_count = 0
        self.entries: dict[bytes, Pending] = {}
        self._mortal: list[tuple[int, int]] = []  # A heap: when the first of a due bucket may expire, and its height.
        self._expired_at: set[int] = set()  # Heights of due buckets that hold expired timers.
        self._died: list[bytes] = []  # Those that the last move of the clock has found so.

    def __len__(self) -> int:
        """Return how many timers are in memory. Complexity: O(1)."""
        return len(self.entries)

    @property
    def heights(self) -> int:
        """How many heights have a bucket."""
        return len(self._due) + len(self.ring)

    def add(self, timer: Pending) -> None:
        """Put a timer in. Complexity: O(log k) for the k timers of its height."""
        height, is_due = timer.height, timer.height <= self._now
        bucket = self._bucket(height)
        if bucket is None:
            bucket = Bucket()
            if is_due:
                self._due[height] = bucket
            else:
                self.ring.put(height, bucket)
        is_expired = timer.expires_at < max(height, self._now)
        bucket.add(timer, is_expired=is_expired)
        self.entries[timer.timer_id] = timer
        if is_due:
            self.due_count += 1
            if is_expired or bucket.next_death() == timer.expires_at:
                self._watch(height, bucket)

    def take(self, timer_id: bytes) -> int | None:
        """Take a timer out, and its bucket with the last; return its height, or None. Complexity: as `add`."""
        timer = self.entries.pop(timer_id, None)
        bucket = None if timer is None else self._bucket(timer.height)
        if timer is None or bucket is None:
            return None
        height, is_due = timer.height, timer.height <= self._now
        bucket.remove(timer)
        if is_due:
            self.due_count -= 1
            if not bucket.expired:
                self._expired_at.discard(height)
        if not bucket:
            if is_due:
                del self._due[height]
            else:
                self.ring.take(height)
        return height

    def at(self, height: int) -> Iterator[tuple[int, bytes]]:
        """Yield (sequence, timer id) of a height that is due or in the ring, in no order. Complexity: O(1) a timer."""
        bucket = self._bucket(height)
        for timer in bucket or ():
            yield timer.sequence, timer.timer_id

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
        found = ((timer_id, self.entries.get(timer_id)) for timer_id in self._died)
        return [timer_id for timer_id, timer in found if timer is not None and timer.expires_at < self._now]

    def first_due(self) -> int | None:
        """Return the lowest height whose timers are due, or None. Complexity: O(1)."""
        if not self._due:
            return None
        lowest: int = self._due.peekitem(0)[0]
        return lowest

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
        while (first := self.ring.first_height()) is not None and first <= now:
            bucket = self.ring.take(first)
            if bucket is not None:  # Its bit has said so.
                self._due[first] = bucket
                self.due_count += len(bucket)
                for _ in bucket.bury(now):
                    pass
                self._watch(first, bucket)
        self.ring.first = now + 1

    def faults(self) -> Iterator[str]:
        """Yield a reason for each rule that is broken. Complexity: O(ring size + timers)."""
        yield from self.ring.faults()
        held = 0
        for height, bucket in chain(self._due.items(), self.ring.walk()):
            held += len(bucket)
            if not bucket:
                yield f"height {height} has an empty bucket; the last timer to leave must take the bucket with it"
            for timer in bucket:
                if timer.height != height or self.entries.get(timer.timer_id) != timer:
                    yield f"timer {timer.timer_id.hex()} lies at height {height}, but its entry says otherwise"
                if (timer in bucket.expired) != (timer.expires_at < max(height, self._now)):
                    yield f"timer {timer.timer_id.hex()} expires after {timer.expires_at} and lies on the wrong side"
        due = sum(map(len, self._due.values()))
        if due != self.due_count:
            yield f"{due} timers are due, but {self.due_count} are counted"
        if held != len(self.entries):
            yield f"the buckets hold {held} timers, but {len(self.entries)} have an entry"

    def _watch(self, height: int, bucket: Bucket) -> None:
        """Note when a due bucket's timers expire, and whether any have."""
        death = bucket.next_death()
        if death is not None:
            heappush(self._mortal, (death, height))
        if bucket.expired:
            self._expired_at.add(height)
        # Timers live for millions of blocks: notes of buckets that are gone would stay as long.
        if len(self._mortal) > MORTAL_MIN + 2 * len(self._due):
            deaths = ((each.next_death(), at) for at, each in self._due.items())
            self._mortal = [(death, at) for death, at in deaths if death is not None]
            heapify(self._mortal)

    def _bucket(self, height: int) -> Bucket | None:
        return self._due.get(height) if height <= self._now else self.ring.find(height)


def _by_expiry(timer: Pending) -> tuple[int, int, int]:
    return timer.expires_at, timer.height, timer.sequence
