"""What a guest sends, read strictly: plain values within bounds, and nothing else.

A guest that has broken every rule of Python can send any bytes. Only the part of marshal's second format that an honest
guest uses is read, by a reader of our own: `marshal.loads` itself trusts its input.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Final

from trailboss.primitives.errors import ErrorObject, Fact, Rejection, RejectionReason
from trailboss.sandbox.guest_layout import REFUSAL_NUMBER

DEPTH_MAX: Final = 6  # containers in containers of an honest request or answer
ITEMS_MAX: Final = 4_096  # items of all containers together; a receipt has far fewer facts, a call far fewer arguments
INTEGER_BITS_MAX: Final = 1 << 20
NAME_CHARACTERS_MAX: Final = 80
TEXT_CHARACTERS_MAX: Final = 65_536  # of each text of an error; a traceback is the longest
_DIGIT_BITS: Final = 15  # of one of marshal's digits, which takes two bytes
_NUMBER_BYTES: Final = 4
_DOUBLE_BYTES: Final = 8
_signed, _unsigned, _double, _call_head = (struct.Struct(form).unpack_from for form in ("<i", "<I", "<d", "<BIBiBI"))
_CALL_KINDS: Final = (0x28, 4, 0x69, 0x28)  # a host call begins with a tuple of four: an integer, a tuple
_CALL_HEAD_BYTES: Final = 11  # before the count of that tuple
_BY_SLUG: Final = {each.slug: each for each in RejectionReason}
_GUEST_REASONS: Final = (
    RejectionReason.PVM_ERROR, RejectionReason.HANDLER_NOT_FOUND, RejectionReason.INVALID_DATA,
    RejectionReason.OVERFLOW, RejectionReason.OUT_OF_MEMORY, RejectionReason.OUT_OF_CYCLES,
    RejectionReason.OUT_OF_CELLS, RejectionReason.NON_DETERMINISTIC_CODE,
)  # fmt: skip
"""The reasons that the engine in the guest itself can give; the chain's refusals are known by their numbers."""


class Forgery(Exception):
    """The guest has sent what an honest guest never sends."""


def read_value(octets: bytes) -> Any:
    """Return the value that the bytes hold. `Forgery` for anything but one plain value within the bounds."""
    try:
        value, end = _Reader(octets).value(0, DEPTH_MAX)
    except (IndexError, struct.error):
        raise Forgery("the bytes end within a value") from None
    if end != len(octets):
        raise Forgery("the bytes do not end with the value")
    return value


def read_call(octets: bytes) -> tuple[int, Sequence[object], dict[str, object], int]:
    """Return a host call: its number, its arguments by place and by name, and the cycles used. `Forgery` as above."""
    try:
        opening, fields, kind, number, inner, _ = _call_head(octets)
        if (opening, fields, kind, inner) != _CALL_KINDS:
            raise Forgery("a host call of another form")
        reader = _Reader(octets)
        named: Any
        positional, at = reader.container(_CALL_HEAD_BYTES, DEPTH_MAX - 1)
        if octets[at : at + 3] == b"{0i":  # no names, and a small number; the reader reads them too
            named, at = {}, at + 2
            used, end = _signed(octets, at + 1)[0], at + 1 + _NUMBER_BYTES
        else:
            named, at = reader.value(at, DEPTH_MAX - 1)
            used, end = reader.value(at, DEPTH_MAX - 1)
    except (IndexError, struct.error):
        raise Forgery("the bytes end within a value") from None
    if end != len(octets) or type(named) is not dict or type(used) is not int:
        raise Forgery("a host call of another form")
    return number, positional, named, used


class _Reader:
    """Reads values; each function takes the place where one begins, and returns it with the place behind it."""

    __slots__ = ("items", "octets")

    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        self.items = 0

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        octets = self.octets
        match octets[at]:
            case 0x73:  # s
                return self.bytes(at + 1)
            case 0x69:  # i
                return _signed(octets, at + 1)[0], at + 1 + _NUMBER_BYTES
            case 0x75:  # u
                text, end = self.bytes(at + 1)
                try:
                    return text.decode("utf-8", "surrogatepass"), end
                except UnicodeDecodeError:
                    raise Forgery("text that is not UTF-8") from None
            case 0x4E:  # N
                return None, at + 1
            case 0x28:  # (
                items, end = self.container(at + 1, depth)
                return tuple(items), end
            case 0x7B:  # {
                return self.members(at + 1, depth)
            case 0x54:  # T
                return True, at + 1
            case 0x46:  # F
                return False, at + 1
            case 0x5B:  # [
                return self.container(at + 1, depth)
            case 0x6C:  # l
                return self.long(at + 1)
            case 0x67:  # g
                return _double(octets, at + 1)[0], at + 1 + _DOUBLE_BYTES
        raise Forgery(f"a value of kind {octets[at]:#x}")

    def bytes(self, at: int) -> tuple[bytes, int]:
        start = at + _NUMBER_BYTES
        end = start + _unsigned(self.octets, at)[0]
        if end > len(self.octets):
            raise Forgery("the bytes end within a value")
        return self.octets[start:end], end

    def container(self, at: int, depth: int) -> tuple[list[Any], int]:
        (count,) = _unsigned(self.octets, at)
        self.count(count, depth)
        at += _NUMBER_BYTES
        octets = self.octets
        items: list[Any] = []
        for _ in range(count):
            kind = octets[at]
            # The two that most items are; `value` reads them too.
            if kind == 0x73:  # s
                start = at + 1 + _NUMBER_BYTES
                at = start + _unsigned(octets, at + 1)[0]
                if at > len(octets):
                    raise Forgery("the bytes end within a value")
                items.append(octets[start:at])
            elif kind == 0x69:  # i
                items.append(_signed(octets, at + 1)[0])
                at += 1 + _NUMBER_BYTES
            else:
                item, at = self.value(at, depth - 1)
                items.append(item)
        return items, at

    def members(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        while self.octets[at] != 0x30:  # 0, which ends a dict
            self.count(2, depth)
            name, at = self.value(at, depth - 1)
            if type(name) is not str:
                raise Forgery("a name that is not text")
            found[name], at = self.value(at, depth - 1)
        return found, at + 1

    def count(self, items: int, depth: int) -> None:
        self.items += items
        if self.items > ITEMS_MAX or depth == 0:
            raise Forgery("too many values, or too deep")

    def long(self, at: int) -> tuple[int, int]:
        (count,) = _signed(self.octets, at)
        start = at + _NUMBER_BYTES
        end = start + 2 * abs(count)
        if abs(count) * _DIGIT_BITS > INTEGER_BITS_MAX or end > len(self.octets):
            raise Forgery(f"an integer of {abs(count)} digits")
        value = 0
        for place in range(end - 2, start - 2, -2):
            digit = int.from_bytes(self.octets[place : place + 2], "little")
            if digit >> _DIGIT_BITS:
                raise Forgery("a digit that is too large")
            value = value << _DIGIT_BITS | digit
        return (-value if count < 0 else value), end


PLAIN: Final = frozenset((bytes, int, str, bool, float, type(None)))  # types of values that need no description
_BASES: Final[tuple[type | None, ...]] = (bytes, int, str, float, None, object)  # by `guest.calls`' kinds of values


def argument(value: object) -> object:
    """Return an argument of a host call as `HOST_CALLS` takes it.

    What the guest describes by its type gets a stand-in of the same type name, which is all that a message shows of it.
    """
    kind = type(value)
    if kind is list:
        return [argument(each) for each in value]  # type: ignore[attr-defined]  # mypy does not follow the types
    if kind is dict:
        raise Forgery("a dict as an argument")
    if kind is not tuple:
        return value
    match value:
        case (int(number), str(name), plain) if 0 <= number < len(_BASES):
            return _stand_in(_BASES[number], name[:NAME_CHARACTERS_MAX], plain)
    raise Forgery("an argument that is described wrongly")


def _stand_in(base: type | None, name: str, plain: object) -> object:
    if base is None:
        return _named(name, str(plain)[:NAME_CHARACTERS_MAX])
    if base is object:
        return type(name, (), {})()
    if type(plain) is not base:
        raise Forgery("a described value is of another type")
    return type(name, (base,), {})(plain)


def _named(kind: str, name: str) -> object:
    if kind == "module":
        return ModuleType(name)
    if kind in ("function", "builtin_function_or_method"):
        function: Callable[[], None] = lambda: None  # noqa: E731  # its name is the guest's
        function.__name__ = name
        return function
    return type(name, (), {})


def read_error(fields: object, refusals: Sequence[ErrorObject]) -> ErrorObject:
    """Return a guest's error; one that repeats a refusal of the chain's is that refusal, with the guest's own facts.

    ``refusals`` are those of the frame, by number, which the fact `REFUSAL_NUMBER` holds.
    """
    match fields:
        case (int(), str(slug), str(what), str(why), str(fix), dict(context)):
            facts = {str(name): fact for name, fact in context.items() if isinstance(fact, Fact)}
        case _:
            raise Forgery("an error of another form")
    texts = (slug, what, why, fix, *(str(fact) for fact in facts.values()))
    if len(facts) != len(context) or max(map(len, texts)) > TEXT_CHARACTERS_MAX:
        raise Forgery("an error with too long a text, or facts that are not plain")
    number = facts.pop(REFUSAL_NUMBER, None)
    if number is not None:
        if type(number) is not int or not 0 <= number < len(refusals):
            raise Forgery(f"a refusal {number} that was not given")
        refused = refusals[number]
        return ErrorObject(refused.code, refused.slug, refused.what, refused.why, refused.fix, facts)
    reason = _BY_SLUG.get(slug)
    if reason not in _GUEST_REASONS:
        raise Forgery(f"an error {slug!r:.80}, which only the chain gives")
    return ErrorObject(reason.code, slug, what, why, fix, facts)


def rejection_of(error: ErrorObject) -> Rejection:
    """Return an error as the refusal that it came from."""
    facts: Mapping[str, Fact] = error.context
    return Rejection(_BY_SLUG[error.slug], error.what, error.fix, **facts)
