"""The OpenAPI description, written from the operations: what reads a parameter also says what it may be.

Decision: D-72
"""

from collections.abc import Iterable, Mapping
from inspect import cleandoc
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from trailboss.api.errors import HttpReason
from trailboss.api.operations import GET, JSON, Operation
from trailboss.api.parsing import Parameter, Place
from trailboss.api.shapes import Schemas, as_prose
from trailboss.primitives.errors import ErrorObject

TITLE: Final = "Trailboss"
ABOUT: Final = """
A Cowboy chain and its timers. Amounts are base units, 10⁹ to a CBY; prices are base units a cycle or a cell.
JavaScript rounds integers above 2⁵³ - 1: beside each such member, as `balance`, stands its text, `balance_text`. Bytes
are `0x` and hexadecimal digits; addresses and ids may be given without `0x`. Lists take `offset` and `limit` and say in
`total_count` how many there are. Every answer is of one height. An error is
`{"error": {"code", "slug", "what", "why", "fix", "context"}}`, whoever refuses.
"""
TAGS: Final[Mapping[str, str]] = {
    "chain": "Blocks, parameters, and where the chain stands.",
    "accounts": "Accounts and actors.",
    "transactions": "What was sent, what waits, and sending.",
    "timers": "What is scheduled, what became of it, and why.",
    "mechanisms": "How blocks choose among due timers.",
    "forecasts": "What it will cost, and how long the money lasts.",
    "reading": "Events, proofs, read-only calls, search.",
    "node": "The node itself.",
    "development": "What only `trailboss dev` does.",
    "state": "The state key by key, of a view that is lent: for programs that read the chain by code of their own.",
}


class Refusal(Struct, frozen=True):
    """A request that is not answered.

    Attributes:
        error: Why.
    """

    error: ErrorObject


def route_options(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    """Return what FastAPI is told of an operation, for its route."""
    summary, _, description = cleandoc(operation.run.__doc__ or "").partition("\n\n")
    return {
        "methods": [operation.method],
        "operation_id": operation.name,
        "name": operation.name,
        "tags": [operation.tag],
        "summary": as_prose(summary),
        "description": as_prose(description) or None,
        "response_description": "The answer.",
        "responses": _responses(operation, schemas),
        "openapi_extra": _request(operation),
    }


def _responses(operation: Operation, schemas: Schemas) -> dict[int | str, dict[str, Any]]:
    answer = {"content": {JSON: {"schema": schemas.of(operation.answers)}}}
    kinds = {status: schemas.of(kind) for status, kind in operation.refusals.items()}
    return {200: answer, **refused(operation.reasons(), schemas, kinds)}


def refused(
    reasons: Iterable[HttpReason], schemas: Schemas, kinds: Mapping[int, dict[str, Any]] = MappingProxyType({})
) -> dict[int | str, dict[str, Any]]:
    """Return what OpenAPI says of refusals, by status.

    Args:
        reasons: Of the refusals.
        schemas: Of the whole description.
        kinds: Schemas of those that say more than the error, by status.
    """
    statuses: dict[int, list[HttpReason]] = {}
    for reason in reasons:
        statuses.setdefault(reason.status, []).append(reason)
    responses: dict[int | str, dict[str, Any]] = {}
    for status, of_status in statuses.items():
        said = "; ".join(f"{reason.slug} ({reason.code}): {reason.value.why}" for reason in of_status)
        schema = kinds.get(status) or schemas.of(Refusal)
        responses[status] = {"description": f"{said}.", "content": {JSON: {"schema": schema}}}
    return responses


def _request(operation: Operation) -> dict[str, Any]:
    shown = [_parameter(each) for each in operation.parameters if each.place is not Place.BODY]
    found: dict[str, Any] = {"parameters": shown} if shown else {}
    if operation.method != GET:
        found["requestBody"] = _body(operation)
    return found


def _parameter(parameter: Parameter[Any]) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place.value,
        "required": parameter.is_required,
        "description": parameter.about,
        "schema": parameter.schema(),
    }


def _body(operation: Operation) -> dict[str, Any]:
    if operation.body is not None:
        media = operation.body.media
        return {"required": True, "content": {name: {"schema": dict(schema)} for name, schema in media.items()}}
    members = operation.within(Place.BODY)
    required = [name for name, each in members.items() if each.is_required]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: each.schema() | {"description": each.about} for name, each in members.items()},
        "additionalProperties": False,
    }
    if required:
        schema["required"] = required
    return {"required": bool(required), "content": {JSON: {"schema": schema}}}
