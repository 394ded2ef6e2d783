"""What an event about a timer tells, in sentences."""

from typing import Any, Final

from trailboss.execution.agents import BUDGET_SPENT
from trailboss.model import events as names
from trailboss.model.blocks import Block, ReceiptRecord
from trailboss.model.decisions import ENTRIES_MAX, DecisionRecord, Order
from trailboss.model.terms import Trigger
from trailboss.model.timers import DeferralReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, format_cby
from trailboss.views.explain.mechanism_sentences import bid_words, mechanism_story
from trailboss.views.text import decimal_text, failure_words

FALLBACKS: Final = {
    "no_agent": "has no gas bidding agent any more",
    "failed": "failed",
    "malformed": "answered something that is no bid",
    "out_of_cycles": "used up the cycles of a question",
    "out_of_cells": "used up the cells of a question",
}
"""What an agent did that is not asked again, by the reason that the event gives. Decision: D-17."""


def story(name: str, facts: dict[str, Any], block: Block, receipt: ReceiptRecord | None) -> str:
    """Return what happened and why, in words.

    Args:
        name: The event's name.
        facts: Its fields.
        block: In which it happened.
        receipt: Of the execution that it is part of; None for the block's own events.
    """
    match name:
        case names.TIMER_SCHEDULED:
            return _scheduling(facts, receipt)
        case names.TIMER_PRIORITY_CLAMPED:
            return (
                f"its priority fee of {facts['stated']:,} a cycle is held at {facts['clamped']:,}: its max_fee leaves "
                "no more above the lane basefee"
            )
        case names.TIMER_ARGUMENT_DEPRECATED:
            return (
                f"{facts['argument']} is ignored, it has no effect; once the timer lane is active, scheduling with it "
                "is refused"
            )
        case names.TIMER_DEFERRED:
            return f"due at {facts['height']}, deferred ({facts['reason']}): {_deferral(facts)}"
        case names.TIMER_EXTENDED | names.TIMER_EXTENDED_BY_GOVERNANCE | names.TIMER_MOVED:
            return _shift(name, facts)
        case names.TIMER_CANCELLED | names.TIMER_CANCELLED_BY_GOVERNANCE:
            return _cancellation(name, facts)
        case names.TIMER_EXPIRED:
            return f"expired: it could fire up to height {facts['expires_at']}, this is {facts['current_height']}"
        case names.TIMER_UNFUNDED:
            return (
                f"removed without running: a fire costs up to {format_cby(facts['required'])} CBY and its payer "
                f"{Address(facts['fee_payer'])} held {format_cby(facts['available'])} CBY"
            )
        case names.TIMER_FIRED:
            return _fire(facts, block, receipt)
        case names.AGENT_FALLBACK:
            return _fallback(facts, block)
        case names.LANE_ACTIVATED:
            return f"the timer lane begins: from {facts['height']} on it competes there once it is due"
        case _:
            return mechanism_story(name, facts, block, receipt)


def _scheduling(facts: dict[str, Any], receipt: ReceiptRecord | None) -> str:
    when, last = f"for height {facts['height']}", f"expires after {facts['expires_at']}{_offer_words(facts)}"
    calls = f"calls {facts['handler']}"
    if "gba" in facts:
        until = "never expires" if facts["expires_at"] == U64_MAX else last
        last = f"{until}, its agent {Address(facts['gba'])} bids for it"
    if "target" in facts:
        when = "to watch the state" if facts["kind"] == Trigger.STATE_WATCH else when
        calls += f" of {Address(facts['target'])}"
        last += f", {bid_words(facts['bid'])}"
    return (
        f"scheduled by {_who(receipt)} {when}: {calls} with at most {facts['gas_limit']:,} cycles, paid by "
        f"{Address(facts['fee_payer'])}, {last}"
    )


def _shift(name: str, facts: dict[str, Any]) -> str:
    """Return how a timer's height, or its last one, has moved."""
    if name == names.TIMER_MOVED:
        return f"moved from height {facts['from_height']} to {facts['height']}, as only a development chain does"
    by = "governance" if name == names.TIMER_EXTENDED_BY_GOVERNANCE else "its actor"
    return f"extended by {by}: may now fire up to height {facts['expires_at']}"


def _fire(facts: dict[str, Any], block: Block, receipt: ReceiptRecord | None) -> str:
    """Return how a timer fired, at which place and price, and what that cost whom."""
    how = "fired"
    if receipt is not None and receipt.error is not None:
        how = f"fired and reverted ({failure_words(receipt.error)})"
    order = Order.DUE if block.decisions is None else block.decisions.order
    place = "" if block.decisions is None else _place(block.decisions, facts["timer_id"])
    blocks = facts["blocks_deferred"]
    waited = f", after {blocks:,} deferred block{'' if blocks == 1 else 's'}" if blocks else ""
    burned, tip = format_cby(facts["lane_burned"]), format_cby(facts["tip"])
    parts = {
        Order.DUE: "",
        Order.PRIORITY: f" ({burned} of it burned by the lane basefee, {tip} as tip)",
    }.get(order, f" ({tip} of it as tip)")
    return (
        f"{how}{place}{waited}: {facts['cycles_used']:,} cycles and {facts['cells_used']:,} cells cost "
        f"{Address(facts['fee_payer'])} {format_cby(facts['fee_paid'])} CBY{parts}, {format_cby(facts['refund'])} CBY "
        "of the pre-charge returned"
    )


def _place(record: DecisionRecord, timer_id: bytes) -> str:
    """Return the rank and the tip of a timer that fired, if the record names it and ranks by what is offered."""
    called = {Order.PRIORITY: "W", Order.TIP: "a weight of"}.get(record.order)
    found = next((item for item in record.decided if item.timer_id == timer_id and item.rank), None)
    if found is None or called is None:
        return ""
    ranked = max(item.rank for item in record.decided) + record.outranked
    among = f" of {ranked:,}" if record.examined_count <= ENTRIES_MAX else ""
    return (
        f" at rank {found.rank}{among} with a tip of {found.tip:,} a cycle and {called} {decimal_text(found.weight, 1)}"
    )


def _offer_words(facts: dict[str, Any]) -> str:
    if "max_fee_per_cycle" not in facts:
        return ""
    tip = facts["max_priority_fee_per_cycle"]
    return f", offers up to {facts['max_fee_per_cycle']:,} a cycle in the timer lane, {tip:,} of it as a tip"


def _cancellation(name: str, facts: dict[str, Any]) -> str:
    by = "governance" if name == names.TIMER_CANCELLED_BY_GOVERNANCE else "its actor"
    back = f"; its pre-charge of {format_cby(facts['refund'])} CBY returned to the payer" if facts["refund"] else ""
    return f"cancelled by {by}{back}"


def _fallback(facts: dict[str, Any], block: Block) -> str:
    if facts["reason"] == BUDGET_SPENT:
        return "the default agent's fees in this block: the block's budget for questions was spent before its own agent"
    is_asked_again = block.decisions is not None and block.decisions.order is Order.TIP
    since = "until it is asked again" if is_asked_again else "from now on"
    who = f"its agent {Address(facts['agent'])}" if facts["agent"] else "its actor"
    what = FALLBACKS.get(facts["reason"], f"ended with {facts['reason']}")
    failures = () if block.decisions is None else block.decisions.agent_failures
    why = next((f" ({failure.what})" for failure in failures if failure.timer_id == facts["timer_id"]), "")
    return f"the default agent's fees {since}: {who} {what}{why}"


def _who(receipt: ReceiptRecord | None) -> str:
    if receipt is None:
        return "the chain"
    if receipt.timer_id:
        return f"the fire of timer {Hash32(receipt.timer_id)}"
    return f"a {receipt.origin.value} of {Address(receipt.sender)}"


def _deferral(facts: dict[str, Any]) -> str:
    match facts["reason"]:
        case DeferralReason.LANE_FULL:
            return (
                f"its {facts['gas_limit']:,} cycles did not fit what was left of the block's timer lane; it stays due"
            )
        case DeferralReason.CELLS_FULL:
            return "what was left of the block's cells for fires was less than one fire may use; it stays due"
        case DeferralReason.UNFUNDED:
            return "its payer could not pay; it stays due"
        case DeferralReason.OVER_CAP:
            return (
                f"its {facts['gas_limit']:,} cycles are more than one fire may use in the timer lane; it stays due and "
                "is not ranked"
            )
        case _:
            return "it is to be removed and the block's clean-up budget was spent; it stays due"
