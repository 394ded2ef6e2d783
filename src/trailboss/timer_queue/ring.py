"""Tier 1 in memory: one slot for each of the next heights."""

from collections.abc import Iterator

from trailboss.params import CalendarParams
from trailboss.timer_queue.bucket import Bucket
from trailboss.timer_queue.placement import ring_slot


class Ring:
    """The ring of buckets: the bucket of a height lies in the slot of its number modulo the ring's size.

    It has room for the next ``ring_size`` heights, so no two share a slot. One integer has a bit for each taken slot,
    so the next height needs no scan and no heap.

    Spec: CIP-1v3 §2.1. Decision: D-10
    """

    __slots__ = ("_calendar", "_first", "_slots", "_taken")

    def __init__(self, calendar: CalendarParams, now: int) -> None:
        self._calendar = calendar
        self._first = now + 1  # the lowest height with a slot
        self._slots: list[Bucket | None] = [None] * calendar.ring_size
        self._taken = 0  # bit i stands for slot i

    def __len__(self) -> int:
        """Return how many heights have a bucket. Complexity: O(1) in heights and timers."""
        return self._taken.bit_count()

    def put(self, height: int, bucket: Bucket) -> None:
        """Hold the bucket of one of the next heights. Complexity: O(1)."""
        slot = ring_slot(height, self._calendar)
        self._slots[slot] = bucket
        self._taken |= 1 << slot

    def find(self, height: int) -> Bucket | None:
        """Return the bucket of one of the next heights, or None. Complexity: O(1)."""
        return self._slots[ring_slot(height, self._calendar)]

    def drop(self, height: int) -> None:
        """Forget the bucket of one of the next heights. Complexity: O(1)."""
        slot = ring_slot(height, self._calendar)
        self._slots[slot] = None
        self._taken ^= 1 << slot

    def first_height(self) -> int | None:
        """Return the lowest height with a bucket. Complexity: O(1)."""
        if not self._taken:
            return None
        # The slots of the heights to come start at the first one's and go around.
        start = ring_slot(self._first, self._calendar)
        ahead = self._taken >> start
        if ahead:
            return self._first + _lowest_bit(ahead)
        return self._first + _lowest_bit(self._taken) + self._calendar.ring_size - start

    def take_through(self, now: int) -> Iterator[tuple[int, Bucket]]:
        """Remove and yield the buckets of all heights up to ``now``, lowest first. Complexity: O(1) a bucket."""
        while (height := self.first_height()) is not None and height <= now:
            bucket = self.find(height)
            self.drop(height)
            if bucket is not None:  # Its bit has said so.
                yield height, bucket
        self._first = now + 1

    def walk(self) -> Iterator[tuple[int, Bucket]]:
        """Yield height and bucket, lowest height first. Complexity: O(ring size)."""
        for height in range(self._first, self._first + self._calendar.ring_size):
            bucket = self.find(height)
            if bucket is not None:
                yield height, bucket

    def faults(self) -> Iterator[str]:
        """Yield a reason for each slot whose bit is wrong. Complexity: O(ring size)."""
        for slot, bucket in enumerate(self._slots):
            if (bucket is not None) != bool(self._taken >> slot & 1):
                yield f"ring slot {slot} is {'free' if bucket is None else 'taken'}, but its bit says otherwise"


def _lowest_bit(mask: int) -> int:
    """Return the number of the lowest bit that is set; ``mask`` is positive."""
    return (mask & -mask).bit_length() - 1
