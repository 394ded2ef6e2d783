"""Serves the requests of the sandbox's host: check and compile an actor, run its module ahead, run a frame.

A guest lives for one request after another, and its memory is put back after each frame, so everything here is state of
one actor. Requests and answers are those of `trailboss.sandbox.guest_layout`: (`DONE`, ...) or (`FAILED`, error).
"""

import ast
import builtins
import collections
import dataclasses
import linecache
import marshal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from types import CodeType, FrameType, SimpleNamespace
from typing import Any, Final

from trailboss.metering.gauge import Gauge
from trailboss.primitives.errors import ErrorObject, Rejection
from trailboss.sandbox import guest_layout
from trailboss.sandbox.guest import annotations
from trailboss.sandbox.guest.meter import GuestGauge, GuestMeter
from trailboss.sandbox.guest_layout import BROKEN, DONE, FAILED, LONG_REQUEST, RUN, pack
from trailboss.vm import failures, native, program, sdk_source
from trailboss.vm.engine import CallSite, Frame, FrameOutcome
from trailboss.vm.native import SHOWN_HASH, NativeEngine, Running
from trailboss.vm.nest_depth import LINE_CHARACTERS_MAX
from trailboss.vm.program import ClassPlan, Program, compile_program
from trailboss.vm.rules import check_program

_UNMETERED: Final = 2**62  # cycles and cells of a module that runs ahead: its frames pay for it
_glue: Final[Any] = builtins


class GuestEngine(NativeEngine):
    """The native engine of one program, whose module can have run before its frames."""

    program: Program  # the actor's
    prepared: "Prepared | None" = None
    host: Any  # the chain, as far as programs reach it other than by host calls

    def __init__(self, params: Any) -> None:
        super().__init__(params)
        calls: Any = self._library.calls  # `GuestCalls`
        for names in (self._library.builtins, self._library.sdk_builtins):
            names[annotations.EVALUATED] = annotations.evaluated
            names.update(calls.glue_instruments(names))

    def _program(self, _source: str, _code_hash: bytes, _tree: ast.Module | None = None) -> Program:
        return self.program

    def _loaded(self, program: Program, gauge: Gauge) -> dict[str, Any]:
        return super()._loaded(program, gauge) if self.prepared is None else self.prepared.space

    def load(self, octets: bytes, limits: Mapping[str, int], costs: Mapping[str, int]) -> None:
        """Take up a compiled actor, with the limits and the costs of its chain."""
        vars(self._params.limits).update(limits)
        vars(self._params.costs).update(costs)
        code, filename, lines, spans, functions, classes, uses_sdk, texts = marshal.loads(octets)
        plans = tuple(ClassPlan(*each) for each in classes)
        self.program = Program(code, filename, lines, spans, functions, plans, uses_sdk)
        for handler in self.program.handlers():
            with suppress(Rejection):
                self.program.entry(handler)
        self._texts.update(texts)
        linecache.cache[filename] = (1, None, [line + "\n" for line in lines], filename)

    def compile(self, source: str, code_hash: bytes) -> None:
        """Check and compile an actor. Always both, so that the compiled form depends on the source alone."""
        tree = check_program(source, sys.maxsize)
        filename = f"<actor {code_hash[:SHOWN_HASH].hex()}>"
        self.program = compile_program(source, filename, self._params.source, tree)

    def octets(self) -> bytes:
        """Return the compiled actor, with what the SDK has compiled for it, as `load` takes it."""
        made = self.program
        classes = tuple((each.name, each.bases, each.methods) for each in made.classes)
        fields = (made.code, made.filename, made.lines, made.spans, made.functions, classes, made.uses_sdk)
        return marshal.dumps((*fields, tuple(self._texts.items())))

    def handler_names(self) -> str:
        """Return the names that can be called, one a line."""
        return "\n".join(sorted(self.program.handlers()))

    def prepare_frames(self) -> int | None:
        """Run the actor's module; return its cycles, or None if it fails or asks the host for what frames differ in."""
        self.host.facts = None
        meter = GuestMeter(_UNMETERED, _UNMETERED)
        calls = self._library.calls
        before = calls.gauge
        gauge = calls.gauge = GuestGauge(meter, self._params.limits.recursion_depth_max, self._library.shared)
        give_back = self._library.begin(gauge.instruments()) if self.program.uses_sdk else _nothing

        def end() -> None:
            calls.gauge = before
            give_back()

        frame = Frame("", b"", b"", b"", "", b"")
        site = CallSite(self.host, meter, self._params, frame)
        self._running = Running(site, gauge, self.program)
        context = Context()
        try:
            space = context.run(super()._loaded, self.program, gauge)
        # The module is the guest's: it may raise anything, and runs again in the frame, which reports it.
        except BaseException:  # noqa: BLE001
            return None
        if gauge.fatal is not None:
            return None
        gauge.depth = 0
        self.prepared = Prepared(gauge, meter, context, space, end)
        return meter.cycles_used

    def interrupted_lines(self) -> list[str]:
        """Return where the program was when its fuel ran out, as `failures.traceback_lines` does."""
        lines: list[str] = []
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            if frame.f_code.co_filename == self.program.filename:
                text = self.program.lines[frame.f_lineno - 1].strip()[:LINE_CHARACTERS_MAX]
                lines.append(f"line {frame.f_lineno}, in {frame.f_code.co_name}: {text}")
            frame = frame.f_back
        return lines[: failures.TRACEBACK_LINES_MAX][::-1]

    def forget(self) -> None:
        """Return to the state before any actor; frames do not need it, the builder's first runs do."""
        if self.prepared is not None:
            self.prepared.end()
        self.prepared = self._running = None
        self._texts.clear()
        linecache.cache.clear()

    def run_prepared(self, fields: Sequence[Any]) -> tuple[object, ...]:
        """Run a frame after its module, whose cycles the used ones hold already."""
        prepared = self.prepared
        assert prepared is not None
        handler, payload, actor, deployer, limits, used, self.host.facts = fields
        entry = self.program.entry(handler)
        frame = Frame("", b"", actor, deployer, handler, payload)
        meter = prepared.meter
        meter.cycles_limit, meter.cells_limit = limits
        meter.cycles_used, meter.cells_used = used
        prepared.gauge.resume_with(meter.cycles_limit)
        site = CallSite(self.host, meter, self._params, frame)
        self._running = Running(site, prepared.gauge, self.program)
        return _fields(prepared.context.run(self._attempt, self.program, entry, site, prepared.gauge), meter)


class Prepared:
    """An actor whose module has run: the gauge and the meter of its frames, and the names of its module."""

    def __init__(
        self, gauge: GuestGauge, meter: GuestMeter, context: Context, space: dict[str, Any], end: Callable[[], None]
    ) -> None:
        self.gauge = gauge
        self.meter = meter
        self.context = context
        self.space = space
        self.end = end


def _nothing() -> None:
    """End what was not begun."""


class GuestServer:
    """Answers the host's requests."""

    def __init__(self, params: SimpleNamespace, host: object) -> None:
        self.engine = GuestEngine(params)
        self.engine.host = host
        self.params = params
        _remember_texts()

    def serve(self, request: bytes) -> bytes:
        """Answer a request; what goes wrong in a guest's own code is part of the answer."""
        if request == LONG_REQUEST:
            request = _glue.host_call(request)
        kind, *fields = marshal.loads(request)
        try:
            return pack((DONE, *self._answer(kind, fields)))
        except Rejection as refusal:
            return pack((FAILED, _described(refusal.error())))
        # The engine catches what programs raise; what comes here is a defect, and the host reports it.
        except BaseException as defect:  # noqa: BLE001
            return pack((BROKEN, f"{type(defect).__name__}: {defect}"))

    def _answer(self, kind: int, fields: list[Any]) -> tuple[object, ...]:
        engine = self.engine
        if kind == RUN and engine.prepared is not None:
            return engine.run_prepared(fields)
        match kind:
            case guest_layout.COMPILE:
                engine.compile(*fields)
                return engine.octets(), engine.handler_names()
            case guest_layout.LOAD:
                engine.load(*fields)
                return ()
            case guest_layout.GATHER:
                engine.prepare_frames()
                return (engine.octets(),)
            case guest_layout.PREPARE:
                return (engine.prepare_frames(),)
            case guest_layout.LOCATE:
                return ("\n".join(engine.interrupted_lines()),)
        handler, payload, actor, deployer, limits, used, engine.host.facts = fields
        frame = Frame("", b"", actor, deployer, handler, payload)
        meter = GuestMeter(*limits)
        meter.cycles_used, meter.cells_used = used
        return _fields(engine.run(frame, engine.host, meter), meter)


def _fields(outcome: FrameOutcome, meter: GuestMeter) -> tuple[object, ...]:
    error = None if outcome.error is None else _described(outcome.error)
    return outcome.return_value, error, meter.cycles_used


def _described(error: ErrorObject) -> tuple[object, ...]:
    return error.code, error.slug, error.what, error.why, error.fix, dict(error.context)


def _remember_texts() -> None:
    """Let the standard library compile a text once: what it generates for a class is the same in every frame."""
    codes: dict[tuple[str, str], CodeType] = {}

    def compiled(text: str, mode: str) -> CodeType:
        code = codes.get((text, mode))
        if code is None:
            code = codes[text, mode] = compile(text, "<string>", mode, dont_inherit=True)
        return code

    def execute(text: str, space: Any = None, names: Any = None) -> None:
        exec(compiled(text, "exec"), space, names)

    def evaluate(text: str, space: Any = None, names: Any = None) -> object:
        return eval(compiled(text, "eval"), space, names)

    dataclasses.__dict__["exec"] = execute
    collections.__dict__["eval"] = evaluate


def compile_evaluated(tree: Any, filename: str) -> CodeType:
    """Compile an instrumented tree with annotations that are evaluated where they stand."""
    return _compile_tree(annotations.evaluate_annotations(tree), filename)


_compile_tree: Final = program.compile_tree


def install() -> None:
    """Let the engine's modules compile as `compile_evaluated` does."""
    for module in (program, sdk_source, native):
        module.__dict__["compile_tree"] = compile_evaluated
