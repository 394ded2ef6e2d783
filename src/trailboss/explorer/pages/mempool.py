"""The mempool: the transactions that wait for a block."""

from typing import Final

from trailboss.explorer import cells
from trailboss.explorer.documents import Column, Document, Row, Stat, Stats, Table
from trailboss.explorer.instructions import instruction_line
from trailboss.explorer.page_context import Reading
from trailboss.explorer.parts import offset_of, pager_of
from trailboss.explorer.query import PAGE_ROWS, Query
from trailboss.explorer.text import blocks_words

COLUMNS: Final = (
    Column("Transaction", bare=True),
    Column("From"),
    Column("Nonce", right=True),
    Column("Instruction", wide=True, bare=True),
    Column("Max fee", right=True),
    Column("Tip", right=True),
    Column("Came in"),
)
EMPTY: Final = (
    "No transaction waits. What is sent to POST /submit stands here until a block takes it; with automatic blocks that "
    "is at once."
)


def mempool(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page, in the order in which the transactions came."""
    pool = reading.node.mempool
    found = pool.statistics()
    total = found.transactions
    waiting = pool.page(offset_of(query, total), PAGE_ROWS)
    rows = tuple(
        Row(
            (
                cells.transaction(each.hash),
                cells.address(each.transaction.sender, reading.names),
                cells.number(each.transaction.nonce),
                instruction_line(each.transaction.instruction, reading.names),
                cells.number(each.transaction.max_fee_per_cycle),
                cells.number(each.transaction.max_priority_fee_per_cycle),
                cells.text(blocks_words(each.admitted_height - reading.height)),
            ),
            each.hash.hex(),
        )
        for each in waiting
    )
    stats = Stats(
        "stats",
        "",
        (
            Stat("Waiting", cells.number(total)),
            Stat("Could run now", cells.number(found.executable)),
            Stat("Senders", cells.number(found.senders)),
            Stat("Bytes", cells.number(found.bytes)),
        ),
    )
    table = Table("transactions", "Transactions that wait", COLUMNS, rows, EMPTY, pager=pager_of(query, total))
    return Document("Mempool", "Mempool", (stats, table))
