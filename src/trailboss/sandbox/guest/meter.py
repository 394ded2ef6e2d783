"""The meter and the gauge of a guest, whose numbers lie in the image's own WebAssembly code.

The instruments that a program calls most, `charge` to `result`, are functions of that code (image/glue.wat); what they
do is what `trailboss.metering.gauge.Gauge` does.
"""

import builtins
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Final

from trailboss.metering import call_prices, gauge, library_prices, operators, pricers, sizes
from trailboss.metering import meter as meters
from trailboss.metering.call_prices import LIGHT_ALWAYS, PRICED_RECEIVERS
from trailboss.metering.names import UNCHECKED
from trailboss.metering.sizes import SHORT
from trailboss.metering.syntax import PREFIX
from trailboss.primitives.errors import InvariantError
from trailboss.sandbox.guest_layout import FUNCTIONS, INSTRUMENTS, USED
from trailboss.vm import library, native
from trailboss.vm.guest_modules import Plain

_CEILING, _DEEPEST, _DEPTH, _NAMES, _PLAIN = 8, 16, 24, 56, 64  # offsets of the numbers
_ATTRIBUTES: Final = "__dict__"
_ADDRESS_BITS: Final = 32
_glue: Final[Any] = builtins  # the builder puts its functions there
_DEAD: Final = -1
_ITEMS: Final = 16  # of a value with which image/glue.wat calls a type
_DIGITS: Final = 5  # more than an integer has that image/glue.wat takes for small
_STEPS: Final = 16  # of digits that a cycle buys there
_VISIT: Final = 4  # cycles of a visit there
_NUMBERS: Final = {name: number for number, (name, _) in enumerate(FUNCTIONS)}


class GuestMeter(meters.Meter):
    """A meter; while its frame runs, its cycles are those of the WebAssembly code."""

    def __init__(self, cycles_limit: int, cells_limit: int) -> None:
        self._is_running = False
        self._kept = 0
        self.cycles_limit, self.cells_limit, self.cells_used = cycles_limit, cells_limit, 0

    @property
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
        exact = (prices.digits, prices.digit_products, prices.items_free, prices.visit)
        walks = _ITEMS * max(prices.visit, prices.text_visit) * prices.characters_scanned
        if (
            any(map(int.__lt__, free, (_ITEMS, SHORT, SHORT, _DIGITS)))
            or exact != (_STEPS, _STEPS, _ITEMS, _VISIT)
            or walks > prices.characters_copied
        ):
            raise InvariantError("image/glue.wat has other prices than the chain")

    def _called(self, function: Any, price: Any, single: Any = None, light: tuple[type, ...] = (str, bytes)) -> Any:
        call = super()._called(function, price, single, light)
        if single is None:
            return call
        characters = SHORT if price in (self._of_bytes, self._of_number) else _ITEMS
        takes = (list in light or None, characters, price in (self._of_number, self._of_text) or None)
        return _bound("called", (call, single, *takes))

    def visit(self, value: Any, price: int, per_cycle: int) -> int:
        """Pay for a walk through a value; see `trailboss.metering.sizes.Sizes.visit`."""
        halves: int = _glue.glue_row(value)
        if halves < 0:
            return super().visit(value, price, per_cycle)
        cycles = halves * price // 2
        self.pay(cycles - self.free * price)
        return cycles

    def pay_order(self, items: Any, *, steps: bool) -> None:
        """Pay for an order of items; see `trailboss.metering.sizes.Sizes.pay_order`."""
        if len(items) > self.free or not 0 <= _glue.glue_row(items) <= 2 * self.free:
            super().pay_order(items, steps=steps)

    def pay_format(self, template: Any, values: Any) -> None:
        """Pay for the text of a template; see `trailboss.metering.operators.Operators.pay_format`."""
        if not _glue.glue_formats(template, values):
            super().pay_format(template, values)

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
    # Their addresses: they are objects of the image.
    _glue.glue_write(_NAMES, gauge.identity(sizes.FIELDS) | gauge.identity(_ATTRIBUTES) << _ADDRESS_BITS)
    _glue.glue_write(_PLAIN, gauge.identity(Plain))
    exact = {kind: dict if kind is Counter else kind for kind in sizes.EXACT}
    base_of = _bound("base_of", (exact, sizes.BASES, object))
    length = _bound("length", sizes.length)
    for module in (sizes, operators, pricers, library_prices):
        module.__dict__["base_of"], module.__dict__["length"] = base_of, length
