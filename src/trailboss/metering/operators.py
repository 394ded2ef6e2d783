"""The operators of instrumented code, which pay for the sizes of their operands. Decision: D-101."""

import operator
import re
from collections import UserList, UserString, deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from trailboss.metering import texts
from trailboss.metering.gauge import ordered
from trailboss.metering.names import SET_MAKERS, UNCHECKED
from trailboss.metering.sizes import (
    ATOMS,
    BASE,
    BY_HASH,
    DIGIT_BITS,
    ENDLESS,
    LEAST,
    NESTED,
    SEQUENCES,
    SHORT,
    SMALL,
    TEXTS,
    VIEWS,
    Sizes,
    base_of,
    digits,
    length,
    plain,
    power_digits,
)

_DIGIT: Final = re.compile(r"\d")  # what `str.isdecimal` takes for one
_STEP_BASE: Final = 8  # digits that a step of a power with a modulus costs beside the modulus's own
_BLOCK_ITEMS: Final = 10  # times more items that an index into a deque passes for a cycle than a list moves


class Operators(Sizes):
    """The operators of instrumented code."""

    def instruments(self) -> dict[str, Callable[..., Any]]:
        """Return what instrumented code calls, by name."""
        prices: dict[str, tuple[Callable[[Any, Any], Any], int]] = {  # the price, and the free size on the right
            "floordiv": (self.pay_quotient, SMALL), "truediv": (self.pay_difference, SMALL),
            "pow": (self.pay_power, 0), "lshift": (self.pay_shift, SHORT), "rshift": (self.pay_difference, SMALL),
            "sub": (self.pay_difference, SMALL), "mul": (self.pay_product, SMALL),
            "and": (self.pay_difference, SMALL), "or": (self.pay_difference, SMALL),
            "xor": (self.pay_difference, SMALL),
        }  # fmt: skip
        made: dict[str, Callable[..., Any]] = {}
        for name, (price, right_max) in prices.items():
            for form in (name, f"i{name}"):
                function = getattr(operator, f"{form}_" if form in ("and", "or") else form)
                if name in SET_MAKERS:
                    made[form + UNCHECKED] = _priced(function, price, right_max)
                    function = _in_order(function)
                made[form] = _priced(function, price, right_max)
        made["mod"] = _priced(texts.remainder, self.pay_quotient, SMALL)
        made["imod"] = _priced(texts.remainder_in_place, self.pay_quotient, SMALL)
        made |= {
            "add": self.plus,
            "sub": self.minus,
            "mul": self.times,
            "iadd": self.grow,
            "ior": self.merge,
            "ior_any": self.merge_any,
            "slice": slice,
        }
        made |= {name: self._comparing(getattr(operator, name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
        given = "contains lacks item part moved key hashed copied_items each_copied entries operand counted field"
        return made | {name: getattr(self, name) for name in given.split()}

    def plus(self, left: Any, right: Any) -> Any:
        """Return ``left + right``."""
        kind = type(left)
        if kind is str or kind is bytes:
            if kind is type(right) and len(left) + len(right) > self._copied_per_cycle:
                self.pay_copy(len(left) + len(right))
        elif not (kind is int and type(right) is int and LEAST < left < SMALL and LEAST < right < SMALL):
            self.pay_sum(left, right)
        return left + right

    def minus(self, left: Any, right: Any) -> Any:
        """Return ``left - right``."""
        if not (type(left) is int and type(right) is int and LEAST < left < SMALL and LEAST < right < SMALL):
            self.pay_difference(left, right)
            return ordered(left - right)
        return left - right

    def times(self, left: Any, right: Any) -> Any:
        """Return ``left * right``."""
        if not (type(left) is int and type(right) is int and LEAST < left < SMALL and LEAST < right < SMALL):
            self.pay_product(left, right)
        return left * right

    def grow(self, left: Any, right: Any) -> Any:
        """Return the result of ``left += right``; a list takes any iterable."""
        kind = type(left)
        if kind is str or kind is bytes:
            if kind is type(right) and len(left) + len(right) > self._copied_per_cycle:
                self.pay_copy(len(left) + len(right))
        elif base_of(left) is list or base_of(left) is deque:
            right = self.counted(right, 1, kept=True)
        elif not (kind is int and type(right) is int and LEAST < left < SMALL and LEAST < right < SMALL):
            self.pay_sum(left, right)
        left += right
        return left

    def merge(self, left: Any, right: Any) -> Any:
        """Return the result of ``left |= right``, which must be no set; a dict takes any iterable of pairs."""
        return ordered(self.merge_any(left, right))

    def merge_any(self, left: Any, right: Any) -> Any:
        """Return the result of ``left |= right``."""
        if base_of(left) is dict and not hasattr(type(right), "keys"):
            right = self.counted(right, 2 * self.prices.item, kept=True)
        elif type(left) is not int or not LEAST < left < SMALL:
            self.pay_difference(left, right)
        left |= right
        return left

    def pay_sum(self, left: Any, right: Any) -> None:
        """Pay for an addition: of integers, texts, sequences or counters."""
        base, other = base_of(left), base_of(right)
        if base is int or other is int:
            self.pay_digits(digits(left) + digits(right))
        elif base in TEXTS or base is UserString:
            if other in TEXTS or other is UserString:
                self.pay_copy(length(left, base) + length(right, other))
        elif base in SEQUENCES or base is UserList:
            self.pay_items(length(left, base) + (length(right, other) if other in SEQUENCES else 0))
        else:
            self.pay_difference(left, right)

    def pay_difference(self, left: Any, right: Any) -> None:
        """Pay for an operator whose work grows with both operands alike."""
        base, other = base_of(left), base_of(right)
        if base is int or other is int:
            self.pay_digits(digits(left) + digits(right))
        elif base is dict and other is dict:
            self.counted(left, 2 * self.prices.item)
            self.counted(right, 2 * self.prices.item)
        elif Decimal in (base, other):
            self.pay_decimal()
        elif base in VIEWS or other in VIEWS:
            for each in (left, right):
                if base_of(each) in (*VIEWS, *NESTED, *TEXTS):
                    self.counted(each, 2 * self.prices.item)
                elif hasattr(type(each), "__iter__") and not hasattr(type(each), "__len__"):
                    # An iterator may be endless, and only what uses it up can count it.
                    error = TypeError(
                        f"a dict view and an iterator of type {type(each).__name__}: make it a list first"
                    )
                    raise error

    def pay_product(self, left: Any, right: Any) -> None:
        """Pay for a multiplication of integers, or for a repetition."""
        base, other = base_of(left), base_of(right)
        if base in (int, bool) and other not in (int, bool):
            left, right, base, other = right, left, other, base
        if base is int or base is bool:
            mine, others = digits(left), digits(right)
            self.pay_products(mine * others, mine + others)
        elif base is Decimal:
            self.pay_decimal()
        elif other in (int, bool):
            times = max(plain(right), 0)
            if base in TEXTS or base is UserString:
                self.pay_copy(length(left, base) * times)
            elif base in SEQUENCES or base is UserList:
                self.pay_items(length(left, base) * times)

    def pay_quotient(self, left: Any, right: Any) -> None:
        """Pay for ``//``, ``%`` or ``divmod``; text on the left of ``%`` is formatted."""
        base = base_of(left)
        if base in TEXTS:
            self.pay_format(left, right)
        elif base is Decimal or base_of(right) is Decimal:
            self.pay_decimal()
        else:
            mine, others = digits(left), digits(right)
            steps = 2 * (mine - others + 1) * others if mine >= others else mine
            self.pay_products(steps, mine)

    def pay_power(self, left: Any, right: Any, modulus: Any = None) -> None:
        """Pay for a power of integers."""
        if Decimal in (base_of(left), base_of(right)):
            self.pay_decimal()
        elif issubclass(type(left), int) and issubclass(type(right), int):
            if modulus is None:
                made = power_digits(plain(left), plain(right))
                self.pay_products(made * made, made)
            elif issubclass(type(modulus), int):
                size = digits(modulus)
                step = (2 * size + _STEP_BASE) ** 2 if size > 2 or int.bit_length(right) > DIGIT_BITS else 0
                self.pay_quotient(left, modulus)
                self.pay_products(int.bit_length(right) * step, size)

    def pay_shift(self, left: Any, right: Any) -> None:
        """Pay for ``<<``."""
        if issubclass(type(right), int) and digits(left):
            self.pay_digits(digits(left) + max(plain(right), 0) // DIGIT_BITS)

    def pay_format(self, template: Any, values: Any) -> None:
        """Pay for the text that a template makes of values; every number in the template may be a width."""
        base = base_of(template)
        size = length(template, base)
        self.pay_scan(size)
        self.pay_text(values)
        given = values if type(values) is tuple else (values,)
        raw = template if base is str else bytes(template).decode("latin-1")
        if "*" in raw or "{" in raw:
            nested = "*" in raw or raw.count("{") > 1
            widths = (each for each in given if type(each) is int and nested)
            self.pay_width(sum(map(abs, widths)) if nested and ("*" in raw or ":{" in raw or ".{" in raw) else 0)
        self.pay_width(written_widths(raw))
        largest = max((length(each, base_of(each)) for each in given if base_of(each) in TEXTS), default=0)
        self.pay_width(largest * (raw.count("{") + raw.count("%")))

    def _comparing(self, operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        pay = self.pay_comparison

        def compare(left: Any, right: Any) -> Any:
            kind = type(left)
            if kind is int:
                if not LEAST < left < SMALL:
                    pay(left, right)
            elif kind is str or kind is bytes:
                if len(left) > SHORT:
                    pay(left, right)
            elif type(kind) is not type or kind not in ATOMS:
                pay(left, right)
            return operate(left, right)

        return compare

    def contains(self, item: Any, container: Any) -> bool:
        """Return ``item in container``."""
        kind = type(container)
        if type(kind) is type and kind in BY_HASH:
            if type(item) is not str:
                self.pay_key(item)
        elif kind is str or kind is bytes:
            if len(container) > self.prices.characters_free:
                self.pay_scan(len(container))
        else:
            container = self._looked_through(item, container)
        return item in container

    def lacks(self, item: Any, container: Any) -> bool:
        """Return ``item not in container``."""
        return not self.contains(item, container)

    def _looked_through(self, item: Any, container: Any) -> Any:
        base = base_of(container)
        if base is dict or base is VIEWS[0]:
            self.pay_key(item)
        elif base in SEQUENCES or base in VIEWS[1:]:
            self.pay_search(item, container)
        elif base is range:
            if type(item) is not int and type(item) is not bool:
                self.pay_search(item, container)
        elif base in TEXTS:
            self.pay_scan(length(container, base))
        elif not hasattr(type(container), "__contains__"):
            return self.counted(container)
        return container

    def pay_search(self, item: Any, sequence: Any) -> None:
        """Pay for a search for an item of a sequence."""
        items = length(sequence, base_of(sequence))
        if items > self.free or base_of(item) in NESTED or not _is_small(item):
            each = self.visit(item, self.prices.visit, self._compared_per_cycle)
            self.pay(max(items - self.free, 0) * self.prices.visit + each * items)

    def item(self, container: Any, key: Any) -> Any:
        """Return ``container[key]``."""
        kind = type(key)
        if kind is int:
            if not LEAST < key < SMALL:
                self.pay_key(key)
            elif type(container) is deque:
                self.pay(len(container), _BLOCK_ITEMS * self.prices.items_moved)
        elif kind is slice:
            self.pay_slice(container, key)
        elif kind is not str and kind is not bytes:
            self.pay_key(key)
        return container[key]

    def pay_slice(self, container: Any, part: slice) -> None:
        """Pay for the copy of a part of a sequence."""
        base = base_of(container)
        if base not in TEXTS and base not in SEQUENCES and base is not UserList and base is not UserString:
            return
        size = length(container, base)
        bounds = part.start, part.stop, part.step
        if size > self.free and all(each is None or type(each) is int for each in bounds):
            size = len(range(*part.indices(size)))
        if base in TEXTS or base is UserString:
            self.pay_copy(size)
        else:
            self.pay_items(size)

    def part(self, container: Any, start: Any, stop: Any, step: Any) -> Any:
        """Return ``container[start:stop:step]``."""
        kind = type(container)
        if (kind is not bytes and kind is not str) or len(container) > self._copied_per_cycle:
            self.pay_slice(container, slice(start, stop, step))
        return container[start:stop:step]

    def moved(self, container: Any) -> Any:
        """Return a container of which a part is about to be deleted or replaced, so that the rest moves."""
        base = base_of(container)
        if base in SEQUENCES or base is bytearray:
            self.pay(length(container, base), self.prices.items_moved)
        return container

    def hashed(self, key: Any) -> Any:
        """Return a key that is about to be looked up, or stored."""
        kind = type(key)
        if kind is not str and kind is not bytes and (kind is not int or not LEAST < key < SMALL):
            self.pay_key(key)
        return key

    def each_copied(self, source: Any) -> Any:
        """Return an iterable whose items are about to be unpacked."""
        return map(self.copied_items, source)

    def key(self, key: Any) -> Any:
        """Return a key under which a container is about to store or delete something."""
        kind = type(key)
        if kind is slice:
            raise TypeError("a slice in a variable cannot be assigned to or deleted; write container[start:stop]")
        if kind is not str and kind is not bytes and (kind is not int or not LEAST < key < SMALL):
            self.pay_key(key)
        return key

    def operand(self, value: Any, times: int = 1) -> Any:
        """Return a value that an operator is about to look at as a whole, so many times."""
        if type(value) is not int or not LEAST < value < SMALL:
            cycles = self.visit(value, self.prices.visit, self._compared_per_cycle) - self.free * self.prices.visit
            self.pay(max(cycles, 0) * (times - 1))
        return value

    def field(self, value: Any, conversion: int, spec: str) -> str:
        """Return a value's text in a formatted string; see `texts.field_text`."""
        kind = type(value)
        is_free = LEAST < value < SMALL if kind is int else kind is str and len(value) <= SHORT
        if not is_free:
            self.pay_text(value)
        if len(spec) > 2:  # a width of two digits is free
            self.pay_scan(len(spec))
            self.pay_width(written_widths(spec))
        return texts.field_text(value, conversion, spec)


def _is_small(value: Any) -> bool:
    kind = type(value)
    if type(kind) is not type:
        return False
    return kind in ATOMS or (kind is int and LEAST < value < SMALL) or (kind in TEXTS and len(value) <= SHORT)


def _priced(
    operate: Callable[[Any, Any], Any], price: Callable[[Any, Any], Any], right_max: int
) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        if not (type(left) is int and type(right) is int and LEAST < left < SMALL and LEAST < right < right_max):
            price(left, right)
        return operate(left, right)

    return apply


def _in_order(operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: ordered(operate(left, right))


def written_widths(template: str) -> int:
    """Return the sum of all numbers in a template of a format: what widths and precisions can add to the text."""
    total = number = 0
    if _DIGIT.search(template) is None:
        return total
    for each in template:
        if each.isdecimal():
            number = min(number * BASE + int(each), ENDLESS)
        else:
            total, number = total + number, 0
    return total + number
