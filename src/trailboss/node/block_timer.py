"""When the next block is due: arithmetic on the times of a clock."""

from typing import Final

from trailboss.node.options import Pace, Rhythm

NANOSECONDS_PER_MS: Final = 1_000_000
LEAD_PERCENT: Final = 150  # of the time that a block took
FADE_PERCENT: Final = 95  # of the lead that is left after a block that took less
LEAD_PERCENT_MAX: Final = 25  # of the interval


class BlockTimer:
    """When a block is due, under one pace or several in turn. All times are nanoseconds of one clock.

    An interval is a grid that begins when the pace does: a block that comes late does not shift those after it. Places
    of the grid that pass while a block is built give one block together, at once: never two for having been slow. A
    block is begun before its place by somewhat more than the last ones took, so that it can be out in time.

    Under ``AUTO`` a block is due after a call since the last one, and while something is awaited, when the last one is
    an interval old; under ``DUE`` at once. Under ``MANUAL`` none is ever due. Decision: D-70, D-95, D-122.
    """

    __slots__ = ("_interval", "_is_awaited", "_is_called", "_lead", "_next", "_start", "pace")

    def __init__(self, pace: Pace, now: int) -> None:
        """Begin with a pace; the first block of an interval is due one interval from now."""
        self._is_awaited = False
        self.change(pace, now)

    def change(self, pace: Pace, now: int) -> None:
        """Go on with another pace from now; a call that came before still counts."""
        self.pace = pace
        self._interval = pace.block_time_ms * NANOSECONDS_PER_MS
        self._start = now
        self._next = 1
        self._lead = 0
        self._is_called = True

    @property
    def deadline(self) -> int | None:
        """When the next block is due by the clock, which is when it is begun; None if the clock makes none due."""
        is_timed = self.pace.rhythm is Rhythm.INTERVAL or (self.pace.rhythm is Rhythm.AUTO and self._is_awaited)
        return self._start + self._next * self._interval - self._lead if is_timed else None

    @property
    def place(self) -> int:
        """The place in the grid of the block that was begun last, which is when it is to be out."""
        return self._start + (self._next - 1) * self._interval

    def took(self, duration: int) -> None:
        """Note how long a block of the interval took, for the next ones to be begun in time."""
        if self.pace.rhythm is Rhythm.INTERVAL:
            # Of slow blocks more are to be expected for a while.
            lead = max(duration * LEAD_PERCENT, self._lead * FADE_PERCENT) // 100
            self._lead = min(lead, self._interval * LEAD_PERCENT_MAX // 100)

    def call(self) -> None:
        """Note that something waits for a block."""
        self._is_called = True

    def wait_for(self, is_awaited: bool, now: int) -> None:
        """Note whether timers or messages await blocks; under ``AUTO`` time counts from then on."""
        if is_awaited and not self._is_awaited and self.pace.rhythm is Rhythm.AUTO:
            self._start, self._next = now, 1
        self._is_awaited = is_awaited

    def is_due(self, now: int) -> bool:
        """Return whether a block is to be built now."""
        deadline = self.deadline
        is_asked = self._is_called and self.pace.is_prompt
        is_awaited = self._is_awaited and self.pace.rhythm is Rhythm.DUE
        return is_asked or is_awaited or (deadline is not None and now >= deadline)

    def built(self, now: int) -> None:
        """Note that a block has been built: what did not fit it may fit the next; ``AUTO`` counts time from here."""
        self._is_called = True
        if self.pace.rhythm is Rhythm.AUTO:
            self._start, self._next = now, 1

    def take(self, now: int) -> int | None:
        """Begin the block that is due, and return its delay; None if the clock did not make it due."""
        self._is_called = False
        deadline = self.deadline
        if deadline is None or now < deadline:
            return None
        self._next = (now + self._lead - self._start) // self._interval + 1
        return now - deadline
