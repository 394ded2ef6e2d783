"""A mechanism alone does what a whole chain does."""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from tests.simulator.agreement import BLOCKS, MECHANISMS, check_agreement, facts
from tests.simulator.rogues import RULES, rogue_ground
from trailboss.simulator.alone import Alone

SEEDS = 10


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_alone_agrees_with_a_whole_chain(mechanism: str) -> None:
    """Fires, their order, ends, prices and balances are equal in every block."""
    seen = sum((check_agreement(mechanism, seed) for seed in range(SEEDS)), Counter[str]())
    assert seen["fires"] > SEEDS
    assert seen["ended cancelled"]
    assert seen["orders refused"]


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_of_the_lane_that_can_be_turned_on_comes_up(rule: str) -> None:
    """Some of the random scenarios would go otherwise without it, so that what is equal includes its effect."""
    assert any(_outcome(seed) != _outcome(seed, {f"lane.{rule}": RULES[rule][0]}) for seed in range(10 * SEEDS))


def _outcome(seed: int, without: Mapping[str, int] = MappingProxyType({})) -> list[dict[str, object]]:
    ground = rogue_ground("lane", seed)
    world = Alone(replace(ground, overrides={**ground.overrides, **without}))
    return [facts(world.build()) for _ in range(BLOCKS)]
