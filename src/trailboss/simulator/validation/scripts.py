"""Agents that order what a script says, and the grounds that known results are about: equal timers, one capacity."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from trailboss.simulator.agents.base import AMOUNT_MAX, Agent
from trailboss.simulator.alone import Alone
from trailboss.simulator.ground import Ground
from trailboss.simulator.orders import BlockResult, Order, PlannedTimer, Schedule, View
from trailboss.simulator.scenario import ROOM

GAS: Final = 50_000  # gas limit of every timer
ASKING_GAS: Final = 10_000  # cycles of that which asking the agent takes
PLENTY: Final = 10**9  # a cap above every price
LANE_PRICE: Final = 1_000  # the lane basefee where it is to stay as it is


class Script(Agent):
    """An agent that orders what stands in a script, by height; its bid for a timer is the timer's ``tag``."""

    def __init__(self, actors: range, script: Mapping[int, Sequence[Order]], *, asked: bool = False) -> None:
        super().__init__("script", actors)
        self.asked, self._script = asked, script

    def orders(self, view: View) -> Iterable[Order]:
        """Return what stands in the script."""
        return self._script.get(view.height, ())

    def bid(self, plan: PlannedTimer, view: View) -> tuple[int, int]:
        """Return a cap above every price and the tip of the tag."""
        del view
        return PLENTY, plan.order.tag


def capacity(mechanism: str, timers: int) -> dict[str, int]:
    """Return the parameters under which each block serves so many timers of `GAS` cycles, at a price that stays."""
    cycles = timers * GAS
    lane = {"lane.activation_height": 1, "lane.basefee_max": LANE_PRICE, "lane.basefee_min": LANE_PRICE}
    return {
        **ROOM,
        **{"lane": lane}.get(mechanism, {}),
        "timers.max_cycles_per_fire": GAS,
        "lane.max_cycles_per_fire": GAS,
        "timers.lane_cycles_per_block": cycles,
        "auction.budget_cycles": cycles,
        "auction.gba_cycles_per_block": 10**12,
        "globalbox.max_fires_per_block": timers,
        "globalbox.max_fires_per_target": timers,
    }


def timer(mechanism: str, actor: int, height: int, tip: int, **more: Any) -> Schedule:
    """Return a timer that uses all of `GAS`, and is due at a height, with a tip where the mechanism knows one."""
    return Schedule(actor=actor, height=height, gas_limit=GAS, tag=tip, **ways(mechanism, tip), **more)


def ways(mechanism: str, tip: int) -> dict[str, Any]:
    """Return cycles and fees of a timer; asking its agent is part of the cycles under the auction."""
    return {
        "fifo": {"cycles": GAS},
        "lane": {"cycles": GAS, "cap": PLENTY, "tip": tip},
        "auction": {"cycles": GAS - ASKING_GAS},
        "globalbox": {"cycles": GAS, "tip": tip},
    }[mechanism]


def run(mechanism: str, overrides: Mapping[str, int], agent: Agent, blocks: int) -> list[BlockResult]:
    """Return the blocks of one agent's run."""
    funds = [AMOUNT_MAX] * len(agent.actors)
    alone = Alone(Ground(mechanism=mechanism, preset="mainnet", overrides=overrides, funds=funds, agents=[agent]))
    return [alone.build() for _ in range(blocks)]
