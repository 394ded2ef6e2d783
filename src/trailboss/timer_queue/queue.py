"""The calendar queue: place, cancel, advance, and walk what is due.

One rule holds it together: *every timer whose key lies below the frontier is in memory, every other one in the state
alone.* A key is (height, timer id), as the state orders its timers. The frontier runs ahead of the clock, as far as
the ring has slots, and may lie inside a height.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, islice, takewhile
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.params import CalendarParams
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import U64_MAX
from trailboss.timer_queue.bucket import IsOut, Pending
from trailboss.timer_queue.near import NearTimers
from trailboss.timer_queue.placement import Tier, check_calendar, epoch_of, epoch_start, tier_of
from trailboss.timer_queue.source import TimerSource

READ_AHEAD_MAX: Final = 1_024
"""Most timers that one block reads before they are due, a few milliseconds of work.

With 4,096 heights in the ring, four million timers of one height are in memory by the time they are due; a block can
schedule 25,000 at most, so 160 blocks filled with nothing else come before any block has more to read than this.
"""
STRETCH_MAX: Final = 16  # most heights that come within reach at once: one descent of the tree serves as many blocks
NEVER: Final = U64_MAX + 1  # above every height
START: Final = (0, -1)  # height and sequence before those of every timer


class QueueStatistics(Struct, frozen=True, kw_only=True):
    """What lies where: committed timers by tier, those in memory and their heights, epochs begun since genesis."""

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

    Complexities count n pending timers, of which those due and those of the next ``ring_size`` heights are in memory.
    Spec: CIP-1v3 §2. Decision: D-02, D-10

    >>> from trailboss.state.store import MemoryStore
    >>> from trailboss.timer_queue.source import StoredTimers
    >>> calendar = CalendarParams(ring_size=8, epoch_length=4, epoch_count=4)
    >>> queue = TimerQueue(calendar, StoredTimers(MemoryStore()))
    >>> for sequence, height in enumerate((3, 30, 6)):
    ...     queue.place(Pending(40, sequence, b"timer %d" % sequence, b"payer", height))
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
    # What the present block has changed beside `_near`: a timer placed beyond the frontier, None for one that has left.
    _changed: dict[bytes, Pending | None]
    _frontier: tuple[int, bytes]
    _far: int | None  # lowest height beyond the frontier; `NEVER` if nothing lies there, None until it is looked up

    def __init__(self, calendar: CalendarParams, source: TimerSource, now: int = 0) -> None:
        """Open a queue over the timers that are committed after the block of height ``now``.

        Complexity: that of reading what is due, and at most ``READ_AHEAD_MAX`` timers more.
        """
        check_calendar(calendar)
        self._calendar, self._source = calendar, source
        # The reach may lag by a stretch, and yet a whole epoch is within it before its first block.
        self._stretch = min(STRETCH_MAX, calendar.ring_size - calendar.epoch_length)
        self._restart(now)

    @property
    def now(self) -> int:
        """The present block height."""
        return self._now

    def place(self, timer: Pending) -> None:
        """Add a new timer, which the source commits with the present block. Spec: CIP-1v3 §2.

        Complexity: One look-up of the source; O(log k) for the k timers of its height in memory, O(1) beyond them.

        Raises:
            InvariantError: If its height has come, or it is already there.
        """
        height, timer_id = timer.height, timer.timer_id
        if height <= self._now:
            raise InvariantError(
                f"timer {timer_id.hex()} is placed at height {height}, but the clock is at {self._now}"
            )
        waits_at = self.height_of(timer_id)
        if waits_at is not None:
            raise InvariantError(
                f"timer {timer_id.hex()} is placed at height {height}, but it already waits at {waits_at}"
            )
        self._add(timer)

    def cancel(self, timer_id: bytes) -> int | None:
        """Take a timer out, for whatever reason it leaves; return its height, or None if it is not there.

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

    def move(self, timer: Pending) -> None:
        """Give a timer another height; at the present one it is due at once. Decision: D-69.

        Raises:
            InvariantError: If the height is past, or the timer is not there.
        """
        height, timer_id = timer.height, timer.timer_id
        if height < self._now:
            raise InvariantError(f"timer {timer_id.hex()} is moved to height {height}, but the clock is at {self._now}")
        if self.cancel(timer_id) is None:
            raise InvariantError(f"timer {timer_id.hex()} is moved to height {height}, but it does not wait anywhere")
        self._add(timer)

    def extend(self, timer_id: bytes, expires_at: int) -> None:
        """Give a timer another last height, which the source commits with the present block. Spec: CIP-5 §5.4.

        Complexity: O(log k) for the k timers of its height in memory; O(1) beyond the frontier, which is read later.
        """
        timer = self._near.entries.get(timer_id)
        if timer is not None:
            self._near.take(timer_id)
            self._near.add(replace(timer, expires_at=expires_at))

    def height_of(self, timer_id: bytes) -> int | None:
        """Return the height of a timer, or None. Complexity: O(1), and a look-up of the source beyond the frontier."""
        entry = self._near.entries.get(timer_id)
        if entry is None:
            if timer_id not in self._changed:
                return self._source.height_of(timer_id)
            entry = self._changed[timer_id]
        return None if entry is None else entry.height

    def fee_payer_of(self, timer_id: bytes) -> bytes:
        """Return who pays for a timer that is due. Complexity: O(1)."""
        timer = self._near.entries.get(timer_id)
        if timer is None:
            raise InvariantError(f"timer {timer_id.hex()} is asked about as if it were due")
        return timer.fee_payer

    def tier(self, timer_id: bytes) -> Tier | None:
        """Return the tier that a timer's height calls for, or None if it is not there. Complexity: as `height_of`."""
        height = self.height_of(timer_id)
        return None if height is None else tier_of(height, self._now, self._calendar)

    def ids_at(self, height: int) -> tuple[bytes, ...]:
        """Return the timers of one height in FIFO order. Spec: CIP-5 §3.2.

        Complexity: O(k log k) for k timers, O(log n) more if some lie beyond the frontier.
        """
        found = set(self._near.at(height)) if (height, b"") < self._frontier else set()
        if self._frontier < (height + 1, b""):
            committed = takewhile(lambda timer: timer.height == height, self._committed_beyond(height))
            beyond = (timer for timer in chain(self._placed_beyond(), committed) if timer.height == height)
            found.update((timer.sequence, timer.timer_id) for timer in beyond)
        return tuple(timer_id for _, timer_id in sorted(found))

    @property
    def due_count(self) -> int:
        """How many timers are due, those that have expired included."""
        return self._near.due_count

    def due(
        self, now: int, after: tuple[int, int] = START, is_out: IsOut | None = None
    ) -> Iterator[tuple[int, int, bytes]]:
        """Walk what is due at ``now`` and has not expired: older heights first, FIFO within a height.

        The walk begins behind ``after``, a height and sequence, and asks ``is_out`` of a payer whenever one of its
        timers would come. The queue must not change meanwhile. It yields (height, sequence, timer id).

        Spec: CIP-5 §5.1. Decision: D-09, D-39, D-78
        Complexity: O(1) a timer that the caller takes; what it leaves is not touched, and neither is what has expired.
            In a height with few timers O(1) for each of a payer that is left out, in a crowded one for all of them.
        """
        self._check_clock(now)
        return ((timer.height, timer.sequence, timer.timer_id) for timer in self._near.due(after, is_out))

    def expired(self, now: int) -> Iterator[tuple[int, int, bytes]]:
        """Walk what is due at ``now`` and has expired: the first to expire first, then in due order; see `due`.

        Spec: CIP-5 §5.4, CIP-5 §6.5. Decision: D-78
        Complexity: O(h) for the h heights with such timers, O(log h) a timer that the caller takes.
        """
        self._check_clock(now)
        return ((timer.height, timer.sequence, timer.timer_id) for timer in self._near.expired())

    @property
    def expired_count(self) -> int:
        """How many due timers have expired, and wait for their removal. Complexity: O(h) for the h heights of these."""
        return self._near.expired_count

    def next_expiry(self) -> int | None:
        """Return a height up to which no due timer expires; None if none of them will. Complexity: O(1)."""
        return self._near.next_expiry()

    def died(self) -> list[bytes]:
        """Return the due timers whose last height has passed with the block before. Complexity: O(1) a timer."""
        return self._near.died()

    def next_due_height(self) -> int | None:
        """Return the lowest height with a timer, due or to come, or None. Complexity: as `next_height_to_come`."""
        first = self._near.first_due()
        return self.next_height_to_come() if first is None else first

    def next_height_to_come(self) -> int | None:
        """Return the lowest height above the present one with a timer, or None.

        Complexity: O(1); after cancels at the lowest height beyond the frontier, once O(log n + c) for c cancels.
        """
        first = self._near.ring.first_height()
        if first is not None:
            return first
        if self._far is None:
            placed = (timer.height for timer in self._placed_beyond())
            committed = (timer.height for timer in islice(self._committed_beyond(0), 1))
            self._far = min(chain(placed, committed), default=NEVER)
        return None if self._far == NEVER else self._far

    def uncommitted(self) -> Mapping[bytes, Pending | None]:
        """Return what the present block has placed beyond memory, by id; None for a timer that has left."""
        return self._changed

    def advance(self, now: int) -> None:
        """Begin the block of a height, over any number of blocks; the source must hold the state before it.

        Everything due is in memory afterwards. The ring is filled ahead of the clock by a bounded number of timers, so
        that no rollover and no crowded height leaves all its reading to one block.

        Spec: CIP-1v3 §2.2, CIP-1v3 §2.3. Decision: D-10
        Complexity: O(1) if nothing comes within reach. Else O(log n), and O(log k) a timer read into a height of k: at
            most ``READ_AHEAD_MAX`` a block, and those that are due already.
        """
        if now < self._now:
            raise InvariantError(f"the clock cannot advance from height {self._now} back to {now}")
        blocks, self._now = now - self._now, now
        self._changed.clear()
        self._near.advance(now)
        self._read(blocks * READ_AHEAD_MAX)

    def rewind(self, now: int) -> None:
        """Move the clock back after the source has gone back; complexity as opening a queue. Spec: CIP-5 §7."""
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
        """Raise `InvariantError` for the first rule that memory or the committed source breaks.

        Complexity: O(k log k) for the k timers in memory; for tests and for a suspicion, not for every block.
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
            for timer in self._source.scan(*self._frontier):
                height = timer.height
                if height > self._now:
                    if height > reach or left == 0:
                        frontier, far = min(frontier, (height, timer.timer_id)), height
                        break
                    left -= 1
                self._near.add(timer)
        self._frontier, self._far = frontier, far

    def _add(self, timer: Pending) -> None:
        height, timer_id = timer.height, timer.timer_id
        if (height, timer_id) < self._frontier:
            self._near.add(timer)
            return
        self._changed[timer_id] = timer
        if self._far is not None:
            self._far = min(self._far, height)

    def _placed_beyond(self) -> Iterator[Pending]:
        """Yield the timers that the present block has placed beyond the frontier."""
        return (timer for timer in self._changed.values() if timer is not None)

    def _committed_beyond(self, height: int) -> Iterator[Pending]:
        """Yield committed timers beyond the frontier, from a height on, without those the present block has changed."""
        for timer in self._source.scan(*max(self._frontier, (height, b""))):
            if timer.timer_id not in self._changed:
                yield timer

    def _check_clock(self, now: int) -> None:
        if now != self._now:
            raise InvariantError(f"timers due at height {now} are asked for, but the clock is at {self._now}")

    def _differences(self) -> Iterator[str]:
        """Yield a reason for each way in which queue and source have parted."""
        committed: dict[bytes, Pending] = {}
        far = NEVER
        for timer in self._source.scan(0):
            if (timer.height, timer.timer_id) >= self._frontier:
                far = timer.height
                break
            committed[timer.timer_id] = timer
        held = self._near.entries
        for timer_id in sorted(committed.keys() | held.keys()):
            here, there = held.get(timer_id), committed.get(timer_id)
            places = [None if timer is None else (timer.height, timer.sequence) for timer in (here, there)]
            if places[0] != places[1]:
                yield f"timer {timer_id.hex()} has height and sequence {places[0]} in memory, {places[1]} in the state"
            elif here != there:
                yield f"timer {timer_id.hex()} has another expiry or payer in memory than in the state"
        if self._far not in (None, far):
            yield f"the lowest height beyond the frontier is {far}, but the queue takes it for {self._far}"
        for timer_id in self._changed:
            height_here, height_there = self.height_of(timer_id), self._source.height_of(timer_id)
            if height_here != height_there:
                yield f"the block leaves timer {timer_id.hex()} at height {height_here}, the state at {height_there}"
