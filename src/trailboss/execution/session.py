"""What is open while a block, and within it a transaction, is being applied."""

from dataclasses import dataclass, field

import msgspec

from trailboss.execution.ledger import Ledger
from trailboss.fees.settlement import Prices
from trailboss.governance.rules import SCHEDULER_KEY, Rules
from trailboss.mechanisms.base import Follower
from trailboss.model.blocks import Origin, ReceiptRecord
from trailboss.model.configs import JoiningGap, SchedulerTotals, decode_record, encode_record
from trailboss.model.decisions import DecisionRecord
from trailboss.model.effects import Effect
from trailboss.model.events import EventRecord
from trailboss.model.timers import Timer, TimerEnd
from trailboss.primitives.units import Amount, Cells, Cycles, Height
from trailboss.state.overlay import Overlay
from trailboss.timer_queue.queue import TimerQueue
from trailboss.vm.engine import Engine


@dataclass(frozen=True, slots=True)
class BlockContext:
    """Facts that hold for the whole block.

    Attributes:
        chain_id: Of the chain.
        chain_instance_id: Hash of the genesis, 32 bytes.
        height: Of the block.
        timestamp_ms: Of the block, milliseconds since 1970.
        parent: Hash of the header before.
        proposer: Who gets the tips, 20 bytes.
        parent_cycles_used: Cycles that the block before has used.
        rules: Everything governed.
    """

    chain_id: int
    chain_instance_id: bytes
    height: Height
    timestamp_ms: int
    parent: bytes
    proposer: bytes
    parent_cycles_used: int
    rules: Rules


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """A due timer that has been removed and pre-charged, and waits for its turn in this block.

    Attributes:
        timer: The timer.
        amount: Base units taken from its fee payer.
        prices: The prices they were taken at.
        gas_limit: Cycles the fire may use.
        used_cycles: Cycles that count as used before it runs: those of its agent's question.
    """

    timer: Timer
    amount: Amount
    prices: Prices
    gas_limit: Cycles
    used_cycles: Cycles


@dataclass(slots=True)
class BlockSession:
    """A block while it is being applied. Only `apply_block` makes one.

    Attributes:
        context: Facts of the block.
        overlay: All writes of the block.
        ledger: Accounts over the overlay.
        queue: The calendar queue; it follows what transactions commit.
        engine: What runs actor code.
        follower: Hears what becomes of due timers: the block's mechanism.
        reservations: Due timers pre-charged and not yet run, by id, in order.
        ends: Timers that the block itself has ended, by path; written to the totals once, when it closes.
        cycles_used: By everything so far.
        cells_used: By everything so far.
        timer_cycles_used: By fires so far.
        tips: Tip per cycle of each fire, in order.
        fires: Fires so far by actor.
        lane_burned: Base units that the lane basefee has burned so far.
        gaps: Due timers that the block has left out of the lane. Decision: D-51.
        decisions: How the block chose among its due timers, once it has.
    """

    context: BlockContext
    overlay: Overlay
    ledger: Ledger
    queue: TimerQueue
    engine: Engine
    follower: Follower
    receipts: list[ReceiptRecord] = field(default_factory=list)
    events: list[EventRecord] = field(default_factory=list)
    reservations: dict[bytes, Reservation] = field(default_factory=dict)
    ends: dict[TimerEnd, int] = field(default_factory=dict)
    cycles_used: int = 0
    cells_used: int = 0
    timer_cycles_used: int = 0
    tips: list[int] = field(default_factory=list)
    fires: dict[bytes, int] = field(default_factory=dict)
    lane_burned: int = 0
    gaps: tuple[JoiningGap, ...] = ()
    decisions: DecisionRecord | None = None

    def totals(self) -> SchedulerTotals:
        """Return the running totals over all timers, as they stand."""
        octets = self.overlay.read(SCHEDULER_KEY)
        return SchedulerTotals() if octets is None else decode_record(octets, SchedulerTotals)

    def count_scheduled(self) -> int:
        """Count one more timer scheduled and return how many there were before: its FIFO sequence."""
        totals = self.totals()
        totals.scheduled += 1
        self.overlay.write(SCHEDULER_KEY, encode_record(totals))
        return totals.scheduled - 1

    def count_cancelled(self) -> None:
        """Count one more timer cancelled, for as long as its transaction lasts."""
        totals = self.totals()
        totals.cancelled += 1
        self.overlay.write(SCHEDULER_KEY, encode_record(totals))

    def count_end(self, end: TimerEnd) -> None:
        """Count one more timer that the block has ended, outside any transaction."""
        self.ends[end] = self.ends.get(end, 0) + 1

    def count_fire(self, actor: bytes, tip: int) -> None:
        """Count a fire that used a frame at least: for its actor, and as a vote for the median tip. Decision: D-29."""
        self.fires[actor] = self.fires.get(actor, 0) + 1
        self.tips.append(tip)

    def take_out(self, timer_id: bytes) -> None:
        """Take a timer out of the queue and tell the mechanism that it has left."""
        self.queue.cancel(timer_id)
        self.follower.leave(timer_id)

    def write_ends(self) -> None:
        """Write what `count_end` has counted to the totals."""
        if self.ends:
            totals = self.totals()
            for end, count in self.ends.items():
                setattr(totals, end.value, getattr(totals, end.value) + count)
            self.overlay.write(SCHEDULER_KEY, encode_record(totals))


class Envelope(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One paid execution, whatever it came from: a transaction, a timer's fire, a message.

    Attributes:
        origin: What it came from.
        origin_hash: Transaction hash; 32 zero bytes otherwise. Spec: CIP-5 §5.2.
        sender: Immediate caller that the handler sees.
        signer: Whose consent the fee payer rule accepts besides the actor's own. Decision: D-25.
        payer: Account that pays.
        cycles_limit: Cycles it may use.
        cells_limit: Cells it may use.
        intrinsic_cycles: Used before anything runs.
        intrinsic_cells: Used before anything runs.
        prices: What a unit costs.
        timer_id: The timer that fires, or empty.
        actor: The actor that is called, or empty.
    """

    origin: Origin
    origin_hash: bytes
    sender: bytes
    signer: bytes
    payer: bytes
    cycles_limit: Cycles
    cells_limit: Cells
    intrinsic_cycles: Cycles = Cycles(0)
    intrinsic_cells: Cells = Cells(0)
    prices: Prices
    timer_id: bytes = b""
    actor: bytes = b""


class Scope(msgspec.Struct):
    """A transaction while it runs.

    Attributes:
        session: The block it runs in.
        envelope: What is executed.
        effects: What frames have asked for, in order; cut back when a frame fails.
        emitted: Events that actors have emitted so far.
    """

    session: BlockSession
    envelope: Envelope
    effects: list[Effect] = msgspec.field(default_factory=list)
    emitted: int = 0

    def mark(self) -> tuple[int, int]:
        """Return where the transaction stands, for `revert`."""
        return self.session.overlay.mark(), len(self.effects)

    def revert(self, mark: tuple[int, int]) -> None:
        """Go back to a mark: writes and effects since then are gone."""
        self.session.overlay.revert(mark[0])
        del self.effects[mark[1] :]
