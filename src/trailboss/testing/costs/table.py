"""`CostTable`: cycles, cells and money of executions by source, handler, test and line."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from trailboss.chain.trace import BlockTrace, ExecutionTrace
from trailboss.model.blocks import Origin, ReceiptRecord
from trailboss.primitives.errors import InvariantError
from trailboss.views.text import parser_lines
from trailboss.vm.trace import NO_LINE, FrameTrace

SHOWN_HASH: Final = 8  # hexadecimal digits of a code hash
REST: Final[Mapping[Origin, str]] = {
    Origin.TRANSACTION: "transactions",
    Origin.TIMER: "questions to gas bidding agents",
    Origin.MESSAGE: "deliveries of messages",
}
"""What an execution uses outside frames: the intrinsic price of a transaction with what it deploys or sends; what its
agent used before a fire; the base price of a frame that did not begin.
"""


class CostedSource(Struct):
    """An actor's source: its text, and its file if it was deployed from one."""

    text: str
    file: str = ""  # its path, relative to the folder of the tests where it lies within

    @property
    def name(self) -> str:
        """Its file; else the name of its class, or of its first function."""
        return self.file or _first_name(self.text)


class HandlerCosts(Struct):
    """What the calls of one handler cost in one test."""

    calls: list[int] = field(default_factory=list)  # cycles of each call, its frame's base included, nested frames not
    base: int = 0  # cycles of the bases of its frames
    nested: int = 0  # cycles of the frames that it called
    cells: int = 0  # those of nested frames not included
    paid: int = 0  # base units, of the executions that began with it
    lines: dict[int, int] = field(default_factory=dict)  # cycles by line; `NO_LINE` for those outside the source
    hits: dict[int, int] = field(default_factory=dict)  # how often each line ran, the turns of a loop included

    @property
    def cycles(self) -> int:
        """Cycles of all calls, nested frames not included."""
        return sum(self.calls)

    def merge(self, other: "HandlerCosts") -> None:
        """Add the costs of other calls."""
        self.calls += other.calls
        self.base += other.base
        self.nested += other.nested
        self.cells += other.cells
        self.paid += other.paid
        for sums, parts in ((self.lines, other.lines), (self.hits, other.hits)):
            for line, part in parts.items():
                sums[line] = sums.get(line, 0) + part


class RestCosts(Struct):
    """What executions used outside all frames, and what those paid that ran no frame."""

    cycles: int = 0
    cells: int = 0
    paid: int = 0

    def merge(self, other: "RestCosts") -> None:
        """Add other costs."""
        self.cycles += other.cycles
        self.cells += other.cells
        self.paid += other.paid


class CostTable(Struct):
    """The costs of executions; its rows add up to the totals, which are those of the receipts."""

    sources: dict[str, CostedSource] = field(default_factory=dict)  # by code hash, 64 hexadecimal digits
    # By code hash, handler and test.
    handlers: dict[str, dict[str, dict[str, HandlerCosts]]] = field(default_factory=dict)
    rest: dict[str, RestCosts] = field(default_factory=dict)  # by the names of `REST`
    executions: int = 0  # receipts
    total: RestCosts = field(default_factory=RestCosts)  # of the receipts

    def add(self, trace: BlockTrace, files: Mapping[bytes, str], test: str = "") -> None:
        """Add the executions of a block.

        Args:
            trace: What they did; questions to agents are part of the fire that follows.
            files: Files of sources, by code hash.
            test: The test that built the block; empty without one.

        Raises:
            InvariantError: If the frames and lines of an execution do not add up to its receipt.
        """
        for execution in trace.executions:
            receipt = execution.receipt
            self.executions += 1
            paid = _costs_of(receipt)
            self.total.merge(paid)
            cycles = self._add_frames(execution, files, test)
            used = 0 if execution.frame is None else execution.frame.cells
            rest = RestCosts(receipt.cycles_used - cycles, receipt.cells_used - used)
            if execution.frame is None:
                rest.paid = paid.paid
            if min(rest.cycles, rest.cells) < 0:
                raise InvariantError(f"frames used {-rest.cycles} cycles or {-rest.cells} cells more than {receipt}")
            if rest != RestCosts():
                self.rest.setdefault(REST[receipt.origin], RestCosts()).merge(rest)

    def _add_frames(self, execution: ExecutionTrace, files: Mapping[bytes, str], test: str) -> int:
        """Add the frames of an execution; return their cycles."""
        cycles = 0
        for frame in frames_of(execution.frame):
            costs = self._costs(frame, files, test)
            if sum(frame.lines.values()) != frame.own_cycles:
                what = f"the lines of {frame.frame.handler} use {sum(frame.lines.values())} cycles"
                raise InvariantError(f"{what}, and its frame {frame.own_cycles}")
            own = frame.base + frame.own_cycles
            nested_cells = sum(each.cells for each in frame.nested)
            paid = execution.receipt.fee_paid if frame is execution.frame else 0
            one = HandlerCosts(
                [own], frame.base, frame.cycles - own, frame.cells - nested_cells, paid, frame.lines, frame.hits
            )
            costs.merge(one)
            cycles += own
        return cycles

    def _costs(self, frame: FrameTrace, files: Mapping[bytes, str], test: str) -> HandlerCosts:
        code_hash = frame.frame.code_hash.hex()
        source = self.sources.setdefault(code_hash, CostedSource(frame.frame.source))
        source.file = source.file or files.get(frame.frame.code_hash, "")
        by_test = self.handlers.setdefault(code_hash, {}).setdefault(frame.frame.handler, {})
        return by_test.setdefault(test, HandlerCosts())

    def merge(self, other: "CostTable") -> None:
        """Add another table, as of another worker."""
        for code_hash, source in other.sources.items():
            known = self.sources.setdefault(code_hash, source)
            known.file = known.file or source.file
        for code_hash, handler, test, costs in other.rows():
            by_test = self.handlers.setdefault(code_hash, {}).setdefault(handler, {})
            by_test.setdefault(test, HandlerCosts()).merge(costs)
        for name, rest in other.rest.items():
            self.rest.setdefault(name, RestCosts()).merge(rest)
        self.executions += other.executions
        self.total.merge(other.total)

    def rows(self) -> Iterator[tuple[str, str, str, HandlerCosts]]:
        """Yield code hash, handler, test and costs of each row."""
        for code_hash, handlers in self.handlers.items():
            for handler, tests in handlers.items():
                for test, costs in tests.items():
                    yield code_hash, handler, test, costs

    def check(self) -> None:
        """Check that the rows add up to the receipts.

        Raises:
            InvariantError: If they do not.
        """
        summed = RestCosts()
        for rest in self.rest.values():
            summed.merge(rest)
        for _, handler, _, costs in self.rows():
            if costs.base + sum(costs.lines.values()) != costs.cycles:
                raise InvariantError(f"the lines of {handler} do not add up to its {costs.cycles} cycles")
            summed.merge(RestCosts(costs.cycles, costs.cells, costs.paid))
        if summed != self.total:
            raise InvariantError(f"the rows of a cost table add up to {summed}, and its receipts to {self.total}")

    def of_handlers(self, code_hash: str) -> dict[str, HandlerCosts]:
        """Return the costs of the handlers of a source, over all tests, the dearest first."""
        found: dict[str, HandlerCosts] = {}
        for handler, tests in self.handlers[code_hash].items():
            found[handler] = merged(tests.values())
        return dict(sorted(found.items(), key=lambda item: (-item[1].cycles, item[0])))

    def by_name(self) -> list[tuple[str, str]]:
        """Return the name of each source with its code hash, in order; two versions of a file have one name."""
        return sorted((self.sources[code_hash].name, code_hash) for code_hash in self.handlers)


def merged(costs: Iterable[HandlerCosts]) -> HandlerCosts:
    """Return the sum of several costs."""
    found = HandlerCosts()
    for each in costs:
        found.merge(each)
    return found


def frames_of(frame: FrameTrace | None) -> Iterator[FrameTrace]:
    """Yield a frame and those nested in it, each before those that it called."""
    if frame is not None:
        yield frame
        for nested in frame.nested:
            yield from frames_of(nested)


def line_text(source: CostedSource, line: int) -> str:
    """Return the text of a line without its indentation; empty for `NO_LINE`."""
    lines = parser_lines(source.text)
    return lines[line - 1].strip() if NO_LINE < line <= len(lines) else ""


def file_name(path: str, root: Path) -> str:
    """Return a file's path relative to a folder; of a file elsewhere, as in a temporary folder, its name alone."""
    found = Path(path)
    return found.relative_to(root).as_posix() if found.is_relative_to(root) else found.name


def _costs_of(receipt: ReceiptRecord) -> RestCosts:
    return RestCosts(receipt.cycles_used, receipt.cells_used, receipt.fee_paid)


@lru_cache
def _first_name(source: str) -> str:
    definitions = [each for each in ast.parse(source).body if isinstance(each, ast.ClassDef | ast.FunctionDef)]
    classes = [each.name for each in definitions if isinstance(each, ast.ClassDef)]
    # An actor's class stands last, below the records that it uses.
    return f"class {classes[-1]}" if classes else f"{definitions[0].name}(…)" if definitions else "a source"
