"""What an address has sent, run and paid for: a page of its receipts, the newest first."""

from trailboss.explorer import cells
from trailboss.explorer.documents import Column, Row, Table
from trailboss.explorer.instructions import instruction_line
from trailboss.explorer.page_context import Reading
from trailboss.explorer.parts import RECEIPT_COLUMNS, offset_of, pager_of, receipt_row, summary_of
from trailboss.explorer.query import PAGE_ROWS, Query
from trailboss.index.records import IndexedReceipt
from trailboss.model.blocks import Origin
from trailboss.primitives.octets import Address

COLUMNS = (Column("Block", right=True), *RECEIPT_COLUMNS, Column("What", wide=True, bare=True))


def receipts_table(reading: Reading, query: Query, address: Address, title: str) -> Table:
    """Return the receipts of an address as sender, payer, target or actor."""
    index, upto = reading.node.index, reading.height
    offset = (query.page("receipts") - 1) * PAGE_ROWS
    page = index.receipts(address, upto, offset=offset, limit=PAGE_ROWS)
    if not page.items and page.total:
        page = index.receipts(address, upto, offset=offset_of(query, page.total, name="receipts"), limit=PAGE_ROWS)
    rows = tuple(_row(reading, found) for found in page.items)
    empty = "Nothing yet: no transaction of it, to it or about it, and no fire that it ran or paid for."
    pager = pager_of(query, page.total, name="receipts")
    return Table("receipts", title, COLUMNS, rows, empty, pager=pager)


def _row(reading: Reading, found: IndexedReceipt) -> Row:
    block = reading.view.blocks[found.height]
    record = block.receipts[found.receipt]
    is_transaction = found.origin is Origin.TRANSACTION and found.position is not None
    key = f"{found.height}.{found.receipt}"
    tx_hash = record.origin_hash if is_transaction else None
    row = receipt_row(summary_of(record, found.height), reading.names, key, tx_hash)
    what = cells.NOTHING
    if found.position is not None and is_transaction:
        what = instruction_line(block.transactions[found.position].instruction, reading.names)
    return Row((cells.block(found.height), *row.cells, what), key, tone=row.tone)
