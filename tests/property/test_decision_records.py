"""What a block records about its choice among due timers, on chains with other pasts. Decision: D-53."""

import pytest

from tests.model.histories import seeded
from tests.model.hunt import MADE, played
from tests.model.scripted_engine import ScriptedEngine
from trailboss.chain import Chain

HISTORIES = 20


@pytest.mark.parametrize("mechanism", sorted(MADE))
def test_record_is_equal_when_the_mechanism_remembers_nothing(mechanism: str) -> None:
    """A node that has just started records what the others do, and no count is negative."""
    for seed in range(HISTORIES):
        session = played(MADE[mechanism](seeded(seed)))
        straight = session.chain
        forgetful = Chain(straight.genesis, ScriptedEngine(straight.params.costs, session.names.__getitem__))
        for block in straight.blocks[1:]:
            forgetful.forget()
            again = forgetful.build(block.transactions, block.header.timestamp_ms).block
            assert again == block, f"block {block.height} of history {seed}"
            if block.decisions is not None:
                assert min(block.decisions.not_joined, block.decisions.outranked, block.decisions.over_cap) >= 0
