"""The auction's selection alone: what a block costs beside those that fire, by how many wait and what they bid."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import count, repeat

import msgspec

from benchmarks.measure import Case, Report, measure, timed
from trailboss.mechanisms.auction import Auction, build_auction
from trailboss.mechanisms.base import DueTimers
from trailboss.mechanisms.context import AuctionMarket, Bid, LaneContext
from trailboss.model.auction import DelayAction
from trailboss.model.decisions import FeeSource
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import ASK_AGENT, DEFAULT_HANDLER, RECORD_VERSION, Timer, freeze_fees
from trailboss.params import load_params
from trailboss.primitives.units import Amount, Cells, Cycles, Height, Price

SIZES = (10_000, 100_000, 1_000_000)
FIRES = 8
GAS = Cycles(250_000)
BUDGET = FIRES * GAS
BLOCKS = 5
"""Blocks of one sample, each at another basefee."""
RATIO = 3
FIT = 100_000
FIT_SECONDS = 0.15
QUESTIONS = 1_000
QUESTIONS_SECONDS = 0.15
ACTORS = 1_000
CLASSES = 8
"""Different weights of actors."""
BASEFEE = 1_000
STEP = 37
"""A prime: the basefee moves by it, and bids are spread by its multiples."""
HEIGHT = 100
LONG_AGO = 10 * HEIGHT
PARAMS = load_params(overrides={"timers.due_examined_max": FIT, "auction.joined_max": FIT})
WHOLE = 10**9

Offer = Callable[[int], bytes]
SHAPES: dict[str, Offer] = {
    "never asked": lambda _: ASK_AGENT,
    "one bid": lambda _: freeze_fees(10 * BASEFEE, 5),
    "two bids an actor": lambda number: freeze_fees(10 * BASEFEE + number % ACTORS, 5 + number // ACTORS % 2),
    "all bids differ": lambda number: freeze_fees(BASEFEE // 2 + number * STEP % 2_000_003, number * STEP % 491),
}


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report(f"The auction: {FIRES} fires a block, and all of {FIT:,}", "one block's selection")
    for shape, offer in SHAPES.items():
        _measure_shape(report, shape, offer, rounds)
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
    has_budget = offer is not SHAPES["all bids differ"]
    cases.append(
        Case(
            name=f"{shape}, all of {FIT:,}",
            sample=partial(_fire_all, _joined(FIT, offer)),
            seconds_max=FIT_SECONDS if has_budget else None,
        )
    )
    measure(report, cases, rounds)


def _timer(number: int, offer: Offer) -> Timer:
    actor = (number % ACTORS).to_bytes(20, "big")
    fees = offer(number)
    return Timer(
        version=RECORD_VERSION,
        actor=actor,
        height=Height(HEIGHT),
        timer_id=sha256(number.to_bytes(8, "big")).digest(),
        sequence=number,
        handler=DEFAULT_HANDLER,
        payload=b"",
        fee_payer=actor,
        gas_limit=GAS,
        access_limit=0,
        expires_at=Height(LONG_AGO),
        schedule_block=Height(1),
        fees=fees,
        terms=AuctionTerms(bytes(20), 0 if fees == ASK_AGENT else 1),
    )


RECORD = _timer(0, SHAPES["one bid"])
RICH = {number.to_bytes(20, "big"): Amount(2**127) for number in range(ACTORS)}


class _Block:
    """What delivery would offer: a budget that fires use up, owners that can pay, records that are at hand."""

    def __init__(self, budget: int, basefee: int = BASEFEE, height: int = HEIGHT) -> None:
        self.left = budget
        self.context = LaneContext(
            height=Height(height),
            cycle_basefee=Price(basefee),
            cell_basefee=Price(1),
            max_cells_per_fire=Cells(1),
            lane_cycles_max=Cycles(max(budget, BUDGET)),
            gc_cycles_max=Cycles(0),
            gc_cycles_per_timer=Cycles(1),
            balance_of=RICH.__getitem__,
            lane_cycles_left=lambda: self.left,
            auction=AuctionMarket(
                epoch=0,
                rescales=0,
                actors_weighed_max=ACTORS,
                delays_max=LONG_AGO,
                delay_action=DelayAction.EVENT,
                default_bid=Bid(Price(2 * basefee), Price(0), FeeSource.FALLBACK),
                weight_of=lambda actor: WHOLE // (2 + actor[-1] % CLASSES),
                is_behind=lambda _: False,
                freshen=lambda actor: WHOLE // (2 + actor[-1] % CLASSES),
                ask=lambda _: None,
                timer_of=lambda _, identity: msgspec.structs.replace(RECORD, timer_id=identity),
            ),
        )

    def offering(self, **changes: object) -> LaneContext:
        """Return what it offers, with changes of its auction."""
        if self.context.auction is None:
            raise ValueError("the auction needs a market")
        return replace(self.context, auction=replace(self.context.auction, **changes))  # type: ignore[arg-type]


def _joined(size: int, offer: Offer) -> Auction:
    auction = build_auction(PARAMS)
    auction.select(DueTimers(_timer(number, offer) for number in range(size)), _Block(0).context)
    return auction


def _fire(auction: Auction, blocks: Iterator[int]) -> float:
    def fire() -> None:
        for number in (next(blocks) for _ in range(BLOCKS)):
            block = _Block(BUDGET, BASEFEE + number * STEP % BASEFEE)
            for decision in auction.select(DueTimers(()), block.context):
                auction.leave(decision.timer.timer_id)
                block.left -= decision.gas_limit

    return timed(fire, BLOCKS)


def _fire_all(auction: Auction) -> float:
    context = _Block(FIT * GAS, BASEFEE // 2).offering(timer_of=lambda *_: RECORD)
    context = replace(context, lane_cycles_left=repeat(FIT * GAS).__next__)
    decided = 0

    def fire_all() -> None:
        nonlocal decided
        for _ in auction.select(DueTimers(()), context):
            decided += 1

    seconds = timed(fire_all)
    if decided != FIT:
        raise RuntimeError(f"{decided} of {FIT} timers were selected")
    return seconds


def _ask(auction: Auction, blocks: Iterator[int]) -> float:
    number = next(blocks)
    height, room = HEIGHT + number, iter(range(QUESTIONS))
    records: dict[bytes, Timer] = {}

    def timer_of(_: int, identity: bytes) -> Timer:
        return records.get(identity) or msgspec.structs.replace(RECORD, timer_id=identity)

    def ask(timer: Timer) -> Bid | None:
        if next(room, None) is None:
            return None
        tip = Price(number * STEP % BASEFEE)
        fees, terms = freeze_fees(10 * BASEFEE, tip), AuctionTerms(bytes(20), height)
        records[timer.timer_id] = msgspec.structs.replace(timer, fees=fees, terms=terms)
        return Bid(Price(10 * BASEFEE), tip, FeeSource.AGENT, Cycles(1))

    context = _Block(0, height=height).offering(ask=ask, timer_of=timer_of)

    def select() -> None:
        for _ in auction.select(DueTimers(()), context):
            raise RuntimeError("a timer fired without a budget")

    seconds = timed(select)
    if len(records) != QUESTIONS:
        raise RuntimeError(f"{len(records)} of {QUESTIONS} agents were asked")
    return seconds
