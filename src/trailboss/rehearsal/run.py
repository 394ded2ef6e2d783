"""A fork of a chain, one run of a rehearsal on it, and what becomes of each timer in that run. Decision: D-13."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from trailboss.chain.block_archive import MemoryArchive
from trailboss.chain.chain import Chain
from trailboss.chain.history import BlockSequence, History
from trailboss.chain.reader import ChainReader
from trailboss.codec.canonical import decode_canonical
from trailboss.governance.apply import VALUE_WIDTH
from trailboss.governance.parameters import system_slot_key
from trailboss.model.blocks import Block, Origin, ReceiptRecord
from trailboss.model.decisions import DecisionRecord
from trailboss.model.events import TIMER_ENDINGS, TIMER_EXTENDED, TIMER_SCHEDULED, TIMER_UNFUNDED, EventRecord
from trailboss.model.timers import NO_FEES, DeferralReason, Timer
from trailboss.sandbox.engines import new_engine
from trailboss.state.branch import BranchStore
from trailboss.state.slots import encode_slot
from trailboss.views.explain.waits import AGENT_OFFER
from trailboss.views.mechanism.lane_records import lane_cap, lane_gas_limit
from trailboss.views.records import block_events
from trailboss.views.text import runs_of
from trailboss.vm.engine import Engine


def fork_of(
    original: ChainReader, changes: Mapping[bytes, bytes | None] | None = None, engine: Engine | None = None
) -> Chain:
    """Return a chain that begins as another one stands: state, clock, timers, and the blocks so far.

    State and blocks below the fork are read from the original: it must stay open and must not go back below the fork,
    but may go on. The fork itself cannot go back below where it began. Complexity: O(timers that are due or near).

    Args:
        original: Stays as it is. The fork shares the engine of a chain, since all that it keeps is compiled code; a
            view has none, for it may be another thread's.
        changes: What differs in its state, by full key, though no block did it; None for what is gone.
        engine: What runs the fork's actors; None for the chain's own, or for a view one that closes with the fork.
    """
    base = original.store.view() if isinstance(original, Chain) else original.store
    store = BranchStore(base, changes or {})
    interval_ms = original.params.governance.block_interval_ms
    blocks = History(_ForkArchive(original.blocks), interval_ms, height=original.height, base=original.blocks.base)
    shared = engine or (original.engine if isinstance(original, Chain) else None)
    genesis = original.genesis
    used = shared or new_engine(original.params, genesis.image, breakpoints=genesis.allows_breakpoints)
    return Chain.of_parts(genesis, original.params, used, store, blocks, owns_engine=shared is None)


def governed_slots(chain: ChainReader, governed: Mapping[bytes, int]) -> dict[bytes, bytes | None]:
    """Return what the state holds if parameters are set, by key of SetGovParam, for `fork_of`."""
    return {
        system_slot_key(chain.params, name): encode_slot(name, value.to_bytes(VALUE_WIDTH, "big"))
        for name, value in governed.items()
    }


class _ForkArchive:
    """An archive in memory above a height, below it the records of another history."""

    __slots__ = ("_above", "_first", "_original")

    def __init__(self, original: BlockSequence) -> None:
        self._original = original
        self._first = original.height
        self._above = MemoryArchive()
        self._above.keep(original.head)

    def keep(self, record: Block | None) -> None:
        """Keep a record above all others, or none."""
        self._above.keep(record)

    def at(self, height: int) -> Block:
        """Return a block that is the one of a height, or the last record below it."""
        return self._above.at(height) if height >= self._first else self._original[height]

    def records(self, first: int) -> Iterator[Block]:
        """Yield the records from a height on, ascending. Do not keep or drop any meanwhile."""
        yield from takewhile(lambda block: block.height < self._first, self._original.records(first))
        yield from self._above.records(first)

    def drop_above(self, height: int) -> None:
        """Forget the records above a height."""
        self._above.drop_above(height)


FIRED: Final = "fired"
UNFUNDED: Final = "unfunded"
EXPIRED: Final = "expired"
CANCELLED: Final = "cancelled"
ENDS: Final = {EXPIRED: "expires", UNFUNDED: "is removed unfunded", CANCELLED: "is cancelled"}
STRANDED: Final = "stranded"
"""It still waits, and no block of the lane will take it: its gas limit is above the cap. Decision: D-13."""
WAITING: Final = "waiting"

OnBlock = Callable[[Block], object]
Run = tuple[int, int]  # heights of the first and the last of some blocks in a row


class Payment(Struct, frozen=True, kw_only=True):
    """What one fire cost its payer. Prices are base units per cycle, all else base units."""

    cycles_used: int  # cycles used
    cells_used: int  # cells used; they pay the cell basefee, in every case
    price_per_cycle: int  # the next three together
    cycle_basefee: int  # part of the price that is burned
    lane_basefee: int  # part that is burned and counted apart; 0 under FIFO
    tip_per_cycle: int  # part that the proposer gets
    paid: int  # the next four together
    cycle_burned: int  # by the cycle basefee
    cell_burned: int  # by the cell basefee
    lane_burned: int  # by the lane basefee
    tip: int  # to the proposer


class Fate(Struct, frozen=True, kw_only=True):
    """What became of a timer in one run."""

    # ``fired``, ``unfunded``, ``expired``, ``cancelled``; or ``stranded`` or ``waiting``, if it still lives.
    outcome: str
    height: int | None  # height of the block in which it ended; None if it still lives
    delay: int = 0  # blocks, from its height on, in which it was due and did not end
    payment: Payment | None = None  # what it cost; None unless it fired
    missing: int = 0  # base units that its payer lacked; 0 unless it ended unfunded
    error: str = ""  # what reverted the fire, as the slug of the error; empty if nothing did
    # Blocks of this run in which it waited, by reason: a `DeferralReason`, or ``agent_offer`` where its agent's
    # offer was priced out or outranked, and no record says which.
    waits: Mapping[str, int] = field(default_factory=dict)
    priced_out: tuple[Run, ...] = ()  # those among them in which it was priced out


def endings(block: Block) -> Iterator[tuple[bytes, str, int]]:
    """Yield the timers that a block has ended without a fire: id, outcome, and what its payer lacked, base units."""
    for record in block_events(block):
        outcome = TIMER_ENDINGS.get(record.name, FIRED)
        if outcome != FIRED:
            missing = 0
            if record.name == TIMER_UNFUNDED:
                facts = _facts(record)
                missing = facts["required"] - facts["available"]
            yield record.timer_id, outcome, missing


class RehearsalRun:
    """A fork on its way, watched.

    Attributes:
        fork: The chain.
        basefees: Lane basefee of each block from the activation on.
        scheduled: What the run's own fires have scheduled, by id: the timer, and the height of that block.
    """

    def __init__(self, fork: Chain, activation_height: int | None) -> None:
        """Take a fork that has not moved yet, and the first block under the lane's rules, if there is one."""
        self.fork = fork
        self.basefees: list[int] = []
        self.scheduled: dict[bytes, tuple[Timer, int]] = {}
        self._first = fork.height + 1
        self._activation = activation_height
        self._ends: dict[bytes, Fate] = {}
        self._expires_at: dict[bytes, int] = {}
        self._passed_over: dict[bytes, list[tuple[int, str]]] = defaultdict(list)
        self._records: list[DecisionRecord | None] = []
        self._resting_basefee = 0

    def advance(self, last: int, on_block: OnBlock | None) -> None:
        """Build blocks without transactions up to a height, and pass each on."""
        for block in self.fork.advance_to(last):
            self._watch(block)
            if on_block is not None:
                on_block(block)

    def fate(self, timer: Timer) -> Fate:
        """Return what became of a timer due by the last block. O(1) without fees, else O(blocks in which it waited)."""
        end, last = self._ends.get(timer.timer_id), self.fork.height
        stop = last + 1 if end is None or end.height is None else end.height
        present = timer if end is not None else self.fork.timer(timer.timer_id) or timer
        waits, priced_out = self._waits(present, stop)
        if end is None:
            end = Fate(outcome=STRANDED if self._is_over_cap(timer) else WAITING, height=None)
        return replace(end, delay=max(0, stop - timer.height), waits=waits, priced_out=tuple(runs_of(priced_out)))

    def _watch(self, block: Block) -> None:
        record = block.decisions
        if self._activation is not None and block.height >= self._activation:
            self.basefees.append(self._resting_basefee if record is None else record.lane_basefee)
            self._resting_basefee = self._resting_basefee if record is None else record.next_lane_basefee
            self._records.append(record)
        if record is not None:
            for item in record.decided:
                if item.reason:
                    self._passed_over[item.timer_id].append((block.height, item.reason))
            for item in record.runners_up:
                self._passed_over[item.timer_id].append((block.height, DeferralReason.OUTRANKED))
            for receipt in block.receipts:
                if receipt.origin is Origin.TIMER:
                    payment = payment_of(receipt, record, in_lane=len(self.basefees) > 0)
                    error = "" if receipt.error is None else receipt.error.slug
                    self._ends[receipt.timer_id] = Fate(
                        outcome=FIRED, height=block.height, payment=payment, error=error
                    )
        for event in block_events(block):
            self._watch_event(event, block.height)
        for timer_id, outcome, missing in endings(block):
            self._ends[timer_id] = Fate(outcome=outcome, height=block.height, missing=missing)

    def _watch_event(self, event: EventRecord, height: int) -> None:
        if event.name == TIMER_SCHEDULED:
            timer = self.fork.timer(event.timer_id)
            # Cancelled in its own block, it could never be due.
            if timer is not None:
                self.scheduled[timer.timer_id] = timer, height
        elif event.name == TIMER_EXTENDED:
            self._expires_at[event.timer_id] = _facts(event)["expires_at"]

    def _is_over_cap(self, timer: Timer) -> bool:
        if self._activation is None:
            return False
        rules = self.fork.rules()
        return lane_gas_limit(rules, timer.gas_limit, timer.schedule_block) > lane_cap(rules)

    def _waits(self, timer: Timer, stop: int) -> tuple[dict[str, int], list[int]]:
        """Return in how many blocks before ``stop`` a timer waited, by reason, and in which it was priced out."""
        start = max(timer.height, self._first)
        lane = stop if self._activation is None else min(max(start, self._activation), stop)
        passed = self._passed_over.get(timer.timer_id, [])
        reasons = Counter(reason for _, reason in passed)
        # Records name the first timers that were examined; the others of FIFO were behind those.
        before = max(0, lane - start)
        reasons[DeferralReason.LANE_FULL] += before - sum(height < lane for height, _ in passed)
        priced_out: list[int] = []
        if lane < stop:
            priced_out = self._lane_waits(timer, range(lane, stop), reasons)
        return {str(reason): count for reason, count in reasons.items() if count > 0}, priced_out

    def _lane_waits(self, timer: Timer, heights: range, reasons: Counter[str]) -> list[int]:
        """Count blocks of the lane by reason, in the order in which the lane sorts; return those that priced it out."""
        activation = heights.start if self._activation is None else self._activation
        joined = heights[bisect_left(heights, True, key=lambda height: self._has_joined(timer, height - activation)) :]
        reasons[DeferralReason.NOT_JOINED] += len(heights) - len(joined)
        expires_at = self._expires_at.get(timer.timer_id, timer.expires_at)
        live = range(joined.start, max(joined.start, min(joined.stop, expires_at + 1)))
        passed = {height for height, _ in self._passed_over.get(timer.timer_id, ())}
        named = sum(height in live for height in passed)
        reasons[DeferralReason.GC_EXHAUSTED] += len(joined) - len(live)
        if self._is_over_cap(timer):
            reasons[DeferralReason.OVER_CAP] += len(live) - named
            return []
        frozen = timer.frozen_fees()
        unnamed = [] if timer.fees == NO_FEES else [height for height in live if height not in passed]
        if frozen is not None:
            priced_out = [height for height in unnamed if self.basefees[height - activation] > frozen[0]]
            reasons[DeferralReason.OUTRANKED] += len(unnamed) - len(priced_out)
        elif timer.fees == NO_FEES:
            priced_out = []
            reasons[DeferralReason.OUTRANKED] += len(live) - named
        else:
            priced_out = [height for height in unnamed if self._names_all(height - activation)]
            reasons[AGENT_OFFER] += len(unnamed) - len(priced_out)
        reasons[DeferralReason.PRICED_OUT] += len(priced_out)
        return priced_out

    def _has_joined(self, timer: Timer, index: int) -> bool:
        record = self._records[index]
        return record is None or record.has_joined(timer.height, timer.sequence)

    def _names_all(self, index: int) -> bool:
        """Return whether a block's record names all timers that were ranked."""
        record = self._records[index]
        return record is not None and len(record.examined) == record.examined_count + record.outranked


def _facts(event: EventRecord) -> Any:
    return decode_canonical(event.data)


def payment_of(receipt: ReceiptRecord, record: DecisionRecord, *, in_lane: bool) -> Payment:
    """Return what a fire cost, by the record of its block; ``in_lane`` is whether the timer lane is active there."""
    lane_basefee = record.lane_basefee if in_lane else 0
    tip_per_cycle = receipt.tip // receipt.cycles_used if receipt.cycles_used else 0
    lane_burned = receipt.cycles_used * lane_basefee
    cell_burned = receipt.cells_used * record.cell_basefee
    return Payment(
        cycles_used=receipt.cycles_used,
        cells_used=receipt.cells_used,
        price_per_cycle=record.cycle_basefee + lane_basefee + tip_per_cycle,
        cycle_basefee=record.cycle_basefee,
        lane_basefee=lane_basefee,
        tip_per_cycle=tip_per_cycle,
        paid=receipt.fee_paid,
        cycle_burned=receipt.fee_burned - lane_burned - cell_burned,
        cell_burned=cell_burned,
        lane_burned=lane_burned,
        tip=receipt.tip,
    )
