"""A block's decision record as people look at it: who was examined, in which order, and why the others were not."""

from collections.abc import Iterator
from typing import Final

from trailboss.model.decisions import AgentBid, DecisionRecord, ExaminedTimer, FeeSource, Order, Stop
from trailboss.model.timers import DeferralReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.records import BidRow, DecisionRow, DecisionView
from trailboss.views.text import decimal_text

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
CELLS_SPENT: Final = "what was left of the block's cells for fires was less than one fire may use"
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
FEES: Final = {(Order.TIP, FeeSource.FROZEN): "standing", (Order.STANDING, FeeSource.FROZEN): "bid"}
"""Where fees come from that were not fixed when the timer was scheduled."""
BEHIND: Final = {
    Order.DUE: "further back in the order",
    Order.PRIORITY: "outranked",
    Order.TIP: "outranked",
    Order.STANDING: "in Globalbox, as one block moves only so many of its fires to the mailbox",
}
"""What timers are that were ranked and not looked at, by what ranks them."""


def decision_view(record: DecisionRecord, height: int) -> DecisionView:
    """Return a decision record as people see it.

    Args:
        record: Of `Chain.lane`.
        height: Of its block.
    """
    has_market, has_box = record.order is Order.PRIORITY, record.order is Order.STANDING
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
        lane_basefee=record.lane_basefee if has_market else None,
        next_lane_basefee=record.next_lane_basefee if has_market else None,
        previous_tip=record.previous_tip if has_market else None,
        median_fires=record.median_fires if has_market else None,
        lane_cycles_max=record.lane_cycles_max,
        lane_cycles_used=record.lane_cycles_used,
        max_cycles_per_fire=record.max_cycles_per_fire,
        lane_burned=record.lane_burned,
        agent_cycles=record.agent_cycles,
        bids=tuple(map(_bid_row, record.agent_bids)),
        queued=record.queued if has_box else None,
        in_mailbox=record.in_mailbox if has_box else None,
        cut_off=record.cut_off or None,
        examined=record.examined_count,
        rows=tuple(_row(record, item, decided=True) for item in record.decided),
        runners_up=tuple(_row(record, item, decided=False) for item in record.runners_up),
        not_examined={reason: count for reason, count in counts.items() if count},
        sentences=tuple(_sentences(record)),
    )


def _bid_row(bid: AgentBid) -> BidRow:
    cell_cap, cell_tip = bid.cell_fees or (None, None)
    return BidRow(
        timer_id=Hash32(bid.timer_id),
        max_fee=bid.max_fee,
        max_priority_fee=bid.max_priority_fee,
        max_fee_per_cell=cell_cap,
        max_priority_fee_per_cell=cell_tip,
    )


def _row(record: DecisionRecord, item: ExaminedTimer, *, decided: bool) -> DecisionRow:
    is_ranked = item.rank > 0 and item.weight > 0
    waits = not decided or item.outcome not in OUTCOMES
    reason = item.reason if decided else DeferralReason.OUTRANKED
    return DecisionRow(
        rank=item.rank or None,
        timer_id=Hash32(item.timer_id),
        actor=Address(item.actor),
        tip=item.tip,
        weight=decimal_text(item.weight, 1) if is_ranked else None,
        effective_priority=decimal_text(item.effective_priority)
        if is_ranked and record.order is Order.PRIORITY
        else None,
        max_fee=item.max_fee if is_ranked else None,
        fees=FEES.get((record.order, item.fee_source), item.fee_source.value),
        gas_limit=item.gas_limit,
        cycles_used=item.cycles_used if decided and item.outcome == "fire" else None,
        outcome="waits" if waits else OUTCOMES[item.outcome],
        reason=REASONS[DeferralReason(reason)] if waits else "",
        target=Address(item.target or item.actor),
        standing=item.standing,
        fire_seq=item.fire_seq,
        deliver_seq=item.deliver_seq,
    )


def _sentences(record: DecisionRecord) -> Iterator[str]:
    """Yield why the timers that were not examined could not have run before those that were."""
    if record.outranked:
        yield f"{record.outranked:,} {_place_words(record)}"
    if record.priced_out:
        whose = "its max_fee is" if record.priced_out == 1 else "their max_fee is"
        yield f"{record.priced_out:,} priced out: {whose} below the {_floor_words(record)}"
    if record.over_cap:
        yield f"{record.over_cap:,} over the cap of {record.max_cycles_per_fire:,} cycles a fire"
    if record.not_joined:
        verb = "has" if record.not_joined == 1 else "have"
        yield f"{record.not_joined:,} {verb} yet to join"
    if record.in_mailbox:
        waits = "entry waits" if record.in_mailbox == 1 else "entries wait"
        yield f"{record.in_mailbox:,} {waits} in the mailbox{_mailbox_words(record)}"
    if record.carried:
        verb = "key was" if record.carried == 1 else "keys were"
        yield f"{record.carried:,} modified {verb} carried over: more watches hear of it than one block queues"


def _floor_words(record: DecisionRecord) -> str:
    if record.order is Order.TIP:
        return f"cycle basefee of {record.cycle_basefee:,}"
    return f"lane basefee of {record.lane_basefee:,}"


def _mailbox_words(record: DecisionRecord) -> str:
    if record.stopped is Stop.LANE_FULL:
        left = _cycles_left(record)
        return f": the block had {left:,} cycles left, and the first of them may use {record.smallest_gas:,}"
    if record.stopped is Stop.CELLS_FULL:
        return f": {CELLS_SPENT}"
    if record.stopped is Stop.EXAMINED_MAX:
        return ": one block runs only so many"
    return ""


def _cycles_left(record: DecisionRecord) -> int:
    """Return what no fire has used; one that is alone in its block may use more than there is."""
    return max(0, record.lane_cycles_max - record.lane_cycles_used)


def _place_words(record: DecisionRecord) -> str:
    word = BEHIND[record.order]
    if record.order is Order.STANDING:
        return word
    if record.stopped is Stop.LANE_FULL:
        left = _cycles_left(record)
        waited = f"and the smallest gas limit that waited was {record.smallest_gas:,}"
        where = "budget" if record.order is Order.TIP else "lane"
        return f"{word}: the {where} had {left:,} cycles left {waited}"
    if record.stopped is Stop.CELLS_FULL:
        return f"{word}: {CELLS_SPENT}"
    if record.stopped is Stop.PASSED_OVER_MAX:
        return f"{word}: the block had passed over as many as it may that did not fit"
    if record.stopped is Stop.EXAMINED_MAX:
        return f"{word}: one block examines at most {record.examined_count:,} due timers"
    return word
