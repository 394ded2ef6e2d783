"""The module ``pvm_host`` of guests that run in this process."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from trailboss.primitives.errors import ErrorObject, Rejection
from trailboss.vm.gauge import Gauge
from trailboss.vm.guest_api import HOST_CALLS, ArgumentFault, CallSite, HostCall, host_code
from trailboss.vm.program import Program


class HostError(RuntimeError):
    """What a guest sees of a refused host call, and may catch. Decision: D-06.

    Attributes:
        code: The public host's number, 1..=8, if one fits; else the public error code.
        name: Slug of the reason.
        refusal: The refusal itself; None on an error that the guest has made up.
    """

    def __init__(self, message: str = "", code: int = 0, name: str = "", refusal: ErrorObject | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.name = name
        self.refusal = refusal


HostError.__module__ = "pvm_host"


@dataclass(frozen=True, slots=True)
class Running:
    """The frame that is running.

    Attributes:
        site: Where its host calls come from.
        gauge: Its instruments.
        program: Its program.
    """

    site: CallSite
    gauge: Gauge
    program: Program


def build_pvm_host(current: Callable[[], Running | None]) -> ModuleType:
    """Return the module; its calls serve the frame that ``current`` names."""
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
        try:
            return call(running.site, positional, named)
        except ArgumentFault as fault:
            raise fault.kind(str(fault)) from None
        except Rejection as refusal:
            error = refusal.error()
            raise HostError(refusal.what, host_code(refusal.reason), error.slug, error) from None
        # Whatever else a host raises ends the frame: exhaustion, and what is wrong with the chain itself.
        except BaseException as error:
            running.gauge.abort(error)
            raise

    function.__name__ = function.__qualname__ = name
    function.__module__ = "pvm_host"
    return function
