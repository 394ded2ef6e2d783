"""What others offer to keep timers in order: bare containers, and the store of a scheduler."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol

from apscheduler.jobstores.memory import MemoryJobStore
from sortedcontainers import SortedDict, SortedList

Entry = tuple[int, int, bytes]
"""Height, place in the order of insertion, and id."""


class Peer(Protocol):
    """Timers in order of height and insertion."""

    def place(self, entry: Entry) -> None:
        """Put a timer in."""

    def take(self, count: int) -> None:
        """Take the first so many out."""


class CancellingPeer(Peer, Protocol):
    """A peer that can take a timer out of its middle."""

    def cancel(self, identity: bytes) -> None:
        """Take a timer out by id."""


class Heap:
    """A binary heap; it cannot take a timer from its middle."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._heap = list(entries)
        heapify(self._heap)

    def place(self, entry: Entry) -> None:
        """Put a timer in."""
        heappush(self._heap, entry)

    def take(self, count: int) -> None:
        """Take the first so many out."""
        for _ in range(count):
            heappop(self._heap)


class OneList:
    """A sorted list of all timers, and a dict to find them by id."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._order = SortedList(entries)
        self._entries = {entry[2]: entry for entry in self._order}

    def place(self, entry: Entry) -> None:
        """Put a timer in."""
        self._order.add(entry)
        self._entries[entry[2]] = entry

    def take(self, count: int) -> None:
        """Take the first so many out."""
        for _ in range(count):
            del self._entries[self._order.pop(0)[2]]

    def cancel(self, identity: bytes) -> None:
        """Take a timer out by id."""
        self._order.remove(self._entries.pop(identity))


class ListsByHeight:
    """A sorted dict of heights, each with a list of its timers, and a dict to find them by id."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._order = SortedDict()
        self._entries: dict[bytes, Entry] = {}
        for entry in entries:
            self.place(entry)

    def place(self, entry: Entry) -> None:
        """Put a timer in."""
        self._order.setdefault(entry[0], []).append(entry)
        self._entries[entry[2]] = entry

    def take(self, count: int) -> None:
        """Take the first so many out; they are whole heights."""
        while count > 0:
            _, bucket = self._order.popitem(0)
            for _, _, identity in bucket:
                del self._entries[identity]
            count -= len(bucket)

    def cancel(self, identity: bytes) -> None:
        """Take a timer out by id."""
        entry = self._entries.pop(identity)
        bucket = self._order[entry[0]]
        bucket.remove(entry)
        if not bucket:
            del self._order[entry[0]]


class Job(NamedTuple):
    """What APScheduler's store looks at in a job."""

    id: str
    next_run_time: datetime


class JobStore:
    """APScheduler's store in memory, with jobs that have nothing but what it looks at; a height is a second."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._store = MemoryJobStore()
        # In order, for every other insertion moves half the list.
        for entry in sorted(entries):
            self.place(entry)

    def place(self, entry: Entry) -> None:
        """Put a timer in."""
        self._store.add_job(Job(entry[2].hex(), _time(entry[0])))

    def take(self, count: int) -> None:
        """Ask for the first so many, which are all at height 1, and take them out."""
        due = self._store.get_due_jobs(_time(1))
        if len(due) != count:
            raise AssertionError(f"{count} jobs were to be due, {len(due)} are")
        for job in due:
            self._store.remove_job(job.id)

    def cancel(self, identity: bytes) -> None:
        """Take a timer out by id."""
        self._store.remove_job(identity.hex())


def _time(height: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=height)
