"""A mechanism alone does what a whole chain does."""

import pytest

from tests.simulator.rogues import rogue_ground
from trailboss.simulator.alone import Alone
from trailboss.simulator.orders import BlockResult
from trailboss.simulator.whole import Whole

BLOCKS = 30
SEEDS = 20


def told(result: BlockResult) -> dict[str, object]:
    """Return what of a block must be equal."""
    view = result.view
    return {
        "prices": (view.user_basefee, view.timer_basefee, view.cell_basefee, view.lane_basefee, view.previous_tip),
        "fires": [(fire.plan.timer_id.hex(), *fire[1:]) for fire in result.fires],
        "endings": sorted((ending.plan.timer_id.hex(), ending.end.value) for ending in result.endings),
        "sums": (result.waiting, result.timer_cycles, result.cycles, result.burned, result.tips, len(result.refused)),
    }


def compare(mechanism: str, seed: int) -> int:
    """Run one random scenario both ways, and return its fires."""
    alone, whole = Alone(rogue_ground(mechanism, seed)), Whole(rogue_ground(mechanism, seed))
    fires = 0
    for _ in range(BLOCKS):
        found, expected = alone.build(), whole.build()
        for name, value in told(expected).items():
            assert told(found)[name] == value, f"{mechanism}, seed {seed}, block {whole.height}: {name}"
        assert alone.balances() == whole.balances()
        assert alone.pending() == whole.pending()
        fires += len(expected.fires)
    whole.chain.check_invariants()
    return fires


@pytest.mark.parametrize("mechanism", ["fifo", "lane", "activation", "auction", "globalbox"])
def test_alone_is_the_whole_chain(mechanism: str) -> None:
    """Fires, their order, ends, prices and balances are equal in every block."""
    assert sum(compare(mechanism, seed) for seed in range(SEEDS)) > SEEDS
