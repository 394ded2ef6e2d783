"""An engine around another one: everything goes through, and a subclass changes how frames run."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from trailboss.metering.meter import Meter
from trailboss.vm.engine import Engine, Frame, FrameOutcome
from trailboss.vm.host import Host

T = TypeVar("T")


class OuterEngine(Struct, frozen=True):
    """An `Engine` that hands everything on."""

    inner: Engine

    def version(self) -> str:
        """Return the version of the engine within."""
        return self.inner.version()

    def check_source(self, source: str, code_hash: bytes) -> None:
        """Check and compile a source; see `Engine.check_source`."""
        self.inner.check_source(source, code_hash)

    def handlers(self, source: str, code_hash: bytes) -> frozenset[str]:
        """Return the names that can be called; see `Engine.handlers`."""
        return self.inner.handlers(source, code_hash)

    def name_source(self, code_hash: bytes, path: str) -> None:
        """Note the file of a program; see `Engine.name_source`."""
        self.inner.name_source(code_hash, path)

    def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:
        """Run a frame to its end; see `Engine.run`."""
        return self.inner.run(frame, host, meter)

    def perform(self, action: Callable[[], T]) -> T:
        """Run an action where frames run; see `Engine.perform`."""
        return self.inner.perform(action)

    def prepare(self) -> None:
        """Load in advance what the first frames need."""
        self.inner.prepare()

    def close(self) -> None:
        """Release what the engine within holds."""
        self.inner.close()
