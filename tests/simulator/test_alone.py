"""A mechanism alone does what a whole chain does."""

from collections import Counter

import pytest

from tests.simulator.agreement import MECHANISMS, check_agreement

SEEDS = 20


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_alone_agrees_with_a_whole_chain(mechanism: str) -> None:
    """Fires, their order, ends, prices and balances are equal in every block."""
    seen = sum((check_agreement(mechanism, seed) for seed in range(SEEDS)), Counter[str]())
    assert seen["fires"] > SEEDS
    assert seen["ended cancelled"]
    assert seen["orders refused"]
