"""How a frame that did not end well is told: the error object of its outcome."""

import re
from types import TracebackType
from typing import Final

from trailboss.primitives.errors import ErrorObject, Fact, InvariantError, Rejection, RejectionReason
from trailboss.vm.meter import Meter, OutOfGas
from trailboss.vm.program import Program
from trailboss.vm.pvm_host import refusal_of

MESSAGE_CHARACTERS_MAX: Final = 1_024
"""Characters of an exception's message that a receipt keeps."""
TRACEBACK_LINES_MAX: Final = 16
"""Innermost lines of a traceback that a receipt keeps."""
_INLINED: Final = ("<listcomp>", "<setcomp>", "<dictcomp>")
"""Frames that Python 3.12 and later do not have."""
_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]+")


def exhaustion(meter: Meter) -> ErrorObject | None:
    """Return the error of a frame that has used up its cycles or cells, or None. Source: cowboy-facts §8."""
    reason = meter.exhaustion()
    if reason is None:
        return None
    if reason is RejectionReason.OUT_OF_CYCLES:
        unit, used, limit = "cycles", meter.cycles_used, meter.cycles_limit
    else:
        unit, used, limit = "cells", meter.cells_used, meter.cells_limit
    return Rejection(reason, f"needs {used} {unit} and the limit is {limit}", used=used, limit=limit).error()


def out_of_memory(error: BaseException) -> ErrorObject:
    """Return the error of a frame that held or recursed too much.

    Raises:
        InvariantError: For out of gas, which a meter within its limits contradicts.
    """
    if isinstance(error, OutOfGas):
        raise InvariantError("a frame ended as out of gas with both meters within their limits")
    what = str(error) if isinstance(error, RecursionError) else "the frame's memory is used up"
    return Rejection(RejectionReason.OUT_OF_MEMORY, what, exception_type=type(error).__name__).error()


def uncaught(error: BaseException, message: str, program: Program) -> ErrorObject:
    """Return the error of an exception that left the handler.

    A refused host call keeps its own code; an exception of the SDK's own says why and what to do, as the SDK has it.

    Decision: D-06

    Args:
        error: The exception.
        message: What it says; asking it could run guest code, so the engine has done that.
        program: Whose handler it left.
    """
    message = without_addresses(message)[:MESSAGE_CHARACTERS_MAX]
    context: dict[str, Fact] = {
        "exception_type": type(error).__name__,
        "exception_message": message,
        "traceback": "\n".join(traceback_lines(error.__traceback__, program)),
    }
    refusal = refusal_of(error)
    if refusal is not None:
        return ErrorObject(
            refusal.code, refusal.slug, refusal.what, refusal.why, refusal.fix, dict(refusal.context) | context
        )
    slug, why, fix = (_class_text(error, name) for name in ("ERROR_SLUG", "why", "fix"))
    if slug:
        context["sdk_slug"] = slug
    rule = RejectionReason.PVM_ERROR.value
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return ErrorObject(rule.code, rule.slug, what, why or rule.why, fix or rule.fix, context)


def traceback_lines(traceback: TracebackType | None, program: Program) -> list[str]:
    """Return the program's own lines of a traceback, outermost first: ``line N, in handler: source text``."""
    places: list[tuple[int, str]] = []
    while traceback is not None:
        code, line = traceback.tb_frame.f_code, traceback.tb_lineno
        if code.co_filename == program.filename and line is not None:
            if code.co_name in _INLINED and places:
                places[-1] = (line, places[-1][1])
            else:
                places.append((line, code.co_name))
        traceback = traceback.tb_next
    shown = [f"line {line}, in {name}: {_source_line(program, line)}" for line, name in places[-TRACEBACK_LINES_MAX:]]
    hidden = len(places) - len(shown)
    return [f"({hidden} outer lines left out)", *shown] if hidden else shown


def without_addresses(text: str) -> str:
    """Return a text without the memory addresses that Python's default reprs show."""
    return _ADDRESS.sub("", text)


def _class_text(error: BaseException, name: str) -> str:
    for kind in type(error).__mro__:
        value = vars(kind).get(name)
        if type(value) is str:
            return value[:MESSAGE_CHARACTERS_MAX]
    return ""


def _source_line(program: Program, line: int) -> str:
    if not 1 <= line <= len(program.lines):
        raise InvariantError(f"line {line} of a program of {len(program.lines)} lines")
    return program.lines[line - 1].strip()
