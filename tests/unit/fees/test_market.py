"""The basefee rule: towards the target, at most one part in eight, never below the floor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.fees import BasefeeRule, next_basefee

MARKET = BasefeeRule(target=10_000_000, alpha=8, max_change_denominator=8, minimum=10_000, maximum=10**24)


@pytest.mark.spec("E-03")
@pytest.mark.parametrize(
    ("used", "expected"),
    [
        (10_000_000, 80_000),
        (20_000_000, 90_000),
        (0, 70_000),
        (15_000_000, 85_000),
        (5_000_000, 75_000),
        (10**9, 90_000),
    ],
)
def test_basefee_moves_in_proportion_when_use_differs_from_the_target(used: int, expected: int) -> None:
    """Twice the target is plus one eighth, nothing is minus one eighth, the target is no change."""
    assert next_basefee(80_000, used, MARKET) == expected


@pytest.mark.spec("E-03")
def test_basefee_stays_at_the_floor_when_blocks_are_empty() -> None:
    """The floor holds from just above it as well."""
    assert next_basefee(10_000, 0, MARKET) == 10_000
    assert next_basefee(10_001, 0, MARKET) == 10_000


@pytest.mark.spec("E-03", "F-81")
@given(basefee=st.integers(10_000, 10**24), used=st.integers(0, 10**12), more=st.integers(0, 10**12))
def test_basefee_is_bounded_and_monotone_when_use_grows(basefee: int, used: int, more: int) -> None:
    """More use never means a lower fee, and one block never moves it by more than an eighth."""
    after = next_basefee(basefee, used, MARKET)
    assert isinstance(after, int)
    assert max(10_000, basefee - basefee // 8) <= after <= min(10**24, basefee + basefee // 8)
    assert next_basefee(basefee, used + more, MARKET) >= after
