"""Tier 3: everything beyond the epoch queue, ordered by height."""

from collections.abc import Iterator

from sortedcontainers import SortedDict

from trailboss.timer_queue.buckets import Bucket


class Overflow:
    """The sorted set of far heights. The state tree holds the same order, Merkleized. Spec: CIP-1v3 §2.3."""

    __slots__ = ("_buckets",)

    def __init__(self) -> None:
        self._buckets = SortedDict()

    def __len__(self) -> int:
        """Return how many heights it holds. Complexity: O(1)."""
        return len(self._buckets)

    def put(self, bucket: Bucket) -> None:
        """Hold a bucket. Complexity: O(log n) in the n heights held."""
        self._buckets[bucket.height] = bucket

    def find(self, height: int) -> Bucket | None:
        """Return the bucket of a height. Complexity: O(1)."""
        bucket: Bucket | None = self._buckets.get(height)
        return bucket

    def drop(self, height: int) -> None:
        """Forget the bucket of a height. Complexity: O(log n)."""
        del self._buckets[height]

    def first_height(self) -> int | None:
        """Return the lowest height held. Complexity: O(1)."""
        if not self._buckets:
            return None
        lowest: int = self._buckets.peekitem(0)[0]
        return lowest

    def walk(self) -> Iterator[Bucket]:
        """Yield every bucket, lowest height first. Complexity: O(1) a bucket."""
        return iter(self._buckets.values())

    def take_below(self, height: int) -> list[Bucket]:
        """Remove and return the buckets of all lower heights, lowest first.

        Complexity: O(k log n) for the k heights returned.
        """
        taken: list[Bucket] = []
        while (first := self.first_height()) is not None and first < height:
            taken.append(self._buckets.pop(first))
        return taken

    def faults(self, beyond: int) -> Iterator[str]:
        """Yield a reason for each height that lies below ``beyond``, or under a wrong key. Complexity: O(n)."""
        for height, bucket in self._buckets.items():
            if bucket.height != height:
                yield f"the overflow set holds height {bucket.height} as {height}"
            if height < beyond:
                yield f"the overflow set holds height {height}, but the epoch queue reaches to {beyond - 1}"
