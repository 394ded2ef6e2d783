"""A chain whose process is killed at any instruction opens again where it stood."""

import shutil
from pathlib import Path

import pytest

from tests.faults.chain_crash import KILLS_EACH, Outcomes, Writer, build_trunk, check, crash


@pytest.mark.slow
@pytest.mark.spec("Q-05", "F-83")
@pytest.mark.parametrize("seed", range(4))
def test_chain_opens_at_its_last_acknowledged_block_when_its_writer_is_killed(seed: int) -> None:
    """A hundred kills in the middle of blocks, flushes, reorganizations and openings; `make crash` has 2,000."""
    outcomes = crash(KILLS_EACH, seed)
    assert outcomes.kills == KILLS_EACH
    assert outcomes.acknowledged + outcomes.ahead == KILLS_EACH
    assert outcomes.blocks > 0


def test_search_notices_when_an_acknowledged_block_is_gone(tmp_path: Path) -> None:
    """A directory put back to an earlier block opens well, and is found out."""
    trunk = build_trunk(0)
    directory, log, earlier = tmp_path / "chain", tmp_path / "log", tmp_path / "earlier"
    writer = Writer(trunk, directory, log, seed=0)
    writer.grow()
    writer.chain.close()
    shutil.copytree(directory, earlier)
    writer = Writer(trunk, directory, log, seed=0)
    writer.grow()
    writer.chain.close()
    check(trunk, directory, log, trunk.hashes[0], Outcomes())
    writer.tell("done", writer.chain.height)
    shutil.rmtree(directory)
    earlier.rename(directory)
    with pytest.raises(AssertionError, match="was acknowledged and is gone"):
        check(trunk, directory, log, trunk.hashes[0], Outcomes())
