"""The gauge of a frame that a person may stop in: what a debugger evaluates there costs nothing. Decision: D-118."""

import sys
from collections.abc import Callable
from inspect import currentframe
from types import CodeType, FrameType
from typing import Any, Final

from trailboss.metering.gauge import Gauge
from trailboss.metering.meter import Meter

DEBUGGERS: Final = frozenset(("bdb", "pdb", "code", "IPython", "debugpy"))
"""Packages whose functions evaluate what a person types."""
EDITORS: Final = ("pydev", "_pydev")  # how the names of the packages begin that editors debug with
_FREE: Final = 2**62  # cycles and cells of the meter that an evaluation charges
_METER: Any = vars(Gauge)["meter"]


class WatchedGauge(Gauge):
    """A gauge that nothing changes while a function of a debugger is under way within the frame.

    A person can then call the actor's own functions and read the chain, and the frame ends as it would have ended.

    Attributes:
        debugger: What ``breakpoint()`` calls.
    """

    __slots__ = ("_package", "_root", "debugger")
    _package: str
    _root: CodeType
    debugger: Callable[..., object]

    def __init__(self, debugger: Callable[..., object], root: CodeType, *limits: Any) -> None:
        """Watch a frame that ``root`` runs."""
        object.__setattr__(self, "debugger", debugger)
        object.__setattr__(self, "_package", package_of(getattr(debugger, "__module__", "")))
        object.__setattr__(self, "_root", root)
        super().__init__(*limits)

    @property
    def meter(self) -> Meter:
        """The frame's meter, or for an evaluation one that is thrown away."""
        found: Meter = Meter(_FREE, _FREE) if self.is_asked() else _METER.__get__(self)
        return found

    @meter.setter
    def meter(self, meter: Meter) -> None:
        _METER.__set__(self, meter)

    def __setattr__(self, name: str, value: object) -> None:
        if not self.is_asked():
            super().__setattr__(name, value)

    def is_asked(self) -> bool:
        """Whether a person asks, and not the program: a debugger is between the frame and here."""
        frame = currentframe()
        asked = False
        while frame is not None and frame.f_code is not self._root:
            asked = asked or self._is_debuggers(frame)
            frame = frame.f_back
        return asked and frame is not None

    def caught(self, cycles: int, here: int | None) -> None:
        """Charge as every gauge does; no program catches the command that quits a debugger."""
        error = sys.exception()
        if error is not None and self.is_quit(error):
            self.abort(error)
            raise error
        super().caught(cycles, here)

    def is_quit(self, error: BaseException) -> bool:
        """Whether a debugger has raised an exception: it quits, or fails."""
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        return place is not None and self._is_debuggers(place.tb_frame)

    def _is_debuggers(self, frame: FrameType) -> bool:
        package = package_of(frame.f_globals.get("__name__"))
        return package in DEBUGGERS or package == self._package or package.startswith(EDITORS)


def package_of(module: object) -> str:
    """Return the first part of a module's name."""
    return str(module).partition(".")[0]
