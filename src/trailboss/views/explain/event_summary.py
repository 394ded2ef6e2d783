"""Events in words, short enough for a table."""

from collections.abc import Mapping
from typing import Any, Final

from trailboss.governance.rules import EPOCHAL, GOVERNED
from trailboss.model import events as names
from trailboss.model.globalbox import bid_of, format_bid
from trailboss.model.terms import Trigger
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import format_cby
from trailboss.views.records import Event
from trailboss.views.text import SHORT_DIGITS, clipped, words

WIDE: Final = 180
"""Columns from which on ids within a text are told in full."""


def event_words(event: Event, width: int) -> str:
    """Return a whole event in words, for a terminal of so many columns."""
    timer = f" {_id_words(event.timer_id, width)}" if event.timer_id else ""
    return f"{event.name}{timer}: {data_words(event, width)}".removesuffix(": ")


def data_words(event: Event, width: int) -> str:
    """Return what an event says besides its name and its timer, in words."""
    facts = event.data
    if isinstance(facts, dict) and event.name in names.PROTOCOL_TOPICS:
        return _protocol_words(event, facts, width)
    return clipped(value_words(facts, width))


def _protocol_words(event: Event, facts: Mapping[str, Any], width: int) -> str:
    match event.name:
        case names.TIMER_SCHEDULED:
            return _scheduling_words(event, facts, width)
        case names.TIMER_FIRED:
            how = "reverted, " if facts["reverted"] else ""
            used = f"{facts['cycles_used']:,} cycles, {facts['cells_used']:,} cells"
            tip = f", {format_cby(facts['tip'])} as tip" if facts["tip"] else ""
            return f"{how}{used}, {format_cby(facts['fee_paid'])} CBY{tip}{_payer_words(event, facts, width)}"
        case names.TIMER_DEFERRED:
            return f"due at {facts['height']}, waits: {facts['reason']}"
        case names.TIMER_UNFUNDED:
            needed, held = format_cby(facts["required"]), format_cby(facts["available"])
            return f"a fire costs up to {needed} CBY, its payer held {held}"
        case names.TIMER_EXPIRED:
            return f"could fire up to {facts['expires_at']}"
        case names.TIMER_PRIORITY_CLAMPED:
            return f"priority {facts['stated']:,} a cycle held at {facts['clamped']:,}, all that its max_fee leaves"
        case names.TIMER_ARGUMENT_DEPRECATED:
            return f"{facts['argument']} has no effect"
        case names.PARAMETER_SET:
            path = ".".join((GOVERNED | EPOCHAL).get(facts["key"], (words(facts["key"]),)))
            since = f" from height {facts['height']} on" if "height" in facts else ""
            return f"{path} is {facts['value']:,}{since}"
        case names.LANE_ACTIVATED:
            return f"the timer lane begins at height {facts['height']}, lane basefee {facts['basefee']:,}"
        case names.AGENT_SET:
            return f"bids through {value_words(facts['agent'], width)}" if facts["agent"] else "has no agent any more"
        case names.AGENT_FALLBACK:
            agent = f", agent {value_words(facts['agent'], width)}" if facts["agent"] else ""
            return f"bids as the default agent: {facts['reason']}{agent}"
        case _:
            return _mechanism_words(event.name, facts, width)


def _mechanism_words(name: str, facts: Mapping[str, Any], width: int) -> str:
    """Return what an event of the auction, of Globalbox or of a development chain says, or one that has no rule."""
    match name:
        case names.TIMER_MOVED:
            return f"from height {facts['from_height']} to {facts['height']}"
        case names.BALANCE_SET:
            account, before = value_words(facts["account"], width), format_cby(facts["before"])
            return f"{account} holds {format_cby(facts['after'])} CBY, {before} before"
        case names.TIMER_DELAYED:
            return f"late by {facts['delay_count']:,} blocks: {facts['action']}"
        case names.TIMER_CANCELLED_BY_DELAY:
            return f"too late, {format_cby(facts['penalty'])} CBY burned"
        case names.TIMER_QUEUED:
            return f"fire {facts['fire_seq']} in Globalbox, its age counts from {facts['hit_height']}"
        case names.TIMER_MATERIALIZED:
            target = value_words(facts["target"], width)
            return f"fire {facts['fire_seq']} in the mailbox as {facts['deliver_seq']}, for {target}"
        case names.TIMER_UPDATED:
            return (
                f"payload {facts['payload_size']:,} bytes, at most {facts['gas_limit']:,} cycles, bid "
                f"{format_bid(bid_of(facts['bid']))}"
            )
        case names.TIMER_FIRE_RECEIPT:
            keys = len(facts["matched_keys"])
            why = f"{keys:,} changed key{'' if keys == 1 else 's'}" if keys else f"height {facts['due_height']}"
            how = "" if facts["status"] == "ok" else f"{facts['status']}, "
            target = value_words(facts["target"], width)
            return (
                f"{how}fire {facts['fire_seq']} as {facts['deliver_seq']} at {target}, {why}, "
                f"{facts['cycles_used']:,} cycles"
            )
        case _:
            rest = {name: value for name, value in facts.items() if name != "timer_id"}
            return ", ".join(f"{name} {value_words(value, width)}" for name, value in rest.items())


def _scheduling_words(event: Event, facts: Mapping[str, Any], width: int) -> str:
    when, whose = f"for height {facts['height']}", ""
    if "target" in facts:
        when = when if facts["kind"] == Trigger.HEIGHT else f"watches up to {facts['expires_at']}"
        whose = "" if facts["target"] == event.emitter else f" of {value_words(facts['target'], width)}"
    offer = _offer_words(facts)
    if "bid" in facts:
        offer = f", bid {format_bid(bid_of(facts['bid']))}"
    if "gba" in facts:
        offer = f", bids through {value_words(facts['gba'], width)}"
    return (
        f"{when}, calls {facts['handler']}{whose}, at most {facts['gas_limit']:,} cycles{offer}"
        f"{_payer_words(event, facts, width)}"
    )


def _offer_words(facts: Mapping[str, Any]) -> str:
    """Return the two fees of a timer that carries them. Spec: CIP-1v3 §6."""
    if "max_fee_per_cycle" not in facts:
        return ""
    return f", max fee {facts['max_fee_per_cycle']:,}, tip {facts['max_priority_fee_per_cycle']:,}"


def _payer_words(event: Event, facts: Mapping[str, Any], width: int) -> str:
    """Return who pays, if that is somebody else than the actor."""
    payer = facts["fee_payer"]
    return "" if payer == event.emitter else f", paid by {_id_words(Address(payer), width)}"


def value_words(value: Any, width: int) -> str:
    """Return a value: addresses and hashes as such, other bytes as text if they are text."""
    if isinstance(value, bytes):
        kinds: dict[int, type[Address | Hash32]] = {Address.WIDTH: Address, Hash32.WIDTH: Hash32}
        kind = kinds.get(len(value))
        return words(value) if kind is None else _id_words(kind(value), width)
    if isinstance(value, dict):
        return ", ".join(f"{value_words(name, width)} {value_words(item, width)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(value_words(item, width) for item in value)
    return str(value)


def _id_words(found: Address | Hash32, width: int) -> str:
    text = str(found)
    return text if width >= WIDE else f"{text[: 2 + SHORT_DIGITS]}…"
