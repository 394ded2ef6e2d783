"""What Globalbox remembers from one block to the next: an index over the timers, which never changes a decision.

It can be built from the records at any time: what is watched, queued, due, and expires.
"""

from collections.abc import Collection, Iterable, Iterator

from sortedcontainers import SortedDict

from trailboss.mechanisms.base import Follower
from trailboss.mechanisms.globalbox.fires import FireQueue, QueuePosition
from trailboss.mechanisms.globalbox.sorted_sets import SortedTuples
from trailboss.mechanisms.globalbox.watches import TrackedTimer, WatchIndex, track
from trailboss.model.timers import Timer
from trailboss.primitives.errors import InvariantError


class GlobalboxIndex(Follower):
    """Timers that wait to expire, state watches all of them, and height timers that have joined; n counts both."""

    def __init__(self, timers: Iterable[Timer]) -> None:
        """Make an index of all timers; it knows which of the due ones must have joined. Complexity: O(n log n)."""
        self._tracked: dict[bytes, TrackedTimer] = {}
        self._ready: dict[bytes, TrackedTimer] = {}
        self.watches = WatchIndex()
        self.joined = 0  # how many have joined, are there now and have not expired
        for tracked in map(track, timers):
            if tracked.watch_keys:
                self.watches.add(tracked)
            if tracked.waits_to_expire or tracked.position is not None or tracked.is_delivered:
                self._tracked[tracked.timer_id] = tracked
        positions = [tracked.position for tracked in self._tracked.values() if tracked.position is not None]
        self.queued = len(positions)  # fires that are queued by the records of their timers, expired ones included
        self.fires = FireQueue(positions)
        self._expiries = SortedDict()
        for tracked in self._tracked.values():
            if tracked.can_expire:
                self._await_expiry(tracked)

    # What it follows

    def schedule(self, timer: Timer) -> None:
        """Note a new timer. Complexity: O(log n), and O(1) a watch key, amortized."""
        if not timer.waits_to_expire:
            return
        tracked = self._tracked[timer.timer_id] = track(timer)
        self._await_expiry(tracked)
        if tracked.watch_keys:
            self.watches.add(tracked)

    def join(self, timers: Iterable[Timer], height: int) -> None:
        """Let timers join in the block of a height, in O(log n) each. `InvariantError` if one has joined already."""
        for timer in timers:
            tracked = self._tracked.get(timer.timer_id)
            if tracked is None:
                tracked = self._tracked[timer.timer_id] = track(timer)
            if tracked.has_joined:
                raise InvariantError(f"timer {timer.timer_id.hex()} joins Globalbox a second time")
            could_expire = tracked.can_expire
            tracked.has_joined = tracked.is_counted = True
            self.joined += 1
            self._update_expiry(tracked, could_expire=could_expire)
            if not (tracked.is_delivered or tracked.position) and tracked.expires_at >= height:
                self._ready[tracked.timer_id] = tracked

    def leave(self, timer_id: bytes) -> None:
        """Let a timer go, if it is here. Complexity: O(log n), and O(1) a watch key."""
        tracked = self._tracked.pop(timer_id, None)
        if tracked is None:
            return
        self.joined -= tracked.is_counted
        self._ready.pop(timer_id, None)
        if tracked.can_expire:
            self._forget_expiry(tracked)
        if tracked.watch_keys:
            self.watches.remove(tracked)
        if tracked.position is not None:
            self.fires.discard(tracked.position)
            self.queued -= 1

    def expire(self, timer_ids: Collection[bytes]) -> None:
        """Count no longer those that have joined and can fire no more. Complexity: O(1) each."""
        for tracked in filter(None, map(self._tracked.get, timer_ids)):
            self.joined -= tracked.is_counted
            tracked.is_counted = False

    def replace(self, timer: Timer) -> None:
        """Note a timer's new record: its fire may have entered the queue, or left it. Complexity: as `leave`."""
        tracked = self._tracked.get(timer.timer_id)
        if tracked is None:
            return
        if timer.height != tracked.height:
            # A development chain has moved it to where it comes due, so that it is to join.
            self.leave(timer.timer_id)
            return
        could_expire, former = tracked.can_expire, tracked.position
        tracked.follow(timer)
        if former != tracked.position:
            self._move(tracked, former)
        self._update_expiry(tracked, could_expire=could_expire)

    def _move(self, tracked: TrackedTimer, former: QueuePosition | None) -> None:
        if former is not None:
            self.fires.discard(former)
            self.watches.arm(tracked)
            self.queued -= 1
        if tracked.position is not None:
            self.fires.add(tracked.position)
            self.watches.disarm(tracked)
            self._ready.pop(tracked.timer_id, None)
            self.queued += 1

    def _update_expiry(self, tracked: TrackedTimer, *, could_expire: bool) -> None:
        if could_expire and not tracked.can_expire:
            self._forget_expiry(tracked)
        elif tracked.can_expire and not could_expire:
            self._await_expiry(tracked)

    def _await_expiry(self, tracked: TrackedTimer) -> None:
        self._expiries.setdefault(tracked.expires_at, SortedTuples()).add(tracked.due)

    def _forget_expiry(self, tracked: TrackedTimer) -> None:
        due = self._expiries[tracked.expires_at]
        due.discard(tracked.due)
        if not due:
            del self._expiries[tracked.expires_at]

    # What a block asks

    def knows(self, timer_id: bytes) -> bool:
        """Return whether a timer is here. Complexity: O(1)."""
        return timer_id in self._tracked

    def overdue(self, height: int) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield expiry, height, sequence and id of those that have expired before a height, ascending.

        Those in the mailbox are not among them, and neither are height timers that have yet to join.
        Spec: CIP-5old §14. Complexity: O(1) each, while nothing changes.
        """
        for expires_at, line in self._expiries.items():
            if expires_at >= height:
                return
            for due in line:
                yield expires_at, *due

    def first_expiry(self) -> int | None:
        """Return the lowest expiry of those that `overdue` yields in time; None if there are none. Complexity: O(1)."""
        return next(iter(self._expiries), None)

    def ready(self) -> list[tuple[int, bytes]]:
        """Return height and id of the height timers that have joined and are neither queued nor expired."""
        return [(tracked.height, tracked.timer_id) for tracked in self._ready.values()]

    def is_watched(self, key: bytes) -> bool:
        """Return whether a present watch watches a prefix of a key."""
        return self.watches.is_watched(key)
