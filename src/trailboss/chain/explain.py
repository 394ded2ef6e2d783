"""A timer's whole life, and why each decision fell as it did."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trailboss.chain.chain import Chain
from trailboss.chain.views import Event, block_events, event_view
from trailboss.fees.settlement import Prices, max_cost
from trailboss.model import events as names
from trailboss.model.blocks import Block, ReceiptRecord
from trailboss.model.timers import DeferralReason, Timer
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import format_cby


@dataclass(frozen=True, slots=True)
class LifeStep:
    """One thing that happened to a timer.

    Attributes:
        block_height: When.
        event: The event that tells of it.
        story: What happened and why, in words.
    """

    block_height: int
    event: Event
    story: str


@dataclass(frozen=True, slots=True)
class TimerLife:
    """A timer's life so far.

    Attributes:
        timer_id: Its id.
        state: ``live``, or how it ended: ``fired``, ``unfunded``, ``expired``, ``cancelled``.
        steps: What happened, oldest first.
        outlook: For a live timer what comes next as things stand, else empty.
    """

    timer_id: Hash32
    state: str
    steps: tuple[LifeStep, ...]
    outlook: str

    def __str__(self) -> str:
        lines = [f"timer {self.timer_id}: {self.state}"]
        lines.extend(f"  block {step.block_height}: {step.story}" for step in self.steps)
        if self.outlook:
            lines.append(f"  next: {self.outlook}")
        return "\n".join(lines)


def explain_timer(chain: Chain, timer_id: bytes) -> TimerLife:
    """Tell a timer's life.

    Complexity: O(blocks that hold something) since it was scheduled for a live timer, since genesis for another.

    Raises:
        Rejection: ``NOT_FOUND`` if no block of this chain ever scheduled it.
    """
    timer = chain.timer(timer_id)
    start = 0 if timer is None else timer.schedule_block
    steps: list[LifeStep] = []
    state = "live"
    for block in chain.blocks.eventful(start):
        for record, receipt in _events_about(block, timer_id):
            event = event_view(record, block.height)
            steps.append(LifeStep(block.height, event, _story(event.name, event.data, block, receipt)))
            state = names.TIMER_ENDINGS.get(record.name, state)
    if not steps:
        raise Rejection(
            RejectionReason.NOT_FOUND,
            f"no block of this chain scheduled timer 0x{timer_id.hex()}",
            timer_id=timer_id.hex(),
        )
    outlook = "" if timer is None else _outlook(chain, timer)
    return TimerLife(Hash32(timer_id), state, tuple(steps), outlook)


def _events_about(block: Block, timer_id: bytes) -> Iterator[tuple[Any, ReceiptRecord | None]]:
    for receipt in block.receipts:
        for record in receipt.events:
            if record.timer_id == timer_id:
                yield record, receipt
    for record in block.events:
        if record.timer_id == timer_id:
            yield record, None


def _story(name: str, facts: dict[str, Any], block: Block, receipt: ReceiptRecord | None) -> str:
    match name:
        case names.TIMER_SCHEDULED:
            return (
                f"scheduled by {_who(receipt)} for height {facts['height']}: calls {facts['handler']} with at "
                f"most {facts['gas_limit']:,} cycles, paid by {Address(facts['fee_payer'])}, expires after "
                f"{facts['expires_at']}"
            )
        case names.TIMER_DEFERRED:
            return f"due at {facts['height']}, deferred ({facts['reason']}): {_deferral(facts)}"
        case names.TIMER_EXTENDED:
            return f"extended by its actor: may now fire up to height {facts['expires_at']}"
        case names.TIMER_EXTENDED_BY_GOVERNANCE:
            return f"extended by governance: may now fire up to height {facts['expires_at']}"
        case names.TIMER_CANCELLED | names.TIMER_CANCELLED_BY_GOVERNANCE:
            by = "governance" if name == names.TIMER_CANCELLED_BY_GOVERNANCE else "its actor"
            back = (
                f"; its pre-charge of {format_cby(facts['refund'])} CBY returned to the payer"
                if facts["refund"]
                else ""
            )
            return f"cancelled by {by}{back}"
        case names.TIMER_EXPIRED:
            return f"expired: it could fire up to height {facts['expires_at']}, this is {facts['current_height']}"
        case names.TIMER_UNFUNDED:
            return (
                f"removed without running: a fire costs up to {format_cby(facts['required'])} CBY and its payer "
                f"{Address(facts['fee_payer'])} held {format_cby(facts['available'])} CBY"
            )
        case names.TIMER_FIRED:
            return _fire(facts, receipt)
        case _:
            return f"{name} in block {block.height}"


def _who(receipt: ReceiptRecord | None) -> str:
    if receipt is None:
        return "the chain"
    if receipt.timer_id:
        return f"the fire of timer {Hash32(receipt.timer_id)}"
    return f"a {receipt.origin.value} of {Address(receipt.sender)}"


def _deferral(facts: dict[str, Any]) -> str:
    if facts["reason"] == DeferralReason.LANE_FULL:
        return f"its {facts['gas_limit']:,} cycles did not fit what was left of the block's timer lane; it stays due"
    if facts["reason"] == DeferralReason.UNFUNDED:
        return "its payer could not pay; it stays due"
    return "it is to be removed and the block's clean-up budget was spent; it stays due"


def _fire(facts: dict[str, Any], receipt: ReceiptRecord | None) -> str:
    how = "fired"
    if receipt is not None and receipt.error is not None:
        how = f"fired and reverted (E{receipt.error.code} {receipt.error.slug}: {receipt.error.what})"
    waited = f", after {facts['blocks_deferred']} deferred blocks" if facts["blocks_deferred"] else ""
    return (
        f"{how}{waited}: {facts['cycles_used']:,} cycles and {facts['cells_used']:,} cells cost "
        f"{Address(facts['fee_payer'])} {format_cby(facts['fee_paid'])} CBY, {format_cby(facts['refund'])} CBY of the "
        "pre-charge returned"
    )


def _outlook(chain: Chain, timer: Timer) -> str:
    rules = chain.rules()
    when = max(timer.height, chain.height + 1)
    if timer.expires_at < when:
        return f"expires unfired at height {when}: it may fire up to {timer.expires_at} only"
    cost = max_cost(timer.gas_limit, rules.timer.max_cells_per_fire, Prices(*rules.timer_basefees()))
    balance = chain.balance(timer.fee_payer)
    payer = Address(timer.fee_payer)
    money = f"a fire costs up to {format_cby(cost)} CBY, {payer} holds {format_cby(balance)} CBY"
    if balance < cost:
        return f"removed unfunded at height {when} as things stand: {money}"
    waits = f"; it waits because of {timer.deferred_for}" if timer.deferred_for else ""
    return f"fires at height {when} as things stand: {money}{waits}"


def events_since(chain: Chain, since: int = 0, name: str | None = None) -> Iterator[Event]:
    """Yield events from block ``since`` on, inclusive, oldest first; with a name only those."""
    for block in chain.blocks.eventful(since):
        for record in block_events(block):
            if name is None or record.name == name:
                yield event_view(record, block.height)
