"""What the studies of the lane's order share: a small lane at a fixed price, and its contenders."""

from collections.abc import Mapping, Sequence
from typing import Final

from trailboss.simulator.agents.base import AgentRow
from trailboss.simulator.agents.contenders import CYCLES
from trailboss.simulator.ground import Ground
from trailboss.simulator.scenario import Scenario

BASEFEE: Final = 1_000  # of the lane, always: base units a cycle
TIP: Final = 1_000  # base units a cycle, of all who pay the same
LANE_TEXT: Final = """The lane holds {fires} fires of 50,000 cycles a block in place of 40, so that runs are short.
Its basefee is held at the floor of 1,000 base units a cycle: all timers can pay it, and nothing but tips and W orders
them."""


def contest(seed: int, agents: Sequence[AgentRow], fires: int, params: Mapping[str, int]) -> Ground:
    """Return a ground of agents in a lane of so many fires a block, whose basefee stays at its floor."""
    small = {
        "timers.lane_cycles_per_block": fires * CYCLES,
        "timers.max_cycles_per_fire": CYCLES,
        "lane.max_cycles_per_fire": CYCLES,
        "lane.basefee_min": BASEFEE,
        "lane.basefee_max": BASEFEE,
    }
    rows: tuple[AgentRow, ...] = tuple(agents)
    return Scenario(name="contest", blocks=1, agents=rows, seed=seed, params={**small, **params}).ground()  # type: ignore[arg-type]


def actors_of(ground: Ground, names: Sequence[str]) -> list[int]:
    """Return the numbers of all actors of the agents with a name, or with that name and a number."""
    return [
        actor
        for agent in ground.agents
        if any(agent.name == name or agent.name.startswith(f"{name} ") for name in names)
        for actor in agent.actors
    ]
