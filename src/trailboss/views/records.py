"""What people look at: receipts, events and timers with their bytes turned into words."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.chain.auction_views import AuctionTimer, auction_timer
from trailboss.chain.globalbox_views import GlobalboxTimer, globalbox_timer
from trailboss.codec.canonical import decode_canonical
from trailboss.governance.rules import Rules
from trailboss.model.blocks import Block, ReceiptRecord
from trailboss.model.events import EventRecord
from trailboss.model.printed import PrintedLine
from trailboss.model.terms import AuctionTerms, GlobalboxTerms, Trigger
from trailboss.model.timers import Timer, asks_agent
from trailboss.primitives.errors import ErrorObject, Rejection
from trailboss.primitives.octets import Address, Hash32

FROZEN_FEES: Final = "frozen"
AGENT_FEES: Final = "agent"
DEFAULT_FEES: Final = "default"
STANDING_FEES: Final = "standing"
BID_FEES: Final = "bid"


class Event(Struct, frozen=True):
    """One event.

    Attributes:
        name: Topic.
        emitter: The actor, or the system actor that speaks for the protocol.
        data: The fields by name, for the chain's own events and for an actor's that are canonical CBOR of a map, a list
            or text; else the bytes.
        raw: The bytes that the receipts root commits to.
        block_height: Height of its block.
        timer_id: The timer it is about, or else the one in whose fire a handler emitted it; None for neither.
    """

    name: str
    emitter: Address
    data: Any
    raw: bytes
    block_height: int
    timer_id: Hash32 | None


class Printed(Struct, frozen=True):
    """A line that an actor has printed, or a warning about what it did; outside consensus. Decision: D-89.

    Attributes:
        actor: Whose handler ran.
        handler: Which of its handlers.
        text: The line.
        is_warning: Whether the chain says it, not the actor.
        block_height: Height of the block in which it ran; of a read-only call, of the block after which it ran.
    """

    actor: Address
    handler: str
    text: str
    is_warning: bool
    block_height: int

    def __str__(self) -> str:
        mark = "warning: " if self.is_warning else ""
        return f"block {self.block_height}, {self.actor} {self.handler}: {mark}{self.text}"


class Receipt(Struct, frozen=True):
    """What one execution did and cost. Amounts are base units.

    Attributes:
        status: ``ok``, ``reverted`` (rolled back and charged) or ``refused`` (never in a block, nothing changed).
        error: Why it did not end well; None when ok.
        cycles_used: Cycles used.
        cells_used: Cells used.
        fee_paid: Burned plus tip.
        fee_burned: Burned.
        tip: To the proposer.
        refund: Given back of what was reserved.
        return_value: What the handler returned.
        events: In order.
        block_height: Height of its block; for a refusal of the block it was refused from.
        origin: ``transaction``, ``timer`` or ``message``.
        timer_id: The timer that fired, if one did.
        actor: The actor that ran or was made, if one did.
        payer: Who paid.
        printed: What actors have printed meanwhile, and the chain's warnings about it. Decision: D-89.
    """

    status: str
    error: ErrorObject | None
    cycles_used: int
    cells_used: int
    fee_paid: int
    fee_burned: int
    tip: int
    refund: int
    return_value: bytes
    events: tuple[Event, ...]
    block_height: int
    origin: str
    timer_id: Hash32 | None
    actor: Address | None
    payer: Address
    printed: tuple[Printed, ...]

    @property
    def ok(self) -> bool:
        """Whether it ended well."""
        return self.status == "ok"


class Answer(Struct, frozen=True):
    """What a read-only call came to. Nothing changed and nobody paid.

    Attributes:
        return_value: What the handler returned; empty on failure.
        error: Why it did not end well; None when ok.
        cycles_used: Cycles the same frame uses in a block.
        cells_used: Cells the same frame uses in a block.
        printed: What actors have printed meanwhile.
    """

    return_value: bytes
    error: ErrorObject | None
    cycles_used: int
    cells_used: int
    printed: tuple[Printed, ...]

    @property
    def ok(self) -> bool:
        """Whether it ended well."""
        return self.error is None


class TimerView(Struct, frozen=True):
    """A live timer.

    Attributes:
        timer_id: Its id.
        actor: Owner.
        height: At which it is due.
        handler: That it calls.
        payload: That the handler gets.
        fee_payer: Who pays.
        gas_limit: Cycles a fire may use.
        access_limit: As given; 0 for none.
        expires_at: Last height at which it may fire.
        sequence: Place in the order of insertion.
        schedule_block: Height of the block that scheduled it.
        tier: ``ring``, ``epoch`` or ``overflow``; ``due`` once its height has passed.
        deferrals: Blocks that have deferred it so far.
        deferred_for: What it was last told to wait for, or None.
        will_expire_unfired: Whether it expires before it is due, unless extended.
        fees: Where its fees come from: in the timer lane ``frozen`` when it was scheduled, an ``agent``, its actor's or
            its own, or the ``default`` of each block (D-16); in the auction its ``agent``, then the ``standing`` bid
            that this gave last (D-57); in Globalbox its ``bid`` (D-63).
        max_fee_per_cycle: Cap of lane basefee and tip together, in the auction of cycle basefee and tip, base units;
            None unless frozen or standing.
        max_priority_fee_per_cycle: Cap of the tip, base units; None likewise.
        gas_bidding_agent: Agent that prices this timer, if it names one; None if its actor's does, or none. Decision:
            D-86.
        over_cap: Whether the timer lane is active and sets it aside for its gas limit. Decision: D-13.
        priced_out: Whether its cap lies below the present lane basefee (D-14), in the auction below the cycle basefee,
            or its cap for a cell below the cell basefee.
        auction: What the auction keeps with it; None under another mechanism.
        globalbox: What Globalbox keeps with it; None under another mechanism.
    """

    timer_id: Hash32
    actor: Address
    height: int
    handler: str
    payload: bytes
    fee_payer: Address
    gas_limit: int
    access_limit: int
    expires_at: int
    sequence: int
    schedule_block: int
    tier: str
    deferrals: int
    deferred_for: str | None
    will_expire_unfired: bool
    fees: str = DEFAULT_FEES
    max_fee_per_cycle: int | None = None
    max_priority_fee_per_cycle: int | None = None
    gas_bidding_agent: Address | None = None
    over_cap: bool = False
    priced_out: bool = False
    auction: AuctionTimer | None = None
    globalbox: GlobalboxTimer | None = None


def event_view(event: EventRecord, height: int) -> Event:
    """Return one event as people see it."""
    try:
        content: Any = decode_canonical(event.data)
    except Rejection:
        content = event.data
    # Almost any byte alone is canonical CBOR of some number, so a decoded number says nothing about what was meant.
    if not isinstance(content, dict | list | str):
        content = event.data
    timer_id = Hash32(event.timer_id) if event.timer_id else None
    return Event(event.name, Address(event.emitter), content, event.data, height, timer_id)


def receipt_view(receipt: ReceiptRecord, height: int) -> Receipt:
    """Return one receipt as people see it."""
    return Receipt(
        status=receipt.status.value,
        error=receipt.error,
        cycles_used=receipt.cycles_used,
        cells_used=receipt.cells_used,
        fee_paid=receipt.fee_paid,
        fee_burned=receipt.fee_burned,
        tip=receipt.tip,
        refund=receipt.refund,
        return_value=receipt.return_value,
        events=tuple(event_view(event, height) for event in receipt_events(receipt)),
        block_height=height,
        origin=receipt.origin.value,
        timer_id=Hash32(receipt.timer_id) if receipt.timer_id else None,
        actor=Address(receipt.actor) if receipt.actor else None,
        payer=Address(receipt.payer),
        printed=printed_views(receipt.printed, height),
    )


def printed_views(lines: Iterable[PrintedLine], height: int) -> tuple[Printed, ...]:
    """Return printed lines as people see them."""
    return tuple(Printed(Address(line.actor), line.handler, line.text, line.is_warning, height) for line in lines)


def block_prints(block: Block) -> tuple[Printed, ...]:
    """Return all that was printed in a block: in the order of its receipts, and what gas bidding agents printed."""
    lines = (line for receipt in block.receipts for line in receipt.printed)
    return printed_views(chain(lines, block.printed), block.height)


def refusal_view(rejection: Rejection, sender: Address, height: int) -> Receipt:
    """Return the receipt of a transaction that no block holds."""
    return refused_receipt(rejection.error(), sender, height)


def refused_receipt(error: ErrorObject, sender: Address, height: int) -> Receipt:
    """Return the receipt of a transaction that was refused for a reason, as far as a block of that height goes."""
    return Receipt(
        status="refused",
        error=error,
        cycles_used=0,
        cells_used=0,
        fee_paid=0,
        fee_burned=0,
        tip=0,
        refund=0,
        return_value=b"",
        events=(),
        block_height=height,
        origin="transaction",
        timer_id=None,
        actor=None,
        payer=sender,
        printed=(),
    )


def timer_view(timer: Timer, tier: str, rules: Rules) -> TimerView:
    """Return one live timer as people see it.

    Args:
        timer: Its record.
        tier: That its height calls for.
        rules: Those of the next block.
    """
    now, lane, terms = rules.height - 1, rules.lane, timer.terms
    max_fee, max_priority_fee = timer.frozen_fees() or (None, None)
    is_watch = isinstance(terms, GlobalboxTerms) and terms.kind is Trigger.STATE_WATCH
    return TimerView(
        timer_id=Hash32(timer.timer_id),
        actor=Address(timer.actor),
        height=timer.height,
        handler=timer.handler,
        payload=timer.payload,
        fee_payer=Address(timer.fee_payer),
        gas_limit=timer.gas_limit,
        access_limit=timer.access_limit,
        expires_at=timer.expires_at,
        sequence=timer.sequence,
        schedule_block=timer.schedule_block,
        tier="due" if timer.height <= now else tier,
        deferrals=max(0, now - timer.height + 1),
        deferred_for=timer.deferred_for or None,
        # A state watch stands in the calendar one block after its expiry.
        will_expire_unfired=timer.expires_at < timer.height and not is_watch,
        fees=_fee_words(timer),
        max_fee_per_cycle=max_fee,
        max_priority_fee_per_cycle=max_priority_fee,
        gas_bidding_agent=Address(timer.own_agent) if timer.own_agent else None,
        over_cap=lane is not None
        and lane_gas_limit(rules, timer.gas_limit, timer.schedule_block) > lane.max_cycles_per_fire,
        priced_out=_is_priced_out(timer, rules),
        auction=auction_timer(timer, terms, now) if isinstance(terms, AuctionTerms) else None,
        globalbox=globalbox_timer(timer, terms) if isinstance(terms, GlobalboxTerms) else None,
    )


def _fee_words(timer: Timer) -> str:
    if isinstance(timer.terms, GlobalboxTerms):
        return BID_FEES
    if timer.frozen_fees() is not None:
        return STANDING_FEES if isinstance(timer.terms, AuctionTerms) else FROZEN_FEES
    return AGENT_FEES if asks_agent(timer.fees) else DEFAULT_FEES


def _is_priced_out(timer: Timer, rules: Rules) -> bool:
    fees, cell_fees = timer.frozen_fees(), timer.cell_fees()
    is_short = cell_fees is not None and cell_fees[0] < rules.timer_basefees()[1]
    return is_short or (fees is not None and fees[0] < floor_of(rules))


def floor_of(rules: Rules) -> int:
    """Return what a timer's max_fee_per_cycle must reach for it to be ranked; 0 where nothing is priced out.

    Spec: CIP-1v3 §3, CIP-1v1 §3
    """
    if rules.lane is not None:
        return rules.lane.basefee
    return 0 if rules.auction is None else rules.timer_basefees()[0]


def lane_cap(rules: Rules) -> int:
    """Return the cycles that one fire may use in the timer lane, active or not. Spec: CIP-1v3 §10."""
    return min(rules.params.lane.max_cycles_per_fire, rules.params.timers.lane_cycles_per_block)


def lane_gas_limit(rules: Rules, gas_limit: int, schedule_block: int) -> int:
    """Return the gas limit that a timer has in the lane: governance may hold older ones to the cap. Decision: D-13."""
    is_older = schedule_block < rules.params.lane.activation_height
    return min(gas_limit, lane_cap(rules)) if is_older and rules.params.lane.clamps_gas_limit else gas_limit


def events_of(block: Block, name: str | None = None) -> Iterator[Event]:
    """Yield the events of a block as people see them, in order; with a name only those."""
    for record in block_events(block):
        if name is None or record.name == name:
            yield event_view(record, block.height)


def block_events(block: Block) -> Iterator[EventRecord]:
    """Yield every event of a block: those of its receipts in order, then the block's own; see `receipt_events`."""
    for receipt in block.receipts:
        yield from receipt_events(receipt)
    yield from block.events


def receipt_events(receipt: ReceiptRecord) -> Iterator[EventRecord]:
    """Yield the events of a receipt: in a fire, one that is about no timer is given the timer that fires."""
    for event in receipt.events:
        yield replace(event, timer_id=receipt.timer_id) if receipt.timer_id and not event.timer_id else event
