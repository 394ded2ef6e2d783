"""How late fires are in the lane at steady loads, when its price keeps no timer out."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from matplotlib.figure import Figure
from msgspec import Meta

from trailboss.params import load_params
from trailboss.simulator.agents.arrivals import Poisson
from trailboss.simulator.alone import Alone
from trailboss.simulator.metrics.base import observe
from trailboss.simulator.metrics.catalogue import standard
from trailboss.simulator.scenario import Scenario
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.text import interval_text, markdown_table

TITLE: Final = "How many blocks late do fires come, and how many wait, if the lane is loaded to a share of its cycles?"
PRESET: Final = "mainnet"
MEASURES: Final = {"late_mean": "blocks late, mean", "late_p95": "blocks late, p95", "backlog_mean": "waiting, mean"}
ACTORS: Final = 100


class LaneLoadSettings(base.Settings, frozen=True, kw_only=True):
    """Loads, and how large fires are."""

    loads: Annotated[tuple[Annotated[float, Meta(gt=0.0, lt=1.0)], ...], Meta(min_length=1)]  # of the lane's cycles
    cycles: Annotated[int, Meta(ge=50_000, le=250_000)]  # of each fire


Settings = LaneLoadSettings


def points(settings: Settings) -> Sequence[Point]:
    """Return a point for each load."""
    return [Point(f"load {load:g}", {"load": load}) for load in settings.loads]


def replicate(settings: Settings, point: Point, seed: int) -> Mapping[str, float]:
    """Run one load."""
    params = load_params(PRESET)
    fires_max = params.timers.lane_cycles_per_block // settings.cycles
    rate = float(point.facts["load"]) * fires_max
    crowd = Poisson(name="crowd", actors=ACTORS, rate=rate, cycles=settings.cycles)
    scenario = Scenario(
        name=point.name,
        blocks=settings.blocks,
        agents=(crowd,),
        preset=PRESET,
        seed=seed,
        # The basefee stays at its floor: demand that ignores prices would drive it up without end.
        params={"lane.basefee_max": params.lane.basefee_min},
    )
    ground = scenario.ground()
    found = observe(Alone(ground), standard(ground), settings.blocks, settings.warm_up)
    return {name: found[name] for name in MEASURES}


def table(results: Results) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the measures of each load."""
    rows = [
        [f"{point.facts['load']:g}", *(interval_text(results.interval(point.name, name)) for name in MEASURES)]
        for point in results.points
    ]
    return ["load", *MEASURES.values()], rows


def figures(results: Results) -> Mapping[str, Any]:
    """Draw the mean lateness over the load."""
    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    found = [results.interval(point.name, "late_mean") for point in results.points]
    loads = [float(point.facts["load"]) for point in results.points]
    axes.errorbar(loads, [each.mean for each in found], [each.half_width for each in found], marker="o", capsize=3)
    axes.set(xlabel="load, share of the lane's cycles", ylabel="blocks late, mean", yscale="log")
    return {"late": figure}


def page(results: Results) -> str:
    """Return the table, and how to read it."""
    return (
        f"{markdown_table(*table(results))}\n\nThe lane's basefee is held at its floor, so all that arrives is fired "
        "sooner or later: this is the queue alone, without what its price does to demand."
    )
