"""What is open while a block, and within it a transaction, is being applied."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct, field

from trailboss.codec.canonical import encode_canonical
from trailboss.execution.ledger import Ledger
from trailboss.fees.settlement import Prices
from trailboss.governance.rules import SCHEDULER_KEY, Rules
from trailboss.mechanisms.base import Follower
from trailboss.model.blocks import Origin, ReceiptRecord
from trailboss.model.configs import BarredPayer, JoiningGap, SchedulerTotals, decode_record, encode_record
from trailboss.model.decisions import DecisionRecord
from trailboss.model.effects import Effect
from trailboss.model.events import EventRecord
from trailboss.model.printed import BLOCK_CHARACTERS_MAX, PrintedLine, Printing
from trailboss.model.timers import Timer, TimerEnd
from trailboss.primitives.octets import ZERO_HASH
from trailboss.primitives.units import Amount, Cells, Cycles, Height, Price
from trailboss.state.overlay import Overlay
from trailboss.timer_queue.queue import TimerQueue
from trailboss.timer_queue.source import pending_of
from trailboss.vm.engine import Engine

if TYPE_CHECKING:
    from trailboss.execution.hooks import MarketHooks  # its functions take a session


class BlockContext(Struct, frozen=True):
    """Facts that hold for the whole block.

    Attributes:
        chain_instance_id: Hash of the genesis, 32 bytes.
        timestamp_ms: Milliseconds since 1970.
        parent: Hash of the header before.
        proposer: Who gets the tips, 20 bytes.
        parent_cycles_used: Cycles that the block before used.
        rules: Everything governed.
        parent_state_root: State root of the block before, 32 bytes.
        mechanism: Name of the mechanism in force, for messages.
        calls: Host calls about timers that actors have under it, by `trailboss.model.calls`.
        is_development: Whether it is a development chain. Decision: D-69.
    """

    chain_id: int
    chain_instance_id: bytes
    height: Height
    timestamp_ms: int
    parent: bytes
    proposer: bytes
    parent_cycles_used: int
    rules: Rules
    parent_state_root: bytes
    mechanism: str
    calls: frozenset[str]
    is_development: bool = False


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """A due timer that has been removed and pre-charged, and waits for its turn in this block.

    Attributes:
        amount: Base units taken from its fee payer, at these prices.
        gas_limit: Cycles the fire may use.
        used_cycles: Cycles that count as used before it runs: those of its agent.
        cells_limit: Cells the fire may use.
    """

    timer: Timer
    amount: Amount
    prices: Prices
    gas_limit: Cycles
    used_cycles: Cycles
    cells_limit: Cells


class Fired(NamedTuple):
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
    """A block while it is being applied.

    Attributes:
        overlay: All writes of the block.
        queue: The calendar queue; it follows what transactions commit.
        follower: What follows due timers: the block's mechanism.
        hooks: What the block's market does differently.
        reservations: Due timers pre-charged and not yet run, by id, in order.
        ends: Timers that the block itself has ended, by path; written to the totals once, when it closes.
        timer_cycles_used: By fires so far; ``cycles_used`` is by everything.
        fired: All fires so far, in order.
        has_delivered: Whether the deliveries have begun: what is due then is due, and what has expired is gone.
        departed: Timers that have left the queue so far, for whatever reason.
        decisions: How the block chose among its due timers, once it has.
        printed: What gas bidding agents have printed.
        printed_characters: Characters of all that is printed and kept so far.
    """

    context: BlockContext
    overlay: Overlay
    ledger: Ledger
    queue: TimerQueue
    engine: Engine
    follower: Follower
    hooks: "MarketHooks"
    receipts: list[ReceiptRecord] = field(default_factory=list)
    events: list[EventRecord] = field(default_factory=list)
    reservations: dict[bytes, Reservation] = field(default_factory=dict)
    ends: dict[TimerEnd, int] = field(default_factory=dict)
    cycles_used: int = 0
    cells_used: int = 0
    timer_cycles_used: int = 0
    timer_cells_used: int = 0
    fired: list[Fired] = field(default_factory=list)
    has_delivered: bool = False
    departed: list[Timer] = field(default_factory=list)
    admission: Admission = Admission()
    decisions: DecisionRecord | None = None
    printed: list[PrintedLine] = field(default_factory=list)
    printed_characters: int = 0

    def kept(self, printing: Printing) -> tuple[PrintedLine, ...]:
        """Return what is kept of an execution's lines: all, unless the block has printed too much. Decision: D-89."""
        lines = printing.lines()
        if not lines:
            return lines
        self.printed_characters += sum(len(line.text) for line in lines)
        if self.printed_characters <= BLOCK_CHARACTERS_MAX:
            return lines
        words = f"(more is printed and not kept: the lines of a block have {BLOCK_CHARACTERS_MAX:,} characters at most)"
        return (PrintedLine(lines[0].actor, lines[0].handler, words),)

    def totals(self) -> SchedulerTotals:
        """Return the running totals over all timers, as they stand."""
        octets = self.overlay.read(SCHEDULER_KEY)
        return SchedulerTotals() if octets is None else decode_record(octets, SchedulerTotals)

    def count(self, path: str) -> int:
        """Count one more timer on its path, while the transaction lasts; return how many there were before."""
        totals = self.totals()
        before: int = getattr(totals, path)
        setattr(totals, path, before + 1)
        self.overlay.write(SCHEDULER_KEY, encode_record(totals))
        return before

    def count_end(self, end: TimerEnd) -> None:
        """Count one more timer that the block has ended, outside any transaction."""
        self.ends[end] = self.ends.get(end, 0) + 1

    def count_fire(self, fired: Fired, cells_used: int) -> None:
        """Count a fire and what it used."""
        self.timer_cycles_used += fired.cycles_used
        self.timer_cells_used += cells_used
        self.fired.append(fired)

    def emit(self, name: str, timer: Timer, facts: Mapping[str, object]) -> None:
        """Emit an event of the block itself about a timer."""
        self.events.append(timer_event(name, timer, facts))

    def put_in(self, timer: Timer) -> None:
        """Put a new timer into the queue and notify the mechanism."""
        self.queue.place(pending_of(timer))
        self.follower.schedule(timer)

    def take_out(self, timer: Timer) -> None:
        """Take a timer out of the queue, note that it has left and notify the mechanism."""
        self.queue.cancel(timer.timer_id)
        self.follower.leave(timer.timer_id)
        self.departed.append(timer)

    def move(self, timer: Timer) -> None:
        """Move a timer that is to come to the height that its record has now, and notify the mechanism."""
        self.queue.move(pending_of(timer))
        self.follower.replace(timer)

    def extend(self, timer: Timer) -> None:
        """Give a timer in the queue the last height that its record has now, and notify the mechanism."""
        self.queue.extend(timer.timer_id, timer.expires_at)
        self.follower.replace(timer)

    def write_ends(self) -> None:
        """Write what `count_end` has counted to the totals."""
        totals = self.totals()
        for end, count in self.ends.items():
            setattr(totals, end.value, getattr(totals, end.value) + count)
        self.overlay.write(SCHEDULER_KEY, encode_record(totals))


FREE: Final = Prices(Price(0), Price(0))
"""Prices of an execution that costs nothing."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One paid execution: a transaction, a timer's fire, a message.

    Attributes:
        origin_hash: Hash of the transaction that it is or comes of; 32 zero bytes if there is none. Spec: CIP-5 §5.2.
        sender: Immediate caller that the handler sees.
        signer: Whose consent the fee payer rule accepts besides the actor's own. Decision: D-25.
        intrinsic_cycles: Used before anything runs.
        intrinsic_cells: Used before anything runs.
        timer_id: The timer that fires, or empty.
        actor: The actor that is called, or empty.
        facts: Returns what ``context()`` shows besides, as new values.
        pool: Number of the gas pool that it draws on; None for one of its own. Decision: D-88.
    """

    origin: Origin
    origin_hash: bytes = bytes(ZERO_HASH)
    sender: bytes
    signer: bytes
    payer: bytes
    cycles_limit: Cycles
    cells_limit: Cells
    intrinsic_cycles: Cycles = Cycles(0)
    intrinsic_cells: Cells = Cells(0)
    prices: Prices = FREE
    timer_id: bytes = b""
    actor: bytes = b""
    facts: Callable[[], Mapping[str, object]] = dict
    pool: int | None = None


def timer_event(name: str, timer: Timer, facts: Mapping[str, object], emitter: bytes | None = None) -> EventRecord:
    """Return an event about a timer, from its actor or from another emitter."""
    data = encode_canonical({"timer_id": timer.timer_id, **facts})
    return EventRecord(name, timer.actor if emitter is None else emitter, data, timer.timer_id)


class Scope(msgspec.Struct):
    """A transaction while it runs.

    Attributes:
        effects: What frames have asked for, in order; cut back when a frame fails.
        emitted: Events that actors have emitted so far.
        printing: What actors print; a frame that fails does not take it back.
    """

    session: BlockSession
    envelope: Envelope
    effects: list[Effect] = msgspec.field(default_factory=list)
    emitted: int = 0
    printing: Printing = msgspec.field(default_factory=Printing)

    def mark(self) -> tuple[int, int]:
        """Return where the transaction stands, for `revert`."""
        return self.session.overlay.mark(), len(self.effects)

    def revert(self, mark: tuple[int, int]) -> None:
        """Go back to a mark: writes and effects since then are gone."""
        self.session.overlay.revert(mark[0])
        del self.effects[mark[1] :]
