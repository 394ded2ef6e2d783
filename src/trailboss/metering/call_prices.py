"""The priced forms of what a program calls: built-in functions and types, and methods. Decision: D-101."""

import collections
import functools
import re
from collections.abc import Callable
from enum import EnumMeta
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any, Final

from trailboss.metering import texts
from trailboss.metering.gauge import identity
from trailboss.metering.library_prices import LibraryPricers, named_function
from trailboss.metering.names import METHODS
from trailboss.metering.pricers import Pricer
from trailboss.metering.sizes import (
    MRO,
    SHORT,
)
from trailboss.metering.syntax import TEXT_METHODS

_DESCRIPTORS: Final = (MethodDescriptorType, ClassMethodDescriptorType, WrapperDescriptorType)
_LIGHT_ITEMS: Final = 1_024  # items that list.pop and list.insert move for free
_LIGHT: Final = frozenset(
    name for name, pricer in METHODS.items() if pricer in ("scanned", "searched") and name not in TEXT_METHODS
)
"""Methods of short text and bytes that are free."""
LIGHT_ALWAYS: Final = frozenset((*_LIGHT, "encode", "decode", "strip", "lstrip", "rstrip"))
PRICED_RECEIVERS: Final = (bytearray, list, tuple, dict, int, type, collections.deque, re.Pattern)
_PRICED: Final = frozenset(map(identity, PRICED_RECEIVERS))


class Calls(LibraryPricers):
    """What a program can call, with its prices."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._callees = {kind: self._called_type(kind, price) for kind, price in self._types.items()}
        self._callees[zip] = self._rows(zip)
        self._callees[map] = self._rows(map)
        self._functions: dict[Any, Pricer] = self._library_methods()

    # What instrumented code asks for

    def callee(self, function: Any) -> Any:
        """Return a function to be called, or its priced form: of the built-in types, and of classes that extend one."""
        kind = type(function)
        if kind is FunctionType or kind is MethodType:
            return function
        if kind is type:
            found = self._callees.get(function)
            return self._subtype(function) if found is None else found
        return self._subtype(function) if issubclass(kind, type) else function

    def _subtype(self, function: Any) -> Any:
        if issubclass(type(function), EnumMeta):
            return self._called(function, self._members)
        for base in MRO(function):
            price = self._types.get(base)
            if price is None or function in self._callees:
                continue
            own = function.__init__ is base.__init__ and function.__new__ in (base.__new__, texts.new_text)
            return self._called(function, price) if own else function
        return self._callees.get(function, function)

    def method(self, found: Any) -> Any:
        """Return an attribute of one of the `SIZED_METHODS`: a method of a built-in type in its priced form."""
        kind = type(found)
        if kind is BuiltinFunctionType:
            name = found.__name__
            receiver = found.__self__
            base = type(receiver)
            if name in _LIGHT and (base is str or base is bytes) and len(receiver) <= SHORT:
                return found
            price = self._methods.get(name)
            if price is None:
                return texts.method(found) if name in TEXT_METHODS else found
            if name == "pop" and base is list and len(receiver) <= _LIGHT_ITEMS:
                return found
            return self._bound(texts.method(found) if name in TEXT_METHODS else found, receiver, price, name, found)
        if kind is MethodType or kind is FunctionType:
            return self._python_method(found)
        if kind in _DESCRIPTORS:
            return self._unbound(found)
        if kind is MethodWrapperType:
            if found.__name__ == "__call__":
                return self.callee(found.__self__) if isinstance(found.__self__, type) else found
            price = self._methods.get(found.__name__)
            cleaned = texts.method(found) if found.__name__ in TEXT_METHODS else found
            return cleaned if price is None else self._bound(cleaned, found.__self__, price, found.__name__, found)
        return found

    def method_any(self, found: Any) -> Any:
        """Return an attribute as `method` does, for the SDK's own code, whose texts hold what it likes."""
        if type(found) is BuiltinFunctionType:
            receiver: Any = found.__self__
            base: Any = type(receiver)
            if base is str or base is bytes:
                if len(receiver) <= SHORT and found.__name__ in LIGHT_ALWAYS:
                    return found
            elif identity(base) not in _PRICED:
                return found
            price = self._methods.get(found.__name__)
            return found if price is None else self._bound(found, receiver, price, found.__name__, found)
        return found

    def _bound(self, call: Any, receiver: Any, price: Pricer, name: str, found: Any) -> Any:
        if price in (self._constructed, self._operated, self._compared, self._accessed):
            price = functools.partial(price, found=found)

        def method(*arguments: Any, **named: Any) -> Any:
            return call(*price(receiver, list(arguments), named), **named)

        method.__name__ = method.__qualname__ = name
        return method

    def _unbound(self, found: Any) -> Any:
        price = self._methods.get(found.__name__)
        cleaned = texts.method(found) if found.__name__ in TEXT_METHODS else found
        if price is None:
            return cleaned
        if price in (self._constructed, self._operated, self._compared, self._accessed):
            price = functools.partial(price, found=found)
        pay = price

        def method(*arguments: Any, **named: Any) -> Any:
            if not arguments:
                return cleaned(**named)
            receiver, *rest = arguments
            return cleaned(receiver, *pay(receiver, rest, named), **named)

        method.__name__ = method.__qualname__ = found.__name__
        return method

    def _python_method(self, found: Any) -> Any:
        is_bound = type(found) is MethodType
        function = found.__func__ if is_bound else found
        price = self._functions.get(function) if type(function) is FunctionType else None
        cleaned = texts.method(found) if function.__name__ in TEXT_METHODS else found
        if price is None:
            return cleaned
        if is_bound:
            return self._bound(cleaned, found.__self__, price, function.__name__, found)
        return self._unbound_by(found, price)

    def _unbound_by(self, function: Any, price: Pricer) -> Any:
        def method(receiver: Any, *arguments: Any, **named: Any) -> Any:
            return function(receiver, *price(receiver, list(arguments), named), **named)

        return method

    def _called_type(self, kind: type, price: Pricer) -> Any:
        # One argument of bytes names no encoding, and a small one has no price.
        single = kind if kind in (bytes, bytearray) else texts.callee(kind)
        holds_items = price in (self._kept_items, self._of_bytes)
        light = (str, bytes, list, tuple, dict) if holds_items else (str, bytes)
        return self._called(texts.callee(kind), price, single, light)

    def builtins(self) -> dict[str, Callable[..., Any]]:
        """Return the built-in functions of actors that have a price for size."""
        pricers: dict[str, Pricer] = {
            **dict.fromkeys(("any", "all"), self._of_items), "sorted": self._ordered, "min": self._extreme,
            "max": self._extreme, "abs": self._operands, "bin": self._in_bits, "hex": self._in_bits,
            "oct": self._in_bits, "divmod": self._divided, "pow": self._raised, "round": self._rounded,
            "repr": self._texts, "ascii": self._texts,
            "format": self._formatted_value,
        }  # fmt: skip
        known: dict[str, Any] = {"repr": texts.representation, "ascii": texts.ascii_representation}
        known["format"] = texts.formatted
        made = {name: self._called(known.get(name) or _BUILTINS[name], price) for name, price in pricers.items()}
        made |= {each.__name__: self._checked(each) for each in (isinstance, issubclass)}
        made["sum"] = named_function(self.sum, "sum", "builtins")
        return made


_BUILTINS: Final[dict[str, Any]] = {
    each.__name__: each for each in (any, all, sorted, min, max, abs, bin, hex, oct, divmod, pow, round)
}
