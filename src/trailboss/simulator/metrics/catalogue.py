"""The measures that every study has, and those of single agents."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.ground import Ground
from trailboss.simulator.metrics.base import Measure, merged
from trailboss.simulator.metrics.blocks import BasefeeMeasure, LaneMeasure
from trailboss.simulator.metrics.fairness import FairnessMeasure
from trailboss.simulator.metrics.money import BidMeasure, MoneyMeasure, Offers
from trailboss.simulator.metrics.timers import CountMeasure, DelayMeasure
from trailboss.simulator.metrics.welfare import EfficiencyMeasure, WelfareMeasure
from trailboss.simulator.orders import BlockResult


def standard(ground: Ground) -> list[Measure]:
    """Return the measures that every study has; ``docs/reference/measures.md`` lists their values."""
    return [
        CountMeasure(),
        DelayMeasure(),
        FairnessMeasure(ground.agent_of),
        LaneMeasure(),
        BasefeeMeasure("lane_basefee", lambda view: view.lane_basefee),
        BasefeeMeasure("basefee", lambda view: view.user_basefee),
        MoneyMeasure(),
        BidMeasure(),
        WelfareMeasure(),
        EfficiencyMeasure(),
    ]


def of_agents(ground: Ground, names: Sequence[str]) -> list[Measure]:
    """Return the measures of agents, whose values have names such as ``NAME.late_mean``.

    A name is that of an agent, or that of a row of the scenario, whose agents are then measured as one.

    Raises:
        ConfigurationError: For a name that no agent has.
    """
    return [AgentMeasure(ground, names)]


class AgentMeasure:
    """Measures of the timers of single agents."""

    def __init__(self, ground: Ground, names: Sequence[str]) -> None:
        """See `of_agents`."""
        self._offers = Offers()
        self._numbers = {name: _numbers(ground, name) for name in names}
        self._measures: dict[str, list[Measure]] = {
            name: [CountMeasure(), DelayMeasure(), FairnessMeasure(), BidMeasure(self._offers), WelfareMeasure()]
            for name in names
        }

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        self._offers.see(block)
        for name, numbers in self._numbers.items():
            part = replace(
                block,
                accepted=[plan for plan in block.accepted if plan.agent in numbers],
                fires=[fire for fire in block.fires if fire.plan.agent in numbers],
                endings=[ending for ending in block.endings if ending.plan.agent in numbers],
                refused=[refused for refused in block.refused if refused[0] in numbers],
            )
            for measure in self._measures[name]:
                measure.see(part)

    def values(self) -> dict[str, float]:
        """Return the values of all agents."""
        return {
            f"{name}.{key}": value for name, found in self._measures.items() for key, value in merged(found).items()
        }


def _numbers(ground: Ground, name: str) -> frozenset[int]:
    """Return the numbers of the agent with a name, or of those of a row."""
    names = [agent.name for agent in ground.agents]
    if name in names:
        return frozenset({names.index(name)})
    of_row = re.compile(rf"{re.escape(name)} \d+")
    numbers = frozenset(number for number, each in enumerate(names) if of_row.fullmatch(each))
    if not numbers:
        raise ConfigurationError(f"agents: no agent is called {name!r}; those are {', '.join(names[:10])}")
    return numbers
