"""Committed timers in a plain list, and a block's way of changing them: what the calendar queue is tested over."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from hashlib import sha256

from trailboss.params import CalendarParams
from trailboss.timer_queue.queue import TimerQueue

Row = tuple[int, int, bytes]
"""Height, sequence, timer id."""


def name(sequence: int) -> bytes:
    """Return the id of the timer with a sequence; the order of ids is not that of sequences."""
    return sha256(sequence.to_bytes(8, "big")).digest()


class TimerList:
    """A source of timers that are held in a sorted list, and that counts what is read of it.

    Attributes:
        scans: Scans begun.
        read: Timers that scans have yielded.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[int, bytes, int]] = []
        self._heights: dict[bytes, int] = {}
        self.scans = 0
        self.read = 0

    def scan(self, height: int, timer_id: bytes = b"") -> Iterator[Row]:
        """Yield timers from a height and id on."""
        self.scans += 1
        for index in range(bisect_left(self._rows, (height, timer_id)), len(self._rows)):
            self.read += 1
            found, identity, sequence = self._rows[index]
            yield found, sequence, identity

    def count_below(self, height: int) -> int:
        """Return how many timers are due below a height."""
        return bisect_left(self._rows, (height,))

    def height_of(self, timer_id: bytes) -> int | None:
        """Return the height of a timer, or None."""
        return self._heights.get(timer_id)

    def put(self, rows: list[Row]) -> None:
        """Hold these timers and no others."""
        self._rows = sorted((height, identity, sequence) for height, sequence, identity in rows)
        self._heights = {identity: height for height, _, identity in rows}

    def add(self, row: Row) -> None:
        """Hold one timer more."""
        height, sequence, identity = row
        insort(self._rows, (height, identity, sequence))
        self._heights[identity] = height

    def discard(self, identity: bytes) -> None:
        """Hold one timer less, if it is there."""
        height = self._heights.pop(identity, None)
        if height is not None:
            del self._rows[bisect_left(self._rows, (height, identity))]


class Blocks:
    """A queue over a list, and the blocks that change both: the queue at once, the list when the block is committed.

    Attributes:
        source: What is committed.
        queue: The queue over it.
        placed: Timers placed by the present block.
        gone: Ids of timers that the present block has taken out.
        count: Timers placed ever.
    """

    def __init__(self, calendar: CalendarParams, now: int = 0) -> None:
        self.source = TimerList()
        self.queue = TimerQueue(calendar, self.source, now)
        self.placed: dict[bytes, Row] = {}
        self.gone: list[bytes] = []
        self.count = 0

    def place(self, *heights: int) -> None:
        """Place a timer at each height; their sequences go on from those before."""
        for height in heights:
            row = (height, self.count, name(self.count))
            self.queue.place(*row)
            self.placed[row[2]] = row
            self.count += 1

    def plant(self, *heights: int) -> None:
        """Commit a timer at each height behind the queue's back, and let it read them anew."""
        rows = [(height, self.count + number, name(self.count + number)) for number, height in enumerate(heights)]
        self.source.put([*self.source.scan(0), *rows])
        self.count += len(rows)
        self.queue.rewind(self.queue.now)

    def cancel(self, sequence: int) -> int | None:
        """Take a timer out and return its height."""
        height = self.queue.cancel(name(sequence))
        if self.placed.pop(name(sequence), None) is None:
            self.gone.append(name(sequence))
        return height

    def commit(self) -> None:
        """Commit what the block has changed."""
        for identity in self.gone:
            self.source.discard(identity)
        for row in self.placed.values():
            self.source.add(row)
        self.placed.clear()
        self.gone.clear()

    def advance(self, now: int) -> None:
        """Commit the present block, and begin that of a height."""
        self.commit()
        self.queue.check_invariants()
        self.queue.advance(now)

    def due(self) -> list[int]:
        """Return the sequences of what is due, in order."""
        return [sequence for _, sequence, _ in self.queue.due(self.queue.now)]
