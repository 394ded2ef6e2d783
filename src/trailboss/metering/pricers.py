"""What the arguments of a call cost: the pricers of built-in functions, of methods and of the standard library.

A pricer is called before the call with the arguments, pays for them, and returns the ones to pass on: an iterable
of unknown length is replaced by one that pays as it goes. Decision: D-101.
"""

import collections
import decimal
import struct
from collections.abc import Callable, Iterable
from typing import Any, Final

from trailboss.metering.gauge import Gauge, identity
from trailboss.metering.instrument import HERE
from trailboss.metering.names import METHODS
from trailboss.metering.operators import Operators, written_widths
from trailboss.metering.sizes import (
    BASE,
    DIGIT_BITS,
    NESTED,
    SEQUENCES,
    SHORT,
    SMALL,
    TEXTS,
    VIEWS,
    base_of,
    digits,
    length,
    plain,
)
from trailboss.params import SourceCostParams

Arguments = list[Any]
Named = dict[str, Any]
Pricer = Callable[..., Any]  # takes the receiver, or None for a function
_HASH_BASE: Final = 500  # bytes that a keyed hash costs beside its own
_EVENS: Final = 2
_NUMBER_CHARACTERS: Final = 10_000  # Python refuses to read longer numbers in base 10
_POWER_OPERANDS: Final = 3
_TAB: Final = 8
MEMBERS_OF_A_CLASS: Final = 8  # fields of a dataclass, or members of an enumeration, that cost as much as a class
_FOREIGN_CALLS: Final = 3  # times the price of an item that a call of a function in C costs
_SUBSTITUTE: Final = 100  # times the price of an item that a placeholder of a template costs

_SIGNS: Final = {"radd": "add", "iadd": "add", "rmul": "mul", "imul": "mul", "rsub": "sub"}


def is_own(function: Any) -> bool:
    """Whether a function is the program's own, so that it pays for its calls."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and HERE in code.co_varnames + code.co_cellvars


class Pricers(Operators):
    """What the arguments of a call cost, by kind of call."""

    def __init__(self, prices: SourceCostParams, gauge: Gauge) -> None:
        super().__init__(prices, gauge)
        self.operators = self.instruments()
        self._methods: dict[str, Any] = {name: getattr(self, f"_{kind}") for name, kind in METHODS.items()}
        self._types: dict[Any, Pricer] = self._type_pricers()

    def _type_pricers(self) -> dict[Any, Pricer]:
        entries, items = self._of_entries, self._kept_items
        return {
            list: items, tuple: items, collections.deque: items, dict: entries, collections.OrderedDict: entries,
            collections.Counter: entries, collections.defaultdict: entries,
            collections.UserDict: entries, collections.UserList: items, collections.UserString: self._of_text,
            bytes: self._of_bytes,
            bytearray: self._of_bytes, str: self._of_text, int: self._of_number, float: self._of_number,
            complex: self._of_number, filter: self._filtered, decimal.Decimal: self._of_decimal, type: self._of_class,
            struct.Struct: self._compiled, enumerate: self._kept, frozenset: items, set: items,
        }  # fmt: skip

    def _called(self, function: Any, price: Pricer, single: Any = None, light: tuple[type, ...] = (str, bytes)) -> Any:
        """Return the priced form of a function or type; ``single`` takes one small value of a ``light`` type."""
        free, alone = self.free, single or function
        kinds = frozenset(map(identity, light))  # A program's metaclass can say that its classes equal any type.

        def call(*arguments: Any, **named: Any) -> Any:
            value: Any = arguments[0] if len(arguments) == 1 and not named else None
            if identity(type(value)) in kinds and len(value) <= free:
                return alone(value)
            return function(*price(None, list(arguments), named), **named)

        call.__name__ = call.__qualname__ = getattr(function, "__name__", "call")
        call.__module__ = str(getattr(function, "__module__", None) or "builtins")
        return call

    # Functions

    def sum(self, iterable: Any, /, start: Any = 0) -> Any:
        """Stand for ``sum``, adding as ``+`` does, for the built-in one adds floats otherwise from Python 3.12 on."""
        total = sum((), start)
        for each in self.counted(iterable):
            total = self.plus(total, each)
        return total

    def _kept(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        return given

    def _operands(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        for each in given:
            self.operand(each)
        return given

    def _of_items(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        for name in ("iterable", "data", "selectors"):
            if name in named:
                named[name] = self.counted(named[name])
        return [self.counted(given[0]), *given[1:]] if given else given

    def _kept_items(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        for name in ("iterable", "data"):
            if name in named:
                named[name] = self.counted(named[name], kept=True)
        return [self.counted(given[0], kept=True), *given[1:]] if given else given

    def _all_items(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        self._of_items(None, [], named)
        return [self.counted(each) for each in given]

    def _of_entries(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        return [self._mapping(each) for each in given]

    def _mapping(self, value: Any) -> Any:
        kind = type(value)
        if kind is dict and len(value) <= self.free:
            return value
        if base_of(value) is dict or not hasattr(kind, "keys"):
            return self.counted(value, 2 * self.prices.item, kept=True) if hasattr(kind, "__iter__") else value
        return value

    def _of_bytes(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        if not given:
            return given
        value = given[0]
        base = base_of(value)
        if base is int or base is bool:
            self.pay_copy(plain(value))
        elif base is str:
            self.pay_scan(length(value, base))
        elif base in TEXTS or base is memoryview:
            self.pay_copy(length(value, base))
        elif not hasattr(type(value), "__bytes__"):
            return [self.counted(value, kept=True), *given[1:]]
        return given

    def _of_text(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        for value in given[:1] or named.values():
            if type(value) is not str and (type(value) is not int or not -SMALL < value < SMALL):
                self.pay_text(value)
        return given

    def _of_number(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        for value in given[:1]:
            base = base_of(value)
            if base in TEXTS:
                size = length(value, base)
                self.pay_scan(size)
                if size > SHORT:
                    self.pay(min(size, _NUMBER_CHARACTERS) ** 2, self.prices.digit_squares)
            elif base is decimal.Decimal:
                self.pay_plain_decimal(value)
        return given

    def _of_decimal(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        for value in given[:1]:
            base = base_of(value)
            size = length(value, base) if base in (str, list, tuple) else digits(value) * (BASE - 1)
            if size > SHORT:
                self.pay(size * size, self.prices.digit_products)
        return given

    def _of_class(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        if len(given) > 1:
            self.pay_class()
        return given

    def pay_class(self, times: int = 1) -> None:
        """Pay for a class that is about to be made."""
        gauge = self.gauge
        gauge.classes += times
        if gauge.classes > self.prices.classes_free:
            self.pay(self.prices.class_made * times)

    def _members(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        names = [each if base_of(each) in (*NESTED, str) else list(self.counted(each)) for each in given[1:2]]
        for each in names:
            self.pay_class(1 + length(each, base_of(each)) // MEMBERS_OF_A_CLASS)
        return [*given[:1], *names, *given[2:]]

    def _filtered(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        # What no result comes of would cost nothing, and an endless iterator of that would never end.
        return [*given[:1], *(self._sieved(each) for each in given[1:])]

    def _sieved(self, source: Any) -> Any:
        kind = type(source)
        if type(kind) is type and kind in (list, tuple, str, bytes, dict) and len(source) <= self.free:
            return source
        return self.counting(source, self.prices.item) if hasattr(kind, "__iter__") else source

    def _ordered(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        if not given:
            return given
        if type(given[0]) is list and len(given[0]) <= self.free and named.get("key") is not None:
            named["key"] = self._weighed(named["key"], 1)
            return given
        items = self.listed(given[0])
        if not hasattr(type(items), "__len__"):
            return given
        if named.get("key") is None:
            self.pay_order(items if type(items) in (list, tuple) else list(items), steps=True)
        else:
            factor = len(items).bit_length() if len(items) > self.free else 1
            self.pay_foreign(named["key"], items)
            named["key"] = self._weighed(named["key"], factor)
            self.pay(len(items) * (factor - 1), self.prices.sort_steps)
        return [items, *given[1:]]

    def _weighed(self, key: Any, times: int) -> Callable[[Any], Any]:
        def weighed(value: Any) -> Any:
            made = key(value)
            if type(made) is not int or not -SMALL < made < SMALL:
                self.pay(self.visit(made, self.prices.visit, self.prices.characters_compared) * (times - 1))
            return made

        return weighed

    def _extreme(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        if len(given) == 1:
            given = [self.listed(given[0])]
        items = given[0] if len(given) == 1 else given
        if named.get("key") is not None:
            self.pay_foreign(named["key"], items)
            named["key"] = self._weighed(named["key"], 1)
        elif hasattr(type(items), "__len__"):
            self.pay_order(items if type(items) in (list, tuple) else list(items), steps=False)
        return given

    def _in_bits(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        for each in given[:1]:
            self.pay_scan(digits(each) * DIGIT_BITS // 2)
        return given

    def _divided(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        if len(given) > 1:
            self.pay_quotient(given[0], given[1])
        return given

    def _raised(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        values = [*given, *(named[name] for name in ("base", "exp", "mod") if name in named)]
        if len(values) > 1:
            self.pay_power(*values[:_POWER_OPERANDS])
        return given

    def _rounded(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        value, places = (*given, named.get("ndigits"), None)[:2]
        self.operand(value)
        if base_of(value) is decimal.Decimal:
            self.pay_plain_decimal(value)
        elif issubclass(type(value), int) and issubclass(type(places), int) and plain(places) < 0:
            self.pay_power(BASE, -plain(places))
            self.pay_quotient(value, BASE ** -plain(places))
        return given

    def _checked(self, check: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
        """Return ``isinstance`` or ``issubclass``, which walk through tuples within tuples."""

        def checked(value: Any, kinds: Any, /) -> bool:
            if type(kinds) is tuple and tuple in map(type, kinds):
                self.visit(kinds, self.prices.visit, 0)
            return check(value, kinds)

        checked.__name__ = checked.__qualname__ = check.__name__
        checked.__module__ = "builtins"
        return checked

    def _texts(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        for value in given:
            if type(value) is not int or not -SMALL < value < SMALL:
                self.pay_text(value)
        return given

    def _formatted_value(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        self._texts(None, given, {})
        for spec in given[1:]:
            if base_of(spec) is str:
                self.pay_width(written_widths(str(spec)))
        return given

    def pay_foreign(self, function: Any, items: Any) -> None:
        """Pay for calls of a function that does not pay for itself, one for each item."""
        if hasattr(type(items), "__len__") and (count := length(items, base_of(items))) > self.free:
            self.pay(0 if is_own(function) else (count - self.free) * _FOREIGN_CALLS * self.prices.item)

    def _rows(self, kind: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``zip`` or ``map``, whose result pays if each of its items is made of many."""

        def rows(*arguments: Any, **named: Any) -> Any:
            made = kind(*arguments, **named)
            if len(arguments) > self.free:
                return self.counting(made, len(arguments))
            is_foreign = kind is map and not is_own(arguments[0])
            return self.counting(made, _FOREIGN_CALLS * self.prices.item) if is_foreign else made

        rows.__name__ = rows.__qualname__ = kind.__name__
        rows.__module__ = "builtins"
        return rows

    # Methods

    def _scanned(self, receiver: Any, given: Arguments, _named: Named) -> Arguments:
        base = base_of(receiver)
        if base in TEXTS or base is memoryview:
            self.pay_scan(length(receiver, base))
        for each in given:
            other = base_of(each)
            if other in TEXTS or other is tuple:
                self.pay_scan(length(each, other))
        return given

    def _searched(self, receiver: Any, given: Arguments, named: Named) -> Arguments:
        base = base_of(receiver)
        if base in SEQUENCES:
            if given:
                self.pay_search(given[0], receiver)
        elif type(receiver) is range:
            if given and type(given[0]) is not int:
                self.pay_search(given[0], receiver)
        else:
            self._scanned(receiver, given, named)
        return given

    def _searched_back(self, receiver: Any, given: Arguments, named: Named) -> Arguments:
        base = base_of(receiver)
        self._scanned(receiver, given, named)
        if base in TEXTS and given and base_of(given[0]) in TEXTS:
            needle, size = length(given[0], base_of(given[0])), length(receiver, base)
            if needle > _EVENS * _EVENS and size > SHORT:
                self.pay(max(size - needle, 0) * needle, self.prices.search_steps)
        return given

    def _stripped(self, receiver: Any, given: Arguments, _named: Named) -> Arguments:
        base = base_of(receiver)
        if base in TEXTS:
            many = length(given[0], base_of(given[0])) if given and base_of(given[0]) in TEXTS else 1
            self.pay_scan(length(receiver, base))
            self.pay(length(receiver, base) * many, self.prices.characters_copied)
        return given

    def _padded(self, receiver: Any, given: Arguments, named: Named) -> Arguments:
        base = base_of(receiver)
        if base in TEXTS:
            width = next((each for each in (*given, *named.values()) if issubclass(type(each), int)), _TAB)
            size = length(receiver, base)
            self.pay_scan(size)
            tabs = str.count(receiver, "\t") if base is str else bytes(receiver).count(b"\t")
            self.pay_copy(max(plain(width), 0) * max(tabs, 1) + size)
        return given

    def _replaced(self, receiver: Any, given: Arguments, named: Named) -> Arguments:
        base = base_of(receiver)
        self._scanned(receiver, given, named)
        if base in TEXTS and len(given) > 1 and all(base_of(each) in TEXTS for each in given[:2]):
            old, new = (length(each, base_of(each)) for each in given[:2])
            size = length(receiver, base)
            self.pay_copy(size + (size // max(old, 1) + 1) * new)
        elif base is str and given and base_of(given[0]) is dict:
            widest = max((len(each) for each in dict.values(given[0]) if type(each) is str), default=1)
            self.pay_copy(widest * length(receiver, base))
        else:
            for each in given:
                self.counted(each) if base_of(each) is dict else None
        return given

    def _joined(self, receiver: Any, given: Arguments, _named: Named) -> Arguments:
        base = base_of(receiver)
        if base not in TEXTS or not given:
            return given
        source = given[0]
        if type(source) is not list and type(source) is not tuple:
            source = list(self.counted(source, 1, kept=True)) if hasattr(type(source), "__iter__") else source
        if type(source) not in (list, tuple):
            return [source]
        items = len(source)
        self.pay(items - self.free, _EVENS)
        sizes = sum(map(len, source)) if all(type(each) in TEXTS for each in source) else self._lengths(source)
        self.pay_copy(sizes + length(receiver, base) * items)
        return [source]

    def _lengths(self, source: Iterable[Any]) -> int:
        total = 0
        for each in source:
            base = base_of(each)
            if base in TEXTS or base is memoryview:
                total += length(each, base)
        return total

    def _formatted(self, receiver: Any, given: Arguments, named: Named) -> Arguments:
        base = base_of(receiver)
        if base is str:
            self.pay_format(receiver, (*given, *named.values()))
        elif base is not int or digits(receiver) > 1:
            self._formatted_value(None, [receiver, *given], {})
        if base is not str:
            self.pay_width(sum(written_widths(each) for each in given if type(each) is str))
        return given

    def _extended(self, receiver: Any, given: Arguments, named: Named) -> Arguments:
        base = base_of(receiver)
        if base is dict or receiver in (dict, collections.OrderedDict, collections.Counter):
            return self._of_entries(None, given, named)
        if base in SEQUENCES or base is bytearray:
            return [self.counted(given[0], 1, kept=True), *given[1:]] if given else given
        return self._hashed(None, given, named)

    def _copied(self, receiver: Any, given: Arguments, _named: Named) -> Arguments:
        base = base_of(receiver)
        if base in (*SEQUENCES, *TEXTS):
            self.pay_items(length(receiver, base))
        elif base is dict or base in VIEWS:
            self.pay_items(length(receiver, base) * self.prices.item)
        return [self.counted(each) if hasattr(type(each), "__iter__") else each for each in given]

    def _moved(self, receiver: Any, given: Arguments, _named: Named) -> Arguments:
        base = base_of(receiver)
        if base in (list, collections.deque, bytearray):
            self.pay(length(receiver, base), self.prices.items_moved)
        elif base is dict:
            self._keyed(receiver, given, {})
        return given

    def _keyed(self, receiver: Any, given: Arguments, _named: Named) -> Arguments:
        if given and base_of(receiver) is dict:
            self.pay_key(given[0])
        return given

    def _sorted(self, receiver: Any, given: Arguments, named: Named) -> Arguments:
        if base_of(receiver) is list:
            self._ordered(None, [receiver], named)
        return given

    def _int_bytes(self, receiver: Any, given: Arguments, named: Named) -> Arguments:
        if base_of(receiver) is decimal.Decimal:
            self.pay_plain_decimal(receiver)
        first = given[0] if given else None
        if type(first) is int and type(receiver) is int and first <= SHORT and -SMALL < receiver < SMALL:
            return given
        if type(first) is bytes and receiver is int and len(first) <= SHORT:
            return given
        if issubclass(type(receiver), int):
            self.pay_digits(digits(receiver))
            size = given[0] if given else named.get("length", 1)
            if issubclass(type(size), int):
                self.pay_scan(plain(size))
                self.allot_large(plain(size))
            return given
        self._scanned(None, given, named)
        return [self._of_bytes(None, given[:1], {})[0], *given[1:]] if given else given

    def _hashed(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        for each in (*given, *named.values()):
            base = base_of(each)
            if base in TEXTS or base is memoryview:
                self.pay(length(each, base) - SHORT, self.prices.characters_hashed)
        return given

    def _digested(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        for each in (*given, *named.values()):
            if issubclass(type(each), int):
                self.pay(plain(each) - SHORT, self.prices.characters_hashed)
                self.allot_large(plain(each))
        return self._hashed(None, given, named)

    def _substituted(self, receiver: Any, given: Arguments, named: Named) -> Arguments:
        template = receiver.template
        if base_of(template) is str:
            self.pay(str.count(template, receiver.delimiter) * _SUBSTITUTE, self.prices.item)
            self.pay_format(template, (*given, *named.values()))
        return given

    def _stretched(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        self._hashed(None, given, named)
        for each in (*given, *named.values()):
            if issubclass(type(each), int):
                self.pay(plain(each) * _HASH_BASE, self.prices.characters_hashed)
        return given

    def _matched(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        sizes = [length(each, base_of(each)) for each in (*given, *named.values()) if base_of(each) in TEXTS]
        for size in sizes:
            self.pay_scan(size)
        if len(sizes) > 1:
            self.pay_copy((max(sizes) + 1) * min(sizes))
        return given

    def _compiled(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        for each in given[:1]:
            if base_of(each) in TEXTS:
                self.pay((length(each, base_of(each)) - self.free) * self.prices.pattern_character)
        return given

    def _patterned(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        self._compiled(None, given, named)
        return [*given[:1], *self._matched(None, given[1:], named)]

    def _packed(self, receiver: Any, given: Arguments, _named: Named) -> Arguments:
        size = receiver.size if type(receiver) is struct.Struct else 0
        self.pay_items(len(given))
        self.pay_copy(size)
        self.pay_scan(size + self._lengths(given))
        return given

    def _packed_by(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        self._compiled(None, given, named)
        for each in given[:1]:
            if base_of(each) in (str, bytes):
                size = struct.calcsize(each)
                self.pay_copy(size)
                self.pay_scan(size)
        return [*given[:1], *self._packed(None, given[1:], named)]

    def _decimal_done(self, receiver: Any, given: Arguments, named: Named) -> Arguments:
        contexts = [each for each in (receiver, *given, *named.values()) if type(each) is decimal.Context]
        if contexts or base_of(receiver) is decimal.Decimal:
            self.pay_decimal(contexts[-1].prec if contexts else None)
            self._of_decimal(None, given, named)
        return given

    def _chained(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        return [self._sieved(each) for each in given]

    def _constructed(self, _receiver: Any, given: Arguments, named: Named, found: Any) -> Arguments:
        kind = getattr(found, "__objclass__", None) or found.__self__
        price = self._types.get(kind)
        if price is None:
            return given
        if found.__name__ == "__new__":
            return [*given[:1], *price(None, given[1:], named)]
        return list(price(None, given, named))

    def _shown(self, receiver: Any, given: Arguments, _named: Named) -> Arguments:
        self._texts(None, [receiver], {})
        return given

    def _operated(self, receiver: Any, given: Arguments, named: Named, found: Any) -> Arguments:
        name = found.__name__.strip("_")
        pay = {
            "add": self.pay_sum, "mul": self.pay_product, "pow": self.pay_power, "lshift": self.pay_shift,
        }.get(_SIGNS.get(name, name))  # fmt: skip
        if name == "round":
            self._rounded(None, [receiver, *given], named)
        elif name in ("int", "trunc", "floor", "ceil"):
            self._of_number(None, [receiver], {})
        elif pay is not None and given:
            pay(receiver, *given)
            return [self.counted(each, 1) for each in given] if name == "iadd" else given
        elif name in ("rpow", "rlshift") and given:
            (self.pay_power if name == "rpow" else self.pay_shift)(given[0], receiver)
        elif given:
            self.pay_quotient(receiver, given[0])
            self.pay_quotient(given[0], receiver)
        else:
            self.operand(receiver)
        return given

    def _compared(self, receiver: Any, given: Arguments, _named: Named, found: Any) -> Arguments:
        for each in given[:1]:
            if found.__name__ == "__contains__":
                self.contains(each, receiver)
            else:
                self.pay_comparison(receiver, each)
        return given

    def _accessed(self, receiver: Any, given: Arguments, _named: Named, **_found: Any) -> Arguments:
        for each in given[:1]:
            if type(each) is slice:
                self.pay_slice(receiver, each)
                self.pay_items(length(receiver, base_of(receiver)) if base_of(receiver) in NESTED else 0)
            else:
                self.pay_key(each)
        return [*given[:1], *(self.counted(each) if type(given[0]) is slice else each for each in given[1:])]
