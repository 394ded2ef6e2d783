"""Small maps that the SDK has encoded: a timer's envelope is the same in each fire, and nothing else takes as long.

A known map costs what its encoding has cost, to the cycle. Decision: D-123.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Final

from trailboss.metering.gauge import Gauge

MAPS_KEPT: Final = 256
ENTRIES_MAX: Final = 4
LENGTH_MAX: Final = 64  # of a key or a value
_LEVELS: Final = 16  # of calls: more than the encoding of such a map takes


class MapMemory:
    """The maps; ``current`` returns the gauge of the frame, or None for one in which the SDK encodes as ever."""

    __slots__ = ("_current", "_known")

    def __init__(self, current: Callable[[], Gauge | None]) -> None:
        self._current = current
        self._known: dict[tuple[str | bytes, ...], tuple[bytes, int]] = {}

    def wrap(self, original: Any) -> Any:
        """Return what stands for the SDK's ``codec.encode``, whose answer and cycles depend on its argument alone."""

        def encode(value: Any, *, _capture_encoding: Any = None) -> Any:
            # Such a local says that a function pays for its own work: `trailboss.metering.pricers.is_own`.
            _vm_here = gauge = self._current()
            key = None if gauge is None or _capture_encoding is not None else _items(value)
            if gauge is None or key is None:
                return original(value, _capture_encoding=_capture_encoding)
            octets, cycles = self._known.get(key, (b"", 0))
            if octets and gauge.can_go_on(cycles, _LEVELS):
                gauge.charge(cycles)
                return bytes(memoryview(octets))  # a new object each time, as the SDK makes one
            used = gauge.meter.cycles_used
            made = original(value)
            if len(self._known) == MAPS_KEPT:
                self._known.clear()
            self._known[key] = made, gauge.meter.cycles_used - used
            return made

        wrapped: Any = update_wrapper(encode, original)
        del wrapped.__wrapped__
        return wrapped


def _items(value: Any) -> tuple[str | bytes, ...] | None:
    items = (*value, *value.values()) if type(value) is dict and 0 < len(value) <= ENTRIES_MAX else (None,)
    for each in items:
        if (type(each) is not str and type(each) is not bytes) or len(each) > LENGTH_MAX:
            return None
    return items
