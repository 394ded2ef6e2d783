"""Requests are read strictly: what is not understood is refused by name, and nothing is ignored."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.api.errors import HttpError, encode_json
from trailboss.api.kinds import ADDRESS, HEIGHT, integer, words
from trailboss.api.parsing import (
    Parameter,
    member,
    member_or,
    query,
    query_or,
    read_document,
    read_members,
    read_query,
    required_member,
    required_query,
)
from trailboss.primitives.errors import ErrorObject

LIMIT = query_or("limit", integer(1_000, 1), "Most.", 50)
NAME = query("name", words(20), "Name.")
HEIGHT_AT = required_query("height", HEIGHT, "When.")
QUERY: dict[str, Parameter[Any]] = {"limit": LIMIT, "name": NAME}
BODY: dict[str, Parameter[Any]] = {
    "address": required_member("address", ADDRESS, "Whose."),
    "amount": member_or("amount", integer(), "How much.", 7),
    "until": member("until", HEIGHT, "When."),
}
ADDRESS_TEXT = "0x" + "00" * 20


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        (b"", {"limit": 50, "name": None}),
        (b"limit=3", {"limit": 3, "name": None}),
        (b"name=a+b%20c&limit=1000", {"limit": 1_000, "name": "a b c"}),
        (b"name=%C3%A9", {"limit": 50, "name": "é"}),
        (b"n%61me=x", {"limit": 50, "name": "x"}),
    ],
)
def test_query_is_read_when_it_is_well_formed(raw: bytes, values: dict[str, object]) -> None:
    """Names and values are percent-decoded; what is left out has its default."""
    assert read_query(raw, QUERY) == values


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
        (b"name=%ED%A0%80", "'%ED%A0%80' in the query"),
        (b"name=\xff", r"'\xff' in the query"),
        (b"x" * 8_193, "the query has 8,193 bytes, above 8,192"),
    ],
)
def test_query_is_refused_by_name_when_it_is_not_understood(raw: bytes, said: str) -> None:
    """The message names the parameter, the value and the rule, and so do the facts."""
    with pytest.raises(HttpError) as caught:
        read_query(raw, QUERY)
    assert said in caught.value.what
    assert caught.value.reason.status == 400
    assert "rule" in caught.value.context


def test_query_is_refused_when_a_parameter_is_missing() -> None:
    """What must be there is named."""
    with pytest.raises(HttpError, match="query parameter height is missing; it must be an integer within"):
        read_query(b"", {"height": HEIGHT_AT})


@given(st.binary(max_size=60))
def test_query_is_read_or_refused_whatever_its_bytes_are(raw: bytes) -> None:
    """Nothing but a refusal comes out, and it can be told in JSON."""
    try:
        found: object = read_query(raw, QUERY)
    except HttpError as error:
        found = error.error()
    assert json.loads(encode_json(found)).keys() in ({"limit", "name"}, set(ErrorObject.__struct_fields__))


@pytest.mark.parametrize(
    ("body", "said"),
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
def test_document_is_refused_when_it_is_not_one_strict_object(body: bytes, said: str) -> None:
    """JSON has one meaning or none."""
    with pytest.raises(HttpError) as caught:
        read_document(body)
    assert said in caught.value.what
    assert caught.value.reason.status == 400


def test_document_is_empty_when_the_body_is() -> None:
    """A path whose members may all be left out needs no body."""
    assert read_document(b"") == {}


def test_members_are_read_with_their_defaults() -> None:
    """What is left out has its default, or none; 5.0 is 5."""
    assert read_members({"address": ADDRESS_TEXT}, BODY) == {"address": bytes(20), "amount": 7, "until": None}
    assert read_members({"address": ADDRESS_TEXT, "amount": 5.0}, BODY)["amount"] == 5


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "body parameter address is missing"),
        ({"address": ADDRESS_TEXT, "amuont": 1}, "the body has a member 'amuont'; there are: address, amount, until"),
        ({"address": ADDRESS_TEXT, "\ud800": 1}, r"the body has a member '\ud800'"),
        ({"address": None}, "body parameter address is null"),
        ({"address": ADDRESS_TEXT, "amount": "1"}, "body parameter amount is '1'"),
        ({"address": ADDRESS_TEXT, "amount": True}, "amount is true"),
        ({"address": ADDRESS_TEXT, "amount": 1.5}, "amount is 1.5"),
        ({"address": ADDRESS_TEXT, "amount": 1e300}, "amount is 1e+300"),
        ({"address": ADDRESS_TEXT, "amount": 10**100}, "it must be an integer within 0..="),
        ({"address": ADDRESS_TEXT, "until": [1]}, "until is a list of 1 values"),
        ({"address": {"a": 1}}, "address is an object of 1 members"),
    ],
)
def test_members_are_refused_by_name_when_they_are_not_understood(document: dict[str, object], said: str) -> None:
    """A misspelt member is never ignored, and a value is never guessed at."""
    with pytest.raises(HttpError) as caught:
        read_members(document, BODY)
    assert said in caught.value.what
    # Whatever the client sent can be told back to it.
    assert json.loads(encode_json(caught.value.error()))["code"] == 4000
