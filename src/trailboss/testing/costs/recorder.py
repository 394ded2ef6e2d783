"""`CostRecorder`: the chains of a run of tests, whose blocks it adds to a cost table as they are built."""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from trailboss.chain.chain import Chain
from trailboss.chain.history import History
from trailboss.chain.trace import BlockTrace, TraceCollector
from trailboss.execution.block import Applied
from trailboss.execution.genesis import Genesis
from trailboss.model.transactions import Transaction
from trailboss.params import ChainParams
from trailboss.primitives.octets import Address
from trailboss.state.store import Store
from trailboss.testing.costs.flame import FlameGraph
from trailboss.testing.costs.table import CostTable, file_name
from trailboss.vm.engine import Engine

NATIVE: bytes = b""  # the image of a chain that runs the native engine


class CostRecorder:
    """Records what tests cost.

    Attributes:
        table: The costs so far.
        flames: The same by stack; None unless it is asked for.
        test: The test that runs now; empty without one.
    """

    def __init__(self, root: Path, *, with_flames: bool = False) -> None:
        """Record costs; names of files are relative to a folder."""
        self.table = CostTable()
        self.flames = FlameGraph() if with_flames else None
        self.test = ""
        self._root = root

    def chain_class(self) -> type[Chain]:
        """Return the class of chains whose blocks are recorded here."""
        return type("RecordedChain", (RecordedChain,), {"recorder": self})

    def add(self, trace: BlockTrace, files: dict[bytes, str]) -> None:
        """Add the executions of a block, with the files of their sources by code hash."""
        names = {code_hash: file_name(path, self._root) for code_hash, path in files.items()}
        self.table.add(trace, names, self.test)
        if self.flames is not None:
            self.flames.add(trace, self.table.sources)


class RecordedBlock(Struct):
    """A block that is applied and not sealed yet: it may be dropped."""

    applied: Applied
    trace: BlockTrace


class RecordedChain(Chain):
    """A chain whose engine is traced, and whose blocks go to a recorder when they are sealed."""

    recorder: ClassVar[CostRecorder]
    _collector: TraceCollector
    _native: TraceCollector | None  # beside the sandbox, which counts no lines
    _staged: RecordedBlock | None

    def _begin(self, genesis: Genesis, params: ChainParams, engine: Engine, store: Store, blocks: History) -> None:
        engine.close()
        self._collector = TraceCollector(params, genesis.image, breakpoints=genesis.allows_breakpoints)
        self._native = TraceCollector(params, NATIVE) if genesis.image else None
        self._staged = None
        super()._begin(genesis, params, self._collector.engine, store, blocks)

    def stage(
        self,
        transactions: Iterable[Transaction],
        timestamp_ms: int | None = None,
        *,
        proposer: Address | None = None,
        signatures_checked: bool = False,
        runs_programs: bool = True,  # noqa: ARG002  # the native engine needs no thread of its own
    ) -> Applied:
        """Apply the next block, as `Chain.stage`; a chain of the sandbox applies it natively before, for its lines."""
        given = list(transactions)
        by_line: RecordedBlock | None = None
        if self._native is not None:
            sandbox, self.engine = self.engine, self._native.engine
            try:
                by_line = self._recorded(self._native, given, timestamp_ms, proposer, checked=signatures_checked)
            finally:
                self.engine = sandbox
            self.forget()
        own = self._recorded(self._collector, given, timestamp_ms, proposer, checked=signatures_checked)
        # Where the sandbox charges fuel, or ends a frame that the native engine would not, its block is another one.
        is_same = by_line is not None and by_line.applied.block.hash == own.applied.block.hash
        self._staged = by_line if is_same else own
        return own.applied

    def _recorded(
        self,
        collector: TraceCollector,
        transactions: list[Transaction],
        timestamp_ms: int | None,
        proposer: Address | None,
        *,
        checked: bool,
    ) -> RecordedBlock:
        collector.forget()
        applied = super().stage(transactions, timestamp_ms, proposer=proposer, signatures_checked=checked)
        return RecordedBlock(applied, collector.take(applied.block))

    def seal(self, applied: Applied) -> None:
        """Append the staged block, as `Chain.seal`, and record it."""
        super().seal(applied)
        if self._staged is not None and self._staged.applied.block.hash == applied.block.hash:
            self.recorder.add(self._staged.trace, self._collector.engine.tracer.files)
        self._staged = None

    def close(self) -> None:
        """Close the chain, and the engine beside its own."""
        super().close()
        if self._native is not None:
            self._native.engine.close()
