"""What frames do, for people: calls of one another, host calls, and cycles by line. No rule depends on it.

A `Tracer` gets an engine's host calls and, on the native engine, its gauges; `TracedEngine` gives it the frames. All of
them charge what they charge without it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from sys import _getframe
from types import CodeType, FrameType
from typing import Any, Final

from msgspec import Struct, field

from trailboss.metering.gauge import Gauge, identity
from trailboss.metering.meter import Meter
from trailboss.model.effects import Effect
from trailboss.model.events import CHARACTERS_MAX
from trailboss.params import ChainParams
from trailboss.primitives.errors import ErrorObject, Rejection
from trailboss.primitives.units import Cycles
from trailboss.vm.arguments import SEQUENCE_MAX, ArgumentFault, plain
from trailboss.vm.engine import CallSite, Frame, FrameOutcome, HostCall
from trailboss.vm.host import Host
from trailboss.vm.line_prices import Split, line_prices
from trailboss.vm.native import NativeEngine
from trailboss.vm.outer_engine import OuterEngine
from trailboss.vm.printed_lines import LINES_MAX, printed_text
from trailboss.vm.program import Program
from trailboss.vm.readings import READINGS

NO_LINE: Final = 0
"""The line of cycles that no line of the source has: of the engine, or of an engine that does not count lines."""
VALUE_MAX: Final = 65_536
"""Bytes or characters of an argument or an answer that are kept; a longer one is kept as text that says so."""
BITS_MAX: Final = 4_096  # of an integer that is kept as one
SLOT_CALLS: Final = frozenset({"set_state", "delete_state", "set_reserved_state", "delete_reserved_state"})
_PLAIN: Final = frozenset(map(identity, (bool, int, str, bytes, type(None))))


class HostCallTrace(Struct, eq=False):
    """One host call of a frame; those that read what the frame knows from its start are left out."""

    name: str  # its public name
    # As the program gave them by position; others than plain values of bounded length, and lists of them, as text.
    arguments: tuple[object, ...]
    named: Mapping[str, object]  # those given by name
    line: int  # of the actor's source, from 1; `NO_LINE` on an engine that does not count lines
    cycles: int = 0  # used by the call, a nested frame included
    cells: int = 0  # the same in cells
    answer: object = None
    refusal: str = ""  # why it was refused, if it was
    frame: "FrameTrace | None" = None  # the nested frame that it ran
    effects: tuple[Effect, ...] = ()  # what it asked for, but for what its nested frame did
    before: bytes | None = None  # of a call that writes or deletes a slot: its value before; None if it had none


class FrameTrace(Struct, eq=False):
    """One frame, while it runs and afterwards."""

    frame: Frame
    sender: bytes  # immediate caller, 20 bytes
    base: Cycles  # the price of the frame itself
    cycles_limit: int  # that it could use, its base included
    cycles: int = 0  # used, its base and nested frames included
    cells: int = 0  # the same in cells
    calls: list[HostCallTrace] = field(default_factory=list)
    # Cycles used by each line, nested frames and the base excluded; on an engine without lines all are of `NO_LINE`.
    lines: dict[int, int] = field(default_factory=dict)
    hits: dict[int, int] = field(default_factory=dict)  # how often blocks with the line ran, and turns of a loop in it
    return_value: bytes = b""
    error: ErrorObject | None = None
    printed: list[tuple[int, str]] = field(default_factory=list)  # how many calls came before it, and the text
    left_out: int = 0  # calls without a nested frame that are not among ``calls``

    @property
    def nested(self) -> list["FrameTrace"]:
        """The frames that its host calls have run, in order."""
        return [call.frame for call in self.calls if call.frame is not None]

    @property
    def own_cycles(self) -> int:
        """Cycles used by its own lines: without its base and nested frames."""
        return self.cycles - self.base - sum(each.cycles for each in self.nested)


class Tracer:
    """Follows the frames of one engine, whose frames run one at a time.

    Attributes:
        files: Files of programs that have been named, by code hash.
    """

    def __init__(
        self,
        params: ChainParams,
        on_frame: Callable[[Host, FrameTrace], None],
        effects_of: Callable[[Host], Sequence[Effect]],
        *,
        calls_max: int | None,
        value_max: int,
    ) -> None:
        """Prepare a tracer.

        Args:
            params: The chain's parameters.
            on_frame: Called with each outermost frame and its host, when the frame begins.
            effects_of: Returns what a host's transaction has asked for so far.
            calls_max: Host calls without a nested frame that are kept, of all frames together; None for all.
            value_max: Bytes or characters of a value that are kept.
        """
        self._on_frame = on_frame
        self.files: dict[bytes, str] = {}
        self._params = params
        self._effects_of = effects_of
        self._calls_max = calls_max
        self._kept_calls = 0
        self._value_max = value_max
        self._open: list[FrameTrace] = []
        self._calling: list[HostCallTrace] = []
        self._gauge: LineGauge | None = None
        self._programs: dict[bytes, ProgramLines] = {}  # by code hash

    def begin(self, frame: Frame, host: Host, meter: Meter) -> FrameTrace:
        """Note that a frame begins; its base is paid."""
        sender = host.context()["sender"]
        base = self._params.costs.frame_base
        trace = FrameTrace(frame, sender, base, meter.cycles_limit - meter.cycles_used + base)  # type: ignore[arg-type]
        if self._open:
            self._calling[-1].frame = trace
        else:
            self._on_frame(host, trace)
        self._open.append(trace)
        return trace

    def end(self, trace: FrameTrace, outcome: FrameOutcome, used: tuple[int, int]) -> None:
        """Note how a frame ended, and the cycles and cells that it used, its base included."""
        self._open.pop()
        if self._gauge is not None:
            self._gauge.flush()
        trace.cycles, trace.cells = used
        trace.return_value, trace.error = outcome.return_value, outcome.error
        rest = trace.own_cycles - sum(trace.lines.values())
        if rest < 0 and self._gauge is not None:
            # The host call that exhausts a frame is cut off at its limit.
            trace.lines[self._gauge.last_line] += rest
        elif rest:
            trace.lines[NO_LINE] = trace.lines.get(NO_LINE, 0) + rest

    def follow(self, name: str, call: HostCall) -> HostCall:
        """Return a host call that is noted in the frame that makes it; of a reading its cycles alone, by line."""
        if name in READINGS:
            return self._reading(call)

        @wraps(call)
        def followed(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
            meter, gauge, effects = site.meter, self._gauge, self._effects_of(site.host)
            line = NO_LINE if gauge is None else gauge.line()
            noted = self._begin_call(site, name, positional, named, line)
            cycles, cells, asked = meter.cycles_used, meter.cells_used, len(effects)
            try:
                answer = call(site, positional, named)
            except BaseException as error:
                is_worded = isinstance(error, Rejection | ArgumentFault)
                noted.refusal = str(error) if is_worded else type(error).__name__
                raise
            finally:
                self._gauge = gauge
                self._end_call(noted)
                noted.cycles, noted.cells = meter.cycles_used - cycles, meter.cells_used - cells
                nested = 0 if noted.frame is None else noted.frame.cycles
                if gauge is not None and noted.cycles > nested:
                    gauge.add(line, noted.cycles - nested)
            # A copy: the program can change the answer.
            answered = plain(answer)
            is_whole = self._calls_max is None and isinstance(answered, list | tuple | dict)
            noted.answer = answered if is_whole else self._kept(answered)
            if noted.frame is None:
                noted.effects = tuple(effects[asked:])
            return answer

        return followed

    def _reading(self, call: HostCall) -> HostCall:
        @wraps(call)
        def read(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
            before, gauge = site.meter.cycles_used, self._gauge
            try:
                return call(site, positional, named)
            finally:
                if gauge is not None:
                    gauge.add(gauge.line(), site.meter.cycles_used - before)

        return read

    def note_print(self, text: str) -> None:
        """Note what the running frame prints; of one frame as many texts as a receipt keeps lines."""
        frame = self._open[-1]
        if len(frame.printed) < LINES_MAX:
            frame.printed.append((len(frame.calls), text[:CHARACTERS_MAX]))

    def _begin_call(
        self, site: CallSite, name: str, positional: Sequence[object], named: Mapping[str, object], line: int
    ) -> HostCallTrace:
        # A name can be of a subclass of str, whose ``__str__`` is the program's.
        by_name = {str.__str__(key): self._kept(value) for key, value in named.items()}
        noted = HostCallTrace(name, tuple(map(self._kept, positional)), by_name, line)
        if name in SLOT_CALLS:
            key = noted.arguments[0] if noted.arguments else by_name.get("key")
            if type(key) is bytes and 0 < len(key) <= self._params.limits.slot_bytes_max:
                noted.before = site.host.read_slot(key)
        self._calling.append(noted)
        if self._calls_max is None or self._kept_calls < self._calls_max:
            self._kept_calls += 1
            self._open[-1].calls.append(noted)
        return noted

    def _end_call(self, noted: HostCallTrace) -> None:
        self._calling.pop()
        caller = self._open[-1]
        if noted in caller.calls[-1:]:
            return
        if noted.frame is None:
            caller.left_out += 1
        else:
            caller.calls.append(noted)

    def _kept(self, value: object) -> object:
        """Return a value in a plain type, others as text; no code of the program runs."""
        kind: Any = type(value)
        whole: Any = value
        if kind in (bytes, str) and len(whole) > self._value_max:
            unit = "bytes" if kind is bytes else "characters"
            return f"{whole[: self._value_max]!r}… ({len(whole):,} {unit})"
        if identity(kind) in _PLAIN and (kind is not int or whole.bit_length() <= BITS_MAX):
            return value
        is_list = kind in (list, tuple) and len(whole) <= SEQUENCE_MAX
        if is_list and all(identity(type(each)) in _PLAIN for each in whole):
            return [self._kept(each) for each in whole]
        return printed_text((value,), " ", "")

    def gauge(self, program: Program, meter: Meter, deepest: int, shared: Collection[int]) -> Gauge:
        """Return the gauge of the frame that begins, which counts cycles by line."""
        trace = self._open[-1]
        known = self._programs.get(trace.frame.code_hash)
        if known is None or known.program is not program:
            known = ProgramLines(program, line_prices(trace.frame.source, self._params.source), {})
            self._programs[trace.frame.code_hash] = known
        self._gauge = LineGauge(known, trace, meter, deepest, shared)
        return self._gauge


class ProgramLines(Struct, frozen=True, eq=False):
    """A program that runs, and what is known of the lines of its charges."""

    program: Program
    prices: Mapping[tuple[int, int], Split]
    # By the code object, instruction and cycles of a charge; the program keeps its code objects, so none has another's
    # identity.
    splits: dict[tuple[int, int, int], Split]


class LineGauge(Gauge):
    """A gauge that notes which line of the program uses cycles.

    A basic block is charged before its first statement; its cycles are noted for the line of each statement.
    """

    __slots__ = ("_counts", "_filename", "_hits", "_known", "last_line", "lines")

    def __init__(self, known: ProgramLines, trace: FrameTrace, *limits: Any) -> None:
        super().__init__(*limits)
        self.lines = trace.lines
        self._hits = trace.hits
        self.last_line = NO_LINE  # of the last host call
        self._filename = known.program.filename
        self._known = known
        self._counts: dict[tuple[int, int, int], int] = {}  # how often each block was charged, as `splits`

    def charge(self, cycles: int) -> None:
        """Use cycles, as `Gauge.charge`."""
        self._note(cycles, _getframe())
        Gauge.charge(self, cycles)

    def turn(self, cycles: int, here: int) -> None:
        """Use cycles, as `Gauge.turn`."""
        caller = _getframe(1)
        # The caller is the program or the SDK. Loops are what takes time, so theirs is the short way.
        if caller.f_code.co_filename == self._filename:
            self._count(cycles, caller)
        else:
            self._note(cycles, caller)
        Gauge.turn(self, cycles, here)

    def line(self) -> int:
        """Return the line of the program that runs now; `NO_LINE` if none does."""
        frame, _ = self._place(_getframe())
        return NO_LINE if frame is None else frame.f_lineno or NO_LINE

    def add(self, line: int, cycles: int) -> None:
        """Note cycles that a host call has used."""
        self.lines[line] = self.lines.get(line, 0) + cycles
        self.last_line = line

    def flush(self) -> None:
        """Note the lines of the blocks that were charged."""
        for place, count in self._counts.items():
            for line, part in self._known.splits[place]:
                self.lines[line] = self.lines.get(line, 0) + part * count
                self._hits[line] = self._hits.get(line, 0) + count
        self._counts.clear()

    def _note(self, cycles: int, caller: FrameType | None) -> None:
        frame, is_block = self._place(caller)
        if is_block and frame is not None:
            self._count(cycles, frame)
        elif cycles:
            # The SDK, or an instrument that has found out what an operation costs.
            self._note_split(((NO_LINE if frame is None else frame.f_lineno or NO_LINE, cycles),))

    def _count(self, cycles: int, frame: FrameType) -> None:
        """Note the cycles of a block, which the program charges in a frame of its own code."""
        if not cycles:
            return
        place = identity(frame.f_code), frame.f_lasti, cycles
        splits, counts = self._known.splits, self._counts
        if place not in splits:
            line = frame.f_lineno or NO_LINE
            splits[place] = self._known.prices.get((line, cycles), ((line, cycles),))
        meter = self.meter
        if cycles > meter.cycles_limit - meter.cycles_used:
            self._note_split(splits[place])
        else:
            counts[place] = counts.get(place, 0) + 1

    def _note_split(self, split: Split) -> None:
        """Note the cycles of each line; the charge that passes the limit counts up to it."""
        left = max(0, self.meter.cycles_limit - self.meter.cycles_used)
        for line, part in split:
            used = min(part, left)
            left -= used
            if used:
                self.lines[line] = self.lines.get(line, 0) + used

    def _place(self, frame: FrameType | None) -> tuple[FrameType | None, bool]:
        """Return the innermost frame of the program's own code, and whether it charges a block of its own."""
        is_block = True
        while frame is not None and frame.f_code.co_filename != self._filename:
            is_block = is_block and identity(frame.f_code) in _CHARGING
            frame = None if frame.f_code is _RUN else frame.f_back
        return frame, is_block


_CHARGING: Final = frozenset(
    identity(function.__code__) for function in (LineGauge.charge, Gauge.enter, Gauge.begin, Gauge.caught)
)
"""What charges a basic block for the code that calls it."""
_RUN: Final[CodeType] = NativeEngine.run.__code__


class TracedEngine(OuterEngine, frozen=True):
    """An `Engine` whose frames a tracer follows."""

    tracer: Tracer

    def name_source(self, code_hash: bytes, path: str) -> None:
        """Note the file of a program; see `Engine.name_source`."""
        self.tracer.files[code_hash] = path
        self.inner.name_source(code_hash, path)

    def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:
        """Run a frame to its end; see `Engine.run`."""
        before = meter.cycles_used, meter.cells_used
        trace = self.tracer.begin(frame, host, meter)
        outcome = FrameOutcome(b"", None)
        try:
            outcome = self.inner.run(frame, host, meter)
        finally:
            cycles, cells = meter.charged()
            self.tracer.end(trace, outcome, (cycles - before[0] + trace.base, cells - before[1]))
        return outcome
