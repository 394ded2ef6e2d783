"""The auction's selection alone: what a block costs beside those that fire, by how many wait and what they bid."""

from collections.abc import Iterator
from functools import partial
from itertools import count

from msgspec import structs
from msgspec.structs import replace

from benchmarks.measure import Case, Report, measure, timed
from benchmarks.selection import (
    ACTORS,
    BASEFEE,
    BUDGET,
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
from trailboss.mechanisms.auction import Auction, build_auction
from trailboss.mechanisms.base import DueTimers
from trailboss.mechanisms.context import AuctionMarket, Bid, SelectionContext
from trailboss.model.auction import DelayAction
from trailboss.model.decisions import FeeSource
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import ASK_AGENT, Timer, freeze_fees
from trailboss.params import load_params
from trailboss.primitives.units import Cells, Cycles, Height, Price

QUESTIONS = 1_000
QUESTIONS_SECONDS = 0.15
LONG_AGO = 10 * HEIGHT
PARAMS = load_params(overrides={"timers.due_examined_max": FIT, "auction.joined_max": FIT})
WHOLE = 10**9
ALL_DIFFER = "all bids differ"
SHAPES = shapes(ASK_AGENT, 491, ("never asked", "one bid", "two bids an actor", ALL_DIFFER))


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report(f"The auction: {FIRES} fires a block, and all of {FIT:,}", "one block's selection")
    for shape, fees in SHAPES.items():
        _measure_shape(report, shape, fees, rounds)
    auction = _joined(FIT, SHAPES["one bid"])
    case = Case(
        name=f"{QUESTIONS:,} questions among {FIT:,}, all answers new",
        sample=partial(_ask, auction, count(1)),
        seconds_max=QUESTIONS_SECONDS,
    )
    measure(report, [case], rounds)
    report.notes += [
        f"{FIRES} fires: also the next in rank are named, and the index forgets those that have fired.",
        f"Actors have {CLASSES} different weights. Where all bids differ, the timers lie in as many groups.",
        "Records, balances, agents and handlers are delivery's, and stand still here.",
    ]
    return report


def _measure_shape(report: Report, shape: str, fees: Fees, rounds: int) -> None:
    joined = partial(_joined, fees=fees)
    measure(report, cases(shape, joined, _Block, _at_hand, has_budget=shape != ALL_DIFFER), rounds)


def _timer(number: int, fees: Fees) -> Timer:
    timer = waiting_timer(number, fees(number), LONG_AGO)
    return structs.replace(timer, terms=AuctionTerms(bytes(20), 0 if timer.fees == ASK_AGENT else 1))


RECORD = _timer(0, SHAPES["one bid"])


class _Block:
    """What delivery would offer: a budget that fires use up, owners that can pay, records that are at hand."""

    def __init__(self, budget: int, basefee: int = BASEFEE, height: int = HEIGHT) -> None:
        self.left = budget
        self.context = SelectionContext(
            height=Height(height),
            cycle_basefee=Price(basefee),
            cell_basefee=Price(1),
            max_cells_per_fire=Cells(1),
            lane_cycles_max=Cycles(max(budget, BUDGET)),
            gc_cycles_max=Cycles(0),
            gc_cycles_per_timer=Cycles(1),
            balance_of=RICH.__getitem__,
            lane_cycles_left=lambda: self.left,
            market=AuctionMarket(
                max_cycles_per_fire=GAS,
                epoch=0,
                rescales=0,
                actors_weighed_max=ACTORS,
                delays_max=LONG_AGO,
                delay_action=DelayAction.EVENT,
                default_bid=Bid(Price(2 * basefee), Price(0), FeeSource.FALLBACK),
                weight_of=lambda actor: WHOLE // (2 + actor[-1] % CLASSES),
                is_behind=lambda _: False,
                refresh_weight=lambda actor: WHOLE // (2 + actor[-1] % CLASSES),
                ask=lambda _: None,
                timer_of=lambda _, identity: structs.replace(RECORD, timer_id=identity),
            ),
        )

    def offering(self, **changes: object) -> SelectionContext[AuctionMarket]:
        """Return what it offers, with changes of its auction."""
        return replace(self.context, market=replace(self.context.market, **changes))


def _at_hand(context: SelectionContext[AuctionMarket]) -> SelectionContext[AuctionMarket]:
    return replace(context, market=replace(context.market, timer_of=lambda *_: RECORD))


def _joined(size: int, fees: Fees) -> Auction:
    auction = build_auction(PARAMS)
    auction.select(DueTimers(_timer(number, fees) for number in range(size)), _Block(0).context)
    return auction


def _ask(auction: Auction, blocks: Iterator[int]) -> float:
    number = next(blocks)
    height, room = HEIGHT + number, iter(range(QUESTIONS))
    records: dict[bytes, Timer] = {}

    def timer_of(_: int, identity: bytes) -> Timer:
        return records.get(identity) or structs.replace(RECORD, timer_id=identity)

    def ask(timer: Timer) -> Bid | None:
        if next(room, None) is None:
            return None
        tip = Price(number * STEP % BASEFEE)
        fees, terms = freeze_fees(10 * BASEFEE, tip), AuctionTerms(bytes(20), height)
        records[timer.timer_id] = structs.replace(timer, fees=fees, terms=terms)
        return Bid(Price(10 * BASEFEE), tip, FeeSource.AGENT, Cycles(1))

    context = _Block(0, height=height).offering(ask=ask, timer_of=timer_of)

    def select() -> None:
        for _ in auction.select(DueTimers(()), context):
            raise RuntimeError("a timer fired without a budget")

    seconds = timed(select)
    if len(records) != QUESTIONS:
        raise RuntimeError(f"{len(records)} of {QUESTIONS} agents were asked")
    return seconds
