"""All timers of one height. Buckets are what the tiers hold and move."""

from collections.abc import Iterator, Mapping

import msgspec


class Bucket(msgspec.Struct, gc=False):
    """The timers of one height, in FIFO order when it is asked for.

    Timers nearly always arrive in the order of their sequence. When one does not (a rebuild reads them by id, an undo
    brings one back), the bucket is sorted at the next walk, not before.

    Attributes:
        height: The height that they share.
        sequences: Timer id to FIFO sequence.
        highest: Highest sequence since the last sort; an arrival below it is out of order.
        in_order: Whether ``sequences`` stands in FIFO order.
        removed: Removals since ``sequences`` was last written anew; a walk steps over each of them.
    """

    height: int
    sequences: dict[bytes, int] = msgspec.field(default_factory=dict)
    highest: int = -1
    in_order: bool = True
    removed: int = 0

    def __len__(self) -> int:
        return len(self.sequences)

    def add(self, sequence: int, timer_id: bytes) -> None:
        """Put a timer in. Complexity: O(1)."""
        self.sequences[timer_id] = sequence
        if sequence < self.highest:
            self.in_order = False
        else:
            self.highest = sequence

    def remove(self, timer_id: bytes) -> None:
        """Take a timer out. Complexity: O(1)."""
        del self.sequences[timer_id]
        self.removed += 1

    def ordered(self) -> Mapping[bytes, int]:
        """Return timer id to sequence, in FIFO order.

        Complexity: O(1); O(n log n) after an arrival out of order; O(n) once after as many removals as remain, so
        that a backlog taken from the front in small steps is not walked over again and again.
        """
        if not self.in_order:
            self._rewrite(dict(sorted(self.sequences.items(), key=lambda entry: entry[1])))
        elif self.removed > len(self.sequences):
            self._rewrite(dict(self.sequences.items()))
        return self.sequences

    def faults(self) -> Iterator[str]:
        """Yield a reason for each rule that the bucket breaks. Complexity: O(n)."""
        if not self.sequences:
            yield f"height {self.height} has an empty bucket; the last timer to leave must take the bucket with it"
        sequences = list(self.sequences.values())
        if self.in_order and sequences != sorted(sequences):
            yield f"the timers of height {self.height} are out of order, but the bucket says they are not"

    def _rewrite(self, sequences: dict[bytes, int]) -> None:
        self.sequences = sequences
        self.highest = next(reversed(sequences.values()), -1)
        self.in_order = True
        self.removed = 0
