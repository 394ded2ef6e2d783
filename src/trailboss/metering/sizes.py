"""Prices for size: what an operator or a built-in function does in C is charged before it does it.

Lengths, bit lengths and values decide, never identity, hash values, versions or memory addresses, so a charge is the
same on every Python and in every engine. Small operands are free: their construct in the source has paid for them.
A result that would not fit a frame's memory is refused first. Decision: D-101.
"""

from collections import Counter, OrderedDict, UserList, UserString, defaultdict, deque
from collections.abc import Iterable, Iterator, KeysView
from decimal import Decimal, getcontext
from itertools import chain
from types import GeneratorType, MappingProxyType
from typing import Any, Final

from trailboss.metering.gauge import Gauge, identity
from trailboss.params import SourceCostParams

SMALL: Final = 2**128  # integers below this size are free in every operator
LEAST: Final = -SMALL  # a constant, since each negation makes an integer
DIGIT_BITS: Final = 30
BASE: Final = 10
_DECIMALS: Final = 3  # decimal digits of ten bits
ENDLESS: Final = 2**62  # a length that Python cannot express, above any limit of cycles
SHORT: Final = 64  # characters that are free in every comparison
_ITEM_BYTES: Final = 16  # bytes of an item of a list
_DIGIT_BYTES: Final = 4
_DECIMAL_FREE: Final = 64  # digits of a Decimal that are free
VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.items()), type({}.values()))
TEXTS: Final = (str, bytes, bytearray)
SEQUENCES: Final = (list, tuple, deque)
NESTED: Final = (*SEQUENCES, dict)
BASES: Final = (int, *TEXTS, *NESTED, Decimal, UserString, UserList, memoryview)
_BASE_IDENTITIES: Final = frozenset(map(identity, BASES))
MRO: Final = vars(type)["__mro__"].__get__
EXACT: Final = frozenset((*BASES, *VIEWS, float, bool, type(None), range, complex, Counter, type, slice))
ATOMS: Final = frozenset((float, bool, type(None), complex, range, type))
_COLLECTED: Final = frozenset(
    (*TEXTS, *NESTED, *VIEWS, range, Counter, OrderedDict, defaultdict, memoryview, set, frozenset, MappingProxyType)
)
BY_HASH: Final = frozenset((dict, set, frozenset, MappingProxyType, VIEWS[0], Counter))
_ATOMS: Final = frozenset(map(identity, ATOMS))
_INTEGERS: Final = frozenset(map(identity, (int, bool)))
_STRINGS, _OCTETS = frozenset((identity(str),)), frozenset((identity(bytes),))
FIELDS: Final = "__dataclass_fields__"


def base_of(value: object) -> type:
    """Return the built-in type that a value's type is, or extends; another type if there is none."""
    kind = type(value)
    if type(kind) is type and kind in EXACT:
        return dict if kind is Counter else kind
    # A class with a metaclass can say that it equals any type.
    other = kind if type(kind) is type else object
    return next((base for base in MRO(kind) if identity(base) in _BASE_IDENTITIES), other)


def length(value: Any, base: type) -> int:
    """Return how many items or characters a value of a built-in base has, whatever its own ``__len__`` answers."""
    if base is UserString or base is UserList:
        return length(value.data, base_of(value.data))
    if base is memoryview:
        return int(value.nbytes)
    try:
        return int(base.__len__(value))  # type: ignore[attr-defined]  # callers pass bases with a length
    # A range can be longer than Python's sizes.
    except OverflowError:
        return ENDLESS


def digits(value: object) -> int:
    """Return how many digits of 30 bits an integer has; 0 for any other value."""
    if not issubclass(type(value), int):
        return 0
    return (int.bit_length(value) + DIGIT_BITS - 1) // DIGIT_BITS  # type: ignore[arg-type]


def plain(value: Any) -> int:
    """Return the integer that a value of a subclass of int has, whatever its own methods answer."""
    return int.__index__(value)


def power_digits(left: int, right: int) -> int:
    """Return how many digits ``left ** right`` has at most; 0 if the result is a float or at most 1."""
    return 0 if right <= 0 else (abs(left) - 1).bit_length() * right // DIGIT_BITS


class Sizes:
    """The prices of one engine; ``gauge`` is the running frame's."""

    def __init__(self, prices: SourceCostParams, gauge: Gauge) -> None:
        self.gauge = gauge
        self.prices = prices
        self.free = prices.items_free
        self._copied_per_cycle, self._compared_per_cycle = prices.characters_copied, prices.characters_compared
        self.bytes_max = prices.frame_allocation_bytes_max

    # Charges

    def pay(self, units: int, per_cycle: int = 1) -> None:
        """Use a cycle for every ``per_cycle`` units; 0 of them a cycle make them free."""
        cycles = units // per_cycle if per_cycle else 0
        if cycles > 0:
            self.gauge.charge(cycles)

    def allot(self, octets: int) -> None:
        """Count the bytes of a result before it is made. `MemoryError`, which ends the frame, above the limit."""
        gauge = self.gauge
        gauge.allotted += octets
        if gauge.allotted > self.bytes_max > 0:
            error = MemoryError()
            gauge.abort(error)
            raise error

    def pay_copy(self, characters: int) -> None:
        """Pay for text or bytes that are copied or filled."""
        if characters > self._copied_per_cycle:
            self.allot(characters)
            self.pay(characters, self._copied_per_cycle)

    def pay_scan(self, characters: int) -> None:
        """Pay for text or bytes that are searched, changed, decoded or encoded."""
        if characters > self.prices.characters_free:
            self.pay(characters - self.prices.characters_free, self.prices.characters_scanned)

    def pay_width(self, characters: int) -> None:
        """Pay for text that a format fills up, which is then searched for addresses."""
        if characters > self.prices.characters_free:
            self.pay_copy(characters)
            self.pay_scan(characters)

    def pay_items(self, items: int) -> None:
        """Pay for items that are copied from one sequence to another."""
        if items > self.free:
            self.allot_large(items * _ITEM_BYTES)
            self.pay(items - self.free, self.prices.items_copied)

    def pay_digits(self, count: int) -> None:
        """Pay for a result of so many digits, made in as many steps."""
        self.allot_large(count * _DIGIT_BYTES)
        self.pay(count, self.prices.digits)

    def pay_products(self, count: int, made: int) -> None:
        """Pay for so many products of digits, and a result of ``made`` digits."""
        self.allot_large(made * _DIGIT_BYTES)
        self.pay(count, self.prices.digit_products)

    def pay_decimal(self, precision: int | None = None) -> None:
        """Pay for one operation on a Decimal at a precision, the context's by default."""
        given = getcontext().prec if precision is None else precision
        if given > _DECIMAL_FREE:
            self.pay(given * given, self.prices.decimal_squares)

    # Iteration

    def counted(self, source: Any, price: int | None = None, *, kept: bool = False) -> Any:
        """Return an iterable that a built-in function is about to use up; ``kept`` items also need memory.

        It is paid for now if it has a length, and else as it goes.
        """
        cost = self.prices.item if price is None else price
        kind = type(source)
        if type(kind) is type and kind in _COLLECTED:
            items = length(source, kind)
            if items > self.free:
                if kept:
                    self.allot_large(_ITEM_BYTES * items)
                self.pay((items - self.free) * cost)
            return source
        # A generator's own code pays for what it yields.
        is_iterable = kind is not GeneratorType and (hasattr(kind, "__iter__") or hasattr(kind, "__getitem__"))
        return self.counting(source, cost, kept=kept) if is_iterable else source

    def counting(self, source: Iterable[Any], price: int, *, kept: bool = False) -> Iterator[Any]:
        """Yield what an iterable yields, and pay for each item."""
        left = self.free
        for each in source:
            if left:
                left -= 1
            else:
                self.gauge.charge(price)
                if kept:
                    self.allot(_ITEM_BYTES)
            yield each

    def copied_items(self, source: Any) -> Any:
        """Return the source of ``f(*source)``, ``[*source]`` or ``a, *b = source``, paid for."""
        kind = type(source)
        if kind is list or kind is tuple:
            if len(source) > self.free:
                self.pay_items(len(source))
            return source
        return self.counted(source, kept=True)

    def entries(self, source: Any) -> Any:
        """Return the source of ``{**source}`` or ``f(**source)``, paid for."""
        if type(source) is dict and len(source) <= self.free:
            return source
        return self.counted(source) if base_of(source) is dict else source

    def listed(self, source: Any) -> Any:
        """Return an iterable that is looked at and then used: a collection as it is, all else as a list."""
        paid = self.counted(source, kept=True)
        return paid if type(paid) in _COLLECTED or not hasattr(type(paid), "__iter__") else list(paid)

    # Values within containers

    def visit(self, value: Any, price: int, per_cycle: int) -> int:
        """Pay for a walk through a value and all that its containers hold; return its cycles, paid or free.

        ``price`` is that of one visit, ``per_cycle`` how many characters cost a cycle. Containers that hold themselves,
        or others many times, are walked like trees, as Python does; so such a walk ends by exhaustion.

        Raises:
            RecursionError: Which ends the frame, if containers nest deeper than calls may.
        """
        flat = self._flat(value, per_cycle)
        if flat is not None:
            self.pay(flat)
            return flat
        total, free = self._bundle(value, price, per_cycle) or 0, self.free * price
        if total:
            self.pay(total - free)
            return total
        waiting = [_children(value)]
        while waiting:
            for each in waiting[-1]:
                flat = self._flat(each, per_cycle)
                total += price + (flat or 0)
                if total > free:
                    self.gauge.charge(total - free)
                    free = total
                if flat is None:
                    waiting.append(_children(each))
                    self.gauge.check_depth(len(waiting))
                    break
            else:
                waiting.pop()
        return total

    def _bundle(self, value: Any, price: int, per_cycle: int) -> int | None:
        """Return the cycles of a visit to many plain values in one container, or None if others are among them."""
        kind = type(value)
        if (kind is not list and kind is not tuple) or len(value) <= self.free:
            return None
        kinds = _kinds_of(value)
        cycles = len(value) * price // 2
        if kinds <= _ATOMS or (kinds <= _INTEGERS and min(value) > -SMALL and max(value) < SMALL):
            return cycles
        if kinds <= _STRINGS or kinds <= _OCTETS:
            return cycles + max(sum(map(len, value)) - len(value) * SHORT, 0) // (per_cycle or ENDLESS)
        return None

    def _flat(self, value: Any, per_cycle: int) -> int | None:
        """Return the cycles of a visit to a value that holds no others, or None if it does."""
        kind = type(value)
        if type(kind) is type and kind in ATOMS:
            return 0
        base = base_of(value)
        if base is int:
            return digits(value) // (self.prices.digits or ENDLESS)
        if base in TEXTS or base is memoryview:
            return max(length(value, base) - SHORT, 0) // (per_cycle or ENDLESS)
        return None if base in NESTED or base in VIEWS or hasattr(kind, FIELDS) else 0

    def pay_comparison(self, left: Any, right: Any) -> int:
        """Pay for a comparison of two values; return its cycles."""
        base, other = base_of(left), base_of(right)
        if base in TEXTS and other in TEXTS:
            shorter = min(length(left, base), length(right, other))
            self.pay(shorter - SHORT, self._compared_per_cycle)
            return 0
        if base in NESTED and other in NESTED and length(right, other) < length(left, base):
            left = right
        if Decimal in (base, other):
            self.pay_decimal()
        if memoryview in (base, other):
            self.pay_scan(max(length(each, memoryview) for each in (left, right) if type(each) is memoryview))
        return self.visit(left, self.prices.visit, self._compared_per_cycle)

    def pay_key(self, key: Any) -> None:
        """Pay for the hash of a key."""
        kind = type(key)
        if kind is not str and kind is not bytes and (type(kind) is not type or kind not in ATOMS):
            self.visit(key, self.prices.visit, self._compared_per_cycle)

    def pay_text(self, value: Any) -> None:
        """Pay for the text that `repr` or `str` makes of a value, or for the value that comes of text."""
        base = base_of(value)
        if base is int:
            count = int.bit_length(value) * _DECIMALS // BASE
            self.pay(count * count, self.prices.digit_squares)
        elif base in TEXTS:
            self.pay_scan(length(value, base))
            self.allot_large(length(value, base) * 2)
        elif base is Decimal:
            self.pay_plain_decimal(value)
        elif type(value) not in ATOMS:
            cycles = self.visit(value, self.prices.text_visit, self.prices.characters_scanned)
            self.allot_large(cycles * (self.prices.characters_scanned or 1))

    def pay_plain_decimal(self, value: Any) -> None:
        """Pay for the integer, or the digits, that a Decimal stands for."""
        size = abs(Decimal.adjusted(value))
        self.pay(size * size, self.prices.digit_squares)

    def allot_large(self, octets: int) -> None:
        """Count the bytes of a result if it is not small."""
        if octets > self._copied_per_cycle:
            self.allot(octets)

    def pay_order(self, items: Any, *, steps: bool) -> None:
        """Pay for the comparisons that find the largest item, or put all in order."""
        count = len(items)
        factor = count.bit_length() if steps and count > self.free else 1
        if factor > 1:
            self.pay(count * factor, self.prices.sort_steps)
        kinds = _kinds_of(items)
        if kinds <= _ATOMS or (kinds <= _INTEGERS and min(items) > -SMALL and max(items) < SMALL):
            return
        if kinds <= _STRINGS or kinds <= _OCTETS:
            self.pay(max(sum(map(len, items)) - count * SHORT, 0) * factor, self.prices.characters_compared)
            return
        cycles = self.visit(items, self.prices.visit, self.prices.characters_compared)
        self.pay(max(cycles - self.free * self.prices.visit, 0) * (factor - 1))


def _kinds_of(values: Iterable[object]) -> KeysView[int]:
    """Return the identities of the types of values."""
    return dict.fromkeys(map(identity, map(type, values))).keys()


def _children(value: Any) -> Iterator[Any]:
    base = base_of(value)
    if base is dict:
        return chain(dict.keys(value), dict.values(value))
    if base in NESTED or base in VIEWS:
        return iter(base.__iter__(value))  # type: ignore[attr-defined]  # of bases that hold others
    return iter([*vars(value).values()] if hasattr(value, "__dict__") else ())
