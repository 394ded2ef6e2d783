"""The engine of a chain: the native one, or the sandbox with the image that the chain's genesis states."""

import threading
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from trailboss.metering.meter import Meter
from trailboss.params import ChainParams
from trailboss.primitives.errors import ConfigurationError
from trailboss.vm.engine import Engine, Frame, FrameOutcome
from trailboss.vm.guest_api import HOST_CALLS
from trailboss.vm.host import Host
from trailboss.vm.keeping_engine import KeepingEngine
from trailboss.vm.trace import TracedEngine, Tracer

if TYPE_CHECKING:
    from trailboss.sandbox.runtime import Runtime

T = TypeVar("T")
_NATIVE: Final = threading.RLock()
_LOADING: Final = threading.Lock()


class SharedNativeEngine(KeepingEngine):
    """A native engine whose frames wait for those of others in this process: a trace of a node's chain has its own.

    Frames set what the whole process has: the depth of calls, warnings, the garbage collector. A frame would behave
    otherwise while another one ends on another thread. Decision: D-108.
    """

    def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:
        """Run a frame to its end; see `Engine.run`."""
        # A nested one can be on a thread of its own, for which the outermost one waits.
        if self._running is not None:
            return super().run(frame, host, meter)
        with _NATIVE:
            return super().run(frame, host, meter)

    def perform(self, action: Callable[[], T]) -> T:
        """Run an action here; see `Engine.perform`."""
        with _NATIVE:
            return super().perform(action)

    def prepare(self) -> None:
        """Load the SDK; see `Engine.prepare`."""
        with _NATIVE:
            super().prepare()


class EngineName(StrEnum):
    """The engines by name."""

    NATIVE = "native"  # in this process: for your own code
    SANDBOX = "sandbox"  # in WebAssembly: for code that others send


def new_engine(params: ChainParams, image: bytes, *, breakpoints: bool = False) -> Engine:
    """Return the engine of a chain.

    The image is loaded with the first frame, so a chain can be read without it; see `check_engine`.

    Args:
        params: The chain's prices and limits.
        image: The digest of the sandbox's image, empty for the native engine.
        breakpoints: Whether it is a development chain, whose actors may have breakpoints on the native engine.

    Raises:
        ConfigurationError: If the chain's prices are not the image's.
    """
    if not image:
        return SharedNativeEngine(params, breakpoints=breakpoints)
    from trailboss.sandbox.engine import SandboxEngine

    return SandboxEngine(params, partial(_loaded, image))


def _loaded(image: bytes) -> "Runtime":
    """Return the loaded image; a frame that needs it while another thread loads it waits for that one."""
    from trailboss.sandbox.cache import load_runtime

    with _LOADING:
        return load_runtime(image)


def check_engine(image: bytes) -> None:
    """Refuse a chain whose actors this machine cannot run.

    Raises:
        ConfigurationError: If this version of Trailboss runs another image, or the image is not here.
    """
    if image:
        from trailboss.sandbox.cache import check_image

        check_image(image)


def can_run(image: bytes) -> bool:
    """Return whether this machine can run the actors of a chain."""
    try:
        check_engine(image)
    except ConfigurationError:
        return False
    return True


def default_engine() -> EngineName:
    """Return the engine of a new chain on this machine: the sandbox where it is built."""
    from trailboss.sandbox.cache import is_built

    return EngineName.SANDBOX if is_built() else EngineName.NATIVE


def engine_name(image: bytes) -> EngineName:
    """Return the name of a chain's engine."""
    return EngineName.SANDBOX if image else EngineName.NATIVE


def image_of(name: str) -> bytes:
    """Return what a genesis states for an engine, by its name.

    Raises:
        ConfigurationError: If there is no such engine.
    """
    if name not in list(EngineName):
        raise ConfigurationError(f"unknown vm {name!r}; there are: {', '.join(EngineName)}")
    if name == EngineName.NATIVE:
        return b""
    from trailboss.sandbox.cache import released_digest

    return released_digest()


def traced_engine(params: ChainParams, image: bytes, tracer: Tracer, *, breakpoints: bool = False) -> TracedEngine:
    """Return an engine as `new_engine` does, whose frames a tracer follows; the sandbox counts no lines."""
    calls = {name: tracer.follow(name, call) for name, call in HOST_CALLS.items()}
    if not image:
        native = SharedNativeEngine(params, calls=calls, new_gauge=tracer.gauge, breakpoints=breakpoints)
        return TracedEngine(native, tracer)
    from trailboss.sandbox.engine import SandboxEngine
    from trailboss.sandbox.runtime import CALLS

    return TracedEngine(SandboxEngine(params, partial(_loaded, image), (*calls.values(), *CALLS[len(calls) :])), tracer)
