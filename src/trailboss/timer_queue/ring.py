"""Tier 1: one slot for each height of the epoch that has begun, and what earlier epochs carried over."""

from collections.abc import Iterator
from itertools import chain

from sortedcontainers import SortedDict

from trailboss.params import CalendarParams
from trailboss.timer_queue.buckets import Bucket
from trailboss.timer_queue.occupancy import first_bit, rising_bits
from trailboss.timer_queue.placement import epoch_start, ring_slot


class Ring:
    """The ring of buckets, by height modulo ring size.

    Timers that were due in an earlier epoch and still wait would share slots with heights to come, so at a rollover
    their buckets move to a sorted map beside the slots. They are few heights, however many timers they hold.

    Spec: CIP-1v3 §2.1
    Decision: D-10
    """

    __slots__ = ("_calendar", "_carried", "_occupied", "_slots", "_start")

    def __init__(self, calendar: CalendarParams, epoch: int) -> None:
        self._calendar = calendar
        self._start = epoch_start(epoch, calendar)
        self._slots: list[Bucket | None] = [None] * calendar.ring_size
        self._occupied = 0  # bit i stands for height self._start + i
        self._carried = SortedDict()

    def __len__(self) -> int:
        """Return how many heights it holds. Complexity: O(1) in heights and timers."""
        return self._occupied.bit_count() + len(self._carried)

    def put(self, bucket: Bucket) -> None:
        """Hold a bucket whose epoch is the present one or an earlier one.

        Complexity: O(1); O(log c) in the c carried heights for an earlier epoch.
        """
        if bucket.height < self._start:
            self._carried[bucket.height] = bucket
            return
        self._slots[ring_slot(bucket.height, self._calendar)] = bucket
        self._occupied |= 1 << (bucket.height - self._start)

    def find(self, height: int) -> Bucket | None:
        """Return the bucket of a height that belongs here. Complexity: O(1)."""
        if height < self._start:
            carried: Bucket | None = self._carried.get(height)
            return carried
        return self._slots[ring_slot(height, self._calendar)]

    def drop(self, height: int) -> None:
        """Forget the bucket of a height. Complexity: as `put`."""
        if height < self._start:
            del self._carried[height]
            return
        self._slots[ring_slot(height, self._calendar)] = None
        self._occupied ^= 1 << (height - self._start)

    def first_height(self) -> int | None:
        """Return the lowest height held. Complexity: O(1)."""
        if self._carried:
            lowest: int = self._carried.peekitem(0)[0]
            return lowest
        return self._start + first_bit(self._occupied) if self._occupied else None

    def walk_due(self, now: int) -> Iterator[Bucket]:
        """Yield the buckets of heights up to ``now``, lowest first. Complexity: O(1) a bucket."""
        due = self._occupied & ((1 << (now - self._start + 1)) - 1)
        return chain(self._carried.values(), self._in_slots(due))

    def walk(self) -> Iterator[Bucket]:
        """Yield every bucket, lowest height first. Complexity: O(1) a bucket."""
        return chain(self._carried.values(), self._in_slots(self._occupied))

    def roll_over(self, epoch: int) -> int:
        """Make room for a later epoch; return how many heights are carried over.

        Complexity: O(k log c) for the k heights of the ending epoch that still wait, at most its length.
        """
        waiting = list(self._in_slots(self._occupied))
        for bucket in waiting:
            self._slots[ring_slot(bucket.height, self._calendar)] = None
            self._carried[bucket.height] = bucket
        self._occupied = 0
        self._start = epoch_start(epoch, self._calendar)
        return len(waiting)

    def faults(self) -> Iterator[str]:
        """Yield a reason for each rule that the tier breaks. Complexity: O(ring size + heights)."""
        end = self._start + self._calendar.epoch_length
        for slot, bucket in enumerate(self._slots):
            if bucket is None:
                continue
            if not self._start <= bucket.height < end:
                yield f"ring slot {slot} holds height {bucket.height}, outside the epoch {self._start}..{end - 1}"
            elif ring_slot(bucket.height, self._calendar) != slot:
                yield f"ring slot {slot} holds height {bucket.height}, which belongs into another slot"
            elif not self._occupied >> (bucket.height - self._start) & 1:
                yield f"ring slot {slot} holds height {bucket.height}, but its bit says that the slot is free"
        filled = sum(bucket is not None for bucket in self._slots)
        if filled != self._occupied.bit_count():
            yield f"{self._occupied.bit_count()} ring slots are marked as occupied, {filled} are"
        for height, bucket in self._carried.items():
            if bucket.height != height or height >= self._start:
                yield f"height {bucket.height} is carried as {height}, although the epoch began at {self._start}"

    def _in_slots(self, mask: int) -> Iterator[Bucket]:
        for offset in rising_bits(mask):
            bucket = self._slots[ring_slot(self._start + offset, self._calendar)]
            if bucket is not None:
                yield bucket
