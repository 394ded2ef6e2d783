"""The simulator: fires a second of a mechanism alone and of a whole chain, by how many timers are due in a block."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from resource import getpagesize
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from msgspec.structs import replace

from benchmarks.measure import Case, Figure, Report, calibrate, measure, timed
from trailboss.params import load_params
from trailboss.simulator.agents.base import Agent
from trailboss.simulator.alone import Alone
from trailboss.simulator.ground import Ground
from trailboss.simulator.metrics.base import observe
from trailboss.simulator.metrics.catalogue import standard
from trailboss.simulator.orders import Order, PlannedTimer, Schedule, View
from trailboss.simulator.study.catalogue import Mode, find_case
from trailboss.simulator.study.run import run_study
from trailboss.simulator.study.workers import open_workers
from trailboss.simulator.whole import Whole

MECHANISMS: Final = ("fifo", "lane", "auction", "globalbox")
GAS: Final = 50_000
CYCLES: Final = 12_000
FIRES_MAX: Final = 1_000  # that fit a block, whatever is due
DUE: Final = (10, 1_000)
CROWD: Final = 100_000  # due, of which FIRES_MAX fire in a block and the others wait
DECIDED_MIN: Final = 100_000  # timers a second about which a block decides: those that fire and those that wait
PRICES: Final = 97  # different tips
BLOCKS: Final = {10: 100, 1_000: 3, CROWD: 3}
FUNDS: Final = 10**25
STUDY_BLOCKS: Final = 2_000
STUDIED: Final = 6  # replications of each of the study's four points
SPEED_MIN: Final = 1.8
MEBIBYTE: Final = 1 << 20
LONG: Final = 20_000  # blocks over which memory is watched; 1,000,000 with --large
LONG_LARGE: Final = 1_000_000
OVERRIDES: Final = {
    "limits.block_cycles_max": 10**12,
    "limits.block_cells_max": 10**12,
    "fees.cycles_target": 10**11,
    "fees.cells_target": 10**11,
    "timers.lane_cycles_per_block": FIRES_MAX * GAS,
    "auction.budget_cycles": FIRES_MAX * GAS,
    "timers.due_examined_max": 10**6,
    "timers.max_timers_per_actor": 10**6,
    "lane.joined_max": 10**6,
    "auction.joined_max": 10**6,
    "globalbox.joined_max": 10**6,
    "globalbox.max_fires_per_block": FIRES_MAX,
    "globalbox.max_fires_per_target": FIRES_MAX,
    "globalbox.hits_max": FIRES_MAX + 1,
    "globalbox.max_timers_per_owner": 10**6,
    "globalbox.max_timers_per_target": 10**6,
}


class Standing(Agent):
    """As many timers as are due in a block; each that fires schedules the next, for the block after."""

    def __init__(self, due: int, actors: range, *, differ: bool) -> None:
        super().__init__("standing", actors)
        self._due, self._differ = due, differ

    def orders(self, view: View) -> Iterable[Order]:
        """Return all timers, before the first block."""
        if view.height == 1:
            for number in range(self._due):
                yield self._timer(self.actors[number % len(self.actors)], number, view)

    def again(self, plan: PlannedTimer, view: View) -> Iterable[Schedule]:
        """Return the next timer."""
        yield self._timer(plan.order.actor, view.height, view)

    def _timer(self, actor: int, number: int, view: View) -> Schedule:
        tip = (actor * 7 + number * self._differ) % PRICES
        return Schedule(
            actor=actor, height=view.height + 1, gas_limit=GAS, cycles=CYCLES, cells=200, cap=10**9, tip=tip
        )


def ground(mechanism: str, due: int, *, differ: bool = False) -> Ground:
    """Return a ground with timers of some actors, of each at most ten; they offer alike, or each something else."""
    agent = Standing(due, range(1, 1 + max(due // 10, min(due, 1_000))), differ=differ)
    agent.asked = mechanism == "auction"
    overrides = OVERRIDES | {"lane.basefee_max": load_params().lane.basefee_min}
    funds = [FUNDS] * len(agent.actors)
    return Ground(mechanism=mechanism, preset="mainnet", overrides=overrides, funds=funds, agents=[agent])


def run(rounds: int, large: bool) -> Report:
    """Measure; the larger size has crowds on whole chains, and watches memory over a million blocks."""
    report = Report("The simulator", "one fire")
    report.calibration.append(calibrate())
    measure(report, list(_cases()), min(rounds, 5))
    for kind in (Alone, Whole) if large else (Alone,):
        for mechanism in MECHANISMS:
            report.figures += _crowd(kind, mechanism)
    report.figures += _crowd(Alone, "lane", differ=True)
    report.figures += [*_workers(), _memory(LONG_LARGE if large else LONG)]
    report.calibration.append(calibrate())
    report.notes += [
        f"due: every one of them fires in each block and schedules the next; {PRICES} different tips, one an actor.",
        f"decided: {CROWD:,} are due in each block, of which {FIRES_MAX:,} fire and the others wait.",
    ]
    return report


def _cases() -> Iterator[Case]:
    for mechanism in MECHANISMS:
        for due in DUE:
            for kind in (Alone, Whole):
                world = kind(ground(mechanism, due))
                world.build()
                name = f"{mechanism}, {kind.__name__.lower()}, {due:,} due"
                beside = f"{mechanism}, alone, {due:,} due" if kind is Whole else ""
                yield Case(name=name, sample=partial(_fire, world, BLOCKS[due]), beside=beside)


def _fire(world: Alone | Whole, blocks: int) -> float:
    """Return the seconds of one fire."""
    began = perf_counter()
    fires = sum(len(world.build().fires) for _ in range(blocks))
    return (perf_counter() - began) / fires


def _crowd(kind: type[Alone | Whole], mechanism: str, *, differ: bool = False) -> Iterator[Figure]:
    """Return fires and decisions a second where many more are due than fire."""
    world = kind(ground(mechanism, CROWD, differ=differ))
    world.build()
    world.build()
    began, fires, decided = perf_counter(), 0, 0
    for _ in range(BLOCKS[CROWD]):
        block = world.build()
        fires += len(block.fires)
        decided += len(block.fires) + block.waiting
    seconds = perf_counter() - began
    what = f"{mechanism}, {kind.__name__.lower()}{', all offers of an actor differ' if differ else ''}, {CROWD:,} due"
    yield Figure(name=f"{what}: fires", value=fires / seconds, unit="a second")
    least = DECIDED_MIN if kind is Alone and not differ else None
    yield Figure(name=f"{what}: timers decided", value=decided / seconds, unit="a second", least=least)


def _workers() -> Iterator[Figure]:
    """Return how much sooner two processes end a study than one."""
    quick = find_case("lane-load", Mode.QUICK)
    settings = replace(quick.settings, blocks=STUDY_BLOCKS, replications_min=STUDIED, replications_max=STUDIED)
    case = replace(quick, settings=settings)
    seconds = []
    for count in (1, 2):
        with TemporaryDirectory() as folder:
            opened = partial(open_workers, count, None, lambda _: None)
            seconds.append(timed(lambda: run_study(case, Path(folder), opened, lambda *_: None)))  # noqa: B023
    yield Figure(name="a study by two processes, beside one", value=seconds[0] / seconds[1], unit="×", least=SPEED_MIN)


def _memory(blocks: int) -> Figure:
    """Return by how much the memory of a run with all measures grows from a tenth of its blocks to the last."""
    carried = ground("lane", 10)
    world, measures = Alone(carried), standard(carried)
    observe(world, measures, blocks // 10)
    before = _resident()
    observe(world, measures, blocks - blocks // 10)
    grown = (_resident() - before) / MEBIBYTE
    return Figure(name=f"memory gained between block {blocks // 10:,} and {blocks:,}", value=grown, unit="MiB", most=8)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * getpagesize()
