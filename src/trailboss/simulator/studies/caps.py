"""Caps frozen when a timer is scheduled, against caps that follow the price to the fire. Spec: CIP-1v3 §6, §7.1."""

from collections.abc import Iterable, Mapping, Sequence
from math import nan
from statistics import fmean
from typing import Annotated, Any, Final

from matplotlib.figure import Figure
from msgspec import Meta

from trailboss.simulator.agents.arrivals import Arrivals, Poisson
from trailboss.simulator.agents.base import Agent, AgentRow, Draws
from trailboss.simulator.agents.offers import BestResponse
from trailboss.simulator.agents.quantities import Pareto
from trailboss.simulator.alone import Alone
from trailboss.simulator.metrics.statistics import Interval
from trailboss.simulator.orders import Fire, Order, PlannedTimer, Schedule, View
from trailboss.simulator.scenario import Scenario
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.text import interval_text, markdown_table
from trailboss.simulator.study.verdicts import difference_text, points_with, shown, sign

TITLE: Final = "How many far-ahead timers does a rise of the lane basefee price out, by what their caps were fixed at?"
DEFAULT: Final = 0  # stands for the default fees among the caps, which are multiples of the basefee
CYCLES: Final = 100_000  # of a fire
LANE_CYCLES: Final = 1_000_000  # 10 fires a block, to be quick
FIRST_PRICE: Final = 20_000  # lane basefee before the rise, base units a cycle
CYCLE_PRICE: Final = 10_000  # cycle basefee below it
SHAPE: Final = 4.0  # elasticity of the demand that makes the price
SHARE: Final = 2.0  # of the lane that it asks for at the lowest price it pays
TARGET: Final = 0.5  # of the lane
PROBES: Final = 20  # timers for each cap and distance
PROBE_CYCLES: Final = 10_000  # of a probe's fire: they must not make the price themselves
SPACING: Final = 2  # blocks from the height of a probe to that of the next
PATIENCE: Final = 50  # blocks by which a probe may be late
BEARABLE: Final = 0.05  # share that may be priced out by a cap which is recommended


class CapSettings(base.Settings, frozen=True, kw_only=True):
    """By what the price grows, what caps are, in parts of the basefee, and how far ahead timers are."""

    growths: Annotated[tuple[Annotated[int, Meta(ge=1, le=100)], ...], Meta(min_length=1)]
    caps: Annotated[tuple[Annotated[int, Meta(ge=2, le=100)], ...], Meta(min_length=1)]
    aheads: Annotated[tuple[Annotated[int, Meta(ge=1, le=10_000)], ...], Meta(min_length=1)]

    @property
    def rise(self) -> int:
        """Height from which on the price grows."""
        return self.warm_up + max(self.aheads) + 1


Settings = CapSettings


class DemandRow(Poisson, frozen=True, kw_only=True, tag="demand"):
    """Arrivals between two heights."""

    begins: int
    ends: int  # first height without

    def agent(self, name: str, actors: range, draws: Draws) -> Agent:
        """Return the agent."""
        return Demand(self, name, actors, draws)


class Demand(Arrivals):
    """See `DemandRow`."""

    def __init__(self, row: DemandRow, name: str, actors: range, draws: Draws) -> None:
        super().__init__(row, name, actors, draws)
        self._span = range(row.begins, row.ends)

    def orders(self, view: View) -> Iterable[Order]:
        """Return the block's arrivals within its heights."""
        return super().orders(view) if view.height in self._span else ()


class ProbeRow(AgentRow, frozen=True, kw_only=True, tag="probe"):
    """Timers that are due from a rise of the price on, scheduled so many blocks ahead."""

    ahead: int
    multiple: int  # of the lane basefee that is the cap; `DEFAULT` for the default fees
    rise: int  # height

    def agent(self, name: str, actors: range, draws: Draws) -> Agent:
        """Return the agent."""
        del draws
        return Probe(self, name, actors)


class Probe(Agent):
    """See `ProbeRow`.

    Attributes:
        plans: Its timers, and the lane basefee that each was scheduled at.
        fires: Its fires.
        bills: What each fire cost, in parts of what it would have at the prices of the block that scheduled it.
    """

    def __init__(self, row: ProbeRow, name: str, actors: range) -> None:
        super().__init__(name, actors)
        self._row = row
        self.plans: dict[bytes, int] = {}
        self.fires: list[Fire] = []
        self.bills: list[float] = []

    def orders(self, view: View) -> Iterable[Order]:
        """Return the block's timer, if it has one."""
        height = view.height + self._row.ahead
        since = height - self._row.rise
        if 0 < since <= PROBES * SPACING and since % SPACING == 0:
            yield Schedule(
                actor=self.actors.start,
                height=height,
                gas_limit=PROBE_CYCLES,
                cycles=PROBE_CYCLES,
                cap=view.lane_basefee * self._row.multiple or None,
                expires_at=height + PATIENCE,
            )

    def saw_plan(self, plan: PlannedTimer, view: View) -> None:
        """Note the basefee."""
        self.plans[plan.timer_id] = view.lane_basefee

    def saw_fire(self, fire: Fire, view: View) -> None:
        """Note a fire."""
        self.fires.append(fire)
        seen = view.timer_basefee + self.plans[fire.plan.timer_id]
        self.bills.append(fire.paid / fire.cycles_used / seen)


def points(settings: CapSettings) -> Sequence[Point]:
    """Return a point for each growth, with the default frozen and with the default at the fire."""
    return [
        Point(f"price ×{growth}, default {when}", {"growth": growth, "when": when})
        for growth in settings.growths
        for when in ("frozen", "at the fire")
    ]


def _demand(name: str, price: int, begins: int, ends: int) -> DemandRow:
    """Return demand that is the target at a lane basefee."""
    whole = CYCLE_PRICE + price
    return DemandRow(
        name=name,
        actors=20,
        share=SHARE,
        cycles=CYCLES,
        value=Pareto(least=int(whole * (TARGET / SHARE) ** (1 / SHAPE)), shape=SHAPE),
        patience=2,
        offer=BestResponse(),
        begins=begins,
        ends=ends,
    )


def replicate(settings: CapSettings, point: Point, seed: int) -> Mapping[str, float]:
    """Run one rise of the price: other demand takes the place of the first."""
    growth, rise = int(point.facts["growth"]), settings.rise
    end = rise + settings.blocks
    probes = [
        ProbeRow(name=f"cap {multiple} ahead {ahead}", ahead=ahead, multiple=multiple, rise=rise)
        for multiple in (DEFAULT, *settings.caps)
        for ahead in settings.aheads
    ]
    rows = _demand("before", FIRST_PRICE, 1, rise), _demand("after", FIRST_PRICE * growth, rise, end)
    scenario = Scenario(
        name=point.name,
        blocks=settings.blocks,
        agents=(*rows, *probes),  # type: ignore[arg-type]  # rows of this study alone, which no file names
        seed=seed,
        params={
            "timers.lane_cycles_per_block": LANE_CYCLES,
            "lane.basefee_min": FIRST_PRICE // 2,
            "lane.caps_at_fire": int(point.facts["when"] != "frozen"),
        },
    )
    ground = scenario.ground()
    world = Alone(ground)
    before, after = list[int](), list[int]()
    while world.height < end:
        view = world.build().view
        (before if view.height < rise else after).append(view.lane_basefee)
    measures = {"growth_met": fmean(after[len(after) // 2 :]) / fmean(before[len(before) // 2 :])}
    for row, agent in zip(probes, ground.agents[len(rows) :], strict=True):
        assert isinstance(agent, Probe)
        name = suffix(row.multiple, row.ahead)
        measures[f"lost_{name}"] = 1 - len(agent.fires) / len(agent.plans)
        measures[f"late_{name}"] = sum(fire.late > 0 for fire in agent.fires) / len(agent.plans)
        measures[f"bill_{name}"] = fmean(agent.bills) if agent.bills else nan
    return measures


def suffix(multiple: int, ahead: int) -> str:
    """Return the end of a measure's name."""
    return f"{multiple or 'default'}_{ahead}"


def table(results: Results) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return what is lost, late and billed, for each cap at each distance."""
    settings, rows = results.settings, list[list[str]]()
    for point in results.points:
        for multiple in (DEFAULT, *settings.caps):
            for ahead in settings.aheads:
                name = suffix(multiple, ahead)
                found = [results.interval(point.name, f"{part}_{name}") for part in ("lost", "late", "bill")]
                cap = f"{multiple}×" if multiple else f"default {point.facts['when']}"
                if multiple and point.facts["when"] != "frozen":
                    continue  # A stated cap is frozen under both.
                rows.append([f"×{point.facts['growth']}", cap, f"{ahead:,}", *map(shown, found)])
    return ["price", "cap", "blocks ahead", "expired", "fired late", "bill ÷ quote"], rows


def figures(results: Results) -> Mapping[str, Any]:
    """Draw what expires over the distance, a panel for each growth."""
    settings = results.settings
    figure = Figure(figsize=(5 * len(settings.growths), 4), layout="constrained")
    panels = figure.subplots(1, len(settings.growths), sharey=True, squeeze=False)[0]
    for axes, growth in zip(panels, settings.growths, strict=True):
        for point in points_with(results.points, growth=growth):
            multiples = (DEFAULT, *settings.caps) if point.facts["when"] == "frozen" else (DEFAULT,)
            for multiple in multiples:
                found = [results.interval(point.name, f"lost_{suffix(multiple, ahead)}") for ahead in settings.aheads]
                label = f"{multiple}× when scheduled" if multiple else f"default, {point.facts['when']}"
                halves = [each.half_width for each in found]
                means = [each.mean for each in found]
                axes.errorbar(settings.aheads, means, halves, marker="o", markersize=4, capsize=3, label=label)
        axes.set(title=f"price ×{growth}", xlabel="blocks ahead", xscale="log")
    panels[0].set_ylabel("share of timers that expire unfired")
    panels[-1].legend(fontsize="small")
    return {"expired": figure}


def page(results: Results) -> str:
    """Return what each way of fixing caps loses and pays, and which default to set."""
    settings = results.settings
    farthest = settings.aheads[-1]
    default = suffix(DEFAULT, farthest)
    lines, gains = list[str](), list[int]()
    for growth in settings.growths:
        frozen, fire = (f"price ×{growth}, default {when}" for when in ("frozen", "at the fire"))
        lost = results.difference(frozen, fire, f"lost_{default}")
        gains.append(sign(lost))
        lines.append(
            f"- Price ×{growth} (met: ×{interval_text(results.interval(frozen, 'growth_met'))}), {farthest:,} blocks "
            f"ahead: of the frozen default {_percent(results.interval(frozen, f'lost_{default}'))} expire, of the "
            f"default at the fire {_percent(results.interval(fire, f'lost_{default}'))} "
            f"(as a share: {difference_text(lost)}); what fires costs "
            f"{interval_text(results.interval(fire, f'bill_{default}'))} times the quote of its scheduling."
        )
        enough = [cap for cap in settings.caps if all(_bears(results, frozen, cap, ahead) for ahead in settings.aheads)]
        lines.append(
            f"  The least stated cap of those run that loses at most {BEARABLE:.0%} at every distance: "
            + (f"{enough[0]}× the basefee." if enough else "none.")
        )
    is_better = 1 in gains and -1 not in gains
    return "\n\n".join(
        (
            "A stated cap is frozen when a timer is scheduled (§6), and so is the default of twice the lane basefee "
            "(§7.1: its headroom is to absorb five blocks). `lane.caps_at_fire = 1` leaves the default open until the "
            "fire. Demand that pays more takes the place of the former in one block; the basefee follows by at most an "
            f"eighth a block, and stays up. {PROBES} probes of each cap and distance are due within {PROBES * SPACING} "
            f"blocks from the rise on, and each expires {PATIENCE} blocks after its height; the rise comes as many "
            "blocks after the warm-up as the farthest is ahead. The lane holds "
            f"{LANE_CYCLES // CYCLES} fires, the lane basefee is {FIRST_PRICE:,} before the rise and its floor half of "
            "that.",
            "\n".join(lines),
            "A cap is no price: who fires pays basefee and tip, so a high cap overpays nothing while the price stays. "
            "What it gives up is the bound: the bill of what fires is the price of that block.",
            "**What would change the answer.** Owners who would rather not run than pay more than the quote: they "
            "state a cap, which is frozen either way. A price that comes back before the timer expires: then a frozen "
            "default is late, and not lost.",
            f"**Recommendation.** Set `lane.caps_at_fire = {int(is_better)}`"
            + (
                ": owners who state no fees asked to run, not to be held to an old price."
                if is_better
                else ": no difference that favours the other can be shown."
            ),
            "**All numbers.** Expired and late are shares of the probes; the bill is that of those that fire, over "
            "what the same fire would have cost at the prices of the block that scheduled it.",
            markdown_table(*table(results)),
        )
    )


def _bears(results: Results, point: str, cap: int, ahead: int) -> bool:
    found = results.interval(point, f"lost_{suffix(cap, ahead)}")
    return found.mean + found.half_width <= BEARABLE


def _percent(found: Interval) -> str:
    return f"{100 * found.mean:.0f} % ± {100 * found.half_width:.0f}"
