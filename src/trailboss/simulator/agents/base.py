"""The seam: what an agent is asked, in the order of a block, and the row of a scenario that describes one."""

from collections.abc import Callable, Iterable
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from trailboss.simulator.orders import Fire, Order, PlannedTimer, Schedule, UnfiredTimer, View

NAME = r"^[A-Za-z0-9][A-Za-z0-9 _-]{0,31}$"
ACTORS_MAX = 100_000
AMOUNT_MAX = 2**63 - 1
Natural = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
Positive = Annotated[int, Meta(ge=1, le=AMOUNT_MAX)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Draws = Callable[..., np.random.Generator]
"""Names of a stream to its generator: ``draws("arrivals")`` is the agent's own, and no other agent's draws move it."""


class Agent:
    """Someone with actors. Its answers follow from what it has seen and from its own draws alone."""

    asked = False  # whether its actors have a gas bidding agent, which is asked for bids. Under the auction all have.

    def __init__(self, name: str, actors: range) -> None:
        """Give it a name, and the numbers of its actors."""
        self.name, self.actors = name, actors

    def orders(self, view: View) -> Iterable[Order]:
        """Return what it asks for before a block, in order; each is a transaction of its own."""
        del view
        return ()

    def again(self, plan: PlannedTimer, view: View) -> Iterable[Schedule]:
        """Return the timers that a fire which does not fail schedules; their owner is the actor that it calls."""
        del plan, view
        return ()

    def bid(self, plan: PlannedTimer, view: View) -> tuple[int, int] | None:
        """Return cap and tip that it bids for a timer when it is asked, base units a cycle; None if it does not answer.

        In the lane the cap is that of lane basefee and tip together, in the auction of cycle basefee and tip.
        """
        del plan, view
        return None

    def saw_plan(self, plan: PlannedTimer, view: View) -> None:
        """Note a timer of its own that has been accepted, after the block."""

    def saw_fire(self, fire: Fire, view: View) -> None:
        """Note a fire of its own, after the block."""

    def saw_ending(self, ending: UnfiredTimer, view: View) -> None:
        """Note the end of a timer of its own that did not fire, after the block."""

    def was_refused(self, order: Order, view: View) -> None:
        """Note an order of its own that found no room, or that a rule refused, after the block."""


class AgentRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """A row ``[[agents]]`` of a scenario: an agent, or several of one kind, each with actors of its own."""

    name: Annotated[str, Meta(pattern=NAME)]
    count: Annotated[int, Meta(ge=1, le=ACTORS_MAX)] = 1  # agents that the row stands for, each with draws of its own
    actors: Annotated[int, Meta(ge=1, le=ACTORS_MAX)] = 1  # actors of each of them, which is their deployer
    funds: Natural = AMOUNT_MAX  # base units that each actor has

    def problem(self, blocks: int) -> str | None:
        """Return what is wrong between its values, in words that begin with the field, for a scenario so long."""
        del blocks
        return None

    def agent(self, name: str, actors: range, draws: Draws) -> Agent:
        """Return an agent of this row; its name has its number if the row stands for several."""
        raise NotImplementedError
