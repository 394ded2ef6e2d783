"""One actor: its money and how long it lasts, its timers, its storage, its code, and what it ran."""

from typing import Final

from trailboss.explorer import cells, links
from trailboss.explorer.documents import (
    FULL,
    HALF,
    Cell,
    Code,
    Column,
    Document,
    Fact,
    Facts,
    Notice,
    Pager,
    Row,
    Section,
    Table,
)
from trailboss.explorer.error_trace import source_lines
from trailboss.explorer.failures import missing_document
from trailboss.explorer.instructions import payload
from trailboss.explorer.page_context import Reading, Redirect
from trailboss.explorer.parts import TIMER_COLUMNS, timer_row
from trailboss.explorer.payer_runway import purse_facts, purse_sections
from trailboss.explorer.query import Query, parse_id
from trailboss.explorer.receipts import receipts_table
from trailboss.explorer.spend_chart import spend_chart
from trailboss.index.answers.timers import timer_page
from trailboss.model.markets import MarketKind
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.accounts import ActorView, actor_view, source_of, storage_page
from trailboss.views.timer_list import TimerFilter

TIMERS_SHOWN: Final = 10
SLOTS_SHOWN: Final = 8
LINES_MAX: Final = 3_000
"""Lines of source that a page shows."""
STORAGE_COLUMNS: Final = (Column("Slot"), Column("Value", wide=True), Column("Bytes", right=True))


def actor(reading: Reading, query: Query, subject: str) -> Document | Redirect:
    """Return the page of an actor; an account without code has a page of its own."""
    address = Address(parse_id(subject, (Address.WIDTH,)))
    found = actor_view(reading.view, address)
    if found is None:
        if reading.view.account(address) is not None:
            return Redirect(links.query(links.account(address), query.parameters))
        return missing_document(f"There is no actor at {address}", "It may be deployed in a later block.")
    runway = reading.runway(address)
    spend = tuple(spend_chart(reading, address))
    sections: tuple[Section, ...] = (
        _facts(reading, found),
        Facts("purse", "Its purse", purse_facts(runway), span=HALF),
        *purse_sections(runway, reading),
        _timers(reading, address),
        *spend,
        _storage(reading, query, address, span=HALF if spend else FULL),
        receipts_table(reading, query, address, "Transactions and fires"),
        _code(reading, found),
    )
    label = reading.names.label(address)
    title = f"{label or 'Actor'} {str(address)[:10]}"
    return Document(title, "Actor", sections, subject=cells.address(address, reading.names, whole=True))


def _facts(reading: Reading, found: ActorView) -> Facts:
    rows = [
        Fact("Owner", cells.address(found.owner, reading.names)),
        Fact("Live timers", cells.link(f"{found.timers:,}", links.query(links.TIMERS, {"actor": found.address}))),
        Fact("Scheduled so far", cells.number(found.schedules)),
        Fact("Code hash", cells.short_root(found.code_hash)),
    ]
    if found.agent is not None:
        rows.append(Fact("Gas bidding agent", cells.address(found.agent, reading.names)))
    if reading.view.rules().market.kind is MarketKind.LANE:
        rows.append(Fact("Fires in the window", cells.number(found.recent_fires)))
    if found.mailbox_count:
        rows.append(Fact("In the mailbox for it", cells.number(found.mailbox_count)))
    return Facts("facts", "What it is", tuple(rows), span=HALF)


def _timers(reading: Reading, address: Address) -> Table:
    page = timer_page(reading.view, reading.node.index, TimerFilter(actor=address), 0, TIMERS_SHOWN)
    rows = tuple(timer_row(entry, reading) for entry in page.timers)
    more = Cell(f"All {page.total_count:,} live", href=links.query(links.TIMERS, {"actor": address}))
    ended = links.query(links.TIMERS, {"actor": address, "state": "all"})
    empty = "It has no live timer: nothing of it will run by itself. Look at those that ended for why."
    if not rows:
        more = Cell("Those that ended", href=ended)
    return Table("timers", "Next timers", TIMER_COLUMNS, rows, empty, more=more)


def _storage(reading: Reading, query: Query, address: Address, *, span: str) -> Table:
    """Return a page of its slots: a page begins where the one before it ended."""
    text = query.text("slot")
    cursor = Hash32(parse_id(text, (Hash32.WIDTH,))) if text else None
    page = storage_page(reading.view, address, SLOTS_SHOWN, cursor)
    rows = tuple(
        Row((cells.octets(name), payload(value), cells.number(len(value))), name.hex())
        for name, value in page.storage.items()
    )
    following = query.but(slot=f"0x{page.next_cursor.hex()}") if page.next_cursor is not None else ""
    pager = None
    if text or following:
        words = f"{len(rows)} slots, in the order of their hashed names"
        pager = Pager(words, first=query.but(slot="") if text else "", following=following)
    return Table("storage", "Storage", STORAGE_COLUMNS, rows, "It has stored nothing.", pager=pager, span=span)


def _code(reading: Reading, found: ActorView) -> Section:
    source = source_of(reading.view, found.code_hash)
    if source is None:
        return Notice("code", "Its code is not in the state")
    lines = source_lines(source)
    note = f"{len(lines):,} lines, {len(source):,} bytes"
    if len(lines) > LINES_MAX:
        note += f"; the first {LINES_MAX:,} are shown"
    copied = source.decode("utf-8", errors="replace")
    return Code("code", "Code", tuple(lines[:LINES_MAX]), note=note, copy=copied)
