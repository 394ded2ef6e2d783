"""Requests are read strictly: what is not understood is refused by name, and nothing is ignored."""

import json
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator
from msgspec import Struct

from trailboss.api.errors import HttpError, encode_json
from trailboss.api.openapi import schema_of
from trailboss.api.requests import (
    BODY,
    QUERY,
    U64,
    BlockName,
    Prefix,
    Reader,
    choice,
    integer,
    octets,
    parameters_of,
    read_document,
    text,
)
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX

LOWER = "0x" + "ab" * 20
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


class Listed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, integer(1_000, 1)] = 50
    name: Annotated[str, text(20)] | None = None


class Given(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    address: Address
    amount: U64 = 7
    until: U64 | None = None


class Every(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    height: U64 = 0
    limit: Annotated[int, integer(1_000, 1)] = 1
    word: Annotated[str, choice("live", "fired")] = "live"
    words: Annotated[str, text(8)] = "a"
    digits: Annotated[str, octets(4)] = "0x"
    address: Address | None = None
    hash: Hash32 | None = None
    prefix: Prefix = "1"
    block: BlockName = "latest"
    flag: bool = False


def query(asked: type[Struct], raw: bytes) -> Any:
    """Return what a query asks for."""
    return Reader(asked, parameters_of(asked, "/", QUERY)).read({}, raw)


def body(asked: type[Struct], document: dict[str, Any]) -> Any:
    """Return what a JSON body asks for."""
    return Reader(asked, parameters_of(asked, "/", BODY)).read({}, b"", document)


@pytest.mark.parametrize(
    ("raw", "limit", "name"),
    [
        (b"", 50, None),
        (b"limit=3", 3, None),
        (b"name=a+b%20c&limit=1000", 1_000, "a b c"),
        (b"name=%C3%A9", 50, "é"),
        (b"n%61me=x", 50, "x"),
    ],
)
def test_query_is_read_when_it_is_well_formed(raw: bytes, limit: int, name: str | None) -> None:
    """Names and values are percent-decoded; what is left out has its default."""
    assert query(Listed, raw) == {"limit": limit, "name": name}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"limits=3", "there is no query parameter 'limits'; this path has: limit, name"),
        (b"limit=3&limit=3", "query parameter limit stands twice"),
        (b"limit=-1", "query parameter limit is '-1', it must be an integer within 1..=1000"),
        (b"limit=", "limit is ''"),
        (b"limit", "limit is ''"),
        (b"&", "there is no query parameter ''"),
        (b"limit=3&", "there is no query parameter ''"),
        (b"limit=%D9%A3", r"limit is '\u0663'"),
        (b"name=%zz", "'%zz' in the query is not percent-encoded UTF-8"),
        (b"name=%", "'%' in the query"),
        (b"name=%ff", "'%ff' in the query is not percent-encoded UTF-8"),
        (b"name=%00", r"name is '\x00'"),
        (b"name=a%0Ab", r"name is 'a\nb'"),
        (b"name=a%0A", r"name is 'a\n'"),
        (b"name=%ED%A0%80", "'%ED%A0%80' in the query"),
        (b"name=\xff", r"'\xff' in the query"),
        (b"x" * 8_193, "the query has 8,193 bytes, above 8,192"),
    ],
)
def test_query_is_refused_by_name_when_it_is_not_understood(raw: bytes, said: str) -> None:
    """The message names the parameter, the value and the rule, and so do the facts."""
    with pytest.raises(HttpError) as caught:
        query(Listed, raw)
    assert said in caught.value.what
    assert caught.value.reason.status == 400
    assert "rule" in caught.value.context


def test_query_is_refused_when_a_parameter_is_missing() -> None:
    """What must be there is named."""
    with pytest.raises(HttpError, match="query parameter address is missing"):
        query(Given, b"amount=1")


@given(st.binary(max_size=60))
def test_query_is_read_or_refused_whatever_its_bytes_are(raw: bytes) -> None:
    """Nothing but a refusal comes out, and it can be written as JSON."""
    try:
        found: object = query(Listed, raw)
    except HttpError as error:
        found = error.error()
    assert json.loads(encode_json(found)).keys() in ({"limit", "name"}, set(ErrorObject.__struct_fields__))


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        *(("height", each) for each in (*HOSTILE, str(U64_MAX + 1), "9" * 2_000)),
        ("limit", "0"),
        ("limit", "1001"),
        ("word", "Live"),
        ("words", "nine char"),
        ("words", "a\x7f"),
        ("digits", "0xabc"),
        ("digits", "abcd"),
        ("digits", "0x0102030405"),
        ("digits", "0x01 02"),
        ("address", "0x" + "ab" * 19),
        ("address", "0x" + "ab" * 21),
        ("address", "0x" + "zz" * 20),
        ("address", "0x" + "ab " * 20),
        ("address", "0x" + "aB" * 20),
        ("hash", "12" * 31),
        ("hash", "0x" + "1" * 63),
        ("prefix", ""),
        ("prefix", "g"),
        ("prefix", "1" * 65),
        ("block", "-1"),
        ("block", "newest"),
        ("block", "latest\n"),
    ],
)
def test_text_is_refused_when_it_is_of_another_form(name: str, raw: str) -> None:
    """No sign, blank, underscore, digit of another script, exponent or excess is accepted."""
    with pytest.raises(HttpError) as caught:
        query(Every, f"{name}=".encode() + b"".join(b"%%%02x" % each for each in raw.encode()))
    assert caught.value.context["parameter"] == name


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("height", str(U64_MAX), U64_MAX),
        ("word", "fired", "fired"),
        ("digits", "0xDEadbeef", "0xDEadbeef"),
        ("address", LOWER, Address(b"\xab" * 20)),
        ("address", LOWER[2:].upper(), Address(b"\xab" * 20)),
        ("address", str(Address(b"\xab" * 20)), Address(b"\xab" * 20)),
        ("hash", "0X" + "12" * 32, Hash32(b"\x12" * 32)),
        ("prefix", "0xABc", "0xABc"),
        ("block", "17", "17"),
        ("block", "1" * 64, "1" * 64),
    ],
)
def test_text_is_read_when_it_is_of_its_form(name: str, raw: str, value: object) -> None:
    """What the schema allows is read."""
    assert query(Every, f"{name}={raw}".encode())[name] == value


@pytest.mark.parametrize("name", Every.__struct_fields__)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.sampled_from(HOSTILE),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
        max_leaves=4,
    )
)
def test_member_is_read_exactly_when_its_schema_allows_it(name: str, value: object) -> None:
    """What OpenAPI says of a member is what is accepted, but for control characters and the checksums of addresses."""
    allowed = Draft202012Validator(schema_of(parameters_of(Every, "/", BODY)[name])).is_valid(value)
    try:
        body(Every, {name: value})
    except HttpError:
        assert not allowed or name in ("address", "block", "prefix")
    else:
        assert allowed


def test_address_is_refused_with_the_right_checksum() -> None:
    """An address mistyped in one letter is answered with the right one."""
    mistyped = str(Address(b"\xab" * 20)).swapcase()
    with pytest.raises(HttpError, match="EIP-55"):
        query(Every, f"address=0x{mistyped[2:]}".encode())


@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (b"[]", "the body is a list of 0 values, it must be a JSON object"),
        (b"1", "the body is 1, it must be a JSON object"),
        (b'"' + b"x" * 100 + b'"', "…, it must be a JSON object"),
        (b"{", "the body is not JSON: "),
        (b'{"a":1,"a":2}', "the member 'a' stands twice"),
        (b'{"x":{"a":1,"a":2}}', "the member 'a' stands twice"),
        (b'{"a":NaN}', "NaN is no number of JSON"),
        (b'{"a":-Infinity}', "-Infinity is no number of JSON"),
        (b'{"a":' + b"9" * 5_000 + b"}", "the body is not JSON: a number has thousands of digits"),
        (b"[" * 100_000, "it is nested too deep"),
        (b'{"a":' * 100_000, "it is nested too deep"),
        (b"\xff\xfe{\x00}\x00", "the body is not JSON: 'utf-8' codec"),
        (b"\xef\xbb\xbf{}", "the body is not JSON: "),
        (b'{"a":"\x00"}', "the body is not JSON: "),
        (b"{} {}", "the body is not JSON: "),
    ],
)
def test_document_is_refused_when_it_is_not_one_strict_object(octets: bytes, said: str) -> None:
    """JSON has one meaning or none."""
    with pytest.raises(HttpError) as caught:
        read_document(octets)
    assert said in caught.value.what
    assert caught.value.reason.status == 400


def test_members_are_read_with_their_defaults() -> None:
    """What is left out has its default, or none; 5.0 is 5; an empty body has no members."""
    assert body(Given, {"address": LOWER}) == {"address": Address(b"\xab" * 20), "amount": 7, "until": None}
    assert body(Given, {"address": LOWER, "amount": 5.0})["amount"] == 5
    assert read_document(b"") == {}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "body parameter address is missing"),
        ({"address": LOWER, "amuont": 1}, "the body has a member 'amuont'; there are: address, amount, until"),
        ({"address": LOWER, "\ud800": 1}, r"the body has a member '\ud800'"),
        ({"address": None}, "body parameter address is null"),
        ({"address": LOWER, "until": None}, "body parameter until is null"),
        ({"address": LOWER, "amount": "1"}, "body parameter amount is '1'"),
        ({"address": LOWER, "amount": True}, "amount is true"),
        ({"address": LOWER, "amount": 1.5}, "amount is 1.5"),
        ({"address": LOWER, "amount": 1e300}, "amount is 1"),
        ({"address": LOWER, "amount": 10**100}, "it must be an integer within 0..="),
        ({"address": LOWER, "until": [1]}, "until is a list of 1 values"),
        ({"address": {"a": 1}}, "address is an object of 1 members"),
    ],
)
def test_members_are_refused_by_name_when_they_are_not_understood(document: dict[str, object], said: str) -> None:
    """A misspelt member is never ignored, and a value is never guessed."""
    with pytest.raises(HttpError) as caught:
        body(Given, document)
    assert said in caught.value.what
    # Whatever the client sent can be written as JSON.
    assert json.loads(encode_json(caught.value.error()))["code"] == 4000
