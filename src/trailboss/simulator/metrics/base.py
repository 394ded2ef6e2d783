"""The seam: what a measure is, and how a simulation is measured."""

from collections.abc import Sequence
from typing import Protocol

from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.alone import Alone
from trailboss.simulator.orders import BlockResult
from trailboss.simulator.whole import Whole


class Measure(Protocol):
    """Something that is counted block after block; it keeps sums, not blocks."""

    def see(self, block: BlockResult) -> None:
        """Count a block; the blocks come in order."""

    def values(self) -> dict[str, float]:
        """Return what the blocks so far came to, by name."""


def observe(world: Alone | Whole, measures: Sequence[Measure], blocks: int, warm_up: int = 0) -> dict[str, float]:
    """Run a simulation and return the values of all measures over its blocks after the warm-up.

    Raises:
        ConfigurationError: If two measures have a name in common.
    """
    for _ in range(warm_up):
        world.build()
    for _ in range(blocks):
        block = world.build()
        for measure in measures:
            measure.see(block)
    return merged(measures)


def merged(measures: Sequence[Measure]) -> dict[str, float]:
    """Return the values of all measures; `ConfigurationError` if two have a name in common."""
    values = dict[str, float]()
    for measure in measures:
        found = measure.values()
        if twice := sorted(values.keys() & found.keys()):
            raise ConfigurationError(f"measures: {twice[0]} is the name of two; each has its own")
        values |= found
    return values
