"""The timer lane's selection alone: what a block costs beside those that fire, by how many wait and what they offer."""

import gc
import tracemalloc
from collections.abc import Iterator
from functools import partial
from itertools import count

from msgspec import structs
from msgspec.structs import replace

from benchmarks.measure import Case, Figure, Report, measure, timed
from benchmarks.selection import (
    BASEFEE,
    CLASSES,
    FIRES,
    FIT,
    GAS,
    HEIGHT,
    RICH,
    STEP,
    Fees,
    cases,
    shapes,
    waiting_timer,
)
from trailboss.mechanisms.base import DueTimers
from trailboss.mechanisms.context import LaneMarket, SelectionContext
from trailboss.mechanisms.fee_lane import Lane, build_lane
from trailboss.model.timers import NO_FEES, Timer
from trailboss.params import load_params
from trailboss.primitives.units import Cells, Cycles, Height, Price

JOINED = 10_000
BYTES_MAX = 500
BYTES_SIZE = 50_000
CROWD = 1_024
"""Waiting timers of the one actor that moves to another class."""
PARAMS = load_params(overrides={"timers.due_examined_max": FIT, "lane.joined_max": FIT})
ALL_DIFFER = "all offers differ"
SHAPES = shapes(NO_FEES, 999_983, ("no fees", "one offer", "two offers an actor", ALL_DIFFER))


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report(f"The timer lane: {FIRES} fires a block, and all of {FIT:,}", "one block's selection")
    for shape, fees in SHAPES.items():
        _measure_shape(report, shape, fees, rounds)
    crowds = {"one offer": SHAPES["one offer"], f"{CROWD:,} offers": SHAPES[ALL_DIFFER]}
    moves = [Case(name="another block, nothing heard", sample=partial(_again, _joined(FIT, SHAPES["one offer"])))]
    for name, fees in crowds.items():
        sample = partial(_move, _with_crowd(fees), count(1))
        moves.append(Case(name=f"an actor with {CROWD:,} timers moves, {name}", sample=sample, beside=moves[0].name))
    measure(report, moves, rounds)
    report.notes += [
        f"{FIRES} fires: also the next in rank are named, and the index forgets those that have fired.",
        f"Actors have {CLASSES} different numbers of fires. Where all offers differ, the timers lie in as many groups.",
        "Records, balances and handlers are delivery's, and stand still here.",
    ]
    return report


def _measure_shape(report: Report, shape: str, fees: Fees, rounds: int) -> None:
    joined, has_budget = partial(_joined, fees=fees), shape != ALL_DIFFER
    joins = Case(name=f"{shape}, a timer joins {FIT:,}", sample=partial(_join, joined(FIT), fees))
    measure(report, [*cases(shape, joined, _Block, _at_hand, has_budget=has_budget), joins], rounds)
    most = BYTES_MAX if has_budget else None
    report.figures.append(Figure(name=f"{shape}, memory of a joined timer", value=_bytes(fees), unit="B", most=most))


def _timer(number: int, fees: Fees) -> Timer:
    return waiting_timer(number, fees(number), 10 * HEIGHT + number % STEP)


RECORD = _timer(0, SHAPES["no fees"])


class _Block:
    """What delivery would offer: a lane that fires use up, payers that can pay, records that are at hand."""

    def __init__(self, lane_cycles: int, basefee: int = BASEFEE) -> None:
        self.left = lane_cycles
        self.context = SelectionContext(
            height=Height(HEIGHT),
            cycle_basefee=Price(BASEFEE),
            cell_basefee=Price(1),
            max_cells_per_fire=Cells(1),
            lane_cycles_max=Cycles(lane_cycles),
            gc_cycles_max=Cycles(0),
            gc_cycles_per_timer=Cycles(1),
            balance_of=RICH.__getitem__,
            lane_cycles_left=lambda: self.left,
            market=LaneMarket(
                basefee=Price(basefee),
                previous_tip=Price(3),
                max_cycles_per_fire=GAS,
                clamps_before=Height(0),
                median_fires=CLASSES - 1,
                weight_min=10**9,
                weight_max=2 * 10**9,
                fires_of=lambda actor: actor[-1] % CLASSES,
                ask=lambda _: None,
                timer_of=lambda _, identity: structs.replace(RECORD, timer_id=identity),
            ),
        )


def _at_hand(context: SelectionContext[LaneMarket]) -> SelectionContext[LaneMarket]:
    return replace(context, market=replace(context.market, timer_of=lambda *_: RECORD))


def _joined(size: int, fees: Fees) -> Lane:
    lane = build_lane(PARAMS)
    lane.select(DueTimers(_timer(number, fees) for number in range(size)), _Block(0).context)
    return lane


def _join(lane: Lane, fees: Fees) -> float:
    joining = [_timer(number, fees) for number in range(FIT, FIT + JOINED)]
    context = _Block(0).context
    seconds = timed(lambda: lane.select(DueTimers((), joining), context), JOINED)
    for timer in joining:
        lane.leave(timer.timer_id)
    lane.select(DueTimers(()), context)
    return seconds


def _bytes(fees: Fees) -> float:
    gc.collect()
    tracemalloc.start()
    lane = _joined(BYTES_SIZE, fees)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del lane
    return taken / BYTES_SIZE


def _with_crowd(fees: Fees) -> Lane:
    lane = _joined(FIT, SHAPES["one offer"])
    crowd = (structs.replace(_timer(number, fees), actor=bytes(20)) for number in range(FIT, FIT + CROWD))
    lane.select(DueTimers((), list(crowd)), _Block(0).context)
    return lane


def _move(lane: Lane, fires: Iterator[int]) -> float:
    lane.recount(bytes(20), next(fires) % CLASSES)
    return _again(lane)


def _again(lane: Lane) -> float:
    context = _Block(0).context
    return timed(lambda: lane.select(DueTimers(()), context))
