"""The error object of a frame that failed."""

import re
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Final

from trailboss.metering.gauge import FATAL
from trailboss.metering.meter import Meter, OutOfGas
from trailboss.metering.syntax import PREFIX
from trailboss.primitives.errors import ErrorObject, Fact, InvariantError, Rejection, RejectionReason
from trailboss.vm.nest_depth import LINE_CHARACTERS_MAX
from trailboss.vm.program import Program

MESSAGE_CHARACTERS_MAX: Final = 1_024  # characters of an exception's message that a receipt keeps
TRACEBACK_LINES_MAX: Final = 16  # innermost lines of a traceback that a receipt keeps
NESTED_LINES_MAX: Final = 64  # lines of all nested calls together: the outermost and the innermost
TRACEBACK: Final = "traceback"  # name of the fact that holds the program's lines that ran last
CALLEE: Final = "callee_traceback"  # name of the fact, in a failed call's refusal, that locates the callee's failure
_TRACEBACK: Final = vars(BaseException)["__traceback__"]
_CAUSE: Final = vars(BaseException)["__cause__"]
_CONTEXT: Final = vars(BaseException)["__context__"]
_INLINED: Final = ("<listcomp>", "<setcomp>", "<dictcomp>")  # frames that Python 3.12 and later do not have
_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]+")


REFUSAL: Final = PREFIX + "refusal"
"""Attribute of a host call's error that holds the refusal; guests cannot use such a name."""


class HostError(RuntimeError):
    """A refused host call, as a guest can catch it: with a `host_code` and the reason's slug. Decision: D-06."""

    def __init__(self, message: str = "", code: int = 0, name: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.name = name


HostError.__module__ = "pvm_host"


def refusal_of(error: BaseException) -> ErrorObject | None:
    """Return the refusal behind a host call's error; None for any exception of the guest's own making."""
    refusal = vars(error).get(REFUSAL) if type(error) is HostError else None
    return refusal if isinstance(refusal, ErrorObject) else None


def exhaustion(meter: Meter, where: Sequence[str] = ()) -> ErrorObject:
    """Return the error of a frame that used up its cycles, or else its cells.

    ``where`` holds the program's lines that ran last, if known. Source: cowboy-facts §8.
    """
    if meter.cycles_used > meter.cycles_limit:
        reason, unit, limit = RejectionReason.OUT_OF_CYCLES, "cycles", meter.cycles_limit
    else:
        reason, unit, limit = RejectionReason.OUT_OF_CELLS, "cells", meter.cells_limit
    what = f"needs more than its limit of {limit} {unit}, all of which are used"
    return Rejection(reason, what, used=limit, limit=limit, **_located(where)).error()


def located(exhausted: ErrorObject, outcome: ErrorObject | None) -> ErrorObject:
    """Return a frame's exhaustion with the lines that ran last, if its engine reports them."""
    return outcome if outcome is not None and outcome.code == exhausted.code else exhausted


def out_of_memory(error: BaseException, where: Sequence[str]) -> ErrorObject:
    """Return the error of a frame that used too much memory or recursion.

    Raises:
        InvariantError: For out of gas, which a meter within its limits contradicts.
    """
    if isinstance(error, OutOfGas):
        raise InvariantError("a frame ended as out of gas with both meters within their limits")
    what = str(error) if isinstance(error, RecursionError) else "the frame's memory is used up"
    facts = {"exception_type": type(error).__name__} | _located(where)
    return Rejection(RejectionReason.OUT_OF_MEMORY, what, **facts).error()


def uncaught(error: BaseException, message: str, where: Sequence[str]) -> ErrorObject:
    """Return the error of an exception that left the handler, with its lines of the program (`traceback_lines`).

    A refused host call keeps its own code; an exception of the SDK keeps the SDK's own rule and advice. The engine
    reads the message, because that could run guest code. Decision: D-06.
    """
    message = _ADDRESS.sub("", message)[:MESSAGE_CHARACTERS_MAX]
    # A class can have a name as long as memory allows.
    kind = type(error).__name__[:MESSAGE_CHARACTERS_MAX]
    context: dict[str, Fact] = {
        "exception_type": kind,
        "exception_message": message,
        "traceback": "\n".join(where),
    }
    refusal = refusal_of(error)
    if refusal is not None:
        facts = {name: fact for name, fact in refusal.context.items() if name != CALLEE}
        return ErrorObject(refusal.code, refusal.slug, refusal.what, refusal.why, refusal.fix, facts | context)
    slug, why, fix = (_class_text(error, name) for name in ("ERROR_SLUG", "why", "fix"))
    if slug:
        context["sdk_slug"] = slug
    rule = RejectionReason.PVM_ERROR.value
    what = f"{kind}: {message}" if message else kind
    return ErrorObject(rule.code, rule.slug, what, why or rule.why, fix or rule.fix, context)


def traceback_lines(error: BaseException, program: Program) -> list[str]:
    """Return where an exception was raised, outermost first: ``line N, in handler: source text``.

    Only the program's own lines appear, followed by the callee's if a call of another actor failed. Exhaustion, which
    handlers re-raise, has one line per function: where it began.
    """
    traceback: TracebackType | None = _TRACEBACK.__get__(error)
    places: list[tuple[int, str]] = []
    frame: FrameType | None = None
    while traceback is not None:
        code, line = traceback.tb_frame.f_code, traceback.tb_lineno
        if code.co_filename == program.filename and line is not None:
            is_again = traceback.tb_frame is frame and isinstance(error, FATAL)
            frame = traceback.tb_frame
            if is_again or (code.co_name in _INLINED and places):
                places[-1] = (line, places[-1][1])
            else:
                places.append((line, code.co_name))
        traceback = traceback.tb_next
    shown = [f"line {line}, in {name}: {_source_line(program, line)}" for line, name in places[-TRACEBACK_LINES_MAX:]]
    hidden = len(places) - len(shown)
    lines = [f"({hidden} outer lines left out)", *shown] if hidden else shown
    lines += _callee_lines(error)
    hidden = len(lines) - NESTED_LINES_MAX
    if hidden <= 0:
        return lines
    half = NESTED_LINES_MAX // 2
    return [*lines[:half], f"({hidden} lines left out)", *lines[-half:]]


def traceback_of(error: ErrorObject) -> list[str]:
    """Return the lines of `traceback_lines` that an error's context holds."""
    return str(error.context.get(TRACEBACK) or "").splitlines()


def _callee_lines(error: BaseException) -> list[str]:
    """Return the callee's lines if an exception stems from a failed call of another actor."""
    cause: BaseException | None = error
    seen: list[BaseException] = []
    while cause is not None and not any(cause is each for each in seen):
        refusal = refusal_of(cause)
        if refusal is not None and CALLEE in refusal.context:
            return str(refusal.context[CALLEE]).splitlines()
        seen.append(cause)
        # By Python's own descriptors: a guest's exception can have attributes of these names.
        cause = _CAUSE.__get__(cause) or _CONTEXT.__get__(cause)
    return []


def _located(where: Sequence[str]) -> dict[str, Fact]:
    return {TRACEBACK: "\n".join(where)} if where else {}


def _class_text(error: BaseException, name: str) -> str:
    for kind in type(error).__mro__:
        value = vars(kind).get(name)
        if type(value) is str:
            return value[:MESSAGE_CHARACTERS_MAX]
    return ""


def _source_line(program: Program, line: int) -> str:
    if not 1 <= line <= len(program.lines):
        raise InvariantError(f"line {line} of a program of {len(program.lines)} lines")
    return program.lines[line - 1].strip()[:LINE_CHARACTERS_MAX]
