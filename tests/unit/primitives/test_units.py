"""Ranges are checked where values enter."""

import pytest

from trailboss.primitives.errors import Rejection
from trailboss.primitives.units import U64_MAX, U128_MAX, check_range


@pytest.mark.parametrize("value", [0, 1, U64_MAX])
def test_range_returns_the_value_when_it_fits(value: int) -> None:
    """Both edges are within."""
    assert check_range("height", value, U64_MAX) == value


@pytest.mark.parametrize("value", [-1, U64_MAX + 1])
def test_range_refuses_when_the_value_lies_outside(value: int) -> None:
    """One beyond an edge names value and range."""
    with pytest.raises(Rejection) as refusal:
        check_range("height", value, U64_MAX)
    assert refusal.value.what == f"height is {value}, outside 0..={U64_MAX}"


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_range_refuses_when_the_value_is_no_integer(value: object) -> None:
    """Booleans and floats are not numbers here."""
    with pytest.raises(Rejection, match="height must be an integer"):
        check_range("height", value, U64_MAX)


def test_range_refuses_when_the_value_is_too_wide_to_print() -> None:
    """Python refuses to print an integer of 10,000 digits; the refusal must not fail on it."""
    with pytest.raises(Rejection, match="amount is an integer of 33220 bits"):
        check_range("amount", 10**10_000, U128_MAX)
