"""The OpenAPI description, written from the types that requests are checked against and that answers have.

Decision: D-72, D-97, D-99
"""

import re
import types
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from inspect import cleandoc, getsource
from sys import modules
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from starlette.responses import Response

from trailboss.api.operations import GET, JSON, Operation, Refusal
from trailboss.api.requests import BODY, SHARED, Parameter, type_parts
from trailboss.codec.exact import SUFFIX
from trailboss.primitives.octets import Address, Hash32

Schema = dict[str, Any]
TITLE: Final = "Trailboss"
ABOUT: Final = """
A Cowboy chain and its timers. Amounts are base units, 10⁹ to a CBY; prices are base units a cycle or a cell.
JavaScript rounds integers above 2⁵³ - 1: beside each such member, as `balance`, stands its text, `balance_text`. Bytes
are `0x` and hexadecimal digits; addresses and ids may be given without `0x`. Lists take `offset` and `limit`, and
`total_count` is the number of all entries. Every answer is of one height. Every error is
`{"error": {"code", "slug", "what", "why", "fix", "context"}}`.
"""
TAGS: Final[Mapping[str, str]] = {
    "chain": "Blocks, parameters, and the state of the chain.",
    "accounts": "Accounts and actors.",
    "transactions": "Transactions in blocks, waiting transactions, and submission.",
    "timers": "Scheduled and ended timers, with explanations.",
    "mechanisms": "How blocks choose among due timers.",
    "forecasts": "Costs of timers, and how long balances last.",
    "reading": "Events, proofs, read-only calls, search.",
    "node": "The node itself.",
    "network": "The validators of a network, and what they have signed.",
    "development": "What only `trailboss dev` does.",
    "state": "The state key by key, of a leased view: for programs that read the chain with their own code.",
}
UNIONS: Final = (Union, types.UnionType)
COMPONENTS: Final = "#/components/schemas/{name}"
BASE64: Final = {"type": "string", "contentEncoding": "base64"}
HEX: Final = {"type": "string", "pattern": "^0x([0-9a-f]{2})*$"}
ANSWERED: Final[Mapping[type, Schema]] = {
    Address: {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"},
    Hash32: {"type": "string", "pattern": "^0x[0-9a-f]{64}$"},
}
ASKED: Final[Mapping[type, Schema]] = {
    Address: {"type": "string", "pattern": "^(0[xX])?[0-9a-fA-F]{40}$", "format": "address"},
    Hash32: {"type": "string", "pattern": "^(0[xX])?[0-9a-fA-F]{64}$", "format": "hash32"},
}
EXACT: Final = "ExactText"
EXACT_TEXT: Final = {
    "description": "The integer of the member of that name in decimal digits, where it exceeds 2⁵³ - 1; of a list that "
    "holds one, the list with such text in place of its integers.",
    "anyOf": [{"type": "string", "pattern": "^-?[0-9]+$"}, {"type": "array"}],
}
RESUME: Final = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "Id of the last event that the client received.",
    "schema": {"type": "string"},
}
SHARED_FIELDS: Final = {
    "height": "Height of the last block.",
    "total_count": "Number of all entries.",
    "more": "Whether there are further entries.",
}
"""Meanings of fields that many answers have."""
_FIELD: Final = re.compile(r"    (\w+): .*?(?:  # (.*))?$")
_COMMENT: Final = re.compile(r"    # (.*)$")
_CITES: Final = re.compile(r"\s*(?:Spec|Decision|Source): .*$", re.MULTILINE)
_MARKUP: Final = re.compile(r"``?")
_NONE: Final = re.compile(r"\bNone\b")


def describe(operations: Iterable[Operation]) -> Schema:
    """Return the description of operations."""
    kinds: dict[str, type[Struct]] = {}
    found = tuple(operations)
    paths: Schema = {}
    for operation in found:
        for each in (operation.hints["return"], *operation.refusals.values(), Refusal):
            _gather(each, kinds)
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    _, components = msgspec.json.schema_components(kinds.values(), schema_hook=_answered, ref_template=COMPONENTS)
    for name, component in components.items():
        if name in kinds:
            _describe_record(component, kinds[name])
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": version("trailboss"), "description": " ".join(ABOUT.split())},
        "paths": paths,
        "components": {"schemas": _finished(components) | {EXACT: EXACT_TEXT}},
        "tags": [{"name": name, "description": about} for name, about in TAGS.items()],
    }


def _gather(kind: Any, found: dict[str, type[Struct]]) -> None:
    """Collect the records that a type is made of, by name."""
    for each in type_parts(kind):
        if not isinstance(each, type) or not issubclass(each, Struct):
            continue
        if each.__name__ not in found:
            found[each.__name__] = each
            for hint in get_type_hints(each, include_extras=True).values():
                _gather(hint, found)
        elif found[each.__name__] is not each:
            raise TypeError(f"two records have the name {each.__name__}: {each} and {found[each.__name__]}")


def _operation(operation: Operation) -> Schema:
    summary, description = operation_docs(operation.run)
    found: Schema = {
        "tags": [operation.tag],
        "summary": summary,
        "operationId": operation.name,
        "responses": _responses(operation),
    }
    if description:
        found["description"] = description
    meanings = meanings_of(operation)
    shown = [_parameter(each, meanings) for each in operation.parameters.values() if each.place != BODY]
    if operation.produces != JSON and shown:
        shown.append(RESUME)
    if shown:
        found["parameters"] = shown
    if operation.method != GET:
        found["requestBody"] = _body(operation, meanings)
    return found


def _parameter(parameter: Parameter, meanings: Mapping[str, str]) -> Schema:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.is_required,
        "description": meanings.get(parameter.name, ""),
        "schema": schema_of(parameter),
    }


def schema_of(parameter: Parameter) -> Schema:
    """Return the schema of a parameter, with its default."""
    found = msgspec.json.schema(parameter.kind, schema_hook=_asked)
    several = [each for each in found.get("anyOf", ()) if each != {"type": "null"}]
    schema: Schema = several[0] if len(several) == 1 else found
    return schema if parameter.default is None else schema | {"default": parameter.default}


def _body(operation: Operation, meanings: Mapping[str, str]) -> Schema:
    if operation.body is not None:
        media = operation.body.media
        return {"required": True, "content": {name: {"schema": dict(schema)} for name, schema in media.items()}}
    members = {name: each for name, each in operation.parameters.items() if each.place == BODY}
    required = [name for name, each in members.items() if each.is_required]
    schema: Schema = {
        "type": "object",
        "properties": {
            name: schema_of(each) | {"description": meanings.get(name, "")} for name, each in members.items()
        },
        "additionalProperties": False,
    }
    if required:
        schema["required"] = required
    return {"required": bool(required), "content": {JSON: {"schema": schema}}}


def _responses(operation: Operation) -> Schema:
    answer = {"type": "string"} if operation.produces != JSON else _answer(operation.hints["return"])
    found: Schema = {"200": {"description": "The answer.", "content": {operation.produces: {"schema": answer}}}}
    about: dict[int, list[str]] = {}
    for reason in operation.reasons():
        about.setdefault(reason.status, []).append(f"{reason.slug} ({reason.code}): {reason.why}")
    for status, texts in about.items():
        schema = _answer(operation.refusals.get(status, Refusal))
        found[str(status)] = {"description": f"{'; '.join(texts)}.", "content": {JSON: {"schema": schema}}}
    return found


def _answer(kind: Any) -> Schema:
    """Return the schema of an answer; that it may also be a response says nothing of its form."""
    kinds = get_args(kind) if get_origin(kind) in UNIONS else (kind,)
    shown = [each for each in kinds if each is not Response]
    schemas, _ = msgspec.json.schema_components(shown, schema_hook=_answered, ref_template=COMPONENTS)
    found: Schema = _finished(schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)})
    return found


def _asked(kind: type) -> Schema:
    return dict(ASKED[kind])


def _answered(kind: type) -> Schema:
    return dict(ANSWERED[kind])


def _describe_record(component: Schema, kind: type[Struct]) -> None:
    """Say what a record and its fields mean; answers have all of them, and no others."""
    summary, members = documentation(kind)
    component.pop("title", None)
    component |= {"description": summary, "required": list(component["properties"]), "additionalProperties": False}
    for name, schema in component["properties"].items():
        schema.pop("default", None)
        if name in members:
            schema["description"] = members[name]


def _finished(node: Any) -> Any:
    """Return a schema with bytes as ``0x`` text, and with the texts of integers that JavaScript would round."""
    if isinstance(node, list | tuple):
        return [_finished(each) for each in node]
    if not isinstance(node, dict):
        return node
    if node.items() >= BASE64.items():
        return {**{name: each for name, each in node.items() if name not in BASE64}, **HEX}
    found = {name: _finished(each) for name, each in node.items() if name != "propertyNames"}
    if found.get("type") == "object" and ("properties" in found or "additionalProperties" in found):
        found["patternProperties"] = {f"{SUFFIX}$": {"$ref": COMPONENTS.format(name=EXACT)}}
    return found


# Docstrings, and the comments beside fields and parameters


def documentation(kind: type) -> tuple[str, dict[str, str]]:
    """Return what a record's docstring says of it, and comments of its fields; `SHARED_FIELDS` has the rest."""
    members: dict[str, str] = dict(SHARED_FIELDS)
    for base in reversed(kind.__mro__):
        if issubclass(base, Struct) and base is not Struct:
            # Not the class's own source: `inspect` would parse the module for each, as no other thread may meanwhile.
            source = getsource(modules[base.__module__])
            members |= field_comments(source.partition(f"\nclass {base.__name__}(")[2].partition("\n\n\n")[0])
    return as_prose(cleandoc(kind.__doc__ or "").split("\n\n")[0]), members


def field_comments(source: str) -> dict[str, str]:
    r"""Return the comments of a record's fields: behind each of them, or in whole lines above it.

    >>> field_comments("class A(Struct):\n    size: int  # in bytes\n    # The owner.\n    owner: bytes")
    {'size': 'In bytes.', 'owner': 'The owner.'}
    """
    found: dict[str, str] = {}
    above: list[str] = []
    for line in source.splitlines():
        comment, field = _COMMENT.match(line), _FIELD.match(line)
        if comment:
            above.append(comment[1])
            continue
        words = (field[2] or " ".join(above)) if field else ""
        if field and words:
            text = as_prose(words if words.startswith("`") else f"{words[0].upper()}{words[1:]}")
            found[field[1]] = text if text.endswith(".") else f"{text}."
        above = []
    return found


def operation_docs(run: Callable[..., Any]) -> tuple[str, str]:
    """Return the summary and the description that a function's docstring gives."""
    summary, _, description = cleandoc(run.__doc__ or "").partition("\n\n")
    return as_prose(summary), as_prose(description)


def meanings_of(operation: Operation) -> dict[str, str]:
    """Return what parameters of an operation mean, by name."""
    return SHARED | field_comments(getsource(operation.run).partition(") ->")[0])


def as_prose(text: str) -> str:
    """Return words of a docstring in one line, for readers of JSON.

    >>> as_prose("Height of the block; None for none. See `Block`. Spec: CIP-5 §3.1")
    'Height of the block; null for none. See Block.'
    """
    return " ".join(_NONE.sub("null", _MARKUP.sub("", _CITES.sub("", text))).split())
