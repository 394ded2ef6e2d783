"""What the index answers with."""

from typing import Generic, TypeVar

from msgspec import Struct

from trailboss.model.blocks import Origin
from trailboss.primitives.octets import Address, Hash32

Item = TypeVar("Item")


class ListPage(Struct, Generic[Item], frozen=True):
    """A part of an ordered answer: the items asked for, and how many there are in all."""

    items: tuple[Item, ...]
    total: int


class IndexedTransaction(Struct, frozen=True, kw_only=True):
    """Where a transaction is."""

    hash: Hash32  # its hash
    height: int  # of its block
    position: int  # its place among the block's transactions, from 0
    receipt: int  # the place of its receipt among the block's receipts, from 0


class IndexedReceipt(Struct, frozen=True, kw_only=True):
    """Where a receipt of an address is, and in which roles the address has part in it.

    A target was paid, called, made or changed; an actor ran, or was made. A position is that of a transaction.
    """

    height: int
    receipt: int
    origin: Origin
    position: int | None
    is_sender: bool
    is_payer: bool
    is_target: bool
    is_actor: bool


class Cause(Struct, frozen=True, kw_only=True):
    """What scheduled a timer."""

    origin: Origin  # a transaction, a timer's fire, or a message
    timer_id: Hash32 | None  # the timer that fired
    transaction: Hash32 | None  # the hash of the transaction
    height: int  # of the block
    receipt: int  # the place of the receipt that holds the event among the block's receipts, from 0


class IndexedTimer(Struct, frozen=True, kw_only=True):
    """A timer by its events. The present record of a live timer is in the chain's state."""

    timer_id: Hash32  # its id
    actor: Address  # owner
    target: Address  # actor whose handler it calls
    payer: Address  # who pays
    handler: str  # that it calls
    height: int  # at which it is, or was, due
    gas_limit: int  # cycles a fire may use, as scheduled
    expires_at: int  # last height at which it may fire, as scheduled
    max_fee_per_cycle: int | None  # as scheduled, base units; None unless it was frozen then
    max_priority_fee_per_cycle: int | None  # likewise
    state: str  # ``live``, ``fired``, ``expired``, ``unfunded`` or ``cancelled``
    ended_at: int | None  # height of the block in which it ended
    reverted: bool  # whether it ended with a fire that reverted
    cause: Cause | None  # what scheduled it, and where; None if this node joined the network at that block or above
    sequence: int  # how many timers the chain had scheduled before it
    generation: int  # how many fires lie between it and the transaction or message at the beginning of its lineage


class Lineage(Struct, frozen=True, kw_only=True):
    """Where a timer stands among those that its first ancestor's fires, and their timers' fires, scheduled."""

    timer: IndexedTimer  # the timer
    root: Hash32  # the first of its line, which a transaction or a message scheduled; itself perhaps
    family_size: int  # how many timers descend from the root, and the root
    place: int  # its own place among them in the order in which they were scheduled, from 0
    children: int  # how many timers its fires have scheduled


class EventFilter(Struct, frozen=True, kw_only=True):
    """Which events are wanted; every condition that is given must hold."""

    name: str | None = None  # topic
    emitter: Address | None = None
    address: Address | None = None  # emitter, or named in a field of an event of the chain itself
    timer_id: Hash32 | None = None  # the timer it is about
    since: int = 0  # from this block on
    since_index: int = 0  # in that block, from this place among its events on


class EventPlace(Struct, frozen=True, order=True):
    """Where an event is."""

    height: int  # of its block
    index: int  # its place among the block's events, from 0: those of the receipts in order, then the block's own


class Spend(Struct, frozen=True):
    """What executions of one origin cost a payer: how many there were, and base units.

    Burned amounts of timers include penalties of the auction, which no execution stands for; refunds were given back
    of what was charged in advance.
    """

    origin: Origin
    runs: int
    burned: int
    tips: int
    refunds: int

    @property
    def fees(self) -> int:
        """What it cost: burned and tips."""
        return self.burned + self.tips


class DaySpend(Struct, frozen=True, kw_only=True):
    """What executions of one day of chain time, counted from 1970, cost a payer: one record for each origin."""

    day: int
    spend: tuple[Spend, ...]


class PayerSpend(Struct, frozen=True, kw_only=True):
    """What a payer has spent on timers in all, base units."""

    payer: Address
    fees: int


class UnfundedPayer(Struct, frozen=True, kw_only=True):
    """A payer that could not pay: how many timers ended for it, and the block in which the last of them did."""

    payer: Address
    timers: int
    last_height: int


class BlockTally(Struct, frozen=True, kw_only=True):
    """Sums over blocks. Timers end in four ways; burned fees include penalties; amounts are base units."""

    transactions: int = 0
    fires: int = 0
    messages: int = 0
    events: int = 0
    scheduled: int = 0
    fired: int = 0
    expired: int = 0
    unfunded: int = 0
    cancelled: int = 0
    cycles: int = 0
    cells: int = 0
    timer_cycles: int = 0
    burned: int = 0
    tips: int = 0

    @property
    def live(self) -> int:
        """Timers scheduled less those that ended: over all blocks, those that live."""
        return self.scheduled - self.fired - self.expired - self.unfunded - self.cancelled


class BlockSpan(Struct, frozen=True):
    """What a run of blocks comes to, for a chart: sums, the greatest of single blocks, and prices in the last.

    Lane basefees are None before the timer lane begins.
    """

    first: int
    last: int
    tally: BlockTally
    cycles_max: int
    cells_max: int
    timer_cycles_max: int
    cycle_basefee_max: int
    cell_basefee_max: int
    lane_basefee_max: int | None
    cycle_basefee: int
    cell_basefee: int
    lane_basefee: int | None


class Found(Struct, frozen=True, kw_only=True):
    """What begins with some hexadecimal digits: heights of blocks, transactions, ids of timers, addresses."""

    blocks: tuple[int, ...]
    transactions: tuple[IndexedTransaction, ...]
    timers: tuple[Hash32, ...]
    addresses: tuple[Address, ...]
