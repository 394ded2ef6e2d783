"""How many due timers a block admits to the index of its mechanism, and which: *joining*.

A height can hold any number of timers, and a block has bounded work. It admits first those due at its own height, then
the oldest of those that earlier blocks have left out: a flood at one height delays no timer of a later height.

Expired timers take no places; the queue keeps them apart. Where more wait than may join, timers whose payers cannot
pay are *barred*: they wait outside until they can be paid, or are removed.

The state keeps what is left out as a few *gaps* in the due order, and what is barred as a few gaps of each payer.
Decision: D-51, D-79.
"""

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import islice, takewhile
from typing import Final

from trailboss.execution.session import Admission, BlockSession
from trailboss.execution.timers import QueueEntry, expired_timers, load_timer, load_timers
from trailboss.governance.rules import BARRED_KEY, JOINING_KEY
from trailboss.mechanisms.base import DueTimers
from trailboss.model.configs import BarredPayer, BarredPayers, JoiningGap, JoiningGaps, encode_record, is_outside
from trailboss.model.timers import Timer

Place = tuple[int, int]
CostOf = Callable[[Timer], int]  # Timer to the least that its fire is pre-charged for in this block, base units.
BEHIND_ALL: Final = (1 << 64, 0)  # A place behind every timer's.


def admit_timers(session: BlockSession, most: int, cost_of: CostOf) -> DueTimers:
    """Admit at most ``most`` due timers; return those admitted before and those admitted now.

    Complexity: O(log n) a gap that is looked at, and O(1) a timer that joins and a payer that is barred.
    """
    rules, height = session.context.rules, session.context.height
    known = rules.gaps
    # In the first block everything that is due already, as at the activation of the lane, is left out and joins later.
    before = (JoiningGap(0, 0, height - 1),) if known is None else known
    admitter = _Admitter(session, most, cost_of)
    after: list[JoiningGap] = []
    for gap in (JoiningGap(height, 0, height), *before):
        left = admitter.admit(gap)
        if left is not None:
            after.append(left)
    admitter.admit_barred()
    gaps, barred = tuple(sorted(after)), tuple(sorted(admitter.barred))
    session.admission = Admission(admitter.joining, gaps, barred)
    if gaps != known:
        session.overlay.write(JOINING_KEY, encode_record(JoiningGaps(gaps)))
    if barred != rules.barred:
        session.overlay.write(BARRED_KEY, encode_record(BarredPayers(barred)))
    return DueTimers(
        waiting=_joined(session, before, rules.barred),
        joining=admitter.joining,
        expired=expired_timers(session),
        unfunded=admitter.unfunded(),
    )


def has_joined(session: BlockSession, timer: Timer) -> bool:
    """Return whether a timer has joined, once the block has admitted timers."""
    place = timer.height, timer.sequence
    gaps, barred = session.admission.gaps, session.admission.barred
    return timer.height <= session.context.height and not is_outside(gaps, barred, timer.fee_payer, place)


class _Admitter:
    """One block's admission, as it goes on: the timers that join, and the payers that are barred."""

    __slots__ = ("_cost_of", "_room", "_session", "barred", "joining")

    def __init__(self, session: BlockSession, room: int, cost_of: CostOf) -> None:
        self._session = session
        self._room = room
        self._cost_of = cost_of
        self.joining: list[Timer] = []
        self.barred: list[BarredPayer] = list(session.context.rules.barred)

    def admit(self, gap: JoiningGap) -> JoiningGap | None:
        """Admit timers of a gap in due order; return the gap that is left of it, or None.

        Only where there is no room for all of them does it matter whether they can be paid.
        """
        if not self._room:
            return gap
        begin, end = (gap.first_height, gap.first_sequence), (gap.last_height + 1, 0)
        firsts: dict[bytes, Place] = {}
        if gap.last_height < self._session.context.height:
            # What was barred in the part of the gap before this one stays barred in this one.
            firsts = {barred.payer: barred.first for barred in self.barred if barred.end == begin}
            self.barred = [barred for barred in self.barred if barred.end != begin]
        found = list(islice(self._within(gap, firsts), self._room + 1))
        if len(found) <= self._room:
            self._join(load_timers(self._session, found))
        else:
            for entry in self._within(gap, firsts):
                timer = load_timer(self._session, entry[0], entry[2])
                if not self._can_pay(timer):
                    firsts[timer.fee_payer] = entry[:2]
                elif self._room:
                    self._join((timer,))
                else:
                    end = entry[:2]
                    break
        self.barred += (BarredPayer(payer, first, end) for payer, first in firsts.items())
        return None if end[0] > gap.last_height else JoiningGap(*end, gap.last_height)

    def admit_barred(self) -> None:
        """Let barred timers join that can be paid by now, in due order; a payer's wait behind one that cannot."""
        if not (self._room and self.barred):
            return
        stops: dict[bytes, Place] = {}
        stop = BEHIND_ALL
        for timer in self._barred(stops):
            place = timer.height, timer.sequence
            if not self._can_pay(timer):
                stops[timer.fee_payer] = place
            elif self._room:
                self._join((timer,))
            else:
                stop = place
                break
        self.barred = [
            barred._replace(first=max(barred.first, limit))
            for barred in self.barred
            if (limit := stops.get(barred.payer, stop)) < barred.end
        ]

    def unfunded(self) -> Iterator[Timer]:
        """Yield the barred timers that cannot be paid, in due order."""
        return (timer for timer in self._barred({}) if not self._can_pay(timer))

    def _can_pay(self, timer: Timer) -> bool:
        return self._session.ledger.balance(timer.fee_payer) >= self._cost_of(timer)

    def _join(self, timers: Iterable[Timer]) -> None:
        before = len(self.joining)
        self.joining += timers
        self._room -= len(self.joining) - before

    def _within(self, gap: JoiningGap, out: Container[bytes]) -> Iterator[QueueEntry]:
        """Yield the due timers of a gap, in due order, but for those of some payers."""
        queue, after = self._session.queue, (gap.first_height, gap.first_sequence - 1)
        due = queue.due(self._session.context.height, after, out.__contains__)
        return takewhile(lambda entry: entry[0] <= gap.last_height, due)

    def _barred(self, stops: Container[bytes]) -> Iterator[Timer]:
        """Yield what is barred, in due order, but for the timers of payers at which the walk has stopped."""
        ranges: dict[bytes, list[BarredPayer]] = {}
        for barred in self.barred:
            ranges.setdefault(barred.payer, []).append(barred)
        height, sequence = min((barred.first for barred in self.barred), default=BEHIND_ALL)
        queue = self._session.queue

        def is_out(payer: bytes) -> bool:
            return payer not in ranges or payer in stops

        for entry in queue.due(self._session.context.height, (height, sequence - 1), is_out):
            payer = queue.fee_payer_of(entry[2])
            if any(barred.holds(payer, entry[:2]) for barred in ranges[payer]):
                yield load_timer(self._session, entry[0], entry[2])


def _joined(session: BlockSession, gaps: tuple[JoiningGap, ...], barred: tuple[BarredPayer, ...]) -> Iterator[Timer]:
    """Yield the due timers of earlier heights that have joined before this block, in due order."""
    height, lasts = session.context.height, [gap.last_height for gap in gaps]
    for entry in takewhile(lambda entry: entry[0] < height, session.queue.due(height)):
        place = bisect_left(lasts, entry[0])
        if place < len(gaps) and entry[:2] >= gaps[place][:2]:
            continue
        timer = load_timer(session, entry[0], entry[2])
        if not any(each.holds(timer.fee_payer, entry[:2]) for each in barred):
            yield timer
