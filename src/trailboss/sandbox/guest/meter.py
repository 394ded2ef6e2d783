"""The meter and the gauge of a guest, whose numbers lie in the image's own WebAssembly code.

The instruments that a program calls most, `charge` to `result`, are functions of that code (image/glue.wat); what they
do is what `trailboss.metering.gauge.Gauge` does.
"""

import builtins
from collections.abc import Collection, Mapping
from typing import Any, Final

from trailboss.metering import call_prices, gauge
from trailboss.metering import meter as meters
from trailboss.metering.call_prices import LIGHT_ALWAYS, PRICED_RECEIVERS
from trailboss.metering.names import UNCHECKED
from trailboss.metering.sizes import SHORT
from trailboss.metering.syntax import PREFIX
from trailboss.primitives.errors import InvariantError
from trailboss.sandbox.guest_layout import FUNCTIONS, INSTRUMENTS, USED
from trailboss.vm import library, native

_CEILING, _DEEPEST, _DEPTH = 8, 16, 24  # offsets of the numbers
_glue: Final[Any] = builtins  # the builder puts its functions there
_DEAD: Final = -1
_ITEMS: Final = 16  # of a value with which image/glue.wat calls a type
_DIGITS: Final = 5  # more than an integer has that image/glue.wat takes for small
_NUMBERS: Final = {name: number for number, (name, _) in enumerate(FUNCTIONS)}


class GuestMeter(meters.Meter):
    """A meter; while its frame runs, its cycles are those of the WebAssembly code."""

    def __init__(self, cycles_limit: int, cells_limit: int) -> None:
        self._is_running = False
        self._kept = 0
        self.cycles_limit, self.cells_limit, self.cells_used = cycles_limit, cells_limit, 0

    @property  # type: ignore[misc]  # the stand-in for a Struct allows it
    def cycles_used(self) -> int:
        """Cycles used so far."""
        return _glue.glue_read(USED) if self._is_running else self._kept

    @cycles_used.setter
    def cycles_used(self, value: int) -> None:
        if self._is_running:
            _glue.glue_write(USED, value)
        else:
            self._kept = value

    def charge_cycles(self, cycles: int) -> None:
        """Use cycles; see `trailboss.metering.meter.Meter`."""
        if self._is_running:
            _glue.glue_charge(cycles)
        else:
            super().charge_cycles(cycles)

    def start(self) -> None:
        """Count in the WebAssembly code from now on."""
        _glue.glue_write(USED, self._kept)
        self._is_running = True

    def stop(self) -> None:
        """Keep the present count."""
        if self._is_running:
            self._kept = self.cycles_used
            self._is_running = False


class GuestGauge(gauge.Gauge):
    """A gauge with its number of calls, its bounds and its hottest instruments in the WebAssembly code."""

    charge = staticmethod(_glue.glue_charge)
    turn = staticmethod(_glue.glue_turn)
    enter = staticmethod(_glue.glue_enter)
    leave = staticmethod(_glue.glue_leave)
    result = staticmethod(_glue.glue_result)

    def __init__(self, meter: Any, deepest: int, shared: Collection[int]) -> None:
        meter.start()
        super().__init__(meter, deepest, shared)
        _glue.glue_ends(self._stop, self._overflow)

    def resume_with(self, cycles_limit: int) -> None:
        """Run on, after the actor's module, with a frame's limit."""
        self._ceiling = cycles_limit

    @property
    def depth(self) -> int:
        """Python calls now."""
        return _glue.glue_read(_DEPTH)  # type: ignore[no-any-return]

    @depth.setter
    def depth(self, value: int) -> None:
        _glue.glue_write(_DEPTH, value)

    @property
    def _ceiling(self) -> int:
        return _glue.glue_read(_CEILING)  # type: ignore[no-any-return]

    @_ceiling.setter
    def _ceiling(self, value: int) -> None:
        _glue.glue_write(_CEILING, value)

    @property
    def _deepest(self) -> int:
        return _glue.glue_read(_DEEPEST)  # type: ignore[no-any-return]

    @_deepest.setter
    def _deepest(self, value: int) -> None:
        _glue.glue_write(_DEEPEST, value)

    def close(self) -> None:
        """Cut the frame off from its meter."""
        if isinstance(self.meter, GuestMeter):
            self.meter.stop()
        _glue.glue_write(_CEILING, _DEAD)


class GuestCalls(call_prices.Calls):
    """The priced forms of calls; those of types are functions of the WebAssembly code, for one small value."""

    def __init__(self, prices: Any, gauge: Any) -> None:
        super().__init__(prices, gauge)
        free = (prices.items_free, prices.characters_copied // 2, prices.characters_free, prices.digits)
        if any(map(int.__lt__, free, (_ITEMS, SHORT, SHORT, _DIGITS))):
            raise InvariantError("image/glue.wat takes larger operands for free than the prices do")

    def _called(self, function: Any, price: Any, single: Any = None, light: tuple[type, ...] = (str, bytes)) -> Any:
        call = super()._called(function, price, single, light)
        if single is None:
            return call
        characters = SHORT if price in (self._of_bytes, self._of_number) else _ITEMS
        takes = (list in light or None, characters, price == self._of_number or None)
        return _bound("called", (call, single, *takes))

    def visit(self, value: Any, price: int, per_cycle: int) -> int:
        """Pay for a walk through a value; see `trailboss.metering.sizes.Sizes.visit`."""
        row: int = _glue.glue_row(value)
        return row * price if row else super().visit(value, price, per_cycle)

    def glue_instruments(self, names: Mapping[str, object]) -> dict[str, object]:
        """Return the instruments that are functions of the WebAssembly code, by their names in programs.

        Each falls back on the one of ``names``. The operators in place, and those that may answer with a set, differ
        from the plain ones for other operands alone.
        """
        bound = [getattr(each, name, None) for each in ("", b"") for name in sorted(LIGHT_ALWAYS)]
        light = {_glue.glue_defined(each): True for each in bound if each is not None}
        more = {"callee": (self._callees,), "method_any": (light, PRICED_RECEIVERS)}
        made: dict[str, object] = {}
        for name in INSTRUMENTS:
            for form in (name, f"i{name}", name + UNCHECKED, f"i{name}{UNCHECKED}"):
                found = names.get(PREFIX + form)
                if found is not None:
                    made[PREFIX + form] = _bound(name, (found, *more[name]) if name in more else found)
        return made


def _bound(name: str, fallback: object) -> object:
    return _glue.glue_bind(_NUMBERS[f"glue_{name}"], fallback)


def install() -> None:
    """Let the engine's modules build these instead of the plain ones."""
    for module in (meters, gauge, library, native):
        module.__dict__["Meter"] = GuestMeter
    for module in (gauge, library, native):
        module.__dict__["Gauge"] = GuestGauge
    library.__dict__["Calls"] = GuestCalls
