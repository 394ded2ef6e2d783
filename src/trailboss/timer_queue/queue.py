"""The calendar queue: place, cancel, advance, and walk what is due.

One rule holds it together: *every timer whose key lies below the frontier is in memory, every other one in the state
alone.* A key is (height, timer id), as the state orders its timers. The frontier runs ahead of the clock, as far as
the ring has slots, and may lie inside a height. What waits to expire is never due, and lies in the state alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice, takewhile
from typing import Final

from trailboss.params import CalendarParams
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import U64_MAX
from trailboss.timer_queue.near import NearTimers
from trailboss.timer_queue.placement import Tier, check_calendar, epoch_of, epoch_start, tier_of
from trailboss.timer_queue.source import APART, TimerSource

READ_AHEAD_MAX: Final = 1_024
"""Most timers that one block reads before they are due, a few milliseconds of work.

With 4,096 heights in the ring, four million timers of one height are in memory by the time they are due. A block can
schedule 25,000 at most, so 160 blocks filled with nothing else come before any block has more to read than this.
"""

STRETCH_MAX: Final = 16
"""Most heights that come within reach at once, so that one descent of the tree serves as many blocks."""

NEVER: Final = U64_MAX + 1
"""Above every height."""

START: Final = (0, -1)
"""Height and sequence before those of every timer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatistics:
    """What lies where.

    Attributes:
        ring_timers: Committed timers of the ring's tier, those that still wait from earlier epochs included.
        epoch_timers: Committed timers of the epoch queue's tier.
        overflow_timers: Committed timers of the overflow set's tier.
        near_timers: Timers in memory.
        near_heights: Heights that have any of them.
        rollovers: Epochs that have begun since genesis.
    """

    ring_timers: int
    epoch_timers: int
    overflow_timers: int
    near_timers: int
    near_heights: int
    rollovers: int


class TimerQueue:
    """The pending timers by height: near ones in memory, the others read from the state when they come near.

    A block begins with `advance`, when the source holds the state after the block before; then `due` is walked, and
    timers are placed and cancelled as transactions commit; then the source commits the same changes. If it does not,
    or goes back, `rewind` follows.

    Adding, removing and moving: `place`, `cancel`, `move`.
    The clock: `advance`, `rewind`, `now`.
    Walking: `due`, `ids_at`, `next_due_height`.
    Looking up: `height_of`, `tier`, `statistics`, `check_invariants`.

    Complexities count n pending timers, of which those due and those of the next ``ring_size`` heights are in memory.

    Spec: CIP-1v3 §2
    Decision: D-02, D-10

    >>> from trailboss.state.store import MemoryStore
    >>> from trailboss.timer_queue.source import StoredTimers
    >>> calendar = CalendarParams(ring_size=8, epoch_length=4, epoch_count=4)
    >>> queue = TimerQueue(calendar, StoredTimers(MemoryStore()))
    >>> for sequence, height in enumerate((3, 30, 6)):
    ...     queue.place(height, sequence, b"timer %d" % sequence)
    >>> [queue.tier(b"timer %d" % sequence).value for sequence in range(3)]
    ['ring', 'overflow', 'epoch']
    >>> queue.next_due_height(), queue.statistics().near_timers
    (3, 2)
    >>> queue.cancel(b"timer 0"), queue.cancel(b"timer 0"), queue.next_due_height()
    (3, None, 6)
    """

    __slots__ = ("_calendar", "_changed", "_far", "_frontier", "_near", "_now", "_source", "_stretch")

    _now: int
    _near: NearTimers
    _changed: dict[bytes, tuple[int, int] | None]
    """What the present block has changed beside ``_near``: height and sequence of a timer placed beyond the frontier,
    None for any timer that has left."""
    _frontier: tuple[int, bytes]
    _far: int | None
    """The lowest height beyond the frontier; `NEVER` if nothing lies there, None until it is looked up."""

    def __init__(self, calendar: CalendarParams, source: TimerSource, now: int = 0) -> None:
        """Open a queue over committed timers; it is ready at once, whatever lies ahead.

        Complexity: that of reading what is due, and at most ``READ_AHEAD_MAX`` timers more.

        Args:
            calendar: Geometry of the tiers.
            source: The committed timers, after the block of height ``now``.
            now: The present block height.

        Raises:
            ConfigurationError: If the ring is too short for the epochs.
        """
        check_calendar(calendar)
        self._calendar = calendar
        self._source = source
        # The reach may lag by a stretch, and yet a whole epoch is within it before its first block.
        self._stretch = min(STRETCH_MAX, calendar.ring_size - calendar.epoch_length)
        self._restart(now)

    @property
    def now(self) -> int:
        """The present block height."""
        return self._now

    def place(self, height: int, sequence: int, timer_id: bytes) -> None:
        """Add a new timer, which the source commits with the present block.

        Spec: CIP-1v3 §2
        Complexity: One look-up of the source. In memory O(log k) for the k timers of its height; beyond the frontier
            O(1), and the block's end forgets it.

        Args:
            height: Block height at which it is due, above the present one.
            sequence: Its place in the order of insertion over the whole chain; `APART` if it waits to expire.
            timer_id: Its id.

        Raises:
            InvariantError: If the height has come, or the timer is already there.
        """
        if height <= self._now:
            raise InvariantError(
                f"timer {timer_id.hex()} is placed at height {height}, but the clock is at {self._now}"
            )
        waits_at = self.height_of(timer_id)
        if waits_at is not None:
            raise InvariantError(
                f"timer {timer_id.hex()} is placed at height {height}, but it already waits at {waits_at}"
            )
        self._add(height, sequence, timer_id)

    def cancel(self, timer_id: bytes) -> int | None:
        """Take a timer out, for whatever reason it leaves; return its height, or None if it is not there.

        The source commits its removal with the present block.

        Complexity: O(log k) for the k timers of its height in memory; one look-up of the source beyond the frontier.
        """
        height = self._near.take(timer_id)
        if height is None:
            height = self.height_of(timer_id)
            if height is None:
                return None
            if height == self._far:
                self._far = None
        self._changed[timer_id] = None
        return height

    def move(self, height: int, sequence: int, timer_id: bytes) -> None:
        """Give a timer another height, which the source commits with the present block.

        Decision: D-69
        Complexity: That of `cancel` and of `place`.

        Args:
            height: Block height at which it is due, not below the present one: there it is due at once.
            sequence: Its place in the order of insertion, which stays.
            timer_id: Its id.

        Raises:
            InvariantError: If the height is past, or the timer is not there.
        """
        if height < self._now:
            raise InvariantError(f"timer {timer_id.hex()} is moved to height {height}, but the clock is at {self._now}")
        if self.cancel(timer_id) is None:
            raise InvariantError(f"timer {timer_id.hex()} is moved to height {height}, but it does not wait anywhere")
        self._add(height, sequence, timer_id)

    def height_of(self, timer_id: bytes) -> int | None:
        """Return the height of a timer, or None if it is not there.

        Complexity: O(1), and one look-up of the source for a timer beyond the frontier.
        """
        entry = self._near.entry(timer_id)
        if entry is None:
            if timer_id not in self._changed:
                return self._source.height_of(timer_id)
            entry = self._changed[timer_id]
        return None if entry is None else entry[0]

    def tier(self, timer_id: bytes) -> Tier | None:
        """Return the tier that a timer's height calls for, or None if it is not there. Complexity: as `height_of`."""
        height = self.height_of(timer_id)
        return None if height is None else tier_of(height, self._now, self._calendar)

    def ids_at(self, height: int) -> tuple[bytes, ...]:
        """Return the timers of one height in FIFO order.

        Spec: CIP-5 §3.2
        Complexity: O(k log k) for k timers, O(log n) more if some lie beyond the frontier.
        """
        found = set(self._near.at(height)) if (height, b"") < self._frontier else set()
        if self._frontier < (height + 1, b""):
            committed = takewhile(lambda entry: entry[0] == height, self._committed_beyond(height))
            beyond = (entry[1:] for entry in chain(self._placed_beyond(), committed) if entry[0] == height)
            found.update(entry for entry in beyond if entry[0] != APART)
        return tuple(timer_id for _, timer_id in sorted(found))

    @property
    def due_count(self) -> int:
        """How many timers are due."""
        return self._near.due_count

    def due(self, now: int, after: tuple[int, int] = START) -> Iterator[tuple[int, int, bytes]]:
        """Walk what is due: older heights first, FIFO within a height.

        The queue must not change while the walk goes on.

        Spec: CIP-5 §5.1
        Decision: D-09, D-39
        Complexity: O(1) a timer that the caller takes; what it leaves is not touched.

        Args:
            now: The present block height; the clock must stand there.
            after: Height and sequence behind which to begin.

        Returns:
            Iterator over (height, sequence, timer id).

        Raises:
            InvariantError: If the clock stands elsewhere.
        """
        if now != self._now:
            raise InvariantError(f"timers due at height {now} are asked for, but the clock is at {self._now}")
        return self._near.due(after)

    def next_due_height(self) -> int | None:
        """Return the lowest height at which anything waits, due or to come; None if nothing does.

        What waits to expire may count beyond the frontier, and does not count before it.

        Complexity: as `next_height_to_come`.
        """
        first = self._near.first_due()
        return self.next_height_to_come() if first is None else first

    def next_height_to_come(self) -> int | None:
        """Return the lowest height above the present one at which anything waits; None if nothing does.

        Complexity: O(1); after cancels at the lowest height beyond the frontier, once O(log n + c) for the c timers
            that the block has cancelled.
        """
        first = self._near.first_to_come()
        if first is not None:
            return first
        if self._far is None:
            placed = (height for height, _, _ in self._placed_beyond())
            committed = (height for height, _, _ in islice(self._committed_beyond(0), 1))
            self._far = min(chain(placed, committed), default=NEVER)
        return None if self._far == NEVER else self._far

    def advance(self, now: int) -> None:
        """Begin the block of a height, over any number of blocks; the source must hold the state before it.

        Everything due is in memory afterwards. Besides, the ring is filled ahead of the clock, by a bounded number of
        timers, so that neither a rollover nor a crowded height leaves all its reading to one block.

        Spec: CIP-1v3 §2.2, CIP-1v3 §2.3
        Decision: D-10
        Complexity: O(1) if nothing comes within reach. Else O(log n), and O(log k) a timer read into a height of k: at
            most ``READ_AHEAD_MAX`` a block, and those that are due already.

        Raises:
            InvariantError: If the clock is further already.
        """
        if now < self._now:
            raise InvariantError(f"the clock cannot advance from height {self._now} back to {now}")
        blocks, self._now = now - self._now, now
        self._changed.clear()
        self._near.advance(now)
        self._read(blocks * READ_AHEAD_MAX)

    def rewind(self, now: int) -> None:
        """Move the clock back after the source has gone back, or drop a block that will not be committed.

        Memory is given up and read again from the source.

        Spec: CIP-5 §7
        Complexity: as opening a queue.

        Raises:
            InvariantError: If the clock has not come that far.
        """
        if now > self._now:
            raise InvariantError(f"the clock cannot rewind from height {self._now} on to {now}")
        self._restart(now)

    def statistics(self) -> QueueStatistics:
        """Return what lies where. Complexity: O(log n)."""
        epoch = epoch_of(self._now, self._calendar)
        ring = self._source.count_below(epoch_start(epoch + 1, self._calendar))
        reached = self._source.count_below(epoch_start(epoch + 1 + self._calendar.epoch_count, self._calendar))
        return QueueStatistics(
            ring_timers=ring,
            epoch_timers=reached - ring,
            overflow_timers=self._source.count_below(NEVER) - reached,
            near_timers=len(self._near),
            near_heights=self._near.heights,
            rollovers=epoch,
        )

    def check_invariants(self) -> None:
        """Check memory against itself and against the source, after the present block has been committed.

        Complexity: O(k log k) for the k timers in memory; for tests and for a suspicion, not for every block.

        Raises:
            InvariantError: With the first rule that is broken.
        """
        for fault in chain(self._near.faults(), self._differences()):
            raise InvariantError(fault)

    def _restart(self, now: int) -> None:
        self._now = now
        self._near = NearTimers(self._calendar, now)
        self._changed = {}
        self._frontier = (0, b"")
        self._far = None
        self._read(READ_AHEAD_MAX)

    def _read(self, most: int) -> None:
        """Read what is due, and ahead of it what the ring has room for, up to ``most`` timers."""
        reach = self._now - self._now % self._stretch + self._calendar.ring_size
        frontier, far = (reach + 1, b""), self._far
        if far is None or far <= reach:
            far, left = NEVER, most
            for height, sequence, timer_id in self._source.scan(*self._frontier):
                if height > self._now:
                    if height > reach or left == 0:
                        frontier, far = min(frontier, (height, timer_id)), height
                        break
                    left -= 1
                if sequence != APART:
                    self._near.add(height, sequence, timer_id)
        self._frontier, self._far = frontier, far

    def _add(self, height: int, sequence: int, timer_id: bytes) -> None:
        is_near = (height, timer_id) < self._frontier
        if is_near and sequence != APART:
            self._near.add(height, sequence, timer_id)
            return
        self._changed[timer_id] = (height, sequence)
        if self._far is not None and not is_near:
            self._far = min(self._far, height)

    def _placed_beyond(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the timers that the present block has placed beyond the frontier."""
        for timer_id, entry in self._changed.items():
            if entry is not None and (entry[0], timer_id) >= self._frontier:
                yield *entry, timer_id

    def _committed_beyond(self, height: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield committed timers beyond the frontier, from a height on, but for those the present block has changed."""
        for entry in self._source.scan(*max(self._frontier, (height, b""))):
            if entry[2] not in self._changed:
                yield entry

    def _differences(self) -> Iterator[str]:
        """Yield a reason for each way in which queue and source have parted."""
        committed: dict[bytes, tuple[int, int]] = {}
        far = NEVER
        for height, sequence, timer_id in self._source.scan(0):
            if (height, timer_id) >= self._frontier:
                far = height
                break
            if sequence != APART:
                committed[timer_id] = (height, sequence)
        held = self._near.entries()
        for timer_id in sorted(committed.keys() | held.keys()):
            here, there = held.get(timer_id), committed.get(timer_id)
            if here != there:
                yield f"timer {timer_id.hex()} has height and sequence {here} in memory, {there} in the state"
        if self._far not in (None, far):
            yield f"the lowest height beyond the frontier is {far}, but the queue takes it for {self._far}"
        for timer_id in self._changed:
            height_here, height_there = self.height_of(timer_id), self._source.height_of(timer_id)
            if height_here != height_there:
                yield f"the block leaves timer {timer_id.hex()} at height {height_here}, the state at {height_there}"
