"""Contenders: they always want as many timers as they are given, so that what they get follows from the order."""

from collections.abc import Iterable
from itertools import cycle
from typing import Annotated, Final

import numpy as np
from msgspec import Meta

from trailboss.simulator.agents.base import AMOUNT_MAX, Agent, AgentRow, Draws, Natural, Positive
from trailboss.simulator.orders import Fire, Order, Schedule, View

CYCLES: Final = 50_000  # that a fire may use, and uses
Gap = Annotated[float, Meta(ge=2.0, le=1e6)]
"""Mean blocks from a fire to the next height; the transaction that schedules it comes in the block after the fire."""


class Contender(AgentRow, frozen=True, kw_only=True, tag="contender"):
    """Timers that are always there: each fire is followed by a timer of the agent's next actor in turn."""

    timers: Positive = 1
    gap: Gap = 2.0  # drawn from a geometric distribution
    tip: Natural = 0
    cap: Natural = AMOUNT_MAX
    since: Positive = 1  # height from which it schedules
    until: Natural = 0  # height from which it schedules no more; 0 for never
    changes: Natural = 0  # height from which ``gap_after`` holds; 0 for never
    gap_after: Gap = 2.0
    bursts: Natural = (
        0  # blocks from the beginning of a burst to the next; 0 for none. Gaps are counted in bursts only.
    )
    burst: Natural = 0  # blocks of each burst

    def problem(self, blocks: int) -> str | None:
        """Refuse a burst that does not fit between two."""
        del blocks
        if self.bursts and not 1 <= self.burst <= self.bursts:
            return f"burst = {self.burst:,} must be from 1 to bursts, {self.bursts:,}"
        return None

    def agent(self, name: str, actors: range, draws: Draws) -> Agent:
        """Return the agent."""
        return ContenderAgent(self, name, actors, draws("gaps"))


class ContenderAgent(Agent):
    """See `Contender`."""

    def __init__(self, row: Contender, name: str, actors: range, generator: np.random.Generator) -> None:
        super().__init__(name, actors)
        self._row, self._generator = row, generator
        self._owners = cycle(actors)
        self._free = row.timers  # timers that it wants and does not have

    def orders(self, view: View) -> Iterable[Order]:
        """Return a timer for each that it wants and does not have."""
        row, height = self._row, view.height
        if not self._free or height < row.since or (row.until and height >= row.until):
            return
        gap = row.gap_after if row.changes and height >= row.changes else row.gap
        gaps = self._generator.geometric(1 / (gap - 1), self._free).tolist()
        self._free = 0
        for blocks in gaps:
            yield Schedule(
                actor=next(self._owners),
                height=self._due(height, blocks),
                gas_limit=CYCLES,
                cycles=CYCLES,
                cap=row.cap,
                tip=row.tip,
            )

    def _due(self, height: int, blocks: int) -> int:
        """Return the height so many blocks on, of which those between bursts do not count."""
        row = self._row
        if not row.bursts:
            return height + blocks
        number, at = divmod(height, row.bursts)
        number, at = divmod(number * row.burst + min(at, row.burst - 1) + blocks, row.burst)
        return number * row.bursts + at

    def saw_fire(self, fire: Fire, view: View) -> None:
        """Want another timer."""
        del fire, view
        self._free += 1
