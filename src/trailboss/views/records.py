"""What people look at: receipts, events and timers with their bytes turned into words."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.chain.chain import Chain
from trailboss.chain.reader import ChainReader
from trailboss.codec.canonical import decode_canonical
from trailboss.model.blocks import Block, Origin, ReceiptRecord
from trailboss.model.events import EventRecord, PrintedLine
from trailboss.model.transactions import DeployActor, SetCode, Transaction
from trailboss.primitives.errors import ErrorObject, Rejection, RejectionReason, TrailbossError
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import format_cby
from trailboss.views.labels import labelled, labels_in_use
from trailboss.views.mechanism.auction_records import AuctionTimer
from trailboss.views.mechanism.globalbox_records import GlobalboxTimer
from trailboss.views.shared_fields import extended
from trailboss.views.text import clipped, failure_words, value_words

if TYPE_CHECKING:
    from trailboss.views.trace.records import Trace

FROZEN_FEES: Final = "frozen"
AGENT_FEES: Final = "agent"
DEFAULT_FEES: Final = "default"
STANDING_FEES: Final = "standing"
BID_FEES: Final = "bid"


class Event(Struct, frozen=True):
    """One event."""

    name: str  # topic
    emitter: Address  # the actor, or the system actor that speaks for the protocol
    # The fields by name, for the chain's own events and for an actor's that are canonical CBOR of a map, a list or
    # text; else the bytes.
    data: Any
    raw: bytes  # the bytes that the receipts root commits to
    block_height: int  # height of its block
    # The timer it is about, or else the one in whose fire a handler emitted it; None for neither.
    timer_id: Hash32 | None

    def __repr__(self) -> str:
        timer = "" if self.timer_id is None else f", timer {labels_in_use().short(self.timer_id)}"
        said = clipped(labelled(value_words(self.data)))
        emitter = labels_in_use().short(self.emitter)
        return f"<Event {self.name} of {emitter}, block {self.block_height}{timer}: {said}>"


class Printed(Struct, frozen=True):
    """A line that an actor has printed, or a warning about what it did; outside consensus. Decision: D-89."""

    actor: Address  # whose handler ran
    handler: str  # which of its handlers
    text: str  # the line
    is_warning: bool  # whether the chain says it, not the actor
    block_height: int  # height of the block in which it ran; of a read-only call, of the block after which it ran

    def __str__(self) -> str:
        mark = "warning: " if self.is_warning else ""
        return labelled(f"block {self.block_height}, {self.actor} {self.handler}: {mark}{self.text}")


class Receipt(Struct, frozen=True, dict=True):
    """What one execution did and cost. Amounts are base units."""

    status: str  # ``ok``, ``reverted`` (rolled back and charged) or ``refused`` (never in a block, nothing changed)
    error: ErrorObject | None  # why it did not end well; None when ok
    cycles_used: int  # cycles used
    cells_used: int  # cells used
    fee_paid: int  # burned plus tip
    fee_burned: int  # burned
    tip: int  # to the proposer
    refund: int  # given back of what was reserved
    return_value: bytes  # what the handler returned
    events: tuple[Event, ...]  # in order
    block_height: int  # height of its block; for a refusal of the block it was refused from
    origin: str  # ``transaction``, ``timer`` or ``message``
    timer_id: Hash32 | None  # the timer that fired, if one did
    actor: Address | None  # the actor that ran or was made, if one did
    payer: Address  # who paid
    # What actors have printed meanwhile, and the chain's warnings about it. Decision: D-89.
    printed: tuple[Printed, ...]

    @property
    def ok(self) -> bool:
        """Whether it ended well."""
        return self.status == "ok"

    def __repr__(self) -> str:
        return f"<Receipt {self.summary()}>"

    def summary(self) -> str:
        """Return in one line how it ended, what ran, and what it used."""
        short = labels_in_use().short
        why = "" if self.error is None else f" with {labelled(failure_words(self.error))}"
        actor = "" if self.actor is None else f" to {short(self.actor)}"
        what = self.origin if self.timer_id is None else f"{self.origin} {short(self.timer_id)}"
        used = f"{self.cycles_used:,} cycles, {format_cby(self.fee_paid)} CBY from {short(self.payer)}"
        return f"{self.status}{why}, block {self.block_height}: {what}{actor}, {used}"

    @cached_property
    def trace(self) -> "Trace":
        """What it did, frame by frame and call by call; a `LocalChain`, which has the blocks, makes its receipts so.

        Raises:
            TrailbossError: If no such chain has made it.
            Rejection: ``NOT_FOUND`` for a refusal, and for a receipt of a block that is gone.
        """
        make_trace = vars(self).get("make_trace")
        if make_trace is None:
            raise TrailbossError("this receipt does not know its chain: use `chain.trace`, or `trailboss trace`")
        trace: Trace = make_trace(self)
        return trace


class Answer(Struct, frozen=True):
    """What a read-only call came to: it changes nothing and costs nothing."""

    return_value: bytes  # what the handler returned; empty on failure
    error: ErrorObject | None  # why it did not end well; None when ok
    cycles_used: int  # cycles the same frame uses in a block
    cells_used: int  # cells the same frame uses in a block
    printed: tuple[Printed, ...]  # what actors have printed meanwhile

    @property
    def ok(self) -> bool:
        """Whether it ended well."""
        return self.error is None


class TimerView(Struct, frozen=True):
    """A live timer."""

    timer_id: Hash32  # its id
    actor: Address  # owner
    height: int  # at which it is due
    handler: str  # that it calls
    payload: bytes  # that the handler gets
    fee_payer: Address  # who pays
    gas_limit: int  # cycles a fire may use
    access_limit: int  # as given; 0 for none
    expires_at: int  # last height at which it may fire
    sequence: int  # place in the order of insertion
    schedule_block: int  # height of the block that scheduled it
    tier: str  # ``ring``, ``epoch`` or ``overflow``; ``due`` once its height has passed
    deferrals: int  # blocks that have deferred it so far
    deferred_for: str | None  # why it was last deferred, or None
    will_expire_unfired: bool  # whether it expires before it is due, unless extended
    # Where its fees come from: in the timer lane ``frozen`` when it was scheduled, an ``agent``, its actor's or its
    # own, or the ``default`` of each block (D-16); in the auction its ``agent``, then the ``standing`` bid that this
    # gave last (D-57); in Globalbox its ``bid`` (D-63).
    fees: str = DEFAULT_FEES
    # Cap of lane basefee and tip together, in the auction of cycle basefee and tip, base units; None unless frozen or
    # standing.
    max_fee_per_cycle: int | None = None
    max_priority_fee_per_cycle: int | None = None  # cap of the tip, base units; None likewise
    # Agent that prices this timer, if it names one; None if its actor's does, or none. Decision: D-86.
    gas_bidding_agent: Address | None = None
    over_cap: bool = False  # whether the timer lane is active and sets it aside for its gas limit. Decision: D-13.
    # Whether its cap lies below the present lane basefee (D-14), in the auction below the cycle basefee, or its cap for
    # a cell below the cell basefee.
    priced_out: bool = False
    auction: AuctionTimer | None = None  # what the auction keeps with it; None under another mechanism
    globalbox: GlobalboxTimer | None = None  # what Globalbox keeps with it; None under another mechanism

    @property
    def is_watch(self) -> bool:
        """Whether changed keys make it fire, and no height."""
        return self.globalbox is not None and self.globalbox.due_height is None

    def __repr__(self) -> str:
        short = labels_in_use().short
        waits = "" if self.deferred_for is None else f", deferred for {self.deferred_for}"
        when = "when its keys change" if self.is_watch else f"at {self.height}"
        return (
            f"<Timer {short(self.timer_id)} of {short(self.actor)}: calls {self.handler} {when}, {self.tier}{waits}, "
            f"paid by {short(self.fee_payer)}>"
        )


class TimerEntry(Struct, frozen=True):
    """A timer in a list."""

    timer_id: Hash32  # its id
    height: int  # at which it is, or was, due
    # ``live``; ``due`` once its height has passed; ``queued`` while a fire of it stands in Globalbox, and
    # ``in-mailbox`` while an entry of it waits there; ``deferred`` if it waits for a reason; or how it ended.
    state: str
    actor: Address  # owner
    target: Address  # actor whose handler it calls
    handler: str  # that it calls
    fee_payer: Address  # who pays
    gas_limit: int  # cycles the fire may use
    expires_at: int  # last height at which it may fire; of an ended one, as it was scheduled
    tier: str | None = None  # ``ring``, ``epoch`` or ``overflow`` while it is live and not due
    deferred_for: str | None = None  # why it waits
    ended_at: int | None = None  # height of the block in which it ended
    reverted: bool = False  # whether it ended with a fire that reverted
    # ``frozen``, or ``agent`` or ``default`` for what is known when it is due only; ``standing`` in the auction for the
    # last bid of its agent, ``bid`` in Globalbox; None for an ended one without frozen fees.
    fees: str | None = None
    # Cap of lane basefee and tip, in the auction of cycle basefee and tip, base units; None unless frozen or standing.
    max_fee_per_cycle: int | None = None
    max_priority_fee_per_cycle: int | None = None  # cap of the tip, base units; None likewise
    over_cap: bool = False  # whether the active timer lane sets it aside for its gas limit
    # Whether its cap lies below the present basefee of the active timer lane, or of the auction.
    priced_out: bool = False
    auction: AuctionTimer | None = None  # what the auction keeps with a live one; None under another mechanism
    globalbox: GlobalboxTimer | None = None  # what Globalbox keeps with a live one; None under another mechanism

    @property
    def is_watch(self) -> bool:
        """Whether changed keys make it fire, and no height."""
        return self.globalbox is not None and self.globalbox.due_height is None


class DecisionRow(Struct, frozen=True, kw_only=True):
    """One due timer in one block. Prices are base units per cycle."""

    rank: int | None  # its place in the order, from 1; None if it was decided before any ranking
    timer_id: Hash32  # its id
    actor: Address  # its owner
    tip: int  # what it offers the proposer
    # W(actor), in the auction its actor's weight, exactly, as a decimal number such as ``1.7``; None under a mechanism
    # without one.
    weight: str | None
    # What the lane orders by, exactly, as a decimal number; None under another mechanism.
    effective_priority: str | None
    # Cap of lane basefee and tip together, in the auction of cycle basefee and tip; None under a mechanism without one.
    max_fee: int | None
    # Where its fees come from: a `FeeSource`, but ``standing`` in the auction for a bid of an earlier block, and
    # ``bid`` in Globalbox.
    fees: str
    gas_limit: int  # cycles the fire may use
    cycles_used: int | None  # cycles the fire used; None unless it fired
    # ``fired``, ``expired``, ``unfunded``, ``cancelled …``, or ``waits``; in the auction also that it was marked as
    # late; under Globalbox also ``queued`` and ``put into the mailbox``.
    outcome: str
    reason: str  # why it waits, in words; empty unless it does
    target: Address  # actor whose handler it calls
    standing: int | None  # where its fire stands in Globalbox, in units of 2⁻⁹⁶; None outside of it
    fire_seq: int | None  # which fire of the timer it is, from 0; None but for Globalbox
    deliver_seq: int | None  # number of the fire's entry in the mailbox; None outside of it


class BidRow(Struct, frozen=True, kw_only=True):
    """What a gas bidding agent has bid in a block."""

    timer_id: Hash32  # for which timer
    max_fee: int  # its cap, base units per cycle
    max_priority_fee: int  # the cap of its tip, base units per cycle
    max_fee_per_cell: int | None  # its cap, base units per cell; None for the cell basefee. Decision: D-86.
    max_priority_fee_per_cell: int | None  # the cap of its tip per cell, base units; None likewise


class DecisionView(Struct, frozen=True, kw_only=True):
    """How a block chose among its due timers. Prices are base units per cycle or cell, money is base units."""

    height: int  # the block's
    mechanism: str  # which mechanism chose
    order: str  # what it ranks by: ``due``, ``priority``, ``tip`` or ``standing``
    cycle_basefee: int  # cycle basefee of a fire
    cell_basefee: int  # cell basefee of a fire
    lane_basefee: int | None = None  # lane basefee of a fire; None before the activation
    next_lane_basefee: int | None = None  # lane basefee of the next block; None before the activation
    previous_tip: int | None = None  # median tip of the block before; None before the activation
    median_fires: int | None = None  # network median of fires within the fairness window; None before the activation
    lane_cycles_max: int  # cycles that the lane offers
    lane_cycles_used: int  # cycles that fires used
    max_cycles_per_fire: int  # cap of one fire
    lane_burned: int  # burned by the lane basefee
    agent_cycles: int  # cycles that gas bidding agents used
    # What they bid, in the order of the questions; a record names the first of them only, if they are many.
    bids: tuple[BidRow, ...]
    queued: int | None = None  # fires that stand in Globalbox after the block; None without one
    in_mailbox: int | None = None  # entries that wait in its mailbox after the block; None without one
    cut_off: int | None  # rank of the last timer that fired; None if none did
    examined: int  # how many were decided
    # Those decided, in that order; a record names the first of them only, if they are many.
    rows: tuple[DecisionRow, ...]
    runners_up: tuple[DecisionRow, ...]  # the next in rank; nothing was decided about them
    not_examined: dict[str, int]  # how many were not, by reason, those without any left out
    sentences: tuple[str, ...]  # the same in words, and why none of them could have run before those that were


def event_view(event: EventRecord, height: int) -> Event:
    """Return one event as people see it."""
    timer_id = Hash32(event.timer_id) if event.timer_id else None
    return Event(event.name, Address(event.emitter), content_of(event.data), event.data, height, timer_id)


def content_of(octets: bytes) -> Any:
    """Return what bytes are the canonical CBOR of, if that is a map, a list or text; else the bytes.

    Almost any byte alone is canonical CBOR of some number, so a decoded number says nothing about what was meant.
    """
    try:
        content = decode_canonical(octets)
    except Rejection:
        return octets
    return content if isinstance(content, dict | list | str) else octets


def receipt_view(receipt: ReceiptRecord, height: int) -> Receipt:
    """Return one receipt as people see it."""
    return extended(
        Receipt,
        receipt,
        status=receipt.status.value,
        fee_paid=receipt.fee_paid,
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


def deployment_of(chain: ChainReader, address: bytes) -> Receipt:
    """Return the receipt of the transaction that deployed an actor, or on a development chain made it by its code.

    Complexity: O(blocks that hold something) up to that one.

    Raises:
        Rejection: ``ACTOR_NOT_FOUND`` if no transaction of the chain has; ``NOT_FOUND`` if the block may be one that
            the chain does not have.
    """
    account = chain.account(address)
    if account is not None and account.code_hash:
        for block in chain.blocks.eventful():
            for transaction, record in zip(block.transactions, block.receipts, strict=False):
                if record.actor == address and isinstance(transaction.instruction, DeployActor | SetCode):
                    return receipt_view(record, block.height)
        chain.blocks.check_there(0)
    raise Rejection(
        RejectionReason.ACTOR_NOT_FOUND, f"there is no actor at {Address(address)}", actor=str(Address(address))
    )


def build_block(chain: Chain, transactions: Sequence[Transaction]) -> list[Receipt]:
    """Build one block of signed transactions and return a receipt for each, in order.

    If the chain refuses every one of them there is no block: a refusal changes nothing, not even the height.
    """
    # Copies, so that one transaction sent twice gives two receipts.
    offered = [replace(transaction) for transaction in transactions]
    applied = chain.build(offered, unless_refused=True)
    height = applied.block.height
    refused = {id(transaction): rejection for transaction, rejection in applied.refused}
    records = (record for record in applied.block.receipts if record.origin is Origin.TRANSACTION)
    return [
        refusal_view(refused[id(transaction)], transaction.sender, height)
        if id(transaction) in refused
        else receipt_view(next(records), height)
        for transaction in offered
    ]
