"""A weight that does not grow while a timer waits, against one that does. Spec: CIP-1v3 §3, CIP-1v3 §8, CIP-1v3 §11."""

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Annotated, Any, Final

from matplotlib.figure import Figure
from msgspec import Meta

from trailboss.params import load_params
from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.agents.arrivals import Bursts, Poisson
from trailboss.simulator.agents.offers import FixedOffer
from trailboss.simulator.alone import Alone
from trailboss.simulator.metrics.base import observe
from trailboss.simulator.metrics.catalogue import of_agents
from trailboss.simulator.metrics.statistics import Interval
from trailboss.simulator.scenario import Scenario
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.text import interval_text, markdown_table
from trailboss.simulator.study.verdicts import difference_text, draw_bars, points_with, rows_of, shown, sign

TITLE: Final = "Should a timer gain priority while it waits, so that a low tip is served under lasting overload?"
CYCLES: Final = 100_000  # of a fire
LANE_CYCLES: Final = 1_000_000  # 10 fires a block, to be quick
TIPS: Final[Mapping[str, int]] = {"high": 1_000, "low": 100, "none": 0}
"""Groups of owners, and what each tips, base units a cycle."""
CAP: Final = 1_000_000  # base units a cycle, above every price here
PATTERNS: Final[Mapping[str, Bursts | None]] = {"below": None, "above": None, "bursts": Bursts(on=40, off=40)}
"""Names of loads, and how the arrivals of high tips move; in bursts twice the load for half of the time."""
GROUP_MEASURES: Final = {"expired_share": "expired", "late_mean": "late, mean", "late_p99": "late, p99"}
MEASURES: Final = {
    **{f"{group}_{name}": f"{group}: {title}" for group in TIPS for name, title in GROUP_MEASURES.items()},
    "low_late_max": "low: late, max",
    "low_starvation": "low: starvation",
}
JUDGED: Final = ("low_expired_share", "low_late_p99", "high_expired_share", "high_late_p99")
"""Measures of which each is better if it is less."""


class AgeingSettings(base.Settings, frozen=True, kw_only=True):
    """Blocks of waiting that add 1 to a weight, 0 (none) first, and the load of those who tip most."""

    ages: Annotated[tuple[Annotated[int, Meta(ge=0, le=100_000)], ...], Meta(min_length=2)]
    # Loads of the lane, by name: steady, or in bursts where the name says so.
    loads: Annotated[Mapping[str, Annotated[float, Meta(gt=0.0, le=2.0)]], Meta(min_length=1)]
    low: Annotated[float, Meta(gt=0.0, le=1.0)]  # load of those who tip a little
    none: Annotated[float, Meta(gt=0.0, le=1.0)]  # load of those who do not tip
    patience: base.Positive  # blocks after its height at which each timer expires


Settings = AgeingSettings


def points(settings: AgeingSettings) -> Sequence[Point]:
    """Return a point for each load and ageing."""
    if odd := sorted(set(settings.loads) - set(PATTERNS)):
        raise ConfigurationError(f"loads.{odd[0]} must be one of {', '.join(PATTERNS)}")
    return [Point(name_of(load, age), {"load": load, "age": age}) for load in settings.loads for age in settings.ages]


def name_of(load: str, age: int) -> str:
    """Return the name of a point."""
    return f"{load}, {f'1 more in {age} blocks' if age else 'no ageing'}"


def replicate(settings: AgeingSettings, point: Point, seed: int) -> Mapping[str, float]:
    """Run one load under one ageing."""
    load = str(point.facts["load"])
    loads = {"high": settings.loads[load], "low": settings.low, "none": settings.none}
    rows = [
        Poisson(
            name=group,
            actors=20,
            share=loads[group],
            cycles=CYCLES,
            pattern=PATTERNS[load] if group == "high" else None,
            patience=settings.patience,
            offer=FixedOffer(cap=CAP, tip=tip),
        )
        for group, tip in TIPS.items()
    ]
    params = {
        "timers.lane_cycles_per_block": LANE_CYCLES,
        "lane.weight_age_blocks": int(point.facts["age"]),
        # The basefee stays at its floor: else it would ration owners before the order of the lane does.
        "lane.basefee_max": load_params("mainnet").lane.basefee_min,
    }
    scenario = Scenario(name=point.name, blocks=settings.blocks, agents=tuple(rows), seed=seed, params=params)
    ground = scenario.ground()
    found = observe(Alone(ground), of_agents(ground, list(TIPS)), settings.blocks, settings.warm_up)
    kept = dict[str, float]()
    for group in TIPS:
        fired, expired = found[f"{group}.fired"], found[f"{group}.expired"]
        kept[f"{group}_expired_share"] = expired / max(fired + expired, 1.0)
        for name in ("late_mean", "late_p99"):
            kept[f"{group}_{name}"] = found[f"{group}.{name}"] if fired else nan
    return kept | {"low_late_max": found["low.late_max"], "low_starvation": found["low.starvation"]}


def table(results: Results) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the measures of each point."""
    return ["load", "age", *MEASURES.values()], rows_of(results, ("load", "age"), MEASURES)


def figures(results: Results) -> Mapping[str, Any]:
    """Draw what expires and how late the rest is, for each group over the ageing."""
    settings = results.settings
    figure = Figure(figsize=(5 * len(settings.loads), 7), layout="constrained")
    panels = figure.subplots(2, len(settings.loads), squeeze=False, sharex=True, sharey="row")
    for at, load in enumerate(settings.loads):
        chosen = points_with(results.points, load=load)
        for group, tip in TIPS.items():
            for axes, measure in zip(panels[:, at], ("expired_share", "late_p99"), strict=True):
                label = f"tip {tip:,}"
                draw_bars(axes, results, chosen, f"{group}_{measure}", _speed, label=label)
        panels[0, at].set_title(f"{load}: load of the high tips {settings.loads[load]:g}")
        panels[1, at].set(xlabel="weight gained in 1,000 blocks of waiting", xscale="symlog")
    panels[0, 0].set_ylabel("share that expires")
    panels[1, 0].set(ylabel="blocks late, p99", yscale="symlog")
    panels[0, 0].legend()
    return {"groups": figure}


def _speed(point: Point) -> float:
    age = int(point.facts["age"])
    return 1_000 / age if age else 0.0


def improves(results: Results, age: int, other: int) -> bool:
    """Return whether intervals show an ageing to be better than another one for low tips, and worse for no tips.

    What counts is the share that expires, and p99 of lateness, under each load.
    """
    signs = {
        measure: [
            sign(results.difference(name_of(load, age), name_of(load, other), measure))
            for load in results.settings.loads
        ]
        for measure in JUDGED
    }
    better = any(-1 in signs[measure] for measure in JUDGED if measure.startswith("low"))
    return better and not any(1 in found for found in signs.values())


def best_age(results: Results) -> int:
    """Return the ageing to set: from none to faster ones, each only if it improves on the one before."""
    first: int
    first, *others = sorted(results.settings.ages, key=lambda age: (age > 0, -age))
    for age in others:
        if improves(results, age, first):
            first = age
    return first


def load_line(results: Results, load: str, age: int) -> str:
    """Return in words what an ageing does under one load."""
    settings = results.settings
    plain, aged = name_of(load, 0), name_of(load, age)
    words = "later", "less late"
    found = {name: results.difference(aged, plain, name) for name in JUDGED}
    starved = [interval_text(results.interval(name, "low_starvation")) for name in (plain, aged)]
    way = "in bursts, on average" if PATTERNS[load] else "steadily"
    return (
        f"- {load.capitalize()}: high tips ask {way} for {settings.loads[load]:g} of the lane, all together for "
        f"{settings.loads[load] + settings.low + settings.none:g}. Without ageing "
        f"{shown(results.interval(plain, 'low_expired_share'))} of the low tips expire; with 1 more in {age:,} "
        f"blocks, the share: {difference_text(found['low_expired_share'])}; p99 of their lateness, in blocks: "
        f"{_late_text(found['low_late_p99'], words)}; the longest time that an owner waits without a fire: "
        f"{starved[1]} blocks, without ageing {starved[0]}. High tips, share that expires: "
        f"{difference_text(found['high_expired_share'])}; p99: {_late_text(found['high_late_p99'], words)}; mean: "
        f"{difference_text(results.difference(aged, plain, 'high_late_mean'), *words)}."
    )


def _late_text(found: Interval, words: tuple[str, str]) -> str:
    return "none of them fires" if isnan(found.mean) else difference_text(found, *words)


def page(results: Results) -> str:
    """Return who is served under each ageing at what cost, and which ageing to set."""
    settings = results.settings
    value = best_age(results)
    described = value or max(settings.ages)
    zero = [
        sign(results.difference(name_of(load, age), name_of(load, 0), "none_expired_share"))
        for load in settings.loads
        for age in settings.ages
        if age
    ]
    return "\n\n".join(
        (
            "CIP-1 v3 §3 step 9 says that deferral raises W(actor). By §8 it does so only as the actor's fires fall "
            "below the network median, up to 2: once there, a timer that waits gains nothing, and equal priorities go "
            "by id, not by age. `lane.weight_age_blocks = N` adds 1 to the weight for each N blocks of waiting. Three "
            f"groups of owners tip {', '.join(f'{tip:,}' for tip in TIPS.values())} base units a cycle; their timers "
            f"expire {settings.patience:,} blocks after their height. The lane holds {LANE_CYCLES // CYCLES} fires and "
            "its basefee is held at its floor, so that only the order of the lane rations: the worst case, since a "
            "basefee that rises ends a lasting overload by prices.",
            "\n".join(load_line(results, load, described) for load in settings.loads),
            "Waiting multiplies the tip, and so do the waits of high tips: under lasting overload by those alone, low "
            "tips stay behind at any speed. What ageing changes first is the order among equal tips, oldest first, "
            "which shortens the tails of all who tip. No weight helps a tip of 0: the share of those that expire "
            + ("falls under no ageing." if -1 not in zero else "falls only by the room that others leave."),
            "**What would change the answer.** A basefee free to rise: it prices owners out until the lane is half "
            "full, and nothing waits long but in bursts. Ids that follow the time of scheduling: they would give the "
            "order among equals without ageing.",
            f"**Recommendation.** Set `lane.weight_age_blocks = {value}`"
            + (
                ": no faster one that was run improves on it, and under no load do more timers that tip expire, or is "
                "the p99 of their lateness greater."
                if value
                else " (no ageing): none that was run is better for low tips and worse for no tips."
            ),
            "**All numbers.** Lateness and starvation in blocks.",
            markdown_table(*table(results)),
        )
    )
