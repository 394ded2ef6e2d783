"""The timer lane's selection alone: what a block costs beside those that fire, by how many wait and what they offer."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import count, repeat

import msgspec

from benchmarks.measure import Case, Figure, Report, measure, timed
from trailboss.mechanisms.base import DueTimers
from trailboss.mechanisms.context import LaneContext, LaneMarket
from trailboss.mechanisms.lane import Lane, build_lane
from trailboss.model.timers import DEFAULT_HANDLER, NO_FEES, RECORD_VERSION, Timer, freeze_fees
from trailboss.params import load_params
from trailboss.primitives.units import Amount, Cells, Cycles, Height, Price

SIZES = (10_000, 100_000, 1_000_000)
FIRES = 8
GAS = Cycles(250_000)
LANE = FIRES * GAS
BLOCKS = 5
"""Blocks of one sample, each at another lane basefee."""
RATIO = 3
FIT = 100_000
FIT_SECONDS = 0.15
JOINED = 10_000
BYTES_MAX = 500
BYTES_SIZE = 50_000
ACTORS = 1_000
CLASSES = 8
"""How often actors have fired within the window: so many different numbers."""
CROWD = 1_024
"""Waiting timers of the one actor that moves to another class."""
BASEFEE = 1_000
STEP = 37
"""A prime: the basefee moves by it, and fees are spread by its multiples."""
HEIGHT = 100
PARAMS = load_params(overrides={"timers.due_examined_max": FIT, "lane.joined_max": FIT})

Offer = Callable[[int], bytes]
SHAPES: dict[str, Offer] = {
    "no fees": lambda _: NO_FEES,
    "one offer": lambda _: freeze_fees(10 * BASEFEE, 5),
    "two offers an actor": lambda number: freeze_fees(10 * BASEFEE + number % ACTORS, 5 + number // ACTORS % 2),
    "all offers differ": lambda number: freeze_fees(BASEFEE // 2 + number * STEP % 2_000_003, number * STEP % 999_983),
}


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report(f"The timer lane: {FIRES} fires a block, and all of {FIT:,}", "one block's selection")
    for shape, offer in SHAPES.items():
        _measure_shape(report, shape, offer, rounds)
    crowds = {"one offer": SHAPES["one offer"], f"{CROWD:,} offers": SHAPES["all offers differ"]}
    cases = [Case(name="another block, nothing heard", sample=partial(_again, _joined(FIT, SHAPES["one offer"])))]
    for name, offer in crowds.items():
        sample = partial(_move, _with_crowd(offer), count(1))
        cases.append(Case(name=f"an actor with {CROWD:,} timers moves, {name}", sample=sample, beside=cases[0].name))
    measure(report, cases, rounds)
    report.notes += [
        f"{FIRES} fires: also the next in rank are named, and the index forgets those that have fired.",
        f"Actors have {CLASSES} different numbers of fires. Where all offers differ, the timers lie in as many groups.",
        "Records, balances and handlers are delivery's, and stand still here.",
    ]
    return report


def _measure_shape(report: Report, shape: str, offer: Offer, rounds: int) -> None:
    first = f"{shape}, {FIRES} of {SIZES[0]:,}"
    cases = [
        Case(
            name=f"{shape}, {FIRES} of {size:,}",
            sample=partial(_fire, _joined(size, offer), count()),
            beside="" if size == SIZES[0] else first,
            ratio_max=RATIO if size == SIZES[-1] else None,
        )
        for size in SIZES
    ]
    lane = _joined(FIT, offer)
    has_budget = offer is not SHAPES["all offers differ"]
    cases += [
        Case(
            name=f"{shape}, all of {FIT:,}",
            sample=partial(_fire_all, lane),
            seconds_max=FIT_SECONDS if has_budget else None,
        ),
        Case(name=f"{shape}, a timer joins {FIT:,}", sample=partial(_join, lane, offer)),
    ]
    measure(report, cases, rounds)
    most = BYTES_MAX if has_budget else None
    report.figures.append(Figure(name=f"{shape}, memory of a joined timer", value=_bytes(offer), unit="B", most=most))


def _timer(number: int, offer: Offer) -> Timer:
    identity = sha256(number.to_bytes(8, "big")).digest()
    actor = (number % ACTORS).to_bytes(20, "big")
    return Timer(
        version=RECORD_VERSION,
        actor=actor,
        height=Height(HEIGHT),
        timer_id=identity,
        sequence=number,
        handler=DEFAULT_HANDLER,
        payload=b"",
        fee_payer=actor,
        gas_limit=GAS,
        access_limit=0,
        expires_at=Height(10 * HEIGHT + number % STEP),
        schedule_block=Height(1),
        fees=offer(number),
    )


RECORD = _timer(0, SHAPES["no fees"])


def _timers(size: int, offer: Offer) -> Iterator[Timer]:
    return (_timer(number, offer) for number in range(size))


RICH = {number.to_bytes(20, "big"): Amount(2**127) for number in range(ACTORS)}


class _Block:
    """What delivery would offer: a lane that fires use up, payers that can pay, records that are at hand."""

    def __init__(self, lane_cycles: int, basefee: int = BASEFEE) -> None:
        self.lane_left = lane_cycles
        self.context = LaneContext(
            height=Height(HEIGHT),
            cycle_basefee=Price(BASEFEE),
            cell_basefee=Price(1),
            max_cells_per_fire=Cells(1),
            lane_cycles_max=Cycles(lane_cycles),
            gc_cycles_max=Cycles(0),
            gc_cycles_per_timer=Cycles(1),
            balance_of=RICH.__getitem__,
            lane_cycles_left=lambda: self.lane_left,
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
                timer_of=lambda _, identity: msgspec.structs.replace(RECORD, timer_id=identity),
            ),
        )


def _joined(size: int, offer: Offer) -> Lane:
    lane = build_lane(PARAMS)
    lane.select(DueTimers(_timers(size, offer)), _Block(0).context)
    return lane


def _fire(lane: Lane, blocks: Iterator[int]) -> float:
    def fire() -> None:
        for number in (next(blocks) for _ in range(BLOCKS)):
            block = _Block(LANE, BASEFEE + number * STEP % BASEFEE)
            for decision in lane.select(DueTimers(()), block.context):
                lane.leave(decision.timer.timer_id)
                block.lane_left -= decision.gas_limit

    return timed(fire, BLOCKS)


def _fire_all(lane: Lane) -> float:
    context = _Block(FIT * GAS, BASEFEE // 2).context
    if context.market is None:
        raise ValueError("the lane needs a market")
    market = replace(context.market, timer_of=lambda *_: RECORD)
    context = replace(context, lane_cycles_left=repeat(FIT * GAS).__next__, market=market)
    decided = 0

    def fire_all() -> None:
        nonlocal decided
        for _ in lane.select(DueTimers(()), context):
            decided += 1

    seconds = timed(fire_all)
    if decided != FIT:
        raise RuntimeError(f"{decided} of {FIT} timers were selected")
    return seconds


def _join(lane: Lane, offer: Offer) -> float:
    joining = [_timer(number, offer) for number in range(FIT, FIT + JOINED)]
    context = _Block(0).context
    seconds = timed(lambda: lane.select(DueTimers((), joining), context), JOINED)
    for timer in joining:
        lane.leave(timer.timer_id)
    lane.select(DueTimers(()), context)
    return seconds


def _bytes(offer: Offer) -> float:
    gc.collect()
    tracemalloc.start()
    lane = _joined(BYTES_SIZE, offer)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del lane
    return taken / BYTES_SIZE


def _with_crowd(offer: Offer) -> Lane:
    lane = _joined(FIT, SHAPES["one offer"])
    crowd = (msgspec.structs.replace(_timer(number, offer), actor=bytes(20)) for number in range(FIT, FIT + CROWD))
    lane.select(DueTimers((), list(crowd)), _Block(0).context)
    return lane


def _move(lane: Lane, fires: Iterator[int]) -> float:
    lane.recount(bytes(20), next(fires) % CLASSES)
    return _again(lane)


def _again(lane: Lane) -> float:
    context = _Block(0).context
    return timed(lambda: lane.select(DueTimers(()), context))
