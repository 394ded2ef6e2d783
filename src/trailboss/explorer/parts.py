"""Parts that several pages have: rows of blocks, receipts, events and timers, and the pager of a list."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from trailboss.explorer import cells
from trailboss.explorer.address_labels import Names
from trailboss.explorer.cells import NOTHING
from trailboss.explorer.documents import Column, Content, Pager, Row, Table
from trailboss.explorer.page_context import Reading
from trailboss.explorer.query import PAGE_ROWS, Query
from trailboss.explorer.text import share_words, visible
from trailboss.model.blocks import Block, Origin, ReceiptRecord
from trailboss.model.configs import amount_of
from trailboss.primitives.units import U64_MAX
from trailboss.views.explain.sentences import data_words
from trailboss.views.records import Event, Printed, Receipt, TimerEntry, block_events, receipt_view
from trailboss.views.text import WIDE
from trailboss.views.timer_list import REVERTED

BLOCK_COLUMNS: Final = (
    Column("Block", right=True),
    Column("Transactions", right=True),
    Column("Fires", right=True),
    Column("Events", right=True),
    Column("Cycles", right=True),
    Column("Lane use", right=True),
    Column("Cycle basefee", right=True),
)
EVENT_COLUMNS: Final = (
    Column("Event", bare=True),
    Column("Emitter"),
    Column("Timer"),
    Column("What it says", wide=True, bare=True),
)
BLOCK_EVENT_COLUMNS: Final = (Column("Block", right=True), *EVENT_COLUMNS)
PRINTED_COLUMNS: Final = (
    Column("Block", right=True),
    Column("Actor"),
    Column("Handler"),
    Column("Line", wide=True, bare=True),
)
RECEIPT_COLUMNS: Final = (
    Column("Receipt of", bare=True),
    Column("Actor"),
    Column("Status", bare=True),
    Column("Cycles", right=True),
    Column("Cells", right=True),
    Column("CBY paid", right=True),
    Column("Payer"),
)
TIMER_COLUMNS: Final = (
    Column("Timer", bare=True),
    Column("Height", right=True),
    Column("State", bare=True),
    Column("Actor"),
    Column("Handler"),
    Column("Payer"),
    Column("Gas limit", right=True),
    Column("Expires after", right=True),
)
TONES: Final = {
    "ok": "good", "fired": "good", "live": "", "due": "now", "queued": "now", "in-mailbox": "now", "deferred": "warn",
    "reverted": "bad", "refused": "bad", "unfunded": "bad", "expired": "warn", "cancelled": "",
}  # fmt: skip
"""How a state looks."""
EVENT_TONES: Final = {
    "TimerCancelledInsufficientFunds": "bad",
    "TimerExpired": "warn",
    "timer.deferred": "warn",
    "timer.delayed": "warn",
    "gba.fallback": "warn",
}


def state_badge(state: str, *, reverted: bool = False) -> Content:
    """Return a state in its frame; that of a timer whose fire has reverted says so."""
    shown = REVERTED if reverted else state
    return cells.badge(shown, TONES.get(shown, ""))


def block_row(found: Block, lane_max: int) -> Row:
    """Return a block of a list; what it has nothing of is left faint."""
    header = found.header
    fires = sum(receipt.origin is not Origin.TRANSACTION for receipt in found.receipts)
    counts = (len(found.transactions), fires, sum(1 for _ in block_events(found)))
    told = (
        cells.block(found.height),
        *(cells.number(count or None) for count in counts),
        cells.number(header.cycles_used or None),
        cells.text(share_words(header.timer_cycles_used, lane_max), kind="number") if fires else NOTHING,
        cells.number(amount_of(header.cycle_basefee)),
    )
    return Row(told, str(found.height))


def event_row(event: Event, names: Names, key: str) -> Row:
    """Return an event, without its block."""
    told = (
        cells.said(event.name),
        cells.address(event.emitter, names),
        cells.timer(event.timer_id) if event.timer_id else NOTHING,
        cells.sentence(data_words(event, WIDE), names),
    )
    return Row(told, key, tone=EVENT_TONES.get(event.name, ""))


def block_event_row(event: Event, names: Names, key: str) -> Row:
    """Return an event with its block in front."""
    row = event_row(event, names, key)
    return Row((cells.block(event.block_height), *row.cells), key, tone=row.tone)


def printed_sections(lines: Sequence[Printed], names: Names) -> tuple[Table, ...]:
    """Return what actors have printed, and warnings about them, as a section; none if there is nothing."""
    if not lines:
        return ()
    rows = tuple(
        Row(
            (
                cells.block(line.block_height),
                cells.address(line.actor, names),
                cells.said(line.handler),
                (*(cells.badge("warning", "warn") if line.is_warning else ()), *cells.said(line.text)),
            ),
            str(place),
            tone="warn" if line.is_warning else "",
        )
        for place, line in enumerate(lines)
    )
    return (Table("printed", "Printed", PRINTED_COLUMNS, rows, "", note="kept by this node, in no root"),)


def receipt_row(receipt: Receipt, names: Names, key: str, tx_hash: bytes | None = None) -> Row:
    """Return a receipt; that of a transaction leads to its page, that of a fire to its timer's."""
    if tx_hash is not None:
        origin = (*cells.text("transaction "), *cells.transaction(tx_hash))
    elif receipt.timer_id is not None:
        origin = (*cells.text(f"{receipt.origin} "), *cells.timer(receipt.timer_id))
    else:
        origin = cells.text(receipt.origin)
    status = state_badge(receipt.status)
    if receipt.error is not None:
        status += cells.text(f" E{receipt.error.code}", note=visible(receipt.error.what))
    told = (
        origin,
        NOTHING if receipt.actor is None else cells.address(receipt.actor, names),
        status,
        cells.number(receipt.cycles_used),
        cells.number(receipt.cells_used),
        cells.bare_money(receipt.fee_paid),
        cells.address(receipt.payer, names),
    )
    return Row(told, key, tone="bad" if receipt.error is not None else "")


def timer_row(entry: TimerEntry, reading: Reading, key: str = "") -> Row:
    """Return a timer of a list."""
    names, now = reading.names, reading.height
    state = state_badge(entry.state, reverted=entry.reverted)
    if entry.ended_at is not None:
        state += (*cells.text(" in "), *cells.block(entry.ended_at))
    elif entry.deferred_for or entry.tier:
        state += cells.text(f" {entry.deferred_for or entry.tier}", kind="dim")
    is_watch = entry.globalbox is not None and entry.globalbox.due_height is None
    told = (
        cells.timer(entry.timer_id),
        cells.text("state watch", kind="dim") if is_watch else cells.future(entry.height, now=now),
        state,
        cells.address(entry.actor, names),
        cells.said(entry.handler),
        cells.text("the actor", kind="dim")
        if entry.fee_payer == entry.actor
        else cells.address(entry.fee_payer, names),
        cells.number(entry.gas_limit),
        cells.text("never" if entry.expires_at == U64_MAX else entry.expires_at, kind="number"),
    )
    return Row(told, key or entry.timer_id.hex())


def summary_of(record: ReceiptRecord, height: int) -> Receipt:
    """Return a receipt without its events, of which there may be thousands."""
    return receipt_view(replace(record, events=()), height)


def pager_of(
    query: Query, total: int, *, rows: int = PAGE_ROWS, name: str = "page", first_is_told: bool = False
) -> Pager | None:
    """Return the pager of a list of which so many are shown on a page; None for a list of nothing.

    Args:
        query: What the address asks for.
        total: How many there are.
        rows: Of a page.
        name: Of the parameter that names the page.
        first_is_told: Whether the address names the first page too, as where another one is shown without.
    """
    if not total:
        return None
    last_page = -(-total // rows)
    page = min(query.page(name), last_page)
    first, last = (page - 1) * rows + 1, min(page * rows, total)
    words = f"{first:,} to {last:,} of {total:,}"

    def at(number: int) -> str:
        return query.but(**{name: number if number > 1 or first_is_told else ""})

    return Pager(
        words,
        first=at(1) if page > 1 else "",
        previous=at(page - 1) if page > 1 else "",
        following=at(page + 1) if page < last_page else "",
        last=at(last_page) if page < last_page else "",
    )


def offset_of(query: Query, total: int, *, rows: int = PAGE_ROWS, name: str = "page") -> int:
    """Return how many rows come before the page that is asked for, within a list of so many."""
    return (min(query.page(name), max(1, -(-total // rows))) - 1) * rows


def page_of(items: Sequence[Row], query: Query, *, rows: int = PAGE_ROWS, name: str = "page") -> tuple[Row, ...]:
    """Return the rows of the page that is asked for, of all rows."""
    offset = offset_of(query, len(items), rows=rows, name=name)
    return tuple(items[offset : offset + rows])
