"""Another gas bidding agent on a chain's own history: its blocks are built again, and the other agent is asked.

Transactions are those of the chain; fires, prices and balances follow from the other bids. An agent that answers as the
chain's own did gives the same blocks. Spec: CIP-1v1 §4.2, CIP-1v3 §7. Decision: D-117.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from trailboss.chain.chain import Chain
from trailboss.chain.reader import ChainReader
from trailboss.codec.canonical import decode_canonical
from trailboss.crypto.digest import keccak256
from trailboss.execution.agents import HANDLER
from trailboss.metering.meter import Meter
from trailboss.model.blocks import Block, Origin, ReceiptRecord, Status
from trailboss.model.decisions import DecisionRecord
from trailboss.model.events import TIMER_ENDINGS, TIMER_FIRED, TIMER_SCHEDULED
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.sandbox.engines import new_engine
from trailboss.views.records import block_events
from trailboss.vm.engine import Frame, FrameOutcome
from trailboss.vm.host import Host
from trailboss.vm.outer_engine import OuterEngine

NO_BID: Final = Rejection(RejectionReason.PVM_ERROR, "this agent is not asked").error()
LATEST_SHARE: Final = (95, 100)  # share of the fires whose delay is at most the one that is shown
OnBlock = Callable[[Block], object]


class BidEngine(OuterEngine, frozen=True):
    """An engine on which another agent is asked about the timers of some actors, or none is."""

    actors: Collection[bytes]  # whose timers; empty for all
    source: str | None  # of the other agent; None for none, so that the market's default counts
    code_hash: bytes = b""

    def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:
        """Run a frame; a question for a bid goes to the other agent, which has the storage of the one asked."""
        is_question = frame.read_only and not frame.depth and frame.handler == HANDLER
        if is_question and (not self.actors or host.context()["sender"] in self.actors):
            if self.source is None:
                return FrameOutcome(b"", NO_BID)
            frame = replace(frame, source=self.source, code_hash=self.code_hash)
        return self.inner.run(frame, host, meter)


class Bidding(Struct):
    """What became, over some blocks, of timers that left their price to an agent. Amounts are base units."""

    questions: int = 0  # that agents were asked
    failures: int = 0  # answers that were no bid, so that the market's default counted
    fires: int = 0
    reverted: int = 0  # of these
    unfired: int = 0  # timers that ended otherwise
    waiting: int = 0  # timers that were asked about and still live at the end
    delays: list[int] = field(default_factory=list)  # of each fire, blocks after its height
    paid: int = 0  # by the payers of the fires
    tips: int = 0  # part of that which the proposer got
    overpaid: int = 0  # part of the tips above the least tip that fired in the same block while others waited
    refused: int = 0  # transactions of the chain that did not come into a block

    @property
    def mean_delay(self) -> float:
        """Mean delay of a fire, blocks."""
        return sum(self.delays) / len(self.delays) if self.delays else 0.0

    @property
    def late_delay(self) -> int:
        """The delay that 95 % of the fires do not exceed, blocks."""
        ranked, (share, whole) = sorted(self.delays), LATEST_SHARE
        return ranked[(len(ranked) - 1) * share // whole] if ranked else 0


class Backtest(Struct, frozen=True):
    """What happened, what the market's default would have come to, and what another agent would have."""

    first_block: int
    last_block: int
    recorded: Bidding
    default: Bidding
    agent: Bidding


def backtest(
    chain: ChainReader,
    source: str,
    *,
    actors: Iterable[bytes] = (),
    first: int = 1,
    on_block: OnBlock = lambda _: None,
) -> Backtest:
    """Return what another agent would have come to on a chain; the chain stays as it is.

    Complexity: two replays of the chain from genesis.

    Args:
        chain: With its blocks from genesis.
        source: Of the agent; it has a handler ``get_gas_bid``.
        actors: About whose timers it is asked, 20 bytes each; none for all that an agent prices.
        first: Block from which it is asked, and from which fires count.
        on_block: Called with each block that is built.

    Raises:
        Rejection: As `Engine.check_source` for the source; ``HANDLER_NOT_FOUND`` without the handler; ``NOT_FOUND`` if
            no block from ``first`` on asks an agent about them; ``INVALID_DATA`` if there is no such block.
    """
    if not 1 <= first <= chain.height:
        what = f"a backtest begins with a block of 1..={chain.height}, not {first}"
        raise Rejection(RejectionReason.INVALID_DATA, what, first=first)
    chain.blocks.check_there(0)
    wanted, code_hash = frozenset(map(bytes, actors)), keccak256(source.encode())
    engine = new_engine(chain.params, chain.genesis.image, breakpoints=chain.genesis.allows_breakpoints)
    try:
        engine.check_source(source, code_hash)
        if HANDLER not in engine.handlers(source, code_hash):
            raise Rejection(RejectionReason.HANDLER_NOT_FOUND, f"the agent has no handler {HANDLER}, which is asked")
        timers = _Timers(wanted, first)
        for block in chain.blocks.records(1):
            timers.watch(block)
        recorded = timers.bidding()
        if not recorded.questions:
            about = f" about timers of {', '.join(str(Address(each)) for each in sorted(wanted))}" if wanted else ""
            what = f"blocks {first} to {chain.height} ask no gas bidding agent for a bid{about}"
            raise Rejection(RejectionReason.NOT_FOUND, what)
        default, other = (
            _replayed(chain, BidEngine(engine, wanted, answer, code_hash), _Timers(wanted, first), on_block)
            for answer in (None, source)
        )
    finally:
        engine.close()
    return Backtest(first, chain.height, recorded, default, other)


def _replayed(chain: ChainReader, engine: BidEngine, timers: "_Timers", on_block: OnBlock) -> Bidding:
    replica = Chain(chain.genesis, engine.inner)
    refused = 0

    def pass_time(last: int) -> None:
        for block in replica.advance_to(last):
            timers.watch(block)
            on_block(block)

    for recorded in chain.blocks.records(1):
        # What is idle between two recorded blocks need not be so here.
        if recorded.height >= timers.first:
            pass_time(max(replica.height, timers.first - 1))
            replica.engine = engine
        pass_time(recorded.height - 1)
        header = recorded.header
        timestamp = max(header.timestamp_ms, replica.head.header.timestamp_ms)
        proposer = replica.genesis.proposer_of(header.proposer)
        applied = replica.stage(recorded.transactions, timestamp, proposer=proposer)
        replica.seal(applied)
        refused += len(applied.refused)
        timers.watch(applied.block)
        on_block(applied.block)
    replica.engine = engine
    pass_time(chain.height)
    found = timers.bidding()
    found.refused = refused
    return found


class _Timers:
    """Timers that left their price to an agent, watched block by block."""

    def __init__(self, actors: Collection[bytes], first: int) -> None:
        """Watch those of some actors, or all, from a block on."""
        self.first = first
        self._actors = actors
        self._owners: dict[bytes, bytes] = {}
        self._asked: dict[bytes, None] = {}
        self._found = Bidding()

    def watch(self, block: Block) -> None:
        """Note what happens in a block."""
        for event in block_events(block):
            if event.name == TIMER_SCHEDULED:
                self._owners[event.timer_id] = event.emitter
        record = block.decisions
        if block.height >= self.first and record is not None:
            bids, failed = ({each.timer_id for each in rows} for rows in (record.agent_bids, record.agent_failures))
            ours = [each for each in bids | failed if not self._actors or self._owners.get(each) in self._actors]
            self._asked |= dict.fromkeys(sorted(ours))
            self._found.questions += len(ours)
            self._found.failures += sum(each in failed for each in ours)
            least = _least_tip(block, record)
            for receipt in block.receipts:
                if receipt.origin is Origin.TIMER and receipt.timer_id in self._asked:
                    self._fire(receipt, least)
        for event in block_events(block):
            if event.name in TIMER_ENDINGS:
                self._owners.pop(event.timer_id, None)
                if event.timer_id in self._asked:
                    del self._asked[event.timer_id]
                    if event.name == TIMER_FIRED:
                        facts: Any = decode_canonical(event.data)
                        self._found.delays.append(facts["blocks_deferred"])
                    else:
                        self._found.unfired += 1

    def bidding(self) -> Bidding:
        """Return what has become of them."""
        self._found.waiting = len(self._asked)
        return self._found

    def _fire(self, receipt: ReceiptRecord, least: int) -> None:
        found = self._found
        found.fires += 1
        found.reverted += receipt.status is Status.REVERTED
        found.paid += receipt.fee_paid
        found.tips += receipt.tip
        found.overpaid += max(0, receipt.tip - least * receipt.cycles_used)


def _least_tip(block: Block, record: DecisionRecord) -> int:
    """Return the least tip per cycle that fired while others waited, base units; 0 if none did."""
    if not (record.outranked or any(each.reason for each in record.decided)):
        return 0
    fires = (each for each in block.receipts if each.origin is Origin.TIMER and each.cycles_used)
    return min((each.tip // each.cycles_used for each in fires), default=0)
