"""The catalogue of what events say: long in the life of a timer, short in a table of events.

What only one mechanism emits stands in that mechanism's room.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from trailboss.execution.agents import BUDGET_SPENT
from trailboss.governance.parameters import EPOCHAL, GOVERNED
from trailboss.model import events as names
from trailboss.model.blocks import ReceiptRecord
from trailboss.model.decisions import ENTRIES_MAX, DecisionRecord, Order
from trailboss.model.globalbox import bid_of, format_bid
from trailboss.model.terms import Trigger
from trailboss.model.timers import DeferralReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, format_cby
from trailboss.views.labels import labels_in_use
from trailboss.views.mechanism.base import Occurrence, Sentence, Shown, StepKind
from trailboss.views.mechanism.globalbox_records import bid_words
from trailboss.views.mechanism.registry import MECHANISM_SENTENCES
from trailboss.views.records import Event
from trailboss.views.text import WIDE, clipped, counted, decimal_text, failure_words, value_words, words

FALLBACKS: Final = {
    "no_agent": "has no gas bidding agent any more",
    "failed": "failed",
    "malformed": "answered something that is no bid",
    "out_of_cycles": "used up the cycles of a question",
    "out_of_cells": "used up the cells of a question",
}
"""What an agent did that is not asked again, by the reason that the event gives. Decision: D-17."""
DEFERRALS: Final[Mapping[str, str]] = {
    DeferralReason.LANE_FULL: (
        "its {gas_limit:,} cycles did not fit what was left of the block's timer lane; it stays due"
    ),
    DeferralReason.CELLS_FULL: (
        "what was left of the block's cells for fires was less than one fire may use; it stays due"
    ),
    DeferralReason.UNFUNDED: "its payer could not pay; it stays due",
    DeferralReason.OVER_CAP: (
        "its {gas_limit:,} cycles are more than one fire may use in the timer lane; it stays due and is not ranked"
    ),
}
"""Why a due timer stays due, by the reason that the event gives."""
TO_BE_REMOVED: Final = "it is to be removed and the block's clean-up budget was spent; it stays due"


def sentence(it: Occurrence) -> str:
    """Return what happened to a timer and why, in words."""
    found = SENTENCES.get(it.event.name)
    if found is None or found.long is None:
        return f"{it.event.name} in block {it.block.height}"
    return found.long(it)


def step_kind(it: Occurrence) -> StepKind:
    """Return what an event means for its timer."""
    found = SENTENCES.get(it.event.name)
    kind = StepKind.PLAIN if found is None else found.kind
    has_failed = it.receipt is not None and it.receipt.error is not None
    return StepKind.REVERTED if kind is StepKind.RAN and has_failed else kind


def event_words(event: Event, width: int) -> str:
    """Return a whole event in words, for a terminal of ``width`` columns."""
    timer = f" {_id_or_value(event.timer_id, width)}" if event.timer_id else ""
    return f"{event.name}{timer}: {data_words(event, width)}".removesuffix(": ")


def data_words(event: Event, width: int) -> str:
    """Return what an event says beside its name and its timer, in words."""
    if not isinstance(event.data, dict) or event.name not in names.PROTOCOL_TOPICS:
        return clipped(value_words(event.data, width))
    found = SENTENCES.get(event.name)
    if found is not None:
        return found.short(event, partial(_id_or_value, width=width))
    return _fields(event, partial(_id_or_value, width=width))


def _id_or_value(value: Any, width: int) -> str:
    """Return a value in words; what would be a shortened address or id has its label before it."""
    if isinstance(value, bytes) and width < WIDE and labels_in_use().get(value):
        return labels_in_use().short(value)
    return value_words(value, width)


def _fields(event: Event, shown: Shown) -> str:
    return ", ".join(f"{name} {shown(value)}" for name, value in event.data.items() if name != "timer_id")


def _scheduled(it: Occurrence) -> str:
    facts = it.facts
    when, last = f"for height {facts['height']}", f"expires after {facts['expires_at']}"
    if "max_fee_per_cycle" in facts:
        tip = facts["max_priority_fee_per_cycle"]
        last += f", offers up to {facts['max_fee_per_cycle']:,} a cycle in the timer lane, {tip:,} of it as a tip"
    calls = f"calls {facts['handler']}"
    if "gba" in facts:
        until = "never expires" if facts["expires_at"] == U64_MAX else last
        last = f"{until}, its agent {Address(facts['gba'])} bids for it"
    if "target" in facts:
        when = "to watch the state" if facts["kind"] == Trigger.STATE_WATCH else when
        calls += f" of {Address(facts['target'])}"
        last += f", {bid_words(facts['bid'])}"
    return (
        f"scheduled by {_who(it.receipt)} {when}: {calls} with at most {facts['gas_limit']:,} cycles, paid by "
        f"{Address(facts['fee_payer'])}, {last}"
    )


def _who(receipt: ReceiptRecord | None) -> str:
    if receipt is None:
        return "the chain"
    if receipt.timer_id:
        return f"the fire of timer {Hash32(receipt.timer_id)}"
    return f"a {receipt.origin.value} of {Address(receipt.sender)}"


def _scheduled_short(event: Event, shown: Shown) -> str:
    facts, whose = event.data, ""
    when = f"for height {facts['height']}"
    if "target" in facts:
        when = when if facts["kind"] == Trigger.HEIGHT else f"watches up to {facts['expires_at']}"
        whose = "" if facts["target"] == event.emitter else f" of {shown(facts['target'])}"
    offer = ""
    if "max_fee_per_cycle" in facts:
        offer = f", max fee {facts['max_fee_per_cycle']:,}, tip {facts['max_priority_fee_per_cycle']:,}"
    if "bid" in facts:
        offer = f", bid {format_bid(bid_of(facts['bid']))}"
    if "gba" in facts:
        offer = f", bids through {shown(facts['gba'])}"
    return (
        f"{when}, calls {facts['handler']}{whose}, at most {facts['gas_limit']:,} cycles{offer}{_payer(event, shown)}"
    )


def _payer(event: Event, shown: Shown) -> str:
    """Return who pays, if that is not the actor."""
    payer = event.data["fee_payer"]
    return "" if payer == event.emitter else f", paid by {shown(payer)}"


def _fired(it: Occurrence) -> str:
    facts, record, how = it.facts, it.block.decisions, "fired"
    if it.receipt is not None and it.receipt.error is not None:
        how = f"fired and reverted ({failure_words(it.receipt.error)})"
    order = Order.DUE if record is None else record.order
    place = "" if record is None else _place(record, facts["timer_id"])
    blocks = facts["blocks_deferred"]
    waited = f", after {counted(blocks, 'deferred block')}" if blocks else ""
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
    weight = decimal_text(found.weight, 1)
    return f" at rank {found.rank}{among} with a tip of {found.tip:,} a cycle and {called} {weight}"


def _fired_short(event: Event, shown: Shown) -> str:
    facts = event.data
    how = "reverted, " if facts["reverted"] else ""
    tip = f", {format_cby(facts['tip'])} as tip" if facts["tip"] else ""
    used = f"{facts['cycles_used']:,} cycles, {facts['cells_used']:,} cells"
    return f"{how}{used}, {format_cby(facts['fee_paid'])} CBY{tip}{_payer(event, shown)}"


def _deferred(it: Occurrence) -> str:
    facts = it.facts
    why = DEFERRALS.get(facts["reason"], TO_BE_REMOVED).format_map(facts)
    return f"due at {facts['height']}, deferred ({facts['reason']}): {why}"


def _cancelled(by: str, it: Occurrence) -> str:
    refund = it.facts["refund"]
    back = f"; its pre-charge of {format_cby(refund)} CBY returned to the payer" if refund else ""
    return f"cancelled by {by}{back}"


def _unfunded(it: Occurrence) -> str:
    facts = it.facts
    return (
        f"removed without running: a fire costs up to {format_cby(facts['required'])} CBY and its payer "
        f"{Address(facts['fee_payer'])} held {format_cby(facts['available'])} CBY"
    )


def _unfunded_short(event: Event, _: Shown) -> str:
    needed, held = format_cby(event.data["required"]), format_cby(event.data["available"])
    return f"a fire costs up to {needed} CBY, its payer held {held}"


def _extended(by: str, it: Occurrence) -> str:
    return f"extended by {by}: may now fire up to height {it.facts['expires_at']}"


def _fallback(it: Occurrence) -> str:
    facts, record = it.facts, it.block.decisions
    if facts["reason"] == BUDGET_SPENT:
        return "the default agent's fees in this block: the block's budget for questions was spent before its own agent"
    is_asked_again = record is not None and record.order is Order.TIP
    since = "until it is asked again" if is_asked_again else "from now on"
    who = f"its agent {Address(facts['agent'])}" if facts["agent"] else "its actor"
    what = FALLBACKS.get(facts["reason"], f"ended with {facts['reason']}")
    failures = () if record is None else record.agent_failures
    why = next((f" ({failure.what})" for failure in failures if failure.timer_id == facts["timer_id"]), "")
    return f"the default agent's fees {since}: {who} {what}{why}"


def _fallback_short(event: Event, shown: Shown) -> str:
    agent = f", agent {shown(event.data['agent'])}" if event.data["agent"] else ""
    return f"bids as the default agent: {event.data['reason']}{agent}"


def _clamped(it: Occurrence) -> str:
    stated, clamped = it.facts["stated"], it.facts["clamped"]
    held = f"its priority fee of {stated:,} a cycle is held at {clamped:,}"
    return f"{held}: its max_fee leaves no more above the lane basefee"


def _parameter(event: Event, _: Shown) -> str:
    facts: Mapping[str, Any] = event.data
    path = ".".join((GOVERNED | EPOCHAL).get(facts["key"], (words(facts["key"]),)))
    since = f" from height {facts['height']} on" if "height" in facts else ""
    return f"{path} is {facts['value']:,}{since}"


def _balance(event: Event, shown: Shown) -> str:
    facts = event.data
    before, after = format_cby(facts["before"]), format_cby(facts["after"])
    return f"{shown(facts['account'])} holds {after} CBY, {before} before"


def _call_words(facts: Mapping[str, Any], shown: Shown) -> str:
    return f"call of {facts['handler']} of {shown(facts['target'])}"


def mock_words(facts: Mapping[str, Any], shown: Shown) -> str:
    """Return in words which calls a mock answers, how and how often."""
    calls = "" if facts["payload"] is None else f" with {words(facts['payload'])}"
    fails = facts["reverts"] is not None
    answer = f"fails: {facts['reverts']}" if fails else f"returns {words(facts['returns'])}"
    often = "" if facts["times"] is None else f", {counted(facts['times'], 'time')}"
    return f"{_call_words(facts, shown)}{calls} {answer}{often}"


SENTENCES: Final[Mapping[str, Sentence]] = MappingProxyType(
    {
        names.TIMER_SCHEDULED: Sentence(_scheduled_short, _scheduled),
        names.TIMER_FIRED: Sentence(_fired_short, _fired, StepKind.RAN),
        names.TIMER_DEFERRED: Sentence(
            lambda event, _: f"due at {event.data['height']}, waits: {event.data['reason']}", _deferred, StepKind.WAITS
        ),
        names.TIMER_UNFUNDED: Sentence(_unfunded_short, _unfunded, StepKind.UNFUNDED),
        names.TIMER_EXPIRED: Sentence(
            lambda event, _: f"could fire up to {event.data['expires_at']}",
            lambda it: (
                f"expired: it could fire up to height {it.facts['expires_at']}, this is {it.facts['current_height']}"
            ),
            StepKind.EXPIRED,
        ),
        names.TIMER_EXTENDED: Sentence(_fields, partial(_extended, "its actor")),
        names.TIMER_EXTENDED_BY_GOVERNANCE: Sentence(_fields, partial(_extended, "governance")),
        names.TIMER_CANCELLED: Sentence(_fields, partial(_cancelled, "its actor")),
        names.TIMER_CANCELLED_BY_GOVERNANCE: Sentence(_fields, partial(_cancelled, "governance")),
        names.TIMER_MOVED: Sentence(
            lambda event, _: f"from height {event.data['from_height']} to {event.data['height']}",
            lambda it: (
                f"moved from height {it.facts['from_height']} to {it.facts['height']}, as only a development chain does"
            ),
        ),
        names.TIMER_PRIORITY_CLAMPED: Sentence(
            lambda event, _: (
                f"priority {event.data['stated']:,} a cycle held at {event.data['clamped']:,}, all that its max_fee "
                "leaves"
            ),
            _clamped,
        ),
        names.TIMER_ARGUMENT_DEPRECATED: Sentence(
            lambda event, _: f"{event.data['argument']} has no effect",
            lambda it: (
                f"{it.facts['argument']} is ignored, it has no effect; once the timer lane is active, scheduling with "
                "it is refused"
            ),
        ),
        names.LANE_ACTIVATED: Sentence(
            lambda event, _: (
                f"the timer lane begins at height {event.data['height']}, lane basefee {event.data['basefee']:,}"
            ),
            lambda it: f"the timer lane begins: from {it.facts['height']} on it competes there once it is due",
        ),
        names.AGENT_SET: Sentence(
            lambda event, shown: (
                f"bids through {shown(event.data['agent'])}" if event.data["agent"] else "has no agent any more"
            )
        ),
        names.AGENT_FALLBACK: Sentence(_fallback_short, _fallback),
        names.PARAMETER_SET: Sentence(_parameter),
        names.BALANCE_SET: Sentence(_balance),
        names.STORAGE_SET: Sentence(
            lambda event, shown: (
                f"{shown(event.data['actor'])} has no slot {words(event.data['slot'])} any more"
                if event.data["value"] is None
                else f"slot {words(event.data['slot'])} of {shown(event.data['actor'])} is {words(event.data['value'])}"
            )
        ),
        names.CODE_SET: Sentence(
            lambda event, shown: f"{shown(event.data['account'])} runs the code {shown(event.data['code_hash'])}"
        ),
        names.MOCK_SET: Sentence(lambda event, shown: mock_words(event.data, shown)),
        names.MOCKS_CLEARED: Sentence(lambda event, _: f"{counted(event.data['count'], 'mock')} removed"),
        names.CALL_MOCKED: Sentence(
            lambda event, shown: f"{'' if event.data['ok'] else 'failed '}{_call_words(event.data, shown)} is mocked",
            lambda it: (
                f"its call of {it.facts['handler']} of {Address(it.facts['target'])} "
                f"{'is answered' if it.facts['ok'] else 'fails'} by a mock, as only a development chain does"
            ),
        ),
    }
    | dict(MECHANISM_SENTENCES)
)
"""What each event says, by its name; of others the fields are shown."""
