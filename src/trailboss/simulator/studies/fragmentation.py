"""What an owner gains by splitting itself into many actors, with W counted for each actor or for its deployer."""

from collections.abc import Mapping, Sequence
from math import nan
from statistics import fmean
from typing import Annotated, Any, Final

from matplotlib.figure import Figure
from msgspec import Meta

from trailboss.params import load_params
from trailboss.params.records import deployment_price
from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.agents.contenders import CYCLES, Contender
from trailboss.simulator.alone import Alone
from trailboss.simulator.metrics.statistics import Interval
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.contest import BASEFEE, LANE_TEXT, TIP, actors_of, contest
from trailboss.simulator.study.text import interval_text, markdown_table
from trailboss.simulator.study.verdicts import is_shown

TITLE: Final = (
    "What does an owner gain by being many actors, and should W be per deployer (CIP-1 v3 §16; §8 limitation 1, which "
    "MUST be sized)?"
)
RULES: Final[Mapping[str, Mapping[str, int]]] = {
    "no W": {"lane.weight_max": 10**9},
    "actor": {"lane.weight_per_deployer": 0},
    "deployer": {"lane.weight_per_deployer": 1},
    "new deployers": {"lane.weight_per_deployer": 1},
}
"""Whose fires W counts, to parameters; with new deployers each actor of the splitter has one of its own."""
HONEST: Final = 20  # owners of one actor each
HONEST_TIMERS: Final = 2  # that each of them always wants; a fire every 2 blocks at most of each
SOURCE_BYTES: Final = 1_000  # of the program that each new actor is deployed with
MEASURES: Final = {
    "share": "share of the lane",
    "fires": "fires a block",
    "late": "its delay, blocks",
    "honest_late": "honest delay, blocks",
}
SHARE_GAINS: Final = 0.01  # of the lane: less does not matter


class FragmentationSettings(base.Settings, frozen=True, kw_only=True):
    """How many actors the owner is, and what the honest pay."""

    splits: Annotated[tuple[Annotated[int, Meta(ge=1, le=10_000)], ...], Meta(min_length=2)]  # ascending from 1
    crossed: Annotated[tuple[Annotated[int, Meta(ge=2, le=10_000)], ...], Meta(min_length=1)]  # those at all ratios
    # What honest owners pay, as multiples of what the splitter pays, beside equal tips; ascending.
    ratios: Annotated[tuple[Annotated[float, Meta(gt=1.0, le=10.0)], ...], Meta(min_length=1)]
    fires: Annotated[int, Meta(ge=2, le=100)] = 10  # that the lane holds


Settings = FragmentationSettings


def name_of(rule: str, split: int, ratio: float) -> str:
    """Return the name of a point."""
    return f"{rule} / {split} actors / {ratio:g}"


def points(settings: Settings) -> Sequence[Point]:
    """Return a point for each rule and split at equal tips, and for some of them at each ratio."""
    if settings.splits[0] != 1 or list(settings.splits) != sorted(set(settings.splits)):
        raise ConfigurationError(f"splits = {list(settings.splits)} must ascend from 1")
    if others := set(settings.crossed) - set(settings.splits):
        raise ConfigurationError(f"crossed = {list(settings.crossed)}: {min(others)} must be one of splits")
    first = settings.crossed[0]
    equal = [("no W", 1), *((rule, split) for rule in ("actor", "deployer") for split in settings.splits)]
    equal += [("new deployers", split) for split in settings.crossed]
    chosen = [(rule, split, 1.0) for rule, split in equal]
    for ratio in settings.ratios:
        chosen += [("actor", split, ratio) for split in (1, *settings.crossed)]
        chosen += [("deployer", split, ratio) for split in (1, first)]
    return [
        Point(name_of(rule, split, ratio), {"rule": rule, "split": split, "ratio": ratio})
        for rule, split, ratio in chosen
    ]


def replicate(settings: Settings, point: Point, seed: int) -> Mapping[str, float]:
    """Run one split: an owner that always wants more than the lane, among honest ones that together want it, too."""
    rule, split, timers = str(point.facts["rule"]), int(point.facts["split"]), 4 * settings.fires
    many = split if rule == "new deployers" else 1
    agents = [
        Contender(
            name="honest", count=HONEST, timers=HONEST_TIMERS, gap=3.0, tip=round(TIP * float(point.facts["ratio"]))
        ),
        Contender(name="splitter", count=many, actors=split // many, timers=-(-timers // many), tip=TIP),
    ]
    ground = contest(seed, agents, settings.fires, RULES[rule])
    own, world = {*actors_of(ground, ["splitter"])}, Alone(ground)
    for _ in range(settings.warm_up):
        world.build()
    late: tuple[list[int], list[int]] = ([], [])  # of the honest, of the splitter
    for _ in range(settings.blocks):
        for fire in world.build().fires:
            late[fire.plan.order.actor in own].append(fire.late)
    honest, splitter = late
    return {
        "share": len(splitter) / (len(honest) + len(splitter)),
        "fires": len(splitter) / settings.blocks,
        "late": fmean(splitter) if splitter else nan,
        "honest_late": fmean(honest) if honest else nan,
    }


# What they say


def price_of_actor() -> tuple[float, float]:
    """Return what a new actor, and what a new deployer's account, cost to set up, in fires at the floor of prices."""
    params = load_params("mainnet")
    costs, fees = params.costs, params.fees
    fire = CYCLES * (fees.min_basefee + BASEFEE + TIP)
    actor = (costs.transaction_base + deployment_price(SOURCE_BYTES, costs) + SOURCE_BYTES) * fees.min_basefee
    account = (costs.transaction_base + costs.transfer + costs.transfer_cells) * fees.min_basefee
    return actor / fire, account / fire


def gain(results: Results, rule: str, split: int, ratio: float) -> Interval:
    """Return by which share of the lane an owner has more as several actors than as one."""
    single = "deployer" if rule == "new deployers" else rule
    return results.difference(name_of(rule, split, ratio), name_of(single, 1, ratio), "share")


def gains(results: Results, rule: str, ratio: float | None = None) -> list[tuple[int, float, Interval]]:
    """Return split, ratio and gain of the points of a rule, but for those of one actor."""
    return [
        (int(point.facts["split"]), float(point.facts["ratio"]), gain(results, rule, int(point.facts["split"]), each))
        for point in results.points
        if point.facts["rule"] == rule and point.facts["split"] != 1
        for each in [float(point.facts["ratio"])]
        if ratio in {None, each}
    ]


def matters(interval: Interval) -> bool:
    """Return whether a gain is shown, and of a size that matters."""
    return is_shown(interval) and interval.mean > SHARE_GAINS


def table(results: Results) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return a row for each point."""
    rows = []
    for point in results.points:
        rule, split, ratio = str(point.facts["rule"]), int(point.facts["split"]), float(point.facts["ratio"])
        found = [interval_text(results.interval(point.name, name)).replace("nan", "none") for name in MEASURES]
        more = "" if split == 1 else interval_text(gain(results, rule, split, ratio))
        rows.append([rule, f"{split:,}", f"{ratio:g}", *found, more])
    return ["W counts by", "actors", "honest tip ÷ its tip", *MEASURES.values(), "gain in share"], rows


def figures(results: Results) -> Mapping[str, Any]:
    """Draw the share over the number of actors, and the gain over what the honest pay."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for rule, style in (("actor", "o-"), ("deployer", "s-"), ("new deployers", "^")):
        chosen = [point for point in results.points if point.facts["rule"] == rule and point.facts["ratio"] == 1.0]
        found = [results.interval(point.name, "share") for point in chosen]
        splits = [int(point.facts["split"]) for point in chosen]
        left.errorbar(
            splits, [each.mean for each in found], [each.half_width for each in found], fmt=style, capsize=3, label=rule
        )
    law = list(results.settings.splits)
    left.plot(law, [split / (HONEST + split) for split in law], "k:", label="k ÷ (20 + k)")
    left.set(xlabel="actors of the splitter, k", ylabel="its share of the lane", xscale="log")
    for rule, style in (("actor", "o-"), ("deployer", "s--")):
        for split in results.settings.crossed:
            line = [(ratio, each) for found, ratio, each in gains(results, rule) if found == split]
            if len(line) > 1:
                ratios, each = zip(*sorted(line, key=lambda pair: pair[0]), strict=True)
                right.errorbar(
                    ratios,
                    [one.mean for one in each],
                    [one.half_width for one in each],
                    fmt=style,
                    capsize=3,
                    label=f"{rule}, {split:,} actors",
                )
    right.axhline(0.0, color="k", linewidth=0.5)
    right.set(xlabel="tip of the honest ÷ tip of the splitter", ylabel="gain in share of the lane")
    left.legend()
    right.legend()
    return {"splitting": figure}


def page(results: Results) -> str:
    """Return the method, the numbers and the answer."""
    actor, account = price_of_actor()
    by_actor, by_deployer = gains(results, "actor"), gains(results, "deployer")
    most = max(by_actor, key=lambda each: each[2].mean)
    paying = [each for each in by_actor if each[1] > 1.0]
    stops = [
        ratio for ratio in results.settings.ratios if not any(matters(one[2]) for one in paying if one[1] == ratio)
    ]
    stop = (
        f"From a ratio of {min(stops):g} on no gain above {SHARE_GAINS:g} of the lane is shown: W is at most 2, so who "
        "is paid twice as much for is not overtaken."
        if stops
        else "At every ratio here some split gains."
    )
    left = [each for each in by_deployer if matters(each[2])]
    back = gains(results, "new deployers", 1.0)
    closes = not left and any(matters(each[2]) for each in by_actor)
    evaded = [each for each in back if matters(each[2])]
    deployer_text = (
        "With W by deployer no gain above that can be shown at any split or ratio."
        if not left
        else "With W by deployer these still gain: " + ", ".join(f"{each[0]:,} at {each[1]:g}" for each in left) + "."
    )
    answer = (
        "Set `lane.weight_per_deployer` to 1: the gain by splitting under one deployer is material by actor, and none "
        "can be shown by deployer."
        if closes
        else "Leave `lane.weight_per_deployer` at 0: it is not shown to take away what splitting gains."
    )
    rest = (
        f"It is no wall: with a new deployer for each actor the owner has its gain back "
        f"({', '.join(f'{interval_text(each[2])} with {each[0]:,}' for each in evaded)}), and an account costs "
        f"{account:.2f} fires beside the {actor:.1f} of an actor. Nothing in the order should be taken as safe against "
        "identities that cost so little; what bounds the attack is the tip."
        if evaded
        else "New deployers, one for each actor, are not shown to give the gain back."
    )
    return f"""{LANE_TEXT.format(fires=results.settings.fires)}

{HONEST} honest owners of one actor each always want {HONEST_TIMERS} timers, which is more than the lane together. One
owner, the splitter, always wants {4 * results.settings.fires} timers and gives each to the next of its k actors in
turn, all of one deployer; with *new deployers* each actor has one of its own. *No W* is the lane with W at 1 for all.
The gain is its share of the lane less that of the same owner as one actor, under the same rule and at the same tips.

{markdown_table(*table(results))}

At equal tips W decides alone, so the gain is not held to a factor of 2. {_law_text(results)} The most that a split
gains by actor is {interval_text(most[2])} of the lane, with {most[0]:,} actors. {_paying_text(results)} {stop}
{deployer_text}

Setting up an actor of {SOURCE_BYTES:,} bytes costs {actor:.1f} fires at the floor of all prices, once; the
{most[0]:,} actors cost {actor * most[0]:,.0f} fires and gain
{most[2].mean * results.settings.fires:.1f} fires a block here.

**Recommendation.** {answer} {rest}

**What would change it.** A deployer that many owners share, such as a factory, is held down as one of them; if such
are common, W by deployer costs honest owners. An owner that wants no more than an honest one gains delay only, not
share."""


def _law_text(results: Results) -> str:
    """Return how well k ÷ (honest + k) predicts the shares by actor at equal tips."""
    shares = {
        split: results.interval(name_of("actor", split, 1.0), "share").mean - split / (HONEST + split)
        for split in results.settings.splits
    }
    worst = max(shares, key=lambda split: abs(shares[split]))
    return (
        f"If each of k actors is given what an honest owner is given, they have k ÷ ({HONEST} + k) of the lane: the "
        f"shares by actor are within {abs(shares[worst]):.3f} of that, worst with {worst:,}."
    )


def _paying_text(results: Results) -> str:
    """Return what splits gain against honest owners who pay more, and whether more actors gain more there."""
    paying = [each for each in gains(results, "actor") if each[1] > 1.0]
    best = max(paying, key=lambda each: each[2].mean)
    text = (
        f"Against honest owners who pay more it is {interval_text(best[2])}, with {best[0]:,} actors at a ratio of "
        f"{best[1]:g}."
    )
    largest = max(split for split, _, _ in paying)
    less = results.difference(name_of("actor", best[0], best[1]), name_of("actor", largest, best[1]), "share")
    if largest != best[0] and is_shown(less):
        text += (
            f" With {largest:,} actors it is less by {interval_text(less)}: once its actors are the majority, their "
            "few fires are the network median, and each of them has W near 2 for its first fire only."
        )
    return text
