"""A chain in a directory is the chain in memory, however often it is closed, reopened and reorganized."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.auction_histories import auction_histories
from tests.model.globalbox_histories import globalbox_histories
from tests.model.histories import History, histories
from tests.model.lane_histories import lane_histories
from tests.model.session import Session

SHARE = settings.default.max_examples * 2 // 10
"""Every example syncs a disk some dozen times."""

TRUNKS = st.one_of(
    histories(blocks_max=10),
    lane_histories(blocks_max=10),
    auction_histories(blocks_max=10),
    globalbox_histories(blocks_max=10),
)


@pytest.mark.spec("Q-05", "F-83", "F-80")
@given(TRUNKS, lane_histories(blocks_max=6), st.data())
@settings(max_examples=SHARE)
def test_blocks_are_the_same_when_a_chain_on_disk_is_reopened_and_reorganized(
    trunk: History, branch: History, data: st.DataObject
) -> None:
    """Closing and opening anywhere, and branches that are dropped after a restart, leave the hashes of the trunk."""
    straight = Session(trunk)
    straight.play(trunk.blocks)
    with tempfile.TemporaryDirectory() as folder:
        wandering = Session(trunk, Path(folder, "chain"))
        fork = data.draw(st.integers(1, len(trunk.blocks)))
        wandering.play(trunk.blocks[:fork])
        wandering.reopen()
        wandering.branch(branch.blocks[1:], reopened=data.draw(st.booleans()))
        wandering.play(trunk.blocks[fork:])
        assert wandering.hashes == straight.hashes
        wandering.reopen()
        assert list(wandering.chain.blocks) == list(straight.chain.blocks)
        assert wandering.chain.state_root == straight.chain.state_root
        wandering.chain.check_invariants()
        wandering.chain.close()
