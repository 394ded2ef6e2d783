"""What the four priority tiers do to one another: they multiply the median of what they have paid."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from msgspec import Meta

from trailboss.params import load_params
from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.agents.base import Agent, AgentRow, Draws
from trailboss.simulator.agents.contenders import CYCLES
from trailboss.simulator.alone import Alone
from trailboss.simulator.orders import Order, Schedule, View
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.contest import BASEFEE, contest
from trailboss.simulator.study.text import interval_text, markdown_table
from trailboss.simulator.study.verdicts import is_shown

TITLE: Final = "Which multipliers should the priority tiers have (CIP-1 v3 §16, §7.3; {0.8, 1.0, 1.5, 2.5} at launch)?"
TIERS: Final = ("economy", "standard", "fast", "urgent")
MIXES: Final[Mapping[str, tuple[float, ...]]] = {
    "thrifty": (0.55, 0.25, 0.1, 0.1),
    "standard": (0.15, 0.6, 0.15, 0.1),
    "even": (0.25, 0.25, 0.25, 0.25),
    "hurried": (0.1, 0.2, 0.5, 0.2),
}
"""Shares of the timers that each tier has."""
LOADS: Final[Mapping[str, tuple[float, bool]]] = {
    "calm": (0.4, False),
    "busy": (0.9, False),
    "full": (1.3, False),
    "surges": (0.3, True),
}
"""Share of the lane that is asked for, and whether it is 2 for 20 blocks of every 200 while the basefee is free."""
SURGE: Final = (200, 20, 2.0)  # blocks from one to the next, blocks of one, share of the lane
ACTORS: Final = 40  # the n-th has timers in proportion to 1 ÷ n
PATIENCE: Final = 30  # blocks by which a timer may be late
FIRST: Final = 100  # base units a cycle: what the tiers multiply in the first blocks, as a market that is under way
FIRST_BLOCKS: Final = 10
SHARE: Final = FIRST / BASEFEE  # of the lane basefee
DRIFT: Final = 4.0  # times by which the median may leave that share and count as stable
SHARE_LEAST: Final = SHARE / DRIFT
SHARE_MOST: Final = SHARE * DRIFT
MATTERS: Final = 1.0  # blocks between tiers; less does not matter
UNIT: Final = 10_000
MEASURES: Final = {
    "median": "median tip ÷ basefee, at the end",
    "zero": "blocks with a median of 0, share",
    "at_cap": "at the cap, share",
    "paid": "tip paid ÷ basefee",
    "late_economy": "economy waits, blocks",
    "late_urgent": "urgent waits, blocks",
    "separation": "economy less urgent",
}
Load = Annotated[str, Meta(pattern="^(calm|busy|full|surges)$")]
Mix = Annotated[str, Meta(pattern="^(thrifty|standard|even|hurried)$")]
Multiplier = Annotated[int, Meta(ge=0, le=1_000_000)]


class TierMultipliersSettings(base.Settings, frozen=True, kw_only=True):
    """Sets of multipliers, loads and mixes."""

    # In parts of 10,000, the launch's first. Each is tried on what the specification multiplies, and on a share of the
    # lane basefee in its place.
    sets: Annotated[tuple[tuple[Multiplier, Multiplier, Multiplier, Multiplier], ...], Meta(min_length=1)]
    loads: Annotated[tuple[Load, ...], Meta(min_length=1)]
    mixes: Annotated[tuple[Mix, ...], Meta(min_length=1)]
    anchor: Annotated[int, Meta(ge=1, le=1_000)] = 10  # the share of the basefee is one in so many
    fires: Annotated[int, Meta(ge=2, le=100)] = 10  # that the lane holds


Settings = TierMultipliersSettings


class TierRow(AgentRow, frozen=True, kw_only=True, tag="tiers"):
    """Timers that arrive at random; each has a tier, drawn from a mix."""

    rate: float  # a block
    surge_rate: float  # a block, in surges
    mix: tuple[float, ...]
    multipliers: tuple[int, ...]
    anchor: int = 0  # the tiers multiply the basefee, over this; 0 for the median tip of the block before
    first: int = FIRST  # what they multiply in the first blocks; 0 for what they do always

    def agent(self, name: str, actors: range, draws: Draws) -> Agent:
        """Return the agent."""
        return TierAgent(self, name, actors, draws)


class TierAgent(Agent):
    """See `TierRow`. The tag of a timer is the number of its tier."""

    def __init__(self, row: TierRow, name: str, actors: range, draws: Draws) -> None:
        super().__init__(name, actors)
        self._row = row
        self._arrivals, self._tiers, self._owners = draws("arrivals"), draws("tiers"), draws("owners")
        shares = 1 / np.arange(1, len(actors) + 1)
        self._shares = shares / shares.sum()

    def orders(self, view: View) -> Iterable[Order]:
        """Return the block's arrivals."""
        row, (every, length, _) = self._row, SURGE
        count = int(self._arrivals.poisson(row.surge_rate if view.height % every < length else row.rate))
        tiers = self._tiers.choice(len(row.mix), count, p=row.mix).tolist()
        owners = self._owners.choice(len(self.actors), count, p=self._shares).tolist()
        reference = view.lane_basefee // row.anchor if row.anchor else view.previous_tip
        if row.first and view.height <= FIRST_BLOCKS:
            reference = row.first
        due = view.height + 1
        for tier, owner in zip(tiers, owners, strict=True):
            yield Schedule(
                actor=self.actors[owner],
                height=due,
                gas_limit=CYCLES,
                cycles=CYCLES,
                tip=reference * row.multipliers[tier] // UNIT,
                expires_at=due + PATIENCE,
                tag=tier,
            )


def text_of(multipliers: Sequence[int]) -> str:
    """Return a set of multipliers as people write it."""
    return "{" + ", ".join(f"{each / UNIT:g}" for each in multipliers) + "}"


def points(settings: Settings) -> Sequence[Point]:
    """Return a point for each set, load and mix, and one for each load that begins without any tip."""
    if settings.sets[0] != _launch():
        raise ConfigurationError(f"sets[0] = {list(settings.sets[0])} must be those at launch, {list(_launch())}")
    ways = [(number, anchor) for anchor in (0, settings.anchor) for number in range(len(settings.sets))]
    runs = [(*way, load, mix, FIRST) for way in ways for load, mix in product(settings.loads, settings.mixes)]
    runs += [(0, anchor, load, settings.mixes[-1], 0) for anchor in (0, settings.anchor) for load in settings.loads]
    return [
        Point(
            f"{way_text(settings, number, anchor)} / {load} / {mix}" + ("" if first else " / from 0"),
            {"set": number, "anchor": anchor, "load": load, "mix": mix, "first": first},
        )
        for number, anchor, load, mix, first in runs
    ]


def way_text(settings: Settings, number: int, anchor: int) -> str:
    """Return a set with what it multiplies, as the name of a point begins."""
    return text_of(settings.sets[number]) + (f" of basefee ÷ {anchor}" if anchor else "")


def _launch() -> tuple[int, ...]:
    lane = load_params("mainnet").lane
    return lane.tier_economy, lane.tier_standard, lane.tier_fast, lane.tier_urgent


def replicate(settings: Settings, point: Point, seed: int) -> Mapping[str, float]:
    """Run one set, load and mix."""
    facts = point.facts
    share, surges = LOADS[str(facts["load"])]
    rate = share * settings.fires
    users = TierRow(
        name="users",
        actors=ACTORS,
        rate=rate,
        surge_rate=SURGE[-1] * settings.fires if surges else rate,
        mix=MIXES[str(facts["mix"])],
        multipliers=settings.sets[int(facts["set"])],
        anchor=int(facts["anchor"]),
        first=int(facts["first"]),
    )
    free = {"lane.basefee_max": load_params("mainnet").lane.basefee_max} if surges else {}
    world = Alone(contest(seed, [users], settings.fires, free))
    medians = list[float]()  # of each block, in parts of the lane basefee
    late: list[list[int]] = [[] for _ in TIERS]
    paid = list[float]()  # tip of each fire, in the same parts
    for number in range(settings.warm_up + settings.blocks):
        block = world.build()
        if number < settings.warm_up:
            continue
        medians.append(block.view.previous_tip / block.view.lane_basefee)
        for fire in block.fires:
            late[fire.plan.order.tag].append(fire.late)
            paid.append(fire.tip / fire.cycles_used / block.view.lane_basefee)
        for ending in block.endings:
            late[ending.plan.order.tag].append(PATIENCE)
    waits = [fmean(each) if each else 0.0 for each in late]
    return {
        "median": fmean(medians[-len(medians) // 4 :]),
        "zero": fmean(median == 0 for median in medians),
        "at_cap": fmean(median >= 1 for median in medians),
        "paid": fmean(paid),
        **{f"late_{tier}": wait for tier, wait in zip(TIERS, waits, strict=True)},
        "separation": waits[0] - waits[-1],
    }


# What they say


def table(results: Results) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return a row for each point."""
    rows = [
        [point.name, *(interval_text(results.interval(point.name, name)) for name in MEASURES)]
        for point in results.points
    ]
    return ["multipliers / load / mix", *MEASURES.values()], rows


def where(results: Results, way: tuple[int, int]) -> list[Point]:
    """Return the points of a way, which is the number of a set and its anchor, that begin with a tip."""
    return [
        point
        for point in results.points
        if (point.facts["set"], point.facts["anchor"], point.facts["first"]) == (*way, FIRST)
    ]


def ways_of(results: Results) -> list[tuple[int, int]]:
    """Return the ways in order."""
    return list(dict.fromkeys((int(point.facts["set"]), int(point.facts["anchor"])) for point in results.points))


def fates(results: Results, points: Iterable[Point]) -> Counter[str]:
    """Return in how many runs of points the median has come to fall, to stay, and to rise."""
    medians = [median for point in points for median in results.values(point.name, "median")]
    falls, rises = (sum(map(is_out, medians)) for is_out in (SHARE_LEAST.__gt__, SHARE_MOST.__lt__))
    return Counter(falls=falls, stays=len(medians) - falls - rises, rises=rises)


def drifts(results: Results, way: tuple[int, int]) -> int:
    """Return in how many runs of a way the median has left where it began."""
    found = fates(results, where(results, way))
    return found["falls"] + found["rises"]


class Contrast(NamedTuple):
    """At how many points a way is shown to do this against another."""

    wider: int  # part economy and urgent by more blocks
    closer: int  # by fewer
    dearer: int  # have tips paid that are higher


def contrast(results: Results, way: tuple[int, int], other: tuple[int, int]) -> Contrast:
    """Return how a way compares with another, point by point."""

    def shown(measure: str, least: float) -> list[float]:
        pairs = zip(where(results, way), where(results, other), strict=True)
        changes = [results.difference(one.name, two.name, measure) for one, two in pairs]
        return [each.mean for each in changes if is_shown(each) and abs(each.mean) > least]

    apart, paid = shown("separation", MATTERS), shown("paid", 0.0)
    return Contrast(sum(mean > 0 for mean in apart), sum(mean < 0 for mean in apart), sum(mean > 0 for mean in paid))


def recommended(results: Results) -> tuple[int, int]:
    """Return the way that drifts in the fewest runs.

    Among such it is the first unless another is shown to part tiers by more somewhere, by less nowhere, and to cost no
    more: of those, the one that parts them by more at most points.
    """
    ways = ways_of(results)
    least = min(drifts(results, way) for way in ways)
    first, *others = [way for way in ways if drifts(results, way) == least]
    compared = {way: contrast(results, way, first) for way in others}
    good = {way: each.wider for way, each in compared.items() if each.wider and not each.closer and not each.dearer}
    return max(good, key=lambda way: good[way], default=first)


def figures(results: Results) -> Mapping[str, Any]:
    """Draw where the median ends and how far tiers are apart, over the ways, for each load."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    ways, settings = ways_of(results), results.settings
    for load_at, load in enumerate(settings.loads):
        for mix_at, mix in enumerate(settings.mixes):
            chosen = [
                (at, point)
                for at, way in enumerate(ways)
                for point in where(results, way)
                if (point.facts["load"], point.facts["mix"]) == (load, mix)
            ]
            shift = (load_at - (len(settings.loads) - 1) / 2) * 0.2 + (mix_at - (len(settings.mixes) - 1) / 2) * 0.04
            for axes, name in ((left, "median"), (right, "separation")):
                found = [results.interval(point.name, name) for _, point in chosen]
                axes.errorbar(
                    [at + shift for at, _ in chosen],
                    [each.mean for each in found],
                    [each.half_width for each in found],
                    fmt="os^D"[mix_at],
                    color=f"C{load_at}",
                    markersize=4,
                    capsize=2,
                    label=f"{load}, {mix}",
                )
    labels = [way_text(settings, *way).replace(" of ", "\nof ") for way in ways]
    for axes in (left, right):
        axes.set_xticks(range(len(ways)), labels, fontsize=7)
    left.axhline(SHARE, color="k", linewidth=0.5, linestyle=":")
    left.set(ylabel="median tip at the end ÷ lane basefee", ylim=(-0.05, 1.1))
    right.set(ylabel="economy waits longer than urgent by, blocks")
    left.legend(fontsize=6, ncols=2)
    return {"tiers": figure}


def page(results: Results) -> str:
    """Return the method, the numbers and the answer."""
    settings = results.settings
    best = recommended(results)
    summary = []
    for way in ways_of(results):
        ended = fates(results, where(results, way))
        zero = [results.interval(point.name, "zero").mean for point in where(results, way)]
        paid = [results.interval(point.name, "paid").mean for point in where(results, way)]
        apart = [results.interval(point.name, "separation").mean for point in where(results, way)]
        summary.append(
            [
                way_text(settings, *way),
                *(str(ended[each]) for each in ("falls", "stays", "rises")),
                *(f"{min(each):.2f} to {max(each):.2f}" for each in (zero, paid, apart)),
            ]
        )
    head = ["multipliers", "falls", "stays", "rises", "blocks at 0, share", "tip paid", "economy less urgent, blocks"]
    cold = [point for point in results.points if not point.facts["first"]]
    stuck = [point for point in cold if results.interval(point.name, "zero").mean == 1.0]
    loads = "; ".join(f"*{load}* {_load_text(load)}" for load in settings.loads)
    mixes = "; ".join(f"*{mix}* {', '.join(f'{share:.0%}' for share in MIXES[mix])}" for mix in settings.mixes)
    return f"""The lane holds {settings.fires} fires of 50,000 cycles a block. Timers arrive at random, each with a
tier from a mix, and state its multiple as tip; their cap is the default, twice the basefee, so no tip is above the
basefee. They belong to {ACTORS} actors, the n-th with 1 ÷ n of the first's, so that W is at work. A timer expires
{PATIENCE} blocks late, and counts as so late. Loads, as shares of the lane: {loads}; the basefee stays at its floor
but in surges. Mixes of economy, standard, fast and urgent: {mixes}. In the first {FIRST_BLOCKS} blocks tiers multiply
{FIRST} base units, {SHARE:.0%} of the basefee at its floor; after them the median tip of the block before, as §7.3
has it, or a share of the lane basefee.

A run *falls* or *rises* if its median over the last quarter is less than one part in {DRIFT:g}, or more than
{DRIFT:g} times, of {SHARE:.0%} of the basefee; else it *stays*. Ranges are of means over loads and mixes; tips are in
parts of the basefee.

{markdown_table(head, summary)}

All points:

{markdown_table(*table(results))}

A median of what tiers have paid feeds itself: each block multiplies it by the tier of the timer in the middle, so the
multipliers set how fast it leaves, not whether. {_fed_text(results)} A block without a fire sets it to 0 (§7.1), and
from 0 no multiplier leads away. Of {len(cold)} points that begin without any tip, the median is 0 in every block of
{len(stuck)}: {"; ".join(point.name for point in stuck) or "none"}. W then orders nothing either, since it multiplies
0.

{_answer(results, best)}

**What would change it.** Agents that state tips of their own: if they are most of those that fire, the median is
theirs and tiers follow it. Loads whose blocks are never empty and whose timer in the middle is standard keep the
median where it is, until the lane fills."""


def _fed_text(results: Results) -> str:
    """Return what became of the launch's set on the median tip, load by load."""
    texts = []
    for load in results.settings.loads:
        ended = fates(results, (point for point in where(results, (0, 0)) if point.facts["load"] == load))
        texts.append(f"{load} {ended['falls']} fall and {ended['rises']} rise of {ended.total()}")
    return (
        f"With the launch's set on it: {'; '.join(texts)}. In a full lane economy does not fire and so has no "
        "vote, which lifts the timer in the middle."
    )


def _answer(results: Results, best: tuple[int, int]) -> str:
    """Return the recommendation."""
    settings = results.settings
    number, anchor = best
    names = ", ".join(f"`lane.tier_{tier}` {each:,}" for tier, each in zip(TIERS, settings.sets[number], strict=True))
    verb = "Keep" if number == 0 else "Set"
    count = fates(results, where(results, best)).total()
    text = f"**Recommendation.** {verb} the multipliers {text_of(settings.sets[number])} ({names}, of 10,000)"
    if not anchor:
        return f"{text}, on the median tip: it leaves where it began in {drifts(results, best)} of {count} runs."
    fed = [drifts(results, way) for way in ways_of(results) if not way[1]]
    return (
        f"{text}, but of `basefee_lane_timer` ÷ {anchor} in place of\n"
        "`previous_block_p50_priority_tip_per_cycle`. "
        f"On the median every set drifts in {min(fed)} or more of {count} runs; on the basefee this one does in "
        f"{drifts(results, best)}. {_against_rest(results, best)}"
    )


def _against_rest(results: Results, best: tuple[int, int]) -> str:
    """Return how the other sets compare with the best on the same base."""
    texts = []
    for way in ways_of(results):
        if way[1] == best[1] and way != best:
            wider, closer, dearer = contrast(results, way, best)
            name = text_of(results.settings.sets[way[0]])
            texts.append(
                f"{name} parts economy and urgent by more at {wider}, by less at {closer}, and costs more at {dearer}"
            )
    if not texts:
        return ""
    return f"On the same base, of its points, and with more than {MATTERS:g} block counted: {'; '.join(texts)}."


def _load_text(load: str) -> str:
    share, surges = LOADS[load]
    every, length, high = SURGE
    return f"{share:g}" + (f", {high:g} for {length} blocks of every {every}, the basefee free" if surges else "")
