"""The calendar queue: place, cancel, advance, and walk what is due."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trailboss.params import CalendarParams
from trailboss.primitives.errors import InvariantError
from trailboss.timer_queue.buckets import Bucket
from trailboss.timer_queue.epochs import EpochQueue
from trailboss.timer_queue.overflow import Overflow
from trailboss.timer_queue.placement import Tier, check_calendar, epoch_of, epoch_start, tier_of
from trailboss.timer_queue.ring import Ring


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatistics:
    """What lies where, and how much has moved since the queue was built.

    Attributes:
        ring_timers: Timers in the ring, those carried over included.
        epoch_timers: Timers in the epoch queue.
        overflow_timers: Timers in the overflow set.
        ring_heights: Heights with a bucket in the ring, those carried over included.
        epoch_heights: Heights with a bucket in the epoch queue.
        overflow_heights: Heights with a bucket in the overflow set.
        rollovers: Times that `TimerQueue.advance` entered another epoch.
        promoted: Buckets that rollovers moved into the ring.
        migrated: Buckets that rollovers moved from the overflow set into the epoch queue.
        carried: Buckets that left their slots in the ring because they still waited when their epoch ended.
    """

    ring_timers: int
    epoch_timers: int
    overflow_timers: int
    ring_heights: int
    epoch_heights: int
    overflow_heights: int
    rollovers: int
    promoted: int
    migrated: int
    carried: int


class TimerQueue:
    """An index by height over timers that the state holds; losing it loses nothing.

    Adding and removing: `place`, `restore`, `cancel`, `rebuild`.
    The clock: `advance`, `rewind`, `now`.
    Walking: `due`, `ids_at`, `next_due_height`.
    Looking up: `height_of`, `tier`, ``len``, `statistics`, `check_invariants`.

    Timers of one height are ordered by their sequence, whatever order they arrived in. The queue must not change
    while an iterator of `due` is being consumed.

    Spec: CIP-1v3 §2
    Decision: D-02, D-10

    >>> queue = TimerQueue(CalendarParams(ring_size=8, epoch_length=4, epoch_count=4), now=0)
    >>> for sequence, height in enumerate((3, 30, 6)):
    ...     queue.place(height, sequence, b"timer %d" % sequence)
    >>> [queue.tier(b"timer %d" % sequence).value for sequence in range(3)]
    ['ring', 'overflow', 'epoch']
    >>> queue.next_due_height()
    3
    >>> queue.advance(6)
    >>> list(queue.due(6))
    [(3, 0, b'timer 0'), (6, 2, b'timer 2')]
    >>> queue.cancel(b"timer 0"), queue.cancel(b"timer 0")
    (3, None)
    """

    __slots__ = (
        "_bucket_of",
        "_calendar",
        "_carried",
        "_epochs",
        "_migrated",
        "_now",
        "_overflow",
        "_promoted",
        "_ring",
        "_rollovers",
        "_tiers",
        "_timers",
    )

    def __init__(self, calendar: CalendarParams, now: int = 0) -> None:
        """Make an empty queue.

        Raises:
            ConfigurationError: If the ring is too short for the epochs.
        """
        check_calendar(calendar)
        self._calendar = calendar
        self._now = now
        self._clear()

    def __len__(self) -> int:
        """Return how many timers it holds. Complexity: O(1)."""
        return len(self._bucket_of)

    @property
    def now(self) -> int:
        """The block height that the tiers are arranged for."""
        return self._now

    def place(self, height: int, sequence: int, timer_id: bytes) -> None:
        """Add a new timer.

        Spec: CIP-1v3 §2
        Complexity: O(1) in the ring and the epoch queue; O(log n) for a new height in the overflow set.

        Args:
            height: Block height at which it is due, above the present one.
            sequence: Its place in the order of insertion over the whole chain.
            timer_id: Its id.

        Raises:
            InvariantError: If the height has come, or the timer is already there.
        """
        if height <= self._now:
            raise InvariantError(
                f"timer {timer_id.hex()} is placed at height {height}, but the clock is at {self._now}"
            )
        self._add(height, sequence, timer_id)

    def restore(self, height: int, sequence: int, timer_id: bytes) -> None:
        """Bring back a timer that `cancel` took out: the same as if it had never left. It may be due already.

        Complexity: as `place`; the height is sorted again at the next walk.

        Raises:
            InvariantError: If the timer is already there.
        """
        self._add(height, sequence, timer_id)

    def cancel(self, timer_id: bytes) -> int | None:
        """Take a timer out, for whatever reason it leaves; return its height, or None if it is not there.

        Complexity: O(1) in the ring and the epoch queue; O(log n) when it leaves a height of the overflow set empty.
        """
        bucket = self._bucket_of.pop(timer_id, None)
        if bucket is None:
            return None
        height = bucket.height
        tier = tier_of(height, self._now, self._calendar)
        self._timers[tier] -= 1
        bucket.remove(timer_id)
        if not bucket.sequences:
            self._tiers[tier].drop(height)
        return height

    def height_of(self, timer_id: bytes) -> int | None:
        """Return the height of a timer, or None if it is not there. Complexity: O(1)."""
        bucket = self._bucket_of.get(timer_id)
        return None if bucket is None else bucket.height

    def tier(self, timer_id: bytes) -> Tier | None:
        """Return the tier of a timer, or None if it is not there. Complexity: O(1)."""
        bucket = self._bucket_of.get(timer_id)
        return None if bucket is None else tier_of(bucket.height, self._now, self._calendar)

    def ids_at(self, height: int) -> tuple[bytes, ...]:
        """Return the timers of one height in FIFO order.

        Spec: CIP-5 §3.2
        Complexity: O(k) for k timers; O(k log k) after an arrival out of order.
        """
        bucket = self._tiers[tier_of(height, self._now, self._calendar)].find(height)
        return () if bucket is None else tuple(bucket.ordered())

    def due(self, now: int) -> Iterator[tuple[int, int, bytes]]:
        """Walk everything that is due: older heights first, FIFO within a height.

        Spec: CIP-5 §5.1
        Decision: D-09, D-39
        Complexity: O(1) a timer that the caller takes; what it leaves is not touched.

        Args:
            now: The present block height; the clock must stand there.

        Returns:
            Iterator over (height, sequence, timer id).

        Raises:
            InvariantError: If the clock stands elsewhere.
        """
        if now != self._now:
            raise InvariantError(f"timers due at height {now} are asked for, but the clock is at {self._now}")
        return self._walk_due(now)

    def next_due_height(self) -> int | None:
        """Return the lowest height at which anything waits, due or to come; None if nothing does. Complexity: O(1)."""
        # A tier's heights all lie below those of the tier behind it.
        for tier in self._tiers.values():
            first = tier.first_height()
            if first is not None:
                return first
        return None

    def advance(self, now: int) -> None:
        """Move the clock forward, over any number of blocks.

        Within an epoch nothing else happens. A new epoch's heights move into the ring, heights that come into range
        move from the overflow set into the epoch queue, and what still waits from the epoch that ended is carried.

        Spec: CIP-1v3 §2.2, CIP-1v3 §2.3
        Decision: D-10
        Complexity: O(1) within an epoch. At a rollover O(log n) for each height that changes tier, at most three times
            the length of an epoch, whatever the number of timers; over a jump, for each such height in between.

        Raises:
            InvariantError: If the clock is further already.
        """
        if now < self._now:
            raise InvariantError(f"the clock cannot advance from height {self._now} back to {now}")
        epoch = epoch_of(now, self._calendar)
        is_rollover = epoch != epoch_of(self._now, self._calendar)
        self._now = now
        if is_rollover:
            self._roll_over(epoch)

    def rewind(self, now: int) -> None:
        """Move the clock back, after a revert or a reorganization. The timers stay; the caller undoes their changes.

        Complexity: O(1) within an epoch; else O(log n) for each height of the ring and of the epoch queue. Timers
            do not count, nor does the overflow set, whose heights only get further away.

        Raises:
            InvariantError: If the clock has not come that far.
        """
        if now > self._now:
            raise InvariantError(f"the clock cannot rewind from height {self._now} on to {now}")
        epoch = epoch_of(now, self._calendar)
        is_other_epoch = epoch != epoch_of(self._now, self._calendar)
        self._now = now
        if is_other_epoch:
            near = [*self._ring.walk(), *self._epochs.walk()]
            self._arrange(epoch, self._overflow)
            self._timers[Tier.RING] = self._timers[Tier.EPOCH] = 0
            for bucket in near:
                self._file(bucket)

    def rebuild(self, entries: Iterable[tuple[int, int, bytes]], now: int) -> None:
        """Forget everything and index what the state holds.

        Spec: CIP-1v3 §2
        Complexity: O(n), plus O(log h) for each of h heights beyond the epoch queue.

        Args:
            entries: (height, sequence, timer id) of every timer; ordered by height is fastest, any order is right.
            now: The present block height; heights up to it are due.

        Raises:
            InvariantError: If a timer occurs twice.
        """
        self._now = now
        self._clear()
        for height, sequence, timer_id in entries:
            self._add(height, sequence, timer_id)

    def statistics(self) -> QueueStatistics:
        """Return what lies where. Complexity: O(epoch count)."""
        return QueueStatistics(
            ring_timers=self._timers[Tier.RING],
            epoch_timers=self._timers[Tier.EPOCH],
            overflow_timers=self._timers[Tier.OVERFLOW],
            ring_heights=len(self._ring),
            epoch_heights=len(self._epochs),
            overflow_heights=len(self._overflow),
            rollovers=self._rollovers,
            promoted=self._promoted,
            migrated=self._migrated,
            carried=self._carried,
        )

    def check_invariants(self) -> None:
        """Check every rule of every tier.

        Complexity: O(n log n) in the timers; for tests and for a suspicion, not for every block.

        Raises:
            InvariantError: With the first rule that is broken.
        """
        for fault in self._faults():
            raise InvariantError(fault)

    def _clear(self) -> None:
        self._bucket_of: dict[bytes, Bucket] = {}
        self._timers = dict.fromkeys(Tier, 0)
        self._rollovers = self._promoted = self._migrated = self._carried = 0
        self._arrange(epoch_of(self._now, self._calendar), Overflow())

    def _arrange(self, epoch: int, overflow: Overflow) -> None:
        self._ring = Ring(self._calendar, epoch)
        self._epochs = EpochQueue(self._calendar, epoch)
        self._overflow = overflow
        self._tiers: dict[Tier, Ring | EpochQueue | Overflow] = {
            Tier.RING: self._ring,
            Tier.EPOCH: self._epochs,
            Tier.OVERFLOW: overflow,
        }

    def _add(self, height: int, sequence: int, timer_id: bytes) -> None:
        if timer_id in self._bucket_of:
            raise InvariantError(
                f"timer {timer_id.hex()} is placed at height {height}, but it already waits at "
                f"{self._bucket_of[timer_id].height}"
            )
        name = tier_of(height, self._now, self._calendar)
        tier = self._tiers[name]
        bucket = tier.find(height)
        if bucket is None:
            bucket = Bucket(height)
            tier.put(bucket)
        bucket.add(sequence, timer_id)
        self._bucket_of[timer_id] = bucket
        self._timers[name] += 1

    def _file(self, bucket: Bucket) -> Tier:
        name = tier_of(bucket.height, self._now, self._calendar)
        self._tiers[name].put(bucket)
        self._timers[name] += len(bucket)
        return name

    def _roll_over(self, epoch: int) -> None:
        self._rollovers += 1
        self._carried += self._ring.roll_over(epoch)
        for bucket in self._epochs.take_through(epoch):
            self._timers[Tier.EPOCH] -= len(bucket)
            self._file(bucket)
            self._promoted += 1
        for bucket in self._overflow.take_below(self._beyond(epoch)):
            self._timers[Tier.OVERFLOW] -= len(bucket)
            if self._file(bucket) is Tier.RING:
                self._promoted += 1
            else:
                self._migrated += 1

    def _beyond(self, epoch: int) -> int:
        return epoch_start(epoch + self._calendar.epoch_count + 1, self._calendar)

    def _walk_due(self, now: int) -> Iterator[tuple[int, int, bytes]]:
        for bucket in self._ring.walk_due(now):
            height = bucket.height
            for timer_id, sequence in bucket.ordered().items():
                yield height, sequence, timer_id

    def _faults(self) -> Iterator[str]:
        yield from self._ring.faults()
        yield from self._epochs.faults()
        yield from self._overflow.faults(self._beyond(epoch_of(self._now, self._calendar)))
        found = 0
        for name, tier in self._tiers.items():
            held = 0
            for bucket in tier.walk():
                yield from bucket.faults()
                held += len(bucket)
                for timer_id in bucket.sequences:
                    if self._bucket_of.get(timer_id) is not bucket:
                        yield f"timer {timer_id.hex()} lies at height {bucket.height}, but its entry says otherwise"
            if held != self._timers[name]:
                yield f"tier {name} holds {held} timers, but counts {self._timers[name]}"
            found += held
        if found != len(self._bucket_of):
            yield f"the tiers hold {found} timers, but {len(self._bucket_of)} have an entry"
