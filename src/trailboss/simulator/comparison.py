"""One scenario under several mechanisms, with the same seeds for all."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from trailboss.simulator.agents.keeper import KeeperRow
from trailboss.simulator.alone import Alone
from trailboss.simulator.metrics.base import Measure, observe
from trailboss.simulator.metrics.catalogue import of_agents, standard
from trailboss.simulator.metrics.statistics import Interval, interval_of
from trailboss.simulator.orders import BlockResult
from trailboss.simulator.scenario import Scenario
from trailboss.simulator.whole import Whole

Step = Callable[[], object]


class ComparedMechanism(Struct, frozen=True):
    """What a mechanism makes of a scenario."""

    mechanism: str
    values: dict[str, list[float]]  # of each measure, one for each seed, in the order of the seeds

    def interval(self, measure: str) -> Interval:
        """Return the mean of a measure over the seeds, with its 95 % confidence interval."""
        return interval_of(self.values[measure])


class BudgetMeasure:
    """The most cycles that the fires of a block may use. A callback counts the blocks."""

    def __init__(self, on_block: Step) -> None:
        """Call ``on_block`` after each block."""
        self._cycles, self._on_block = 0, on_block

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        self._cycles = max(self._cycles, block.view.lane_cycles_max)
        self._on_block()

    def values(self) -> dict[str, float]:
        """Return the cycles."""
        return {"budget": self._cycles}


def compare(
    scenario: Scenario,
    mechanisms: Sequence[str],
    seeds: int,
    *,
    is_whole: bool = False,
    on_block: Step = lambda: None,
) -> Iterator[ComparedMechanism]:
    """Run a scenario under mechanisms, one after the other, each with the seeds from 1 on.

    All mechanisms draw the same random numbers. The values are those of `standard`, those of each row of the scenario
    with timers under names such as ``NAME.fired``, and ``budget``, the cycles that the fires of a block may use.

    Args:
        scenario: What runs; its own mechanism and seed count for nothing.
        mechanisms: Their names.
        seeds: How many, from 2.
        is_whole: Whether on whole chains, which takes many times as long and gives the same values.
        on_block: Called after each block that is measured.

    Raises:
        InvariantError: If a whole chain loses money or timers.
    """
    for mechanism in mechanisms:
        found = [
            _measured(replace(scenario, mechanism=mechanism, seed=seed), on_block, is_whole=is_whole)
            for seed in range(1, seeds + 1)
        ]
        yield ComparedMechanism(mechanism, {name: [values[name] for values in found] for name in found[0]})


def owners(scenario: Scenario) -> list[str]:
    """Return the names of the rows of a scenario whose agents have timers."""
    return [row.name for row in scenario.agents if isinstance(row, KeeperRow)]


def _measured(scenario: Scenario, on_block: Step, *, is_whole: bool) -> dict[str, float]:
    ground = scenario.ground()
    measures: list[Measure] = [*standard(ground), *of_agents(ground, owners(scenario)), BudgetMeasure(on_block)]
    if not is_whole:
        return observe(Alone(ground), measures, scenario.blocks, scenario.warm_up)
    world = Whole(ground)
    with world.chain:
        values = observe(world, measures, scenario.blocks, scenario.warm_up)
        world.chain.check_invariants()
    return values
