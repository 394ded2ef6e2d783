"""One block: its header, what it holds, and how it chose among its due timers."""

from trailboss.explorer import cells, links
from trailboss.explorer.decision_table import decision_sections
from trailboss.explorer.documents import (
    FULL,
    HALF,
    Column,
    Content,
    Document,
    Fact,
    Facts,
    Notice,
    Row,
    Section,
    Table,
)
from trailboss.explorer.failures import missing_document
from trailboss.explorer.instructions import instruction_line
from trailboss.explorer.page_context import Reading
from trailboss.explorer.parts import (
    EVENT_COLUMNS,
    RECEIPT_COLUMNS,
    event_row,
    offset_of,
    pager_of,
    printed_sections,
    receipt_row,
    state_badge,
    summary_of,
)
from trailboss.explorer.query import PAGE_ROWS, Query, parse_id
from trailboss.index.answers.blocks import header_view, transaction_receipts
from trailboss.model.blocks import Block, Origin
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.explain.decision_view import decision_view
from trailboss.views.records import block_events, block_prints, event_view
from trailboss.views.text import time_words

TRANSACTION_COLUMNS = (
    Column("Transaction", bare=True),
    Column("From"),
    Column("Nonce", right=True),
    Column("Instruction", wide=True, bare=True),
    Column("Status", bare=True),
)


def block(reading: Reading, query: Query, subject: str) -> Document:
    """Return the page of a block, by height or by hash."""
    height = _height_of(reading, subject)
    if height is None:
        return missing_document(f"No block of this chain has the hash {subject}")
    if height > reading.height:
        what = f"There is no block {height} yet: the chain is at height {reading.height}"
        return missing_document(what, "It will be here when the chain has got there.")
    found = reading.view.blocks[height]
    decision = (
        () if found.decisions is None else decision_sections(decision_view(found.decisions, height), reading, query)
    )
    sections: tuple[Section, ...] = (
        _facts(reading, found, span=HALF if decision else FULL),
        *decision,
        _transactions(reading, query, found),
        _receipts(reading, query, found),
        *printed_sections(block_prints(found), reading.names),
        _events(reading, query, found),
    )
    shown = tuple(each for each in sections if not isinstance(each, Table) or each.rows)
    if len(shown) == 1:
        idle = cells.text("No transaction, no due timer and no event: only its height and its time have changed.")
        shown += (Notice("idle", "Nothing happened in this block", content=idle),)
    return Document(
        f"Block {height}", f"Block {height}", shown, subject=(*cells.root(found.hash), *_around(reading, height))
    )


def _height_of(reading: Reading, subject: str) -> int | None:
    digits = subject.replace(",", "")
    if digits.isascii() and digits.isdecimal() and len(digits) <= len(str(U64_MAX)):
        return int(digits)
    block_hash = Hash32(parse_id(subject, (Hash32.WIDTH,)))
    return reading.node.index.block_height(block_hash, reading.view.blocks)


def _around(reading: Reading, height: int) -> Content:
    before = cells.link("← Previous", links.block(height - 1)) if height else ()
    after = cells.link("Next →", links.block(height + 1)) if height < reading.height else ()
    return (*before, *after)


def _facts(reading: Reading, found: Block, *, span: str) -> Facts:
    header, names = header_view(found), reading.names
    used = f"{header.cycles_used:,} cycles, {header.timer_cycles_used:,} of them by fires; {header.cells_used:,} cells"
    rows = [
        Fact("Time", cells.text(time_words(header.timestamp_ms))),
        Fact("Used", cells.text(used)),
        Fact("Basefees", cells.text(f"{header.cycle_basefee:,} a cycle, {header.cell_basefee:,} a cell")),
        Fact("Proposer", cells.address(header.proposer, names)),
        Fact("State root", cells.short_root(header.state_root)),
        Fact("Receipts root", cells.short_root(header.receipts_root)),
    ]
    if found.transactions:
        rows.append(Fact("Transactions root", cells.short_root(header.transactions_root)))
    if found.height:
        rows.append(Fact("Parent", cells.block_hash(header.parent)))
    return Facts("header", "Header", tuple(rows), span=span)


def _transactions(reading: Reading, query: Query, found: Block) -> Table:
    total = len(found.transactions)
    offset = offset_of(query, total, name="transactions")
    receipts = transaction_receipts(found)[offset : offset + PAGE_ROWS]
    pairs = zip(found.transactions[offset : offset + PAGE_ROWS], receipts, strict=True)
    rows = tuple(
        Row(
            (
                cells.transaction(receipt.origin_hash),
                cells.address(transaction.sender, reading.names),
                cells.number(transaction.nonce),
                instruction_line(transaction.instruction, reading.names),
                state_badge(receipt.status.value),
            ),
            receipt.origin_hash.hex(),
            tone="bad" if receipt.error is not None else "",
        )
        for transaction, receipt in pairs
    )
    pager = pager_of(query, total, name="transactions") if total > PAGE_ROWS else None
    return Table("transactions", "Transactions", TRANSACTION_COLUMNS, rows, "", pager=pager)


def _receipts(reading: Reading, query: Query, found: Block) -> Table:
    """Return what ran besides transactions: fires and messages, whose receipts have no page of their own."""
    others = [receipt for receipt in found.receipts if receipt.origin is not Origin.TRANSACTION]
    offset = offset_of(query, len(others), name="receipts")
    views = [summary_of(receipt, found.height) for receipt in others[offset : offset + PAGE_ROWS]]
    rows = tuple(receipt_row(view, reading.names, str(offset + at)) for at, view in enumerate(views))
    pager = pager_of(query, len(others), name="receipts") if len(others) > PAGE_ROWS else None
    return Table("receipts", "Fires and messages", RECEIPT_COLUMNS, rows, "", pager=pager)


def _events(reading: Reading, query: Query, found: Block) -> Table:
    records = list(block_events(found))
    offset = offset_of(query, len(records), name="events")
    views = [event_view(record, found.height) for record in records[offset : offset + PAGE_ROWS]]
    rows = tuple(event_row(view, reading.names, str(offset + at)) for at, view in enumerate(views))
    pager = pager_of(query, len(records), name="events") if len(records) > PAGE_ROWS else None
    return Table("events", "Events", EVENT_COLUMNS, rows, "", pager=pager)
