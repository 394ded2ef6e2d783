"""Payers: whose purse runs dry and when, and whose timers ended because nobody could pay."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from trailboss.explorer import cells
from trailboss.explorer.cells import NOTHING
from trailboss.explorer.documents import Column, Content, Document, Notice, Pager, Row, Section, Table
from trailboss.explorer.page_context import Reading
from trailboss.explorer.parts import offset_of, pager_of
from trailboss.explorer.payer_runway import LATER_BLOCKS, alert_notice, alert_tone, present_reach
from trailboss.explorer.query import Query
from trailboss.explorer.text import blocks_words
from trailboss.index import EventFilter, read_events
from trailboss.model.events import TIMER_UNFUNDED
from trailboss.primitives.octets import Address
from trailboss.views.forecast.runway import Runway

PAYERS_SHOWN: Final = 20
ENDS_SHOWN: Final = 20
ALERTS_SHOWN: Final = 5
UPCOMING: Final = 200
"""Timers that come next, whose payers are looked at."""
COLUMNS: Final = (
    Column("Payer", bare=True),
    Column("Balance, CBY", right=True),
    Column("Spent on fires, CBY", right=True),
    Column("Live timers", right=True),
    Column("Fires left", right=True),
    Column("Dry in block", right=True),
    Column("Basefees doubled", right=True),
)
END_COLUMNS: Final = (
    Column("Block", right=True),
    Column("Timer", bare=True),
    Column("Payer"),
    Column("Actor"),
    Column("Needed, CBY", right=True),
    Column("Found, CBY", right=True),
)


def payers(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page: alerts first, then those who pay most, then the timers that ended unfunded."""
    index, upto = reading.node.index, reading.height
    offset = (query.page() - 1) * PAYERS_SHOWN
    spenders = {each.payer: each.fees for each in index.payers(upto, offset, PAYERS_SHOWN + 1)}
    more = len(spenders) > PAYERS_SHOWN
    shown = list(spenders)[:PAYERS_SHOWN]
    if not offset:
        shown += [payer for payer in upcoming_payers(reading) if payer not in spenders][:PAYERS_SHOWN]
    runways = {payer: reading.runway(payer) for payer in shown}
    table = Table(
        "payers",
        "Payers",
        COLUMNS,
        tuple(_row(runways[payer], spenders.get(payer, 0), reading) for payer in shown),
        "Nobody pays for a timer yet. The payer of a fire is its actor, unless it names the sender who schedules it.",
        pager=_pager(query, offset, len(shown), more=more),
        note="those who have spent most on fires, and those whose timers come next",
    )
    sections: tuple[Section, ...] = (*payer_alerts(list(runways.values()), reading), table, _ends(reading, query))
    return Document("Payers", "Payers", sections)


def payer_alerts(runways: Sequence[Runway], reading: Reading) -> tuple[Notice, ...]:
    """Return the purses that run dry soon, the most pressing first."""
    pressing = [(present_reach(runway).dry_at or 0, runway) for runway in runways if alert_tone(runway)]
    pressing.sort(key=lambda item: item[0])
    return tuple(
        alert_notice(runway, reading.names, f"alert-{runway.payer.hex()}") for _, runway in pressing[:ALERTS_SHOWN]
    )


def upcoming_payers(reading: Reading) -> list[Address]:
    """Return who pays for the timers that are due or come next. Complexity: O(``UPCOMING``)."""
    timers = islice(reading.view.timers(), UPCOMING)
    return list(dict.fromkeys(Address(timer.fee_payer) for timer in timers))


def _row(runway: Runway, spent: int, reading: Reading) -> Row:
    present, doubled = runway.reaches[0], runway.reaches[1]
    tone = alert_tone(runway)
    drawn = (
        cells.address(runway.payer, reading.names),
        cells.bare_money(runway.balance),
        cells.bare_money(spent) if spent else NOTHING,
        cells.text(f"{'over ' if runway.has_more else ''}{runway.timers:,}", kind="number"),
        cells.number(present.fires) if runway.timers else NOTHING,
        _dry(present.dry_at, reading, tone if tone == "bad" else "") if runway.timers else NOTHING,
        _dry(doubled.dry_at, reading, "") if runway.timers else NOTHING,
    )
    return Row(drawn, runway.payer.hex(), tone=tone)


def _dry(dry_at: int | None, reading: Reading, tone: str) -> Content:
    if dry_at is None:
        return cells.text("never", kind="dim")
    ahead = dry_at - reading.height
    near = cells.text(f"{blocks_words(ahead)}, ", kind=tone or "dim") if ahead <= LATER_BLOCKS else ()
    return (*near, *cells.text(dry_at, kind=f"number {tone}".rstrip()))


def _pager(query: Query, offset: int, count: int, *, more: bool) -> Pager | None:
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
    offset = offset_of(query, total, rows=ENDS_SHOWN, name="ends")
    places = index.events(wanted, upto, offset, ENDS_SHOWN, newest_first=True).items
    rows = tuple(
        Row(
            (
                cells.block(event.block_height),
                cells.timer(event.timer_id) if event.timer_id else NOTHING,
                cells.address(event.data["fee_payer"], reading.names),
                _owner(reading, event.timer_id),
                cells.bare_money(event.data["required"]),
                cells.bare_money(event.data["available"]),
            ),
            f"{event.block_height}.{offset + at}",
        )
        for at, event in enumerate(read_events(reading.view.blocks, places))
    )
    empty = "No timer has ended because its payer could not pay."
    pager = pager_of(query, total, rows=ENDS_SHOWN, name="ends") if total > ENDS_SHOWN else None
    return Table("ends", "Timers that ended unfunded", END_COLUMNS, rows, empty, pager=pager)


def _owner(reading: Reading, timer_id: bytes | None) -> Content:
    found = None if timer_id is None else reading.node.index.timer(timer_id, reading.height)
    return NOTHING if found is None else cells.address(found.actor, reading.names)
