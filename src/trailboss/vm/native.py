"""`NativeEngine`: actor code in this process, instrumented, for your own code: tests, simulation, debugging.

It measures what Python code does, and what C code does by the sizes of its operands: D-32, D-101. It isolates frames
from one another and from the process against mistakes, not against attacks.
"""

import _thread
import ast
import gc
import linecache
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import Context
from types import CodeType, CoroutineType, FunctionType, ModuleType
from typing import Any, Final, TypeVar

from msgspec import Struct

from trailboss.codec.canonical import encode_canonical
from trailboss.metering.gauge import FATAL, Gauge
from trailboss.metering.instrument import instrument
from trailboss.metering.meter import Meter, OutOfGas
from trailboss.params import ChainParams
from trailboss.primitives.errors import ErrorObject, Rejection, RejectionReason
from trailboss.vm import failures
from trailboss.vm.engine import Frame, FrameOutcome
from trailboss.vm.failures import REFUSAL, HostError
from trailboss.vm.guest_api import HOST_CALLS, ArgumentFault, CallSite, HostCall, host_code
from trailboss.vm.host import Host
from trailboss.vm.library import Library
from trailboss.vm.program import EntryPoint, Program, compile_program, compile_tree
from trailboss.vm.readings import READINGS
from trailboss.vm.rules import BREAKPOINT, GRAMMAR, check_program
from trailboss.vm.watched_gauge import WatchedGauge

VERSION: Final = "native-1"
PROGRAMS_KEPT: Final = 512
TEXTS_KEPT: Final = 512
ACTOR_NAME: Final = "actor"  # ``__name__`` of an actor's module
SDK_ACTOR_MARK: Final = "_is_cowboy_actor"  # attribute that the SDK's ``@actor`` sets on a class
OWN_ATTRIBUTES: Final = ("address", "deployer")  # what a frame sets on a plain class, for the running actor
SHOWN_HASH: Final = 8
EDITOR: Final = "pydevd"  # what editors debug with; its breakpoints are not in the source
_CHANGES_NOTHING: Final = frozenset((
    *READINGS, "get_state", "scan_state_prefix", "timer_lane", "keccak256", "randomness", "verify_signature",
))  # fmt: skip
"""Host calls that a person can make in a debugger."""
T = TypeVar("T")


class Running(Struct, frozen=True):
    """The running frame: the source of its host calls, its instruments and its program."""

    site: CallSite
    gauge: Gauge
    program: Program


GaugeMaker = Callable[[Program, Meter, int, Collection[int]], Gauge]
"""Returns the gauge of a frame: its program, meter, deepest call, and the identities of shared objects to a gauge."""


def build_pvm_host(current: Callable[[], Running | None], calls: Mapping[str, HostCall] = HOST_CALLS) -> ModuleType:
    """Return the module; its calls serve the frame that ``current`` returns."""
    module = ModuleType("pvm_host")
    module.__dict__["HostError"] = HostError
    for name, call in calls.items():
        module.__dict__[name] = _function(name, call, current)
    return module


def _function(name: str, call: HostCall, current: Callable[[], Running | None]) -> Callable[..., object]:
    def function(*positional: object, **named: object) -> object:
        running = current()
        if running is None:
            # The SDK asks while it loads, and takes the answer for "not on a chain yet".
            raise RuntimeError(f"pvm_host.{name} was called while no frame runs")
        if isinstance(running.gauge, WatchedGauge) and running.gauge.is_asked():
            return _shown_call(name, call, running.site, positional, named)
        error: Exception
        try:
            return call(running.site, positional, named)
        except ArgumentFault as fault:
            error = fault.kind(str(fault))
        except Rejection as rejection:
            refusal = rejection.error()
            error = HostError(refusal.what, host_code(rejection.reason), refusal.slug)
            vars(error)[REFUSAL] = refusal
        # Any other exception of a host ends the frame: exhaustion, and faults of the chain itself.
        except BaseException as fatal:
            running.gauge.abort(fatal)
            raise
        # Only here, or the guest would find the host's own exception in ``__context__``.
        raise error

    function.__name__ = function.__qualname__ = name
    function.__module__ = "pvm_host"
    return function


def _shown_call(
    name: str, call: HostCall, site: CallSite, positional: Sequence[object], named: Mapping[str, object]
) -> object:
    """Make a host call for a person in a debugger, free of charge. `RuntimeError` if it would change the chain."""
    if name not in _CHANGES_NOTHING:
        raise RuntimeError(f"pvm_host.{name} is a call of the program: in a debugger it would change the receipt")
    meter = site.meter
    used = meter.cycles_used, meter.cells_used
    try:
        return call(site, positional, named)
    finally:
        meter.cycles_used, meter.cells_used = used


class NativeEngine:
    """An `Engine` in this process. Frames may nest; one engine serves one thread of callers.

    Attributes:
        find_debugger: Asked before each frame that may stop: what ``breakpoint()`` calls, None if no person is there
            to go on. Decision: D-118.
    """

    def __init__(
        self,
        params: ChainParams,
        *,
        calls: Mapping[str, HostCall] = HOST_CALLS,
        new_gauge: GaugeMaker = lambda _, *limits: Gauge(*limits),
        breakpoints: bool = False,
    ) -> None:
        """Prepare an engine; a tracer gives it calls and gauges of its own, which charge the same.

        Args:
            params: Prices and limits.
            calls: The host calls by name.
            new_gauge: Makes the gauge of a frame.
            breakpoints: Whether sources may have the statement ``breakpoint()``.
        """
        self.find_debugger: Callable[[], Callable[..., object] | None] = lambda: None
        self._breakpoints = breakpoints
        self._may_stop = False  # whether a program with a breakpoint has been compiled
        self._params = params
        self._new_gauge = new_gauge
        self._programs: OrderedDict[bytes, Program] = OrderedDict()
        self._texts: OrderedDict[tuple[str, str], CodeType] = OrderedDict()
        self._files: dict[bytes, str] = {}
        self._running: Running | None = None
        self._is_asked = False  # whether a host call has been made, or text printed, since this was last set
        self._pvm_host = build_pvm_host(self._serving, calls)
        self._library = Library(params.source, self._pvm_host, self._compile_text, self._source_of, self._write)

    def version(self) -> str:
        """Return the name and version; see `Engine.version`."""
        return VERSION

    def check_source(self, source: str, code_hash: bytes) -> None:
        """Check and compile a source; see `Engine.check_source`."""
        with deep_calls():
            tree = check_program(source, self._params.limits.source_bytes_max, breakpoints=self._breakpoints)
            self._program(source, code_hash, tree)

    def handlers(self, source: str, code_hash: bytes) -> frozenset[str]:
        """Return the names that can be called: module-level functions and the methods of classes."""
        return self._program(source, code_hash).handlers()

    def name_source(self, code_hash: bytes, path: str) -> None:
        """Set the file of a program, so that debuggers and coverage find its lines."""
        self._files[code_hash] = path
        self._programs.pop(code_hash, None)

    def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:
        """Run a frame to its end; see `Engine.run`."""
        # CHECK
        try:
            program = self._program(frame.source, frame.code_hash)
            entry = program.entry(frame.handler)
        except Rejection as refusal:
            return FrameOutcome(b"", refusal.error())

        # RUN
        def action() -> FrameOutcome:
            return self._run(program, entry, CallSite(host, meter, self._params, frame))

        if frame.depth and frame.depth % FRAMES_ON_A_STACK == 0:
            return on_fresh_stack(action)
        return action()

    def perform(self, action: Callable[[], T]) -> T:
        """Run an action here; see `Engine.perform`."""
        return action()

    def prepare(self) -> None:
        """Load the SDK, which takes almost a second."""
        self._library.prepare()

    def close(self) -> None:
        """Forget every program."""
        for program in self._programs.values():
            linecache.cache.pop(program.filename, None)
        for _, filename in self._texts:
            linecache.cache.pop(filename, None)
        self._programs.clear()
        self._texts.clear()

    def _run(self, program: Program, entry: EntryPoint, site: CallSite) -> FrameOutcome:
        gauge = self._gauge_of(program, site.meter)
        before, self._running = self._running, None
        gauge_before = self._library.calls.gauge
        give_back: Callable[[], None] | None = None
        with deep_calls() if before is None else nullcontext():
            try:
                if program.uses_sdk:
                    give_back = self._library.begin(gauge.instruments())
                self._library.calls.gauge = gauge
                self._running = Running(site, gauge, program)
                # A context of its own, so that a frame's decimal settings are its own too.
                return Context().run(self._attempt, program, entry, site, gauge)
            finally:
                gauge.close()
                self._library.calls.gauge = gauge_before
                self._running = before
                if give_back is not None:
                    give_back()

    def _gauge_of(self, program: Program, meter: Meter) -> Gauge:
        limits = meter, self._params.limits.recursion_depth_max, self._library.shared
        if self._may_stop or EDITOR in sys.modules:
            debugger = self.find_debugger()
            if debugger is not None:
                # Another engine of this process, as of a trace, may have forgotten the same source.
                _keep_lines(program)
                return WatchedGauge(debugger, NativeEngine._attempt.__code__, *limits)
        return self._new_gauge(program, *limits)

    def _attempt(self, program: Program, entry: EntryPoint, site: CallSite, gauge: Gauge) -> FrameOutcome:
        # RUN
        returned, error = b"", None
        caught: BaseException | None = None
        try:
            returned, error = self._answer(program, entry, site, gauge)
        # Guest code may raise anything at all; what it was decides below.
        except BaseException as raised:  # noqa: BLE001
            caught = raised
            if isinstance(gauge, WatchedGauge) and gauge.is_quit(raised):
                gauge.abort(raised)
        message = "" if caught is None else _message(caught, gauge)
        # SETTLE
        if gauge.fatal is not None and not isinstance(gauge.fatal, OutOfGas | MemoryError | RecursionError):
            raise gauge.fatal
        where = [] if caught is None else failures.traceback_lines(caught, program)
        if site.meter.is_exhausted:
            error = failures.exhaustion(site.meter, where)
        if error is None and gauge.fatal is not None:
            error = failures.out_of_memory(gauge.fatal, where)
        if error is None and caught is not None:
            error = failures.uncaught(caught, message, where)
        # The rest of the failed frame is freed now, without charge; the exception would otherwise keep it alive.
        gauge.close()
        if caught is not None:
            caught.__traceback__ = None
        return FrameOutcome(returned if error is None else b"", error)

    def _answer(
        self, program: Program, entry: EntryPoint, site: CallSite, gauge: Gauge
    ) -> tuple[bytes, ErrorObject | None]:
        """Run the module and then the handler; return its encoded answer, or the refusal of that answer."""
        frame = site.frame
        space = self._loaded(program, gauge)
        if entry.class_name is None:
            handler = space.get(frame.handler)
        else:
            handler = getattr(_instance(space.get(entry.class_name), frame), frame.handler, None)
        if not callable(handler):
            what = f"{frame.handler} is no longer a function when the module has run"
            return b"", Rejection(RejectionReason.HANDLER_NOT_FOUND, what).error()
        value = handler(bytes(frame.payload)) if entry.takes_payload else handler()
        try:
            return self._encoded(frame.handler, value), None
        except Rejection as refusal:
            return b"", refusal.error()

    def _loaded(self, program: Program, gauge: Gauge) -> dict[str, Any]:
        """Run the program's module; return its names."""
        names = self._library.builtins
        if self._breakpoints and program.has_breakpoint:
            # A debugger stops in the function that calls it, so no function stands between.
            names = {**names, BREAKPOINT: gauge.debugger if isinstance(gauge, WatchedGauge) else _go_on}
        space: dict[str, Any] = {
            **gauge.instruments(), "__name__": ACTOR_NAME, "__builtins__": names, "pvm_host": self._pvm_host,
        }  # fmt: skip
        exec(program.code, space)
        return space

    def _encoded(self, handler: str, value: object) -> bytes:
        """Return the bytes of a handler's return value, whose encoding is charged first. Decision: D-37, D-101."""
        if value is None:
            return b""
        self._library.calls.pay_text(value)
        octets = _octets(handler, value)
        limit = self._params.limits.return_bytes_max
        if len(octets) > limit:
            what = f"{handler} returned {len(octets)} bytes, the limit is {limit}"
            raise Rejection(RejectionReason.INVALID_DATA, what, size=len(octets), limit=limit)
        return octets

    def _program(self, source: str, code_hash: bytes, tree: ast.Module | None = None) -> Program:
        program = self._programs.get(code_hash)
        if program is None:
            filename = self._files.get(code_hash, f"<actor {code_hash[:SHOWN_HASH].hex()}>")
            with deep_calls():
                program = compile_program(source, filename, self._params.source, tree)
            self._programs[code_hash] = program
            self._may_stop |= self._breakpoints and program.has_breakpoint
            _keep_lines(program)
            if len(self._programs) > PROGRAMS_KEPT:
                linecache.cache.pop(self._programs.popitem(last=False)[1].filename, None)
        self._programs.move_to_end(code_hash)
        return program

    def _compile_text(self, text: str, filename: str, _mode: str) -> CodeType:
        """Compile what the SDK generates for a running actor, instrumented like the actor itself."""
        if self._may_stop:
            linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        code = self._texts.get((text, filename))
        if code is None:
            tree = instrument(ast.parse(text, feature_version=GRAMMAR), self._params.source, guarded=True)
            code = self._texts[text, filename] = compile_tree(tree, filename)
            if len(self._texts) > TEXTS_KEPT:
                self._texts.popitem(last=False)
        return code

    def _serving(self) -> Running | None:
        self._is_asked = True
        return self._running

    def _write(self, text: str) -> None:
        """Give printed text to the host; the SDK can print while it loads, outside any frame."""
        running = self._serving()
        if running is not None and isinstance(running.gauge, WatchedGauge) and running.gauge.is_asked():
            sys.stdout.write(text)
        elif running is not None:
            running.site.host.print_text(text)

    def _source_of(self, function: FunctionType) -> str:
        program = self._running.program if self._running is not None else None
        code = function.__code__
        if program is None or code.co_filename != program.filename or code.co_firstlineno not in program.spans:
            raise OSError(f"the source of {function.__qualname__} is not the actor's")
        first, last = code.co_firstlineno, program.spans[code.co_firstlineno]
        return "\n".join(program.lines[first - 1 : last]) + "\n"


def _keep_lines(program: Program) -> None:
    """Give debuggers the lines of a program that has no file."""
    if program.filename.startswith("<"):
        lines = [line + "\n" for line in program.lines]
        linecache.cache[program.filename] = (len(lines), None, lines, program.filename)


def _go_on() -> None:
    """Stand for ``breakpoint`` where no person is there."""


def _instance(kind: Any, frame: Frame) -> object:
    """Return an instance of an actor's class; plain classes get their address and deployer as attributes."""
    if isinstance(kind, type) and SDK_ACTOR_MARK not in vars(kind):
        for name, value in zip(OWN_ATTRIBUTES, (frame.actor, frame.deployer), strict=True):
            if not hasattr(kind, name):
                type.__setattr__(kind, name, bytes(value))
    return kind()


def _message(error: BaseException, gauge: Gauge) -> str:
    """Return an exception's message; a guest's ``__str__`` can produce it, and can fail in turn."""
    if isinstance(error, FATAL):
        gauge.abort(error)
        return ""
    try:
        return str(error)
    except FATAL as second:
        gauge.abort(second)
        return ""
    # Any other exception is the guest's too.
    except BaseException as second:  # noqa: BLE001
        return f"(its message cannot be shown: {type(second).__name__})"


def _octets(handler: str, value: object) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, CoroutineType):
        value.close()
        raise Rejection(RejectionReason.INVALID_DATA, f"{handler} is asynchronous and awaits nothing; write it as def")
    try:
        return value.encode() if isinstance(value, str) else encode_canonical(value)
    except (Rejection, UnicodeEncodeError) as error:
        reason = error.what if isinstance(error, Rejection) else "text with a lone surrogate"
        what = f"what {handler} returned cannot be encoded: {reason}"
        raise Rejection(RejectionReason.INVALID_DATA, what, handler=handler) from None


FRAMES_ON_A_STACK: Final = 1 if sys.version_info[:2] == (3, 12) else 8
"""Nested frames on one C stack. Guest code can be 256 calls deep in each of 33 nested frames.

CPython uses up to 2 KiB of the C stack for such a call (a sort whose key function sorts), so eight frames fit the usual
8 MiB and the ninth gets a stack of its own. Python 3.12 also counts such calls and allows 499 on a stack, so there each
frame has its own. The caller waits: nothing runs concurrently.
"""
STACK_BYTES: Final = 64 * 2**20  # address space of a fresh stack; only what is used takes memory
RECURSION_LIMIT: Final = 8_000
"""CPython's own limit while frames run: above 8 frames of 256 calls at up to three of its levels each."""


@contextmanager
def deep_calls() -> Iterator[None]:
    """Allow deep calls, and shield the process from guests.

    The garbage collector would run guest code at varying moments, and a warnings filter could turn a warning of one
    version into an exception.
    """
    collects, limit, filters = gc.isenabled(), sys.getrecursionlimit(), warnings.filters
    gc.disable()
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    warnings.filters = [("ignore", None, Warning, None, 0)]  # `warnings.catch_warnings` takes ten times as long
    try:
        yield
    finally:
        warnings.filters = filters
        sys.setrecursionlimit(limit)
        if collects:
            gc.enable()


def on_fresh_stack(action: Callable[[], T]) -> T:
    """Run an action on its own stack, wait for it, and return or raise its result."""
    done = _thread.allocate_lock()
    done.acquire()
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(action())
        # The exception continues on the caller's stack.
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
        finally:
            done.release()

    before = _thread.stack_size(STACK_BYTES)
    try:
        _thread.start_new_thread(run, ())
    finally:
        _thread.stack_size(before)
    done.acquire()
    if errors:
        raise errors[0]
    return answers[0]
