"""Open arrivals: timers that come whatever became of those before."""

from collections.abc import Iterable
from typing import Annotated

import numpy as np
from msgspec import Meta

from trailboss.simulator.agents.base import Agent, AgentRow, Draws, Natural, Positive
from trailboss.simulator.orders import Order, Schedule, View

CHUNK = 256  # blocks whose arrivals are drawn at once


class Poisson(AgentRow, frozen=True, kw_only=True, tag="poisson"):
    """Timers that arrive at random, each due some blocks after; a random one of the agent's actors owns each."""

    rate: Annotated[float, Meta(ge=0.0, le=1e6)]  # timers a block, on average
    ahead: Positive = 1  # blocks from its arrival to its height
    gas_limit: Positive = 50_000
    cycles: Positive = 50_000  # that a fire uses
    cells: Natural = 0
    patience: Natural = 0  # blocks by which a timer may be late; 0 for as long as it can
    cap: Natural | None = None
    tip: Natural | None = None

    def problem(self, blocks: int) -> str | None:
        """Refuse fires that use more than they may."""
        del blocks
        return f"cycles = {self.cycles:,} must be at most gas_limit" if self.cycles > self.gas_limit else None

    def agent(self, name: str, actors: range, draws: Draws) -> Agent:
        """Return the agent."""
        return PoissonAgent(self, name, actors, draws("arrivals"))


class PoissonAgent(Agent):
    """See `Poisson`."""

    def __init__(self, row: Poisson, name: str, actors: range, generator: np.random.Generator) -> None:
        super().__init__(name, actors)
        self._row, self._generator = row, generator
        self._counts: list[int] = []

    def orders(self, view: View) -> Iterable[Order]:
        """Return the block's arrivals."""
        if not self._counts:
            self._counts = self._generator.poisson(self._row.rate, CHUNK).tolist()
        row, count = self._row, self._counts.pop()
        owners = self._generator.integers(self.actors.start, self.actors.stop, count).tolist()
        due = view.height + row.ahead
        for owner in owners:
            yield Schedule(
                actor=owner,
                height=due,
                gas_limit=row.gas_limit,
                cycles=row.cycles,
                cells=row.cells,
                cap=row.cap,
                tip=row.tip,
                expires_at=due + row.patience if row.patience else 0,
            )
