"""The four mechanisms under six loads of equal demand and one budget of cycles."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

import numpy as np
from matplotlib.figure import Figure
from msgspec import Meta, Struct

from trailboss.mechanisms.registry import MECHANISMS
from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.agents.arrivals import Bursts, Outage, Poisson
from trailboss.simulator.agents.crowds import Crowd
from trailboss.simulator.agents.offers import AnyOffer, BestResponse, DefaultOffer, LearnedOffer
from trailboss.simulator.agents.quantities import Exponential, Pareto, Quantity, Uniform
from trailboss.simulator.alone import Alone
from trailboss.simulator.metrics.base import observe
from trailboss.simulator.metrics.catalogue import standard
from trailboss.simulator.metrics.money import worth_of
from trailboss.simulator.metrics.optimum import Job, optimum
from trailboss.simulator.orders import BlockResult, Schedule
from trailboss.simulator.scenario import AnyRow, Scenario
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.text import interval_text, markdown_table
from trailboss.simulator.study.verdicts import UNSHOWN, difference_text, rows_of, sign

TITLE: Final = "Which mechanism serves which load best, if demand and budget are the same for all four?"
LANE_CYCLES: Final = 1_000_000  # of fires in a block under every mechanism, to be quick
PARAMS: Final = {
    "timers.lane_cycles_per_block": LANE_CYCLES,
    "auction.budget_cycles": LANE_CYCLES,
    "globalbox.max_fires_per_block": 128,  # so that cycles bind, and not the number of fires
}
MEASURES: Final = {
    "fires": "fires a block",
    "late_mean": "late, mean",
    "late_p95": "late, p95",
    "late_p99": "late, p99",
    "refused": "refused",
    "expired": "expired",
    "unfunded": "unfunded",
    "reverted": "reverted",
    "jain": "Jain",
    "efficiency": "welfare ÷ bound",
    "paid": "paid a fire, 10⁶",
    "revenue_sd": "sd of a block's tips, 10⁶",
    "amplitude": "basefee, max ÷ min",
}
ASKED_MAX: Final = 2_000  # timers from which the bound of welfare is worked out
Row = Callable[..., AnyRow]


class Group(Struct, frozen=True, kw_only=True):
    """Owners who differ in what a fire is worth to them, base units a cycle, and for how long."""

    part: int  # of nine parts of the demand
    actors: int
    value: Quantity
    decay: Quantity
    patience: int
    offer: AnyOffer
    round_to: int  # heights, where those are round
    every: int  # blocks between crowds, where there are crowds


GROUPS: Final = {
    "urgent": Group(
        part=2,
        actors=20,
        value=Uniform(least=40_000, most=200_000),
        decay=Uniform(least=1_000, most=5_000),
        patience=20,
        offer=BestResponse(),
        round_to=10,
        every=20,
    ),
    "usual": Group(
        part=4,
        actors=40,
        value=Uniform(least=20_000, most=80_000),
        decay=200,
        patience=100,
        offer=LearnedOffer(),
        round_to=100,
        every=60,
    ),
    "patient": Group(
        part=3,
        actors=20,
        value=Uniform(least=15_000, most=30_000),
        decay=5,
        patience=300,
        offer=DefaultOffer(),
        round_to=50,
        every=120,
    ),
}
PARTS: Final = sum(group.part for group in GROUPS.values())
SPREAD: Final = Exponential(mean=30)  # blocks ahead, where nothing else is said
LOADS: Final[Mapping[str, Callable[[Group], tuple[Row, Mapping[str, Any]]]]] = {
    "steady": lambda _: (Poisson, {"ahead": SPREAD}),
    "bursts": lambda _: (Poisson, {"ahead": SPREAD, "pattern": Bursts(on=20, off=80)}),
    "round heights": lambda group: (Poisson, {"ahead": SPREAD, "round_to": group.round_to}),
    "cron": lambda group: (Crowd, {"every": group.every, "ahead": 20}),
    "outage": lambda _: (Poisson, {"pattern": Outage(first=150, blocks=30, every=200)}),
    "heavy gas": lambda _: (Poisson, {"ahead": SPREAD, "cycles": Pareto(least=20_000, shape=1.2)}),
}
"""Loads, and what each makes of a group: the kind of its row, and the fields in which it differs."""


class MechanismSettings(base.Settings, frozen=True, kw_only=True):
    """How much of the budget the fires of every load ask for, and which loads are run."""

    load: Annotated[float, Meta(gt=0.0, le=2.0)]
    loads: Annotated[tuple[str, ...], Meta(min_length=1)] = tuple(LOADS)


Settings = MechanismSettings


class BoundMeasure:
    """The worth of fires against the most that one who knows all demand could get, refused timers included.

    It follows what the first blocks ask for, up to the block with the 2,000th timer; the bound gives those all the room
    of all blocks. What is asked for does not follow from the mechanism, so the bound of a seed is the same under all.
    """

    def __init__(self) -> None:
        self._asked = list[tuple[int, Schedule]]()  # heights at which, and what
        self._first = self._last = self._until = self._worth = 0

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        height = self._last = block.view.height
        self._first = self._first or height
        if len(self._asked) < ASKED_MAX:
            self._until = height
            orders = [plan.order for plan in block.accepted] + [order for _, order in block.refused]
            self._asked += [(height, order) for order in orders if isinstance(order, Schedule)]
        self._worth += sum(worth_of(fire) for fire in block.fires if self._follows(fire.plan.scheduled_at))

    def _follows(self, height: int) -> bool:
        return self._first <= height <= self._until

    def values(self) -> dict[str, float]:
        """Return the share of the bound."""
        jobs = [
            Job(max(order.height, height + 1), self._end(order), order.cycles, order.value)
            for height, order in self._asked
        ]
        best = optimum([job for job in jobs if job.first <= job.last], LANE_CYCLES)
        return {"of_bound": self._worth / best if best else 1.0}

    def _end(self, order: Schedule) -> int:
        """Return the last height at which a fire is worth anything, whenever its timer expires."""
        return min(order.height + (order.value - 1) // order.decay, self._last) if order.decay else self._last


def points(settings: MechanismSettings) -> Sequence[Point]:
    """Return a point for each load and mechanism."""
    if odd := [load for load in settings.loads if load not in LOADS]:
        raise ConfigurationError(f"loads = {odd[0]!r} must be one of {', '.join(LOADS)}")
    return [
        Point(f"{load}, {mechanism}", {"load": load, "mechanism": mechanism})
        for load in settings.loads
        for mechanism in MECHANISMS
    ]


def agents_of(load: str, share: float) -> tuple[AnyRow, ...]:
    """Return the rows of a load whose fires ask for a share of the budget."""
    rows = list[AnyRow]()
    for name, group in GROUPS.items():
        kind, differing = LOADS[load](group)
        fields: dict[str, Any] = {"cycles": Uniform(least=20_000, most=100_000), **differing}
        rows.append(
            kind(
                name=name,
                actors=group.actors,
                share=share * group.part / PARTS,
                value=group.value,
                decay=group.decay,
                patience=group.patience,
                offer=group.offer,
                **fields,
            )
        )
    return tuple(rows)


def replicate(settings: MechanismSettings, point: Point, seed: int) -> Mapping[str, float]:
    """Run one mechanism under one load."""
    mechanism = str(point.facts["mechanism"])
    scenario = Scenario(
        name=point.name,
        blocks=settings.blocks,
        agents=agents_of(str(point.facts["load"]), settings.load),
        mechanism=mechanism,
        seed=seed,
        params=PARAMS,
    )
    ground = scenario.ground()
    found = observe(Alone(ground), [*standard(ground), BoundMeasure()], settings.blocks, settings.warm_up)
    ended = max(found["fired"] + found["expired"] + found["unfunded"], 1.0)
    return {
        "fires": found["fired"] / settings.blocks,
        **{name: found[name] for name in ("late_mean", "late_p95", "late_p99")},
        "efficiency": found["of_bound"],
        "reverted": found["reverted"] / max(found["fired"], 1.0),
        "expired": found["expired"] / ended,
        "unfunded": found["unfunded"] / ended,
        "jain": found["jain_actors"],
        "paid": found["paid_mean"] / 1e6,
        "revenue_sd": found["revenue_variance"] ** 0.5 / 1e6,
        "amplitude": max(found["lane_basefee_amplitude"], found["basefee_amplitude"]),
        "use": found["use_mean"],
        "refused": found["refused"] / max(found["scheduled"] + found["refused"], 1.0),
    }


def table(results: Results) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the measures of each point."""
    return ["load", "mechanism", *MEASURES.values()], rows_of(results, ("load", "mechanism"), MEASURES)


def figures(results: Results) -> Mapping[str, Any]:
    """Draw welfare, lateness and evenness of the mechanisms, side by side for each load."""
    loads = results.settings.loads
    figure = Figure(figsize=(11, 9), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    kinds = (
        ("efficiency", "welfare ÷ clairvoyant bound"),
        ("late_p99", "blocks late, p99"),
        ("jain", "Jain's index over owners"),
    )
    places, width = np.arange(len(loads)), 0.8 / len(MECHANISMS)
    for axes, (measure, label) in zip(panels, kinds, strict=True):
        for number, mechanism in enumerate(MECHANISMS):
            found = [results.interval(f"{load}, {mechanism}", measure) for load in loads]
            halves = [each.half_width for each in found]
            at = places + (number - (len(MECHANISMS) - 1) / 2) * width
            axes.bar(at, [each.mean for each in found], width, yerr=halves, capsize=2, label=mechanism)
        axes.set(ylabel=label, ylim=(0, None))
    panels[-1].set_xticks(places, loads)
    panels[-1].set_xlabel("load")
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=len(MECHANISMS), loc="outside upper center")
    return {"loads": figure}


def leaders(results: Results, load: str, measure: str) -> list[str]:
    """Return the mechanisms than which none has shown more of a measure under a load."""
    return [
        mechanism
        for mechanism in MECHANISMS
        if not any(
            sign(results.difference(f"{load}, {other}", f"{load}, {mechanism}", measure)) > 0 for other in MECHANISMS
        )
    ]


def _lead_text(names: Sequence[str]) -> str:
    if len(names) == len(MECHANISMS):
        return "no mechanism is shown to lead in welfare"
    *others, last = names
    if not others:
        return f"{last} leads in welfare"
    return f"{', '.join(others)} and {last} lead in welfare, and {UNSHOWN} among them"


def page(results: Results) -> str:
    """Return the one table, who leads under which load, and which mechanism to run."""
    settings = results.settings
    loads = settings.loads
    first, second = list(MECHANISMS)[:2]
    leading = {load: leaders(results, load, "efficiency") for load in loads}
    wins = {mechanism: sum(mechanism in names for names in leading.values()) for mechanism in MECHANISMS}
    best, *level = [mechanism for mechanism in MECHANISMS if wins[mechanism] == max(wins.values())]
    lines, against = list[str](), list[int]()
    for load in loads:
        names = f"{load}, {second}", f"{load}, {first}"
        gain = results.difference(*names, "efficiency")
        against.append(sign(gain))
        lines.append(
            f"- {load.capitalize()}: {_lead_text(leading[load])}. {second} against {first}: welfare as a share "
            f"of the bound {difference_text(gain)}; blocks late, p99, "
            f"{difference_text(results.difference(*names, 'late_p99'), 'later', 'less late')}; it uses "
            f"{interval_text(results.interval(names[0], 'use'))} of the budget, {first} "
            f"{interval_text(results.interval(names[1], 'use'))}."
        )
    also = f" (as many as {' and '.join(level)})" if level else ""
    won, lost = against.count(1), against.count(-1)
    return "\n\n".join(
        (
            "Chains choose among FIFO (CIP-5), the timer lane (CIP-1 v3), the auction (the first CIP-1) and Globalbox "
            "(the first CIP-5). Each load is three groups of owners: urgent ones, whose fires are worth much and soon "
            "nothing, who answer to the least tip that fired; usual ones, who learn what to tip; and patient ones with "
            f"the default. Fires ask for {settings.load:g} of the budget, {LANE_CYCLES:,} cycles a block under every "
            "mechanism (`timers.lane_cycles_per_block`, `auction.budget_cycles`). The arrivals, worths and sizes of "
            "one seed are the same under all, and so is the bound of welfare: what one who knows all demand could get, "
            "refused timers included. The auction asks an agent for each bid at the expense of the gas limit, so its "
            "owners state that much more; fires that use the most that they may, as some do under heavy gas, have no "
            "room for it and revert. Its timers never expire.",
            "\n".join(lines),
            markdown_table(*table(results)),
            "Jain's index is over what owners get of the timers that are accepted. The lane aims at half of its budget "
            f"(`lane.elasticity = 2`): above that its basefee rises until owners stay away. Under the load {loads[0]} "
            f"it refuses {interval_text(results.interval(f'{loads[0]}, {second}', 'refused'))} of the timers, and a "
            f"fire costs {interval_text(results.interval(f'{loads[0]}, {second}', 'paid'))} × 10⁶ base units, "
            f"under {first} {interval_text(results.interval(f'{loads[0]}, {first}', 'paid'))}.",
            "**What would change the answer.** A load far above the budget, where order is all; owners whose fires "
            "are worth the same, where it is nothing; `lane.elasticity` nearer to 1, which lets the lane be full.",
            f"**Recommendation.** Run `mechanism = {best!r}`, than which none has shown more welfare under "
            f"{wins[best]} of {len(loads)} loads{also}. Against FIFO the lane has more welfare under {won}, less "
            f"under {lost}, and no difference can be shown under {len(loads) - won - lost}: "
            + (
                "a vote on `lane.activation_height` gains by it."
                if won > lost
                else "set `lane.activation_height` only for what welfare does not count."
            ),
        )
    )
