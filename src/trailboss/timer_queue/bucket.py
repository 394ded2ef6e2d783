"""The timers of one height: those that may fire, in FIFO order, and those that have expired, by expiry."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush, heapreplace
from itertools import islice
from typing import Final

from msgspec import Struct
from sortedcontainers import SortedList

CROWD: Final = 4_096
"""With more timers alive than this, which take a millisecond to look at, a height keeps a line for each payer."""


class Pending(Struct, frozen=True, order=True, gc=False):
    """What the queue holds of a timer; ascending, the first to expire comes first."""

    expires_at: int  # last height at which it may fire
    sequence: int  # its place in the order of insertion over the whole chain
    timer_id: bytes
    fee_payer: bytes  # who pays for it, 20 bytes
    height: int  # block height at which it is due


IsOut = Callable[[bytes], bool]
"""Payer to whether a walk leaves its timers out, as of the moment at which one of them would come."""


class Bucket:
    """The timers of one height: those alive, in FIFO order, and ``expired``, the first to expire first.

    One whose last height lies before its own is expired from the beginning.
    Spec: CIP-5 §5.4, CIP-5 §6.5. Decision: D-78
    """

    __slots__ = ("_alive", "_deaths", "_is_ordered", "_latest", "_lines", "expired")

    def __init__(self) -> None:
        # By sequence; in order as long as each comes behind the latest, and in a crowd whatever comes.
        self._alive: dict[int, Pending] = {}
        self._is_ordered = True
        self._latest = -1
        self.expired: SortedList | tuple[()] = ()  # a list from the first one on: few heights have any
        self._deaths: list[Pending] = []  # A heap; what has left, or expires at another height now, is passed by.
        self._lines: Lines | None = None

    def __len__(self) -> int:
        """Return how many timers it holds. Complexity: O(1)."""
        return len(self._alive) + len(self.expired)

    def __iter__(self) -> Iterator[Pending]:
        """Yield the timers that it holds, in no order."""
        yield from self._alive.values()
        yield from self.expired

    def add(self, timer: Pending, *, is_expired: bool) -> None:
        """Put a timer in. Complexity: O(log k) for k timers."""
        if is_expired:
            self._expire(timer)
            return
        sequence = timer.sequence
        self._alive[sequence] = timer
        if sequence > self._latest:
            self._latest = sequence
        else:
            self._is_ordered = False
        heappush(self._deaths, timer)
        if self._lines is not None:
            self._lines.add(timer)
        elif len(self._alive) > CROWD:
            self._lines = Lines(self._in_order().values())

    def remove(self, timer: Pending) -> None:
        """Take out a timer that is here. Complexity: O(1) if it is alive in no crowd, O(log k) for k timers else."""
        if self.expired and timer in self.expired:
            self.expired.remove(timer)
            return
        del self._alive[timer.sequence]
        if self._lines is not None:
            self._lines.remove(timer)

    def next_death(self) -> int | None:
        """Return the last height of the first that will expire, or one before it; None if none will.

        Complexity: O(1), and O(log k) for each that has left before it expired.
        """
        while self._deaths and self._alive.get(self._deaths[0].sequence) != self._deaths[0]:
            heappop(self._deaths)
        return self._deaths[0].expires_at if self._deaths else None

    def bury(self, now: int) -> Iterator[bytes]:
        """Move those whose last height lies before ``now`` to the expired; yield their ids. Complexity: O(log k)."""
        while (death := self.next_death()) is not None and death < now:
            timer = heappop(self._deaths)
            self.remove(timer)
            self._expire(timer)
            yield timer.timer_id

    def walk(self, after: int, is_out: IsOut | None = None) -> Iterator[Pending]:
        """Yield those alive behind a sequence, in FIFO order, but for those of payers that are left out.

        Complexity: O(1) a timer that is yielded; in a crowd O(log p) for p payers, and O(1) for each payer left out,
            whatever its timers.
        """
        if self._lines is not None:
            return self._lines.walk(after, is_out or _is_in)
        # There are few: looking for the first and, where some have come in another order, sorting takes a millisecond.
        alive = self._in_order()
        following = islice(alive.values(), bisect_right(list(alive), after) if after >= 0 else 0, None)
        return following if is_out is None else (timer for timer in following if not is_out(timer.fee_payer))

    def _in_order(self) -> dict[int, Pending]:
        if not self._is_ordered:
            self._alive, self._is_ordered = dict(sorted(self._alive.items())), True
        return self._alive

    def _expire(self, timer: Pending) -> None:
        expired = self.expired or SortedList()
        expired.add(timer)
        self.expired = expired


def _is_in(_: bytes) -> bool:
    return False


class Lines:
    """The living timers of a crowded height, by payer."""

    __slots__ = ("_firsts", "_timers")

    def __init__(self, timers: Iterable[Pending]) -> None:
        rows = [(timer.fee_payer, timer.sequence, timer) for timer in timers]
        self._timers = SortedList(rows)
        firsts: dict[bytes, tuple[int, bytes]] = {}
        for payer, sequence, _ in rows:
            firsts.setdefault(payer, (sequence, payer))
        self._firsts = SortedList(firsts.values())

    def add(self, timer: Pending) -> None:
        """Put a timer in. Complexity: O(log k) for k timers."""
        payer, sequence = timer.fee_payer, timer.sequence
        first = self._first(payer)
        self._timers.add((payer, sequence, timer))
        if first is None or sequence < first:
            if first is not None:
                self._firsts.remove((first, payer))
            self._firsts.add((sequence, payer))

    def remove(self, timer: Pending) -> None:
        """Take out a timer that is here. Complexity: O(log k) for k timers."""
        payer, sequence = timer.fee_payer, timer.sequence
        is_first = self._first(payer) == sequence
        self._timers.remove((payer, sequence, timer))
        if is_first:
            self._firsts.remove((sequence, payer))
            first = self._first(payer)
            if first is not None:
                self._firsts.add((first, payer))

    def walk(self, after: int, is_out: IsOut) -> Iterator[Pending]:
        """Yield the timers behind a sequence, in FIFO order, but for those of payers left out.

        A payer comes into the walk when the first of its timers could be the next, and leaves when it is out.
        """
        ahead: list[tuple[int, bytes, Iterator[tuple[bytes, int, Pending]], Pending]] = []
        for first, payer in self._firsts:
            yield from _taken(ahead, first, is_out)
            if not is_out(payer):
                line = self._timers.irange((payer, after + 1), (payer, _NEVER))
                for _, sequence, timer in line:
                    heappush(ahead, (sequence, payer, line, timer))
                    break
        yield from _taken(ahead, _NEVER, is_out)

    def _first(self, payer: bytes) -> int | None:
        for _, sequence, _ in self._timers.irange((payer,), (payer, _NEVER)):
            return int(sequence)
        return None


_NEVER: Final = 1 << 64


def _taken(
    ahead: list[tuple[int, bytes, Iterator[tuple[bytes, int, Pending]], Pending]], before: int, is_out: IsOut
) -> Iterator[Pending]:
    """Yield what comes before a sequence, from lines that are merged."""
    while ahead and ahead[0][0] < before:
        _, payer, line, timer = ahead[0]
        if is_out(payer):
            heappop(ahead)
            continue
        for _, sequence, following in line:
            heapreplace(ahead, (sequence, payer, line, following))
            break
        else:
            heappop(ahead)
        yield timer
