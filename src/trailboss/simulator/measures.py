"""Measures of a run, from receipts and events alone: how timers ended, how late, what they paid, how evenly."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from typing import Final, NamedTuple

from msgspec import Struct, field

from trailboss.model.blocks import Block, Origin, ReceiptRecord, Status
from trailboss.model.events import TIMER_ENDINGS, TIMER_SCHEDULED, EventRecord
from trailboss.model.timers import TimerEnd
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.records import event_view

UNIT: Final = 1_000_000_000  # what 1 is for Jain's index, which is an integer
MEDIAN: Final = 50
TAIL: Final = 95
HUNDRED: Final = 100
SUMMED: Final = ("asked", "reverted", "paid", "burned", "tips", "cycles_used")  # fields of a tally that only add up


class Outcome(Struct, frozen=True, kw_only=True):
    """How the timers of some actors ended. Money in base units."""

    actors: int
    asked: int  # fires they would have had by the end, had each run in the block in which it was due
    scheduled: int  # timers scheduled, those of the beginning included
    delivered: int  # fires, reverted ones included
    reverted: int  # of those, how many reverted
    delayed: int  # of those delivered, how many came after the block in which they were due
    late_p50: int | None  # median of the blocks by which fires were late; None without fires
    late_p95: int | None  # 95th percentile of them
    late_max: int | None  # the greatest
    expired: int  # timers that expired unfired
    unfunded: int  # timers that ended because their payer could not pay
    cancelled: int  # timers that were cancelled
    waiting: int  # timers still live at the end
    overdue: int  # of those, how many were due
    oldest: int  # blocks by which the oldest of those was late; 0 if there are none
    paid: int  # by the fires: burned and tips together
    burned: int  # by the fires
    tips: int  # of the fires, to the proposer
    cycles_used: int  # by the fires
    jain: int | None  # Jain's index over delivered ÷ asked of each actor; None without fires. See `jain_index`.


class Fire(NamedTuple):
    """One fire of a run: the block of the workload, the number of its group, and by how many blocks it was late."""

    block: int
    group: int
    late: int


class BlockLine(Struct, frozen=True):
    """One block of a run."""

    block: int  # its number within the workload, from 1
    timer_cycles: int  # cycles of its fires
    cycles: int  # cycles of everything in it
    cycle_basefee: int  # in force in it, base units per cycle
    oldest: tuple[int, ...]  # of each group, blocks by which the oldest waiting timer is late; 0 if none waits


class GroupResult(Struct, frozen=True):
    """What became of one group of actors."""

    name: str
    outcome: Outcome


class ActorResult(Struct, frozen=True):
    """What one actor got: its group, its number within it from 0, its address, fires delivered and asked for."""

    group: str
    number: int
    address: Address
    delivered: int
    asked: int


class MechanismResult(Struct, frozen=True, kw_only=True):
    """One mechanism's run. Money in base units."""

    mechanism: str
    budget_cycles: int  # cycles that the fires of one block may use
    outcome: Outcome  # of all actors
    groups: tuple[GroupResult, ...]  # of each group, in the order of the workload
    actors: tuple[ActorResult, ...]  # of each actor
    fullest_block: int  # most cycles that the fires of one block used
    full_blocks: int  # blocks in which fires used at least nine tenths of the budget
    transactions: int  # transactions in the workload's blocks
    transactions_refused: int  # those that found no room, or no price that they would pay
    supply: int  # at genesis
    balances: int  # of all accounts at the end
    burned: int  # by everything since genesis; balances and this are the supply
    state_root: Hash32  # after the last block
    timeline: tuple[BlockLine, ...]  # its blocks
    fires: tuple[Fire, ...]  # its fires, in the order in which they ran


class Tally(Struct):
    """One actor's timers so far, with the fields of `Outcome`; lateness and overdue are blocks, one of each timer."""

    asked: int
    scheduled: int = 0
    reverted: int = 0
    lateness: list[int] = field(default_factory=list)
    overdue: list[int] = field(default_factory=list)
    ended: dict[str, int] = field(default_factory=lambda: {end.value: 0 for end in TimerEnd})
    paid: int = 0
    burned: int = 0
    tips: int = 0
    cycles_used: int = 0


class Observer:
    """Follows the timers of some actors, in groups, through the blocks of a chain, with a tally of each actor."""

    def __init__(self, groups: int) -> None:
        self.tallies: dict[bytes, Tally] = {}
        self._live: dict[bytes, tuple[bytes, int]] = {}
        self._group_of: dict[bytes, int] = {}
        # Of each group, due heights and ids of its timers, the lowest first; ended ones are dropped when they are met.
        self._due: list[list[tuple[int, bytes]]] = [[] for _ in range(groups)]

    def follow(self, actor: bytes, group: int, asked: int) -> None:
        """Follow an actor of a group, by number, that asks for a number of fires."""
        self.tallies[actor] = Tally(asked)
        self._group_of[actor] = group

    def observe(self, block: Block) -> list[tuple[bytes, int]]:
        """Count what happened in a block; return its fires: actor, and by how many blocks it was late."""
        fires = []
        for receipt in block.receipts:
            if receipt.origin is Origin.TIMER:
                fires.append(self._fire(receipt, block.height))
            for event in receipt.events:
                self._note(event, block.height)
        for event in block.events:
            self._note(event, block.height)
        return fires

    def oldest(self, height: int) -> tuple[int, ...]:
        """Return, of each group, by how many blocks the oldest timer is late that waits at a height; 0 for none."""
        ages = []
        for due in self._due:
            while due and due[0][1] not in self._live:
                heappop(due)
            ages.append(max(0, height - due[0][0]) if due else 0)
        return tuple(ages)

    def finish(self, height: int) -> None:
        """Count what is still live after the last block, of that height."""
        for actor, due in self._live.values():
            if due <= height:
                self.tallies[actor].overdue.append(height - due)

    def _fire(self, receipt: ReceiptRecord, height: int) -> tuple[bytes, int]:
        actor, due = self._live[receipt.timer_id]
        tally = self.tallies[actor]
        tally.lateness.append(height - due)
        tally.reverted += receipt.status is Status.REVERTED
        tally.paid += receipt.fee_paid
        tally.burned += receipt.fee_burned
        tally.tips += receipt.tip
        tally.cycles_used += receipt.cycles_used
        return actor, height - due

    def _note(self, event: EventRecord, height: int) -> None:
        if event.name == TIMER_SCHEDULED:
            due = event_view(event, height).data["height"]
            self.tallies[event.emitter].scheduled += 1
            self._live[event.timer_id] = event.emitter, due
            heappush(self._due[self._group_of[event.emitter]], (due, event.timer_id))
        elif event.name in TIMER_ENDINGS:
            actor, _ = self._live.pop(event.timer_id)
            self.tallies[actor].ended[TIMER_ENDINGS[event.name]] += 1


def outcome_of(tallies: Sequence[Tally]) -> Outcome:
    """Return some actors' outcome; `InvariantError` if timers came or went without an event. Decision: D-35."""
    lateness = sorted(late for tally in tallies for late in tally.lateness)
    overdue = [late for tally in tallies for late in tally.overdue]
    ended = {end: sum(tally.ended[end.value] for tally in tallies) for end in TimerEnd}
    scheduled = sum(tally.scheduled for tally in tallies)
    waiting = scheduled - sum(ended.values())
    if ended[TimerEnd.FIRED] != len(lateness) or waiting < len(overdue):
        raise InvariantError(
            f"{len(lateness)} fires and {ended[TimerEnd.FIRED]} events of fires, {waiting} timers waiting and "
            f"{len(overdue)} of them due"
        )
    return Outcome(
        actors=len(tallies),
        scheduled=scheduled,
        delivered=len(lateness),
        delayed=sum(late > 0 for late in lateness),
        late_p50=percentile(lateness, MEDIAN),
        late_p95=percentile(lateness, TAIL),
        late_max=percentile(lateness, HUNDRED),
        **{end.value: ended[end] for end in (TimerEnd.EXPIRED, TimerEnd.UNFUNDED, TimerEnd.CANCELLED)},
        waiting=waiting,
        overdue=len(overdue),
        oldest=max(overdue, default=0),
        **{name: sum(getattr(tally, name) for tally in tallies) for name in SUMMED},
        jain=jain_index([(len(tally.lateness), tally.asked) for tally in tallies]),
    )


def percentile(ascending: Sequence[int], percent: int) -> int | None:
    """Return the nearest-rank percentile, 1 to 100: the least value that this many percent do not exceed.

    >>> percentile([0, 0, 1, 5], 50), percentile([0, 0, 1, 5], 95), percentile([], 50)
    (0, 5, None)
    """
    return ascending[-(-percent * len(ascending) // HUNDRED) - 1] if ascending else None


def jain_index(shares: Iterable[tuple[int, int]]) -> int | None:
    """Return Jain's index of how evenly actors are served, in parts of 10⁻⁹, floor.

    With x = delivered ÷ asked for each of n actors that ask it is (Σx)² ÷ (n · Σx²), in exact fractions: 10⁹ if all get
    the same share, 10⁹ ÷ n if one gets all; None if none gets anything.

    >>> jain_index([(1, 2), (2, 4)]), jain_index([(1, 1), (0, 1)]), jain_index([(3, 4), (1, 4)])
    (1000000000, 500000000, 800000000)
    """
    parts = [Fraction(delivered, asked) for delivered, asked in shares if asked]
    squares = sum(part * part for part in parts)
    return int(UNIT * sum(parts) ** 2 / (len(parts) * squares)) if squares else None
