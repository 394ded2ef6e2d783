"""What people see under the GBA auction: standing bids, lateness, and the weights of actors."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from trailboss.chain.reader import ChainReader
from trailboss.fees import Prices, offered_cell_tip, offered_tip
from trailboss.governance.rules import Rules
from trailboss.mechanisms import auction
from trailboss.model import events as names
from trailboss.model.blocks import Block
from trailboss.model.decisions import DecisionRecord
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import DeferralReason, Timer
from trailboss.primitives.units import Price, format_cby
from trailboss.views.explain import waits
from trailboss.views.mechanism import base
from trailboss.views.mechanism.auction_records import AuctionStatus, AuctionTimer, auction_of, auction_timer
from trailboss.views.records import STANDING_FEES, DecisionRow, TimerEntry, TimerView, event_view
from trailboss.views.text import counted, decimal_text

TIMER_COLUMNS: Final = (
    *base.FEE_COLUMNS,
    base.Column("asked_at", "asked in", base.ValueKind.HEIGHT),
    base.Column("delay_count", "blocks late", base.ValueKind.NUMBER),
    base.Column("agent", "agent", base.ValueKind.ADDRESS, extra=True),
)
DECISION_COLUMNS: Final = (
    base.RANK,
    base.TIMER,
    base.ACTOR,
    base.TIP,
    base.Column("weight", "weight", base.ValueKind.NUMBER),
    base.MAX_FEE,
    base.Column("fees", "bid by", extra=True),
    *base.LIMITS,
)
ACTIVITY: Final = {
    "waiting": "waiting",
    "fires": "fires",
    "deferrals": "deferrals",
    "longest_wait": "longest wait",
    "highest_tip": "highest tip",
    "cycles_used": "cycles",
}
"""Fields of an actor's standing that its table shows, each with its heading."""
WEIGHT_COLUMNS: Final = (
    base.Column("actor", "actor", base.ValueKind.ADDRESS),
    base.Column("weight", "weight", base.ValueKind.NUMBER),
    *(base.Column(name, title, base.ValueKind.NUMBER) for name, title in ACTIVITY.items()),
)


def _timer_cells(entry: TimerEntry) -> tuple[base.Value, ...]:
    found = entry.auction
    own = (None, None, None) if found is None else (found.asked_at, found.delay_count or None, found.agent)
    return *base.fee_cells(entry), *own


def _timer_facts(live: TimerView) -> Iterator[base.Fact]:
    found = live.auction
    if found is None:
        return
    yield base.Fact("agent", "agent", found.agent, base.ValueKind.ADDRESS)
    kind = base.ValueKind.TEXT if found.asked_at is None else base.ValueKind.HEIGHT
    yield base.Fact("asked_at", "asked in", "not yet" if found.asked_at is None else found.asked_at, kind)
    if found.is_late:
        late = f"by {counted(found.delay_count, 'block')}, and an event has said so"
        yield base.Fact("late", "late", late, is_warning=True)


def _decision_cells(row: DecisionRow) -> tuple[base.Value, ...]:
    tip = row.tip if row.rank else None
    return row.rank, row.timer_id, row.actor, tip, row.weight, row.max_fee, row.fees, *base.limit_cells(row)


def _status_facts(found: AuctionStatus) -> Iterator[base.Fact]:
    yield base.Fact("epoch", "epoch", f"{found.epoch:,}, the next one begins at height {found.next_epoch_at}")
    yield base.Fact("waiting", "waiting", counted(found.waiting, "timer"))
    yield base.Fact("weights", "actors with a weight", found.actors, base.ValueKind.NUMBER)
    yield base.Fact("budget", "budget", f"{found.budget_cycles:,} cycles a block")


def _tables(chain: ChainReader) -> tuple[base.Table, ...]:
    ranked = sorted(auction_of(chain).actors, key=lambda actor: (-actor.weight, actor.actor))
    rows = [
        (each.actor, decimal_text(each.weight, 1), *(getattr(each, name) or None for name in ACTIVITY))
        for each in ranked
    ]
    empty = "No actor has taken part in the auction yet: a weight begins with the first timer that falls due."
    return (base.Table("weights", "Weights", WEIGHT_COLUMNS, rows, empty),)


def _outlook(chain: ChainReader, timer: Timer, _: base.Trial | None) -> base.Outlook:
    """Return what comes next under the auction. Spec: CIP-1v1 §3. Decision: D-57, D-60."""
    when = base.next_block_for(chain, timer)
    expires = base.expiry_outlook(timer, when)
    if expires is not None:
        return expires
    cycle_basefee, cell_basefee = chain.rules().timer_basefees()
    standing = timer.frozen_fees()
    max_fee, priority = standing or (2 * cycle_basefee, 0)
    whose = "its standing bid" if standing else "the default bid"
    if max_fee < cycle_basefee:
        text = (
            f"priced out as things stand: {whose} of up to {max_fee:,} a cycle is below the cycle basefee of "
            f"{cycle_basefee:,}; it waits for a lower one, or for its agent to bid more when it is asked again"
        )
        return base.Outlook(base.OutlookKind.WAITS, text)
    cell_fees = timer.cell_fees()
    cell_tip = offered_cell_tip(cell_fees, cell_basefee)
    if cell_fees is not None and cell_tip < 0:
        text = (
            f"priced out as things stand: {whose} of up to {cell_fees[0]:,} a cell is below the cell basefee of "
            f"{cell_basefee:,}; it waits for its agent to bid more when it is asked again"
        )
        return base.Outlook(base.OutlookKind.WAITS, text)
    tip = Price(offered_tip(max_fee, priority, cycle_basefee))
    money = base.money_for(chain, timer, timer.gas_limit, Prices(cycle_basefee, cell_basefee, tip, cell_tip))
    if money.is_short:
        text = f"waits at height {when} as things stand, until its owner can pay: {money.words}"
        return base.Outlook(base.OutlookKind.WAITS, text)
    is_late = isinstance(timer.terms, AuctionTerms) and timer.terms.is_late
    late = "; it is late, and an event has said so" if is_late else ""
    offer = f"{whose} of up to {max_fee:,} a cycle, {tip:,} of it as a tip, unless its agent bids otherwise before"
    text = f"competes at height {when} with {offer}, as things stand: {money.words}{late}"
    return base.Outlook(base.OutlookKind.RUNS, text)


def _timer_details(timer: Timer, now: int) -> dict[str, AuctionTimer]:
    return {"auction": auction_timer(timer, timer.terms, now)} if isinstance(timer.terms, AuctionTerms) else {}


class _BidHistory:
    """A timer of the auction, followed from block to block. Spec: CIP-1v1 §3. Decision: D-57, D-60."""

    __slots__ = ("_aside", "_bid", "_cell_cap", "_timer")

    def __init__(self, timer: waits.WaitingTimer) -> None:
        self._timer = timer
        self._bid: tuple[int, int] | None = None
        self._cell_cap: int | None = None
        self._aside: str | None = None

    def wait(self, block: Block, record: DecisionRecord) -> waits.Wait:
        """Return how it waited in the next block."""
        timer, height, floor = self._timer, block.height, record.cycle_basefee
        asked = waits.bid_in(block, timer.timer_id)
        if asked is not None:
            self._bid = asked.max_fee, asked.max_priority_fee
            self._cell_cap = asked.max_fee_per_cell
        named = waits.named_in(record, timer.timer_id)
        max_fee, priority = (
            (named.max_fee, named.tip) if named is not None and named.rank else self._bid or (None, None)
        )
        tip = None if max_fee is None or priority is None or max_fee < floor else min(priority, max_fee - floor)
        if named is None:
            is_asked, set_aside = asked is not None, self._set_aside_in(block)
            reason = self._derived(record, max_fee, tip, is_asked=is_asked, set_aside=set_aside)
        else:
            reason = _behind(record) if named in record.runners_up else _cell_words(named.reason)
        if named is not None or reason in waits.SET_ASIDE:
            self._aside = reason if reason in waits.SET_ASIDE else None
        return waits.make_wait(height, record, str(reason), named, (max_fee, tip, self._cell_cap))

    def _set_aside_in(self, block: Block) -> str | None:
        """Return why an event of a block sets it aside; a record names the first of those only."""
        events = (event for event in block.events if event.timer_id == self._timer.timer_id)
        deferred = (event_view(event, block.height).data for event in events if event.name == names.TIMER_DEFERRED)
        reasons = (_cell_words(facts["reason"]) for facts in deferred)
        return next((reason for reason in reasons if reason in waits.SET_ASIDE), None)

    def _derived(
        self, record: DecisionRecord, max_fee: int | None, tip: int | None, *, is_asked: bool, set_aside: str | None
    ) -> str:
        if not record.has_joined(self._timer.height, self._timer.sequence):
            return DeferralReason.NOT_JOINED
        aside = set_aside or (None if is_asked else self._aside)
        if aside is not None:
            return aside
        if max_fee is None:
            return waits.AGENT_OFFER if record.priced_out else _behind(record)
        if tip is None:
            return DeferralReason.PRICED_OUT
        # Asked, and not among those that come next although it bids more than the last of them: it was not ranked.
        last = min((item.tip for item in record.runners_up), default=0)
        if self._cell_cap is not None and self._cell_cap < record.cell_basefee:
            return waits.CELL_OFFER
        return DeferralReason.UNFUNDED if self._aside is not None and tip > last else _behind(record)


def _cell_words(reason: str) -> str:
    """Return a reason of the auction's record, in which only what is offered for a cell is a reason of its own."""
    return waits.CELL_OFFER if reason == DeferralReason.PRICED_OUT else reason


def _behind(record: DecisionRecord) -> str:
    return record.stopped if record.stopped in waits.CUT_SHORT else DeferralReason.OUTRANKED


DELAYS: Final = {
    "event": "nothing else follows from it",
    "front": "from now on it goes before all that are not late, by due order",
    "cancel": "it is to be cancelled",
}
"""What follows from a timer's being late, by the action that the event gives. Decision: D-19."""


def _delayed(it: base.Occurrence) -> str:
    action = it.facts["action"]
    return f"late, it has waited for {counted(it.facts['delay_count'], 'block')}: {DELAYS.get(action, action)}"


SENTENCES: Final = {
    names.TIMER_DELAYED: base.Sentence(
        lambda event, _: f"late by {event.data['delay_count']:,} blocks: {event.data['action']}",
        _delayed,
        base.StepKind.WAITS,
    ),
    names.TIMER_CANCELLED_BY_DELAY: base.Sentence(
        lambda event, _: f"too late, {format_cby(event.data['penalty'])} CBY burned",
        lambda it: (
            f"cancelled without running, as it was late: {format_cby(it.facts['penalty'])} CBY of its owner burned"
        ),
    ),
}


def _tip_at(_rules: Rules, timer: Timer, cycle_basefee: int, _lane_basefee: int) -> int | None:
    """Return what a timer tips by its standing bid or by the default bid. Decision: D-57."""
    max_fee, priority = timer.frozen_fees() or (2 * cycle_basefee, 0)
    return None if max_fee < cycle_basefee else offered_tip(max_fee, priority, Price(cycle_basefee))


def _runway_notes(_: Rules, timers: Sequence[Timer]) -> Iterator[str]:
    if timers:
        yield "its timers are counted at their standing bids, or at the default bid: their agents may bid otherwise"


VIEWS: Final = base.MechanismViews(
    name=auction.NAME,
    title="Auction",
    timer_columns=TIMER_COLUMNS,
    timer_cells=_timer_cells,
    timer_states={
        "priced-out": base.TimerState("priced out", lambda entry: entry.priced_out),
        "late": base.TimerState("late", lambda entry: entry.auction is not None and entry.auction.is_late),
    },
    timer_facts=_timer_facts,
    decision_columns=DECISION_COLUMNS,
    decision_cells=_decision_cells,
    outranked=partial(base.outranked_words, budget="budget"),
    floor_words=lambda record: f"cycle basefee of {record.cycle_basefee:,}",
    frozen_fees=STANDING_FEES,
    fee_floor=lambda rules: rules.timer_basefees()[0],
    timer_details=_timer_details,
    outlook=_outlook,
    waits_from=lambda _, due: due,
    wait_reader=lambda _, timer: _BidHistory(timer).wait,
    asks_agents=True,
    tip_at=_tip_at,
    runway_notes=_runway_notes,
    status_field="auction",
    status_facts=_status_facts,
    tables=_tables,
    sentences=SENTENCES,
)
