"""Errors have one shape, and any of them can be told in JSON."""

import json

import pytest

from trailboss.api.errors import HttpError, HttpReason, clipped, encode_json, invalid, malformed, shown, status_of
from trailboss.primitives.errors import Rejection, RejectionReason


def test_reasons_have_codes_and_slugs_of_their_own() -> None:
    """From 4000 on, apart from those of the chain, each with a status that HTTP knows for it."""
    assert len({reason.code for reason in HttpReason}) == len({reason.slug for reason in HttpReason}) == len(HttpReason)
    assert all(4_000 <= reason.code < 5_000 and 400 <= reason.status < 600 for reason in HttpReason)
    assert not {reason.code for reason in HttpReason} & {reason.code for reason in RejectionReason}


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (RejectionReason.NOT_FOUND, 404),
        (RejectionReason.ACTOR_NOT_FOUND, 404),
        (RejectionReason.INVALID_INPUT, 422),
        (RejectionReason.NONCE_MISMATCH, 422),
    ],
)
def test_status_of_a_rule_of_the_chain(reason: RejectionReason, status: int) -> None:
    """What is not there is 404, what a rule forbids 422."""
    assert status_of(Rejection(reason, "no")) == status


def test_error_names_value_and_rule() -> None:
    """In words and as facts, the value cut off."""
    error = malformed("query", "limit", "x" * 1_000, "an integer").error()
    assert error.what == f"query parameter limit is '{'x' * 79}…, it must be an integer"
    assert error.context == {"parameter": "limit", "place": "query", "value": "x" * 80, "rule": "an integer"}
    assert invalid("last", 4, "at least 5").context == {"parameter": "last", "value": "4", "rule": "at least 5"}
    assert str(HttpError(HttpReason.NOT_FOUND, "no such thing")).startswith("E4004 not_found: no such thing")


@pytest.mark.parametrize(
    ("value", "told", "fact"),
    [
        ("é", r"'\xe9'", "é"),
        ("\ud800", r"'\ud800'", "\ud800"),
        (5, "5", "5"),
        (None, "null", "null"),
        (True, "true", "true"),
        ([1] * 9, "a list of 9 values", "a list of 9 values"),
        ({"a": 1}, "an object of 1 members", "an object of 1 members"),
    ],
)
def test_value_is_repeated_in_characters_that_anything_can_carry(value: object, told: str, fact: str) -> None:
    """Messages are ASCII; facts have the text as it was."""
    assert (shown(value), clipped(value)) == (told, fact)


@pytest.mark.parametrize(
    "value",
    [
        {"what": "half \ud800 and \udc80", "list": ["\ud800", 1], "whole": "é😀"},
        ["\udfff", {"deep": {"deeper": "\ud801"}}],
        "\ud800",
    ],
)
def test_text_that_utf8_cannot_carry_is_escaped(value: object) -> None:
    """It reads back as it was."""
    assert json.loads(encode_json(value)) == value


def test_number_that_json_has_not_is_null_whatever_stands_beside_it() -> None:
    """An actor may emit it, in one block with text that must be escaped."""
    assert json.loads(encode_json([float("nan"), float("inf"), "\ud800"])) == [None, None, "\ud800"]
    assert json.loads(encode_json([float("nan"), 1.5])) == [None, 1.5]
