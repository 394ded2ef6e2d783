"""What people see under the GBA auction: standing bids, lateness, and the weights of actors."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from trailboss.chain.reader import ChainReader
from trailboss.mechanisms import auction
from trailboss.model import events as names
from trailboss.primitives.units import format_cby
from trailboss.views.mechanism.auction_records import AuctionStatus, auction_of
from trailboss.views.mechanism.base import (
    ACTOR,
    FEE_COLUMNS,
    LIMITS,
    MAX_FEE,
    RANK,
    TIMER,
    TIP,
    Column,
    Fact,
    Kind,
    MechanismViews,
    Occurrence,
    Sentence,
    StepKind,
    Table,
    TimerState,
    Value,
    fee_cells,
    limit_cells,
    outranked_words,
)
from trailboss.views.records import STANDING_FEES, DecisionRow, TimerEntry, TimerView
from trailboss.views.text import counted, decimal_text

TIMER_COLUMNS: Final = (
    *FEE_COLUMNS,
    Column("asked_at", "asked in", Kind.HEIGHT),
    Column("delay_count", "blocks late", Kind.NUMBER),
    Column("agent", "agent", Kind.ADDRESS, extra=True),
)
DECISION_COLUMNS: Final = (
    RANK,
    TIMER,
    ACTOR,
    TIP,
    Column("weight", "weight", Kind.NUMBER),
    MAX_FEE,
    Column("fees", "bid by", extra=True),
    *LIMITS,
)
WEIGHT_COLUMNS: Final = (
    Column("actor", "actor", Kind.ADDRESS),
    Column("weight", "weight", Kind.NUMBER),
    Column("waiting", "waiting", Kind.NUMBER),
    Column("fires", "fires", Kind.NUMBER),
    Column("deferrals", "deferrals", Kind.NUMBER),
    Column("longest_wait", "longest wait", Kind.NUMBER),
    Column("highest_tip", "highest tip", Kind.NUMBER),
    Column("cycles_used", "cycles", Kind.NUMBER),
)


def _timer_cells(entry: TimerEntry) -> tuple[Value, ...]:
    found = entry.auction
    own = (None, None, None) if found is None else (found.asked_at, found.delay_count or None, found.agent)
    return *fee_cells(entry), *own


def _is_late(entry: TimerEntry) -> bool:
    return entry.auction is not None and entry.auction.is_late


def _timer_facts(live: TimerView) -> Iterator[Fact]:
    found = live.auction
    if found is None:
        return
    yield Fact("agent", "agent", found.agent, Kind.ADDRESS)
    if found.asked_at is None:
        yield Fact("asked_at", "asked in", "not yet")
    else:
        yield Fact("asked_at", "asked in", found.asked_at, Kind.HEIGHT)
    if found.is_late:
        late = f"by {counted(found.delay_count, 'block')}, and an event has said so"
        yield Fact("late", "late", late, is_warning=True)


def _decision_cells(row: DecisionRow) -> tuple[Value, ...]:
    tip = row.tip if row.rank else None
    return row.rank, row.timer_id, row.actor, tip, row.weight, row.max_fee, row.fees, *limit_cells(row)


def _status_facts(found: AuctionStatus) -> Iterator[Fact]:
    yield Fact("epoch", "epoch", f"{found.epoch:,}, the next one begins at height {found.next_epoch_at}")
    yield Fact("waiting", "waiting", counted(found.waiting, "timer"))
    yield Fact("weights", "actors with a weight", found.actors, Kind.NUMBER)
    yield Fact("budget", "budget", f"{found.budget_cycles:,} cycles a block")


def _tables(chain: ChainReader) -> tuple[Table, ...]:
    ranked = sorted(auction_of(chain).actors, key=lambda actor: (-actor.weight, actor.actor))
    rows = [
        (
            each.actor,
            decimal_text(each.weight, 1),
            each.waiting or None,
            each.fires or None,
            each.deferrals or None,
            each.longest_wait or None,
            each.highest_tip or None,
            each.cycles_used or None,
        )
        for each in ranked
    ]
    empty = "No actor has taken part in the auction yet: a weight begins with the first timer that falls due."
    return (Table("weights", "Weights", WEIGHT_COLUMNS, rows, empty),)


DELAYS: Final = {
    "event": "nothing else follows from it",
    "front": "from now on it goes before all that are not late, by due order",
    "cancel": "it is to be cancelled",
}
"""What follows from a timer's being late, by the action that the event gives. Decision: D-19."""


def _delayed(it: Occurrence) -> str:
    action = it.facts["action"]
    return f"late, it has waited for {counted(it.facts['delay_count'], 'block')}: {DELAYS.get(action, action)}"


SENTENCES: Final = {
    names.TIMER_DELAYED: Sentence(
        lambda event, _: f"late by {event.data['delay_count']:,} blocks: {event.data['action']}",
        _delayed,
        StepKind.WAITS,
    ),
    names.TIMER_CANCELLED_BY_DELAY: Sentence(
        lambda event, _: f"too late, {format_cby(event.data['penalty'])} CBY burned",
        lambda it: (
            f"cancelled without running, as it was late: {format_cby(it.facts['penalty'])} CBY of its owner burned"
        ),
    ),
}
VIEWS: Final = MechanismViews(
    name=auction.NAME,
    title="Auction",
    timer_columns=TIMER_COLUMNS,
    timer_cells=_timer_cells,
    timer_states={
        "priced-out": TimerState("priced out", lambda entry: entry.priced_out),
        "late": TimerState("late", _is_late),
    },
    timer_facts=_timer_facts,
    decision_columns=DECISION_COLUMNS,
    decision_cells=_decision_cells,
    outranked=partial(outranked_words, budget="budget"),
    floor_words=lambda record: f"cycle basefee of {record.cycle_basefee:,}",
    frozen_fees=STANDING_FEES,
    status_field="auction",
    status_facts=_status_facts,
    tables=_tables,
    sentences=SENTENCES,
)
