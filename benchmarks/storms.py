"""The walk over due timers with dead ones among them, expired or of payers that cannot pay, and no budget for them."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from msgspec import structs

from benchmarks.measure import Case, Report, measure, timed
from benchmarks.selection import ACTORS, BASEFEE, GAS, HEIGHT, waiting_timer
from trailboss.mechanisms.base import DueTimers, LeftOut, Mechanism
from trailboss.mechanisms.context import LaneMarket, Market, SelectionContext
from trailboss.mechanisms.fee_lane import Lane, build_lane
from trailboss.mechanisms.fifo import build_fifo
from trailboss.model.timers import Timer, freeze_fees
from trailboss.params import load_params
from trailboss.primitives.units import Amount, Cells, Cycles, Height, Price
from trailboss.state.store import MemoryStore
from trailboss.timer_queue.queue import TimerQueue
from trailboss.timer_queue.source import StoredTimers, pending_of

STORMS = (0, 10_000, 1_000_000)
LIVING = 25_000
"""As many as a block examines."""
RATIO = 1.1
LIVES = 10 * HEIGHT
PARAMS = load_params()
BEHIND = 2 * STORMS[-1]
"""Numbers of the living, behind those of all that are dead."""
BROKE = b"\xff"
"""How the address of a payer begins that has nothing."""
KINDS = ("expired", "unfunded")


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report(
        f"Storms of dead timers of {ACTORS:,} payers, before and among {LIVING:,} living", "one block's walk"
    )
    cases: list[Case] = []
    for kind in KINDS:
        cases += [_case(f"FIFO, {kind}", dead, partial(_walk_fifo, *_fifo(dead, kind))) for dead in STORMS]
    for others in STORMS[1:]:
        beside = f"lane, {others:,} others that can pay"
        cases.append(Case(name=beside, sample=partial(_walk_lane, _lane(others, is_dead=False))))
        sample = partial(_walk_lane, _lane(others, is_dead=True))
        cases.append(Case(name=f"lane, {others:,} others unfunded", sample=sample, beside=beside, ratio_max=RATIO))
    measure(report, cases, rounds)
    report.notes += [
        "No removal is paid for here: a block's clean-up budget buys as many as it did, beside the walk.",
        "In the lane the expired never join. Others that can pay offer less than those that fire, unfunded ones more.",
    ]
    return report


def _case(name: str, dead: int, sample: partial[float]) -> Case:
    first = f"{name}, none"
    beside = first if dead else ""
    return Case(
        name=f"{name}, {dead:,}" if dead else first, sample=sample, beside=beside, ratio_max=RATIO if dead else None
    )


def _dead(count: int, kind: str, fees: bytes = b"") -> Iterator[Timer]:
    for number in range(count):
        timer = waiting_timer(number, fees, HEIGHT - 1 if kind == "expired" else LIVES)
        payer = BROKE + timer.fee_payer[1:] if kind == "unfunded" else timer.fee_payer
        yield structs.replace(timer, fee_payer=payer, actor=payer)


def _living(fees: bytes = b"") -> list[Timer]:
    return [waiting_timer(BEHIND + number, fees, LIVES) for number in range(LIVING)]


def _balance_of(payer: bytes) -> Amount:
    return Amount(0 if payer.startswith(BROKE) else 2**127)


def _context(market: Market) -> SelectionContext[Any]:
    return SelectionContext(
        height=Height(HEIGHT),
        cycle_basefee=Price(BASEFEE),
        cell_basefee=Price(1),
        max_cells_per_fire=Cells(1),
        lane_cycles_max=Cycles(LIVING * GAS),
        gc_cycles_max=Cycles(0),
        gc_cycles_per_timer=Cycles(1),
        balance_of=_balance_of,
        lane_cycles_left=lambda: LIVING * GAS,
        market=market,
    )


def _walked(mechanism: Mechanism, due: DueTimers, context: SelectionContext[Any]) -> None:
    fires = sum(decision.reason is None for decision in mechanism.select(due, context))
    if fires != LIVING:
        raise RuntimeError(f"{fires} of {LIVING} living timers were reached")


def _fifo(dead: int, kind: str) -> tuple[TimerQueue, dict[bytes, Timer], Timer]:
    queue = TimerQueue(PARAMS.calendar, StoredTimers(MemoryStore()))
    living = _living()
    template = next(_dead(1, kind))
    for timer in (*_dead(dead, kind), *living):
        queue.place(pending_of(timer))
    queue.advance(HEIGHT)
    return queue, {timer.timer_id: timer for timer in living}, template


def _walk_fifo(queue: TimerQueue, living: dict[bytes, Timer], template: Timer) -> float:
    def load(height: int, sequence: int, timer_id: bytes) -> Timer:
        record = living.get(timer_id) or structs.replace(template, fee_payer=queue.fee_payer_of(timer_id))
        return structs.replace(record, height=Height(height), sequence=sequence, timer_id=timer_id)

    def walk() -> None:
        out = LeftOut()
        waiting = (load(*entry) for entry in queue.due(HEIGHT, is_out=out.__contains__))
        expired = (load(*entry) for entry in queue.expired(HEIGHT))
        _walked(
            build_fifo(PARAMS), DueTimers(waiting, expired=expired, out=out), _context(Market(max_cycles_per_fire=GAS))
        )

    return timed(walk)


def _lane(others: int, *, is_dead: bool) -> Lane:
    lane = build_lane(PARAMS)
    fees, kind = freeze_fees(9 * BASEFEE, 8 * BASEFEE if is_dead else 1), "unfunded" if is_dead else "alive"
    records = {timer.timer_id: timer for timer in _living(freeze_fees(9 * BASEFEE, 5))}
    _LANES[lane] = records, next(_dead(1, kind, fees))
    waiting = (timer for part in (_dead(others, kind, fees), records.values()) for timer in part)
    lane.select(DueTimers(waiting), _context(_market(lane)))
    return lane


_LANES: dict[Lane, tuple[dict[bytes, Timer], Timer]] = {}


def _market(lane: Lane) -> LaneMarket:
    living, template = _LANES[lane]
    return LaneMarket(
        basefee=Price(BASEFEE),
        previous_tip=Price(3),
        max_cycles_per_fire=GAS,
        clamps_before=Height(0),
        median_fires=1,
        weight_min=10**9,
        weight_max=2 * 10**9,
        fires_of=lambda _: 0,
        ask=lambda _: None,
        timer_of=lambda _, timer_id: living.get(timer_id) or template,
    )


def _walk_lane(lane: Lane) -> float:
    context = _context(_market(lane))
    return timed(lambda: _walked(lane, DueTimers(()), context))
