"""The text that Python makes of objects, without memory addresses.

Python shows many objects by their address: ``<function go at 0x7f3a5c1d2e80>``. A program that sees such a text does
not run the same way twice, so the address is removed wherever a value becomes text: ``<function go>``. Text of plain
values is never changed. Decision: D-90.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from types import (
    BuiltinMethodType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any, Final

from trailboss.metering.instrument import HERE

_ADDRESS: Final = re.compile(r"(?: at| @) 0x[0-9A-Fa-f]{1,16}(?=[>,:;])")
_ADDRESS_OCTETS: Final = re.compile(rb"(?: at| @) 0x[0-9A-Fa-f]{1,16}(?=[>,:;])")
_SCALARS: Final = (str, int, bytes, bool, type(None), float, bytearray, range)
_MADE_IN_C: Final = (BuiltinMethodType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType)
_CONVERSIONS: Final[Mapping[int, Callable[[object], str]]] = {ord("r"): repr, ord("s"): str, ord("a"): ascii}
_FORMATTERS: Final = ("format", "format_map", "__mod__")
_CONTAINERS_MAX: Final = 10_000
_SHOWN_CHARACTERS: Final = 40
_CAUSES_MAX: Final = 16
_imod: Final[Callable[[Any, Any], Any]] = operator.imod
_arguments: Final = vars(BaseException)["args"]
_context: Final = vars(BaseException)["__context__"].__get__
_NAMES: Final = """utf8 utf_8 u8 utf utf_8_sig utf8_sig utf7 utf_7 utf16 utf_16 utf_16le utf_16_le utf_16be utf_16_be
    utf32 utf_32 utf_32le utf_32_le utf_32be utf_32_be ascii us_ascii 646 latin_1 latin1 latin l1 iso_8859_1 iso8859_1
    8859 cp819 unicode_escape raw_unicode_escape"""
ENCODINGS: Final = frozenset(_NAMES.split())
"""The encodings that every build of Python has, with the same results. Decision: D-90."""
ERROR_HANDLERS: Final = ("strict", "ignore", "replace", "backslashreplace", "surrogateescape", "surrogatepass",
                         "xmlcharrefreplace")  # fmt: skip
"""Error handlers of encoding and decoding; others depend on the version of the character tables."""


def text(*arguments: Any, **named: Any) -> str:
    """Stand for ``str`` where a program calls it."""
    if len(arguments) == 1 and not named:
        made = str(arguments[0])
        return without_addresses(made, arguments) if str.__contains__(made, " 0x") else made
    if len(arguments) + len(named) != 1:
        _check_codec(*arguments[1:], **named)
        return str(*arguments, **named)
    return without_addresses(str(*arguments, **named), named.values())


def representation(value: object, /) -> str:
    """Stand for ``repr``."""
    return without_addresses(repr(value), (value,))


def ascii_representation(value: object, /) -> str:
    """Stand for ``ascii``."""
    return without_addresses(ascii(value), (value,))


def formatted(value: object, spec: str = "", /) -> str:
    """Stand for ``format``."""
    return without_addresses(format(value, spec), (value,))


def field_text(value: object, conversion: int, spec: str) -> str:
    """Return a value's text in a formatted string; the conversion is the code of ``r``, ``s`` or ``a``, or -1."""
    if conversion < 0:
        return formatted(value, spec)
    # Before it is formatted, for what an address takes of a width is not the same everywhere.
    return format(without_addresses(_CONVERSIONS[conversion](value), (value,)), spec)


def remainder(left: Any, right: Any) -> Any:
    """Return ``left % right``, which formats if the left one is text or bytes."""
    made = left % right
    return left % _all_shown(right) if _shows_address(made, left, (right,)) else made


def remainder_in_place(left: Any, right: Any) -> Any:
    """Return the result of ``left %= right``."""
    made = _imod(left, right)
    return left % _all_shown(right) if _shows_address(made, left, (right,)) else made


def callee(function: Any) -> Any:
    """Return a function to be called, or its replacement for ``str`` and its like."""
    if function is str:
        return text
    if function is bytes or function is bytearray:
        return _codec_user(function, 1)
    return function


def method(found: Any) -> Any:
    """Return a program's form of a method that makes text, or bytes of text; see `instrument.TEXT_METHODS`."""
    kind = type(found)
    if kind in (FunctionType, MethodType):
        code = getattr(found.__func__ if kind is MethodType else found, "__code__", None)
        is_own = code is None or HERE in code.co_varnames + code.co_cellvars
        return found if is_own or found.__name__ in ("encode", "decode") else _clean_maker(found)
    if kind not in _MADE_IN_C:
        return found
    if found.__name__ in ("encode", "decode"):
        return _codec_user(found, 0 if kind is BuiltinMethodType else 1)
    if found.__name__ == "__new__":
        return new_text if found is str.__new__ else found
    if found.__name__ == "__call__":
        return callee(found.__self__) if kind is MethodWrapperType and isinstance(found.__self__, type) else found
    return _clean_maker(found)


def new_text(kind: type[str], /, *arguments: Any, **named: Any) -> str:
    """Stand for ``str.__new__``."""
    return str.__new__(kind, text(*arguments, **named)) if arguments or named else str.__new__(kind)


def clean_error(error: BaseException | None) -> None:
    """Remove addresses from the messages of a handled exception and of its causes."""
    for _ in range(_CAUSES_MAX):
        if error is None:
            return
        given = _arguments.__get__(error)
        if any(type(each) is str and _ADDRESS.search(each) for each in given):
            cleaned = (_ADDRESS.sub("", each) if type(each) is str else each for each in given)
            _arguments.__set__(error, tuple(cleaned))
        error = _context(error)


def without_addresses(made: str, values: Iterable[object]) -> str:
    """Return a text made of values without addresses, unless the values are plain."""
    if not str.__contains__(made, " 0x") or _ADDRESS.search(made) is None or _are_plain(values):
        return made
    return _ADDRESS.sub("", made)


class _Shown:
    """Replaces a value that showed an address when the text is formatted again."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __str__(self) -> str:
        return text(self._value)

    def __repr__(self) -> str:
        return representation(self._value)

    def __format__(self, spec: str) -> str:
        return formatted(self._value, spec)

    def __getattr__(self, name: str) -> Any:
        return _shown(getattr(self._value, name))

    def __getitem__(self, key: Any) -> Any:
        return _shown(self._value[key])  # type: ignore[index]  # any value of the program


def _all_shown(values: Any) -> Any:
    """Return values for formatting, those of a tuple or a dict each as `_shown` gives it."""
    if type(values) is tuple:
        return tuple(map(_shown, values))
    if type(values) is dict:
        return {key: _shown(each) for key, each in values.items()}
    return _shown(values)


def _shown(value: Any) -> Any:
    """Return a plain value or a number as it is, and any other in a `_Shown`."""
    is_number = any(hasattr(type(value), name) for name in ("__index__", "__float__"))
    return value if is_number or _are_plain((value,)) else _Shown(value)


def _shows_address(made: Any, left: object, values: Iterable[object]) -> bool:
    """Whether text, or bytes of text, made of values holds an address that none of them contained."""
    if issubclass(type(left), str) and type(made) is str:
        return _ADDRESS.search(made) is not None and not _are_plain(values)
    if issubclass(type(left), bytes | bytearray) and type(made) in (bytes, bytearray):
        return _ADDRESS_OCTETS.search(made) is not None and not _are_plain(values)
    return False


def _are_plain(values: Iterable[object]) -> bool:
    """Whether values are of Python's own plain types, in lists, tuples and dicts of them, as far as the search goes."""
    waiting, looked_into = [*values], 0
    while waiting:
        value: Any = waiting.pop()
        kind = type(value)
        if type(kind) is type and kind in _SCALARS:
            continue
        looked_into += 1
        if looked_into > _CONTAINERS_MAX:
            return False
        if kind is dict:
            waiting += (*value.keys(), *value.values())
        elif kind is list or kind is tuple:
            waiting += value
        else:
            return False
    return True


def _clean_maker(maker: Callable[..., Any]) -> Callable[..., Any]:
    bound, is_template = getattr(maker, "__self__", None), maker.__name__.endswith("substitute")

    def made(*arguments: Any, **named: Any) -> Any:
        answer = maker(*arguments, **named)
        if type(answer) is str and " 0x" not in answer:
            return answer
        values = (*arguments, *named.values()) if is_template else (bound, *arguments, *named.values())
        if not _shows_address(answer, answer, values):
            return answer
        if maker.__name__ in _FORMATTERS:
            answer = maker(*map(_all_shown, arguments), **_all_shown(named))
        return _ADDRESS.sub("", answer) if type(answer) is str else _ADDRESS_OCTETS.sub(b"", answer)

    made.__name__ = made.__qualname__ = maker.__name__
    return made


def _codec_user(found: Callable[..., Any], place: int) -> Callable[..., Any]:
    def use(*arguments: Any, **named: Any) -> Any:
        _check_codec(*arguments[place:], **named)
        return found(*arguments, **named)

    return use


def _check_codec(encoding: object = "utf-8", errors: object = "strict", **_others: object) -> None:
    """Refuse an encoding that not every build has, and error handlers that depend on the character tables."""
    named = encoding if type(encoding) is str else "utf-8"
    if named != "utf-8" and named.lower().replace("-", "_").replace(" ", "_") not in ENCODINGS:
        raise LookupError(f"encoding {named[:_SHOWN_CHARACTERS]!r} is not available to actors")
    if type(errors) is str and errors not in ERROR_HANDLERS:
        raise LookupError(f"error handler {errors[:_SHOWN_CHARACTERS]!r} is not available to actors")
