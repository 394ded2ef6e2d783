"""Closed loops: each fire schedules the next timer."""

from collections.abc import Iterable

from trailboss.model.timers import TimerEnd
from trailboss.simulator.agents.arrivals import Rate
from trailboss.simulator.agents.base import Agent, Draws, Positive
from trailboss.simulator.agents.keeper import Keeper, KeeperRow
from trailboss.simulator.agents.quantities import Quantity, drawn
from trailboss.simulator.orders import Fire, Order, PlannedTimer, Schedule, Touch, UnfiredTimer, View


class StandingRow(KeeperRow, frozen=True, kw_only=True):
    """Timers that are always there; actors own them in turn, or as ``owners`` says."""

    timers: Positive = 1
    restarts: bool = (
        True  # whether one that expires, finds no funds or is refused is scheduled again, in the next block
    )


class ClosedLoop(StandingRow, frozen=True, kw_only=True, tag="loop"):
    """Timers of which each fire schedules the next; the first are spread over one period."""

    every: Quantity = 10  # blocks from a fire to the next height, at least 1

    def agent(self, name: str, actors: range, draws: Draws) -> Agent:
        """Return the agent."""
        return LoopAgent(self, name, actors, draws)


class StateTrigger(StandingRow, frozen=True, kw_only=True, tag="trigger"):
    """Timers that wait for an actor's slot, which changes at random; under Globalbox, elsewhere they fire once."""

    touches: Rate = 1.0  # changes a block, on average, each of a random one of its actors

    def agent(self, name: str, actors: range, draws: Draws) -> Agent:
        """Return the agent."""
        return TriggerAgent(self, name, actors, draws)


class StandingKeeper(Keeper):
    """See `StandingRow`."""

    def __init__(self, row: StandingRow, name: str, actors: range, draws: Draws) -> None:
        super().__init__(row, name, actors, draws)
        self._stands = row
        self._starts: list[int | None] = [None] * row.timers  # owners of timers to start; None for who comes next

    def start(self, owner: int | None, view: View) -> Schedule:
        """Return a timer of an owner, or of who comes next."""
        raise NotImplementedError

    def orders(self, view: View) -> Iterable[Order]:
        """Return the timers that start, after what every keeper orders."""
        yield from super().orders(view)
        starts, self._starts = self._starts, []
        for owner in sorted(starts, key=lambda owner: owner or 0):
            yield self.start(owner, view)

    def saw_ending(self, ending: UnfiredTimer, view: View) -> None:
        """Start a timer again that has ended, and that does not come again."""
        if ending.end is not TimerEnd.CANCELLED or not self.returns(ending.plan):
            self._restart(ending.plan.order)
        super().saw_ending(ending, view)

    def was_refused(self, order: Order, view: View) -> None:
        """Start a timer again that was refused."""
        del view
        if isinstance(order, Schedule):
            self._restart(order)

    def _restart(self, order: Schedule) -> None:
        if self._stands.restarts:
            self._starts.append(order.actor)


class LoopAgent(StandingKeeper):
    """See `ClosedLoop`."""

    def __init__(self, row: ClosedLoop, name: str, actors: range, draws: Draws) -> None:
        super().__init__(row, name, actors, draws)
        self._periods = drawn(row.every, draws, "every", 1)
        self._generator = draws("starts")

    def start(self, owner: int | None, view: View) -> Schedule:
        """Return a timer that is due after a period; within one if it is the first."""
        period = next(self._periods)
        if owner is None:
            period = int(self._generator.integers(period)) + 1
        height = view.height + period
        return self.timer(self.owner(height, view) if owner is None else owner, height, view)

    def again(self, plan: PlannedTimer, view: View) -> Iterable[Schedule]:
        """Return the next timer."""
        yield self.timer(plan.order.called, view.height + next(self._periods), view)

    def saw_fire(self, fire: Fire, view: View) -> None:
        """Start a timer again whose fire has failed, and so has scheduled none."""
        super().saw_fire(fire, view)
        if not fire.is_ok:
            self._restart(fire.plan.order)


class TriggerAgent(StandingKeeper):
    """See `StateTrigger`."""

    def __init__(self, row: StateTrigger, name: str, actors: range, draws: Draws) -> None:
        super().__init__(row, name, actors, draws)
        self._touches, self._generator = row.touches, draws("touches")

    def start(self, owner: int | None, view: View) -> Schedule:
        """Return a timer that waits for its owner's slot."""
        height = view.height + 1
        owner = self.owner(height, view) if owner is None else owner
        return self.timer(owner, height, view, watches=owner)

    def orders(self, view: View) -> Iterable[Order]:
        """Return the changes of a block, after the timers that start."""
        yield from super().orders(view)
        count = self._generator.poisson(self._touches)
        for actor in self._generator.integers(self.actors.start, self.actors.stop, count).tolist():
            yield Touch(actor)
