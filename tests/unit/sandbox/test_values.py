"""What a guest sends is read strictly: plain values within bounds, and nothing else."""

import marshal
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.primitives.errors import ErrorObject, RejectionReason
from trailboss.sandbox.guest_layout import NAMED, OBJECT, REFUSAL_NUMBER, TEXT, pack
from trailboss.sandbox.values import (
    DEPTH_MAX,
    ITEMS_MAX,
    Forgery,
    argument,
    read_call,
    read_error,
    read_value,
)

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.binary() | st.text()
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=5)
    ),
    max_leaves=20,
)


def depth(value):
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list | tuple) else 0


@given(VALUES.filter(lambda value: depth(value) <= DEPTH_MAX))
def test_value_is_read_as_it_was_written(value):
    assert read_value(pack(value)) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_a_forgery(octets):
    """No other exception, however the bytes are chosen."""
    try:
        value = read_value(octets)
    except Forgery:
        return
    assert pack(value) is not None


@given(VALUES, st.data())
def test_damaged_value_is_a_value_or_a_forgery(value, data):
    octets = bytearray(pack(value))
    octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    with suppress(Forgery):
        read_value(bytes(octets))


def nested(levels):
    value = 1
    for _ in range(levels):
        value = (value,)
    return value


@pytest.mark.parametrize(
    "octets",
    [
        pack(nested(DEPTH_MAX + 1)),
        pack([0] * (ITEMS_MAX + 1)),
        pack([[0] * 2_000] * 3),
        pack({b"name": 1}),
        pack(1 << 2**21),
        pack(1) + b"N",
        pack(b"abc")[:-1],
        b"",
        b"(\xff\xff\xff\xff",
        b"s\xff\xff\xff\x7f",
        b"u\x01\x00\x00\x00\xff",
        b"l\x01\x00\x00\x00\xff\xff",
        b"l\xff\xff\xff\x7f",
        marshal.dumps(compile("1", "x", "exec"), 2),
        marshal.dumps({1, 2}, 2),
        marshal.dumps(1j, 2),
        marshal.dumps(..., 2),
    ],
    ids=lambda octets: octets[:8].hex(),
)
def test_value_is_refused_when_no_honest_guest_sends_it(octets):
    with pytest.raises(Forgery):
        read_value(octets)


NUMBERS = st.integers(-(2**31), 2**31 - 1)
CALLS = st.tuples(
    NUMBERS,
    st.lists(VALUES, max_size=4).map(tuple).filter(lambda value: depth(value) < DEPTH_MAX),
    st.dictionaries(st.text(), PLAIN, max_size=3),
    st.integers(),
)


@given(CALLS)
def test_host_call_is_read_as_it_was_written(call):
    number, positional, named, used = read_call(pack(call))
    assert (number, tuple(positional), named, used) == call


@given(CALLS.map(pack), st.data())
def test_damaged_host_call_is_what_the_value_says_or_a_forgery(octets, data):
    at = data.draw(st.integers(0, len(octets) - 1))
    octets = octets[:at] + data.draw(st.binary(max_size=2)) + octets[at + 1 :]
    with suppress(Forgery):
        number, positional, named, used = read_call(octets)
        # By their texts, since a damaged float can be no number.
        assert repr(read_value(octets)) == repr((number, tuple(positional), named, used))


def test_described_argument_has_the_type_name_alone():
    assert (type(argument((TEXT, "Name", "x"))).__name__, argument((TEXT, "Name", "x"))) == ("Name", "x")
    assert type(argument((OBJECT, "Thing", None))).__name__ == "Thing"
    assert argument((NAMED, "function", "go")).__name__ == "go"


@pytest.mark.parametrize(
    "described", [(TEXT, "Name", b"x"), (9, "Name", "x"), (TEXT, 1, "x"), (TEXT, "Name"), (), {"a": 1}], ids=repr
)
def test_argument_is_refused_when_it_is_described_wrongly(described):
    with pytest.raises(Forgery):
        argument(described)


def fields(slug="pvm_error", what="x", **facts):
    return (1, slug, what, "why", "fix", facts)


def test_error_of_the_engine_keeps_its_words_and_gets_its_own_code():
    error = read_error(fields(exception_type="ValueError"), [])

    assert (error.code, error.what, error.context) == (
        RejectionReason.PVM_ERROR.code,
        "x",
        {"exception_type": "ValueError"},
    )


def test_error_is_the_chains_refusal_when_it_repeats_one():
    """A guest cannot change the words of a refusal, only add where it was not caught."""
    refused = ErrorObject(1203, "not_found", "the chain's words", "why", "fix", {"call": "x"})
    error = read_error(fields("not_found", "other words", traceback="line 1", **{REFUSAL_NUMBER: 0}), [refused])

    assert (error.what, error.context) == ("the chain's words", {"traceback": "line 1"})


@pytest.mark.parametrize(
    "forged",
    [
        fields("insufficient_balance"),
        fields("no_such_reason"),
        fields(what="x" * 100_000),
        fields(**{REFUSAL_NUMBER: 0}),
        fields(**{REFUSAL_NUMBER: "0"}),
        fields(fact=[1]),
        (1, "pvm_error", "x", "why", "fix"),
        None,
    ],
    ids=lambda value: str(value)[:40],
)
def test_error_is_refused_when_only_the_chain_gives_it_or_it_has_another_form(forged):
    with pytest.raises(Forgery):
        read_error(forged, [])
