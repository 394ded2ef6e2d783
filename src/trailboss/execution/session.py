"""What is open while a block, and within it a transaction, is being applied, and what its market does differently."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from trailboss.codec.canonical import encode_canonical
from trailboss.execution.ledger import Ledger
from trailboss.fees import Prices
from trailboss.governance.markets import MarketTerms
from trailboss.governance.parameters import Read
from trailboss.governance.rules import SCHEDULER_KEY, Rules
from trailboss.mechanisms.base import Decision, Follower, Rest, Verdict
from trailboss.mechanisms.context import Market
from trailboss.metering.meter import Meter
from trailboss.model.actors import Account
from trailboss.model.blocks import Origin, ReceiptRecord
from trailboss.model.configs import BarredPayer, JoiningGap, SchedulerTotals
from trailboss.model.decisions import AgentBid, AgentFailure, DecisionRecord
from trailboss.model.effects import Effect, ReservedTimerCancelled
from trailboss.model.events import EventRecord, PrintedLine
from trailboss.model.timers import Timer, TimerEnd, TimerRequest, decode_timer, encode_timer
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import ZERO_HASH
from trailboss.primitives.units import U64_MAX, Cells, Cycles, Height, Price
from trailboss.state.keys import timer_key
from trailboss.state.overlay import Overlay
from trailboss.state.store import ReadableStore
from trailboss.timer_queue.queue import TimerQueue
from trailboss.vm.engine import Engine
from trailboss.vm.printed_lines import Printing

COUNT_WIDTH: Final = 4  # bytes of a count in the state
_decode_totals: Final = msgspec.msgpack.Decoder(SchedulerTotals).decode
BLOCK_CHARACTERS_MAX: Final = 131_072  # printed characters of one block that are kept


class BlockContext(Struct, frozen=True):
    """Facts that hold for the whole block."""

    chain_id: int
    chain_instance_id: bytes  # hash of the genesis, 32 bytes
    height: Height
    timestamp_ms: int  # milliseconds since 1970
    parent: bytes  # hash of the header before
    proposer: bytes  # who gets the tips, 20 bytes
    parent_cycles_used: int  # cycles that the block before used
    rules: Rules  # everything governed
    parent_state_root: bytes  # state root of the block before, 32 bytes
    mechanism: str  # name of the mechanism in force, for messages
    calls: frozenset[str]  # host calls about timers that actors have under it, by `trailboss.model.calls`
    is_development: bool = False  # whether it is a development chain. Decision: D-69.


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """A due timer that has been removed and pre-charged, and waits for its turn in this block."""

    decision: Decision  # what its fee payer is charged, at what prices, for how many cycles
    cells_limit: Cells  # cells the fire may use


class Fired(msgspec.Struct, frozen=True, gc=False):
    """A fire of this block: the timer's actor, tip per cycle, cycles used, and base units burned by the surcharge."""

    actor: bytes
    tip: int
    cycles_used: int
    burned: int = 0


class Admission(Struct, frozen=True):
    """Due timers that a block has admitted to its mechanism's index, has not, and has not for want of money.

    Decision: D-51, D-79
    """

    joining: Sequence[Timer] = ()
    gaps: tuple[JoiningGap, ...] = ()
    barred: tuple[BarredPayer, ...] = ()


class BlockSession(Struct):
    """A block while it is being applied."""

    context: BlockContext
    overlay: Overlay  # all writes of the block
    ledger: Ledger
    queue: TimerQueue  # the calendar queue; it follows what transactions commit
    engine: Engine
    follower: Follower  # what follows due timers: the block's mechanism
    hooks: "MarketHooks"  # what the block's market does differently
    receipts: list[ReceiptRecord] = field(default_factory=list)
    events: list[EventRecord] = field(default_factory=list)
    # Due timers pre-charged and not yet run, by id, in order.
    reservations: dict[bytes, Reservation] = field(default_factory=dict)
    heights: dict[bytes, int] = field(default_factory=dict)  # of the timers that the block has scheduled, by id
    # Timers that the block itself has ended, in no transaction; added to the totals once, when it closes.
    ends: SchedulerTotals = field(default_factory=SchedulerTotals)
    cycles_used: int = 0
    cells_used: int = 0
    timer_cycles_used: int = 0  # by fires so far; ``cycles_used`` is by everything
    timer_cells_used: int = 0
    fired: list[Fired] = field(default_factory=list)  # all fires so far, in order
    # Whether the deliveries have begun: what is due then is due, and what has expired is gone.
    has_delivered: bool = False
    departed: list[Timer] = field(default_factory=list)  # timers that have left the queue so far, for whatever reason
    admission: Admission = Admission()
    decisions: DecisionRecord | None = None  # how the block chose among its due timers, once it has
    printed: list[PrintedLine] = field(default_factory=list)  # what gas bidding agents have printed
    printed_characters: int = 0  # characters of all that is printed and kept so far

    def kept(self, printing: Printing) -> tuple[PrintedLine, ...]:
        """Return what is kept of an execution's lines: all, unless the block has printed too much. Decision: D-89."""
        if not printing.written:
            return ()
        lines = printing.lines()
        self.printed_characters += sum(len(line.text) for line in lines)
        if self.printed_characters <= BLOCK_CHARACTERS_MAX:
            return lines
        words = f"(more is printed and not kept: the lines of a block have {BLOCK_CHARACTERS_MAX:,} characters at most)"
        return (PrintedLine(lines[0].actor, lines[0].handler, words),)

    def read_timer(self, height: int, identity: bytes) -> Timer | None:
        """Return the timer that the state holds at a height, or None."""
        octets = self.overlay.read(timer_key(height, identity))
        return None if octets is None else decode_timer(octets)

    def write_timer(self, timer: Timer) -> None:
        """Write a timer's record."""
        self.overlay.write(timer_key(timer.height, timer.timer_id), encode_timer(timer))

    def delete_timer(self, timer: Timer) -> None:
        """Delete a timer's record."""
        self.overlay.delete(timer_key(timer.height, timer.timer_id))

    def totals(self) -> SchedulerTotals:
        """Return the running totals over all timers, as they stand."""
        found = self.overlay.read_record(SCHEDULER_KEY, _decode_totals)
        return SchedulerTotals() if found is None else replace(found)

    def count(self, path: str, more: int = 1) -> int:
        """Count more timers on their path, while the transaction lasts; return how many there were before."""
        totals = self.totals()
        before: int = getattr(totals, path)
        setattr(totals, path, before + more)
        self.overlay.write(SCHEDULER_KEY, totals)
        return before

    def count_end(self, end: TimerEnd) -> None:
        """Count one more timer that the block has ended, outside any transaction."""
        setattr(self.ends, end.value, getattr(self.ends, end.value) + 1)

    def emit(self, name: str, timer: Timer, facts: Mapping[str, object]) -> None:
        """Emit an event of the block itself about a timer."""
        self.events.append(timer_event(name, timer, facts))

    def take_out(self, timer: Timer) -> None:
        """Take a timer out of the queue, note that it has left and notify the mechanism."""
        self.queue.cancel(timer.timer_id)
        self.follower.leave(timer.timer_id)
        self.departed.append(timer)


FREE: Final = Prices(Price(0), Price(0))  # Prices of an execution that costs nothing.


class Envelope(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One paid execution: a transaction, a timer's fire, a message."""

    origin: Origin
    # Hash of the transaction that it is or comes of; 32 zero bytes if there is none. Spec: CIP-5 §5.2.
    origin_hash: bytes = bytes(ZERO_HASH)
    sender: bytes  # immediate caller that the handler sees
    signer: bytes  # whose consent the fee payer rule accepts beside the actor's own. Decision: D-25.
    payer: bytes
    cycles_limit: Cycles
    cells_limit: Cells
    intrinsic_cycles: Cycles = Cycles(0)  # used before anything runs
    intrinsic_cells: Cells = Cells(0)  # used before anything runs
    prices: Prices = FREE
    timer_id: bytes = b""  # the timer that fires, or empty
    actor: bytes = b""  # the actor that is called, or empty
    facts: Callable[[], Mapping[str, object]] = dict  # returns what ``context()`` shows in addition, as new values
    pool: int | None = None  # number of the gas pool that it draws on; None for one of its own. Decision: D-88.


def read_count(read: Read, key: bytes) -> int:
    """Return a count that the state holds under a key, or 0."""
    return int.from_bytes(read(key) or b"", "big")


def change_count(session: BlockSession, key: bytes, change: int) -> None:
    """Change a count by so much; at 0 it is not held. `InvariantError` if it falls below 0."""
    count = read_count(session.overlay.read, key) + change
    if count < 0:
        raise InvariantError(f"count {key.hex()} of the state falls to {count}")
    if count:
        session.overlay.write(key, count.to_bytes(COUNT_WIDTH, "big"))
    else:
        session.overlay.delete(key)


def timer_event(name: str, timer: Timer, facts: Mapping[str, object], emitter: bytes | None = None) -> EventRecord:
    """Return an event about a timer, from its actor or from another emitter."""
    data = encode_canonical({"timer_id": timer.timer_id, **facts})
    return EventRecord(name, timer.actor if emitter is None else emitter, data, timer.timer_id)


class Scope(msgspec.Struct):
    """A transaction while it runs."""

    session: BlockSession
    envelope: Envelope
    # What frames have asked for, in order; cut back when a frame fails.
    effects: list[Effect] = msgspec.field(default_factory=list)
    emitted: int = 0  # events that actors have emitted so far
    # Places in ``effects`` at which due timers that are charged have been cancelled, by id; a frame that fails takes
    # its effects back, and not these.
    cancelled: dict[bytes, int] = msgspec.field(default_factory=dict)
    # Numbers of the mocks that answered calls, in order; a frame that fails takes none back. Decision: D-110.
    mocked: list[int] = msgspec.field(default_factory=list)
    # What actors print; a frame that fails does not take it back.
    printing: Printing = msgspec.field(default_factory=Printing)

    def has_cancelled(self, identity: bytes) -> bool:
        """Return whether the transaction has cancelled a due timer that the block has charged for."""
        place = self.cancelled.get(identity, len(self.effects))
        effect = self.effects[place] if place < len(self.effects) else None
        return isinstance(effect, ReservedTimerCancelled) and effect.timer.timer_id == identity

    def mark(self) -> tuple[int, int]:
        """Return where the transaction stands, for `revert`."""
        return self.session.overlay.mark(), len(self.effects)

    def revert(self, mark: tuple[int, int]) -> None:
        """Go back to a mark: writes and effects since then are gone."""
        self.session.overlay.revert(mark[0])
        del self.effects[mark[1] :]


Offered = tuple[bytes, tuple[int, int] | None]
"""What `Timer.fees` holds and, if a stated priority is clamped, what was stated and what is kept."""
MarketCall = Callable[[Scope, bytes, Any, Meter], bytes | bool]
"""A host call: the running transaction, the actor, the request and the meter to what the call returns."""


class CollectedBids(Struct):
    """What gas bidding agents have bid in a block, in order, and the calls that returned no bid."""

    cycles_used: int = 0
    bids: list[AgentBid] = field(default_factory=list)
    failures: list[AgentFailure] = field(default_factory=list)


class OpenMarket(Struct, frozen=True):
    """A market during the deliveries of a block."""

    market: Market  # what the mechanism is given
    # Writes what the next block finds, from what the selection has left; called when the block ends.
    close: Callable[[Rest], None]
    collected: CollectedBids = field(default_factory=CollectedBids)  # what gas bidding agents bid


class ReadableChain(Protocol):
    """A chain whose records are checked."""

    store: ReadableStore

    def rules(self) -> Rules:
        """Return the rules of the next block."""

    def balance(self, address: bytes) -> int:
        """Return a balance in base units."""

    def accounts(self) -> Iterator[tuple[bytes, Account]]:
        """Yield every address and account, in order of address."""

    def timers(self, first: int = 0, last: int = U64_MAX) -> Iterator[Timer]:
        """Yield the live timers due in ``first..=last``."""


def open_nothing(session: BlockSession) -> OpenMarket:
    """Open the deliveries of a chain without a market."""
    market = Market(max_cycles_per_fire=session.context.rules.timer.max_cycles_per_fire)
    return OpenMarket(market, close=lambda _: None)


class MarketHooks(Struct, frozen=True, kw_only=True):
    """What execution does under one market; the defaults are what it does without one."""

    open: Callable[[BlockSession], OpenMarket]  # opens the market before the deliveries
    opens_empty: bool = True  # whether it opens in a block without due timers as well
    # Refuses arguments that a timer may not have.
    check_request: Callable[[Rules, TimerRequest], None] = lambda *_: None
    # Returns what a timer offers, from its request and whether its actor has an agent.
    offer: Callable[[Rules, TimerRequest, bool], Offered]
    calls: Mapping[str, MarketCall] = MappingProxyType({})  # host calls that only some markets have, by form
    no_extension: str = ""  # why no timer is extended by governance, where none is
    # What carries out the decisions that only this market's mechanism makes.
    verdicts: Mapping[Verdict, Callable[[BlockSession, Decision], None]] = MappingProxyType({})
    # Takes a timer that is to fire, with its payment, and returns the cells that the fire may use.
    take: Callable[[BlockSession, Decision], Cells]
    # Additional facts that a fire finds in ``context()``; new values for each call.
    fire_facts: Callable[[Decision], Mapping[str, object]] = lambda *_: {}
    # Events of a fire beside its own.
    fire_events: Callable[[Decision, ReceiptRecord], tuple[EventRecord, ...]] = lambda *_: ()
    is_last: Callable[[Decision], bool] = lambda *_: True  # whether a timer ends with a fire
    keeps_fired: bool = False  # whether a timer that fires stays in the store until its fire is over
    is_cancellable: Callable[[Timer], bool] = lambda *_: True  # whether a live timer can still be cancelled
    # Whether a timer has a height that a development chain can change.
    is_movable: Callable[[Timer], bool] = lambda *_: True
    # Takes a timer that ends out of the market's records.
    on_remove: Callable[[BlockSession, Timer, TimerEnd], None] = lambda *_: None
    examined: Callable[[Decision], Mapping[str, Any]] = lambda *_: {}  # additional fields of an examined timer's record
    recorded: Callable[[BlockSession], Mapping[str, Any]] = lambda *_: {}  # additional fields of the decision record
    # Whether a block without transactions leaves the market as it is while nothing falls due.
    rests: Callable[[Rules, Read], bool] = lambda *_: True
    # The first block in which the market changes by itself; None if it does not.
    next_event: Callable[[Rules, Read], int | None] = lambda *_: None
    fire_count: Callable[[MarketTerms, SchedulerTotals], int] = lambda _, totals: totals.fired  # fires so far
    # Checks the market's records against all others, the slow way.
    check: Callable[[ReadableChain], None] = lambda *_: None
