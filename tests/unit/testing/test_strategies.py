"""The strategies of `trailboss.testing.strategies` give what they say."""

import json

import pytest
from cowboy_sdk import codec
from hypothesis import given
from hypothesis import strategies as st

from trailboss.primitives.errors import ConfigurationError
from trailboss.testing import strategies

SOURCE = (
    "def init(payload):\n    pass\n\n\ndef put(payload):\n    pass\n\n\nclass A:\n    def take(self):\n        pass\n"
)


@given(strategies.amounts(7), strategies.blocks(5), strategies.gas_limits(), strategies.tips(9), strategies.accounts(2))
def test_numbers_are_within_their_ranges(amount: int, blocks: int, gas_limit: int, tip: int, account: int) -> None:
    """Each has its bounds, both inclusive but for the count of accounts."""
    assert 0 <= amount <= 7
    assert 1 <= blocks <= 5
    assert 1 <= gas_limit <= 600_000
    assert 0 <= tip <= 9
    assert account in {0, 1}


@given(st.data(), st.integers(0, 100))
def test_heights_are_around_the_present_one(data: st.DataObject, now: int) -> None:
    """From two before it to forty after it, never negative."""
    assert max(0, now - 2) <= data.draw(strategies.heights(now)) <= now + 40


@given(strategies.json_payloads(), strategies.cbor_payloads(), strategies.payloads(30))
def test_payloads_can_be_read_as_actors_read_them(as_json: bytes, as_cbor: bytes, anything: bytes) -> None:
    """By the library's JSON and the SDK's CBOR."""
    json.loads(as_json)
    assert codec.encode(codec.decode(as_cbor)) == as_cbor
    assert isinstance(anything, bytes)


@given(strategies.handlers(SOURCE), strategies.calls(SOURCE, {"take": st.just(b"all")}))
def test_handlers_are_those_of_the_source(handler: str, call: tuple[str, bytes]) -> None:
    """Functions and methods, not the creation call; a payload is one's own where it is given."""
    assert handler in {"put", "take"}
    assert call[0] == "put" or call == ("take", b"all")


def test_source_is_refused_when_it_has_no_such_handler() -> None:
    """With the names that there are."""
    with pytest.raises(ConfigurationError, match="arguments names 'give'; there are: put, take"):
        strategies.calls(SOURCE, {"give": st.just(b"")})
    with pytest.raises(ConfigurationError, match="has no handler to call"):
        strategies.handlers("X = 1\n")
