"""Transactions: one with what came of it and why, and those that wait in the mempool."""

from typing import Final

from trailboss.explorer import cells, links, tables
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import (
    HALF,
    Column,
    Content,
    Document,
    Facts,
    Notice,
    Row,
    Section,
    Stat,
    Stats,
    Table,
    numbers,
)
from trailboss.explorer.failures import error_sections, missing_document
from trailboss.explorer.instructions import instruction_facts, instruction_line, payload
from trailboss.explorer.links import PAGE_ROWS, Query, parse_id
from trailboss.explorer.page_context import Reading
from trailboss.explorer.text import blocks_words
from trailboss.index.answers.transactions import find_transaction, receipt_of
from trailboss.mempool.records import Pooled
from trailboss.model.transactions import Transaction
from trailboss.primitives.octets import Hash32
from trailboss.views.records import Receipt
from trailboss.views.text import time_words

MEMPOOL_COLUMNS: Final = (
    Column("Transaction", bare=True),
    Column("From"),
    *numbers("Nonce"),
    Column("Instruction", wide=True, bare=True),
    *numbers("Max fee", "Tip"),
    Column("Came in"),
)
NOTHING_WAITS: Final = (
    "No transaction waits. What POST /submit takes is listed here until a block includes it; with automatic "
    "blocks that is at once."
)


def mempool(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the transactions that wait for a block, in the order in which they came."""
    pool = reading.node.mempool
    found = pool.statistics()
    total = found.transactions
    rows = tuple(
        cells.row(
            each.hash.hex(),
            cells.transaction(each.hash),
            cells.address(each.transaction.sender, reading.names),
            each.transaction.nonce,
            instruction_line(each.transaction.instruction, reading.names),
            each.transaction.max_fee_per_cycle,
            each.transaction.max_priority_fee_per_cycle,
            blocks_words(each.admitted_height - reading.height),
        )
        for each in pool.page(tables.offset_of(query, total), PAGE_ROWS)
    )
    counts = {"Waiting": total, "Could run now": found.executable, "Senders": found.senders, "Bytes": found.bytes}
    stats = Stats("stats", "", tuple(Stat(label, cells.line(count)) for label, count in counts.items()))
    title, pager = "Transactions that wait", tables.pager_of(query, total)
    table = Table("transactions", title, MEMPOOL_COLUMNS, rows, NOTHING_WAITS, pager=pager)
    return Document("Mempool", "Mempool", (stats, table))


def transaction(reading: Reading, query: Query, subject: str) -> Document:
    """Return the page of a transaction by its hash: in a block, in the mempool, or refused lately."""
    tx_hash = Hash32(parse_id(subject, (Hash32.WIDTH,)))
    # A transaction that leaves the mempool meanwhile is in a later block than this view's: the mempool is read first.
    waiting, refusal = reading.node.mempool.find(tx_hash), reading.node.mempool.refusal(tx_hash)
    found = find_transaction(reading.view, reading.node.index, tx_hash)
    sections: tuple[Section, ...]
    if found is not None:
        block, place = found
        receipt = receipt_of(block, place)
        sections = _included(reading, query, block.transactions[place.position], receipt, place.position)
        state = tables.state_badge(receipt.status)
    elif waiting is not None:
        sections, state = _waiting(reading, waiting), cells.badge("waits", "now")
    elif refusal is not None:
        more = cells.line("Those that wait are in the ", cells.link("mempool", links.MEMPOOL), ".")
        sections = (*error_sections(refusal.error(), reading, None), Notice("more", "", more))
        state = tables.state_badge("refused")
    else:
        what = f"Neither a block nor the mempool of this node holds the transaction {tx_hash}"
        return missing_document(what, "It may have been refused long ago, or belong to another chain.")
    title = f"Transaction {str(tx_hash)[:10]}"
    return Document(title, "Transaction", sections, subject=(*cells.root(tx_hash), *state))


def _included(
    reading: Reading, query: Query, sent: Transaction, receipt: Receipt, position: int
) -> tuple[Section, ...]:
    height, names = receipt.block_height, reading.names
    rows: dict[str, Words] = {
        "Status": tables.state_badge(receipt.status),
        "Block": cells.line(cells.block(height), f" at position {position}, {blocks_words(height - reading.height)}"),
        "Time": time_words(reading.view.blocks[height].header.timestamp_ms),
        "From": cells.address(sent.sender, names),
        "Actor": cells.address(receipt.actor, names) if receipt.actor else None,
        "Cycles used": f"{receipt.cycles_used:,} of {sent.cycles_limit:,}",
        "Cells used": f"{receipt.cells_used:,} of {sent.cells_limit:,}",
        "Fee": _fee(receipt),
        "Returned": payload(receipt.return_value),
    }
    facts = cells.facts("receipt", "Receipt", rows, span=HALF)
    failure = () if receipt.error is None else tuple(error_sections(receipt.error, reading, receipt.actor))
    printed = tables.printed_sections(receipt.printed, names)

    def row(at: int) -> Row:
        return tables.event_row(receipt.events[at], names, at)

    total, empty = len(receipt.events), "It emitted no event."
    events = tables.paged_table("events", "Events", tables.EVENT_COLUMNS, total, row, query=query, empty=empty)
    return (*failure[:1], facts, _instruction(reading, sent), *failure[1:], *printed, events)


def _fee(receipt: Receipt) -> Content:
    paid, burned = cells.money(receipt.fee_paid), cells.money(receipt.fee_burned)
    tip, refund = cells.money(receipt.tip), cells.money(receipt.refund)
    return cells.line(paid, ": ", burned, " burned, ", tip, " tip; ", refund, " of what was reserved returned")


def _instruction(reading: Reading, sent: Transaction) -> Facts:
    offers = (
        f"up to {sent.max_fee_per_cycle:,} a cycle with a tip of {sent.max_priority_fee_per_cycle:,}, up to "
        f"{sent.max_fee_per_cell:,} a cell with a tip of {sent.max_priority_fee_per_cell:,}"
    )
    rows: dict[str, Words] = {
        **instruction_facts(sent.instruction, reading.names),
        "Nonce": sent.nonce,
        "Limits": f"{sent.cycles_limit:,} cycles, {sent.cells_limit:,} cells",
        "Offers": offers,
        "Chain id": sent.chain_id,
    }
    return cells.facts("instruction", "What it asks for", rows, span=HALF)


def _waiting(reading: Reading, pooled: Pooled) -> tuple[Section, ...]:
    sent = pooled.transaction
    expected = reading.node.mempool.next_nonce(reading.view, sent.sender)
    account = reading.view.account(sent.sender)
    present = 0 if account is None else account.nonce
    why = "It is the next of its sender and is included as soon as a block has room at its price."
    if sent.nonce > present:
        why = (
            f"Its nonce is {sent.nonce:,} and the sender's next is {present:,}: it waits for those before it. The "
            f"first free nonce is {expected:,}."
        )
    rows: dict[str, Words] = {
        "From": cells.address(sent.sender, reading.names),
        "Came in": cells.line("after block ", cells.block(pooled.admitted_height)),
        "Costs at most": cells.money(pooled.cost),
        "Bytes": len(pooled.raw),
    }
    notice = Notice("waits", "It waits in the mempool", cells.text(why), tone="warn")
    return notice, cells.facts("waiting", "Where it waits", rows, span=HALF), _instruction(reading, sent)
