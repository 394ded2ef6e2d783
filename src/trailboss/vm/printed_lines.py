"""What a program prints: its text, built without running any of its code, and the lines of it that are kept.

Printing must neither cost nor change anything, so no ``__str__`` of a guest runs: its objects are shown by class and
attributes. Decision: D-89.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from decimal import Decimal
from enum import Enum
from itertools import islice
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MethodType, ModuleType
from typing import Any, Final, cast

from msgspec import Struct, field

from trailboss.metering.gauge import identity
from trailboss.model.events import CHARACTERS_MAX, PrintedLine

LINES_MAX: Final = 100  # printed lines of one execution that are kept
DEPTH_MAX: Final = 8  # nested containers that are shown
ITEMS_MAX: Final = 1_000  # items of one container that are shown
_MORE: Final = "…"
_AS_THEY_ARE: Final = frozenset(
    map(identity, (bool, float, range, Decimal, type(None), type(...), type(NotImplemented)))
)
_BITS_MAX: Final = 4_096
_CONTROLS: Final = (*range(9), *range(10, 32), *range(127, 160), *range(0xD800, 0xE000))
_ESCAPES: Final = {code: chr(code).encode("unicode_escape").decode() for code in _CONTROLS if chr(code) != "\n"}
_type_name: Final = vars(type)["__name__"].__get__
_type_mro: Final = vars(type)["__mro__"].__get__


def printed_text(values: Iterable[object], sep: object, end: object) -> str:
    """Return the text of a ``print``; control characters and lone surrogates are escaped, line ends are not.

    If ``sep`` or ``end`` is not text, it is one space or a line end.
    """
    between, after = (given if type(given) is str else usual for given, usual in ((sep, " "), (end, "\n")))
    pieces: list[str] = []
    room = CHARACTERS_MAX
    for value in values:
        pieces.append(_shown(value, room))
        room -= len(pieces[-1]) + len(between)
        if room <= 0:
            break
    return (between.join(pieces) + after).translate(_ESCAPES)


def _shown(value: object, room: int) -> str:
    """Return a value as ``str`` shows it, cut not far beyond the room."""
    kind = type(value)
    if issubclass(kind, str):
        return str(_beginning(str, value, room))
    if issubclass(kind, BaseException):
        arguments = vars(BaseException)["args"].__get__(value)
        if len(arguments) == 1 and not issubclass(kind, KeyError):
            return _shown(arguments[0], room)
        return _joined("(", arguments, ")", room, 0) if len(arguments) > 1 else "".join(_each(arguments, room))
    return str(value) if kind is Decimal else _represented(value, room, 0)


def _beginning(plain: Any, value: object, room: int) -> Any:
    """Return the beginning of text or bytes that fits the room, of the plain type and by its own method."""
    return plain(plain.__getitem__(value, slice(room + 1)))


def _each(values: Iterable[object], room: int) -> Iterator[str]:
    return (_represented(value, room, 1) for value in values)


def _represented(value: object, room: int, depth: int) -> str:
    """Return a value as ``repr`` shows it, cut not far beyond the room."""
    kind: Any = type(value)
    if identity(kind) in _AS_THEY_ARE:
        return repr(value)
    if issubclass(kind, Enum):
        return f"{_type_name(kind)}.{_shown(_attributes(value).get('_name_'), room)}"
    for plain in (str, bytes, bytearray):
        if issubclass(kind, plain):
            return repr(_beginning(plain, value, room))
    if issubclass(kind, int):
        number = int.__index__(cast(int, value))
        bits = number.bit_length()
        return repr(number) if bits <= _BITS_MAX else f"<an integer of {bits} bits>"
    if depth >= DEPTH_MAX or room <= 0:
        return _MORE
    return _structured(value, kind, room, depth)


def _structured(value: Any, kind: Any, room: int, depth: int) -> str:
    name = _type_name(kind)
    if issubclass(kind, dict):
        shown = ", ".join(_pairs(dict.items(value), ": ", room, depth))
        return f"{{{shown}}}" if kind is dict else f"{name}({{{shown}}})"
    for plain, start, end in ((list, "[", "]"), (tuple, "(", ")"), (deque, "[", "]")):
        if issubclass(kind, plain):
            shown = _joined(start, plain.__iter__(value), end, room, depth, is_tuple=plain is tuple)
            return shown if kind in (list, tuple) else f"{name}({shown})"
    if issubclass(kind, type | FunctionType | BuiltinFunctionType):
        words = "class" if issubclass(kind, type) else "function"
        return f"<{words} {_type_name(value) if words == 'class' else value.__name__}>"
    if kind is MethodType:
        return f"<method {value.__func__.__name__}>" if type(value.__func__) is FunctionType else "<method>"
    if kind is ModuleType:
        return f"<module {value.__name__}>"
    if issubclass(kind, BaseException):
        return _joined(f"{name}(", vars(BaseException)["args"].__get__(value), ")", room, depth)
    found = _attributes(value)
    return f"{name}({', '.join(_pairs(found.items(), '=', room, depth, named=True))})" if found else f"<{name}>"


def _joined(start: str, values: Iterable[object], end: str, room: int, depth: int, *, is_tuple: bool = False) -> str:
    pieces: list[str] = []
    for value in islice(values, ITEMS_MAX + 1):
        if room <= 0 or len(pieces) == ITEMS_MAX:
            pieces.append(_MORE)
            break
        pieces.append(_represented(value, room, depth + 1))
        room -= len(pieces[-1]) + 2
    comma = "," if is_tuple and len(pieces) == 1 else ""
    return f"{start}{', '.join(pieces)}{comma}{end}"


def _pairs(
    items: Iterable[tuple[object, object]], between: str, room: int, depth: int, *, named: bool = False
) -> Iterator[str]:
    for count, (key, value) in enumerate(items):
        if room <= 0 or count == ITEMS_MAX:
            yield _MORE
            return
        shown = str(key) if named else _represented(key, room, depth + 1)
        piece = f"{shown}{between}{_represented(value, room - len(shown), depth + 1)}"
        room -= len(piece) + 2
        yield piece


def _attributes(value: object) -> dict[str, object]:
    """Return an object's own attributes, by Python's own descriptor: a guest's class can have one of that name."""
    for base in _type_mro(type(value)):
        found = vars(base).get("__dict__")
        if type(found) is GetSetDescriptorType:
            attributes: dict[str, object] = found.__get__(value)
            return attributes
    return {}


class Printing(Struct, eq=False):
    """The printed lines of one execution, in order; kept beside receipts for people. Decision: D-89."""

    written: list[PrintedLine] = field(default_factory=list)  # without the one that says what is missing
    _is_open: bool = False
    _room: int = CHARACTERS_MAX
    _is_cut: bool = False

    def write(self, actor: bytes, handler: str, text: str) -> None:
        """Add printed text; a line continues until it ends, or another handler prints."""
        kept = text[: self._room]
        self._room -= len(kept)
        self._is_cut = self._is_cut or len(kept) < len(text)
        *ended, rest = kept.split("\n")
        for piece in ended:
            self._add(actor, handler, piece)
            self._is_open = False
        if rest:
            self._add(actor, handler, rest)
            self._is_open = True

    def warn(self, actor: bytes, handler: str, text: str) -> None:
        """Add a warning, unless it is there already."""
        line = PrintedLine(actor, handler, text, is_warning=True)
        if line not in self.written:
            self.written.append(line)
            self._is_open = False

    def lines(self) -> tuple[PrintedLine, ...]:
        """Return the kept lines; the last one says if some are missing."""
        if not self._is_cut:
            return tuple(self.written)
        last = self.written[-1]
        words = f"(more is printed and not kept: {LINES_MAX} lines and {CHARACTERS_MAX:,} characters are the most)"
        return (*self.written, PrintedLine(last.actor, last.handler, words))

    def _add(self, actor: bytes, handler: str, piece: str) -> None:
        last = self.written[-1] if self._is_open else None
        if last is not None and (last.actor, last.handler) == (actor, handler):
            self.written[-1] = PrintedLine(actor, handler, last.text + piece)
        elif len(self.written) < LINES_MAX:
            self.written.append(PrintedLine(actor, handler, piece))
        else:
            self._is_cut = True
