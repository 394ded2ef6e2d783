"""The list of timers, by state, actor, payer, target and height."""

from typing import Final

from trailboss.explorer import cells
from trailboss.explorer.cells import NOTHING
from trailboss.explorer.documents import Column, Content, Document, Filter, Row, Table
from trailboss.explorer.empty_hints import schedule_command
from trailboss.explorer.page_context import Reading
from trailboss.explorer.parts import TIMER_COLUMNS, offset_of, pager_of, timer_row
from trailboss.explorer.query import PAGE_ROWS, Query
from trailboss.index.answers.timers import SCANNED_MAX, timer_page
from trailboss.model.globalbox import format_bid
from trailboss.model.markets import MarketKind
from trailboss.primitives.units import U64_MAX
from trailboss.views.records import TimerEntry
from trailboss.views.text import counted
from trailboss.views.timer_list import ALL, DUE, LIVE, TimerFilter

STATES: Final = {
    LIVE: "live",
    DUE: "due",
    "deferred": "deferred",
    "fired": "fired",
    "expired": "expired",
    "unfunded": "unfunded",
    "cancelled": "cancelled",
    ALL: "all",
}
LANE_STATES: Final = {"over-cap": "over cap", "priced-out": "priced out"}
AUCTION_STATES: Final = {"priced-out": "priced out", "late": "late"}
GLOBALBOX_STATES: Final = {"queued": "queued", "in-mailbox": "in the mailbox"}
FEE_COLUMNS: Final = (Column("Max fee", right=True), Column("Tip", right=True))
AUCTION_COLUMNS: Final = (*FEE_COLUMNS, Column("Asked in", right=True), Column("Blocks late", right=True))
GLOBALBOX_COLUMNS: Final = (Column("Target"), Column("Bid", right=True), Column("Fires", right=True))


def timers(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page."""
    states = _states(reading)
    state = query.choice("state", states, LIVE)
    wanted = TimerFilter(
        state=state,
        actor=query.address("actor"),
        target=query.address("target"),
        payer=query.address("payer"),
        first=query.number("from", 0),
        last=query.number("to", U64_MAX),
    )
    if wanted.last < wanted.first:
        query.complaints.append(f"the heights from {wanted.first} to {wanted.last} hold nothing: swap them")
    offset = (query.page() - 1) * PAGE_ROWS
    page = timer_page(reading.view, reading.node.index, wanted, offset, PAGE_ROWS)
    if offset_of(query, page.total_count) != offset:
        # Beyond the end, as when timers have fired since: the last page there is.
        page = timer_page(reading.view, reading.node.index, wanted, offset_of(query, page.total_count), PAGE_ROWS)
    columns, besides = TIMER_COLUMNS + _columns(reading), _is_globalbox(reading)
    rows = tuple(_row(entry, reading, is_globalbox=besides) for entry in page.timers)
    note = f"{counted(page.live, 'timer')} live after block {reading.height}"
    if page.total_count >= SCANNED_MAX:
        note += f"; the first {SCANNED_MAX:,} were looked at"
    table = Table(
        "timers",
        f"Timers: {states[state]}",
        columns,
        rows,
        _empty(page.live, state),
        command="" if page.live or state != LIVE else schedule_command(reading),
        pager=pager_of(query, page.total_count),
        filters=_filters(query, states, state, is_globalbox=besides),
        note=note,
    )
    return Document("Timers", "Timers", (table,))


def _is_globalbox(reading: Reading) -> bool:
    return reading.view.rules().market.kind is MarketKind.GLOBALBOX


def _states(reading: Reading) -> dict[str, str]:
    rules, found = reading.view.rules(), dict(STATES)
    if rules.market.kind is MarketKind.GLOBALBOX:
        found |= GLOBALBOX_STATES
    elif rules.market.kind is MarketKind.AUCTION:
        found |= AUCTION_STATES
    elif rules.market.kind is MarketKind.LANE:
        found |= LANE_STATES
    return found


def _columns(reading: Reading) -> tuple[Column, ...]:
    rules = reading.view.rules()
    if rules.market.kind is MarketKind.GLOBALBOX:
        return GLOBALBOX_COLUMNS
    if rules.market.kind is MarketKind.AUCTION:
        return AUCTION_COLUMNS
    return () if rules.market.kind is not MarketKind.LANE else FEE_COLUMNS


def _row(entry: TimerEntry, reading: Reading, *, is_globalbox: bool) -> Row:
    row = timer_row(entry, reading)
    rules = reading.view.rules()
    if is_globalbox:
        return Row((*row.cells, *_globalbox(entry, reading)), row.key)
    if rules.market.kind is MarketKind.AUCTION:
        found = entry.auction
        asked, late = (None, None) if found is None else (found.asked_at, found.delay_count or None)
        return Row((*row.cells, *_fees(entry), cells.number(asked), cells.number(late)), row.key)
    return row if rules.market.kind is not MarketKind.LANE else Row((*row.cells, *_fees(entry)), row.key)


def _fees(entry: TimerEntry) -> tuple[Content, Content]:
    if entry.max_fee_per_cycle is None or entry.max_priority_fee_per_cycle is None:
        return (cells.text(entry.fees, kind="dim") if entry.fees else NOTHING), NOTHING
    tone = "warn" if entry.priced_out else "number"
    return cells.text(f"{entry.max_fee_per_cycle:,}", kind=tone), cells.number(entry.max_priority_fee_per_cycle)


def _globalbox(entry: TimerEntry, reading: Reading) -> tuple[Content, Content, Content]:
    found = entry.globalbox
    if found is None:
        return NOTHING, NOTHING, NOTHING
    bid = cells.text(format_bid(found.bid_fp), kind="number")
    return cells.address(found.target, reading.names), bid, cells.number(found.fire_seq or None)


def _filters(query: Query, states: dict[str, str], state: str, *, is_globalbox: bool) -> tuple[Filter, ...]:
    found = [
        Filter("state", "State", state, options=tuple(states.items())),
        Filter("actor", "Actor", query.text("actor"), hint="0x…"),
        Filter("payer", "Payer", query.text("payer"), hint="0x…"),
        Filter("from", "From height", query.text("from"), numeric=True),
        Filter("to", "To height", query.text("to"), numeric=True),
    ]
    if is_globalbox:
        found.insert(2, Filter("target", "Target", query.text("target"), hint="0x…"))
    return tuple(found)


def _empty(live: int, state: str) -> str:
    if live or state != LIVE:
        return "No timer is like this. Choose another state, or leave the other fields empty."
    return "No timer is scheduled. Deploy an actor that schedules timers, or schedule one without:"
