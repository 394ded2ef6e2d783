"""A node that is killed at any moment has, when it is started again, all that it has acknowledged."""

import random
from pathlib import Path

import pytest

from tests.faults.node_crash import Life, Outcomes, crash


@pytest.mark.slow
def test_node_has_all_that_it_acknowledged_when_it_is_killed() -> None:
    """A handful of kills under load, of a start and of a restart; `make crash` has a hundred."""
    outcomes = crash(kills=6, seed=7)
    assert outcomes.kills == 6
    assert outcomes.transactions > 0
    assert outcomes.receipts > 0


def test_search_notices_when_an_accepted_transaction_is_gone(tmp_path: Path) -> None:
    """A transaction that no node has ever seen is missed, and so is a receipt that has changed."""
    life = Life(tmp_path / "chain", random.Random(0), Outcomes())
    node = life.start()
    try:
        life.send(node)
        assert node.post("/dev/mine")[0] == 200
        life.check(node)
        assert life.receipts
        shown, life.receipts = life.receipts, {name: {} for name in life.receipts}
        with pytest.raises(AssertionError, match="has changed"):
            life.check(node)
        life.receipts = shown
        life.accepted["0x" + "77" * 32] = None
        with pytest.raises(AssertionError, match="is gone"):
            life.check(node)
    finally:
        assert node.end() == 0
