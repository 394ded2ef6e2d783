"""Requests, read strictly: msgspec checks them against the parameters of the function that answers.

Nothing is ignored. A refusal names the parameter, the value and the rule.

Decision: D-72, D-99
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import Annotated, Any, Final, NoReturn, get_args, get_origin
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict, fields

from trailboss.api.errors import HttpError, HttpReason, clipped, malformed, shown
from trailboss.codec.textual import fault_of
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX

PATH: Final = "path"
QUERY: Final = "query"
BODY: Final = "body"
QUERY_BYTES_MAX: Final = 8_192
I64_MAX: Final = 2**63 - 1
OFFSET_MAX: Final = 2**53 - 1  # lists are shorter, and SQLite takes no larger offset
LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 50
LATEST: Final = "latest"
TRUTHS: Final = {"true": True, "false": False}
SHARED: Final = {
    "offset": "Number of entries to skip.",
    "limit": "Largest number of entries to return.",
    "address": "Address of the account or actor.",
    "timer_id": "Id of the timer.",
    "hash": "Hash of the transaction.",
    "height": "Height of the block.",
    "name": "Only events of this name.",
    "emitter": "Only events of this emitter.",
    "payer": "Account that pays for timers.",
    "target": "Only what this actor's handlers run.",
    "prefix": "First digits of a hash, an id or an address.",
    "snapshot": "Number that /dev/snapshot answered.",
    "namespace": "One of the maps that the state root covers.",
    "key": "Full key: its namespace's letter, then the key.",
    "first": "Lowest height of the records.",
    "view": "Number that /state/views answered.",
    "wait": "Whether to wait for its block, at most 5,000 ms.",
}
"""Meanings of parameters that many operations have."""
ADDRESS_RULE: Final = "40 hexadecimal digits, with or without 0x; in mixed case with the right EIP-55 checksum"
HASH_RULE: Final = "64 hexadecimal digits, with or without 0x"
_BOOLEAN_RULE: Final = "true or false"
_INTEGER: Final = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)
_DIGITS: Final = re.compile(r"(?:0[xX])?[0-9a-fA-F]{1,64}", re.ASCII)
_UNFIT: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_PERCENT: Final = re.compile(rb"%(?![0-9a-fA-F]{2})")
_FAULTY: Final = re.compile(r"`\$\.(\w+)")


# What a parameter may be


def integer(most: int = U64_MAX, least: int = 0) -> Meta:
    """Return the rule of an integer within bounds."""
    rule = {"rule": f"an integer within {least}..={most}"}
    if most > I64_MAX:  # msgspec bounds integers of 64 bits with a sign; `_Reader` checks the rest
        return Meta(ge=least, extra_json_schema={"maximum": most}, extra=rule)
    return Meta(ge=least, le=most, extra=rule)


def choice(*words: str) -> Meta:
    """Return the rule of one of several words."""
    pattern = f"^({'|'.join(words)})$"
    return Meta(pattern=pattern, extra_json_schema={"enum": list(words)}, extra={"rule": f"one of {', '.join(words)}"})


def text(longest: int) -> Meta:
    """Return the rule of text without control characters."""
    rule = f"text of 1 to {longest:,} characters without control characters"
    return Meta(min_length=1, max_length=longest, pattern=r"^[^\x00-\x1f\x7f]+$", extra={"rule": rule})


def octets(longest: int) -> Meta:
    """Return the rule of a byte string: ``0x`` and two digits a byte. `unhex` gives the bytes."""
    rule = f"0x and two hexadecimal digits for each of at most {longest:,} bytes"
    return Meta(max_length=2 + 2 * longest, pattern="^0x([0-9a-fA-F]{2})*$", extra={"rule": rule})


def unhex(digits: str) -> bytes:
    """Return the bytes that a text of `octets` stands for."""
    return bytes.fromhex(digits[2:])


U64 = Annotated[int, integer()]
Offset = Annotated[int, integer(OFFSET_MAX)]
Limit = Annotated[int, integer(LIMIT_MAX, 1)]
Positive = Annotated[int, integer(least=1)]
BLOCK_RULE: Final = f"a height, a hash of 64 hexadecimal digits, or {LATEST}"
BlockName = Annotated[
    str, Meta(pattern=rf"^({LATEST}|0|[1-9][0-9]{{0,19}}|(0[xX])?[0-9a-fA-F]{{64}})$", extra={"rule": BLOCK_RULE})
]
TRACE_RULE: Final = "a height, or 64 hexadecimal digits of a transaction's hash or a timer's id"
TraceName = Annotated[str, Meta(pattern=r"^(0|[1-9][0-9]{0,19}|(0[xX])?[0-9a-fA-F]{64})$", extra={"rule": TRACE_RULE})]
Prefix = Annotated[
    str, Meta(pattern="^(0[xX])?[0-9a-fA-F]{1,64}$", extra={"rule": "1 to 64 hexadecimal digits, with or without 0x"})
]


def type_parts(kind: Any) -> Iterator[Any]:
    """Yield the types and rules that a type is made of."""
    if get_origin(kind) is None:
        yield kind
    for each in get_args(kind):
        yield from type_parts(each)


class Parameter(Struct, frozen=True, kw_only=True):
    """One parameter of an operation."""

    name: str  # its name
    place: str  # ``path``, ``query`` or ``body``
    rule: str  # what it must be, in words
    kind: Any  # its type
    default: Any  # what holds if it is left out; None if it is required, or if nothing holds
    is_required: bool  # whether it must be there
    is_integer: bool  # whether it is an integer
    most: int | None  # upper bound that msgspec cannot check; None if there is none


def asked_of(run: Callable[..., Any], hints: Mapping[str, Any]) -> type[Struct]:
    """Return a Struct of a function's keyword parameters."""
    members = [
        (each.name, hints[each.name]) if each.default is each.empty else (each.name, hints[each.name], each.default)
        for each in signature(run).parameters.values()
        if each.kind is each.KEYWORD_ONLY
    ]
    return msgspec.defstruct(run.__name__, members, frozen=True, kw_only=True, forbid_unknown_fields=True)


def parameters_of(asked: type[Struct], path: str, place: str) -> dict[str, Parameter]:
    """Return an operation's parameters by name: those that its path has in braces stand there, others at a place."""
    return {
        each.name: Parameter(
            name=each.name,
            place=PATH if f"{{{each.name}}}" in path else place,
            rule=_rule(each.type),
            kind=each.type,
            default=None if each.required else each.default,
            is_required=each.required,
            is_integer=int in type_parts(each.type),
            most=_most(each.type),
        )
        for each in fields(asked)
    }


def _rule(kind: Any) -> str:
    for each in type_parts(kind):
        if isinstance(each, Meta) and each.extra:
            return str(each.extra["rule"])
        if each in _RULES:
            return _RULES[each]
    raise TypeError(f"{kind!r} has no rule")


def _most(kind: Any) -> int | None:
    schemas = (each.extra_json_schema for each in type_parts(kind) if isinstance(each, Meta))
    return next((each["maximum"] for each in schemas if each and "maximum" in each), None)


_RULES: Final[Mapping[Any, str]] = {Address: ADDRESS_RULE, Hash32: HASH_RULE, bool: _BOOLEAN_RULE}


# Reading


class Reader:
    """Reads requests for one operation."""

    __slots__ = ("_asked", "_empty", "_most", "_parameters", "_path", "_query")

    def __init__(self, asked: type[Struct], parameters: Mapping[str, Parameter]) -> None:
        self._asked = asked
        self._parameters = parameters
        self._path = [each for each in parameters.values() if each.place == PATH]
        self._query = {name: each for name, each in parameters.items() if each.place == QUERY}
        self._most = {name: each.most for name, each in parameters.items() if each.most is not None}
        self._empty = None if any(each.is_required for each in parameters.values()) else asdict(asked())

    def read(self, path: Mapping[str, str], query: bytes, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the values of the parameters, by name; the document is the body's, None if the operation reads none.

        Raises:
            HttpError: ``BAD_REQUEST`` for a parameter that is unknown, missing, repeated or against its rule, and for a
                query that is too long or not percent-encoded UTF-8.
        """
        if not query and not document and self._empty is not None:
            return self._empty
        values = self._read_query(query) if query else {}
        for parameter in self._path:
            values[parameter.name] = _of_text(parameter, path[parameter.name])
        for name, value in (document or {}).items():
            if name not in self._parameters or self._parameters[name].place != BODY:
                known = ", ".join(self._parameters) or "none"
                what = f"the body has a member {shown(name)}; there are: {known}"
                raise HttpError(HttpReason.BAD_REQUEST, what, parameter=clipped(name), rule=f"one of: {known}")
            if value is None:
                raise self._malformed(name, value)
            # JSON writes one number in many ways: 5.0 and 5e0 are 5.
            is_whole = type(value) is float and value.is_integer() and self._parameters[name].is_integer
            values[name] = int(value) if is_whole else value
        return self._convert(values)

    def _read_query(self, raw: bytes) -> dict[str, Any]:
        if len(raw) > QUERY_BYTES_MAX:
            what = f"the query has {len(raw):,} bytes, above {QUERY_BYTES_MAX:,}"
            raise HttpError(HttpReason.BAD_REQUEST, what, value=len(raw), rule=f"at most {QUERY_BYTES_MAX}")
        values: dict[str, Any] = {}
        for pair in raw.split(b"&"):
            name, _, value = pair.partition(b"=")
            key = _decoded(name)
            parameter = self._query.get(key)
            if parameter is None:
                known = ", ".join(self._query) or "none"
                what = f"there is no query parameter {shown(key)}; this path has: {known}"
                raise HttpError(HttpReason.BAD_REQUEST, what, parameter=clipped(key), rule=f"one of: {known}")
            if key in values:
                what = f"query parameter {key} stands twice"
                raise HttpError(HttpReason.BAD_REQUEST, what, parameter=key, rule="at most once")
            values[key] = _of_text(parameter, _decoded(value))
        return values

    def _convert(self, values: dict[str, Any]) -> dict[str, Any]:
        try:
            for name, value in values.items():
                if type(value) is str and _UNFIT.search(value) is not None:
                    raise self._malformed(name, value)
            found = msgspec.convert(values, self._asked, dec_hook=_decode)
        except msgspec.ValidationError as error:
            for name, parameter in self._parameters.items():
                if parameter.is_required and name not in values:
                    what = f"{parameter.place} parameter {name} is missing; it must be {parameter.rule}"
                    raise HttpError(HttpReason.BAD_REQUEST, what, parameter=name, rule=parameter.rule) from None
            named = _FAULTY.search(str(error))
            if named is None:
                raise
            detail = str(error).partition(" - at `")[0]
            raise self._malformed(named[1], values[named[1]], detail if "EIP-55" in detail else "") from None
        for name, most in self._most.items():
            if getattr(found, name) is not None and getattr(found, name) > most:
                raise self._malformed(name, values[name])
        return asdict(found)

    def _malformed(self, name: str, value: object, detail: str = "") -> HttpError:
        parameter = self._parameters[name]
        return malformed(parameter.place, name, value, f"{parameter.rule}: {detail}" if detail else parameter.rule)


def _of_text(parameter: Parameter, value: str) -> object:
    if parameter.kind is bool:
        return TRUTHS.get(value, value)
    if not parameter.is_integer:
        return value
    if _INTEGER.fullmatch(value) is None:
        raise malformed(parameter.place, parameter.name, value, parameter.rule)
    return int(value)


def _decode(kind: type, value: object) -> object:
    # Python reads hexadecimal with blanks between the bytes.
    if (kind is not Address and kind is not Hash32) or type(value) is not str or _DIGITS.fullmatch(value) is None:
        raise ValueError
    try:
        return kind.parse(value)
    except Rejection as rejection:
        raise ValueError(rejection.what) from None


def _decoded(raw: bytes) -> str:
    try:
        if _PERCENT.search(raw) is None:
            return unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        pass
    value = raw.decode("latin-1")
    what = f"{shown(value)} in the query is not percent-encoded UTF-8"
    raise HttpError(HttpReason.BAD_REQUEST, what, value=clipped(value), rule="percent-encoded UTF-8")


# Bodies


class _BodyError(ValueError):
    """A JSON text that says two things, or a number that JSON lacks."""


def read_document(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a body holds; an empty body is one without members.

    Raises:
        HttpError: ``BAD_REQUEST`` for anything else: another encoding than UTF-8, a member that stands twice, NaN,
            numbers of thousands of digits, nesting without end.
    """
    rule = "one JSON object in UTF-8"
    try:
        value = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_refuse) if body else {}
    except (ValueError, RecursionError) as error:
        what = f"the body is not JSON: {fault_of(error)}"
        raise HttpError(HttpReason.BAD_REQUEST, what, place="body", rule=rule) from None
    if not isinstance(value, dict):
        what = f"the body is {shown(value)}, it must be a JSON object"
        raise HttpError(HttpReason.BAD_REQUEST, what, place="body", value=clipped(value), rule=rule)
    return value


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    unique: dict[str, Any] = {}
    for name, value in members:
        if name in unique:
            raise _BodyError(f"the member {shown(name)} stands twice")
        unique[name] = value
    return unique


def _refuse(constant: str) -> NoReturn:
    raise _BodyError(f"{constant} is no number of JSON")
