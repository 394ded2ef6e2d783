"""Records that say more than those of the chain."""

from typing import Any, TypeVar

from msgspec.structs import fields

Kind = TypeVar("Kind")


def extended(kind: type[Kind], record: Any, **members: object) -> Kind:
    """Return a record of a kind that has the fields of another record, and more.

    Args:
        kind: A dataclass derived from the record's class.
        record: Gives the fields that both have.
        members: Values of the other fields.
    """
    known = {field.name: getattr(record, field.name) for field in fields(record)}
    return kind(**known, **members)
