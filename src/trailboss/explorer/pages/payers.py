"""Payers: who runs dry and when, and whose timers ended because their payer could not pay."""

from itertools import islice
from typing import Final

from trailboss.explorer import cells, tables
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import Column, Content, Document, Pager, Row, Section, Table, numbers
from trailboss.explorer.links import Query
from trailboss.explorer.page_context import Reading
from trailboss.explorer.payer_runway import LATER_BLOCKS, alert_tone, payer_alerts
from trailboss.explorer.text import blocks_words
from trailboss.index import EventFilter, read_events
from trailboss.model.events import TIMER_UNFUNDED
from trailboss.primitives.octets import Address
from trailboss.views.forecast.runway import Runway

PAYERS_SHOWN: Final = 20
ENDS_SHOWN: Final = 20
UPCOMING: Final = 200
"""Next timers whose payers are examined."""
COLUMNS: Final = (
    Column("Payer", bare=True),
    *numbers("Balance, CBY", "Spent on fires, CBY", "Live timers", "Fires left", "Dry in block", "Basefees doubled"),
)
END_COLUMNS: Final = (
    *tables.BLOCK,
    Column("Timer", bare=True),
    Column("Payer"),
    Column("Actor"),
    *numbers("Needed, CBY", "Found, CBY"),
)


def payers(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page: alerts first, then those who pay most, then the timers that ended unfunded."""
    index, upto = reading.node.index, reading.height
    offset = (query.page() - 1) * PAYERS_SHOWN
    spenders = {each.payer: each.fees for each in index.payers(upto, offset, PAYERS_SHOWN + 1)}
    shown = list(spenders)[:PAYERS_SHOWN]
    if not offset:
        shown += [payer for payer in upcoming_payers(reading) if payer not in spenders][:PAYERS_SHOWN]
    runways = {payer: reading.runway(payer) for payer in shown}
    rows = tuple(_row(runways[payer], spenders.get(payer, 0), reading) for payer in shown)
    empty = "No account pays for a timer yet. The actor pays for a fire, unless it names the sender who schedules it."
    note = "those who have spent most on fires, and those whose timers come next"
    pager = _pager(query, offset, len(shown), more=len(spenders) > PAYERS_SHOWN)
    table = Table("payers", "Payers", COLUMNS, rows, empty, pager=pager, note=note)
    sections: tuple[Section, ...] = (*payer_alerts(list(runways.values()), reading), table, _ends(reading, query))
    return Document("Payers", "Payers", sections)


def upcoming_payers(reading: Reading) -> list[Address]:
    """Return who pays for the timers that are due or come next. Complexity: O(``UPCOMING``)."""
    timers = islice(reading.view.timers(), UPCOMING)
    return list(dict.fromkeys(Address(timer.fee_payer) for timer in timers))


def _row(runway: Runway, spent: int, reading: Reading) -> Row:
    tone = alert_tone(runway)
    left: tuple[Words, ...] = (None, None, None)
    if runway.timers:
        present, doubled = runway.reaches[:2]
        dry = _dry(present.dry_at, reading, tone if tone == "bad" else "")
        left = (present.fires, dry, _dry(doubled.dry_at, reading, ""))
    payer, balance = cells.address(runway.payer, reading.names), cells.bare_money(runway.balance)
    timers = cells.text(f"{'over ' if runway.has_more else ''}{runway.timers:,}", kind="number")
    fees = cells.bare_money(spent) if spent else None
    return cells.row(runway.payer.hex(), payer, balance, fees, timers, *left, tone=tone)


def _dry(dry_at: int | None, reading: Reading, tone: str) -> Content:
    if dry_at is None:
        return cells.text("never", kind="dim")
    ahead = dry_at - reading.height
    near = cells.text(f"{blocks_words(ahead)}, ", kind=tone or "dim") if ahead <= LATER_BLOCKS else ()
    return near + cells.text(dry_at, kind=f"number {tone}".rstrip())


def _pager(query: Query, offset: int, count: int, *, more: bool) -> Pager | None:
    """Return the pager of a list whose length is not known."""
    if not offset and not more:
        return None
    page = offset // PAYERS_SHOWN + 1
    return Pager(
        f"{offset + 1:,} to {offset + count:,}",
        first=query.but(page="") if page > 1 else "",
        previous=query.but(page=page - 1) if page > 1 else "",
        following=query.but(page=page + 1) if more else "",
    )


def _ends(reading: Reading, query: Query) -> Table:
    """Return the timers that were removed because their payer could not pay, the latest first."""
    index, upto, wanted = reading.node.index, reading.height, EventFilter(name=TIMER_UNFUNDED)
    total = index.events(wanted, upto, 0, 1).total
    offset = tables.offset_of(query, total, rows=ENDS_SHOWN, name="ends")
    places = index.events(wanted, upto, offset, ENDS_SHOWN, newest_first=True).items
    rows = tuple(
        cells.row(
            f"{event.block_height}.{offset + at}",
            cells.block(event.block_height),
            cells.timer(event.timer_id),
            cells.address(event.data["fee_payer"], reading.names),
            _owner(reading, event.timer_id),
            cells.bare_money(event.data["required"]),
            cells.bare_money(event.data["available"]),
        )
        for at, event in enumerate(read_events(reading.view.blocks, places))
    )
    empty = "No timer has ended because its payer could not pay."
    pager = tables.pager_of(query, total, rows=ENDS_SHOWN, name="ends") if total > ENDS_SHOWN else None
    return Table("ends", "Timers that ended unfunded", END_COLUMNS, rows, empty, pager=pager)


def _owner(reading: Reading, timer_id: bytes | None) -> Words:
    found = None if timer_id is None else reading.node.index.timer(timer_id, reading.height)
    return None if found is None else cells.address(found.actor, reading.names)
