"""Every kind of value reads what its schema says, and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from trailboss.api.kinds import (
    ADDRESS,
    BLOCK,
    BOOLEAN,
    HASH,
    HEIGHT,
    PREFIX,
    Kind,
    MisreadError,
    choice,
    integer,
    octets,
    structure,
    words,
)
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX

LOWER = "0x" + "ab" * 20
KINDS: dict[str, Kind[Any]] = {
    "height": HEIGHT,
    "limit": integer(1_000, 1),
    "choice": choice("live", "fired"),
    "words": words(8),
    "octets": octets(4),
    "address": ADDRESS,
    "hash": HASH,
    "prefix": PREFIX,
    "boolean": BOOLEAN,
    "block": BLOCK,
    "structure": structure("an object", {"type": "object"}),
}
HOSTILE = (
    "",
    " 1",
    "1 ",
    "+1",
    "-1",
    "01",
    "1_0",
    "1e3",
    "1.0",
    "١",
    "²",
    "0x",
    "0x0",
    "\x00",
    "true ",
    "None",
    "é" * 41,
)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (HEIGHT, "0", 0),
        (HEIGHT, str(U64_MAX), U64_MAX),
        (integer(1_000, 1), "1000", 1_000),
        (choice("live", "fired"), "fired", "fired"),
        (words(8), "tïmer 1", "tïmer 1"),
        (octets(4), "0x", b""),
        (octets(4), "0xDEadbeef", b"\xde\xad\xbe\xef"),
        (ADDRESS, LOWER, Address(b"\xab" * 20)),
        (ADDRESS, LOWER[2:].upper(), Address(b"\xab" * 20)),
        (ADDRESS, str(Address(b"\xab" * 20)), Address(b"\xab" * 20)),
        (HASH, "0X" + "12" * 32, Hash32(b"\x12" * 32)),
        (PREFIX, "0xABc", "abc"),
        (PREFIX, "1", "1"),
        (BOOLEAN, "true", True),
        (BOOLEAN, "false", False),
        (BLOCK, "17", 17),
        (BLOCK, "1" * 64, Hash32(b"\x11" * 32)),
        (BLOCK, "latest", None),
    ],
)
def test_kind_reads_text_when_it_is_of_its_form(kind: Kind[Any], text: str, value: object) -> None:
    """What is well-formed is read, and the schema allows it."""
    assert kind.read_text(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((HEIGHT, text) for text in (*HOSTILE, str(U64_MAX + 1), "9" * 5_000)),
        (integer(1_000, 1), "0"),
        (integer(1_000, 1), "1001"),
        (choice("live", "fired"), "Live"),
        (words(8), ""),
        (words(8), "nine char"),
        (words(8), "a\x1fb"),
        (words(8), "a\x7f"),
        (words(8), "\ud800"),
        (octets(4), "0xabc"),
        (octets(4), "abcd"),
        (octets(4), "0x0102030405"),
        (octets(4), "0x01 02"),
        (ADDRESS, "0x" + "ab" * 19),
        (ADDRESS, "0x" + "ab" * 21),
        (ADDRESS, "0x" + "zz" * 20),
        (ADDRESS, "0x" + "ab " * 20),
        (ADDRESS, "0x" + "aB" * 20),
        (HASH, "12" * 31),
        (HASH, "0x" + "1" * 63),
        (PREFIX, ""),
        (PREFIX, "0x"),
        (PREFIX, "g"),
        (PREFIX, "1" * 65),
        (BOOLEAN, "True"),
        (BOOLEAN, "1"),
        (BLOCK, "-1"),
        (BLOCK, str(U64_MAX + 1)),
        (BLOCK, "newest"),
        (structure("an object", {}), "{}"),
    ],
)
def test_kind_refuses_text_when_it_is_of_another_form(kind: Kind[Any], text: str) -> None:
    """No sign, blank, underscore, digit of another script, exponent or excess gets through."""
    with pytest.raises(MisreadError):
        kind.read_text(text)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.sampled_from(HOSTILE),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
        max_leaves=4,
    )
)
def test_kind_reads_json_exactly_when_its_schema_allows_it(kind: Kind[Any], value: object) -> None:
    """What OpenAPI says of a member is what is accepted, but for the checksums of addresses."""
    allowed = Draft202012Validator(dict(kind.schema)).is_valid(value)
    try:
        kind.read_json(value)
    except MisreadError:
        assert not allowed or kind in (ADDRESS, BLOCK)
    else:
        assert allowed


def test_address_says_what_its_checksum_should_be() -> None:
    """An address mistyped in one letter is told the right one."""
    mistyped = str(Address(b"\xab" * 20)).swapcase()
    with pytest.raises(MisreadError, match="EIP-55"):
        ADDRESS.read_text("0x" + mistyped[2:])
