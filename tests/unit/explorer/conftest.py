"""Stand-ins with a scene of each mechanism, and one with the hostile actor, made once: the pages change nothing."""

from collections.abc import Callable, Iterator

import pytest

from tests.unit.explorer.standin import StandIn, stand_in
from tools.explorer_scene import deploy_hostile, open_scene

STEPS = {"fifo": 70, "lane": 90, "auction": 14, "globalbox": 24}


@pytest.fixture(scope="session")
def scenes() -> Iterator[Callable[[str], StandIn]]:
    """Return a function that gives the stand-in of a mechanism."""
    made: dict[str, StandIn] = {}

    def scene(mechanism: str) -> StandIn:
        if mechanism not in made:
            made[mechanism] = stand_in(mechanism, STEPS[mechanism])
        return made[mechanism]

    yield scene
    for each in made.values():
        each.close()


@pytest.fixture(scope="session")
def lane(scenes: Callable[[str], StandIn]) -> StandIn:
    """Return the stand-in of the timer lane."""
    return scenes("lane")


@pytest.fixture(scope="session")
def hostile() -> Iterator[StandIn]:
    """Return a stand-in whose chain has the hostile actor."""
    scene = open_scene("fifo")
    deploy_hostile(scene)
    node = StandIn(scene)
    yield node
    node.close()
