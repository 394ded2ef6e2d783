"""Agents that do anything a seed says: what alone and whole are compared by."""

from collections.abc import Iterable
from random import Random
from typing import Any

from trailboss.simulator.agents.base import Agent
from trailboss.simulator.ground import Ground
from trailboss.simulator.orders import (
    Cancel,
    Fire,
    Fund,
    Order,
    PlannedTimer,
    Schedule,
    Touch,
    UnfiredTimer,
    View,
    Work,
)

ACTIVATION = "activation"  # in place of a mechanism: the lane succeeds FIFO at some height
FRAME = 10_000  # cycles of a frame
RULES = {
    "basefee_rule": (0, 1, 2),
    "caps_at_fire": (0, 1),
    "weight_per_deployer": (0, 1),
    "fires_median_blocks": (1, 2, 5),
    "weight_age_blocks": (0, 1, 6, 40),
}
"""Rules of the lane that the text leaves to simulation, with values that a short run can show."""
CROWDED = 0.5  # share of the lane's grounds in which many actors compete


class Rogue(Agent):
    """An agent whose every choice is drawn from a seed; what it has seen is part of its next choices."""

    def __init__(self, name: str, actors: range, seed: int, *, asked: bool, is_global: bool) -> None:
        super().__init__(name, actors)
        self.asked, self._is_global = asked, is_global
        self._random = Random(f"rogue {seed} {name}")
        self._plans: dict[bytes, PlannedTimer] = {}
        self.seen: list[Any] = []

    def _schedule(self, actor: int, view: View) -> Schedule:
        draw = self._random
        gas_limit = draw.choice((12_000, 20_000, 60_000, 150_000))
        expires_at = view.height + draw.randint(2, 12) if draw.random() < 0.5 else 0
        ways: dict[str, Any] = {}
        if self._is_global:
            ways = {"tip": draw.choice((0, 1, 5)), "target": draw.choice((None, draw.choice(self.actors)))}
            if draw.random() < 0.3:
                ways["watches"] = draw.choice(self.actors)
        elif draw.random() < 0.6:
            ways = {"cap": draw.choice((None, 1, 3, 8, 40)), "tip": draw.choice((None, 0, 1, 2, 9))}
        return Schedule(
            actor=actor,
            height=view.height + draw.choice((1, 1, 1, 2, 3, 5, 9, 30)),
            gas_limit=gas_limit,
            cycles=draw.choice((FRAME, FRAME + 1, 11_000, 30_000, gas_limit, gas_limit + 1)),
            cells=draw.choice((0, 10, 400)),
            fails=draw.random() < 0.1,
            expires_at=expires_at,
            **ways,
        )

    def orders(self, view: View) -> Iterable[Order]:
        draw = self._random
        for _ in range(draw.choice((0, 0, 1, 2, 6))):
            roll = draw.random()
            actor = draw.choice(self.actors)
            if roll < 0.6:
                yield self._schedule(actor, view)
            elif roll < 0.7 and self._plans:
                yield Cancel(self._plans[draw.choice(sorted(self._plans))])
            elif roll < 0.8:
                yield Fund(actor, draw.choice((1, 10**6, 10**9)))
            elif roll < 0.9 and self._is_global:
                yield Touch(actor)
            else:
                yield Work(draw.choice((50_000, 900_000, 5_000_000)), draw.choice((500, 20_000)))

    def again(self, plan: PlannedTimer, view: View) -> Iterable[Schedule]:
        if self._random.random() < 0.5:
            yield self._schedule(plan.order.called, view)

    def bid(self, plan: PlannedTimer, view: View) -> tuple[int, int] | None:
        draw = self._random
        cap = draw.choice((0, 1, 3, 10, 100))
        return None if draw.random() < 0.2 else (cap, draw.randint(0, cap))

    def saw_plan(self, plan: PlannedTimer, view: View) -> None:
        self._plans[plan.timer_id] = plan

    def saw_fire(self, fire: Fire, view: View) -> None:
        self.seen.append((fire.plan.timer_id, fire.paid))
        if fire.plan.order.watches is None:
            self._plans.pop(fire.plan.timer_id, None)

    def saw_ending(self, ending: UnfiredTimer, view: View) -> None:
        self.seen.append((ending.plan.timer_id, str(ending.end)))
        self._plans.pop(ending.plan.timer_id, None)

    def was_refused(self, order: Order, view: View) -> None:
        self.seen.append((type(order).__name__, view.height))


def rogue_ground(mechanism: str, seed: int) -> Ground:
    """Return a ground of rogues; the same every time. Under ``activation`` the lane succeeds FIFO at some height."""
    draw = Random(f"ground {mechanism} {seed}")
    agents, first = [], 1
    # In the lane many actors with money compete: their fires, and the median of those, decide who comes first.
    is_crowded = mechanism == "lane" and draw.random() < CROWDED
    for number in range(draw.randint(1, 3)):
        actors = range(first, first + (8 if is_crowded else draw.randint(1, 3)))
        first = actors.stop
        asked = mechanism == "auction" or (mechanism in {"lane", ACTIVATION} and draw.random() < 0.3)
        agents.append(Rogue(f"rogue {number}", actors, seed, asked=asked, is_global=mechanism == "globalbox"))
    overrides = {
        "timers.max_cycles_per_fire": 150_000,
        "lane.max_cycles_per_fire": 150_000,
        "timers.lane_cycles_per_block": draw.choice((150_000, 200_000, 600_000)),
        "timers.max_cells_per_fire": 1_000,
        "timers.lane_cells_per_block": draw.choice((0, 1_500, 4_000)),
        "timers.max_ttl_blocks": draw.choice((20, 200)),
        "lane.fairness_window_blocks": draw.choice((3, 10, 30)),
        "auction.budget_cycles": draw.choice((150_000, 300_000)),
    }
    for joined in ("lane", "auction", "globalbox"):
        overrides[f"{joined}.joined_max"] = draw.choice((1, 2, 100))
    amounts = (10**14,) if is_crowded else (0, 10**6, 10**9, 10**14)
    funds = [draw.choice(amounts) for _ in range(first - 1)]
    # Prices at which the caps and tips of rogues decide who comes first.
    overrides["lane.basefee_min"] = draw.choice((1, 1, 1_000))
    overrides["lane.basefee_max"] = draw.choice((2, 10**6)) if overrides["lane.basefee_min"] == 1 else 10**6
    overrides |= {f"lane.{name}": draw.choice(values) for name, values in RULES.items()}
    if mechanism == ACTIVATION:
        overrides |= {
            "lane.activation_height": draw.randint(2, 20),
            "lane.max_cycles_per_fire": draw.choice((20_000, 60_000, 150_000)),
            "lane.clamps_gas_limit": draw.choice((0, 1)),
        }
    return Ground(
        mechanism="fifo" if mechanism == ACTIVATION else mechanism,
        preset="minimal",
        overrides=overrides,
        funds=funds,
        agents=agents,
        timer_multiplier=draw.choice((None, 8_000, 12_345)),
    )
