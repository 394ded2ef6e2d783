"""How many blocks the fairness window of the lane should have."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Annotated, Any, Final

import numpy as np
from matplotlib.figure import Figure
from msgspec import Meta

from trailboss.params import load_params
from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.agents.base import AgentRow
from trailboss.simulator.agents.contenders import Contender
from trailboss.simulator.alone import Alone
from trailboss.simulator.metrics.statistics import jain
from trailboss.simulator.metrics.weights import WeightMeasure
from trailboss.simulator.orders import BlockResult
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.contest import LANE_TEXT, TIP, actors_of, contest
from trailboss.simulator.study.text import interval_text, markdown_table
from trailboss.simulator.study.verdicts import is_shown

TITLE: Final = "How many blocks should FAIRNESS_WINDOW_BLOCKS be (CIP-1 v3 §16, §8; 1,000 at launch)?"
Load = Annotated[str, Meta(pattern="^(steady|bursty|heavy)$")]
TEXT: Final = {
    "steady": "80 % of the lane is asked for at random times",
    "bursty": "all but the dominating owner ask in 25 blocks of every 100, for four times as much",
    "heavy": "the dominating owner alone asks for twice the lane",
}
GAPS: Final[Mapping[str, Mapping[str, float]]] = {
    "steady": {"incumbent": 10.0, "newcomer": 10.0, "small": 33.0, "reformed": 33.0},
    "bursty": {"incumbent": 2.5, "newcomer": 2.5, "small": 8.0, "reformed": 8.0},
    "heavy": {"incumbent": 4.0, "newcomer": 4.0, "small": 33.0, "reformed": 33.0},
}
"""Load to the mean blocks from a fire of each owner to its next height; within bursts if there are any."""
NEAR: Final = 0.1  # W by which two groups may differ and count as treated alike
MEASURES: Final = {
    "jain": "Jain's index of service",
    "largest_share": "largest share of fires",
    "small_p95": "small: p95, blocks late",
    "small_p99": "small: p99",
    "incumbent_p99": "incumbents: p99",
    "newcomer_lag": "newcomer favoured for, blocks",
    "reformed_lag": "reformed held back for, blocks",
    "renamed_gain": "gain of a new identity, fires",
    "median": "network median, fires",
}
TOLERANCES: Final = {"jain": 0.01, "small_p99": 1.0, "incumbent_p99": 5.0}
"""Evenness: measure to the greatest difference that does not matter."""
P95, P99 = 0.95, 0.99


class FairnessWindowSettings(base.Settings, frozen=True, kw_only=True):
    """Windows and loads."""

    windows: Annotated[tuple[Annotated[int, Meta(ge=10, le=100_000)], ...], Meta(min_length=2)]  # ascending, blocks
    loads: Annotated[tuple[Load, ...], Meta(min_length=1)]
    fires: Annotated[int, Meta(ge=2, le=100)] = 5  # that the lane holds


Settings = FairnessWindowSettings


def points(settings: Settings) -> Sequence[Point]:
    """Return a point for each load and window."""
    if list(settings.windows) != sorted(set(settings.windows)):
        raise ConfigurationError(f"windows = {list(settings.windows)} must ascend")
    return [
        Point(f"{load} {window}", {"load": load, "window": window})
        for load in settings.loads
        for window in settings.windows
    ]


# Runs


def agents_of(load: str, start: int) -> list[AgentRow]:
    """Return the contenders of a load; at a height newcomers come, heavy users reform, an owner changes identity."""
    bursts: dict[str, Any] = {"bursts": 100, "burst": 25} if load == "bursty" else {}
    gaps = GAPS[load]
    greedy: dict[str, Any] = {"timers": 20, "gap": 2.0} if load == "heavy" else {"timers": 6, "gap": 3.0}
    return [
        Contender(name="dominating", tip=TIP, until=start, **greedy),
        Contender(name="renamed", tip=TIP, since=start, **greedy),
        Contender(name="incumbent", count=12, tip=TIP, gap=gaps["incumbent"], **bursts),
        Contender(name="newcomer", count=4, tip=TIP, gap=gaps["newcomer"], since=start, **bursts),
        Contender(name="small", count=6, tip=TIP, gap=gaps["small"], **bursts),
        Contender(name="reformed", count=2, tip=TIP, gap=3.3, changes=start, gap_after=gaps["reformed"], **bursts),
    ]


class Delays:
    """By how many blocks the timers of each actor are late, those included that still wait at the end."""

    def __init__(self) -> None:
        """Begin without any."""
        self.late: defaultdict[int, list[int]] = defaultdict(list)
        self._live: dict[bytes, tuple[int, int]] = {}  # of timers scheduled in the blocks seen: actor, height

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        for plan in block.accepted:
            self._live[plan.timer_id] = plan.order.actor, plan.order.height
        for fire in block.fires:
            if self._live.pop(fire.plan.timer_id, None):
                self.late[fire.plan.order.actor].append(fire.late)

    def close(self, height: int) -> None:
        """Count what waits after the last block by its lateness there."""
        for actor, due in self._live.values():
            if due <= height:
                self.late[actor].append(height - due)

    def mean(self, actor: int) -> float:
        """Return the mean over the timers of an actor."""
        return fmean(self.late[actor])

    def quantile(self, actors: Sequence[int], probability: float) -> float:
        """Return a quantile over the timers of actors."""
        late = [blocks for actor in actors for blocks in self.late[actor]]
        return float(np.quantile(late, probability, method="inverted_cdf"))


class Response:
    """For how long who has changed is treated unlike its peers, and what a new identity gains by it."""

    def __init__(self, blocks: int, apart: Mapping[str, Callable[[], float]], rate: float) -> None:
        """Follow so many blocks; ``apart`` gives differences of W, ``rate`` the owner's fires a block before."""
        self.lags = dict.fromkeys(apart, blocks)
        self.gain = 0.0
        self._blocks, self._apart, self._rate = blocks, apart, rate

    def see(self, number: int, own: int) -> None:
        """Take in the block of a number, before which W is read, with the fires of the owner that has changed."""
        for name, apart in self._apart.items():
            if self.lags[name] == self._blocks and apart() <= NEAR:
                self.lags[name] = number
        if self.lags["renamed"] == self._blocks:
            self.gain += own - self._rate


def replicate(settings: Settings, point: Point, seed: int) -> Mapping[str, float]:
    """Run one load with one window: until the window is full, then a window from the changes on, then all in peace."""
    window, load = int(point.facts["window"]), str(point.facts["load"])
    start = max(settings.warm_up, window)
    params = {"lane.fairness_window_blocks": window}
    ground = contest(seed, agents_of(load, start + 1), settings.fires, params)
    actors = {name: actors_of(ground, [name]) for name in ("renamed", *GAPS[load])}
    owner = {*actors["renamed"], *actors_of(ground, ["dominating"])}
    world, weights, delays = Alone(ground), WeightMeasure(ground), Delays()

    def build() -> tuple[BlockResult, int]:
        block = world.build()
        weights.see(block)
        return block, sum(fire.plan.order.actor in owner for fire in block.fires)

    before = [build()[1] for _ in range(start)][start // 2 :]
    apart = {
        "newcomer": lambda: weights.mean(actors["newcomer"]) - weights.mean(actors["incumbent"]),
        "reformed": lambda: weights.mean(actors["small"]) - weights.mean(actors["reformed"]),
        "renamed": lambda: weights.mean(actors["renamed"]) - 1.0,
    }
    response = Response(window, apart, fmean(before))
    for number in range(window):
        response.see(number, build()[1])
    own = fires = 0
    for _ in range(settings.blocks):
        block, of_owner = build()
        delays.see(block)
        own, fires = own + of_owner, fires + len(block.fires)
    delays.close(world.height)
    served = [gap / (gap + delays.mean(actor)) for name, gap in GAPS[load].items() for actor in actors[name]]
    return {
        "jain": jain(served),
        "largest_share": own / fires,
        "small_p95": delays.quantile(actors["small"], P95),
        "small_p99": delays.quantile(actors["small"], P99),
        "incumbent_p99": delays.quantile(actors["incumbent"], P99),
        **{f"{name}_lag": lag for name, lag in response.lags.items()},
        "renamed_gain": response.gain,
        "median": weights.median,
    }


# What they say


def windows_of(results: Results, load: str) -> list[Point]:
    """Return the points of a load, by window."""
    return [point for point in results.points if point.facts["load"] == load]


def loads_of(results: Results) -> list[str]:
    """Return the loads in order."""
    return list(dict.fromkeys(str(point.facts["load"]) for point in results.points))


def table(results: Results) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return a row for each load and window."""
    rows = [
        [point.name, *(interval_text(results.interval(point.name, name)) for name in MEASURES)]
        for point in results.points
    ]
    return ["load, window", *MEASURES.values()], rows


def worse(results: Results, point: Point, rest: Sequence[Point]) -> list[str]:
    """Return the measures of evenness in which a window is shown to be worse than another by more than matters."""
    found = []
    for name, tolerance in TOLERANCES.items():
        sign = -1 if name == "jain" else 1
        differences = (results.difference(point.name, other.name, name) for other in rest if other != point)
        if any(is_shown(each) and sign * each.mean > tolerance for each in differences):
            found.append(name)
    return found


def recommended(results: Results) -> tuple[int, Mapping[int, list[str]]]:
    """Return the window against which the least speaks, the shortest of such, and what speaks against each.

    What speaks for small owners counts before all else: W is there for them.
    """
    against: dict[int, list[str]] = {int(point.facts["window"]): [] for point in results.points}
    for load in loads_of(results):
        rest = windows_of(results, load)
        for point in rest:
            against[int(point.facts["window"])] += [
                f"{MEASURES[name]} at {load} load" for name in worse(results, point, rest)
            ]
    small = {window: sum(each.startswith("small") for each in reasons) for window, reasons in against.items()}
    return min(against, key=lambda window: (small[window], len(against[window]), window)), against


def figures(results: Results) -> Mapping[str, Any]:
    """Draw how long changes are felt, and how late fires are, over the window."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for load in loads_of(results):
        chosen = windows_of(results, load)
        windows = [int(point.facts["window"]) for point in chosen]
        for axes, name, style in (
            (left, "newcomer_lag", "o-"),
            (left, "reformed_lag", "s--"),
            (right, "small_p99", "o-"),
            (right, "incumbent_p99", "s--"),
        ):
            found = [results.interval(point.name, name) for point in chosen]
            colour = f"C{loads_of(results).index(load)}"
            label = f"{name.partition('_')[0]}, {load}"
            widths = [each.half_width for each in found]
            means = [each.mean for each in found]
            axes.errorbar(windows, means, widths, fmt=style, capsize=3, color=colour, label=label)
    left.set(xlabel="fairness window, blocks", ylabel="blocks until W is as that of peers", xscale="log", yscale="log")
    right.set(xlabel="fairness window, blocks", ylabel="p99 of delay, blocks", xscale="log")
    left.legend(fontsize=8)
    right.legend(fontsize=8)
    return {"window": figure}


def page(results: Results) -> str:
    """Return the method, the numbers and the answer."""
    best, against = recommended(results)
    launch = load_params("mainnet").lane.fairness_window_blocks
    last = loads_of(results)[-1]
    first, final = windows_of(results, last)[0], windows_of(results, last)[-1]
    loads = "; ".join(f"*{load}*: {TEXT[load]}" for load in loads_of(results))
    found = "\n".join(
        f"- {window:,} blocks: " + ("nothing speaks against it." if not reasons else f"worse in {', '.join(reasons)}.")
        for window, reasons in against.items()
    )
    median = ", ".join(
        f"{results.interval(point.name, 'median').mean:,.0f} ({point.name})"
        for point in results.points
        if point.facts["window"] == best
    )
    held = "Keep" if best == launch else "Set"
    return f"""{LANE_TEXT.format(fires=results.settings.fires)}

All owners pay the same tip. 12 incumbents, 6 small owners and a dominating one run until the window is full. Then 4
newcomers arrive, 2 heavy users begin to ask for as little as small owners, and the dominating owner goes on as a new
actor. For one window it is measured how long each of them is treated unlike its peers: until its mean W is within
{NEAR:g} of theirs. Evenness is measured in the {results.settings.blocks:,} blocks after that, in which nothing
changes: Jain's index is over owners, of the gap between fires as it is wanted to that as it is; delays count timers
that still wait at the end. Loads: {loads}.

{markdown_table(*table(results))}

A newcomer is favoured for {_range(results, "newcomer_lag")} of the window, a heavy user that reforms is held back for
{_range(results, "reformed_lag")} of it, so that both grow with it. A new identity gains the dominating owner
{interval_text(results.interval(first.name, "renamed_gain"))} fires with {first.facts["window"]:,} blocks and
{interval_text(results.interval(final.name, "renamed_gain"))} with {final.facts["window"]:,} at {last} load.

Against each window counts what the replications show to be worse than with another one, by more than
{TOLERANCES["jain"]:g} of Jain's index, {TOLERANCES["small_p99"]:g} block of the small owners' p99 or
{TOLERANCES["incumbent_p99"]:g} blocks of the incumbents'; where intervals of differences include 0 no difference can
be shown, and none counts.

{found}

**Recommendation.** {held} `lane.fairness_window_blocks` {"at" if best == launch else "to"} {best:,} blocks
(`system:cip1:fairness_window_blocks`; {launch:,} at launch): what small owners wait counts first, since W
is there for them, then how much speaks against it in all, then its length.

**What would change it.** W compares counts of fires, so what matters is not blocks but how often the median actor
fires within the window: here {median}. If actors of a chain fire more rarely, the window must be longer in
proportion. At tips of 0 W orders nothing at any window, and without a full lane neither."""


def _range(results: Results, name: str) -> str:
    """Return the least and the greatest mean of a lag, in parts of the window."""
    parts = [results.interval(point.name, name).mean / int(point.facts["window"]) for point in results.points]
    return f"{min(parts):.2f} to {max(parts):.2f}"
