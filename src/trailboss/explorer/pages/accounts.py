"""Accounts and actors: the list of all, one account, and one actor with its storage and code."""

from itertools import islice
from typing import Final

from trailboss.explorer import cells, links, tables
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import (
    FULL,
    HALF,
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Notice,
    Pager,
    Row,
    Section,
    Table,
    numbers,
)
from trailboss.explorer.failures import missing_document, node_url, source_lines
from trailboss.explorer.instructions import payload
from trailboss.explorer.links import PAGE_ROWS, Query, parse_id
from trailboss.explorer.page_context import Reading, Redirect
from trailboss.explorer.payer_runway import runway_facts, runway_sections, spend_chart
from trailboss.index.answers.timers import timer_page
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.accounts import (
    ACTOR,
    NO_ACCOUNT,
    ActorView,
    Holder,
    account_count,
    actor_view,
    holder_of,
    source_of,
    storage_page,
)
from trailboss.views.text import counted
from trailboss.views.timer_list import TimerFilter

TIMERS_SHOWN: Final = 10
SLOTS_SHOWN: Final = 8
LINES_MAX: Final = 3_000
"""Lines of source that a page shows."""
COLUMNS: Final = (
    Column("Name", bare=True),
    Column("Address", bare=True),
    Column("Kind", bare=True),
    *numbers("Balance, CBY", "Nonce", "Live timers"),
)
STORAGE_COLUMNS: Final = (Column("Slot"), Column("Value", wide=True), *numbers("Bytes"))


def accounts(reading: Reading, query: Query, _subject: str) -> Document:
    """Return all accounts and actors, in order of address; development accounts first.

    Complexity: O(accounts before the page).
    """
    view, total = reading.view, account_count(reading.view)
    offset = tables.offset_of(query, total)
    known = [] if offset else reading.names.accounts()
    listed = [address for address, _ in islice(view.accounts(), offset, offset + PAGE_ROWS)]
    rows, more = (
        tuple(_row(holder_of(view, Address(address), {}), reading) for address in some) for some in (known, listed)
    )
    note, pager = "in order of address", tables.pager_of(query, total)
    table = Table("accounts", "All accounts and actors", COLUMNS, more, "There is none.", pager=pager, note=note)
    first = Table("known", "Development accounts", COLUMNS, rows, note="their keys are public")
    return Document("Accounts", "Accounts", (first, table) if rows else (table,))


def _row(holder: Holder, reading: Reading) -> Row:
    name, timers = reading.names.short(holder.address) or None, None
    if holder.timers:
        timers = cells.link(f"{holder.timers:,}", links.query(links.TIMERS, {"actor": holder.address}), kind="number")
    kind = "actor" if holder.kind == ACTOR else cells.text("account", kind="dim")
    where, balance = cells.whole_address(holder.address), cells.bare_money(holder.balance)
    return cells.row(holder.address.hex(), name, where, kind, balance, holder.nonce or None, timers)


def account(reading: Reading, query: Query, subject: str) -> Document | Redirect:
    """Return the page of an account; an actor has a page of its own."""
    address = Address(parse_id(subject, (Address.WIDTH,)))
    holder = holder_of(reading.view, address, {})
    if holder.kind == ACTOR:
        return Redirect(links.query(links.actor(address), query.parameters))
    waiting = reading.node.mempool.of_sender(holder.address)
    pending = cells.link(counted(len(waiting), "transaction"), links.MEMPOOL) if waiting else None
    rows: dict[str, Words] = {"Balance": cells.money(holder.balance), "Nonce": holder.nonce, "In the mempool": pending}
    sections: list[Section] = [cells.facts("facts", "What it holds", rows, span=HALF)]
    if holder.kind == NO_ACCOUNT:
        fund = f"It has never received anything. To fund it: trailboss faucet {address} --url {node_url(reading)}"
        sections.insert(0, Notice("empty", "The chain has no such account", cells.text(fund), tone="warn"))
    runway = reading.runway(address)
    if runway.timers or runway.actors:
        facts = cells.facts("purse", "Its balance for timers", runway_facts(runway), span=HALF)
        sections += [facts, *runway_sections(runway, reading)]
    paid = _timers(reading, TimerFilter(payer=address), "Next timers that it pays for")
    sections += [*((paid,) if paid.rows else ()), *spend_chart(reading, address, FULL)]
    sections.append(tables.receipts_table(reading, query, address, "Transactions"))
    about = cells.address(address, reading.names, whole=True)
    return Document(f"Account {str(address)[:10]}", "Account", tuple(sections), subject=about)


def actor(reading: Reading, query: Query, subject: str) -> Document | Redirect:
    """Return the page of an actor; an account without code has a page of its own."""
    address = Address(parse_id(subject, (Address.WIDTH,)))
    found = actor_view(reading.view, address)
    if found is None:
        if reading.view.account(address) is not None:
            return Redirect(links.query(links.account(address), query.parameters))
        return missing_document(f"There is no actor at {address}", "It may be deployed in a later block.")
    runway, spend = reading.runway(address), tuple(spend_chart(reading, address))
    sections: tuple[Section, ...] = (
        _actor_facts(reading, found),
        cells.facts("purse", "Its balance for timers", runway_facts(runway), span=HALF),
        *runway_sections(runway, reading),
        _timers(reading, TimerFilter(actor=address), "Next timers"),
        *spend,
        _storage(reading, query, address, span=HALF if spend else FULL),
        tables.receipts_table(reading, query, address, "Transactions and fires"),
        _code(reading, found),
    )
    title = f"{reading.names.label(address) or 'Actor'} {str(address)[:10]}"
    return Document(title, "Actor", sections, subject=cells.address(address, reading.names, whole=True))


def _actor_facts(reading: Reading, found: ActorView) -> Facts:
    rows: dict[str, Words] = {
        "Owner": cells.address(found.owner, reading.names),
        "Live timers": cells.link(f"{found.timers:,}", links.query(links.TIMERS, {"actor": found.address})),
        "Scheduled so far": found.schedules,
        "Code hash": cells.short_root(found.code_hash),
        "Gas bidding agent": None if found.agent is None else cells.address(found.agent, reading.names),
        "Fires in the window": found.recent_fires or None,
        "In the mailbox for it": found.mailbox_count or None,
    }
    return cells.facts("facts", "What it is", rows, span=HALF)


def _timers(reading: Reading, wanted: TimerFilter, title: str) -> Table:
    page = timer_page(reading.view, reading.node.index, wanted, 0, TIMERS_SHOWN)
    rows = tuple(tables.timer_row(entry, reading) for entry in page.timers)
    chosen = {"actor": wanted.actor, "payer": wanted.payer}
    more = Cell(f"All {page.total_count:,} live", href=links.query(links.TIMERS, chosen))
    if not rows:
        more = Cell("Those that ended", href=links.query(links.TIMERS, {**chosen, "state": "all"}))
    empty = "It has no live timer, so nothing of it runs by itself. Those that ended may show why."
    return Table("timers", title, tables.TIMER_COLUMNS, rows, empty, more=more)


def _storage(reading: Reading, query: Query, address: Address, *, span: str) -> Table:
    """Return a page of its slots: a page begins where the one before it ended."""
    text = query.text("slot")
    cursor = Hash32(parse_id(text, (Hash32.WIDTH,))) if text else None
    page = storage_page(reading.view, address, SLOTS_SHOWN, cursor)
    rows = tuple(
        cells.row(name.hex(), cells.octets(name), payload(value), len(value)) for name, value in page.storage.items()
    )
    following = query.but(slot=f"0x{page.next_cursor.hex()}") if page.next_cursor is not None else ""
    pager = None
    if text or following:
        words = f"{len(rows)} slots, in the order of their hashed names"
        pager = Pager(words, first=query.but(slot="") if text else "", following=following)
    return Table("storage", "Storage", STORAGE_COLUMNS, rows, "It has stored nothing.", pager=pager, span=span)


def _code(reading: Reading, found: ActorView) -> Section:
    source = source_of(reading.view, found.code_hash)
    if source is None:
        return Notice("code", "Its code is not in the state")
    lines = source_lines(source)
    note = f"{len(lines):,} lines, {len(source):,} bytes"
    if len(lines) > LINES_MAX:
        note += f"; the first {LINES_MAX:,} are shown"
    return Code("code", "Code", tuple(lines[:LINES_MAX]), note=note, copy=source.decode("utf-8", errors="replace"))
