"""Why a due timer waited in the timer lane or in the auction, block by block, from the decision records.

A record names few of the timers that a block did not reach. Of the others the reason follows from the record's prices
and from what the timer offers: in the lane that does not change while it waits, in the auction it is the last bid of
its agent that is known. Spec: CIP-1v3 §3, CIP-1v1 §3. Decision: D-53.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Final

from msgspec import Struct

from trailboss.execution.agents import BUDGET_SPENT
from trailboss.governance.rules import Rules
from trailboss.mechanisms.base import Verdict
from trailboss.model.blocks import Block
from trailboss.model.decisions import AgentBid, DecisionRecord, ExaminedTimer, Order, Stop
from trailboss.model.events import AGENT_FALLBACK
from trailboss.model.timers import DeferralReason
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.records import event_view
from trailboss.views.shared_fields import extended
from trailboss.views.text import decimal_text, heights_words, span_words

AGENT_OFFER: Final = "agent_offer"
"""Reason beyond `DeferralReason`: what its agent offered was too little, priced out or outranked."""
CELL_OFFER: Final = "cell_offer"
"""Likewise: what its agent offered for a cell was below the cell basefee. Decision: D-86."""
BIDS_MAX: Final = 4  # different bids in a row that are named one by one; of more only the last ones
SET_ASIDE: Final = (DeferralReason.UNFUNDED, CELL_OFFER)
"""Reasons for which a timer of the auction is not ranked until its agent is asked again. Decision: D-60, D-86."""
CUT_SHORT: Final = (Stop.PASSED_OVER_MAX, Stop.EXAMINED_MAX)
"""Likewise, in the auction: its walk ended before it came to the timer, and there was room."""


class WaitingTimer(Struct, frozen=True, kw_only=True):
    """What the reasons of a timer's waiting follow from."""

    timer_id: bytes  # its id
    height: int  # at which it is due
    sequence: int  # its place in the order of insertion
    schedule_block: int  # height of the block that scheduled it
    gas_limit: int  # as scheduled
    frozen: tuple[int, int] | None  # its max_fee and priority per cycle, if they were fixed when it was scheduled
    asked_until: int  # last height at which its actor's agent may have been asked; 0 if it never was
    expiries: tuple[tuple[int, int], ...]  # (height, expires_at): from which block on it could fire how long, ascending

    def expires_at(self, height: int) -> int:
        """Return the last height at which it could fire, as it stood in a block."""
        return next((last for since, last in reversed(self.expiries) if since <= height), U64_MAX)

    def offer(self, height: int, record: DecisionRecord) -> tuple[int, int] | None:
        """Return max_fee and priority per cycle in a block, the default agent's included; None for its own agent's."""
        if self.frozen is not None:
            return self.frozen
        return None if height <= self.asked_until else (2 * record.lane_basefee, record.previous_tip)


class Wait(Struct, frozen=True, kw_only=True):
    """One block in which a due timer waited."""

    height: int  # the block's
    reason: str  # a `DeferralReason`, ``AGENT_OFFER``, ``CELL_OFFER``, or one of ``CUT_SHORT``
    cycle_basefee: int  # cycle basefee of a fire in the block, base units per cycle
    lane_basefee: int | None  # lane basefee of the block, base units per cycle; None in the auction, which has none
    max_fee: int | None  # its cap then; None for an agent's that no record has
    tip: int | None  # its tip then; None if it was not ranked, or no record has its agent's
    rank: int | None  # its rank, if the record has it
    rank_above: int  # else a rank that it did not reach, that of the last timer named; 0 if it was not ranked
    cut_off: int  # rank of the last timer that fired; 0 if none did
    # That timer's tip times W, in parts of 10⁻⁹; None in the auction, or if the record does not have it.
    cut_off_priority: int | None
    cut_off_tip: int | None  # that timer's tip; None if the record does not have it
    cut_off_timer: Hash32 | None  # that timer; None likewise
    max_cycles_per_fire: int  # cap of one fire
    cell_basefee: int = 0  # cell basefee of a fire in the block, base units per cell
    max_fee_per_cell: int | None = None  # its cap for a cell then; None if its agent stated none, or no record has it


WaitReader = Callable[[Block, DecisionRecord], Wait]  # reads how a timer waited in the next block


class Waiting(Struct, frozen=True):
    """A timer's waiting in the lane or in the auction."""

    blocks: int  # in how many of their blocks it waited
    waits: tuple[Wait, ...]  # the latest of them, ascending, at most the last 1,000


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
    writers = (_cell_clause if reason == CELL_OFFER else partial(_clause, reason) for reason in reasons)
    alike = ([wait for wait in waiting.waits if wait.reason == reason] for reason in reasons)
    clauses = (words(waits) for words, waits in zip(writers, alike, strict=True))
    return f"{lead}: {', '.join(clauses)}"


def named_in(record: DecisionRecord, timer_id: bytes) -> ExaminedTimer | None:
    """Return what a record has of a timer; its being marked as late is not all that became of it."""
    found = (item for item in record.examined if item.timer_id == timer_id)
    return next((item for item in found if item.outcome != Verdict.DELAY), None)


def make_wait(
    height: int,
    record: DecisionRecord,
    reason: str,
    named: ExaminedTimer | None,
    offer: tuple[int | None, int | None, int | None],
) -> Wait:
    """Return a wait; the offer is the cap per cycle, the tip that is left of it, and the cap per cell."""
    max_fee, tip, cell_cap = offer
    fired = (item for item in record.decided if item.outcome == Verdict.FIRE)
    cut_off = next((item for item in fired if item.rank == record.cut_off > 0), None)
    is_behind = named is None and reason in (DeferralReason.OUTRANKED, *CUT_SHORT)
    in_lane = record.order is Order.PRIORITY
    return Wait(
        height=height,
        reason=reason,
        cycle_basefee=record.cycle_basefee,
        lane_basefee=record.lane_basefee if in_lane else None,
        max_fee=max_fee,
        tip=tip,
        rank=named.rank if named is not None and named.rank else None,
        rank_above=max((item.rank for item in record.examined), default=0) if is_behind else 0,
        cut_off=record.cut_off,
        cut_off_priority=cut_off.effective_priority if cut_off is not None and in_lane else None,
        cut_off_tip=None if cut_off is None else cut_off.tip,
        cut_off_timer=None if cut_off is None else Hash32(cut_off.timer_id),
        max_cycles_per_fire=record.max_cycles_per_fire,
        cell_basefee=record.cell_basefee,
        max_fee_per_cell=cell_cap,
    )


def quiet_wait(rules: Rules, max_cycles_per_fire: int, height: int) -> Wait:
    """Return a timer's wait in a block without a record: nothing was due but timers above the cap."""
    return Wait(
        height=height,
        reason=DeferralReason.OVER_CAP,
        cycle_basefee=rules.timer_basefees()[0],
        lane_basefee=rules.market.basefee,
        max_fee=None,
        tip=None,
        rank=None,
        rank_above=0,
        cut_off=0,
        cut_off_priority=None,
        cut_off_tip=None,
        cut_off_timer=None,
        max_cycles_per_fire=max_cycles_per_fire,
        cell_basefee=rules.timer_basefees()[1],
    )


def _cell_clause(waits: Sequence[Wait]) -> str:
    where = heights_words([wait.height for wait in waits])
    cap, basefee = span_words(wait.max_fee_per_cell for wait in waits), span_words(wait.cell_basefee for wait in waits)
    return f"its agent offered too little for a cell at {where} (max_fee_per_cell {cap} < cell basefee {basefee})"


def _clause(reason: str, waits: Sequence[Wait]) -> str:
    where = heights_words([wait.height for wait in waits])
    match reason:
        case DeferralReason.PRICED_OUT:
            fees = span_words(wait.max_fee for wait in waits)
            kind, basefees = "lane", [wait.lane_basefee for wait in waits]
            if None in basefees:
                kind, basefees = "cycle", [wait.cycle_basefee for wait in waits]
            return f"priced out at {where} (max_fee {fees} < {kind} basefee {span_words(basefees)})"
        case DeferralReason.OUTRANKED:
            return f"outranked at {where}{_rank_words(waits)}"
        case Stop.PASSED_OVER_MAX:
            return f"not reached at {where}{_rank_words(waits)}, as many as a block passes over stood before it"
        case Stop.EXAMINED_MAX:
            return f"not reached at {where}{_rank_words(waits)}, as many as a block looks at stood before it"
        case DeferralReason.OVER_CAP:
            return f"over the cap of {span_words(wait.max_cycles_per_fire for wait in waits)} cycles a fire at {where}"
        case DeferralReason.LANE_FULL:
            what = "budget" if waits[0].lane_basefee is None else "lane"
            return f"too large for what was left of the {what} at {where}{_rank_words(waits)}"
        case DeferralReason.UNFUNDED:
            return f"its payer could not pay at {where}"
        case DeferralReason.GC_EXHAUSTED:
            return f"left over by the clean-up budget at {where}"
        case DeferralReason.NOT_JOINED:
            return f"yet to join at {where}"
        case _ if waits[0].lane_basefee is None:
            return f"priced out or outranked at {where}, by a bid that is not on record"
        case _:
            return f"its agent offered too little at {where}"


def _rank_words(waits: Sequence[Wait]) -> str:
    """Return the ranks as far as the records have them and, if they have none, what it offered against what fired."""
    ranks = [wait.rank for wait in waits if wait.rank is not None]
    above = max(wait.rank_above for wait in waits)
    places = [span_words(ranks)] if ranks else []
    if above and above >= max(ranks, default=0):
        places.append(f"above {above:,}")
    words = f"rank {' to '.join(places)}, cut-off {span_words(wait.cut_off for wait in waits)}" if places else ""
    priorities = [wait.cut_off_priority for wait in waits if wait.cut_off_priority is not None]
    tips = [wait.cut_off_tip for wait in waits if wait.lane_basefee is None]
    if span_words(tips) and not ranks:
        offered = span_words(wait.tip for wait in waits)
        last = f"{f'tip {offered}, ' if offered else ''}the last to fire tipped {span_words(tips)}"
        return f" ({'; '.join(filter(None, (words, last)))})"
    if ranks or not priorities:
        return f" ({words})" if words else ""
    least, most = decimal_text(min(priorities)), decimal_text(max(priorities))
    last = f"the last to fire had a priority of {least if least == most else f'{least} to {most}'}"
    return f" ({'; '.join(filter(None, (words, f'tip {span_words(wait.tip for wait in waits)}, {last}')))})"


class AskedBid(Struct, frozen=True, kw_only=True):
    """What stood for a timer's bid after its agent was asked."""

    height: int  # block in which it was asked
    max_fee: int  # cap of cycle basefee and tip together, base units per cycle
    max_priority_fee: int  # cap of the tip, base units per cycle
    is_default: bool  # whether the agent gave none, and the default bid stands for it
    # Cap of cell basefee and tip together, base units; None for the basefee. Decision: D-86.
    max_fee_per_cell: int | None = None
    max_priority_fee_per_cell: int | None = None  # cap of the tip per cell, base units; None likewise


def bid_in(block: Block, timer_id: bytes) -> AskedBid | None:
    """Return what a timer's agent bid in a block, or what stands for that; None if it was not asked.

    A record names the first 256 bids of a block only.
    """
    record = block.decisions
    if record is None:
        return None
    bid = recorded_bid(record, timer_id)
    if bid is not None:
        cell_cap, cell_tip = bid.cell_fees or (None, None)
        cells = {"max_fee_per_cell": cell_cap, "max_priority_fee_per_cell": cell_tip}
        return extended(AskedBid, bid, height=block.height, is_default=False, **cells)
    fallbacks = (event for event in block.events if event.timer_id == timer_id and event.name == AGENT_FALLBACK)
    if all(event_view(event, block.height).data["reason"] == BUDGET_SPENT for event in fallbacks):
        return None
    return AskedBid(height=block.height, max_fee=2 * record.cycle_basefee, max_priority_fee=0, is_default=True)


def recorded_bid(record: DecisionRecord, timer_id: bytes) -> AgentBid | None:
    """Return what a timer's agent bid according to a record, which has the first 256 bids; None if it has none."""
    return next((bid for bid in record.agent_bids if bid.timer_id == timer_id), None)


def bids_words(bids: Sequence[AskedBid]) -> str:
    """Return when a timer was asked and what it bid, in words; empty if it never was."""
    runs = [list(group) for _, group in groupby(bids, key=_offer)]
    clauses = list(map(_bid_run_words, runs[-BIDS_MAX:]))
    earlier = f"{len(runs) - BIDS_MAX:,} other bids before that, then " if len(runs) > BIDS_MAX else ""
    times = "once" if len(bids) == 1 else f"{len(bids):,} times"
    return f"{times}: {earlier}{', '.join(clauses)}" if bids else ""


def _offer(bid: AskedBid) -> tuple[int | None, ...]:
    return bid.max_fee, bid.max_priority_fee, bid.is_default, bid.max_fee_per_cell, bid.max_priority_fee_per_cell


def _bid_run_words(run: Iterable[AskedBid]) -> str:
    bids = list(run)
    whose = " by default" if bids[0].is_default else ""
    where, cells = heights_words([bid.height for bid in bids]), ""
    if bids[0].max_fee_per_cell is not None:
        cells = f" and up to {bids[0].max_fee_per_cell:,} a cell with a tip of {bids[0].max_priority_fee_per_cell:,}"
    return f"up to {bids[0].max_fee:,} a cycle with a tip of {bids[0].max_priority_fee:,}{cells}{whose} at {where}"
