"""The accounts and actors of the chain, in order of address; development accounts first."""

from itertools import islice
from typing import Final

from trailboss.explorer import cells, links
from trailboss.explorer.cells import NOTHING
from trailboss.explorer.documents import Column, Document, Row, Section, Table
from trailboss.explorer.page_context import Reading
from trailboss.explorer.parts import offset_of, pager_of
from trailboss.explorer.query import PAGE_ROWS, Query
from trailboss.primitives.octets import Address
from trailboss.views.accounts import ACTOR, Holder, account_count, holder_of

COLUMNS: Final = (
    Column("Name", bare=True),
    Column("Address", bare=True),
    Column("Kind", bare=True),
    Column("Balance, CBY", right=True),
    Column("Nonce", right=True),
    Column("Live timers", right=True),
)


def accounts(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page. Complexity: O(accounts before the page), none of which is decoded but to be passed over."""
    view, total = reading.view, account_count(reading.view)
    offset = offset_of(query, total)
    found = [
        holder_of(view, Address(address), {}) for address, _ in islice(view.accounts(), offset, offset + PAGE_ROWS)
    ]
    sections: list[Section] = []
    known = [holder_of(view, Address(address), {}) for address in reading.names.accounts()]
    if known and not offset:
        title, note = "Development accounts", "their keys are known to everybody"
        rows = tuple(_row(holder, reading) for holder in known)
        sections.append(Table("known", title, COLUMNS, rows, "", note=note))
    note = "in order of address"
    rows = tuple(_row(holder, reading) for holder in found)
    pager = pager_of(query, total)
    sections.append(
        Table("accounts", "All accounts and actors", COLUMNS, rows, "There is none.", pager=pager, note=note)
    )
    return Document("Accounts", "Accounts", tuple(sections))


def _row(holder: Holder, reading: Reading) -> Row:
    timers, name = NOTHING, reading.names.short(holder.address)
    if holder.timers:
        timers = cells.link(f"{holder.timers:,}", links.query(links.TIMERS, {"actor": holder.address}), kind="number")
    drawn = (
        cells.text(name) if name else NOTHING,
        cells.whole_address(holder.address),
        cells.text("actor" if holder.kind == ACTOR else "account", kind="" if holder.kind == ACTOR else "dim"),
        cells.bare_money(holder.balance),
        cells.number(holder.nonce or None),
        timers,
    )
    return Row(drawn, holder.address.hex())
