"""A chain whose process is killed at any instruction opens again where it stood."""

import pytest

from tests.faults.chain_crash import KILLS_EACH, crash


@pytest.mark.slow
@pytest.mark.spec("Q-05", "F-83")
@pytest.mark.parametrize("seed", range(4))
def test_chain_opens_at_its_last_acknowledged_block_when_its_writer_is_killed(seed: int) -> None:
    """A hundred kills in the middle of blocks, flushes, reorganizations and openings; `make crash` has 2,000."""
    outcomes = crash(KILLS_EACH, seed)
    assert outcomes.kills == KILLS_EACH
    assert outcomes.acknowledged + outcomes.ahead == KILLS_EACH
    assert outcomes.blocks > 0
