"""Transactions that have nothing to do with timers, and load blocks beside them."""

from collections.abc import Iterable
from typing import Annotated, Final

from msgspec import Meta

from trailboss.simulator.agents.arrivals import Rate
from trailboss.simulator.agents.base import AMOUNT_MAX, Agent, AgentRow, Draws
from trailboss.simulator.agents.quantities import Quantity, drawn
from trailboss.simulator.orders import Order, View, Work

CYCLES_MIN: Final = 50_000  # cycles of a transaction at least: signature, call and frame are paid of them
CELLS_MIN: Final = 500
CYCLES_MAX: Final = 100_000_000


class UserTraffic(AgentRow, frozen=True, kw_only=True, tag="traffic"):
    """Transactions of users."""

    rate: Rate = 1.0  # transactions a block, on average
    is_random: bool = True  # whether their number is drawn, as for arrivals at random
    cycles: Quantity = 100_000  # of each, 50,000 to 100,000,000
    cells: Annotated[int, Meta(ge=CELLS_MIN, le=10**9)] = CELLS_MIN  # of each
    value: Quantity = AMOUNT_MAX  # basefee up to which each is sent, base units a cycle

    def agent(self, name: str, actors: range, draws: Draws) -> Agent:
        """Return the agent."""
        return TrafficAgent(self, name, actors, draws)


class TrafficAgent(Agent):
    """See `UserTraffic`."""

    def __init__(self, row: UserTraffic, name: str, actors: range, draws: Draws) -> None:
        super().__init__(name, actors)
        self._row, self._generator = row, draws("transactions")
        self._cycles = drawn(row.cycles, draws, "cycles", CYCLES_MIN, CYCLES_MAX)
        self._values = drawn(row.value, draws, "value")

    def orders(self, view: View) -> Iterable[Order]:
        """Return the block's transactions."""
        row = self._row
        if row.is_random:
            count = int(self._generator.poisson(row.rate))
        else:
            count = int(row.rate * view.height) - int(row.rate * (view.height - 1))
        for _ in range(count):
            cycles, value = next(self._cycles), next(self._values)
            if value >= view.user_basefee:
                yield Work(cycles, row.cells)
