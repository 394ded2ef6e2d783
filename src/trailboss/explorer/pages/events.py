"""The events of the chain, the latest first, by name, by address and from a block on."""

from typing import Final

from trailboss.explorer.documents import Document, Filter, Table
from trailboss.explorer.page_context import Reading
from trailboss.explorer.parts import BLOCK_EVENT_COLUMNS, block_event_row, offset_of, pager_of
from trailboss.explorer.query import PAGE_ROWS, Query
from trailboss.index import EventFilter, read_events

EMPTY: Final = "No event is like this. Leave the fields empty for all events."


def events(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page."""
    index, upto = reading.node.index, reading.height
    wanted = EventFilter(
        name=query.text("name") or None, address=query.address("address"), since=query.number("since", 0)
    )
    offset = (query.page() - 1) * PAGE_ROWS
    page = index.events(wanted, upto, offset, PAGE_ROWS, newest_first=True)
    if page.total and not page.items:
        page = index.events(wanted, upto, offset_of(query, page.total), PAGE_ROWS, newest_first=True)
    found = zip(page.items, read_events(reading.view.blocks, page.items), strict=True)
    rows = tuple(block_event_row(event, reading.names, f"{place.height}.{place.index}") for place, event in found)
    filters = (
        Filter("name", "Name", query.text("name"), hint="timer.fired"),
        Filter("address", "Emitted by, or about", query.text("address"), hint="0x…"),
        Filter("since", "Since block", query.text("since"), numeric=True),
    )
    table = Table(
        "events", "Events", BLOCK_EVENT_COLUMNS, rows, EMPTY, pager=pager_of(query, page.total), filters=filters
    )
    return Document("Events", "Events", (table,))
