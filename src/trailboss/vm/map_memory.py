"""The small maps that the SDK has encoded: a timer's envelope is the same in each fire, and to encode it takes longest.

A map that is known costs what its encoding has cost, to the cycle. Decision: D-123.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Final

from trailboss.metering.gauge import Gauge

MAPS_KEPT: Final = 256
ENTRIES_MAX: Final = 4
LENGTH_MAX: Final = 64  # of a key or a value
_LEVELS: Final = 16  # of calls: more than the encoding of a map of texts takes


class MapMemory:
    """Maps that were encoded, with the bytes and the cycles, by their items."""

    __slots__ = ("_current", "_known")

    def __init__(self, current: Callable[[], Gauge | None]) -> None:
        """Remember for the frames of whose gauges ``current`` answers one; in others the SDK encodes as ever."""
        self._current = current
        self._known: dict[tuple[str | bytes, ...], tuple[bytes, int]] = {}

    def wrap(self, original: Any) -> Any:
        """Return a function that answers as the SDK's ``codec.encode``, which depends on its argument alone."""

        def encode(value: Any, *, _capture_encoding: Any = None) -> Any:
            # A function with such a local pays for its own work: `trailboss.metering.pricers.is_own`.
            _vm_here = gauge = self._current()
            key = None if gauge is None or _capture_encoding is not None else _items(value)
            if gauge is None or key is None:
                return original(value, _capture_encoding=_capture_encoding)
            octets, cycles = self._known.get(key, (None, 0))
            if octets is not None and gauge.can_go_on(cycles, _LEVELS):
                gauge.charge(cycles)
                return bytes(memoryview(octets))  # another object each time, as the SDK makes one
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
    """Return the keys and the values of a small map of texts and bytes; None for anything else."""
    if type(value) is not dict or not 0 < len(value) <= ENTRIES_MAX:
        return None
    items = *value, *value.values()
    for each in items:
        if (type(each) is not str and type(each) is not bytes) or len(each) > LENGTH_MAX:
            return None
    return items
