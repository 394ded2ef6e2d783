"""Whether the network median of fires should be smoothed, for those who are there when it moves."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Annotated, Any, Final

from matplotlib.figure import Figure
from msgspec import Meta

from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.agents.base import AgentRow
from trailboss.simulator.agents.contenders import Contender
from trailboss.simulator.alone import Alone
from trailboss.simulator.metrics.statistics import Interval
from trailboss.simulator.metrics.weights import WeightMeasure
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.contest import LANE_TEXT, TIP, actors_of, contest
from trailboss.simulator.study.text import interval_text, markdown_table
from trailboss.simulator.study.verdicts import is_shown

TITLE: Final = "Should the network median be smoothed against shocks (CIP-1 v3 §16; §8 limitation 2)?"
Shock = Annotated[str, Meta(pattern="^(large|crowd|manipulator)$")]
TEXT: Final = {
    "large": "one actor that pays three times the tip takes up to 60 % of the lane",
    "crowd": "one owner of 60 actors asks for as much, at the tip of all",
    "manipulator": "one owner has each of many actors fire once a window; they are a third as many as it has blocks",
}
GAPS: Final = (3.0, 6.0, 12.0, 24.0)  # mean blocks between fires of incumbents, 5 owners each
EVERY: Final = 5  # blocks from a look at W to the next
BUCKET: Final = 25  # blocks over which W and delays are taken together
NEAR: Final = 0.05  # W below its level before the entry that counts as held back
STEP: Final = 100  # blocks of a point of the figure
MATTERS: Final = 0.5  # blocks of mean delay; less does not matter
MEASURES: Final = {
    "entry_depth": "stay: W lower by at most",
    "entry_length": "for, blocks",
    "leave_depth": "after it: W lower by at most",
    "leave_length": "for, blocks",
    "late_before": "delay before, blocks",
    "late_entry": "in the window after the entry",
    "late_stay": "in the window before the exit",
    "late_leave": "in the window after the exit",
}
JUDGED: Final[Mapping[str, tuple[float, str]]] = {
    "late_entry": (MATTERS, "delay after the entry"),
    "late_stay": (MATTERS, "delay before the exit"),
    "late_leave": (MATTERS, "delay after the exit"),
    "entry_length": (BUCKET, "W held back during the stay"),
    "leave_length": (BUCKET, "W held back after the exit"),
}
"""Measure to the difference that matters, blocks, and its name."""


class MedianSmoothingSettings(base.Settings, frozen=True, kw_only=True):
    """Time constants and shocks."""

    smoothing: Annotated[tuple[Annotated[int, Meta(ge=1, le=100_000)], ...], Meta(min_length=2)]  # blocks; 1 is off
    shocks: Annotated[tuple[Shock, ...], Meta(min_length=1)]
    window: Annotated[int, Meta(ge=BUCKET, le=10_000)] = 300  # of fairness, blocks
    fires: Annotated[int, Meta(ge=5, le=100)] = 5  # that the lane holds


Settings = MedianSmoothingSettings


def points(settings: Settings) -> Sequence[Point]:
    """Return a point for each shock and time constant; the first is without smoothing."""
    if settings.smoothing[0] != 1 or list(settings.smoothing) != sorted(set(settings.smoothing)):
        raise ConfigurationError(f"smoothing = {list(settings.smoothing)} must ascend from 1, which is none")
    if settings.window % BUCKET or settings.blocks % (2 * BUCKET) or settings.blocks < 4 * settings.window:
        rule = f"multiples of {2 * BUCKET} and at least 4 windows, which are multiples of {BUCKET}"
        raise ConfigurationError(f"blocks = {settings.blocks} with window = {settings.window} must be {rule}")
    return [
        Point(f"{shock} / {blocks}", {"shock": shock, "smoothing": blocks})
        for shock in settings.shocks
        for blocks in settings.smoothing
    ]


# Runs


def agents_of(settings: Settings, shock: str, start: int) -> list[AgentRow]:
    """Return incumbents, an owner that fills the lane, and one that comes at a height, for half of the blocks."""
    stay: dict[str, Any] = {"since": start, "until": start + settings.blocks // 2}
    shocks = {
        "large": Contender(name="large", timers=settings.fires * 6 // 5, gap=2.0, tip=3 * TIP, **stay),
        "crowd": Contender(name="crowd", actors=60, timers=settings.fires * 6 // 5, gap=2.0, tip=TIP, **stay),
        "manipulator": Contender(name="manipulator", actors=settings.window // 3, gap=3.0, tip=TIP, **stay),
    }
    return [
        *(Contender(name=f"incumbent {gap:g}", count=5, gap=gap, tip=TIP) for gap in GAPS),
        Contender(name="filler", timers=2 * settings.fires, gap=2.0, tip=TIP),
        shocks[shock],
    ]


class BlockRun:
    """What incumbents have in some blocks: W before each, delays of their fires."""

    def __init__(self) -> None:
        """Begin without any."""
        self.weights: list[float] = []
        self.late: list[int] = []


def levels(buckets: Sequence[BlockRun]) -> tuple[float, float]:
    """Return the mean W and the mean delay of some buckets."""
    late = [blocks for bucket in buckets for blocks in bucket.late]
    return fmean(weight for bucket in buckets for weight in bucket.weights), fmean(late) if late else 0.0


def response(name: str, buckets: Sequence[BlockRun], level: float) -> dict[str, float]:
    """Return by how much at most, and for how many blocks, W lies below a level."""
    below = [level - fmean(bucket.weights) for bucket in buckets]
    return {f"{name}_depth": max(0.0, *below), f"{name}_length": sum(each > NEAR for each in below) * BUCKET}


def observe(settings: Settings, point: Point, seed: int) -> tuple[list[BlockRun], list[BlockRun]]:
    """Run one shock with one time constant; return the buckets of the window before it, and those from it on."""
    smoothing, window = int(point.facts["smoothing"]), settings.window
    start = max(settings.warm_up, 3 * window, 4 * max(settings.smoothing))  # a smoothed median begins at 0
    params = {"lane.fairness_window_blocks": window, "lane.fires_median_blocks": smoothing}
    ground = contest(seed, agents_of(settings, str(point.facts["shock"]), start + 1), settings.fires, params)
    incumbents = actors_of(ground, [f"incumbent {gap:g}" for gap in GAPS])
    known, world, weights = {*incumbents}, Alone(ground), WeightMeasure(ground)
    buckets = [BlockRun() for _ in range((window + settings.blocks) // BUCKET)]
    for number in range(window - start, window + settings.blocks):
        bucket = buckets[number // BUCKET] if number >= 0 else BlockRun()
        if number >= 0 and number % EVERY == 0:
            bucket.weights.append(weights.mean(incumbents))
        block = world.build()
        weights.see(block)
        bucket.late += [fire.late for fire in block.fires if fire.plan.order.actor in known]
    return buckets[: window // BUCKET], buckets[window // BUCKET :]


def replicate(settings: Settings, point: Point, seed: int) -> Mapping[str, float]:
    """Run one shock with one time constant."""
    before, after = observe(settings, point, seed)
    part, half, step = settings.window // BUCKET, len(after) // 2, STEP // BUCKET
    entry, leave = after[:half], after[half:]
    weight, late = levels(before)
    path = {f"weight_{at * BUCKET}": levels(after[at : at + step])[0] for at in range(0, len(after) - step + 1, step)}
    return {
        **response("entry", entry, weight),
        **response("leave", leave, weight),
        "late_before": late,
        "late_entry": levels(entry[:part])[1],
        "late_stay": levels(entry[-part:])[1],
        "late_leave": levels(leave[:part])[1],
        **path,
    }


# What they say


def table(results: Results) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return a row for each shock and time constant."""
    rows = [
        [point.name, *(interval_text(results.interval(point.name, name)) for name in MEASURES)]
        for point in results.points
    ]
    return ["shock / time constant, blocks", *MEASURES.values()], rows


def shocks_of(results: Results) -> list[str]:
    """Return the shocks in order."""
    return list(dict.fromkeys(str(point.facts["shock"]) for point in results.points))


def effects(results: Results, smoothing: int) -> tuple[list[str], list[str]]:
    """Return where a time constant is shown to shorten delays or the time for which W is held back; and to lengthen."""
    helps, harms = list[str](), list[str]()
    for shock in shocks_of(results):
        for name, (least, text) in JUDGED.items():
            change = results.difference(f"{shock} / {smoothing}", f"{shock} / 1", name)
            if is_shown(change) and abs(change.mean) >= least:
                size = interval_text(Interval(abs(change.mean), change.half_width, change.count))
                (helps if change.mean < 0 else harms).append(f"{text} ({shock}) by {size}")
    return helps, harms


def recommended(results: Results) -> int:
    """Return the time constant that helps most often and harms nowhere, the shortest of such; else 1."""
    found = {blocks: effects(results, blocks) for blocks in results.settings.smoothing[1:]}
    good = {blocks: len(helps) for blocks, (helps, harms) in found.items() if helps and not harms}
    return min(good, key=lambda blocks: (-good[blocks], blocks), default=1)


def figures(results: Results) -> Mapping[str, Any]:
    """Draw W of the incumbents through each shock."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    shocks, settings = shocks_of(results), results.settings
    places = figure.subplots(1, len(shocks), sharey=True, squeeze=False)[0]
    heights = range(0, settings.blocks // BUCKET * BUCKET - STEP + 1, STEP)
    chosen = [settings.smoothing[0], *settings.smoothing[1:][-2:]]
    for axes, shock in zip(places, shocks, strict=True):
        for blocks in chosen:
            found = [results.interval(f"{shock} / {blocks}", f"weight_{height}") for height in heights]
            axes.errorbar(
                [height + STEP / 2 for height in heights],
                [each.mean for each in found],
                [each.half_width for each in found],
                fmt=".-",
                capsize=2,
                linewidth=1,
                label="as it is" if blocks == 1 else f"over {blocks} blocks",
            )
        axes.axvspan(0, settings.blocks // 2, color="0.92")
        axes.set(title=shock, xlabel="blocks since the entry")
    places[0].set_ylabel("mean W of the incumbents")
    places[0].legend(title="network median", fontsize=8)
    return {"shocks": figure}


def page(results: Results) -> str:
    """Return the method, the numbers and the answer."""
    settings = results.settings
    best = recommended(results)
    shocks = "; ".join(f"*{shock}*: {TEXT[shock]}" for shock in shocks_of(results))
    lines = [f"- over {blocks:,} blocks: {_effect_text(results, blocks)}." for blocks in settings.smoothing[1:]]
    depths = [
        f"{interval_text(results.interval(f'{shock} / 1', f'{when}_depth'))} lower at most, for "
        f"{interval_text(results.interval(f'{shock} / 1', f'{when}_length'))} blocks, {word} the {shock}"
        for shock in shocks_of(results)
        for when, word in (("entry", "during the stay of"), ("leave", "after the exit of"))
    ]
    answer = (
        "Leave `lane.fires_median_blocks` at 1, which is no smoothing: no time constant is shown "
        "to shorten the incumbents' delays, or W held back, anywhere without lengthening either elsewhere."
        if best == 1
        else f"Set `lane.fires_median_blocks` to {best:,}, {best / settings.window:.2g} of the fairness window."
    )
    lines_text = "\n".join(lines)
    return f"""{LANE_TEXT.format(fires=settings.fires)} The window has {settings.window:,} blocks, so that several
pass in a run; lengths and time constants count in proportion to it.

20 incumbents fire every {", ".join(f"{gap:g}" for gap in GAPS)} blocks, 5 each, and another owner fills the lane, all
at one tip. Then someone enters, stays for {settings.blocks // 2:,} blocks, and leaves: {shocks}. W is the mean over
the incumbents; it counts as held back while it is more than {NEAR:g} below its level in the window before the
entry. Delays are means over their fires.

{markdown_table(*table(results))}

With the median as it is, W of the incumbents is {"; ".join(depths)}. A depth is the greatest of {BUCKET}-block
means, so that part of it is noise. One actor, however large, is one of many in a median; it is owners with many actors
that move it.

Against the median as it is, in blocks, where intervals of differences exclude 0, and delays differ by at least
{MATTERS:g} and times for which W is held back by at least {BUCKET}:

{lines_text}

**Recommendation.** {answer}

**What would change it.** A population in which few actors make up the window: a median of few moves further. A
smoothed median begins at 0, at which all that have fired have W = 1, so that it needs some time constants after its
activation. Against the manipulator, who stays, smoothing can only delay; W by deployer counts it as one."""


def _effect_text(results: Results, smoothing: int) -> str:
    """Return what a time constant is shown to change."""
    helps, harms = effects(results, smoothing)
    texts = [f"{word}: {'; '.join(each)}" for word, each in (("shorter", helps), ("longer", harms)) if each]
    return ". ".join(texts) or "no difference can be shown"
