"""The public JSON shape of a transaction, for OpenAPI. `trailboss.codec.textual` reads and writes it.

Source: docs/spec/sources.md §8
"""

from collections.abc import Mapping
from typing import Any, Final

from trailboss.codec.layout import ACTOR, SYSTEM
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX

SIGNATURE_WIDTH: Final = 32
_BYTE: Final = {"type": "integer", "minimum": 0, "maximum": 255}
_U64: Final = {"type": "integer", "minimum": 0, "maximum": U64_MAX}
_DECIMAL: Final = {"type": "string", "pattern": "^(0|[1-9][0-9]{0,38})$"}
_ADDRESS: Final = {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$", "format": "address"}


def _octets(width: int | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": _BYTE}
    return schema if width is None else schema | {"minItems": width, "maxItems": width}


def _nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [dict(schema), {"type": "null"}]}


def only(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has exactly these members."""
    return {"type": "object", "properties": dict(members), "required": list(members), "additionalProperties": False}


def _pairs(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "array", "prefixItems": [first, second], "minItems": 2, "maxItems": 2}}


INSTRUCTION_RULE: Final = {"rule": "an instruction in the public JSON shape"}
INSTRUCTION_SCHEMA: Final = {
    "description": "One member, the family, whose one member is the instruction by name, as "
    '{"System": {"Transfer": {"to": "0x…", "amount": 5}}}; byte strings are lists of numbers.',
    "oneOf": [
        only({family: only({form.record.__name__: {"type": "object"}})})
        for family, forms in (("System", SYSTEM), ("Actor", ACTOR))
        for form in forms.values()
    ],
}
_SIGNATURE: Final = only({"r": _octets(SIGNATURE_WIDTH), "s": _octets(SIGNATURE_WIDTH), "v": _BYTE})
_REQUIRED: Final[Mapping[str, Mapping[str, Any]]] = {
    "chain_id": _U64,
    "nonce": _U64,
    "instruction": INSTRUCTION_SCHEMA,
    "cycles_limit": _U64,
    "cells_limit": _U64,
    "access_limit": _U64,
    "max_fee_per_cycle": _U64,
    "max_fee_per_cell": _U64,
    "max_fee_per_access": _DECIMAL,
    "from": _ADDRESS,
    "signature": _SIGNATURE,
    "additional_signers": _pairs(_ADDRESS, _SIGNATURE),
}
_OPTIONAL: Final[Mapping[str, Mapping[str, Any]]] = {
    "max_priority_fee_per_cycle": _U64,
    "max_priority_fee_per_cell": _U64,
    "max_priority_fee_per_access": _DECIMAL,
    "access_list": _nullable(_pairs(_ADDRESS, {"type": "array", "items": _octets(Hash32.WIDTH)})),
    "origin_tx_hash": _nullable(_octets(Hash32.WIDTH)),
    "origin_remaining_cycles": _nullable(_U64),
    "origin_remaining_cells": _nullable(_U64),
    "origin_remaining_access": _nullable(_U64),
    "metadata": _octets(),
}
TRANSACTION: Final[Mapping[str, Any]] = {
    "description": "A transaction in the public JSON shape.",
    **only({**_REQUIRED, **_OPTIONAL}),
    "required": list(_REQUIRED),
}
_PLACE: Final[Mapping[str, Mapping[str, Any]]] = {
    "hash": {"type": "string", "pattern": "^0x[0-9a-f]{64}$", "description": "SHA-256 of its wire bytes."},
    "block_height": {"type": ["integer", "null"], "description": "Of the block that holds it; null while it waits."},
    "position": {"type": ["integer", "null"], "description": "Among the block's transactions, from 0; null likewise."},
}
TRANSACTION_ANSWER: Final = {
    "description": "A transaction in the public JSON shape, and its block.",
    **only({**_PLACE, **_REQUIRED, **_OPTIONAL}),
}
