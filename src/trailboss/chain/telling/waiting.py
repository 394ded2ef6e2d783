"""Why a due timer waited in the timer lane, block by block, from the decision records.

A record names few of the timers that a block did not reach. Of the others the reason follows from the record's prices
and from what the timer offers, which does not change while it waits.

Spec: CIP-1v3 §3
Decision: D-53
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final

from trailboss.chain.chain import Chain
from trailboss.chain.telling.lane_view import decimal_text, split_record
from trailboss.chain.views import lane_gas_limit
from trailboss.governance.rules import LaneTerms, Rules
from trailboss.model.decisions import DecisionRecord
from trailboss.model.timers import DeferralReason
from trailboss.primitives.units import U64_MAX

BLOCKS_MAX: Final = 1_000
"""Blocks that are gone through, the latest of those in which a timer waited."""
RUNS_MAX: Final = 4
"""Runs of blocks that are told one by one; of more only the first and the last."""
AGENT_OFFER: Final = "agent_offer"
"""Reason besides those of `DeferralReason`: what its agent offered was too little, priced out or outranked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """What the reasons of a timer's waiting follow from.

    Attributes:
        timer_id: Its id.
        height: At which it is due.
        sequence: Its place in the order of insertion.
        schedule_block: Height of the block that scheduled it.
        gas_limit: As scheduled.
        frozen: Its max_fee and priority per cycle, if they were fixed when it was scheduled.
        asked_until: Last height at which its actor's agent may have been asked; 0 if it never was.
        expiries: (height, expires_at): from which block on it could fire up to which height, ascending.
    """

    timer_id: bytes
    height: int
    sequence: int
    schedule_block: int
    gas_limit: int
    frozen: tuple[int, int] | None
    asked_until: int
    expiries: tuple[tuple[int, int], ...]

    def expires_at(self, height: int) -> int:
        """Return the last height at which it could fire, as it stood in a block."""
        return next((last for since, last in reversed(self.expiries) if since <= height), U64_MAX)

    def offer(self, height: int, record: DecisionRecord) -> tuple[int, int] | None:
        """Return max_fee and priority per cycle in a block, the default agent's included; None for its own agent's."""
        if self.frozen is not None:
            return self.frozen
        return None if height <= self.asked_until else (2 * record.lane_basefee, record.previous_tip)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One block in which a due timer waited.

    Attributes:
        height: The block's.
        reason: A `DeferralReason`, or ``AGENT_OFFER``.
        lane_basefee: Lane basefee of the block, base units per cycle.
        max_fee: Its cap then; None for an agent's that nobody has recorded.
        tip: Its tip then; None if it was not ranked, or nobody has recorded its agent's.
        rank: Its rank, if the record has it.
        rank_above: Else a rank that it did not reach, that of the last timer named; 0 if it was not ranked.
        cut_off: Rank of the last timer that fired; 0 if none did.
        cut_off_priority: That timer's tip times W, in parts of 10⁻⁹; None if the record does not have it.
        max_cycles_per_fire: Cap of one fire.
    """

    height: int
    reason: str
    lane_basefee: int
    max_fee: int | None
    tip: int | None
    rank: int | None
    rank_above: int
    cut_off: int
    cut_off_priority: int | None
    max_cycles_per_fire: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A timer's waiting in the lane.

    Attributes:
        blocks: In how many blocks of the lane it waited.
        waits: The latest of them, ascending, at most ``BLOCKS_MAX``.
    """

    blocks: int
    waits: tuple[Wait, ...]


def find_waiting(chain: Chain, waiter: Waiter, last: int) -> Waiting:
    """Return the blocks of the lane in which a due timer waited, up to a height.

    Complexity: O(blocks gone through), at most ``BLOCKS_MAX``.
    """
    rules = chain.rules()
    if rules.lane is None:
        return Waiting(0, ())
    begin = max(waiter.height, rules.params.lane.activation_height)
    blocks = max(0, last - begin + 1)
    if not blocks:
        return Waiting(0, ())
    first = max(begin, last - BLOCKS_MAX + 1)
    gas_limit = lane_gas_limit(rules, waiter.gas_limit, waiter.schedule_block)
    records = ((block.height, block.decisions) for block in islice(chain.blocks.since(first), last - first + 1))
    waits = (
        _quiet_wait(rules, rules.lane, height) if record is None else _wait(waiter, gas_limit, height, record)
        for height, record in records
    )
    return Waiting(blocks, tuple(waits))


def waiting_words(waiting: Waiting) -> str:
    """Return a timer's waiting in words, each reason once; empty if it did not wait.

    As: ``deferred 3 times: priced out at 101 and 102 (max_fee 20 < lane basefee 22), outranked at 103 (rank 9, cut-off
    8)``.
    """
    if not waiting.blocks:
        return ""
    times = "once" if waiting.blocks == 1 else f"{waiting.blocks:,} times"
    lead = f"deferred {times}"
    if len(waiting.waits) < waiting.blocks:
        lead += f", of which the last {len(waiting.waits):,}"
    reasons = dict.fromkeys(wait.reason for wait in waiting.waits)
    clauses = (_clause(reason, [wait for wait in waiting.waits if wait.reason == reason]) for reason in reasons)
    return f"{lead}: {', '.join(clauses)}"


def _wait(waiter: Waiter, gas_limit: int, height: int, record: DecisionRecord) -> Wait:
    decided, runners_up = split_record(record)
    named = next((item for item in record.examined if item.timer_id == waiter.timer_id), None)
    offer = waiter.offer(height, record)
    if named is not None and named.rank:
        offer = named.max_fee, named.tip
    max_fee, priority = offer or (None, None)
    tip = None
    if max_fee is not None and priority is not None and max_fee >= record.lane_basefee:
        tip = min(priority, max_fee - record.lane_basefee)
    if named is None:
        reason = _derived(waiter, gas_limit, height, record, max_fee)
    else:
        # A runner-up was ranked and not examined, whatever would have become of it.
        reason = DeferralReason.OUTRANKED if named in runners_up else named.reason
    cut_off = next((item for item in decided if item.rank == record.cut_off > 0), None)
    is_behind = named is None and reason == DeferralReason.OUTRANKED
    return Wait(
        height=height,
        reason=str(reason),
        lane_basefee=record.lane_basefee,
        max_fee=max_fee,
        tip=tip,
        rank=named.rank if named is not None and named.rank else None,
        rank_above=max((item.rank for item in record.examined), default=0) if is_behind else 0,
        cut_off=record.cut_off,
        cut_off_priority=None if cut_off is None else cut_off.effective_priority,
        max_cycles_per_fire=record.max_cycles_per_fire,
    )


def _quiet_wait(rules: Rules, lane: LaneTerms, height: int) -> Wait:
    """Return a timer's wait in a block without a record: nothing was due but timers above the cap."""
    return Wait(
        height=height,
        reason=DeferralReason.OVER_CAP,
        lane_basefee=rules.lane_basefee(),
        max_fee=None,
        tip=None,
        rank=None,
        rank_above=0,
        cut_off=0,
        cut_off_priority=None,
        max_cycles_per_fire=lane.max_cycles_per_fire,
    )


def _derived(waiter: Waiter, gas_limit: int, height: int, record: DecisionRecord, max_fee: int | None) -> str:
    """Return why a timer waited in a block whose record does not name it, in the order in which the lane sorts."""
    if not record.has_joined(waiter.height, waiter.sequence):
        return DeferralReason.NOT_JOINED
    if waiter.expires_at(height) < height:
        return DeferralReason.GC_EXHAUSTED
    if gas_limit > record.max_cycles_per_fire:
        return DeferralReason.OVER_CAP
    if max_fee is None:
        return AGENT_OFFER
    return DeferralReason.PRICED_OUT if max_fee < record.lane_basefee else DeferralReason.OUTRANKED


def _clause(reason: str, waits: Sequence[Wait]) -> str:
    where = _heights_words([wait.height for wait in waits])
    match reason:
        case DeferralReason.PRICED_OUT:
            fees, basefees = _span(wait.max_fee for wait in waits), _span(wait.lane_basefee for wait in waits)
            return f"priced out at {where} (max_fee {fees} < lane basefee {basefees})"
        case DeferralReason.OUTRANKED:
            return f"outranked at {where}{_rank_words(waits)}"
        case DeferralReason.OVER_CAP:
            return f"over the cap of {_span(wait.max_cycles_per_fire for wait in waits)} cycles a fire at {where}"
        case DeferralReason.LANE_FULL:
            return f"too large for what was left of the lane at {where}{_rank_words(waits)}"
        case DeferralReason.GC_EXHAUSTED:
            return f"left over by the clean-up budget at {where}"
        case DeferralReason.NOT_JOINED:
            return f"yet to join the lane at {where}"
        case _:
            return f"its agent offered too little at {where}"


def _rank_words(waits: Sequence[Wait]) -> str:
    """Return the ranks as far as the records have them and, if they have none, what it offered against what fired."""
    ranks = [wait.rank for wait in waits if wait.rank is not None]
    above = max(wait.rank_above for wait in waits)
    places = [_span(ranks)] if ranks else []
    if above > max(ranks, default=0):
        places.append(f"above {above:,}")
    words = f"rank {' to '.join(places)}, cut-off {_span(wait.cut_off for wait in waits)}" if places else ""
    priorities = [wait.cut_off_priority for wait in waits if wait.cut_off_priority is not None]
    if ranks or not priorities:
        return f" ({words})" if words else ""
    least, most = decimal_text(min(priorities)), decimal_text(max(priorities))
    last = f"the last to fire had a priority of {least if least == most else f'{least} to {most}'}"
    return f" ({'; '.join(filter(None, (words, f'tip {_span(wait.tip for wait in waits)}, {last}')))})"


def _span(values: Iterable[int | None]) -> str:
    """Return the least and the greatest of some numbers, or the one that all are."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    least, most = min(known), max(known)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _heights_words(heights: Sequence[int]) -> str:
    """Return ascending heights in words.

    >>> _heights_words([101, 102]), _heights_words([101, 103, 104, 105])
    ('101 and 102', '101 and 103 to 105')
    """
    runs = [_run_words(run) for run in _runs(heights)]
    if len(runs) > RUNS_MAX:
        return f"{runs[0]}, … {runs[-1]} ({len(heights):,} blocks)"
    return " and ".join(", ".join(runs).rsplit(", ", 1))


def _runs(heights: Sequence[int]) -> Iterator[tuple[int, int]]:
    for _, group in groupby(enumerate(heights), key=lambda pair: pair[1] - pair[0]):
        members = [height for _, height in group]
        if len(members) == 2:
            yield from ((height, height) for height in members)
        else:
            yield members[0], members[-1]


def _run_words(run: tuple[int, int]) -> str:
    return str(run[0]) if run[0] == run[1] else f"{run[0]} to {run[1]}"
