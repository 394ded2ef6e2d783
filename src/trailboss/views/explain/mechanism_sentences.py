"""What an event that only the auction or Globalbox has tells, in sentences."""

from typing import Any, Final

from trailboss.model import events as names
from trailboss.model.blocks import Block, ReceiptRecord
from trailboss.model.decisions import DecisionRecord
from trailboss.model.globalbox import FRACTION_BITS, bid_of
from trailboss.model.terms import Trigger
from trailboss.primitives.octets import Address
from trailboss.primitives.units import format_cby
from trailboss.views.mechanism.globalbox_records import key_words

DELAYS: Final = {
    "event": "nothing else follows from it",
    "front": "from now on it goes before all that are not late, by due order",
    "cancel": "it is to be cancelled",
}
"""What follows from a timer's being late, by the action that the event gives. Decision: D-19."""


def mechanism_story(name: str, facts: dict[str, Any], block: Block, receipt: ReceiptRecord | None) -> str:
    """Return what happened to a late timer of the auction, or to a fire in Globalbox and its mailbox.

    Spec: overview, CIP-5old §8, CIP-5old §9, CIP-5old §10

    Args:
        name: The event's name.
        facts: Its fields.
        block: In which it happened.
        receipt: Of the execution that it is part of; None for the block's own events.
    """
    match name:
        case names.TIMER_DELAYED:
            blocks = f"{facts['delay_count']:,} block{'' if facts['delay_count'] == 1 else 's'}"
            return f"late, it has waited for {blocks}: {DELAYS.get(facts['action'], facts['action'])}"
        case names.TIMER_CANCELLED_BY_DELAY:
            return f"cancelled without running, as it was late: {format_cby(facts['penalty'])} CBY of its owner burned"
        case names.TIMER_UPDATED:
            return (
                f"updated: later fires have a payload of {facts['payload_size']:,} bytes, at most "
                f"{facts['gas_limit']:,} cycles and {bid_words(facts['bid'])}"
            )
        case names.TIMER_QUEUED:
            return (
                f"fire {facts['fire_seq']} enters Globalbox{_queue_words(block.decisions, facts)}: its age counts from "
                f"height {facts['hit_height']}"
            )
        case names.TIMER_MATERIALIZED:
            return (
                f"fire {facts['fire_seq']} leaves Globalbox for the mailbox, as delivery {facts['deliver_seq']}, and "
                f"{format_cby(facts['reserved'])} CBY are taken for it"
            )
        case names.TIMER_FIRE_RECEIPT:
            return _delivery(facts, receipt)
        case _:
            return f"{name} in block {block.height}"


def bid_words(bid: bytes) -> str:
    """Return a bid of Globalbox in words; its whole part is the tip. Decision: D-63."""
    whole, fraction = divmod(bid_of(bid), 1 << FRACTION_BITS)
    return f"a bid of {whole:,} a cycle{' and a fraction' if fraction else ''}"


def _queue_words(record: DecisionRecord | None, facts: dict[str, Any]) -> str:
    """Return how many of the fires that a block queued came before one of them, if the record names it."""
    items = () if record is None else record.decided
    same = (item for item in items if item.timer_id == facts["timer_id"] and item.fire_seq == facts["fire_seq"])
    found = next((item for item in same if item.outcome == "enqueue"), None)
    if found is None or record is None:
        return ""
    return f" as number {found.rank:,} of the block's, {record.queued:,} stand there after it"


def _delivery(facts: dict[str, Any], receipt: ReceiptRecord | None) -> str:
    how = "runs"
    if receipt is not None and receipt.error is not None:
        how = f"runs and reverts (E{receipt.error.code} {receipt.error.slug}: {receipt.error.what})"
    why = f"height {facts['due_height']}"
    if facts["kind"] == Trigger.STATE_WATCH:
        why = "a change of " + ", ".join(map(key_words, facts["matched_keys"]))
    paid = ""
    if receipt is not None and facts["kind"] == Trigger.STATE_WATCH:
        paid = f", {format_cby(receipt.fee_burned + receipt.tip)} CBY of {Address(receipt.payer)}"
    return (
        f"fire {facts['fire_seq']} {how} as delivery {facts['deliver_seq']}, at {Address(facts['target'])}, because of "
        f"{why}: {facts['cycles_used']:,} cycles{paid}"
    )
