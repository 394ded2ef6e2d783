"""A weight that does not grow while a timer waits, against one that does. Spec: CIP-1v3 §3, CIP-1v3 §8, CIP-1v3 §11."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Annotated, Any, Final

from matplotlib.figure import Figure
from msgspec import Meta

from trailboss.params import load_params
from trailboss.simulator.agents.arrivals import Poisson
from trailboss.simulator.agents.offers import FixedOffer
from trailboss.simulator.alone import Alone
from trailboss.simulator.metrics.base import observe
from trailboss.simulator.metrics.catalogue import of_agents
from trailboss.simulator.scenario import Scenario
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.text import interval_text, markdown_table
from trailboss.simulator.study.verdicts import difference_text, draw_bars, points_with, rows_of, sign

TITLE: Final = "Should a timer gain priority while it waits, so that a low tip is served under lasting overload?"
CYCLES: Final = 100_000  # of a fire
LANE_CYCLES: Final = 1_000_000  # 10 fires a block, to be quick
TIPS: Final[Mapping[str, int]] = {"high": 1_000, "low": 100, "none": 0}
"""Groups of owners, and what each tips, base units a cycle."""
CAP: Final = 1_000_000  # base units a cycle, above every price here
GROUP_MEASURES: Final = {"expired_share": "expired", "late_mean": "late, mean", "late_p99": "late, p99"}
MEASURES: Final = {
    **{f"{group}_{name}": f"{group}: {title}" for group in TIPS for name, title in GROUP_MEASURES.items()},
    "low_late_max": "low: late, max",
    "low_starvation": "low: starvation",
}
SERVED: Final = 0.05  # share of low tips that may expire above what the lane cannot hold of all tips


class AgeingSettings(base.Settings, frozen=True, kw_only=True):
    """Blocks of waiting that add 1 to a weight, 0 (none) first, and the load of those who tip most."""

    ages: Annotated[tuple[Annotated[int, Meta(ge=0, le=100_000)], ...], Meta(min_length=2)]
    loads: Annotated[tuple[Annotated[float, Meta(gt=0.0, le=2.0)], ...], Meta(min_length=1)]  # of the lane
    low: Annotated[float, Meta(gt=0.0, le=1.0)]  # load of those who tip a little
    none: Annotated[float, Meta(gt=0.0, le=1.0)]  # load of those who do not tip
    patience: base.Positive  # blocks after its height at which each timer expires


Settings = AgeingSettings


def points(settings: AgeingSettings) -> Sequence[Point]:
    """Return a point for each load and ageing."""
    return [Point(name_of(load, age), {"load": load, "age": age}) for load in settings.loads for age in settings.ages]


def name_of(load: float, age: int) -> str:
    """Return the name of a point."""
    return f"load {load:g}, {f'1 more in {age} blocks' if age else 'no ageing'}"


def replicate(settings: AgeingSettings, point: Point, seed: int) -> Mapping[str, float]:
    """Run one load under one ageing."""
    loads = {"high": float(point.facts["load"]), "low": settings.low, "none": settings.none}
    rows = [
        Poisson(
            name=group,
            actors=20,
            share=loads[group],
            cycles=CYCLES,
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
                draw_bars(axes, results, chosen, f"{group}_{measure}", lambda point: _speed(point), label)
        panels[0, at].set_title(f"load of the high tips {load:g}")
        panels[1, at].set(xlabel="weight gained in 1,000 blocks of waiting", xscale="symlog")
    panels[0, 0].set_ylabel("share that expires")
    panels[1, 0].set(ylabel="blocks late, p99", yscale="symlog")
    panels[0, 0].legend()
    return {"groups": figure}


def _speed(point: Point) -> float:
    age = int(point.facts["age"])
    return 1_000 / age if age else 0.0


def bound_of(settings: AgeingSettings, load: float) -> float:
    """Return the share of low tips that may expire: what the lane cannot hold of all tips, and a little more."""
    return max(1 - 1 / (load + settings.low), 0.0) + SERVED


def weakest_enough(results: Results, load: float) -> int | None:
    """Return the slowest ageing, 0 for none, under which low tips bear no more than their part; None if none is."""
    for age in sorted(results.settings.ages, key=lambda age: (age > 0, -age)):
        found = results.interval(name_of(load, age), "low_expired_share")
        if found.mean + found.half_width <= bound_of(results.settings, load):
            return age
    return None


def page(results: Results) -> str:
    """Return who is served under each ageing at what cost, and which ageing to set."""
    settings = results.settings
    lines, enough = list[str](), list[int | None]()
    for load in settings.loads:
        age = weakest_enough(results, load)
        enough.append(age)
        strongest = min(each for each in settings.ages if each)
        shown = age or strongest
        plain, aged = name_of(load, settings.ages[0]), name_of(load, shown)
        expired, late = (results.difference(aged, plain, name) for name in ("low_expired_share", "low_late_p99"))
        high, high_expired = (results.difference(aged, plain, name) for name in ("high_late_p99", "high_expired_share"))
        starved = [interval_text(results.interval(name, "low_starvation")) for name in (plain, aged)]
        lines.append(
            f"- High tips at {load:g} of the lane, all together {load + settings.low + settings.none:g}: without ageing "
            f"{interval_text(results.interval(plain, 'low_expired_share'))} of the low tips expire. With 1 more in "
            f"{shown:,} blocks the share is: {difference_text(expired)}; p99 of their lateness, in blocks: "
            f"{difference_text(late)}; the longest time without a fire of an owner who waits: {starved[1]} blocks, "
            f"before {starved[0]}. High tips, p99 of lateness: {difference_text(high, 'later', 'less late')}; share "
            f"that expires: {difference_text(high_expired)}. "
            + (
                f"The slowest ageing under which at most {bound_of(settings, load):.0%} of the low tips expire: "
                + (f"1 more in {age:,} blocks." if age else "none is needed.")
                if age is not None
                else "No ageing that was run keeps the share of low tips that expire at or below "
                f"{bound_of(settings, load):.0%}."
            )
        )
    needed = [age for age in enough if age]
    value = min(needed, default=0)
    zero = [
        sign(results.difference(name_of(load, age), name_of(load, settings.ages[0]), "none_expired_share"))
        for load in settings.loads
        for age in settings.ages[1:]
    ]
    return "\n\n".join(
        (
            "CIP-1 v3 §3 step 9 says that deferral raises W(actor). By §8 it does so only as the actor's fires fall "
            "below the network median, up to 2: once there, a timer that waits gains nothing. "
            "`lane.weight_age_blocks = N` adds 1 to the weight for each N blocks of waiting. Three groups of owners "
            f"tip {', '.join(f'{tip:,}' for tip in TIPS.values())} base units a cycle; their timers expire "
            f"{settings.patience:,} blocks after their height. The lane holds {LANE_CYCLES // CYCLES} fires and its "
            "basefee is held at its floor, so that only the order of the lane rations: the worst case, since a basefee "
            "that rises ends a lasting overload by prices. Low tips count as served if no more of them expires than the "
            f"lane cannot hold of all tips, and {SERVED:.0%} on top.",
            "\n".join(lines),
            "A weight multiplies the tip, so no weight helps a tip of 0: the share of those that expire "
            + ("does not fall under any ageing." if -1 not in zero else "falls only where others leave room."),
            "**What would change the answer.** A basefee free to rise: it prices owners out until the lane is half "
            "full, and nothing waits long but in bursts. Tips further apart than 1 to 10: an ageing bridges a ratio r "
            "after some r × N blocks.",
            f"**Recommendation.** Set `lane.weight_age_blocks = {value}`"
            + (
                ": the slowest that serves the low tips under every load where one can."
                if value
                else " (no ageing): none that was run serves the low tips, or none is needed."
            ),
            "**All numbers.** Lateness and starvation in blocks.",
            markdown_table(*table(results)),
        )
    )
