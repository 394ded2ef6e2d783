"""The list of blocks, the latest first."""

from trailboss.explorer.documents import Document, Filter, Pager, Table
from trailboss.explorer.page_context import Reading
from trailboss.explorer.parts import BLOCK_COLUMNS, block_row
from trailboss.explorer.query import PAGE_ROWS, Query
from trailboss.views.text import counted


def blocks(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page: it goes by heights, so that a page of old blocks stays the same as new ones come."""
    top = min(query.number("top", reading.height), reading.height)
    first = max(0, top + 1 - PAGE_ROWS)
    lane_max = reading.view.rules().timer_cycles_max()
    rows = tuple(block_row(block, lane_max) for block in reversed(reading.view.blocks[first : top + 1]))
    pager = Pager(
        f"blocks {first} to {top} of {reading.height}",
        first=query.but(top="") if top < reading.height else "",
        previous=_newer(reading, query, top),
        following=query.but(top=first - 1) if first else "",
        last=query.but(top=min(PAGE_ROWS - 1, reading.height)) if first else "",
    )
    filters = (Filter("top", "From block down", query.text("top"), hint=str(reading.height), numeric=True),)
    note = f"{counted(reading.height + 1, 'block')} with genesis"
    table = Table(
        "blocks",
        "Blocks",
        BLOCK_COLUMNS,
        rows,
        "There is no block yet.",
        pager=pager,
        filters=filters,
        note=note,
        scrolls=True,
    )
    return Document("Blocks", "Blocks", (table,))


def _newer(reading: Reading, query: Query, top: int) -> str:
    if top >= reading.height:
        return ""
    return query.but(top=top + PAGE_ROWS if top + PAGE_ROWS < reading.height else "")
