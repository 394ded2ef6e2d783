"""What people look at: receipts, events and timers with their bytes turned into words."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.codec.canonical import decode_canonical
from trailboss.model.blocks import Block, ReceiptRecord
from trailboss.model.events import EventRecord
from trailboss.model.printed import PrintedLine
from trailboss.primitives.errors import ErrorObject, Rejection
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.mechanism.auction_records import AuctionTimer
from trailboss.views.mechanism.globalbox_records import GlobalboxTimer

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
    """What a read-only call came to: it changes nothing and costs nothing.

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
        deferred_for: Why it was last deferred, or None.
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

    @property
    def is_watch(self) -> bool:
        """Whether changed keys make it fire, and no height."""
        return self.globalbox is not None and self.globalbox.due_height is None


class TimerEntry(Struct, frozen=True):
    """A timer in a list.

    Attributes:
        timer_id: Its id.
        height: At which it is, or was, due.
        state: ``live``; ``due`` once its height has passed; ``queued`` while a fire of it stands in Globalbox, and
            ``in-mailbox`` while an entry of it waits there; ``deferred`` if it waits for a reason; or how it ended.
        actor: Owner.
        target: Actor whose handler it calls.
        handler: That it calls.
        fee_payer: Who pays.
        gas_limit: Cycles the fire may use.
        expires_at: Last height at which it may fire; of an ended one, as it was scheduled.
        tier: ``ring``, ``epoch`` or ``overflow`` while it is live and not due.
        deferred_for: Why it waits.
        ended_at: Height of the block in which it ended.
        reverted: Whether it ended with a fire that reverted.
        fees: ``frozen``, or ``agent`` or ``default`` for what is known when it is due only; ``standing`` in the auction
            for the last bid of its agent, ``bid`` in Globalbox; None for an ended one without frozen fees.
        max_fee_per_cycle: Cap of lane basefee and tip, in the auction of cycle basefee and tip, base units; None unless
            frozen or standing.
        max_priority_fee_per_cycle: Cap of the tip, base units; None likewise.
        over_cap: Whether the active timer lane sets it aside for its gas limit.
        priced_out: Whether its cap lies below the present basefee of the active timer lane, or of the auction.
        auction: What the auction keeps with a live one; None under another mechanism.
        globalbox: What Globalbox keeps with a live one; None under another mechanism.
    """

    timer_id: Hash32
    height: int
    state: str
    actor: Address
    target: Address
    handler: str
    fee_payer: Address
    gas_limit: int
    expires_at: int
    tier: str | None = None
    deferred_for: str | None = None
    ended_at: int | None = None
    reverted: bool = False
    fees: str | None = None
    max_fee_per_cycle: int | None = None
    max_priority_fee_per_cycle: int | None = None
    over_cap: bool = False
    priced_out: bool = False
    auction: AuctionTimer | None = None
    globalbox: GlobalboxTimer | None = None

    @property
    def is_watch(self) -> bool:
        """Whether changed keys make it fire, and no height."""
        return self.globalbox is not None and self.globalbox.due_height is None


class DecisionRow(Struct, frozen=True, kw_only=True):
    """One due timer in one block. Prices are base units per cycle.

    Attributes:
        rank: Its place in the order, from 1; None if it was decided before any ranking.
        timer_id: Its id.
        actor: Its owner.
        tip: What it offers the proposer.
        weight: W(actor), in the auction its actor's weight, exactly, as a decimal number such as ``1.7``; None under a
            mechanism without one.
        effective_priority: What the lane orders by, exactly, as a decimal number; None under another mechanism.
        max_fee: Cap of lane basefee and tip together, in the auction of cycle basefee and tip; None under a mechanism
            without one.
        fees: Where its fees come from: a `FeeSource`, but ``standing`` in the auction for a bid of an earlier block,
            and ``bid`` in Globalbox.
        gas_limit: Cycles the fire may use.
        cycles_used: Cycles the fire used; None unless it fired.
        outcome: ``fired``, ``expired``, ``unfunded``, ``cancelled …``, or ``waits``; in the auction also that it was
            marked as late; under Globalbox also ``queued`` and ``put into the mailbox``.
        reason: Why it waits, in words; empty unless it does.
        target: Actor whose handler it calls.
        standing: Where its fire stands in Globalbox, in units of 2⁻⁹⁶; None outside of it.
        fire_seq: Which fire of the timer it is, from 0; None but for Globalbox.
        deliver_seq: Number of the fire's entry in the mailbox; None outside of it.
    """

    rank: int | None
    timer_id: Hash32
    actor: Address
    tip: int
    weight: str | None
    effective_priority: str | None
    max_fee: int | None
    fees: str
    gas_limit: int
    cycles_used: int | None
    outcome: str
    reason: str
    target: Address
    standing: int | None
    fire_seq: int | None
    deliver_seq: int | None


class BidRow(Struct, frozen=True, kw_only=True):
    """What a gas bidding agent has bid in a block.

    Attributes:
        timer_id: For which timer.
        max_fee: Its cap, base units per cycle.
        max_priority_fee: The cap of its tip, base units per cycle.
        max_fee_per_cell: Its cap, base units per cell; None for the cell basefee. Decision: D-86.
        max_priority_fee_per_cell: The cap of its tip per cell, base units; None likewise.
    """

    timer_id: Hash32
    max_fee: int
    max_priority_fee: int
    max_fee_per_cell: int | None
    max_priority_fee_per_cell: int | None


class DecisionView(Struct, frozen=True, kw_only=True):
    """How a block chose among its due timers. Prices are base units per cycle or cell, money is base units.

    Attributes:
        height: The block's.
        mechanism: Which mechanism chose.
        order: What it ranks by: ``due``, ``priority``, ``tip`` or ``standing``.
        cycle_basefee: Cycle basefee of a fire.
        cell_basefee: Cell basefee of a fire.
        lane_basefee: Lane basefee of a fire; None before the activation.
        next_lane_basefee: Lane basefee of the next block; None before the activation.
        previous_tip: Median tip of the block before; None before the activation.
        median_fires: Network median of fires within the fairness window; None before the activation.
        lane_cycles_max: Cycles that the lane offers.
        lane_cycles_used: Cycles that fires used.
        max_cycles_per_fire: Cap of one fire.
        lane_burned: Burned by the lane basefee.
        agent_cycles: Cycles that gas bidding agents used.
        bids: What they bid, in the order of the questions; a record names the first of them only, if they are many.
        queued: Fires that stand in Globalbox after the block; None without one.
        in_mailbox: Entries that wait in its mailbox after the block; None without one.
        cut_off: Rank of the last timer that fired; None if none did.
        examined: How many were decided.
        rows: Those decided, in that order; a record names the first of them only, if they are many.
        runners_up: The next in rank; nothing was decided about them.
        not_examined: How many were not, by reason, those without any left out.
        sentences: The same in words, and why none of them could have run before those that were.
    """

    height: int
    mechanism: str
    order: str
    cycle_basefee: int
    cell_basefee: int
    lane_basefee: int | None = None
    next_lane_basefee: int | None = None
    previous_tip: int | None = None
    median_fires: int | None = None
    lane_cycles_max: int
    lane_cycles_used: int
    max_cycles_per_fire: int
    lane_burned: int
    agent_cycles: int
    bids: tuple[BidRow, ...]
    queued: int | None = None
    in_mailbox: int | None = None
    cut_off: int | None
    examined: int
    rows: tuple[DecisionRow, ...]
    runners_up: tuple[DecisionRow, ...]
    not_examined: dict[str, int]
    sentences: tuple[str, ...]


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
