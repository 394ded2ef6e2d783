"""What the executions of a block did: their frames, with host calls and cycles by line, beside their receipts.

Decision: D-108
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import islice
from typing import Final

from msgspec import Struct

from trailboss.chain.chain import Chain
from trailboss.chain.reader import ChainReader
from trailboss.chain.replay import OnBlock, replay_to
from trailboss.execution.host import ChainHost
from trailboss.execution.session import Envelope
from trailboss.model.blocks import Block, ReceiptRecord
from trailboss.model.effects import Effect
from trailboss.params import ChainParams
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.sandbox.engines import traced_engine
from trailboss.vm.host import Host
from trailboss.vm.printed_lines import Printing
from trailboss.vm.trace import VALUE_MAX, FrameTrace, Tracer


class ExecutionTrace(Struct, frozen=True):
    """One paid execution: a transaction, a fire, a message."""

    receipt: ReceiptRecord
    frame: FrameTrace | None  # the outermost frame; None if nothing of an actor ran

    @property
    def intrinsic_cycles(self) -> int:
        """Cycles that the receipt has and no frame used: of the transaction, an agent, a frame that did not begin."""
        return self.receipt.cycles_used - (0 if self.frame is None else self.frame.cycles)


class BlockTrace(Struct, frozen=True):
    """The executions of a block in the order of its receipts, and the questions to gas bidding agents."""

    block: Block
    executions: tuple[ExecutionTrace, ...]
    agents: tuple[tuple[bytes, FrameTrace], ...]  # the timer's id and the frame of its agent


class TraceBounds(Struct, frozen=True):
    """How much is traced for those who cannot be trusted with more."""

    blocks: int | None = None  # most blocks with content that are built again; None for all
    calls: int | None = None  # most host calls of a block that are kept, those with a nested frame aside; None for all
    value: int = VALUE_MAX  # bytes or characters of an argument or an answer that are kept


UNBOUNDED: TraceBounds = TraceBounds()
TRACE_A_COPY: Final = "export the chain, and trace it with `trailboss trace` on the copy that you import"
"""What to do about a trace that a node refuses."""


class _NotedPrinting(Printing, eq=False, kw_only=True):
    """The printed lines of an execution, each of which is noted in its frame as well."""

    note: Callable[[str], None]

    def write(self, actor: bytes, handler: str, text: str) -> None:
        """Add printed text, as `Printing.write`."""
        self.note(text)
        super().write(actor, handler, text)


class TraceCollector:
    """Follows the frames of a chain whose engine is its own, and gives them back block by block.

    Attributes:
        engine: For that chain, which must be the only one that uses it.
    """

    def __init__(
        self, params: ChainParams, image: bytes, bounds: TraceBounds = UNBOUNDED, *, breakpoints: bool = False
    ) -> None:
        self._tracer = Tracer(params, self._note, _effects_of, calls_max=bounds.calls, value_max=bounds.value)
        self.engine = traced_engine(params, image, self._tracer, breakpoints=breakpoints)
        self._frames: list[tuple[Envelope, FrameTrace]] = []

    def _note(self, host: Host, frame: FrameTrace) -> None:
        scope = _chain_host(host).scope
        scope.printing = _NotedPrinting(note=self._tracer.note_print)
        self._frames.append((scope.envelope, frame))

    def forget(self) -> None:
        """Forget the frames since the last call of `take`: of no block, or of one that was dropped."""
        self._frames.clear()

    def take(self, block: Block) -> BlockTrace:
        """Return what the frames since the last call did; the block is the only one built since then."""
        waiting, self._frames = self._frames, []
        agents = [(envelope.timer_id, frame) for envelope, frame in waiting if frame.frame.read_only]
        waiting = [each for each in waiting if not each[1].frame.read_only]
        executions: list[ExecutionTrace] = []
        for receipt in block.receipts:
            is_next = bool(waiting) and _is_of(receipt, waiting[0][0])
            executions.append(ExecutionTrace(receipt, waiting.pop(0)[1] if is_next else None))
        return BlockTrace(block, tuple(executions), tuple(agents))


def trace_block(
    chain: ChainReader, height: int, on_block: OnBlock | None = None, bounds: TraceBounds = UNBOUNDED
) -> BlockTrace:
    """Build a block of a chain again, from genesis, and return what its executions did; the chain stays as it is.

    Complexity: O(blocks before it in which something happened).

    Raises:
        Rejection: ``INVALID_DATA`` if the chain has no such block above genesis, or more blocks come before it than the
            bounds allow; ``NOT_FOUND`` if it does not have its blocks from genesis.
        InvariantError: If a block comes out otherwise than the chain has it.
    """
    if not 1 <= height <= chain.height:
        what = f"there is no block {height} to trace: the chain has blocks 1..={chain.height} above genesis"
        raise Rejection(RejectionReason.INVALID_DATA, what, height=height, current_height=chain.height)
    recorded = chain.blocks[height]
    chain.blocks.check_there(0)
    if bounds.blocks is not None:
        before = (each for each in islice(chain.blocks.eventful(), bounds.blocks + 1) if each.height < height)
        if sum(1 for _ in before) > bounds.blocks:
            what = (
                f"more than {bounds.blocks:,} blocks with content come before block {height}; a trace builds them again"
            )
            raise Rejection(RejectionReason.INVALID_DATA, what, TRACE_A_COPY, height=height, limit=bounds.blocks)
    with closing(replay_to(chain, height - 1, on_block)) as replica:
        return trace_next(replica, recorded, bounds)


def trace_next(replica: Chain, recorded: Block, bounds: TraceBounds = UNBOUNDED) -> BlockTrace:
    """Apply a recorded block to a chain that stands before it, and return what its executions did."""
    genesis = replica.genesis
    collector = TraceCollector(replica.params, genesis.image, bounds, breakpoints=genesis.allows_breakpoints)
    untraced, replica.engine = replica.engine, collector.engine
    try:
        header = recorded.header
        proposer = genesis.proposer_of(header.proposer)
        applied = replica.stage(recorded.transactions, header.timestamp_ms, proposer=proposer)
    finally:
        replica.engine = untraced
        replica.forget()
        collector.engine.close()
    if applied.block.hash != recorded.hash:
        raise InvariantError(f"block {recorded.height} is {recorded.hash}, and its trace gives {applied.block.hash}")
    return collector.take(applied.block)


def _is_of(receipt: ReceiptRecord, envelope: Envelope) -> bool:
    """Return whether a receipt is that of an execution."""
    return (receipt.origin, receipt.origin_hash, receipt.timer_id, receipt.payer, receipt.actor) == (
        envelope.origin,
        envelope.origin_hash,
        envelope.timer_id,
        envelope.payer,
        envelope.actor or receipt.actor,
    )


def _chain_host(host: Host) -> ChainHost:
    if not isinstance(host, ChainHost):
        raise InvariantError(f"a frame has a host of type {type(host).__name__}")
    return host


def _effects_of(host: Host) -> Sequence[Effect]:
    return _chain_host(host).scope.effects
