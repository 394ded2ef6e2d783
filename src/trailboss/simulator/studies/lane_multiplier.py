"""The fee multiplier of timers, 0.8 against 1.0, beside users who answer to prices as well. Spec: CIP-1v3 §5."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from matplotlib.figure import Figure
from msgspec import Meta

from trailboss.simulator.agents.arrivals import Poisson
from trailboss.simulator.agents.offers import BestResponse
from trailboss.simulator.agents.quantities import Pareto
from trailboss.simulator.agents.transactions import UserTraffic
from trailboss.simulator.alone import Alone
from trailboss.simulator.metrics.base import observe
from trailboss.simulator.orders import BlockResult
from trailboss.simulator.scenario import Scenario
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.text import markdown_table
from trailboss.simulator.study.verdicts import difference_text, draw_bars, points_with, rows_of, sign

TITLE: Final = "Should timers pay 0.8 of the cycle basefee, or all of it, for the lane to be used?"
UNIT: Final = 10_000  # what 1.0 is
CYCLES: Final = 100_000  # of a fire
REFERENCE: Final = 18_000  # base units a cycle at which the demand of timers is the load
EXTRA: Final = 3.0  # demand at the lowest price that is paid, in parts of the load
USERS: Final = 160.0  # transactions a block if they cost no more than the floor
USER_CYCLES: Final = 100_000
USER_SHAPE: Final = 1.5  # elasticity of their demand
FLOOR: Final = 10_000  # base units a cycle
MEASURES: Final = {
    "use": "use of the lane",
    "fires": "fires a block",
    "paid": "paid a cycle",
    "timer_burn": "burn by fires, 10⁹ a block",
    "burn": "burn by all, 10⁹ a block",
    "tips": "tips, 10⁶ a block",
    "lane_basefee": "lane basefee",
    "user_basefee": "user basefee",
    "user_cycles": "cycles of users, 10⁶ a block",
}


class MultiplierSettings(base.Settings, frozen=True, kw_only=True):
    """Multipliers, the plain one first; loads at the reference price; elasticities of the demand of timers."""

    multipliers: Annotated[tuple[Annotated[int, Meta(ge=1_000, le=20_000)], ...], Meta(min_length=2)]
    loads: Annotated[tuple[Annotated[float, Meta(gt=0.0, le=2.0)], ...], Meta(min_length=1)]
    elasticities: Annotated[tuple[Annotated[float, Meta(ge=0.25, le=8.0)], ...], Meta(min_length=1)]


Settings = MultiplierSettings


class MultiplierMeasure:
    """Sums of blocks."""

    def __init__(self) -> None:
        self._blocks = self._fires = self._cycles = self._room = self._timer_burn = self._burn = 0
        self._tips = self._lane_basefee = self._user_basefee = self._all_cycles = 0

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        self._blocks += 1
        self._fires += len(block.fires)
        self._cycles += block.timer_cycles
        self._room += block.view.lane_cycles_max
        self._timer_burn += sum(fire.burned for fire in block.fires)
        self._burn += block.burned
        self._tips += block.tips
        self._lane_basefee += block.view.lane_basefee
        self._user_basefee += block.view.user_basefee
        self._all_cycles += block.cycles

    def values(self) -> dict[str, float]:
        """Return means a block."""
        blocks, cycles = self._blocks or 1, self._cycles or 1
        return {
            "use": self._cycles / (self._room or 1),
            "fires": self._fires / blocks,
            "paid": (self._timer_burn + self._tips) / cycles,
            "timer_burn": self._timer_burn / blocks / 1e9,
            "burn": self._burn / blocks / 1e9,
            "tips": self._tips / blocks / 1e6,
            "lane_basefee": self._lane_basefee / blocks,
            "user_basefee": self._user_basefee / blocks,
            "user_cycles": (self._all_cycles - self._cycles) / blocks / 1e6,
        }


def points(settings: MultiplierSettings) -> Sequence[Point]:
    """Return a point for each load, elasticity and multiplier."""
    return [
        Point(name_of(load, elasticity, multiplier), {"load": load, "elasticity": elasticity, "multiplier": multiplier})
        for load in settings.loads
        for elasticity in settings.elasticities
        for multiplier in settings.multipliers
    ]


def name_of(load: float, elasticity: float, multiplier: int) -> str:
    """Return the name of a point."""
    return f"load {load:g}, elasticity {elasticity:g}, multiplier {multiplier / UNIT:g}"


def scenario_of(settings: MultiplierSettings, point: Point, seed: int) -> Scenario:
    """Return the scenario of one point: what a timer and a transaction are worth follows from no alternative."""
    load, elasticity = float(point.facts["load"]), float(point.facts["elasticity"])
    timers = Poisson(
        name="timers",
        actors=20,
        share=load * EXTRA,
        cycles=CYCLES,
        value=Pareto(least=int(REFERENCE * EXTRA ** (-1 / elasticity)), shape=elasticity),
        patience=10,
        offer=BestResponse(),
    )
    users = UserTraffic(name="users", rate=USERS, cycles=USER_CYCLES, value=Pareto(least=FLOOR, shape=USER_SHAPE))
    return Scenario(
        name=point.name,
        blocks=settings.blocks,
        warm_up=settings.warm_up,
        agents=(users, timers),
        seed=seed,
        timer_multiplier=int(point.facts["multiplier"]),
    )


def replicate(settings: MultiplierSettings, point: Point, seed: int) -> Mapping[str, float]:
    """Run one point."""
    scenario = scenario_of(settings, point, seed)
    return observe(Alone(scenario.ground()), [MultiplierMeasure()], scenario.blocks, scenario.warm_up)


def table(results: Results) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the measures of each point."""
    facts = ("load", "elasticity", "multiplier")
    return [*facts, *MEASURES.values()], rows_of(results, facts, MEASURES)


def figures(results: Results) -> Mapping[str, Any]:
    """Draw use and burn over the multiplier, a panel for each load."""
    settings = results.settings
    figure = Figure(figsize=(4 * len(settings.loads), 6), layout="constrained")
    panels = figure.subplots(2, len(settings.loads), sharex=True, squeeze=False)
    for at, load in enumerate(settings.loads):
        for elasticity in settings.elasticities:
            chosen = points_with(results.points, load=load, elasticity=elasticity)
            for axes, measure in zip(panels[:, at], ("use", "timer_burn"), strict=True):
                label = f"elasticity {elasticity:g}"
                draw_bars(
                    axes, results, chosen, measure, lambda point: int(point.facts["multiplier"]) / UNIT, label=label
                )
        panels[0, at].set_title(f"load {load:g} at {REFERENCE:,} a cycle")
        panels[1, at].set_xlabel("fee multiplier of timers")
    panels[0, 0].set_ylabel("use of the lane")
    panels[1, 0].set_ylabel("burn by fires, 10⁹ base units a block")
    panels[0, 0].legend()
    return {"use": figure}


def page(results: Results) -> str:
    """Return what the multiplier does at each load and elasticity, and which one to keep."""
    settings = results.settings
    plain, lowest = settings.multipliers[0], min(settings.multipliers)
    cases = [(load, elasticity) for load in settings.loads for elasticity in settings.elasticities]
    rows, paying, helping = list[list[str]](), list[str](), list[str]()
    for load, elasticity in cases:
        low, full = name_of(load, elasticity, lowest), name_of(load, elasticity, plain)
        use, burn = results.difference(low, full, "use"), results.difference(low, full, "timer_burn")
        users = results.difference(low, full, "user_cycles")
        rows.append([f"{load:g}", f"{elasticity:g}", *map(difference_text, (use, burn, users))])
        case = f"load {load:g} at elasticity {elasticity:g}"
        helping += [case] if sign(use) > 0 else []
        paying += [case] if sign(use) > 0 and sign(burn) > 0 else []
    loses = any(
        sign(results.difference(name_of(*case, lowest), name_of(*case, plain), "timer_burn")) < 0 for case in cases
    )
    value = lowest if len(paying) == len(cases) else plain
    head = ["load", "elasticity", "use of the lane", "burn by fires, 10⁹ a block", "cycles of users, 10⁶ a block"]
    return "\n\n".join(
        (
            f"CIP-1 v3 §5 and §16 pin the multiplier at 1.0 and name 0.8 if the lane is structurally under-used. It "
            f"multiplies the cycle and cell basefees of fires (`system:lane_fee_multipliers`, in parts of {UNIT:,}), "
            "not the lane basefee. Each timer, and each transaction of a user, has a worth drawn once for all "
            "alternatives and comes if its price is not above it; the load is the share of the lane's cycles that "
            f"timers ask for at {REFERENCE:,} base units a cycle.",
            f"**{lowest / UNIT:g} less {plain / UNIT:g}.**",
            markdown_table(head, rows),
            f"The lower multiplier raises the use of the lane in {len(helping)} of {len(cases)} cases"
            f"{': ' + '; '.join(helping) if helping else ''}. It raises use and burn together in {len(paying)}"
            f"{': ' + '; '.join(paying) if paying else ''}; "
            f"{'in others' if loses else 'in no case'} the burn falls. Where the lane basefee stands above its floor, "
            "it rises by what the multiplier takes off, so that the sum which owners answer to changes little.",
            "**What would change the answer.** A lane whose basefee rests at its floor while the demand of timers is "
            "measured to be elastic (above 1): there a lower multiplier pays for itself. "
            f"It would then be {lowest:,} of {UNIT:,}.",
            f"**Recommendation.** Set the timer entry of `system:lane_fee_multipliers` to {value:,} "
            f"({value / UNIT:g})" + (", and review it if the lane stays under-used." if value == plain else "."),
            "**All numbers.**",
            markdown_table(*table(results)),
        )
    )
