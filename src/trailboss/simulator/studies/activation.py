"""What becomes of FIFO timers with 550,000 cycles when the lane, whose cap is 250,000, becomes active.

Spec: CIP-1v3 §10, CIP-1v3 §13.2.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import numpy as np
from matplotlib.figure import Figure
from msgspec import Meta

from trailboss.model.timers import TimerEnd
from trailboss.params import load_params
from trailboss.simulator.agents.arrivals import Poisson
from trailboss.simulator.agents.base import Agent, AgentRow, Draws
from trailboss.simulator.agents.quantities import Quantity, Uniform, drawn
from trailboss.simulator.alone import Alone
from trailboss.simulator.orders import BlockResult, Order, Schedule, View
from trailboss.simulator.scenario import Scenario
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.text import interval_text, markdown_table
from trailboss.simulator.study.verdicts import difference_text, rows_of, sign

TITLE: Final = "What becomes of timers with the gas limit of FIFO, 550,000 cycles, when the lane becomes active?"
FIFO_GAS: Final = 550_000
CYCLES_MIN: Final = 10_000
CAP: Final = 250_000
WAYS: Final[Mapping[str, Mapping[str, int]]] = {
    "set aside": {},
    "clamped": {"lane.clamps_gas_limit": 1},
    "cap of 550,000": {"lane.max_cycles_per_fire": FIFO_GAS},
}
"""What can be done with them, as parameters; the text's own first. Decision: D-13."""
FIRES: Final[Mapping[str, Quantity]] = {
    "small": Uniform(least=CYCLES_MIN, most=100_000),
    "any": Uniform(least=CYCLES_MIN, most=FIFO_GAS),
    "large": Uniform(least=CAP + 1, most=FIFO_GAS),
}
"""What the fires of the backlog use: in the greatest case all use more than the lane's cap."""
FRESH_CYCLES: Final = 50_000
BEARABLE: Final = 2.0  # times what fresh timers pay without the backlog's fires, up to which a way is recommended
TEXT: Final = "`lane.clamps_gas_limit = 0` and `lane.max_cycles_per_fire = 250,000`, as they are"
MEASURES: Final = {
    "ok": "fired",
    "reverted": "reverted",
    "expired": "expired",
    "waiting": "live at the end",
    "drained": "blocks until none is due",
    "fresh_late": "fresh: blocks late, mean",
    "fresh_late_p99": "fresh: late, p99",
    "fresh_expired": "fresh: expired",
    "fresh_paid": "fresh: paid a cycle",
    "lane_basefee_max": "greatest lane basefee",
}


class ActivationSettings(base.Settings, frozen=True, kw_only=True):
    """The backlog, and the timers that come beside it; ``warm_up`` is the height before the activation."""

    overdue: base.Positive  # timers that are due a block before the activation
    ahead: base.Positive  # timers that are due after it, in all
    spread: base.Positive  # blocks over which those are due
    patience: base.Positive  # blocks after its height at which each expires
    load: Annotated[float, Meta(gt=0.0, le=1.0)]  # of the lane, by fresh timers


Settings = ActivationSettings


class FifoTimersRow(AgentRow, frozen=True, kw_only=True, tag="backlog"):
    """Timers that are scheduled under FIFO, each with its gas limit."""

    cycles: Quantity
    overdue: int
    after: int
    spread: int
    patience: int
    activation: int  # height

    def agent(self, name: str, actors: range, draws: Draws) -> Agent:
        """Return the agent."""
        return FifoTimers(self, name, actors, draws)


class FifoTimers(Agent):
    """See `FifoTimersRow`."""

    def __init__(self, row: FifoTimersRow, name: str, actors: range, draws: Draws) -> None:
        super().__init__(name, actors)
        self._row, self._cycles = row, drawn(row.cycles, draws, "cycles", CYCLES_MIN, FIFO_GAS)

    def orders(self, view: View) -> Iterable[Order]:
        """Return all of its timers, two blocks before the activation."""
        row = self._row
        if view.height != row.activation - 2:
            return
        heights = [row.activation - 1] * row.overdue
        heights += [row.activation + at * row.spread // row.after for at in range(row.after)]
        for number, height in enumerate(heights):
            yield Schedule(
                actor=self.actors[number % len(self.actors)],
                height=height,
                gas_limit=FIFO_GAS,
                cycles=next(self._cycles),
                expires_at=height + row.patience,
            )


def points(settings: ActivationSettings) -> Sequence[Point]:
    """Return a point for each way and each use of the fires."""
    del settings
    return [Point(f"{way}, {use} fires", {"way": way, "use": use}) for use in FIRES for way in WAYS]


def replicate(settings: ActivationSettings, point: Point, seed: int) -> Mapping[str, float]:
    """Run through an activation."""
    activation = settings.warm_up + 1
    fresh = Poisson(name="fresh", actors=20, share=settings.load, cycles=FRESH_CYCLES, patience=settings.patience)
    backlog = FifoTimersRow(
        name="backlog",
        actors=50,
        cycles=FIRES[str(point.facts["use"])],
        overdue=settings.overdue,
        after=settings.ahead,
        spread=settings.spread,
        patience=settings.patience,
        activation=activation,
    )
    scenario = Scenario(
        name=point.name,
        blocks=settings.blocks,
        agents=(fresh, backlog),  # type: ignore[arg-type]  # a row of this study alone, which no file names
        mechanism="fifo",
        seed=seed,
        params={"lane.activation_height": activation, **WAYS[str(point.facts["way"])]},
    )
    world = Alone(scenario.ground())
    for _ in range(settings.warm_up):
        world.build()
    return _measured(world, settings)


def _measured(world: Alone, settings: ActivationSettings) -> Mapping[str, float]:
    backlog = len(world.ground.agents) - 1
    timers = settings.overdue + settings.ahead
    ok = reverted = basefee = 0
    late = list[int]()
    fresh_paid = fresh_cycles = fresh_expired = 0
    drained = 0  # blocks until the last fire or removal of the backlog
    is_stuck = dict.fromkeys((TimerEnd.EXPIRED, TimerEnd.UNFUNDED), 0)
    for number in range(1, settings.blocks + 1):
        block: BlockResult = world.build()
        mine = [fire for fire in block.fires if fire.plan.agent == backlog]
        fresh = [fire for fire in block.fires if fire.plan.agent != backlog]
        late += [fire.late for fire in fresh]
        fresh_paid += sum(fire.paid for fire in fresh)
        fresh_cycles += sum(fire.cycles_used for fire in fresh)
        fresh_expired += sum(ending.plan.agent != backlog for ending in block.endings)
        ok += sum(fire.is_ok for fire in mine)
        reverted += sum(not fire.is_ok for fire in mine)
        ended = [ending for ending in block.endings if ending.plan.agent == backlog]
        for ending in ended:
            is_stuck[ending.end] += 1
        basefee = max(basefee, block.view.lane_basefee)
        if mine or ended:
            drained = number
    gone = timers - _live(world, backlog)
    before = gone - ok - reverted - sum(is_stuck.values())  # those that FIFO fired, in its last blocks
    left = timers - before
    return {
        "ok": ok / left,
        "reverted": reverted / left,
        "expired": is_stuck[TimerEnd.EXPIRED] / left,
        "waiting": (timers - gone) / left,
        "drained": drained if gone == timers else settings.blocks,
        "fresh_late": float(np.mean(late)),
        "fresh_late_p99": float(np.quantile(late, 0.99, method="inverted_cdf")),
        "fresh_expired": fresh_expired / (fresh_expired + len(late)),
        "fresh_paid": fresh_paid / fresh_cycles,
        "lane_basefee_max": basefee,
    }


def _live(world: Alone, agent: int) -> int:
    return sum(plan.agent == agent for plan in world.live_plans())


def table(results: Results) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the measures of each point."""
    return ["fires of the backlog", "way", *MEASURES.values()], rows_of(results, ("use", "way"), MEASURES)


def figures(results: Results) -> Mapping[str, Any]:
    """Draw what becomes of the backlog, and what fresh timers pay."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    panels = figure.subplots(1, 2)
    labels = [point.name.replace(", ", "\n") for point in results.points]
    floor = np.zeros(len(labels))
    for measure in ("ok", "reverted", "expired", "waiting"):
        shares = np.array([results.interval(point.name, measure).mean for point in results.points])
        panels[0].barh(labels, shares, left=floor, label=MEASURES[measure])
        floor += shares
    found = [results.interval(point.name, "fresh_paid") for point in results.points]
    panels[1].barh(
        labels, [each.mean for each in found], xerr=[each.half_width for each in found], capsize=3, color="tab:gray"
    )
    panels[0].set(xlabel="share of the backlog")
    panels[1].set(xlabel="base units a cycle that fresh timers pay", yticklabels=[], xscale="log")
    for axes in panels:
        axes.invert_yaxis()
    figure.legend(*panels[0].get_legend_handles_labels(), ncols=4, loc="outside upper center")
    return {"fates": figure}


def best_way(results: Results, use: str) -> str:
    """Return the way by which most of a backlog fires at a price that fresh timers can bear; the text's if no better.

    A difference in what fires counts only if its interval shows it; so does the price.
    """
    written = chosen = next(iter(WAYS))
    for way in WAYS:
        gains = sign(results.difference(f"{way}, {use} fires", f"{chosen}, {use} fires", "ok"))
        paid = results.interval(f"{way}, {use} fires", "fresh_paid")
        bound = BEARABLE * results.interval(f"{written}, {use} fires", "fresh_paid").mean
        if gains > 0 and paid.mean + paid.half_width <= bound:
            chosen = way
    return chosen


def page(results: Results) -> str:
    """Return what each way does to the backlog and to fresh timers, and which parameter to set."""
    settings = results.settings
    written = next(iter(WAYS))
    best = {use: best_way(results, use) for use in FIRES}
    lines = []
    for use in FIRES:
        texts = []
        for way in list(WAYS)[1:]:
            names = f"{way}, {use} fires", f"{written}, {use} fires"
            fired = difference_text(results.difference(*names, "ok"))
            late = difference_text(results.difference(*names, "fresh_late"), "later", "less late")
            paid = [results.interval(name, "fresh_paid") for name in names]
            texts.append(
                f"{way} fires {interval_text(results.interval(names[0], 'ok'))} of the backlog (share, against "
                f"{written}: {fired}), reverts {interval_text(results.interval(names[0], 'reverted'))}, and fresh "
                f"timers are, in blocks: {late}; they pay {interval_text(paid[0])} a cycle in place of "
                f"{interval_text(paid[1])}"
            )
        lines.append(f"- {use} fires: {'; '.join(texts)}.")
    shown = {use: ", ".join(f"`{name} = {value:,}`" for name, value in WAYS[way].items()) for use, way in best.items()}
    cases = "; ".join(f"{use} fires: {shown[use] or 'as the text has it'}" for use in FIRES)
    clamped = [results.interval(f"clamped, {use} fires", "reverted") for use in ("any", "large")]
    room = load_params("mainnet").timers.lane_cycles_per_block
    return "\n\n".join(
        (
            "Under FIFO a timer without a gas limit may use 550,000 cycles (CIP-5 §6.4); the lane's cap is 250,000, "
            "and timers above it are deferred without an attempt (CIP-1 v3 §3, §10), here until they expire. "
            "`lane.clamps_gas_limit = 1` holds those from before the activation to the cap; a third way is to raise "
            f"the cap to 550,000. {settings.overdue} timers are due one block before the activation and "
            f"{settings.ahead} in the {settings.spread} blocks after it; each expires {settings.patience} blocks after "
            f"its height. Fresh timers with default fees ask for {settings.load:g} of the lane of {room:,} cycles. "
            f"Small fires use {CYCLES_MIN:,} to 100,000 cycles, any fires up to 550,000, large ones more than the cap.",
            f"**{written.capitalize()}**, as written, "
            + " and ".join(
                f"{interval_text(results.interval(f'{written}, {use} fires', 'ok'))} of the backlog fires ({use})"
                for use in ("small", "large")
            )
            + "; the rest takes no room and ends at its expiry.",
            "\n".join(lines),
            f"A clamped fire that needs more than the cap uses the cap, reverts, and is gone: "
            f"{interval_text(clamped[0])} of the backlog where fires use anything, {interval_text(clamped[1])} where "
            "all use more.",
            "**What would change the answer.** A backlog far above the lane: the cost to fresh timers grows with it "
            "while it drains. Handlers that are known to need more than 250,000 cycles: clamping reverts them.",
            "The timers of the backlog have no fees: each offers twice the lane basefee of the block, so none is "
            "priced out, and while they fill the lane its basefee rises by an eighth a block for all.",
            f"**Recommendation.** Where it is not known what the fires use (any fires), set {shown['any'] or TEXT}. By "
            f"what `trailboss activation rehearse` finds before the vote: {cases}. A way is taken if it fires more of "
            f"the backlog and fresh timers pay at most {BEARABLE:g} times as much.",
            "**All numbers.** Shares are of the backlog that FIFO has not fired; "
            f"{settings.blocks} blocks until none is due stand for never.",
            markdown_table(*table(results)),
        )
    )
