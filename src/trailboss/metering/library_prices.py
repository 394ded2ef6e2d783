"""The priced names of the standard library. Decision: D-101."""

import base64
import collections
import functools
import itertools
import json
import math
import operator
import re
import string
import struct
from collections.abc import Callable, Iterator
from types import (
    FunctionType,
)
from typing import Any, Final

from trailboss.metering.pricers import MEMBERS_OF_A_CLASS, Arguments, Named, Pricer, Pricers
from trailboss.metering.sizes import (
    DIGIT_BITS,
    ENDLESS,
    SEQUENCES,
    SHORT,
    TEXTS,
    VIEWS,
    base_of,
    digits,
    length,
    plain,
)

_CHOICE_STEPS: Final = 24  # products of digits for a squared digit of a factorial or a binomial coefficient
_SLOW_CODECS: Final = ("a85", "b85", "b32")  # what base64 does in Python, not in C
_INDENT_FREE: Final = 4  # characters for a level of a JSON text
_READ_PER_CYCLE: Final = 2  # characters of a JSON text
_SLOW_CODEC: Final = 18  # times the price of a fast one


class LibraryPricers(Pricers):
    """The priced names of the standard library."""

    def _library_methods(self) -> dict[Any, Pricer]:
        """Return the methods of the standard library that are written in Python."""
        counter, encoder, decoder = collections.Counter, json.JSONEncoder, json.JSONDecoder
        made: dict[Any, Pricer] = {
            counter.update: self._extended, counter.subtract: self._extended, counter.most_common: self._copied,
            counter.copy: self._copied, counter.__init__: self._of_entries, encoder.encode: self._dumped,
            collections.abc.MutableMapping.update: self._of_entries,
            string.Template.substitute: self._substituted, string.Template.safe_substitute: self._substituted,
            encoder.iterencode: self._dumped, decoder.decode: self._loaded, decoder.raw_decode: self._loaded,
        }  # fmt: skip
        for kind in (collections.UserString, collections.UserList):
            for name, method in vars(kind).items():
                if type(method) is FunctionType and name in self._methods and name != "__init__":
                    made[method] = self._of_data(name)
        return made

    def _of_data(self, name: str) -> Pricer:
        def price(receiver: Any, given: Arguments, named: Named) -> Arguments:
            pay = self._methods[name]
            found = getattr(receiver.data, name)
            extra = {"found": found} if pay in (self._operated, self._compared, self._accessed) else {}
            return list(pay(receiver.data, given, named, **extra))

        return price

    # The standard library

    def library(self, module: str) -> dict[str, Any]:
        """Return the priced names of a module of the standard library."""
        match module:
            case "itertools":
                return self._itertools()
            case "operator":
                return self._operator()
            case "math":
                return self._math()
            case "base64":
                return {name: self._called(getattr(base64, name), self._coded(name)) for name in _names(base64)}
            case "functools":
                return {"reduce": self._called(functools.reduce, self._reduced)}
            case "json":
                return {
                    "dumps": self._called(json.dumps, self._dumped),
                    "loads": self._called(json.loads, self._loaded),
                }
            case "re":
                names = ["compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"]
                return {name: self._called(getattr(re, name), self._patterned) for name in names}
            case "struct":
                names = ["calcsize", "iter_unpack", "pack", "pack_into", "unpack", "unpack_from"]
                return {name: self._called(getattr(struct, name), self._packed_by, light=()) for name in names}
        return {}

    def priced_function(self, module: str, name: str, function: Any) -> Any:
        """Return the priced form of a function of hashlib, hmac, collections or dataclasses."""
        if name == "pbkdf2_hmac":
            return self._called(function, self._stretched)
        if module in ("hashlib", "hmac") and not isinstance(function, type):
            return self._called(function, self._digested if module == "hmac" else self._hashed)
        if (module, name) in (("collections", "namedtuple"), ("dataclasses", "make_dataclass")):
            return self._called(function, self._members)
        if (module, name) == ("dataclasses", "dataclass"):
            return self._dataclass(function)
        if module == "dataclasses" and name in ("asdict", "astuple"):
            return self._called(function, self._texts)
        return function

    def _dataclass(self, decorate: Any) -> Any:
        def dataclass(cls: Any = None, /, **options: Any) -> Any:
            if cls is None:
                return lambda decorated: dataclass(decorated, **options)
            self.pay_class(1 + len(getattr(cls, "__annotations__", ())) // MEMBERS_OF_A_CLASS)
            return decorate(cls, **options)

        return named_function(dataclass, "dataclass", "dataclasses")

    def _dumped(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        for each in given[:1]:
            cycles = self.visit(each, self.prices.text_visit, self.prices.characters_scanned)
            self.allot_large(cycles * self.prices.characters_scanned)
            if named:
                self._pay_layout(named, cycles)
        default = named.get("default")
        if default is not None:
            named["default"] = lambda value: self._dumped(None, [default(value)], {})[0]
        return given

    def _pay_layout(self, named: Named, cycles: int) -> None:
        indent: Any = named.get("indent")
        width = indent if type(indent) is int else length(indent, str) if base_of(indent) is str else 0
        self.pay_copy(max(width, 0) * cycles if width > _INDENT_FREE else 0)
        separators: Any = named.get("separators")
        for separator in separators if type(separators) in (list, tuple) else ():
            self.pay_copy(length(separator, str) * cycles if base_of(separator) is str else 0)

    def _loaded(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        for each in given[:1]:
            base = base_of(each)
            if base in TEXTS:
                size = length(each, base)
                self.pay(size - 2 * SHORT, _READ_PER_CYCLE)
                self.allot_large(size * self.prices.text_visit)
        return given

    def _reduced(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        return [*given[:1], *(self.counted(each) for each in given[1:2]), *given[2:]]

    def _coded(self, name: str) -> Pricer:
        factor = _SLOW_CODEC if name.startswith(_SLOW_CODECS) else 1

        def price(_receiver: Any, given: Arguments, _named: Named) -> Arguments:
            self.pay_scan(self._lengths(given[:1]) * factor)
            return given

        return price

    def _itertools(self) -> dict[str, Any]:
        sieved = self._chained
        pools = self._pooled
        made = {name: self._called(getattr(itertools, name), sieved) for name in ("chain", "compress", "pairwise")}
        made |= {name: self._called(getattr(itertools, name), self._filtered)
                 for name in ("filterfalse", "dropwhile", "takewhile", "starmap")}  # fmt: skip
        made |= {name: self._called(getattr(itertools, name), pools)
                 for name in ("product", "combinations", "combinations_with_replacement", "permutations")}  # fmt: skip
        made["chain"].from_iterable = self._called(itertools.chain.from_iterable, self._chained)
        made["zip_longest"] = self._rows(itertools.zip_longest)
        for name in ("islice", "groupby", "cycle", "tee"):
            made[name] = self._called(getattr(itertools, name), self._first_sieved)
        made["accumulate"] = named_function(self.accumulate, "accumulate", "itertools")
        return made

    def accumulate(self, iterable: Any, func: Any = None, *, initial: Any = None) -> Iterator[Any]:
        """Stand for ``itertools.accumulate``."""
        return itertools.accumulate(iterable, self.plus if func is None else func, initial=initial)

    def _first_sieved(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        if "iterable" in named:
            named["iterable"] = self._sieved(named["iterable"])
        for each in (*given[1:], *named.values()):
            if type(each) is int and each > self.free:
                self.allot_large(each)
        return [self._sieved(given[0]), *given[1:]] if given else given

    def _pooled(self, _receiver: Any, given: Arguments, named: Named) -> Arguments:
        wide = max((each for each in (*given, *named.values()) if type(each) is int), default=1)
        self._of_items(None, [], named)
        pools = [self.counted(each, kept=True) for each in given]
        self.pay_items(min(max(wide, 0), ENDLESS) * max(len(given), 1))
        return pools

    def _operator(self) -> dict[str, Any]:
        priced = self.operators
        made: dict[str, Any] = {name: priced[name] for name in priced if hasattr(operator, name) and name != "contains"}
        for name in ("and", "or", "iand", "ior", "sub", "isub", "xor", "ixor"):
            public = f"{name}_" if name in ("and", "or") else name
            made[public] = priced[name]
        made |= {"contains": lambda container, item: self.contains(item, container), "getitem": self.item}
        made |= {"concat": priced["add"], "iconcat": priced["iadd"], "itemgetter": self._itemgetter}
        for name in ("abs", "inv", "invert", "neg", "pos", "index"):
            made[name] = self._called(getattr(operator, name), self._operands)
        for name in ("countOf", "indexOf"):
            made[name] = self._called(getattr(operator, name), self._found_in)
        for name in ("setitem", "delitem"):
            made[name] = self._called(getattr(operator, name), self._stored)
        return {name: named_function(each, name, "operator") for name, each in made.items()}

    def _found_in(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        source, *rest = given
        listed = self.listed(source)
        for each in rest:
            if base_of(listed) in (*SEQUENCES, *VIEWS):
                self.pay_search(each, listed)
        return [listed, *rest]

    def _stored(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        return [*given[:1], *(self.key(each) for each in given[1:2]), *given[2:]]

    def _itemgetter(self, *keys: Any) -> Callable[[Any], Any]:
        if len(keys) == 1:
            return lambda container: self.item(container, keys[0])
        operator.itemgetter(*keys)
        return lambda container: tuple(self.item(container, key) for key in keys)

    def _math(self) -> dict[str, Any]:
        pricers: dict[str, Pricer] = {
            "comb": self._chosen, "perm": self._chosen, "factorial": self._chosen, "gcd": self._divisors,
            "lcm": self._divisors, "isqrt": self._rooted, "fsum": self._of_items, "dist": self._all_items,
            "floor": self._of_number, "ceil": self._of_number, "trunc": self._of_number,
        }  # fmt: skip
        return {name: self._called(getattr(math, name), price) for name, price in pricers.items()} | {
            "prod": named_function(self.prod, "prod", "math")
        }

    def prod(self, iterable: Any, /, *, start: Any = 1) -> Any:
        """Stand for ``math.prod``, multiplying as ``*`` does."""
        for each in self.counted(iterable):
            start = self.times(start, each)
        return start

    def _chosen(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        values = [plain(each) for each in given if issubclass(type(each), int)]
        if not values:
            return given
        count = min(values[-1], max(values[0] - values[-1], 0)) if len(given) > 1 else values[0]
        made = max(count, 0) * max(values[0], 1).bit_length() // DIGIT_BITS
        self.pay_products(_CHOICE_STEPS * made * made, made)
        return given

    def _divisors(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        total = 0
        for each in given:
            total = total + digits(each) if total else digits(each)
            self.pay_products(2 * digits(each) * max(total, 1), total)
        return given

    def _rooted(self, _receiver: Any, given: Arguments, _named: Named) -> Arguments:
        for each in given[:1]:
            self.pay_products(2 * digits(each) ** 2, digits(each))
        return given


def named_function(function: Callable[..., Any], name: str, module: str) -> Callable[..., Any]:
    """Return a function of its own with the name that a program knows."""

    def call(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    return call


def _names(module: Any) -> list[str]:
    return [name for name in module.__all__ if name not in ("encode", "decode", "main")]
