"""Committed timers in a plain list, and a block's way of changing them: what the calendar queue is tested over."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from hashlib import sha256

from trailboss.params import CalendarParams
from trailboss.primitives.units import U64_MAX
from trailboss.timer_queue.bucket import Pending
from trailboss.timer_queue.queue import TimerQueue

Row = tuple[int, int, bytes]
"""Height, sequence, timer id."""
PAYER = b"payer"


def name(sequence: int) -> bytes:
    """Return the id of the timer with a sequence; the order of ids is not that of sequences."""
    return sha256(sequence.to_bytes(8, "big")).digest()


def pending(row: Row, expires_at: int = U64_MAX, fee_payer: bytes = PAYER) -> Pending:
    """Return what the queue holds of a timer."""
    height, sequence, identity = row
    return Pending(expires_at, sequence, identity, fee_payer, height)


class TimerList:
    """A source of timers that are held in a sorted list, and that counts what is read of it.

    Attributes:
        scans: Scans begun.
        read: Timers that scans have yielded.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[int, bytes, Pending]] = []
        self._heights: dict[bytes, int] = {}
        self.scans = 0
        self.read = 0

    def scan(self, height: int, timer_id: bytes = b"") -> Iterator[Pending]:
        """Yield timers from a height and id on."""
        self.scans += 1
        for index in range(bisect_left(self._rows, (height, timer_id)), len(self._rows)):
            self.read += 1
            yield self._rows[index][2]

    def count_below(self, height: int) -> int:
        """Return how many timers are due below a height."""
        return bisect_left(self._rows, (height,))

    def height_of(self, timer_id: bytes) -> int | None:
        """Return the height of a timer, or None."""
        return self._heights.get(timer_id)

    def put(self, timers: list[Pending]) -> None:
        """Hold these timers and no others."""
        self._rows = sorted((timer.height, timer.timer_id, timer) for timer in timers)
        self._heights = {timer.timer_id: timer.height for timer in timers}

    def add(self, timer: Pending) -> None:
        """Hold one timer more."""
        insort(self._rows, (timer.height, timer.timer_id, timer))
        self._heights[timer.timer_id] = timer.height

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
        self.placed: dict[bytes, Pending] = {}
        self.gone: list[bytes] = []
        self.count = 0

    def place(self, *heights: int) -> None:
        """Place a timer at each height; their sequences go on from those before."""
        for height in heights:
            timer = pending((height, self.count, name(self.count)))
            self.queue.place(timer)
            self.placed[timer.timer_id] = timer
            self.count += 1

    def plant(self, *heights: int) -> None:
        """Commit a timer at each height behind the queue's back, and let it read them anew."""
        timers = [
            pending((height, self.count + number, name(self.count + number))) for number, height in enumerate(heights)
        ]
        self.source.put([*self.source.scan(0), *timers])
        self.count += len(timers)
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
        for timer in self.placed.values():
            self.source.add(timer)
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
