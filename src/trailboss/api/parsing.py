"""Parameters, and how requests are read: strictly. A parameter is declared once, for reading and for OpenAPI.

What is refused names the parameter, the value and the rule.

Decision: D-72
"""

import json
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Generic, NoReturn, TypeVar
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from trailboss.api.errors import HttpError, HttpReason, clipped, malformed, shown
from trailboss.api.kinds import Kind, MisreadError
from trailboss.codec.textual import fault_of

T = TypeVar("T")
QUERY_BYTES_MAX: Final = 8_192
_PERCENT: Final = re.compile(rb"%(?![0-9a-fA-F]{2})")


class Place(Enum):
    """Where a parameter stands."""

    PATH = "path"
    QUERY = "query"
    BODY = "body"


class Parameter(Struct, Generic[T], frozen=True):
    """One thing that a client can say.

    Attributes:
        name: Its name.
        place: Where it stands.
        kind: What it may be.
        about: What it means, in a sentence.
        default: What holds if it is not there.
        is_required: Whether it must be there.
    """

    name: str
    place: Place
    kind: Kind[Any]
    about: str
    default: T
    is_required: bool = False

    def read(self, value: object) -> T:
        """Return what is meant.

        Args:
            value: Text of a path or a query, or a value of a JSON document.

        Raises:
            HttpError: ``BAD_REQUEST`` naming the parameter, the value and the rule.
        """
        try:
            found: T = self.kind.read_json(value) if self.place is Place.BODY else self.kind.read_text(str(value))
        except MisreadError as error:
            rule = f"{self.kind.rule}: {error}" if str(error) else self.kind.rule
            raise malformed(self.place.value, self.name, value, rule) from None
        return found

    def schema(self) -> dict[str, Any]:
        """Return its schema, with its default if it has one."""
        has_default = not self.is_required and self.default is not None
        return dict(self.kind.schema) | ({"default": self.default} if has_default else {})


def path(name: str, kind: Kind[T], about: str) -> Parameter[T]:
    """Declare a part of a path."""
    return Parameter(name, Place.PATH, kind, about, _absent(), is_required=True)


def query(name: str, kind: Kind[T], about: str) -> Parameter[T | None]:
    """Declare a parameter of a query that may be left out."""
    return Parameter(name, Place.QUERY, kind, about, None)


def query_or(name: str, kind: Kind[T], about: str, default: T) -> Parameter[T]:
    """Declare a parameter of a query that has a default."""
    return Parameter(name, Place.QUERY, kind, about, default)


def required_query(name: str, kind: Kind[T], about: str) -> Parameter[T]:
    """Declare a parameter of a query that must be there."""
    return Parameter(name, Place.QUERY, kind, about, _absent(), is_required=True)


def member(name: str, kind: Kind[T], about: str) -> Parameter[T | None]:
    """Declare a member of a JSON body that may be left out."""
    return Parameter(name, Place.BODY, kind, about, None)


def member_or(name: str, kind: Kind[T], about: str, default: T) -> Parameter[T]:
    """Declare a member of a JSON body that has a default."""
    return Parameter(name, Place.BODY, kind, about, default)


def required_member(name: str, kind: Kind[T], about: str) -> Parameter[T]:
    """Declare a member of a JSON body that must be there."""
    return Parameter(name, Place.BODY, kind, about, _absent(), is_required=True)


def _absent() -> Any:
    return None


# Requests


def read_query(raw: bytes, parameters: Mapping[str, Parameter[Any]]) -> dict[str, Any]:
    """Return the values of a query's parameters, those left out with their defaults.

    Args:
        raw: As it stands behind the question mark.
        parameters: Those there are, by name.

    Raises:
        HttpError: ``BAD_REQUEST`` for a name that is not known or stands twice, for a value of another kind, for what
            is not percent-encoded UTF-8, and for a parameter that is missing.
    """
    values: dict[str, Any] = {}
    if len(raw) > QUERY_BYTES_MAX:
        what = f"the query has {len(raw):,} bytes, above {QUERY_BYTES_MAX:,}"
        raise HttpError(HttpReason.BAD_REQUEST, what, value=len(raw), rule=f"at most {QUERY_BYTES_MAX}")
    for pair in raw.split(b"&") if raw else ():
        name, _, value = pair.partition(b"=")
        key = _query_text(name)
        parameter = parameters.get(key)
        if parameter is None:
            known = ", ".join(parameters) or "none"
            what = f"there is no query parameter {shown(key)}; this path has: {known}"
            raise HttpError(HttpReason.BAD_REQUEST, what, parameter=clipped(key), rule=f"one of: {known}")
        if key in values:
            what = f"query parameter {key} stands twice"
            raise HttpError(HttpReason.BAD_REQUEST, what, parameter=key, rule="at most once")
        values[key] = parameter.read(_query_text(value))
    return _complete(values, parameters)


def _query_text(raw: bytes) -> str:
    if _PERCENT.search(raw) is not None:
        raise _misencoded(raw)
    try:
        return unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise _misencoded(raw) from None


def _misencoded(raw: bytes) -> HttpError:
    value = shown(raw.decode("latin-1"))
    what = f"{value} in the query is not percent-encoded UTF-8"
    return HttpError(HttpReason.BAD_REQUEST, what, value=clipped(raw.decode("latin-1")), rule="percent-encoded UTF-8")


def read_members(document: Mapping[str, Any], parameters: Mapping[str, Parameter[Any]]) -> dict[str, Any]:
    """Return the values of a JSON body's members, those left out with their defaults.

    Raises:
        HttpError: ``BAD_REQUEST`` for a member that is not known or missing, and for a value of another kind.
    """
    values: dict[str, Any] = {}
    for name, value in document.items():
        parameter = parameters.get(name)
        if parameter is None:
            known = ", ".join(parameters) or "none"
            what = f"the body has a member {shown(name)}; there are: {known}"
            raise HttpError(HttpReason.BAD_REQUEST, what, parameter=clipped(name), rule=f"one of: {known}")
        values[name] = parameter.read(value)
    return _complete(values, parameters)


def _complete(values: dict[str, Any], parameters: Mapping[str, Parameter[Any]]) -> dict[str, Any]:
    for name, parameter in parameters.items():
        if name not in values:
            if parameter.is_required:
                what = f"{parameter.place.value} parameter {name} is missing; it must be {parameter.kind.rule}"
                raise HttpError(HttpReason.BAD_REQUEST, what, parameter=name, rule=parameter.kind.rule)
            values[name] = parameter.default
    return values


def read_document(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a body holds; an empty body is one without members.

    Raises:
        HttpError: ``BAD_REQUEST`` for anything else: another encoding than UTF-8, a member that stands twice, NaN,
            numbers of thousands of digits, nesting without end.
    """
    try:
        value = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_refuse) if body else {}
    except (ValueError, RecursionError) as error:
        what = f"the body is not JSON: {fault_of(error)}"
        raise HttpError(HttpReason.BAD_REQUEST, what, place="body", rule="one JSON object in UTF-8") from None
    if not isinstance(value, dict):
        what = f"the body is {shown(value)}, it must be a JSON object"
        raise HttpError(
            HttpReason.BAD_REQUEST, what, place="body", value=clipped(value), rule="one JSON object in UTF-8"
        )
    return value


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    unique: dict[str, Any] = {}
    for name, value in members:
        if name in unique:
            raise MisreadError(f"the member {shown(name)} stands twice")
        unique[name] = value
    return unique


def _refuse(constant: str) -> NoReturn:
    raise MisreadError(f"{constant} is no number of JSON")
