"""Differences between what a test expects and what happened, in lines for people."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import format_cby
from trailboss.views.labels import labels_in_use
from trailboss.views.records import Event
from trailboss.views.text import clipped, failure_words, words

MONEY: Final = frozenset({"fee_paid", "fee_burned", "tip", "refund", "max_fee_per_cycle", "max_priority_fee_per_cycle"})
"""Fields of records that are base units."""
LINES_MAX: Final = 10  # lines of a list that a message shows


def compared_records(left: Struct, right: Struct) -> list[str]:
    """Return how two records of one type differ, a line for each field, for an assertion of pytest."""
    lines = [f"{left!r} == {right!r}"]
    for name in left.__struct_fields__:
        one, other = getattr(left, name), getattr(right, name)
        # What an event's bytes say is in its data.
        if one == other or name == "raw":
            continue
        if isinstance(one, tuple) and isinstance(other, tuple):
            lines += _listed(name, one, other)
        elif isinstance(one, Mapping) and isinstance(other, Mapping):
            names = [each for each in {**one, **other} if one.get(each, name) != other.get(each, name)]
            lines += (f"  {name}.{each}: {_member(one, each)} != {_member(other, each)}" for each in names)
        else:
            lines.append(f"  {name}: {_field(name, one)} != {_field(name, other)}")
    return lines


def field_lines(expected: Mapping[Any, Any], found: Any) -> Iterator[str]:
    """Yield how the fields of an event differ from those expected, one line each; fields not expected are left out."""
    if not isinstance(found, Mapping):
        yield f"expected the fields {', '.join(map(str, expected))}, was {value_text(found)}"
        return
    for name, value in expected.items():
        if name not in found:
            yield f"{name}: there is none; the fields are {', '.join(map(str, found)) or 'none'}"
        elif found[name] != value:
            yield f"{name}: expected {value_text(value)}, was {value_text(found[name])}"


def value_text(value: Any) -> str:
    """Return a value of an event for people: addresses and ids with their labels, other bytes as text if they are."""
    if isinstance(value, bytes):
        return labels_in_use().short(value) if len(value) in (Address.WIDTH, Hash32.WIDTH) else words(value)
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {value_text(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return repr(value)


def money_text(amount: int) -> str:
    """Return a change of a balance with its sign.

    >>> money_text(-1_500_000_000), money_text(3), money_text(0)
    ('-1.5 CBY', '+0.000000003 CBY', '0 CBY')
    """
    return f"{'+' if amount > 0 else ''}{format_cby(amount)} CBY"


def cut_lines(lines: list[str]) -> list[str]:
    """Return the first lines of a list, and how many more there are."""
    more = len(lines) - LINES_MAX
    return lines if more <= 0 else [*lines[:LINES_MAX], f"… and {more:,} more"]


def _member(fields: Mapping[Any, Any], name: Any) -> str:
    return value_text(fields[name]) if name in fields else "none"


def _listed(name: str, left: tuple[Any, ...], right: tuple[Any, ...]) -> Iterator[str]:
    if len(left) != len(right):
        yield f"  {name}: {len(left)} != {len(right)} of them"
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if one == other:
            continue
        if isinstance(one, Event) and isinstance(other, Event) and one.name == other.name:
            lines = compared_records(one, other)[1:]
            yield from (f"  {name}[{index}] {one.name}:{line[1:]}" for line in lines)
        else:
            yield f"  {name}[{index}]: {one!r} != {other!r}"
        return
    longer = left if len(left) > len(right) else right
    if len(left) != len(right):
        side = "left" if longer is left else "right"
        yield f"  {name}[{min(len(left), len(right))}]: {longer[min(len(left), len(right))]!r} only in the {side} one"


def _field(name: str, value: Any) -> str:
    if name in MONEY and isinstance(value, int):
        return f"{format_cby(value)} CBY"
    if isinstance(value, ErrorObject):
        return failure_words(value)
    if isinstance(value, Struct):
        return clipped(repr(value))
    return value if isinstance(value, str) else value_text(value)
