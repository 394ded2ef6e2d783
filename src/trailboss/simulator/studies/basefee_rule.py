"""The lane's basefee rule as written, against EIP-1559's scaling and the exponential one. Spec: CIP-1v3 §5."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final

import numpy as np
from matplotlib.figure import Figure
from msgspec import Meta

from trailboss.params import ChainParams, load_params
from trailboss.simulator.agents.arrivals import Poisson
from trailboss.simulator.agents.offers import BestResponse
from trailboss.simulator.agents.quantities import Pareto
from trailboss.simulator.alone import Alone
from trailboss.simulator.orders import BlockResult
from trailboss.simulator.scenario import Scenario
from trailboss.simulator.streams import stream
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.basefee_map import REST, BasefeeMap, linear_threshold, rule_of, stable_below
from trailboss.simulator.study.text import interval_text, markdown_table
from trailboss.simulator.study.verdicts import difference_text, draw_bars, points_with, rows_of, sign

TITLE: Final = "For which elasticity of demand, and at which step, does the lane basefee settle under each rule?"
RULES: Final[Mapping[str, Mapping[str, int]]] = {
    "as written": {},
    "as written, 1/32": {"lane.max_change_denominator": 32},
    "alpha 2": {"lane.alpha": 2},
    "alpha 4": {"lane.alpha": 4},
    "alpha 8": {"lane.alpha": 8},
    "alpha 16": {"lane.alpha": 16},
    "exponential": {"lane.basefee_rule": 2},
}
"""The rules that are compared, as the parameters in which each differs from the text."""
WRITTEN: Final = "as written"
FINE: Final = "as written, 1/32"
LAGS: Final = (0, 1, 10)  # blocks between the price that owners see and the block of the fire
CYCLES: Final = 100_000  # of a fire
REST_PRICE: Final = 100_000  # base units: the lane basefee at which the demand of the lane is its target
FLOOR: Final = {"lane.basefee_min": REST_PRICE // 4}  # so that the warm-up is short
SHARE: Final = 2.0  # of the lane that is asked for at the lowest price that is paid
FACTOR: Final = 10  # by which the basefee begins too low, where settling is measured
SLOWER: Final = 1.5  # times the settling time of the rule as written, beyond which a rule counts as too slow
BUFFER: Final = 40  # values of an attractor that are drawn
SWEEP: Final = 90  # elasticities of the bifurcation diagram
SWEEP_MAX: Final = 24.0
STEPS_DRAWN: Final = 12  # values of lane.alpha
MEASURES: Final = {
    "use_mean": "use, mean",
    "use_sd": "use, sd",
    "full": "full blocks",
    "amplitude": "basefee, p95 ÷ p5",
    "unserved": "unserved",
    "map0_exponent": "exponent, lag 0",
    "map1_exponent": "exponent, lag 1",
    "map0_settling": "settling, lag 0",
    "map1_settling": "settling, lag 1",
}


class RuleSettings(base.Settings, frozen=True, kw_only=True):
    """Elasticities of demand by the whole price, and how long the map is followed."""

    elasticities: Annotated[tuple[Annotated[float, Meta(ge=0.25, le=32.0)], ...], Meta(min_length=1)]
    map_blocks: base.Positive = 2_000


Settings = RuleSettings


@cache
def params_of(rule: str) -> ChainParams:
    """Return the parameters under a rule."""
    return load_params("mainnet", RULES[rule])


def map_of(rule: str, elasticity: float, lag: int) -> BasefeeMap:
    """Return the map of a rule, with the cycle basefee below the lane's."""
    params = params_of(rule)
    return BasefeeMap(
        rule=rule_of(params.lane),
        elasticity=elasticity,
        most=params.lane.elasticity,
        below=params.fees.min_basefee / REST_PRICE,
        lag=lag,
    )


def points(settings: RuleSettings) -> Sequence[Point]:
    """Return a point for each rule and elasticity."""
    return [
        Point(f"{rule}, elasticity {elasticity:g}", {"rule": rule, "elasticity": elasticity})
        for rule in RULES
        for elasticity in settings.elasticities
    ]


def replicate(settings: RuleSettings, point: Point, seed: int) -> Mapping[str, float]:
    """Follow the map from a drawn start, and run the lane with demand at random."""
    rule, elasticity = str(point.facts["rule"]), float(point.facts["elasticity"])
    first = int(REST * float(stream(seed, "start").uniform(0.5, 2.0)))
    measures = dict[str, float]()
    for lag in LAGS:
        found = map_of(rule, elasticity, lag)
        tail = found.tail(first, settings.map_blocks, settings.map_blocks // 2)
        measures[f"map{lag}_amplitude"] = max(tail) / min(tail)
        measures[f"map{lag}_exponent"] = found.exponent(first, settings.map_blocks)
        measures[f"map{lag}_settling"] = found.settling(REST // FACTOR, settings.map_blocks)
    return {**measures, **lane_measures(settings, rule, elasticity, seed)}


def lane_measures(settings: RuleSettings, rule: str, elasticity: float, seed: int) -> Mapping[str, float]:
    """Run the lane: timers at random, each of which fires if its worth covers the price of its block."""
    params = params_of(rule)
    price = REST_PRICE + params.fees.min_basefee
    target = 1 / params.lane.elasticity
    row = Poisson(
        name="demand",
        actors=20,
        share=SHARE,
        cycles=CYCLES,
        value=Pareto(least=int(price * (target / SHARE) ** (1 / elasticity)), shape=elasticity),
        patience=1,
        offer=BestResponse(),
    )
    scenario = Scenario(
        name=rule,
        blocks=settings.blocks,
        warm_up=settings.warm_up,
        agents=(row,),
        seed=seed,
        params={**FLOOR, **RULES[rule]},
    )
    world = Alone(scenario.ground())
    for _ in range(settings.warm_up):
        world.build()
    return lane_values([world.build() for _ in range(settings.blocks)])


def lane_values(blocks: Sequence[BlockResult]) -> dict[str, float]:
    """Return use of the lane, swing of its basefee, and the share of accepted timers that ended without a fire."""
    use = np.array([block.timer_cycles / block.view.lane_cycles_max for block in blocks])
    low, high = np.quantile([block.view.lane_basefee for block in blocks], (0.05, 0.95))
    unfired, fires = (sum(len(part(block)) for block in blocks) for part in (_endings, _fires))
    return {
        "use_mean": float(use.mean()),
        "use_sd": float(use.std()),
        "full": float((use > 1 - CYCLES / blocks[0].view.lane_cycles_max).mean()),
        "amplitude": float(high / low),
        "unserved": unfired / max(unfired + fires, 1),
    }


def _endings(block: BlockResult) -> Sequence[Any]:
    return block.endings


def _fires(block: BlockResult) -> Sequence[Any]:
    return block.fires


def table(results: Results) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the measures of each point."""
    return ["rule", "elasticity", *MEASURES.values()], rows_of(results, ("rule", "elasticity"), MEASURES)


def figures(results: Results) -> Mapping[str, Any]:
    """Draw what the map ends in over elasticity and step, and what the lane does."""
    return {"bifurcation": _bifurcation(), "lane": _lane_figure(results)}


def _bifurcation() -> Figure:
    """Draw the attractor of the map: over the elasticity under three rules, and over the step at elasticity 4."""
    figure = Figure(figsize=(11, 7), layout="constrained")
    panels = figure.subplots(2, 2, sharey=True).flat
    for axes, rule in zip(panels, (WRITTEN, "alpha 8", "exponential"), strict=False):
        for lag, color in ((1, "tab:orange"), (0, "tab:blue")):
            for elasticity in np.linspace(0.5, SWEEP_MAX, SWEEP):
                _column(axes, float(elasticity), map_of(rule, float(elasticity), lag), color)
        axes.set(title=rule, xlabel="elasticity of demand by the whole price")
    axes = panels[-1]
    for lag, color in ((1, "tab:orange"), (0, "tab:blue")):
        for alpha in range(1, STEPS_DRAWN + 1):
            lane = load_params("mainnet", {"lane.alpha": alpha}).lane
            below = params_of(WRITTEN).fees.min_basefee / REST_PRICE
            found = BasefeeMap(rule=rule_of(lane), elasticity=4.0, most=lane.elasticity, below=below, lag=lag)
            _column(axes, alpha, found, color)
        axes.plot([], [], "s", color=color, label=f"lag of demand {lag}")
    axes.set(title="elasticity 4", xlabel="lane.alpha: the step is the distance divided by it")
    axes.legend()
    for each in figure.axes:
        each.set(ylabel="lane basefee ÷ that at rest")
    return figure


def _column(axes: Any, at: float, found: BasefeeMap, color: str) -> None:
    # A start a ninth above: a seventh would lie on rest after one step down by an eighth.
    tail = found.tail(REST + REST // 9, 600, BUFFER)
    axes.plot([at] * len(tail), tail, ".", markersize=1.5, color=color, rasterized=True)


def _lane_figure(results: Results) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2)
    labels = (("amplitude", "lane basefee, p95 ÷ p5"), ("use_mean", "use of the lane, mean"))
    for axes, (measure, label) in zip(panels, labels, strict=True):
        for rule in RULES:
            chosen = points_with(results.points, rule=rule)
            draw_bars(axes, results, chosen, measure, lambda point: float(point.facts["elasticity"]), label=rule)
        axes.set(xlabel="elasticity of demand by the whole price", ylabel=label)
    panels[1].axhline(1 / params_of(WRITTEN).lane.elasticity, color="black", linewidth=0.8, linestyle=":")
    panels[0].legend(fontsize="small")
    return figure


def gain_of(rule: str) -> float:
    """Return by how much of the relative distance from the target a rule moves the basefee, near the target."""
    lane = params_of(rule).lane
    return 1 / (lane.max_change_denominator if lane.basefee_rule else lane.alpha)


def fastest_stable(results: Results) -> str:
    """Return the rule that is stable up to the greatest elasticity at lag 1 and not too slow; the first of equals."""
    settings = results.settings
    at = settings.elasticities[0]

    def settling(rule: str) -> float:
        return results.interval(f"{rule}, elasticity {at:g}", "map0_settling").mean

    quick = [rule for rule in RULES if settling(rule) <= SLOWER * max(settling(WRITTEN), 1.0)]
    most = params_of(WRITTEN).lane.elasticity
    return max(quick, key=lambda rule: round(stable_below(rule_of(params_of(rule).lane), most, 1), 1))


def _against(results: Results, rule: str) -> str:
    """Return how the exponential rule's mean use differs from another's, at each elasticity."""
    texts = list[str]()
    for at in results.settings.elasticities:
        ends = f"elasticity {at:g}"
        found = results.difference(f"exponential, {ends}", f"{rule}, {ends}", "use_mean")
        texts.append(f"{difference_text(found)} at {at:g}")
    return "; ".join(texts)


def _settling_text(results: Results, rule: str) -> str:
    at = f"{rule}, elasticity {results.settings.elasticities[0]:g}"
    return interval_text(results.interval(at, "map0_settling"))


def page(results: Results) -> str:
    """Return thresholds, what the lane does, and the rule to set."""
    settings = results.settings
    best = fastest_stable(results)
    lane = params_of(WRITTEN).lane
    rows = []
    for rule in RULES:
        cells = [rule]
        for lag in LAGS:
            found = stable_below(rule_of(params_of(rule).lane), lane.elasticity, lag)
            cells.append(f"{found:.2f} ({linear_threshold(gain_of(rule), lag):.2f})")
        rows.append(cells)
    calmer, nearer = list[str](), list[str]()
    for elasticity in settings.elasticities:
        names = f"{best}, elasticity {elasticity:g}", f"{WRITTEN}, elasticity {elasticity:g}"
        calmer += [f"{elasticity:g}"] if sign(results.difference(*names, "amplitude")) < 0 else []
        nearer += [f"{elasticity:g}"] if sign(results.difference(*names, "use_mean")) < 0 else []
    shown = ", ".join(f"`{name} = {value}`" for name, value in RULES[best].items()) or "`lane.alpha = 1`"
    last = f"elasticity {settings.elasticities[-1]:g}"
    return "\n\n".join(
        (
            "CIP-1 v3 §5 moves the lane basefee by clip((u − 0.5) ÷ 0.5, ±12.5 %) of itself (`lane.alpha = 1`); "
            "EIP-1559 divides that distance by 8 (`lane.alpha = 8`); the exponential rule (`lane.basefee_rule = 2`) "
            "multiplies by exp of it ÷ 8. Two things are run: the chain's rule as a map, over demand of constant "
            "elasticity without chance, and the lane itself, where timers come at random and each has a worth from a "
            "Pareto distribution whose shape is the elasticity. The lane's floor is raised to a quarter of the price "
            "at rest, which shortens the warm-up. The demand is the target at a lane basefee of "
            f"{REST_PRICE:,} above a cycle basefee of {params_of(WRITTEN).fees.min_basefee:,}. A lag of 1 is what the "
            "same-block prohibition (§4) imposes on owners who decide when they schedule; 0 is demand that answers by "
            "its caps at the fire. `lane.elasticity`, the lane over its target, is an integer of at least 1; the "
            "distance is relative to the target, so it does not move these thresholds.",
            "**Elasticity by the lane basefee up to which a nudge dies out** (in brackets that of the linear map, "
            "2 sin(π ÷ (4 lag + 2)) ÷ gain):",
            markdown_table(["rule", *(f"lag {lag}" for lag in LAGS)], rows),
            "Elasticity by the lane basefee is that by the whole price times the lane's share of the price: near the "
            "lane's floor of 1,000 above 10,000 it is a tenth of it, and every rule is calm.",
            f"**In the lane.** Against the rule as written, {best} has a smaller swing of the basefee at "
            + (f"elasticities {', '.join(calmer)}" if calmer else "no elasticity that was run")
            + ", and a lower mean use, which the written rule drives above its target of "
            f"{1 / lane.elasticity:g}, at "
            + (f"elasticities {', '.join(nearer)}. " if nearer else "none of them. ")
            + f"At {last} the mean use is {interval_text(results.interval(f'{WRITTEN}, {last}', 'use_mean'))} as "
            f"written and {interval_text(results.interval(f'{best}, {last}', 'use_mean'))} under {best}. Against that, "
            f"the exponential rule has in use of the lane: {_against(results, best)}. The clip holds the written rule: "
            f"at {last} the map's greatest basefee is "
            f"{interval_text(results.interval(f'{WRITTEN}, {last}', 'map1_amplitude'))} times its least at lag 1. A "
            f"clip of 1/32 makes that {interval_text(results.interval(f'{FINE}, {last}', 'map1_amplitude'))}, and "
            f"follows demand from a tenth of the price in {_settling_text(results, FINE)} blocks, not in "
            f"{_settling_text(results, WRITTEN)}.",
            "**What would change the answer.** Owners who decide many blocks ahead: at lag 10 the threshold is a "
            "tenth, and only a smaller step, which is slower, is stable. A rule counts as too slow here if it takes "
            f"more than {SLOWER:g} times as long as the written one to settle from a tenth of the price.",
            f"**Recommendation.** Set {shown}"
            + (" (the text's own value)." if best == WRITTEN else f" in place of `lane.alpha = {lane.alpha}`."),
            "**All numbers.** Settling times are of the map, in blocks from a tenth of the basefee at rest; "
            f"{settings.map_blocks:,} stands for never. Exponents are Lyapunov's, a block: below 0 neighbours meet.",
            markdown_table(*table(results)),
        )
    )
