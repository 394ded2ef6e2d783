"""What Globalbox remembers from one block to the next: an index over the timers, which never changes a decision.

It can be built from the records at any time: who watches what, what is queued, who is due and who expires.
"""

from collections.abc import Iterable, Iterator, Sequence

from sortedcontainers import SortedDict

from trailboss.mechanisms.base import Follower
from trailboss.mechanisms.globalbox.entries import Entry, make_entry
from trailboss.mechanisms.globalbox.fires import Consumption, FireQueue, Place
from trailboss.mechanisms.globalbox.line import Line
from trailboss.mechanisms.globalbox.watches import Hit, WatchIndex
from trailboss.model.globalbox import CarriedHit
from trailboss.model.timers import Timer
from trailboss.primitives.errors import InvariantError


class GlobalboxIndex(Follower):
    """Timers that wait to expire, state watches all of them, and height timers that have joined; n counts both.

    Hearing: `schedule`, `join`, `leave`, `replace`. Asking: `overdue`, `first_expiry`, `ready`, `match`, `consume`,
    `first`, `is_watched`.

    Attributes:
        joined: How many have joined and are there now.
        queued: How many fires are queued now, expired ones included.
    """

    __slots__ = ("_entries", "_expiries", "_fires", "_ready", "_watches", "joined", "queued")

    def __init__(self, timers: Iterable[Timer]) -> None:
        """Make an index of all timers; of those whose height comes it knows which must have joined.

        Complexity: O(n log n).
        """
        self._entries: dict[bytes, Entry] = {}
        self._watches = WatchIndex()
        self._ready: dict[bytes, Entry] = {}
        self.joined = 0
        for entry in map(make_entry, timers):
            if entry.watch_keys:
                self._watches.add(entry)
            if entry.waits_to_expire or entry.place is not None or entry.is_delivered:
                self._entries[entry.timer_id] = entry
        places = [entry.place for entry in self._entries.values() if entry.place is not None]
        self.queued = len(places)
        self._fires = FireQueue(places)
        self._expiries = SortedDict()
        for entry in self._entries.values():
            if entry.can_expire:
                self._await_expiry(entry)

    # What it hears

    def schedule(self, timer: Timer) -> None:
        """Note a new timer. Complexity: O(log n), and O(1) a watch key, amortized."""
        if not timer.waits_to_expire:
            return
        entry = self._entries[timer.timer_id] = make_entry(timer)
        self._await_expiry(entry)
        if entry.watch_keys:
            self._watches.add(entry)

    def join(self, timers: Iterable[Timer], height: int) -> None:
        """Let timers join in a block of a height.

        Complexity: O(log n) each.

        Raises:
            InvariantError: If one has joined already.
        """
        for timer in timers:
            entry = self._entries.get(timer.timer_id)
            if entry is None:
                entry = self._entries[timer.timer_id] = make_entry(timer)
            if entry.has_joined:
                raise InvariantError(f"timer {timer.timer_id.hex()} joins Globalbox a second time")
            could_expire = entry.can_expire
            entry.has_joined = True
            self.joined += 1
            if entry.can_expire and not could_expire:
                self._await_expiry(entry)
            if not (entry.is_delivered or entry.place) and entry.expires_at >= height:
                self._ready[entry.timer_id] = entry

    def leave(self, timer_id: bytes) -> None:
        """Hear that a timer has left, if it was here. Complexity: O(log n), and O(1) a watch key."""
        entry = self._entries.pop(timer_id, None)
        if entry is None:
            return
        self.joined -= entry.has_joined
        self._ready.pop(timer_id, None)
        if entry.can_expire:
            self._forget_expiry(entry)
        if entry.watch_keys:
            self._watches.remove(entry)
        if entry.place is not None:
            self._fires.discard(entry.place)
            self.queued -= 1

    def replace(self, timer: Timer) -> None:
        """Hear of a timer's new record: its fire may have entered the queue, or left it. Complexity: as `leave`."""
        entry = self._entries.get(timer.timer_id)
        if entry is None:
            return
        if timer.height != entry.height:
            # A development chain has moved it to where it comes due, so that it is to join.
            self.leave(timer.timer_id)
            return
        could_expire, former = entry.can_expire, entry.place
        entry.follow(timer)
        if former != entry.place:
            self._move(entry, former)
        if could_expire and not entry.can_expire:
            self._forget_expiry(entry)
        elif entry.can_expire and not could_expire:
            self._await_expiry(entry)

    def _move(self, entry: Entry, former: Place | None) -> None:
        """Follow a fire into the queue, or out of it."""
        if former is not None:
            self._fires.discard(former)
            self._watches.arm(entry)
            self.queued -= 1
        if entry.place is not None:
            self._fires.add(entry.place)
            self._watches.disarm(entry)
            self._ready.pop(entry.timer_id, None)
            self.queued += 1

    def _await_expiry(self, entry: Entry) -> None:
        line = self._expiries.get(entry.expires_at)
        if line is None:
            line = self._expiries[entry.expires_at] = Line()
        line.add(entry.due)

    def _forget_expiry(self, entry: Entry) -> None:
        line = self._expiries[entry.expires_at]
        line.discard(entry.due)
        if not line:
            del self._expiries[entry.expires_at]

    # What a block asks

    def knows(self, timer_id: bytes) -> bool:
        """Return whether a timer is here. Complexity: O(1)."""
        return timer_id in self._entries

    def overdue(self, height: int) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield expiry, height, sequence and id of those that have expired before a height, ascending.

        Those in the mailbox are not among them, and neither are height timers that have yet to join.

        Spec: CIP-5old §14
        Complexity: O(1) each, while nothing is heard.
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
        return [(entry.height, entry.timer_id) for entry in self._ready.values()]

    def match(self, modified: Sequence[CarriedHit], most: int, height: int) -> tuple[list[Hit], tuple[CarriedHit, ...]]:
        """Return which watches are hit, and what is carried; as `WatchIndex.match`."""
        return self._watches.match(modified, most, height)

    def consume(self, most: int, share: int, height: int) -> Consumption:
        """Return a walk over the queue within two quotas; as `FireQueue.consume`.

        The records of those taken say so only when each has been materialized; until then they count as queued.
        """
        return self._fires.consume(most, share, height)

    def first(self, most: int, height: int) -> list[Place]:
        """Return the first fires of the queue; as `FireQueue.first`."""
        return self._fires.first(most, height)

    def is_watched(self, key: bytes) -> bool:
        """Return whether a watch that is there now watches a prefix of a key."""
        return self._watches.is_watched(key)
