"""Crowds: many timers at one height, as those who schedule by a clock make them, or who flood."""

from collections.abc import Iterable
from typing import Literal

from trailboss.simulator.agents.arrivals import Load, one_of, timers_of
from trailboss.simulator.agents.base import Agent, Draws, Natural, Positive
from trailboss.simulator.agents.keeper import Keeper, KeeperRow
from trailboss.simulator.orders import Order, View


class Crowd(KeeperRow, frozen=True, kw_only=True, tag="crowd"):
    """Timers at the heights that have one phase in a period; or at one height alone."""

    timers: Positive | None = None  # at each of the heights
    share: Load | None = None  # in place of that, the share of what fires may use in all blocks that its fires ask for
    every: Natural = 100  # blocks from a height to the next; 0 for one height alone
    phase: Natural | Literal["random"] = 0  # remainder of the heights by ``every``, or the height alone
    ahead: Positive = 1  # blocks before the height, over which the timers are scheduled

    def problem(self, blocks: int) -> str | None:
        """Refuse two numbers of timers, or none, a phase beyond the period, and periods that overlap."""
        if self.every and self.phase != "random" and self.phase >= self.every:
            return f"phase = {self.phase:,} must be below every, {self.every:,}"
        if not self.every and (self.phase == "random" or self.phase <= self.ahead):
            return f"phase = {self.phase!r} must be the height, above ahead, {self.ahead:,}, since every is 0"
        if not self.every and self.timers is None:
            return "timers = None must be given, since every is 0"
        if self.every and self.ahead > self.every:
            return f"ahead = {self.ahead:,} must be at most every, {self.every:,}"
        return one_of(self, "timers", "share") or super().problem(blocks)

    def agent(self, name: str, actors: range, draws: Draws) -> Agent:
        """Return the agent."""
        return CrowdAgent(self, name, actors, draws)


class CrowdAgent(Keeper):
    """See `Crowd`."""

    def __init__(self, row: Crowd, name: str, actors: range, draws: Draws) -> None:
        super().__init__(row, name, actors, draws)
        self._row = row
        self._phase = int(draws("phase").integers(row.every)) if row.phase == "random" else row.phase

    def orders(self, view: View) -> Iterable[Order]:
        """Return the timers that it schedules in this block, after what every keeper orders."""
        yield from super().orders(view)
        row = self._row
        left = self._phase - view.height
        if row.every:
            left = (left - 1) % row.every + 1
        if not 1 <= left <= row.ahead:
            return
        height, done = view.height + left, row.ahead - left
        timers = row.timers or self._share(height, view)
        for _ in range(timers * (done + 1) // row.ahead - timers * done // row.ahead):
            yield self.timer(self.owner(height, view), height, view)

    def _share(self, height: int, view: View) -> int:
        """Return the timers of a height by the share; what is left of one counts for the next."""
        row = self._row
        timers = timers_of(row, row.share or 0.0, view) * row.every
        number = height // row.every
        return int(timers * (number + 1)) - int(timers * number)
