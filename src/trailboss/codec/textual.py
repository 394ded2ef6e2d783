"""The public JSON shape of a transaction, both ways.

Unlike the public codec, this refuses unknown fields, because a misspelt optional field would silently take its default.
Source: docs/spec/sources.md §8; shapes pinned against the public codec, version 0.6.0. Decision: D-33
"""

import json
from typing import Any, Final, NoReturn

from trailboss.codec.instructions import Transaction
from trailboss.codec.kinds import Kind, check_members
from trailboss.codec.layout import ENVELOPE
from trailboss.primitives.errors import Rejection, RejectionReason

_KINDS: Final[dict[str, Kind]] = dict(ENVELOPE)
_ORIGIN: Final = ("origin_tx_hash", *(f"origin_remaining_{unit}" for unit in ("cycles", "cells", "access")), "metadata")
_LATE: Final = ("signature", "additional_signers", *_ORIGIN)
_MEMBERS: Final[dict[str, str]] = {  # field of the record by member of the JSON object, in the public codec's order
    "from" if name == "sender" else name: name for name in (*(name for name in _KINDS if name not in _LATE), *_LATE)
}
_TIPS: Final = tuple(f"max_priority_fee_per_{unit}" for unit in ("cycle", "cell", "access"))
_OPTIONAL: Final = (*_TIPS, "access_list", *_ORIGIN)
_REQUIRED: Final = tuple(member for member in _MEMBERS if member not in _OPTIONAL)


def to_json(transaction: Transaction) -> dict[str, Any]:
    """Return a transaction as the public JSON object, members in the public codec's order."""
    return {member: _KINDS[field].show(getattr(transaction, field)) for member, field in _MEMBERS.items()}


def to_text(transaction: Transaction) -> str:
    """Return a transaction as compact JSON text, as the public codec prints it."""
    return json.dumps(to_json(transaction), separators=(",", ":"), ensure_ascii=False)


def from_json(document: dict[str, Any] | str | bytes) -> Transaction:
    """Return the transaction that a JSON object, or its text, describes.

    Raises:
        Rejection: ``UNSUPPORTED_INSTRUCTION`` naming an instruction that this chain does not execute; ``OVERFLOW`` or
            ``INVALID_DATA`` with the path of a missing, unknown, repeated or mistyped field.
    """
    value = document if isinstance(document, dict) else _load(document)
    check_members(value, "transaction", _REQUIRED, _OPTIONAL)
    return Transaction(
        **{field: _KINDS[field].parse(value[member], member) for member, field in _MEMBERS.items() if member in value}
    )


def _load(text: str | bytes) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Rejection(RejectionReason.INVALID_DATA, f"the transaction is not JSON: {fault_of(error)}") from None


def fault_of(error: ValueError | RecursionError) -> str:
    """Return why text is not JSON, from the error that reading it raised."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    # For a number Python advises to change a setting of the interpreter.
    return "a number has thousands of digits" if type(error) is ValueError else str(error)


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    unique: dict[str, Any] = {}
    for name, value in members:
        if name in unique:
            raise Rejection(RejectionReason.INVALID_DATA, f"the member {name!r:.80} occurs twice", field=name[:80])
        unique[name] = value
    return unique


def _refuse_constant(name: str) -> NoReturn:
    raise Rejection(RejectionReason.INVALID_DATA, f"the transaction is not JSON: it contains {name}")
