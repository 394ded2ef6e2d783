"""One transaction: what it asks for, what came of it and why, or where it waits."""

from typing import Final

from trailboss.explorer import cells, links
from trailboss.explorer.documents import HALF, Content, Document, Fact, Facts, Notice, Section, Table
from trailboss.explorer.error_trace import error_sections
from trailboss.explorer.failures import missing_document
from trailboss.explorer.instructions import instruction_facts, payload
from trailboss.explorer.page_context import Reading
from trailboss.explorer.parts import EVENT_COLUMNS, event_row, offset_of, pager_of, printed_sections, state_badge
from trailboss.explorer.query import PAGE_ROWS, Query, parse_id
from trailboss.explorer.text import blocks_words
from trailboss.index.answers.transactions import find_transaction, receipt_of
from trailboss.mempool.records import Pooled
from trailboss.model.transactions import Transaction
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Hash32
from trailboss.views.records import Receipt
from trailboss.views.text import time_words

NO_EVENTS: Final = "It emitted no event."


def transaction(reading: Reading, query: Query, subject: str) -> Document:
    """Return the page of a transaction by its hash: in a block, in the mempool, or refused lately."""
    tx_hash = Hash32(parse_id(subject, (Hash32.WIDTH,)))
    # What leaves the mempool meanwhile is in a later block than this view's: it is asked first.
    waiting, refusal = reading.node.mempool.find(tx_hash), reading.node.mempool.refusal(tx_hash)
    found = find_transaction(reading.view, reading.node.index, tx_hash)
    if found is not None:
        block, place = found
        receipt = receipt_of(block, place)
        sent = block.transactions[place.position]
        sections = _included(reading, query, sent, receipt, place.position)
        return _document(tx_hash, sections, state_badge(receipt.status))
    if waiting is not None:
        return _document(tx_hash, _waiting(reading, waiting), cells.badge("waits", "now"))
    if refusal is not None:
        return _document(tx_hash, _refused(reading, refusal), state_badge("refused"))
    what = f"No block and no mempool of this node holds the transaction {tx_hash}"
    return missing_document(what, "It may have been refused long ago, or belong to another chain.")


def _document(tx_hash: Hash32, sections: tuple[Section, ...], state: Content) -> Document:
    title = f"Transaction {str(tx_hash)[:10]}"
    return Document(title, "Transaction", sections, subject=(*cells.root(tx_hash), *state))


def _included(
    reading: Reading, query: Query, sent: Transaction, receipt: Receipt, position: int
) -> tuple[Section, ...]:
    height = receipt.block_height
    where = (*cells.block(height), *cells.text(f" at position {position}, {blocks_words(height - reading.height)}"))
    timestamp = reading.view.blocks[height].header.timestamp_ms
    facts = Facts(
        "receipt",
        "Receipt",
        (
            Fact("Status", state_badge(receipt.status)),
            Fact("Block", where),
            Fact("Time", cells.text(time_words(timestamp))),
            Fact("From", cells.address(sent.sender, reading.names)),
            *((Fact("Actor", cells.address(receipt.actor, reading.names)),) if receipt.actor else ()),
            Fact("Cycles used", cells.text(f"{receipt.cycles_used:,} of {sent.cycles_limit:,}")),
            Fact("Cells used", cells.text(f"{receipt.cells_used:,} of {sent.cells_limit:,}")),
            Fact("Fee", _fee(receipt)),
            Fact("Returned", payload(receipt.return_value)),
        ),
        span=HALF,
    )
    failure = () if receipt.error is None else tuple(error_sections(receipt.error, reading, receipt.actor))
    printed = printed_sections(receipt.printed, reading.names)
    return (*failure[:1], facts, _instruction(reading, sent), *failure[1:], *printed, _events(reading, query, receipt))


def _fee(receipt: Receipt) -> Content:
    return (
        *cells.money(receipt.fee_paid),
        *cells.text(": "),
        *cells.money(receipt.fee_burned),
        *cells.text(" burned, "),
        *cells.money(receipt.tip),
        *cells.text(" tip; "),
        *cells.money(receipt.refund),
        *cells.text(" of what was reserved returned"),
    )


def _instruction(reading: Reading, sent: Transaction) -> Facts:
    rows = [*instruction_facts(sent.instruction, reading.names), *_terms(sent)]
    return Facts("instruction", "What it asks for", tuple(rows), span=HALF)


def _terms(sent: Transaction) -> tuple[Fact, ...]:
    fees = (
        f"up to {sent.max_fee_per_cycle:,} a cycle with a tip of {sent.max_priority_fee_per_cycle:,}, up to "
        f"{sent.max_fee_per_cell:,} a cell with a tip of {sent.max_priority_fee_per_cell:,}"
    )
    return (
        Fact("Nonce", cells.number(sent.nonce)),
        Fact("Limits", cells.text(f"{sent.cycles_limit:,} cycles, {sent.cells_limit:,} cells")),
        Fact("Offers", cells.text(fees)),
        Fact("Chain id", cells.number(sent.chain_id)),
    )


def _events(reading: Reading, query: Query, receipt: Receipt) -> Table:
    total = len(receipt.events)
    offset = offset_of(query, total, name="events")
    shown = receipt.events[offset : offset + PAGE_ROWS]
    rows = tuple(event_row(event, reading.names, str(offset + at)) for at, event in enumerate(shown))
    pager = pager_of(query, total, name="events") if total > PAGE_ROWS else None
    return Table("events", "Events", EVENT_COLUMNS, rows, NO_EVENTS, pager=pager)


def _waiting(reading: Reading, pooled: Pooled) -> tuple[Section, ...]:
    sent = pooled.transaction
    expected = reading.node.mempool.next_nonce(reading.view, sent.sender)
    account = reading.view.account(sent.sender)
    present = 0 if account is None else account.nonce
    why = "It is next in line of its sender and goes into a block as soon as there is room at its price."
    if sent.nonce > present:
        why = (
            f"Its nonce is {sent.nonce:,} and the sender's next is {present:,}: it waits for those before it. The "
            f"first nonce that is not taken is {expected:,}."
        )
    rows = (
        Fact("From", cells.address(sent.sender, reading.names)),
        Fact("Came in", (*cells.text("after block "), *cells.block(pooled.admitted_height))),
        Fact("Costs at most", cells.money(pooled.cost)),
        Fact("Bytes", cells.number(len(pooled.raw))),
    )
    notice = Notice("waits", "It waits in the mempool", content=cells.text(why), tone="warn")
    return notice, Facts("waiting", "Where it waits", rows, span=HALF), _instruction(reading, sent)


def _refused(reading: Reading, refusal: Rejection) -> tuple[Section, ...]:
    more = (*cells.text("What waits stands in the "), *cells.link("mempool", links.MEMPOOL), *cells.text("."))
    return (*error_sections(refusal.error(), reading, None), Notice("more", "", content=more))
