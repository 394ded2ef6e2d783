"""Blocks and what is in them: the lists of blocks, events and waiting transactions, one block, one transaction."""

from typing import Final

from trailboss.chain.history import JOINED_FIX
from trailboss.explorer import cells, links, tables
from trailboss.explorer import documents as parts
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import FULL, HALF, bare, columns, numbers
from trailboss.explorer.failures import error_sections, missing_document
from trailboss.explorer.instructions import instruction_facts, instruction_line, payload
from trailboss.explorer.links import PAGE_ROWS, Query, parse_id
from trailboss.explorer.page_context import Reading
from trailboss.explorer.text import blocks_words
from trailboss.index import EventFilter, read_events
from trailboss.index.answers.blocks import header_view, transaction_receipts
from trailboss.index.answers.transactions import find_transaction, receipt_of
from trailboss.mempool.records import Pooled
from trailboss.model.blocks import Block, Origin
from trailboss.model.transactions import Transaction, transaction_hash
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.explain.decision_view import decision_view
from trailboss.views.records import Receipt, block_events, block_prints, event_view
from trailboss.views.text import counted, time_words

SENT_COLUMNS: Final = bare("Transaction") + columns("From") + numbers("Nonce") + bare("Instruction", wide=True)
TRANSACTION_COLUMNS: Final = SENT_COLUMNS + bare("Status")
MEMPOOL_COLUMNS: Final = SENT_COLUMNS + numbers("Max fee", "Tip") + columns("Came in")
NOTHING_WAITS: Final = (
    "No transaction waits. What POST /submit takes is listed here until a block includes it; with automatic "
    "blocks that is at once."
)


def blocks(reading: Reading, query: Query, _subject: str) -> parts.Document:
    """Return the list of blocks: it goes by heights, so that a page of old blocks stays the same as new ones come."""
    height = reading.height
    top = min(query.number("top", height), height)
    base = reading.view.blocks.base
    first, above = max(base, top + 1 - PAGE_ROWS), top + PAGE_ROWS
    budget = reading.view.rules().timer_cycles_max()
    rows = tuple(tables.block_row(found, budget) for found in reversed(reading.view.blocks[first : top + 1]))
    pager = parts.Pager(
        f"blocks {first} to {top} of {height}",
        first=query.but(top="") if top < height else "",
        previous=query.but(top=above if above < height else "") if top < height else "",
        following=query.but(top=first - 1) if first > base else "",
        last=query.but(top=min(base + PAGE_ROWS - 1, height)) if first > base else "",
    )
    filters = (parts.Filter("top", "From block down", query.text("top"), hint=str(height), numeric=True),)
    note = f"{counted(height + 1, 'block')} with genesis"
    if base:
        note = f"{counted(height + 1 - base, 'block')} from block {base} on, at which this node joined the network"
    table = parts.PageTable(
        "blocks", "Blocks", tables.BLOCK_COLUMNS, rows, pager=pager, filters=filters, note=note, scrolls=True
    )
    return parts.Document("Blocks", "Blocks", (table,))


def events(reading: Reading, query: Query, _subject: str) -> parts.Document:
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
        parts.Filter("name", "Name", name, hint="timer.fired"),
        parts.Filter("address", "Emitted by, or about", query.text("address"), hint="0x…"),
        parts.Filter("since", "Since block", query.text("since"), numeric=True),
    )
    empty, pager = "No event matches. Leave the fields empty for all events.", tables.pager_of(query, total)
    heads = tables.BLOCK + tables.EVENT_COLUMNS
    table = parts.PageTable("events", "Events", heads, rows, empty, pager=pager, filters=filters)
    return parts.Document("Events", "Events", (table,))


def block(reading: Reading, query: Query, subject: str) -> parts.Document:
    """Return the page of a block, by height or by hash."""
    height = _height_of(reading, subject)
    if height is None:
        return missing_document(f"No block of this chain has the hash {subject}")
    if height > reading.height:
        what = f"There is no block {height} yet: the chain is at height {reading.height}"
        return missing_document(what, "It will be here when the chain reaches this height.")
    base = reading.view.blocks.base
    if height < base:
        what = f"Block {height} is not here: this node joined the network at block {base} and has none below it"
        return missing_document(what, f"{JOINED_FIX.capitalize()}.")
    found = reading.view.blocks[height]
    decision: tuple[parts.Section, ...] = ()
    if found.decisions is not None:
        decision = tables.decision_sections(decision_view(found.decisions, height), reading, query)
    sections: tuple[parts.Section, ...] = (
        _facts(reading, found, span=HALF if decision else FULL),
        *decision,
        _transactions(reading, query, found),
        _receipts(reading, query, found),
        *tables.printed_sections(block_prints(found), reading.names),
        _events(reading, query, found),
    )
    shown = tuple(each for each in sections if not isinstance(each, parts.PageTable) or each.rows)
    if found.is_header_only:
        joined = cells.text(f"This node joined the network at this block. To see what it holds, {JOINED_FIX}.")
        shown += (parts.Notice("joined", "Only the header of this block is here", joined),)
    elif len(shown) == 1:
        idle = cells.text("No transaction, no due timer and no event: only its height and its time have changed.")
        shown += (parts.Notice("idle", "Nothing happened in this block", idle),)
    before = cells.link("← Previous", links.block(height - 1)) if height > base else ()
    after = cells.link("Next →", links.block(height + 1)) if height < reading.height else ()
    title = f"Block {height}"
    return parts.Document(title, title, shown, subject=(*cells.root(found.hash), *before, *after))


def _height_of(reading: Reading, subject: str) -> int | None:
    digits = subject.replace(",", "")
    if digits.isascii() and digits.isdecimal() and len(digits) <= len(str(U64_MAX)):
        return int(digits)
    return reading.node.index.block_height(Hash32(parse_id(subject, (Hash32.WIDTH,))), reading.view.blocks)


def _facts(reading: Reading, found: Block, *, span: str) -> parts.Facts:
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
        "Trace": cells.link("Frames and host calls", links.trace(found.height)) if found.receipts else None,
    }
    return cells.facts("header", "Header", rows, span=span)


def _transactions(reading: Reading, query: Query, found: Block) -> parts.PageTable:
    receipts = transaction_receipts(found)

    def row(at: int) -> parts.Row:
        sent, receipt = found.transactions[at], receipts[at]
        sender, what = cells.address(sent.sender, reading.names), instruction_line(sent.instruction, reading.names)
        name, status = cells.transaction(receipt.origin_hash), tables.state_badge(receipt.status.value)
        tone = "bad" if receipt.error is not None else ""
        return cells.row(receipt.origin_hash.hex(), name, sender, sent.nonce, what, status, tone=tone)

    return tables.paged_table("transactions", "Transactions", TRANSACTION_COLUMNS, len(receipts), row, query=query)


def _receipts(reading: Reading, query: Query, found: Block) -> parts.PageTable:
    """Return fires and messages, whose receipts have no page of their own."""
    others = [receipt for receipt in found.receipts if receipt.origin is not Origin.TRANSACTION]

    def row(at: int) -> parts.Row:
        return tables.receipt_row(tables.summary_of(others[at], found.height), reading.names, at)

    return tables.paged_table("receipts", "Fires and messages", tables.RECEIPT_COLUMNS, len(others), row, query=query)


def _events(reading: Reading, query: Query, found: Block) -> parts.PageTable:
    records = list(block_events(found))

    def row(at: int) -> parts.Row:
        return tables.event_row(event_view(records[at], found.height), reading.names, at)

    return tables.paged_table("events", "Events", tables.EVENT_COLUMNS, len(records), row, query=query)


def mempool(reading: Reading, query: Query, _subject: str) -> parts.Document:
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
    stats = parts.Stats("stats", "", tuple(cells.stat(label, count) for label, count in counts.items()))
    title, pager = "Transactions that wait", tables.pager_of(query, total)
    table = parts.PageTable("transactions", title, MEMPOOL_COLUMNS, rows, NOTHING_WAITS, pager=pager)
    return parts.Document("Mempool", "Mempool", (stats, table))


def transaction(reading: Reading, query: Query, subject: str) -> parts.Document:
    """Return the page of a transaction by its hash: in a block, in the mempool, or refused lately."""
    tx_hash = Hash32(parse_id(subject, (Hash32.WIDTH,)))
    # A transaction that leaves the mempool meanwhile is in a later block than this view's: the mempool is read first.
    waiting, refusal = reading.node.mempool.find(tx_hash), reading.node.mempool.refusal(tx_hash)
    found = find_transaction(reading.view, reading.node.index, tx_hash)
    sections: tuple[parts.Section, ...]
    if found is not None:
        block, place = found
        receipt = receipt_of(block, place)
        sections = _included(reading, query, block.transactions[place.position], receipt, place.position)
        state = tables.state_badge(receipt.status)
    elif waiting is not None:
        sections, state = _waiting(reading, waiting), cells.badge("waits", "now")
    elif refusal is not None:
        more = cells.line("Those that wait are in the ", cells.link("mempool", links.MEMPOOL), ".")
        sections = (*error_sections(refusal.error(), reading, None), parts.Notice("more", "", more))
        state = tables.state_badge("refused")
    else:
        what = f"Neither a block nor the mempool of this node holds the transaction {tx_hash}"
        return missing_document(what, "It may have been refused long ago, or belong to another chain.")
    title = f"Transaction {str(tx_hash)[:10]}"
    return parts.Document(title, "Transaction", sections, subject=(*cells.root(tx_hash), *state))


def _included(
    reading: Reading, query: Query, sent: Transaction, receipt: Receipt, position: int
) -> tuple[parts.Section, ...]:
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
        "Trace": cells.link("Frames and host calls", links.trace(transaction_hash(sent))),
        "Returned": payload(receipt.return_value),
    }
    facts = cells.facts("receipt", "Receipt", rows, span=HALF)
    failure = () if receipt.error is None else tuple(error_sections(receipt.error, reading, receipt.actor))
    printed = tables.printed_sections(receipt.printed, names)

    def row(at: int) -> parts.Row:
        return tables.event_row(receipt.events[at], names, at)

    total, empty = len(receipt.events), "It emitted no event."
    events = tables.paged_table("events", "Events", tables.EVENT_COLUMNS, total, row, query=query, empty=empty)
    return (*failure[:1], facts, _instruction(reading, sent), *failure[1:], *printed, events)


def _fee(receipt: Receipt) -> parts.Content:
    paid, burned = cells.money(receipt.fee_paid), cells.money(receipt.fee_burned)
    tip, refund = cells.money(receipt.tip), cells.money(receipt.refund)
    return cells.line(paid, ": ", burned, " burned, ", tip, " tip; ", refund, " of what was reserved returned")


def _instruction(reading: Reading, sent: Transaction) -> parts.Facts:
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


def _waiting(reading: Reading, pooled: Pooled) -> tuple[parts.Section, ...]:
    sent = pooled.transaction
    expected, account = reading.node.mempool.next_nonce(reading.view, sent.sender), reading.view.account(sent.sender)
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
    notice = parts.Notice("waits", "It waits in the mempool", cells.text(why), tone="warn")
    return notice, cells.facts("waiting", "Where it waits", rows, span=HALF), _instruction(reading, sent)
