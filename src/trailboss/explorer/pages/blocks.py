"""Blocks and what is in them: the lists of blocks and events, and one block."""

from typing import Final

from trailboss.explorer import cells, links, tables
from trailboss.explorer.documents import (
    FULL,
    HALF,
    Column,
    Content,
    Document,
    Facts,
    Filter,
    Notice,
    Pager,
    Row,
    Section,
    Table,
    numbers,
)
from trailboss.explorer.failures import missing_document
from trailboss.explorer.instructions import instruction_line
from trailboss.explorer.links import PAGE_ROWS, Query, parse_id
from trailboss.explorer.page_context import Reading
from trailboss.index import EventFilter, read_events
from trailboss.index.answers.blocks import header_view, transaction_receipts
from trailboss.model.blocks import Block, Origin
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.explain.decision_view import decision_view
from trailboss.views.records import block_events, block_prints, event_view
from trailboss.views.text import counted, time_words

TRANSACTION_COLUMNS: Final = (
    Column("Transaction", bare=True),
    Column("From"),
    *numbers("Nonce"),
    Column("Instruction", wide=True, bare=True),
    Column("Status", bare=True),
)


def blocks(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the list of blocks: it goes by heights, so that a page of old blocks stays the same as new ones come."""
    height = reading.height
    top = min(query.number("top", height), height)
    first, above = max(0, top + 1 - PAGE_ROWS), top + PAGE_ROWS
    budget = reading.view.rules().timer_cycles_max()
    rows = tuple(tables.block_row(found, budget) for found in reversed(reading.view.blocks[first : top + 1]))
    pager = Pager(
        f"blocks {first} to {top} of {height}",
        first=query.but(top="") if top < height else "",
        previous=query.but(top=above if above < height else "") if top < height else "",
        following=query.but(top=first - 1) if first else "",
        last=query.but(top=min(PAGE_ROWS - 1, height)) if first else "",
    )
    filters = (Filter("top", "From block down", query.text("top"), hint=str(height), numeric=True),)
    note = f"{counted(height + 1, 'block')} with genesis"
    table = Table("blocks", "Blocks", tables.BLOCK_COLUMNS, rows, pager=pager, filters=filters, note=note, scrolls=True)
    return Document("Blocks", "Blocks", (table,))


def events(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the list of events, the latest first, by name, by address and from a block on."""
    index, upto = reading.node.index, reading.height
    name, address, since = query.text("name"), query.address("address"), query.number("since", 0)
    wanted = EventFilter(name=name or None, address=address, since=since)
    page, total = tables.read_page(query, lambda at, most: index.events(wanted, upto, at, most, newest_first=True))
    rows = tuple(
        tables.event_row(event, reading.names, f"{place.height}.{place.index}", with_block=True)
        for place, event in zip(page, read_events(reading.view.blocks, page), strict=True)
    )
    filters = (
        Filter("name", "Name", name, hint="timer.fired"),
        Filter("address", "Emitted by, or about", query.text("address"), hint="0x…"),
        Filter("since", "Since block", query.text("since"), numeric=True),
    )
    empty, pager = "No event matches. Leave the fields empty for all events.", tables.pager_of(query, total)
    table = Table("events", "Events", (*tables.BLOCK, *tables.EVENT_COLUMNS), rows, empty, pager=pager, filters=filters)
    return Document("Events", "Events", (table,))


def block(reading: Reading, query: Query, subject: str) -> Document:
    """Return the page of a block, by height or by hash."""
    height = _height_of(reading, subject)
    if height is None:
        return missing_document(f"No block of this chain has the hash {subject}")
    if height > reading.height:
        what = f"There is no block {height} yet: the chain is at height {reading.height}"
        return missing_document(what, "It will be here when the chain reaches this height.")
    found = reading.view.blocks[height]
    decision: tuple[Section, ...] = ()
    if found.decisions is not None:
        decision = tables.decision_sections(decision_view(found.decisions, height), reading, query)
    sections: tuple[Section, ...] = (
        _facts(reading, found, span=HALF if decision else FULL),
        *decision,
        _transactions(reading, query, found),
        _receipts(reading, query, found),
        *tables.printed_sections(block_prints(found), reading.names),
        _events(reading, query, found),
    )
    shown = tuple(each for each in sections if not isinstance(each, Table) or each.rows)
    if len(shown) == 1:
        idle = cells.text("No transaction, no due timer and no event: only its height and its time have changed.")
        shown += (Notice("idle", "Nothing happened in this block", idle),)
    title, about = f"Block {height}", (*cells.root(found.hash), *_around(reading, height))
    return Document(title, title, shown, subject=about)


def _height_of(reading: Reading, subject: str) -> int | None:
    digits = subject.replace(",", "")
    if digits.isascii() and digits.isdecimal() and len(digits) <= len(str(U64_MAX)):
        return int(digits)
    return reading.node.index.block_height(Hash32(parse_id(subject, (Hash32.WIDTH,))), reading.view.blocks)


def _around(reading: Reading, height: int) -> Content:
    before = cells.link("← Previous", links.block(height - 1)) if height else ()
    return before + (cells.link("Next →", links.block(height + 1)) if height < reading.height else ())


def _facts(reading: Reading, found: Block, *, span: str) -> Facts:
    header, names = header_view(found), reading.names
    used = f"{header.cycles_used:,} cycles, {header.timer_cycles_used:,} of them by fires; {header.cells_used:,} cells"
    rows = {
        "Time": time_words(header.timestamp_ms),
        "Used": used,
        "Basefees": f"{header.cycle_basefee:,} a cycle, {header.cell_basefee:,} a cell",
        "Proposer": cells.address(header.proposer, names),
        "State root": cells.short_root(header.state_root),
        "Receipts root": cells.short_root(header.receipts_root),
        "Transactions root": cells.short_root(header.transactions_root) if found.transactions else None,
        "Parent": cells.block_hash(header.parent) if found.height else None,
    }
    return cells.facts("header", "Header", rows, span=span)


def _transactions(reading: Reading, query: Query, found: Block) -> Table:
    receipts = transaction_receipts(found)

    def row(at: int) -> Row:
        sent, receipt = found.transactions[at], receipts[at]
        sender, what = cells.address(sent.sender, reading.names), instruction_line(sent.instruction, reading.names)
        name, status = cells.transaction(receipt.origin_hash), tables.state_badge(receipt.status.value)
        tone = "bad" if receipt.error is not None else ""
        return cells.row(receipt.origin_hash.hex(), name, sender, sent.nonce, what, status, tone=tone)

    return tables.paged_table("transactions", "Transactions", TRANSACTION_COLUMNS, len(receipts), row, query=query)


def _receipts(reading: Reading, query: Query, found: Block) -> Table:
    """Return fires and messages, whose receipts have no page of their own."""
    others = [receipt for receipt in found.receipts if receipt.origin is not Origin.TRANSACTION]

    def row(at: int) -> Row:
        return tables.receipt_row(tables.summary_of(others[at], found.height), reading.names, at)

    return tables.paged_table("receipts", "Fires and messages", tables.RECEIPT_COLUMNS, len(others), row, query=query)


def _events(reading: Reading, query: Query, found: Block) -> Table:
    records = list(block_events(found))

    def row(at: int) -> Row:
        return tables.event_row(event_view(records[at], found.height), reading.names, at)

    return tables.paged_table("events", "Events", tables.EVENT_COLUMNS, len(records), row, query=query)
