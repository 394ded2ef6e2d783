"""The `Engine` protocol: how an actor's source and a frame become an outcome."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from trailboss.metering.meter import Meter
from trailboss.model.events import PrintedLine
from trailboss.params import ChainParams
from trailboss.primitives.errors import ErrorObject
from trailboss.vm.host import Host


class Frame(Struct, frozen=True, gc=False):
    """One execution of one handler."""

    source: str  # the actor's source text
    code_hash: bytes  # Keccak-256 of the source's UTF-8 bytes; engines cache by it
    actor: bytes  # address of the actor, 20 bytes
    deployer: bytes  # its owner, 20 bytes; plain classes get both as attributes
    handler: str  # function or method to call
    payload: bytes
    read_only: bool = False  # whether every change is refused
    depth: int = 0  # nested calls above this frame


class FrameOutcome(Struct, frozen=True, gc=False):
    """How a frame ended."""

    return_value: bytes  # encoded return value of the handler (Decision D-37); empty on failure
    # None on success. Exhaustion is 1005 or 1006; an exception that left the handler is 1210 with ``exception_type``,
    # ``exception_message`` and ``traceback`` (the actor's own lines only) in its context; an uncaught refusal of a
    # host call keeps its own code, plus the same context.
    error: ErrorObject | None
    # Printed lines, if the caller has no receipt for them; engines leave it to the `Host`.
    printed: tuple[PrintedLine, ...] = ()


class CallSite(Struct, frozen=True):
    """The frame that makes a host call, with its host, its meter, and the chain's prices and limits."""

    host: Host
    meter: Meter
    params: ChainParams
    frame: Frame


HostCall = Callable[[CallSite, Sequence[object], Mapping[str, object]], object]
"""A call of ``pvm_host``, given the guest's arguments by position and by name."""
T = TypeVar("T")


class Engine(Protocol):
    """Runs actor code. Equal source, frame and host answers give equal outcomes and meters on every engine."""

    def version(self) -> str:
        """Return the engine's name and version, as actors see it in ``pvm_version``."""

    def check_source(self, source: str, code_hash: bytes) -> None:
        """Check and compile a source, before any other call sees it; its deployment has paid for that.

        Raises:
            Rejection: ``NON_DETERMINISTIC_CODE`` with line and column, ``INVALID_DATA`` for a syntax error or a source
                that is too large or too complex.
        """

    def handlers(self, source: str, code_hash: bytes) -> frozenset[str]:
        """Return the names that can be called: module-level functions and the methods of the one class."""

    def name_source(self, code_hash: bytes, path: str) -> None:
        """Note the file of a program, for tools that follow its lines."""

    def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:
        """Run a frame to its end. Never raises for anything that guest code does.

        ``HANDLER_NOT_FOUND`` is an outcome like any other. The caller has charged the frame's base price.
        """

    def perform(self, action: Callable[[], T]) -> T:
        """Return or raise what an action does in which frames run. It can run on a thread of the engine's own.

        An engine with such threads then changes the thread once, not for each frame. The caller waits for the end of
        the action, also when it is interrupted.
        """

    def prepare(self) -> None:
        """Load in advance what the first frames need."""

    def close(self) -> None:
        """Release what the engine holds."""
