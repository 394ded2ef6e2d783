"""Schemas are written from records, and say what those look like in JSON."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from jsonschema_rs import Draft202012Validator
from msgspec import Struct

from trailboss.api.shapes import COMPONENTS, Schemas, Shape, as_prose, documentation
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.json_values import to_json_value


class Colour(StrEnum):
    """A word."""

    RED = "red"


class Leaf(Struct):
    """A leaf. Decision: D-72.

    Attributes:
        address: Whose. Spec: CIP-5 §3.1
        data: What it is made of; None for
            nothing at all.
    """

    address: Address
    data: bytes | None


class Branch(Leaf):
    """A branch.

    It has leaves.

    Attributes:
        leaves: Its leaves, by `name`.
    """

    leaves: Mapping[str, Leaf | None]
    roots: tuple[Hash32, ...]
    pair: tuple[int, bool]
    colour: Colour
    size: Literal[1, 2]
    free: Any
    raw: Annotated[dict[str, Any], Shape("Raw", {"type": "object", "maxProperties": 1})]
    parents: "list[Branch]"


def make_branch(**members: Any) -> Branch:
    """Return a branch, with some members of one's own."""
    leaf = Leaf(Address(bytes(20)), b"\x00\xff")
    given = {
        "address": Address(b"\xab" * 20),
        "data": None,
        "leaves": {"one": leaf, "none": None},
        "roots": (Hash32(bytes(32)),),
        "pair": (1, True),
        "colour": Colour.RED,
        "size": 2,
        "free": {"any": [1, "x", None]},
        "raw": {},
        "parents": [],
    }
    return Branch(**given | members)


def validator() -> Draft202012Validator:
    """Return what checks a branch's JSON."""
    schemas = Schemas()
    schema = schemas.of(Branch)
    return Draft202012Validator({**schema, "components": {"schemas": schemas.components}})


def test_schema_allows_a_record_as_it_is_written() -> None:
    """Ids, bytes, words, optional members, records within records, and records of the same kind."""
    branch = make_branch(parents=[make_branch()])
    errors = [error.message for error in validator().iter_errors(to_json_value(branch))]
    assert errors == []


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("address", "0xab"),
        ("data", "00"),
        ("leaves", {"one": {"address": "0x" + "00" * 20}}),
        ("leaves", []),
        ("roots", ["0x00"]),
        ("pair", [1]),
        ("pair", ["1", True]),
        ("colour", "blue"),
        ("size", 3),
        ("raw", {"a": 1, "b": 2}),
        ("parents", [{}]),
        ("more", 1),
    ],
)
def test_schema_refuses_what_no_record_is_written_as(member: str, value: object) -> None:
    """A member of another form, and one too many."""
    assert not validator().is_valid(to_json_value(make_branch()) | {member: value})


def test_schema_refuses_a_record_that_lacks_a_member() -> None:
    """All members are always there."""
    document = to_json_value(make_branch())
    for name in document:
        assert not validator().is_valid({other: each for other, each in document.items() if other != name}), name


def test_schema_tells_what_the_docstrings_tell() -> None:
    """Of the record itself and of those that it is derived from, without what only the code's readers look up."""
    summary, members = documentation(Branch)
    assert summary == "A branch."
    assert members == {
        "address": "Whose.",
        "data": "What it is made of; null for nothing at all.",
        "leaves": "Its leaves, by name.",
    }
    schemas = Schemas()
    assert schemas.of(Leaf) == {"$ref": COMPONENTS + "Leaf"}
    leaf = schemas.components["Leaf"]
    assert (leaf["description"], leaf["properties"]["address"]["description"]) == ("A leaf.", "Whose.")


def test_schema_is_refused_for_what_has_no_json_and_for_two_records_of_one_name() -> None:
    """A component has one meaning."""
    schemas = Schemas()
    for kind in (complex, set[int], object):
        with pytest.raises(TypeError, match="has no schema"):
            schemas.of(kind)
    schemas.of(Leaf)
    with pytest.raises(TypeError, match="two records have the name Leaf"):
        schemas.of(type("Leaf", (Struct,), {"__annotations__": {}}))


def test_prose_has_no_markup_of_docstrings() -> None:
    """Backticks and citations are for the code."""
    assert as_prose("A ``word`` of `Thing`.\nSpec: CIP-5 §1\nMore, or None.") == "A word of Thing. More, or null."
