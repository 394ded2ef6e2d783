"""A block's decision record as people look at it: who was examined, in which order, and why the others were not."""

from collections.abc import Iterator
from typing import Final

from trailboss.mechanisms.base import Verdict
from trailboss.model.decisions import AgentBid, DecisionRecord, ExaminedTimer, FeeSource
from trailboss.model.timers import DeferralReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.mechanism.base import Fact, MechanismViews
from trailboss.views.mechanism.registry import views_of
from trailboss.views.records import BidRow, DecisionRow, DecisionView
from trailboss.views.shared_fields import extended
from trailboss.views.text import counted, decimal_text

REASONS: Final = {
    DeferralReason.LANE_FULL: "did not fit the rest of the lane",
    DeferralReason.CELLS_FULL: "the block's cells for fires were spent",
    DeferralReason.GC_EXHAUSTED: "clean-up budget spent",
    DeferralReason.UNFUNDED: "payer could not pay",
    DeferralReason.OVER_CAP: "over the cap of one fire",
    DeferralReason.PRICED_OUT: "priced out",
    DeferralReason.OUTRANKED: "outranked",
    DeferralReason.NOT_JOINED: "yet to join",
}
OUTCOMES: Final = {
    "fire": "fired",
    "expire": "expired",
    "unfund": "unfunded",
    "cancelled": "cancelled by a fire before it",
    "delay": "told that it is late",
    "cancel": "cancelled as too late",
    "enqueue": "queued",
    "materialize": "put into the mailbox",
}
"""What became of a timer that a block decided about and did not defer."""


def decision_view(record: DecisionRecord, height: int) -> DecisionView:
    """Return a decision record as people see it."""
    views = views_of(record.mechanism)
    counts = {
        DeferralReason.OUTRANKED.value: record.outranked,
        DeferralReason.PRICED_OUT.value: record.priced_out,
        DeferralReason.OVER_CAP.value: record.over_cap,
        DeferralReason.NOT_JOINED.value: record.not_joined,
    }
    return DecisionView(
        height=height,
        mechanism=record.mechanism,
        order=record.order.value,
        cycle_basefee=record.cycle_basefee,
        cell_basefee=record.cell_basefee,
        lane_cycles_max=record.lane_cycles_max,
        lane_cycles_used=record.lane_cycles_used,
        max_cycles_per_fire=record.max_cycles_per_fire,
        lane_burned=record.lane_burned,
        agent_cycles=record.agent_cycles,
        bids=tuple(map(_bid_row, record.agent_bids)),
        cut_off=record.cut_off or None,
        examined=record.examined_count,
        rows=tuple(_row(views, item, decided=True) for item in record.decided),
        runners_up=tuple(_row(views, item, decided=False) for item in record.runners_up),
        not_examined={reason: count for reason, count in counts.items() if count},
        sentences=tuple(_sentences(views, record)),
        **views.decision_fields(record),
    )


def decision_facts(view: DecisionView) -> Iterator[Fact]:
    """Yield what a decision record says beside its timers."""
    used = f"{view.lane_cycles_used:,} of {view.lane_cycles_max:,} cycles, at most {view.max_cycles_per_fire:,} a fire"
    yield Fact("mechanism", "mechanism", view.mechanism)
    yield Fact("used", "used", used)
    yield Fact("basefees", "basefees", f"{view.cycle_basefee:,} a cycle, {view.cell_basefee:,} a cell")
    yield from views_of(view.mechanism).decision_facts(view)
    if view.agent_cycles:
        bids = f", {counted(len(view.bids), 'bid')}" if view.bids else ""
        yield Fact("agents", "agents", f"{view.agent_cycles:,} cycles{bids}")
    named = "" if len(view.rows) == view.examined else f", the first {len(view.rows):,} named"
    cut_off = "" if view.cut_off is None else f", cut-off at rank {view.cut_off:,}"
    yield Fact("examined", "examined", f"{view.examined:,}{named}{cut_off}")


def _bid_row(bid: AgentBid) -> BidRow:
    cell_cap, cell_tip = bid.cell_fees or (None, None)
    timer_id = Hash32(bid.timer_id)
    return extended(BidRow, bid, timer_id=timer_id, max_fee_per_cell=cell_cap, max_priority_fee_per_cell=cell_tip)


def _row(views: MechanismViews, item: ExaminedTimer, *, decided: bool) -> DecisionRow:
    is_ranked = item.rank > 0 and item.weight > 0
    waits = not decided or item.outcome not in OUTCOMES
    reason = item.reason if decided else DeferralReason.OUTRANKED
    return extended(
        DecisionRow,
        item,
        rank=item.rank or None,
        timer_id=Hash32(item.timer_id),
        actor=Address(item.actor),
        weight=decimal_text(item.weight, 1) if is_ranked else None,
        effective_priority=decimal_text(item.effective_priority) if is_ranked and views.ranks_by_priority else None,
        max_fee=item.max_fee if is_ranked else None,
        fees=views.frozen_fees if item.fee_source is FeeSource.FROZEN else item.fee_source.value,
        cycles_used=item.cycles_used if decided and item.outcome == Verdict.FIRE else None,
        outcome="waits" if waits else OUTCOMES[item.outcome],
        reason=REASONS[DeferralReason(reason)] if waits else "",
        target=Address(item.target or item.actor),
    )


def _sentences(views: MechanismViews, record: DecisionRecord) -> Iterator[str]:
    """Yield why the timers that were not examined could not have run before those that were."""
    if record.outranked:
        yield f"{record.outranked:,} {views.outranked(record)}"
    if record.priced_out:
        whose = "its max_fee is" if record.priced_out == 1 else "their max_fee is"
        yield f"{record.priced_out:,} priced out: {whose} below the {views.floor_words(record)}"
    if record.over_cap:
        yield f"{record.over_cap:,} over the cap of {record.max_cycles_per_fire:,} cycles a fire"
    if record.not_joined:
        yield f"{record.not_joined:,} {'has' if record.not_joined == 1 else 'have'} yet to join"
    yield from views.decision_sentences(record)
