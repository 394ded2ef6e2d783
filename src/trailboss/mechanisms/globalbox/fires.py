"""Globalbox itself: the queued fires in their one order.

Each target's fires are a line of their own, and the heads of the lines are in order. Who consumes takes the first head,
and the next of its line moves up; a target that has had its share of a block is set aside with one step, however many
fires it still has.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sortedcontainers import SortedList

from trailboss.mechanisms.globalbox.line import Line
from trailboss.model.globalbox import standing_of
from trailboss.model.terms import QueuedFire
from trailboss.model.timers import Timer


class Place(NamedTuple):
    """Where a fire stands; places sort as fires do, and no two timers share one.

    Spec: CIP-5old §8.2
    Decision: D-20, D-61, D-62

    Attributes:
        standing: Negated, so that the greater comes first.
        bucket: Negated likewise.
        cursor: The lesser first.
        hit_height: The earlier first.
        target: 20 bytes.
        timer_id: 32 bytes.
        height: At which the timer stands in the calendar.
        expires_at: Last height at which the fire may be materialized.
    """

    standing: int
    bucket: int
    cursor: int
    hit_height: int
    target: bytes
    timer_id: bytes
    height: int
    expires_at: int


def place_of(timer: Timer, fire: QueuedFire) -> Place:
    """Return where a timer's fire stands."""
    return Place(
        -standing_of(fire.standing),
        -fire.bucket,
        fire.cursor,
        fire.hit_height,
        timer.target,
        timer.timer_id,
        timer.height,
        timer.expires_at,
    )


class FireQueue:
    """All queued fires. Spec: CIP-5old §5.3, CIP-5old §8.3."""

    __slots__ = ("_heads", "_lines")

    def __init__(self, places: Iterable[Place]) -> None:
        """Make a queue. Complexity: O(n log n)."""
        by_target: dict[bytes, list[Place]] = {}
        for place in sorted(places):
            by_target.setdefault(place.target, []).append(place)
        self._lines = {target: Line(line) for target, line in by_target.items()}
        self._heads = SortedList(line[0] for line in by_target.values())

    def add(self, place: Place) -> None:
        """Insert a fire; no other one moves. Complexity: O(log n)."""
        line = self._lines.get(place.target)
        if line is None:
            self._lines[place.target] = Line((place,))
            self._heads.add(place)
            return
        head = line.first
        line.add(place)
        if place < head:
            self._heads.remove(head)
            self._heads.add(place)

    def discard(self, place: Place) -> None:
        """Take a fire out, if it is there. Complexity: O(log n)."""
        line = self._lines.get(place.target)
        # What has been taken stood before all that is left of its line.
        if line is None or place < line.first:
            return
        if place > line.first:
            line.discard(place)
            return
        self._heads.remove(line.take_first())
        if line:
            self._heads.add(line.first)
        else:
            del self._lines[place.target]

    def consume(self, most: int, share: int, height: int) -> "Consumption":
        """Return a walk from the head, within two quotas; see there. It must be walked to its end."""
        return Consumption(self, self._heads, self._lines, Quotas(most, share, height))

    def first(self, most: int, height: int) -> list[Place]:
        """Return the first fires, whatever their targets; they stay. Complexity: as `Consumption`."""
        consumption = self.consume(most, most, height)
        places = []
        for place in consumption:
            consumption.take(place)
            consumption.keep(place)
            places.append(place)
        return places


class Quotas(NamedTuple):
    """What one block may take. Spec: CIP-5old §8.3.

    Attributes:
        most: Fires at most.
        share: Of those, at most for one target.
        height: The block's; fires whose last height lies below it have expired.
    """

    most: int
    share: int
    height: int


class Consumption:
    """One block's walk over the queue, in its order; fires of targets that have had their share are passed over.

    What is yielded is out of the queue, unless it is kept; it counts for the quotas if it is taken. Those that have
    expired go as well, and are not yielded.

    Spec: CIP-5old §8.3
    Complexity: O(log n) each, and O(log n) once for each that has expired.
    """

    __slots__ = ("_counts", "_heads", "_kept", "_left", "_lines", "_queue", "_quotas")

    def __init__(self, queue: FireQueue, heads: SortedList, lines: dict[bytes, Line[Place]], quotas: Quotas) -> None:
        self._queue = queue
        self._heads = heads
        self._lines = lines
        self._quotas = quotas
        self._left = quotas.most
        self._counts: dict[bytes, int] = {}
        self._kept: list[Place] = []

    def __iter__(self) -> Iterator[Place]:
        """Yield places; what becomes of one is told before the next is asked for."""
        heads, lines, counts = self._heads, self._lines, self._counts
        full: list[Place] = []
        while heads and self._left > 0:
            place: Place = heads.pop(0)
            target = place.target
            line = lines[target]
            line.take_first()
            if not line:
                del lines[target]
            if place.expires_at >= self._quotas.height:
                yield place
            if line:
                (full.append if counts.get(target) == self._quotas.share else heads.add)(line.first)
        heads.update(full)
        for place in self._kept:
            self._queue.add(place)

    def take(self, place: Place) -> None:
        """Count a fire for both quotas."""
        self._left -= 1
        self._counts[place.target] = self._counts.get(place.target, 0) + 1

    def keep(self, place: Place) -> None:
        """Put a fire back where it was, when the walk is over."""
        self._kept.append(place)

    def stop(self) -> None:
        """End the walk."""
        self._left = 0
