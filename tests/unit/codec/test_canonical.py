"""Canonical CBOR: pinned bytes, and one encoding of each value."""

import enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.codec.canonical import (
    MAX_DEPTH,
    decode_canonical,
    encode_canonical,
    encode_flag,
    encode_integer,
    encode_octets,
    encode_text,
    fields_template,
)
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import Address


def nested(depth: int, inner: object = None) -> object:
    """Return ``inner`` within ``depth`` lists."""
    value = inner
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (None, "f6"),
        (False, "f4"),
        (True, "f5"),
        (0, "00"),
        (23, "17"),
        (24, "1818"),
        (255, "18ff"),
        (256, "190100"),
        (65_535, "19ffff"),
        (65_536, "1a00010000"),
        (2**32 - 1, "1affffffff"),
        (2**32, "1b0000000100000000"),
        (2**64 - 1, "1bffffffffffffffff"),
        (2**64, "c249010000000000000000"),
        (-1, "20"),
        (-24, "37"),
        (-25, "3818"),
        (-(2**64), "3bffffffffffffffff"),
        (-(2**64) - 1, "c349010000000000000000"),
        (1.5, "fb3ff8000000000000"),
        (0.0, "fb0000000000000000"),
        (b"", "40"),
        (b"\x01" * 24, "5818" + "01" * 24),
        ("", "60"),
        ("é", "62c3a9"),
        ("a" * 24, "7818" + "61" * 24),
        ([], "80"),
        ([1, [2]], "82018102"),
        ({}, "a0"),
        ({"bb": 1, "a": 2}, "a2616102626262" + "01"),
        ({10: 1, 100: 2, -1: 3, "z": 4, False: 5}, "a5" + "0a01" + "2003" + "f405" + "186402" + "617a04"),
    ],
)
def test_value_has_its_pinned_bytes(value: Any, encoded: str) -> None:
    """Shortest heads, shortest bignums, 64-bit floats, keys by length and then bytes."""
    assert encode_canonical(value).hex() == encoded
    decoded = decode_canonical(bytes.fromhex(encoded))
    assert decoded == value
    assert type(decoded) is type(value)


def test_encode_takes_subclasses_as_what_they_extend_without_calling_them() -> None:
    """A subclass's own methods play no part in its encoding."""

    class Text(str):
        def encode(self, *_: object) -> bytes:
            raise AssertionError

        def __str__(self) -> str:
            raise AssertionError

    class Number(enum.IntEnum):
        SEVEN = 7

    class Members(dict[str, int]):
        def items(self) -> Any:
            raise AssertionError

    class Items(list[int]):
        def __iter__(self) -> Any:
            raise AssertionError

    class Pair(tuple[int, ...]):
        __slots__ = ()

    class Real(float):
        pass

    value = [
        Text("a"),
        Number.SEVEN,
        Members(b=1),
        Items([1]),
        Pair((2,)),
        Real(1.5),
        Address(bytes(20)),
        bytearray(b"x"),
    ]
    plain = ["a", 7, {"b": 1}, [1], [2], 1.5, bytes(20), b"x"]
    assert encode_canonical(value) == encode_canonical(plain)
    assert encode_canonical({Text("k"): 1}) == encode_canonical({"k": 1})


def test_encode_writes_negative_zero_as_zero() -> None:
    """There is one zero."""
    assert encode_canonical(-0.0) == encode_canonical(0.0)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (float("nan"), "nan is not finite"),
        (float("-inf"), "-inf is not finite"),
        ("\ud800", "text has a lone surrogate"),
        ({1, 2}, "a value of set has no canonical form"),
        (object(), "a value of object has no canonical form"),
        (1j, "a value of complex has no canonical form"),
        ({(1, 2): 3}, "a map key is a tuple; it would decode to a list, which cannot be a key"),
        ({frozenset(): 1}, "a value of frozenset has no canonical form"),
        (nested(MAX_DEPTH + 1), "nesting exceeds 256 levels"),
        (nested(MAX_DEPTH, {}), "nesting exceeds 256 levels"),
        (nested(MAX_DEPTH, 2**64), "nesting exceeds 256 levels"),
    ],
)
def test_encode_refuses_when_a_value_has_no_canonical_form(value: object, rule: str) -> None:
    """What decoding could not give back is not encoded."""
    with pytest.raises(Rejection) as caught:
        encode_canonical(value)
    assert caught.value.reason is RejectionReason.INVALID_DATA
    assert caught.value.what == f"canonical CBOR cannot carry this value: {rule}"


def test_encode_refuses_when_two_keys_become_one() -> None:
    """Keys that differ only as objects would silently lose a member."""

    class Text(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = object.__hash__

    with pytest.raises(Rejection, match="two map keys have the encoding 0x6161"):
        encode_canonical({Text("a"): 1, Text("a"): 2})


def test_depth_limit_is_exact() -> None:
    """256 levels pass both ways; a bignum is a level."""
    for value in (nested(MAX_DEPTH), nested(MAX_DEPTH - 1, 2**64), nested(MAX_DEPTH - 1, {})):
        assert decode_canonical(encode_canonical(value)) == value
    with pytest.raises(Rejection, match="malformed CBOR at offset 256: nesting exceeds 256 levels"):
        decode_canonical(b"\x81" * 256 + b"\x80")
    with pytest.raises(Rejection, match="malformed CBOR at offset 256: nesting exceeds 256 levels"):
        decode_canonical(b"\x81" * 256 + bytes.fromhex("c249010000000000000000"))


@pytest.mark.parametrize("value", [2**4096 - 1, -(2**4096) + 1])
def test_integer_limit_is_exact(value: int) -> None:
    """4,096 bits pass both ways, one more is refused both ways."""
    encoded = encode_canonical(value)
    assert decode_canonical(encoded) == value
    wider = 2 * value
    with pytest.raises(Rejection) as caught:
        encode_canonical(wider)
    assert (caught.value.reason, caught.value.what) == (
        RejectionReason.OVERFLOW,
        "an integer has 4097 bits, above 4096",
    )
    magnitude = abs(wider) - (value < 0)
    raw = magnitude.to_bytes(513, "big")
    with pytest.raises(Rejection, match="malformed CBOR at offset 0: an integer exceeds 4096 bits"):
        decode_canonical(encoded[:1] + b"\x59\x02\x01" + raw)


@pytest.mark.parametrize(
    ("encoded", "offset", "rule"),
    [
        ("", 0, "the bytes end before the value does"),
        ("0000", 1, "1 trailing bytes"),
        ("18", 0, "the bytes end before the value does"),
        ("1817", 0, "23 has a shorter encoding"),
        ("1900ff", 0, "255 has a shorter encoding"),
        ("1a0000ffff", 0, "65535 has a shorter encoding"),
        ("1b00000000ffffffff", 0, "4294967295 has a shorter encoding"),
        ("5817", 0, "23 has a shorter encoding"),
        ("1c", 0, "additional information 28 has no meaning"),
        ("9fff", 0, "indefinite lengths are not canonical"),
        ("5f4100ff", 0, "indefinite lengths are not canonical"),
        ("ff", 0, "simple value 31 is not false, true, null or a 64-bit float"),
        ("f7", 0, "simple value 23 is not false, true, null or a 64-bit float"),
        ("f820", 0, "simple value 24 is not false, true, null or a 64-bit float"),
        ("f93c00", 0, "floats have 64 bits"),
        ("fa3fc00000", 0, "floats have 64 bits"),
        ("fb3ff8", 0, "the bytes end before the value does"),
        ("fb8000000000000000", 0, "negative zero is not canonical"),
        ("fb7ff8000000000000", 0, "nan is not finite"),
        ("fbfff0000000000000", 0, "-inf is not finite"),
        ("4201", 0, "a length of 2 exceeds the 1 bytes left"),
        ("7affffffff", 0, "a length of 4294967295 exceeds the 0 bytes left"),
        ("9affffffff", 0, "a count of 4294967295 exceeds what the 0 bytes left can hold"),
        ("a20000", 0, "a count of 2 exceeds what the 2 bytes left can hold"),
        ("62c328", 1, "text is not valid UTF-8"),
        ("c074", 0, "tag 0 is not one of a bignum, 2 or 3"),
        ("c2", 1, "the bytes end before the value does"),
        ("c200", 1, "a bignum holds a byte string"),
        ("c248ffffffffffffffff", 0, "a bignum has a shorter encoding"),
        ("c24a00010000000000000000", 0, "a bignum has a shorter encoding"),
        ("c2c249010000000000000000", 1, "nesting exceeds 256 levels"),
        ("a2616201616102", 4, "map keys are repeated or out of order"),
        ("a2616101616102", 4, "map keys are repeated or out of order"),
        ("a200010002", 3, "map keys are repeated or out of order"),
        ("a20102f503", 3, "two map keys are equal"),
        ("a18001", 1, "a map key is a container"),
        ("a1a001", 1, "a map key is a container"),
    ],
)
def test_decode_refuses_when_bytes_are_not_canonical(encoded: str, offset: int, rule: str) -> None:
    """Every other encoding is refused, with offset and rule."""
    with pytest.raises(Rejection) as caught:
        decode_canonical(bytes.fromhex(encoded))
    assert caught.value.reason is RejectionReason.INVALID_DATA
    assert caught.value.what == f"malformed CBOR at offset {offset}: {rule}"
    assert caught.value.context == {"offset": offset}


def test_decode_refuses_when_truncated_at_any_offset() -> None:
    """Every proper prefix of an encoding is refused."""
    encoded = encode_canonical({"a": [1, -500, 2**80, None, 1.5], "b": {"text": "é", "bytes": bytes(30)}})
    for length in range(len(encoded)):
        with pytest.raises(Rejection):
            decode_canonical(encoded[:length])


@given(
    number=st.integers(-(2**70), 2**130), octets=st.binary(max_size=300), text=st.text(max_size=300), flag=st.booleans()
)
def test_template_gives_the_encoding_of_the_whole_map(number: int, octets: bytes, text: str, flag: bool) -> None:
    """Values of every kind and width stand in it as in a map that is encoded by itself."""
    template = fields_template("n", "t", "on", "id_of_it")
    filled = template % (encode_integer(number), encode_text(text), encode_flag(flag), encode_octets(octets))
    assert filled == encode_canonical({"n": number, "t": text, "on": flag, "id_of_it": octets})


def test_template_is_refused_when_its_keys_are_not_in_order() -> None:
    """Shorter keys come first; otherwise an event would have an encoding that cannot be read."""
    with pytest.raises(InvariantError, match="fields timer_id, tip are not in canonical order"):
        fields_template("timer_id", "tip")
