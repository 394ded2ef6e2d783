"""Going back, going fast and going elsewhere lead to the same blocks."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.auction_histories import auction_histories
from tests.model.globalbox_histories import globalbox_histories
from tests.model.histories import History, histories
from tests.model.lane_histories import lane_histories
from tests.model.session import Session

SHARE = settings.default.max_examples * 3 // 10
"""Whole chains are slow examples: a third of what the profile asks for, or a little less."""

HISTORIES = st.one_of(histories(), lane_histories(), auction_histories(), globalbox_histories())

PROGRAM = """
from tests.model.hunt import MADE
from tests.model.histories import seeded
from tests.model.session import Session

for random_history in [made(seeded(seed)) for made in MADE.values() for seed in range(5)]:
    session = Session(random_history)
    session.play(random_history.blocks)
    print(session.chain.head.hash, session.chain.state_root)
"""


@pytest.mark.spec("F-80", "F-83")
@given(HISTORIES, st.one_of(histories(blocks_max=6), lane_histories(blocks_max=6)), st.data())
@settings(max_examples=SHARE)
def test_blocks_are_the_same_when_a_branch_was_built_and_dropped(
    trunk: History, branch: History, data: st.DataObject
) -> None:
    """A chain that took a branch and went back continues with the hashes of one that never left the trunk."""
    fork = data.draw(st.integers(1, len(trunk.blocks)))
    straight, wandering = Session(trunk), Session(trunk)
    straight.play(trunk.blocks)
    wandering.play(trunk.blocks[:fork])
    wandering.branch(branch.blocks[1:])
    wandering.play(trunk.blocks[fork:])
    assert wandering.hashes == straight.hashes


@pytest.mark.spec("F-83")
@given(HISTORIES)
@settings(max_examples=SHARE)
def test_blocks_are_the_same_when_the_whole_chain_is_replayed(trunk: History) -> None:
    """After going back to genesis, the same transactions give the same blocks."""
    session = Session(trunk)
    session.branch(trunk.blocks)
    assert session.chain.height == 0
    session.play(trunk.blocks)
    fresh = Session(trunk)
    fresh.play(trunk.blocks)
    assert session.hashes == fresh.hashes


@pytest.mark.spec("F-80")
@given(HISTORIES, st.integers(1, 40))
@settings(max_examples=SHARE)
def test_blocks_are_the_same_when_advanced_or_built_one_by_one(start: History, count: int) -> None:
    """`advance_to` builds the blocks that building without transactions would have built."""
    session = Session(start)
    session.play(start.blocks)
    chain = session.chain
    mark = chain.snapshot()
    advanced = [block.hash for block in chain.advance_to(chain.height + count)]
    root = chain.state_root
    chain.revert(mark)
    assert [chain.build().block.hash for _ in range(count)] == advanced
    assert chain.state_root == root


@pytest.mark.spec("F-80")
def test_roots_are_equal_when_hash_seed_differs(output_under_hash_seed: Callable[[str, int], str]) -> None:
    """Two processes that order sets differently build the same chains."""
    assert output_under_hash_seed(PROGRAM, 1) == output_under_hash_seed(PROGRAM, 2)
