"""Refusals over HTTP: one shape for all of them, whoever refuses.

``{"error": {"code", "slug", "what", "why", "fix", "context"}}``. A rule of the chain keeps its public code, 1001 to
1999; what only HTTP can break has a code of ours, from 4000 on. The status follows from what was wrong: 400 for the
form of a request, as ``/openapi.json`` has it; 404 for what is not there; 422 for a well-formed request that a rule
forbids.

Decision: D-72
"""

import json
from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from trailboss.primitives.errors import ErrorObject, Fact, Rejection, RejectionReason, TrailbossError
from trailboss.views.json_values import to_json_value


class _Rule(NamedTuple):
    code: int
    status: int
    slug: str
    why: str
    fix: str


class HttpReason(Enum):
    """Every reason for which a request is refused that the chain has nothing to do with."""

    BAD_REQUEST = _Rule(
        4000,
        400,
        "bad_request",
        "a request has the form that /openapi.json describes",
        "mend what is named, send it again",
    )
    DEVELOPMENT_ONLY = _Rule(
        4003,
        403,
        "development_only",
        "calls under /dev, and the faucet, change a chain at will: a node answers them if it runs as `trailboss dev`",
        "start the node with `trailboss dev`, or send a transaction instead",
    )
    NOT_FOUND = _Rule(4004, 404, "not_found", "the thing named must exist", "check the path, the address or the id")
    METHOD_NOT_ALLOWED = _Rule(
        4005, 405, "method_not_allowed", "every path has its methods", "use one of those in the header Allow"
    )
    TIMEOUT = _Rule(
        4008,
        408,
        "timeout",
        "a node waits only as long as it was told to",
        "ask for the receipt later: what was accepted stays accepted",
    )
    SLOW_REQUEST = _Rule(
        4009, 408, "slow_request", "a request arrives at once, or it is not waited for", "send it without pauses"
    )
    GONE = _Rule(4010, 410, "gone", "what is lent for a while returns by itself", "ask for it anew")
    TOO_LARGE = _Rule(4013, 413, "too_large", "the size of a request is bounded", "send less at once")
    MEDIA_TYPE = _Rule(
        4015,
        415,
        "media_type",
        "a body says what it is, and a node reads what /openapi.json names",
        "set the header Content-Type",
    )
    INVALID_VALUE = _Rule(
        4022, 422, "invalid_value", "values have ranges and relations", "use a value that the rule allows"
    )
    TOO_MANY_REQUESTS = _Rule(
        4029, 429, "too_many_requests", "a node answers so many requests a second", "wait as long as Retry-After says"
    )
    FOREIGN_ORIGIN = _Rule(
        4006,
        403,
        "foreign_origin",
        "a web page of another origin may not change anything here, nor open a socket",
        "start the node with --cors and the page's origin, if the page is yours",
    )
    WRONG_HOST = _Rule(
        4021,
        421,
        "wrong_host",
        "a node for this machine alone answers to this machine's names: another one may be a trap of a web page",
        "ask for localhost, or for the address that the node listens on",
    )
    HEADERS_TOO_LARGE = _Rule(4031, 431, "headers_too_large", "the size of a request is bounded", "send fewer headers")
    INTERNAL = _Rule(
        4500, 500, "internal", "a node has an answer to everything; this is a bug", "report what was asked"
    )
    UNAVAILABLE = _Rule(
        4503, 503, "unavailable", "a node that stops, or cannot keep up, says so", "try again in a moment"
    )

    @property
    def code(self) -> int:
        """The error code, from 4000 on."""
        return self.value.code

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.value.status

    @property
    def slug(self) -> str:
        """The stable name."""
        return self.value.slug


SHOWN_CHARACTERS_MAX: Final = 80
"""Characters of a wrong value that an error repeats."""
NOT_THERE: Final = frozenset(
    {
        RejectionReason.NOT_FOUND,
        RejectionReason.ACTOR_NOT_FOUND,
        RejectionReason.ERR_TARGET_NOT_FOUND,
        RejectionReason.ERR_TIMER_NOT_FOUND,
    }
)
"""Rules of the chain that say that something is not there."""


class HttpError(TrailbossError):
    """A request that is not answered.

    Attributes:
        reason: Why.
        what: What was asked, with the offending value.
        headers: Headers that the answer has besides.
        context: The facts, by name.
    """

    def __init__(
        self, reason: HttpReason, what: str, *, headers: Mapping[str, str] | None = None, **context: Fact
    ) -> None:
        super().__init__(reason, what)
        self.reason = reason
        self.what = what
        self.headers = dict(headers or {})
        self.context = context

    def __str__(self) -> str:
        return str(self.error())

    def error(self) -> ErrorObject:
        """Return the refusal in the shape that receipts have too."""
        rule = self.reason.value
        return ErrorObject(rule.code, rule.slug, self.what, rule.why, rule.fix, dict(self.context))


def malformed(place: str, name: str, value: object, rule: str) -> HttpError:
    """Return the refusal of a value of the wrong form.

    Args:
        place: ``path``, ``query`` or ``body``.
        name: Of the parameter.
        value: As given.
        rule: What it must be.
    """
    what = f"{place} parameter {name} is {shown(value)}, it must be {rule}"
    return HttpError(HttpReason.BAD_REQUEST, what, parameter=name, place=place, value=clipped(value), rule=rule)


def invalid(name: str, value: object, rule: str) -> HttpError:
    """Return the refusal of a well-formed value that a rule forbids."""
    what = f"{name} is {value}, it must be {rule}"
    return HttpError(HttpReason.INVALID_VALUE, what, parameter=name, value=clipped(value), rule=rule)


def shown(value: object) -> str:
    """Return a value as a message repeats it: cut off, and in characters that any JSON can carry."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list):
        return f"a list of {len(value)} values"
    if isinstance(value, dict):
        return f"an object of {len(value)} members"
    return ascii(value) if len(str(value)) <= SHOWN_CHARACTERS_MAX else f"{ascii(value)[:SHOWN_CHARACTERS_MAX]}…"


def clipped(value: object) -> str:
    """Return a value as the context of an error has it: text as it is, cut off."""
    return value[:SHOWN_CHARACTERS_MAX] if isinstance(value, str) else shown(value)


def status_of(rejection: Rejection) -> int:
    """Return the HTTP status of a refusal by the chain."""
    reason = HttpReason.NOT_FOUND if rejection.reason in NOT_THERE else HttpReason.INVALID_VALUE
    return reason.status


def error_body(error: ErrorObject) -> bytes:
    """Return the body of an answer that refuses."""
    return encode_json({"error": error})


def encode_json(value: object) -> bytes:
    """Return a value as the body of an answer; see `to_json_value`.

    Programs of actors may say text that UTF-8 cannot carry: it is written with escapes.
    """
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
