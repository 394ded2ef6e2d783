"""The kinds of values that clients send: each reads a value strictly, and says the same to OpenAPI."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX

T = TypeVar("T")
_INTEGER: Final = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)
_OCTETS: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)
_DIGITS: Final = re.compile(r"(?:0[xX])?[0-9a-fA-F]{1,64}", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BOOLEANS: Final = {"true": True, "false": False}


class MisreadError(ValueError):
    """A value that is not of its kind; the text, if there is any, says more than the kind's rule."""


class Kind(Struct, Generic[T], frozen=True):
    """What a value may be.

    Attributes:
        rule: What it must be, in words.
        schema: The same for OpenAPI.
        read_text: Read it from the text of a path or a query; raises MisreadError.
        read_json: Read it from a value of a JSON document; raises MisreadError.
    """

    rule: str
    schema: Mapping[str, Any]
    read_text: Callable[[str], T]
    read_json: Callable[[object], T]


def integer(maximum: int = U64_MAX, minimum: int = 0) -> Kind[int]:
    """Return the kind of an integer within bounds, in decimal digits without sign or leading zeros."""
    rule = f"an integer within {minimum}..={maximum}"

    def check(value: int) -> int:
        if not minimum <= value <= maximum:
            raise MisreadError
        return value

    def read_text(text: str) -> int:
        if _INTEGER.fullmatch(text) is None:
            raise MisreadError
        return check(int(text))

    def read_json(value: object) -> int:
        # JSON writes one number in many ways: 5.0 and 5e0 are 5.
        if type(value) is float and value.is_integer():
            return check(int(value))
        if type(value) is not int:
            raise MisreadError
        return check(value)

    return Kind(rule, {"type": "integer", "minimum": minimum, "maximum": maximum}, read_text, read_json)


def choice(*words: str) -> Kind[str]:
    """Return the kind of one of several words."""

    def read(value: str) -> str:
        if value not in words:
            raise MisreadError
        return value

    return Kind(f"one of {', '.join(words)}", {"type": "string", "enum": list(words)}, read, _of_text(read))


def words(longest: int) -> Kind[str]:
    """Return the kind of text of at least one character, none of which is a control character."""

    def read(value: str) -> str:
        if not 0 < len(value) <= longest or _CONTROL.search(value) is not None:
            raise MisreadError
        try:
            value.encode()
        except UnicodeEncodeError:
            raise MisreadError("it holds half of a surrogate pair") from None
        return value

    rule = f"text of 1 to {longest:,} characters without control characters"
    schema = {"type": "string", "minLength": 1, "maxLength": longest, "pattern": r"^[^\x00-\x1f\x7f]+$"}
    return Kind(rule, schema, read, _of_text(read))


def octets(longest: int) -> Kind[bytes]:
    """Return the kind of a byte string, written as ``0x`` and two digits a byte."""

    def read(value: str) -> bytes:
        if len(value) > 2 + 2 * longest or _OCTETS.fullmatch(value) is None:
            raise MisreadError
        return bytes.fromhex(value[2:])

    rule = f"0x and two hexadecimal digits for each of at most {longest:,} bytes"
    schema = {"type": "string", "maxLength": 2 + 2 * longest, "pattern": "^0x([0-9a-fA-F]{2})*$"}
    return Kind(rule, schema, read, _of_text(read))


def structure(rule: str, schema: Mapping[str, Any]) -> Kind[dict[str, Any]]:
    """Return the kind of a JSON object that somebody else reads."""

    def read_json(value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise MisreadError
        return value

    def read_text(_: str) -> dict[str, Any]:
        raise MisreadError

    return Kind(rule, schema, read_text, read_json)


def _of_text(read: Callable[[str], T]) -> Callable[[object], T]:
    def read_json(value: object) -> T:
        if not isinstance(value, str):
            raise MisreadError
        return read(value)

    return read_json


def _read_address(text: str) -> Address:
    try:
        return Address.parse(_only_digits(text))
    except Rejection as rejection:
        raise MisreadError(rejection.what if "EIP-55" in rejection.what else "") from None


def _read_hash(text: str) -> Hash32:
    try:
        return Hash32.parse(_only_digits(text))
    except Rejection:
        raise MisreadError from None


def _only_digits(text: str) -> str:
    # Python reads hexadecimal with blanks between the bytes.
    if _DIGITS.fullmatch(text) is None:
        raise MisreadError
    return text


def _read_prefix(text: str) -> str:
    return _only_digits(text)[2 * (text[:2] in ("0x", "0X")) :].lower()


def _read_boolean(text: str) -> bool:
    if text not in _BOOLEANS:
        raise MisreadError
    return _BOOLEANS[text]


def _boolean_member(value: object) -> bool:
    if not isinstance(value, bool):
        raise MisreadError
    return value


def _read_block(text: str) -> int | Hash32 | None:
    if text == LATEST:
        return None
    return HEIGHT.read_text(text) if _INTEGER.fullmatch(text) else _read_hash(text)


LATEST: Final = "latest"
HEIGHT: Final = integer()
_ADDRESS_SCHEMA: Final = {"type": "string", "pattern": "^(0[xX])?[0-9a-fA-F]{40}$", "format": "address"}
_HASH_SCHEMA: Final = {"type": "string", "pattern": "^(0[xX])?[0-9a-fA-F]{64}$", "format": "hash32"}
ADDRESS: Final[Kind[Address]] = Kind(
    "40 hexadecimal digits, with or without 0x; in mixed case with the right EIP-55 checksum",
    _ADDRESS_SCHEMA,
    _read_address,
    _of_text(_read_address),
)
HASH: Final[Kind[Hash32]] = Kind(
    "64 hexadecimal digits, with or without 0x", _HASH_SCHEMA, _read_hash, _of_text(_read_hash)
)
PREFIX: Final[Kind[str]] = Kind(
    "1 to 64 hexadecimal digits, with or without 0x",
    {"type": "string", "pattern": "^(0[xX])?[0-9a-fA-F]{1,64}$"},
    _read_prefix,
    _of_text(_read_prefix),
)
BOOLEAN: Final[Kind[bool]] = Kind("true or false", {"type": "boolean"}, _read_boolean, _boolean_member)
BLOCK: Final[Kind[int | Hash32 | None]] = Kind(
    f"a height, a hash of 64 hexadecimal digits, or {LATEST}",
    {"anyOf": [HEIGHT.schema, _HASH_SCHEMA, {"const": LATEST}]},
    _read_block,
    _of_text(_read_block),
)
