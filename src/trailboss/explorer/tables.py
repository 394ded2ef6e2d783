"""Tables that several pages have: blocks, receipts, events, prints, timers, decisions; and the pages of long lists."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from trailboss.explorer import cells, documents
from trailboss.explorer.address_labels import Names
from trailboss.explorer.documents import Content, PageColumn, Pager, PageTable, Row, Section, bare, columns, numbers
from trailboss.explorer.instructions import instruction_line
from trailboss.explorer.links import PAGE_ROWS, Query
from trailboss.explorer.page_context import Reading
from trailboss.explorer.text import share_words, titled, visible
from trailboss.index.records import IndexedReceipt
from trailboss.model import events
from trailboss.model.blocks import Block, Origin, ReceiptRecord
from trailboss.model.configs import amount_of
from trailboss.primitives.octets import Address
from trailboss.views.explain.decision_view import decision_facts
from trailboss.views.explain.sentences import data_words
from trailboss.views.mechanism import base
from trailboss.views.mechanism.base import ValueKind
from trailboss.views.mechanism.registry import views_of
from trailboss.views.records import DecisionView, Event, Printed, Receipt, TimerEntry, block_events, receipt_view
from trailboss.views.text import WIDE
from trailboss.views.timer_list import REVERTED

BLOCK_COLUMNS: Final = numbers("Block", "Transactions", "Fires", "Events", "Cycles", "Budget use", "Cycle basefee")
BLOCK: Final = numbers("Block")
EVENT_COLUMNS: Final = bare("Event") + columns("Emitter", "Timer") + bare("What it says", wide=True)
PRINTED_COLUMNS: Final = BLOCK + columns("Actor", "Handler") + bare("Line", wide=True)
RECEIPT_COLUMNS: Final = (
    bare("Receipt of") + columns("Actor") + bare("Status") + numbers("Cycles", "Cells", "CBY paid") + columns("Payer")
)
HISTORY_COLUMNS: Final = BLOCK + RECEIPT_COLUMNS + bare("What", wide=True)
TIMER_COLUMNS: Final = (
    *(*bare("Timer"), *numbers("Height"), *bare("State")),
    *(*columns("Actor", "Handler", "Payer"), *numbers("Gas limit", "Expires after")),
)
TONES: Final = {
    "ok": "good", "fired": "good", "due": "now", "queued": "now", "in-mailbox": "now", "deferred": "warn",
    "reverted": "bad", "refused": "bad", "unfunded": "bad", "expired": "warn",
}  # fmt: skip
"""How a state looks."""
EVENT_TONES: Final = {
    events.TIMER_UNFUNDED: "bad",
    events.TIMER_EXPIRED: "warn",
    events.TIMER_DEFERRED: "warn",
    events.TIMER_DELAYED: "warn",
    events.AGENT_FALLBACK: "warn",
}
OUTCOME_TONES: Final = {"fired": "good", "expired": "warn", "unfunded": "bad", "waits": "faded"}


def state_badge(state: str, *, reverted: bool = False) -> Content:
    """Return a state as a badge; that of a timer whose fire has reverted says so."""
    shown = REVERTED if reverted else state
    return cells.badge(shown, TONES.get(shown, ""))


def block_row(found: Block, budget: int) -> Row:
    """Return a block of a list, with the timer budget as the measure of its fires."""
    header = found.header
    fires = sum(receipt.origin is not Origin.TRANSACTION for receipt in found.receipts)
    counts = (len(found.transactions), fires, sum(1 for _ in block_events(found)), header.cycles_used)
    use = cells.text(share_words(header.timer_cycles_used, budget), kind="number") if fires else None
    shown = (count or None for count in counts)
    return cells.row(found.height, cells.block(found.height), *shown, use, amount_of(header.cycle_basefee))


def event_row(event: Event, names: Names, key: object, *, with_block: bool = False) -> Row:
    """Return an event, with its block in front if wanted."""
    first = (cells.block(event.block_height),) if with_block else ()
    emitter, what = cells.address(event.emitter, names), cells.sentence(data_words(event, WIDE), names)
    tone = EVENT_TONES.get(event.name, "")
    return cells.row(key, *first, cells.said(event.name), emitter, cells.timer(event.timer_id), what, tone=tone)


def printed_sections(lines: Sequence[Printed], names: Names) -> tuple[PageTable, ...]:
    """Return what actors have printed, and warnings about them, as a section; none if there is nothing."""
    rows = []
    for at, line in enumerate(lines):
        warning, tone = (cells.badge("warning", "warn"), "warn") if line.is_warning else ((), "")
        shown = (cells.block(line.block_height), cells.address(line.actor, names), cells.said(line.handler))
        rows.append(cells.row(at, *shown, (*warning, *cells.said(line.text)), tone=tone))
    note = "kept by this node, in no root"
    return (PageTable("printed", "Printed", PRINTED_COLUMNS, tuple(rows), note=note),) if rows else ()


def receipt_row(receipt: Receipt, names: Names, key: object, tx_hash: bytes | None = None) -> Row:
    """Return a receipt; that of a transaction leads to its page, that of a fire to its timer's."""
    origin = cells.text(receipt.origin)
    if tx_hash is not None:
        origin = cells.line("transaction ", cells.transaction(tx_hash))
    elif receipt.timer_id is not None:
        origin = cells.line(f"{receipt.origin} ", cells.timer(receipt.timer_id))
    status, error = state_badge(receipt.status), receipt.error
    if error is not None:
        status += cells.text(f" E{error.code}", note=visible(error.what))
    actor = None if receipt.actor is None else cells.address(receipt.actor, names)
    paid, payer = cells.bare_money(receipt.fee_paid), cells.address(receipt.payer, names)
    tone = "bad" if error is not None else ""
    return cells.row(key, origin, actor, status, receipt.cycles_used, receipt.cells_used, paid, payer, tone=tone)


def summary_of(record: ReceiptRecord, height: int) -> Receipt:
    """Return a receipt without its events, of which there may be thousands."""
    return receipt_view(replace(record, events=()), height)


def receipts_table(reading: Reading, query: Query, address: Address, title: str) -> PageTable:
    """Return the receipts of an address as sender, payer, target or actor, the newest first."""
    index, upto = reading.node.index, reading.height
    page, total = read_page(query, lambda at, most: index.receipts(address, upto, offset=at, limit=most), "receipts")
    rows = tuple(_history_row(reading, found) for found in page)
    empty = "Nothing yet: no transaction of it, to it or about it, and no fire that it ran or paid for."
    pager = pager_of(query, total, name="receipts")
    return PageTable("receipts", title, HISTORY_COLUMNS, rows, empty, pager=pager)


def _history_row(reading: Reading, found: IndexedReceipt) -> Row:
    block = reading.view.blocks[found.height]
    record, tx_hash, what = block.receipts[found.receipt], None, cells.NOTHING
    if found.origin is Origin.TRANSACTION and found.position is not None:
        tx_hash = record.origin_hash
        what = instruction_line(block.transactions[found.position].instruction, reading.names)
    row = receipt_row(summary_of(record, found.height), reading.names, f"{found.height}.{found.receipt}", tx_hash)
    return replace(row, cells=(cells.block(found.height), *row.cells, what))


def timer_row(entry: TimerEntry, reading: Reading) -> Row:
    """Return a timer of a list."""
    names, state = reading.names, state_badge(entry.state, reverted=entry.reverted)
    if entry.ended_at is not None:
        state += cells.line(" in ", cells.block(entry.ended_at))
    elif entry.deferred_for or entry.tier:
        state += cells.text(f" {entry.deferred_for or entry.tier}", kind="dim")
    own = entry.fee_payer == entry.actor
    return cells.row(
        entry.timer_id.hex(),
        cells.timer(entry.timer_id),
        cells.text("state watch", kind="dim") if entry.is_watch else cells.future(entry.height, now=reading.height),
        state,
        cells.address(entry.actor, names),
        cells.said(entry.handler),
        cells.text("the actor", kind="dim") if own else cells.address(entry.fee_payer, names),
        entry.gas_limit,
        cells.height(entry.expires_at),
    )


def mechanism_columns(found: Iterable[base.Column]) -> tuple[PageColumn, ...]:
    """Return the columns of a mechanism's table."""
    wide = {column.key for column in found if column.least}
    return tuple(
        PageColumn(
            titled(each.title), each.right, each.key in wide, bare=each.key in wide or each.kind is ValueKind.TIMER
        )
        for each in found
    )


def mechanism_cells(kinds: Iterable[base.Column], values: Iterable[base.Value], names: Names) -> tuple[Content, ...]:
    """Return a row of a mechanism's table."""
    return tuple(cells.value(column.kind, value, names) for column, value in zip(kinds, values, strict=True))


def decision_sections(view: DecisionView, reading: Reading, query: Query) -> tuple[Section, ...]:
    """Return how a block chose among its due timers; nothing if no timer was due that could run."""
    found, names, views = (*view.rows, *view.runners_up), reading.names, views_of(view.mechanism)
    if not found and not view.sentences:
        return ()
    title = "How it chose among its due timers"
    facts = cells.facts("decision", title, cells.mechanism_facts(decision_facts(view), names), span=documents.HALF)
    waiting = (
        documents.Notice(f"waiting-{at}", "", cells.text(f"Waiting: {why}.")) for at, why in enumerate(view.sentences)
    )

    def row(at: int) -> Row:
        shown = mechanism_cells(views.decision_columns, views.decision_cells(found[at]), names)
        return Row(shown, str(at), tone=OUTCOME_TONES.get(found[at].outcome, ""))

    table = paged_table("due", "Due timers", mechanism_columns(views.decision_columns), len(found), row, query=query)
    return (facts, *((table,) if found else ()), *waiting)


def pager_of(
    query: Query, total: int, *, rows: int = PAGE_ROWS, name: str = "page", names_first: bool = False
) -> Pager | None:
    """Return the pager of a list of ``total`` rows, whose page the parameter ``name`` selects; None for an empty list.

    With ``names_first`` the address names the first page too.
    """
    if not total:
        return None
    last_page = -(-total // rows)
    page = min(query.page(name), last_page)

    def at(number: int) -> str:
        return query.but(**{name: number if number > 1 or names_first else ""})

    return Pager(
        f"{(page - 1) * rows + 1:,} to {min(page * rows, total):,} of {total:,}",
        first=at(1) if page > 1 else "",
        previous=at(page - 1) if page > 1 else "",
        following=at(page + 1) if page < last_page else "",
        last=at(last_page) if page < last_page else "",
    )


def offset_of(query: Query, total: int, *, rows: int = PAGE_ROWS, name: str = "page") -> int:
    """Return how many rows of a list come before the page that is asked for, or before its last page."""
    return (min(query.page(name), max(1, -(-total // rows))) - 1) * rows


def read_page(query: Query, read: Callable[[int, int], Any], name: str = "page") -> tuple[Sequence[Any], int]:
    """Return the items of a list's page, or of its last, and how many it has; ``read`` takes an offset and a most."""
    found = read((query.page(name) - 1) * PAGE_ROWS, PAGE_ROWS)
    if found.total and not found.items:
        found = read(offset_of(query, found.total, name=name), PAGE_ROWS)
    return found.items, found.total


def paged_table(
    key: str,
    title: str,
    columns: tuple[PageColumn, ...],
    total: int,
    row: Callable[[int], Row],
    *,
    query: Query,
    rows: int = PAGE_ROWS,
    name: str = "",
    empty: str = "",
) -> PageTable:
    """Return a page of a list, which the parameter ``name`` selects, else the key; a short list has no pager."""
    name = name or key
    offset = offset_of(query, total, rows=rows, name=name)
    shown = tuple(row(at) for at in range(offset, min(offset + rows, total)))
    pager = pager_of(query, total, rows=rows, name=name) if total > rows else None
    return PageTable(key, title, columns, shown, empty, pager=pager)
