"""Tier 2: one bucket for each of the next epochs, holding the buckets of its heights."""

from collections.abc import Iterator

from trailboss.params import CalendarParams
from trailboss.timer_queue.buckets import Bucket
from trailboss.timer_queue.occupancy import first_bit
from trailboss.timer_queue.placement import epoch_of, epoch_slot, epoch_start


class EpochQueue:
    """A circular array of epochs, by epoch modulo epoch count.

    Spec: CIP-1v3 §2.2
    Decision: D-10
    """

    __slots__ = ("_calendar", "_epoch", "_heights", "_occupied", "_slots")

    def __init__(self, calendar: CalendarParams, epoch: int) -> None:
        self._calendar = calendar
        self._epoch = epoch  # the present one; the queue holds later ones only
        self._slots: list[dict[int, Bucket]] = [{} for _ in range(calendar.epoch_count)]
        self._heights = [0] * calendar.epoch_count  # bit i of a slot stands for the epoch's height i
        self._occupied = 0  # bit i stands for slot i

    def __len__(self) -> int:
        """Return how many heights it holds. Complexity: O(epoch count)."""
        return sum(len(buckets) for buckets in self._slots)

    def put(self, bucket: Bucket) -> None:
        """Hold a bucket whose epoch is one of the next. Complexity: O(1)."""
        slot = self._slot(bucket.height)
        self._slots[slot][bucket.height] = bucket
        self._heights[slot] |= 1 << (bucket.height % self._calendar.epoch_length)
        self._occupied |= 1 << slot

    def find(self, height: int) -> Bucket | None:
        """Return the bucket of a height that belongs here. Complexity: O(1)."""
        return self._slots[self._slot(height)].get(height)

    def drop(self, height: int) -> None:
        """Forget the bucket of a height. Complexity: O(1)."""
        slot = self._slot(height)
        del self._slots[slot][height]
        self._heights[slot] ^= 1 << (height % self._calendar.epoch_length)
        if not self._slots[slot]:
            self._occupied ^= 1 << slot

    def first_height(self) -> int | None:
        """Return the lowest height held. Complexity: O(1)."""
        epoch = self._first_epoch()
        if epoch is None:
            return None
        return epoch_start(epoch, self._calendar) + first_bit(self._heights[epoch_slot(epoch, self._calendar)])

    def walk(self) -> Iterator[Bucket]:
        """Yield every bucket, in no order that means anything. Complexity: O(epoch count + heights)."""
        for buckets in self._slots:
            yield from buckets.values()

    def take_through(self, epoch: int) -> list[Bucket]:
        """Remove and return the buckets of all epochs up to ``epoch``, which becomes the present one.

        Complexity: O(k) for the k heights returned; at most one epoch's heights if the clock moves a block at a time.
        """
        taken: list[Bucket] = []
        while (first := self._first_epoch()) is not None and first <= epoch:
            slot = epoch_slot(first, self._calendar)
            taken += self._slots[slot].values()
            self._slots[slot] = {}
            self._heights[slot] = 0
            self._occupied ^= 1 << slot
        self._epoch = epoch
        return taken

    def faults(self) -> Iterator[str]:
        """Yield a reason for each rule that the tier breaks. Complexity: O(epoch count + heights)."""
        last = self._epoch + self._calendar.epoch_count
        for slot, buckets in enumerate(self._slots):
            heights = 0
            for height, bucket in buckets.items():
                epoch = epoch_of(height, self._calendar)
                heights |= 1 << (height % self._calendar.epoch_length)
                if bucket.height != height or epoch_slot(epoch, self._calendar) != slot:
                    yield f"epoch slot {slot} holds height {bucket.height} as {height}, which belongs elsewhere"
                if not self._epoch < epoch <= last:
                    yield f"the epoch queue holds height {height} of epoch {epoch}, outside {self._epoch + 1}..{last}"
            if heights != self._heights[slot]:
                yield f"epoch slot {slot} marks other heights than it holds"
            if bool(buckets) != bool(self._occupied >> slot & 1):
                yield f"epoch slot {slot} holds {len(buckets)} heights, but its bit says otherwise"

    def _slot(self, height: int) -> int:
        return epoch_slot(epoch_of(height, self._calendar), self._calendar)

    def _first_epoch(self) -> int | None:
        if not self._occupied:
            return None
        # The slots of the next epochs start behind the present one's and go around.
        start = epoch_slot(self._epoch + 1, self._calendar)
        behind = self._occupied >> start
        distance = first_bit(behind) if behind else first_bit(self._occupied) + self._calendar.epoch_count - start
        return self._epoch + 1 + distance
