"""The module ``pvm_host`` of guests in this process."""

from collections.abc import Callable
from types import ModuleType
from typing import Final

from msgspec import Struct

from trailboss.primitives.errors import ErrorObject, Rejection
from trailboss.vm.gauge import Gauge
from trailboss.vm.guest_api import HOST_CALLS, ArgumentFault, CallSite, HostCall, host_code
from trailboss.vm.instrument import PREFIX
from trailboss.vm.program import Program

REFUSAL: Final = PREFIX + "refusal"
"""Attribute of a host call's error that holds the refusal; guests cannot use such a name."""


class HostError(RuntimeError):
    """A refused host call, as a guest sees it and can catch it. Decision: D-06.

    Attributes:
        code: The public host's number, 1..=8, if one fits; else the public error code.
        name: Slug of the reason.
    """

    def __init__(self, message: str = "", code: int = 0, name: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.name = name


HostError.__module__ = "pvm_host"


def refusal_of(error: BaseException) -> ErrorObject | None:
    """Return the refusal behind a host call's error; None for any exception of the guest's own making."""
    return vars(error).get(REFUSAL) if type(error) is HostError else None


class Running(Struct, frozen=True):
    """The running frame: the source of its host calls, its instruments and its program."""

    site: CallSite
    gauge: Gauge
    program: Program


def build_pvm_host(current: Callable[[], Running | None]) -> ModuleType:
    """Return the module; its calls serve the frame that ``current`` returns."""
    module = ModuleType("pvm_host")
    module.__dict__["HostError"] = HostError
    for name, call in HOST_CALLS.items():
        module.__dict__[name] = _function(name, call, current)
    return module


def _function(name: str, call: HostCall, current: Callable[[], Running | None]) -> Callable[..., object]:
    def function(*positional: object, **named: object) -> object:
        running = current()
        if running is None:
            # The SDK asks while it loads, and takes the answer for "not on a chain yet".
            raise RuntimeError(f"pvm_host.{name} was called while no frame runs")
        error: Exception
        try:
            return call(running.site, positional, named)
        except ArgumentFault as fault:
            error = fault.kind(str(fault))
        except Rejection as rejection:
            refusal = rejection.error()
            error = HostError(refusal.what, host_code(rejection.reason), refusal.slug)
            vars(error)[REFUSAL] = refusal
        # Whatever else a host raises ends the frame: exhaustion, and what is wrong with the chain itself.
        except BaseException as fatal:
            running.gauge.abort(fatal)
            raise
        # Only here, or the guest would find the host's own exception in ``__context__``.
        raise error

    function.__name__ = function.__qualname__ = name
    function.__module__ = "pvm_host"
    return function
