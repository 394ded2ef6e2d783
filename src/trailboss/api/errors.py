"""Refusals over HTTP, all in the shape ``{"error": {"code", "slug", "what", "why", "fix", "context"}}``.

A rule of the chain keeps its public code, 1001 to 1999; what only HTTP can break has a code from 4000 on. The status is
400 for the form of a request, 404 for what does not exist, 422 for a well-formed request that a rule forbids.

Decision: D-72
"""

import json
from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from trailboss.primitives.errors import ErrorObject, Fact, Rejection, RejectionReason, TrailbossError
from trailboss.views.json_values import to_json_value


# fmt: off
class HttpReason(Enum):
    """Reasons to refuse a request that are not rules of the chain: code from 4000 on, HTTP status, why, what to do."""

    BAD_REQUEST = (
        4000, 400, "a request must have the form that /openapi.json describes",
        "correct what the message names and send the request again")
    DEVELOPMENT_ONLY = (
        4003, 403, "the faucet and the calls under /dev change a chain at will: only `trailboss dev` answers them",
        "start the node with `trailboss dev`, or send a transaction instead")
    NOT_FOUND = 4004, 404, "the named thing must exist", "check the path, the address or the id"
    METHOD_NOT_ALLOWED = 4005, 405, "each path has its methods", "use a method that the header Allow lists"
    FOREIGN_ORIGIN = (
        4006, 403, "a web page of another origin may not change anything here",
        "if the page is yours, start the node with --cors and its origin")
    TIMEOUT = (
        4008, 408, "a node waits no longer than the request allows",
        "read the receipt later: what was accepted stays accepted")
    SLOW_REQUEST = 4009, 408, "a body must arrive within seconds", "send it without pauses"
    GONE = 4010, 410, "the lease of a view ends a minute after its last use", "lease a new view"
    TOO_LARGE = 4013, 413, "the size of a request is bounded", "send less at once"
    MEDIA_TYPE = 4015, 415, "a body must name its type, one of those in /openapi.json", "set the header Content-Type"
    WRONG_HOST = (
        4021, 421,
        "a node on a loopback address answers only to this machine's names, because web pages can forge others",
        "use localhost, or the address that the node listens on")
    INVALID_VALUE = 4022, 422, "values have ranges and relations", "use a value that the rule allows"
    TOO_MANY_REQUESTS = 4029, 429, "a node limits the requests a second", "wait for the seconds in Retry-After"
    HEADERS_TOO_LARGE = 4031, 431, "the size of a request is bounded", "send fewer headers"
    INTERNAL = 4500, 500, "no request may make a node fail; this is a bug", "report the request"
    UNAVAILABLE = 4503, 503, "a node that stops or is overloaded refuses requests", "try again in a moment"

    def __init__(self, code: int, status: int, why: str, fix: str) -> None:
        self.code, self.status, self.slug, self.why, self.fix = code, status, self.name.lower(), why, fix
# fmt: on


SHOWN_CHARACTERS_MAX: Final = 80  # characters of a wrong value that an error repeats
NOT_THERE: Final = (
    RejectionReason.NOT_FOUND,
    RejectionReason.ACTOR_NOT_FOUND,
    RejectionReason.ERR_TARGET_NOT_FOUND,
    RejectionReason.ERR_TIMER_NOT_FOUND,
)
"""Rules of the chain that say that something is not there."""


class HttpError(TrailbossError):
    """A refused request: why, what was asked with the offending value, headers of the answer, the facts by name."""

    def __init__(
        self, reason: HttpReason, what: str, *, headers: Mapping[str, str] | None = None, **context: Fact
    ) -> None:
        super().__init__(reason, what)
        self.reason, self.what, self.headers, self.context = reason, what, dict(headers or {}), context

    def __str__(self) -> str:
        return str(self.error())

    def error(self) -> ErrorObject:
        """Return the refusal in the shape that receipts have too."""
        rule = self.reason
        return ErrorObject(rule.code, rule.slug, self.what, rule.why, rule.fix, dict(self.context))


def malformed(place: str, name: str, value: object, rule: str) -> HttpError:
    """Return the refusal of a parameter's value that is against its rule."""
    what = f"{place} parameter {name} is {shown(value)}, it must be {rule}"
    return HttpError(HttpReason.BAD_REQUEST, what, parameter=name, place=place, value=clipped(value), rule=rule)


def invalid(name: str, value: object, rule: str) -> HttpError:
    """Return the refusal of a well-formed value that a rule forbids."""
    what = f"{name} is {value}, it must be {rule}"
    return HttpError(HttpReason.INVALID_VALUE, what, parameter=name, value=clipped(value), rule=rule)


def shown(value: object) -> str:
    """Return a value as a message repeats it: shortened, in ASCII."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list):
        return f"a list of {len(value)} values"
    if isinstance(value, dict):
        return f"an object of {len(value)} members"
    return ascii(value) if len(str(value)) <= SHOWN_CHARACTERS_MAX else f"{ascii(value)[:SHOWN_CHARACTERS_MAX]}…"


def clipped(value: object) -> str:
    """Return a value as the context of an error has it: text unchanged, but shortened."""
    return value[:SHOWN_CHARACTERS_MAX] if isinstance(value, str) else shown(value)


def status_of(rejection: Rejection) -> int:
    """Return the HTTP status of a refusal by the chain."""
    return (HttpReason.NOT_FOUND if rejection.reason in NOT_THERE else HttpReason.INVALID_VALUE).status


def missing(what: str, **context: str | int) -> HttpError:
    """Return the refusal of something that does not exist."""
    return HttpError(HttpReason.NOT_FOUND, what, headers=None, **context)


def encode_json(value: object) -> bytes:
    """Return a value as the body of an answer; text of actors that UTF-8 cannot carry is escaped."""
    document = to_json_value(value)
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        return msgspec.json.encode(_escaped(document))


def _escaped(document: object) -> object:
    """Return a document of plain values in which text with halves of surrogate pairs is JSON already."""
    if isinstance(document, dict):
        return {name: _escaped(value) for name, value in document.items()}
    if isinstance(document, list):
        return list(map(_escaped, document))
    if isinstance(document, str):
        try:
            document.encode()
        except UnicodeEncodeError:
            return msgspec.Raw(json.dumps(document).encode())
    return document
