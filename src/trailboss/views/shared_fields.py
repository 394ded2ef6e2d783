"""Records that have the fields of another record, and others."""

from functools import cache
from typing import Any, TypeVar

Kind = TypeVar("Kind")


def extended(kind: type[Kind], record: Any, /, **members: Any) -> Kind:
    """Return a record of a kind with some members, and of its other fields those that another record has."""
    names = _shared_names(kind, type(record))  # type: ignore[arg-type]  # mypy takes classes for unhashable
    return kind(**({name: getattr(record, name) for name in names} | members))


@cache
def _shared_names(kind: Any, other: Any) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name in other.__struct_fields__)
