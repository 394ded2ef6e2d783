"""The functions that instrumented code calls: charges, the depth of calls, and protection from being caught.

A gauge belongs to one frame and is sticky: once the frame's cycles or cells are used up, or a fatal error has occurred,
every charge raises, whatever guest code catches, and the frame's end is read from the gauge. Decision: D-06, D-32.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, FunctionType, ModuleType, TracebackType
from typing import Any, Final

from trailboss.metering import texts
from trailboss.metering.instrument import HERE
from trailboss.metering.meter import Meter, OutOfGas
from trailboss.metering.syntax import PREFIX
from trailboss.primitives.errors import TrailbossError

FATAL: Final = (OutOfGas, MemoryError, RecursionError, KeyboardInterrupt, TrailbossError)
"""What guest code can never catch: exhaustion, and errors outside the guest's control."""
identity: Final[Callable[[object], int]] = id
"""An object's identity, for recognizing shared objects and types; it never reaches a program.

A type is compared by it, or only if its own type is ``type``: with a metaclass, a program's class can equal any type.
"""
_DEAD: Final = -1
_PRINTED_BITS: Final = 256
_PLAIN: Final = frozenset(map(identity, (bool, int, float, str, bytes)))
_NAMED: Final = (type, FunctionType, BuiltinFunctionType, ModuleType)

_OWN: Final = "charge turn enter leave result begin end suspend resume delegate caught own setter"
_INSTRUMENTS: Final = tuple((PREFIX + name, name) for name in _OWN.split())


class Gauge:
    """The instruments of one running frame."""

    __slots__ = ("_ceiling", "_deepest", "_instruments", "_shared", "allotted", "classes", "depth", "fatal", "meter")

    def __init__(self, meter: Meter, deepest: int, shared: Collection[int]) -> None:
        self.meter = meter
        self.depth = 0  # of Python calls now
        self.fatal: BaseException | None = None  # what ended the frame beyond any handler
        self.allotted = 0  # bytes of all large results so far; see `trailboss.metering.sizes`
        self.classes = 0  # made so far
        self._deepest = deepest
        self._ceiling = meter.cycles_limit
        self._shared = shared
        self._instruments = _SHARED | {name: getattr(self, own) for name, own in _INSTRUMENTS}

    def instruments(self) -> Mapping[str, object]:
        """Return the names that instrumented code calls, bound to this frame."""
        return self._instruments

    def charge(self, cycles: int) -> None:
        """Use cycles for a basic block. `OutOfGas` if the limit is passed, now or earlier."""
        meter = self.meter
        meter.cycles_used += cycles
        if meter.cycles_used > self._ceiling:
            self._stop()

    def turn(self, cycles: int, here: int) -> None:
        """Use cycles for a turn of a loop, back at the depth of its function."""
        self.depth = here + 1
        meter = self.meter
        meter.cycles_used += cycles
        if meter.cycles_used > self._ceiling:
            self._stop()

    def enter(self, cycles: int) -> int:
        """Go one call deeper; return the depth of the caller.

        Raises:
            OutOfGas: If the limit is passed, now or earlier.
            RecursionError: If calls nest too deep.
        """
        self.charge(cycles)
        here = self.depth
        if here >= self._deepest:
            self._overflow()
        self.depth = here + 1
        return here

    def leave(self, here: int) -> None:
        """Return to the depth at which a function was called."""
        self.depth = here

    def result(self, here: int, value: object) -> object:
        """Return from a lambda."""
        self.depth = here
        return value

    def begin(self, cycles: int) -> list[int]:
        """Start the body of a generator; return its place: the depth of its caller, or empty while suspended."""
        return [self.enter(cycles)]

    def end(self, place: list[int]) -> None:
        """End the body of a generator."""
        if place:
            self.depth = place.pop()

    def suspend(self, place: list[int], value: object) -> object:
        """Put a generator to sleep; ``value`` is what it yields."""
        self.end(place)
        return value

    def resume(self, place: list[int], sent: object) -> object:
        """Wake a generator; ``sent`` is what its caller sends."""
        place.append(self.enter(0))
        return sent

    def delegate(self, place: list[int], source: Any) -> Iterator[object]:
        """Put a generator to sleep while another iterator answers for it."""
        self.end(place)
        iterator = iter(source)
        return _Delegation(self, iterator) if hasattr(iterator, "send") else iterator

    def caught(self, cycles: int, here: int | None) -> None:
        """Use cycles, as `charge`, for a handler or ``finally``; re-raise what cannot be handled."""
        error = sys.exception()
        if error is not None and isinstance(error, FATAL):
            self.abort(error)
            raise error
        if here is not None:
            self.depth = here + 1
        self.charge(cycles)
        if error is not None:
            texts.clean_error(error)

    def check_depth(self, depth: int) -> None:
        """Refuse containers that nest deeper than calls may. `RecursionError`, which ends the frame."""
        if depth > self._deepest:
            self._overflow()

    def own(self, target: object) -> object:
        """Return an object that the program is about to change. `AttributeError` if other frames share it."""
        if identity(target) in self._shared:
            raise AttributeError(f"{shown(target)} is shared by all actors and cannot be changed")
        return target

    def setter(self, method: Callable[..., object]) -> Callable[..., object]:
        """Return ``__setattr__`` or ``__delattr__`` of an object, for the program's own objects only."""
        bound = getattr(method, "__self__", None)
        if bound is None:
            return partial(self._set, method)
        self.own(bound)
        return method

    def abort(self, error: BaseException) -> None:
        """Stop everything in the frame; the first reason stays."""
        self.fatal = self.fatal or error
        self._ceiling = _DEAD

    def close(self) -> None:
        """Cut the frame off from its meter: whatever still runs, such as a generator's cleanup, stops at once."""
        self.meter = Meter(0, 0)
        self._ceiling = _DEAD

    def reopen(self, meter: Meter, allotted: int, classes: int, depth: int) -> None:
        """Serve another frame, of which these are the counts, when nothing of the one before can still run."""
        self.meter, self.fatal, self._ceiling = meter, None, meter.cycles_limit
        self.allotted, self.classes, self.depth = allotted, classes, depth

    def _set(self, method: Callable[..., object], *arguments: object) -> object:
        for target in arguments[:1]:
            self.own(target)
        return method(*arguments)

    def _overflow(self) -> None:
        error = RecursionError(f"more than {self._deepest} calls within one another")
        self.abort(error)
        raise error

    def _stop(self) -> None:
        error = sys.exception()
        # A generator that is being closed has to end with this very exception, or Python reports it as unraisable.
        raise error if isinstance(error, GeneratorExit) else OutOfGas


def ordered(value: object) -> object:
    """Return an operator's result, unless the order of its items depends on the process.

    Raises:
        TypeError: If it is a set, which ``a.keys() & b.keys()`` makes without any set in the source.
    """
    if type(value) is set or type(value) is frozenset:
        raise TypeError("a set has no certain order; use a dict or cowboy_sdk.ordered_set")
    return value


_SHARED: Final[dict[str, object]] = {  # the names that instrumented code of every frame calls
    PREFIX + "ordered": ordered,
    PREFIX + "everything": BaseException,
    HERE: -1,
}


class _Delegation:
    """An iterator in place of a guest's generator in ``yield from``; it counts as one call while it runs."""

    __slots__ = ("_gauge", "_inner")

    def __init__(self, gauge: Gauge, inner: Any) -> None:
        self._gauge = gauge
        self._inner = inner

    def __iter__(self) -> "_Delegation":
        return self

    def __next__(self) -> object:
        return self._step(self._inner.__next__)

    def send(self, value: object) -> object:
        return self._step(self._inner.send, value)

    def throw(self, *error: BaseException | type[BaseException] | TracebackType | None) -> object:
        return self._step(self._inner.throw, *error)

    def close(self) -> None:
        self._inner.close()

    def _step(self, move: Callable[..., object], *arguments: object) -> object:
        here = self._gauge.enter(0)
        try:
            return move(*arguments)
        finally:
            self._gauge.leave(here)


def shown(value: object) -> str:
    """Return a value for a message: plain values as they are, others by type, so that no guest code runs."""
    if type(value) is int and value.bit_length() > _PRINTED_BITS:
        # Python refuses to print very long integers, and a message has no room for them.
        return f"an integer of {value.bit_length()} bits"
    if value is None or identity(type(value)) in _PLAIN:
        return f"{value!r:.80}"
    if isinstance(value, _NAMED):
        return f"{type(value).__name__} {value.__name__}"
    return f"an object of type {type(value).__name__}"
