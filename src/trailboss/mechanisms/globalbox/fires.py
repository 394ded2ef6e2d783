"""Globalbox itself: the queued fires in their one order.

Each target's fires are a line of their own, and the heads of the lines are in order, as in fair queueing. A walk takes
the first head, and the next of its line moves up; a target that has had its share of a block is set aside in one step.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sortedcontainers import SortedList

from trailboss.mechanisms.globalbox.sorted_sets import SortedTuples
from trailboss.model.globalbox import standing_of
from trailboss.model.terms import QueuedFire
from trailboss.model.timers import Timer


class QueuePosition(NamedTuple):
    """Where a fire is queued; sorts as fires do, no two alike. Spec: CIP-5old §8.2. Decision: D-20, D-61, D-62."""

    standing: int  # negated, so that the greater comes first
    bucket: int  # negated likewise
    cursor: int
    hit_height: int
    target: bytes
    timer_id: bytes
    height: int  # the timer's, in the calendar
    expires_at: int  # last height at which the fire may be materialized


def position_of(timer: Timer, fire: QueuedFire) -> QueuePosition:
    """Return where a timer's fire is."""
    standing, identity = standing_of(fire.standing), (timer.timer_id, timer.height, timer.expires_at)
    return QueuePosition(-standing, -fire.bucket, fire.cursor, fire.hit_height, timer.target, *identity)


class FireQueue:
    """All queued fires. Spec: CIP-5old §5.3, CIP-5old §8.3."""

    def __init__(self, positions: Iterable[QueuePosition]) -> None:
        """Make a queue. Complexity: O(n log n)."""
        by_target: dict[bytes, list[QueuePosition]] = {}
        for position in sorted(positions):
            by_target.setdefault(position.target, []).append(position)
        self.lines = {target: SortedTuples(line) for target, line in by_target.items()}
        self.heads = SortedList(line[0] for line in by_target.values())

    def add(self, position: QueuePosition) -> None:
        """Insert a fire; no other one moves. Complexity: O(log n)."""
        line = self.lines.get(position.target)
        if line is None:
            self.lines[position.target] = SortedTuples((position,))
            self.heads.add(position)
            return
        head = line.first
        line.add(position)
        if position < head:
            self.heads.remove(head)
            self.heads.add(position)

    def discard(self, position: QueuePosition) -> None:
        """Remove a fire, if it is there. Complexity: O(log n)."""
        line = self.lines.get(position.target)
        # What a walk has taken came before all that is left of its line.
        if line is None or position < line.first:
            return
        if position > line.first:
            line.discard(position)
            return
        self.heads.remove(line.pop_first())
        if line:
            self.heads.add(line.first)
        else:
            del self.lines[position.target]

    def consume(self, most: int, share: int, height: int) -> "Consumption":
        """Return a block's walk from the head, which must be walked to its end; ``share`` bounds what a target gets."""
        return Consumption(self, most=most, share=share, height=height)

    def first(self, most: int, height: int) -> list[QueuePosition]:
        """Return the first fires, whatever their targets; they stay. Complexity: as `Consumption`."""
        consumption = self.consume(most, most, height)
        positions = []
        for position in consumption:
            consumption.take(position)
            consumption.keep(position)
            positions.append(position)
        return positions


class Consumption:
    """One block's walk over the queue, in its order; fires of targets that have had their share are skipped.

    What is yielded is out of the queue, unless it is kept; it counts for the quotas if it is taken. Those that have
    expired go as well, and are not yielded. Spec: CIP-5old §8.3. Complexity: O(log n) each, and O(log n) once for each
    that has expired.
    """

    def __init__(self, queue: FireQueue, *, most: int, share: int, height: int) -> None:
        self._queue = queue
        self._left, self._share, self._height = most, share, height
        self._counts: dict[bytes, int] = {}
        self._kept: list[QueuePosition] = []

    def __iter__(self) -> Iterator[QueuePosition]:
        """Yield positions; each is taken, kept or neither before the next is asked for."""
        heads, lines, counts = self._queue.heads, self._queue.lines, self._counts
        full: list[QueuePosition] = []
        while heads and self._left > 0:
            position: QueuePosition = heads.pop(0)
            target = position.target
            line = lines[target]
            line.pop_first()
            if not line:
                del lines[target]
            if position.expires_at >= self._height:
                yield position
            if line:
                (full.append if counts.get(target) == self._share else heads.add)(line.first)
        heads.update(full)
        for position in self._kept:
            self._queue.add(position)

    def take(self, position: QueuePosition) -> None:
        """Count a fire for both quotas."""
        self._left -= 1
        self._counts[position.target] = self._counts.get(position.target, 0) + 1

    def keep(self, position: QueuePosition) -> None:
        """Put a fire back where it was, when the walk is over."""
        self._kept.append(position)

    def stop(self) -> None:
        """End the walk."""
        self._left = 0
