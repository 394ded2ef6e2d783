"""Accounts, actors and payers: who is there, what one holds, runs and pays for, and who can soon pay no more."""

from itertools import islice
from typing import Final

from trailboss.explorer import cells, links, payer_runway, tables
from trailboss.explorer import documents as parts
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import FULL, HALF, bare, columns, numbers
from trailboss.explorer.failures import missing_document, node_url, source_lines
from trailboss.explorer.instructions import payload
from trailboss.explorer.links import PAGE_ROWS, Query, parse_id
from trailboss.explorer.page_context import Reading, Redirect
from trailboss.explorer.recurring_timers import schedule_sections
from trailboss.explorer.text import blocks_words
from trailboss.forecast.runway import Runway
from trailboss.index import EventFilter, read_events
from trailboss.index.answers.timers import timer_page
from trailboss.model.events import TIMER_UNFUNDED
from trailboss.primitives.octets import Address, Hash32
from trailboss.views import accounts as views
from trailboss.views.text import counted
from trailboss.views.timer_list import TimerFilter

TIMERS_SHOWN: Final = 10
SLOTS_SHOWN: Final = 8
LINES_MAX: Final = 3_000  # lines of source that a page shows
COLUMNS: Final = bare("Name", "Address", "Kind") + numbers("Balance, CBY", "Nonce", "Live timers")
STORAGE_COLUMNS: Final = columns("Slot") + columns("Value", wide=True) + numbers("Bytes")
PAYERS_SHOWN: Final = 20
ENDS_SHOWN: Final = 20
UPCOMING: Final = 200  # next timers whose payers are examined
PAYER_COLUMNS: Final = bare("Payer") + numbers(
    "Balance, CBY", "Spent on fires, CBY", "Live timers", "Fires left", "Dry in block", "Basefees doubled"
)
END_COLUMNS: Final = tables.BLOCK + bare("Timer") + columns("Payer", "Actor") + numbers("Needed, CBY", "Found, CBY")


def accounts(reading: Reading, query: Query, _subject: str) -> parts.Document:
    """Return all accounts, in order of address, development ones first. Complexity: O(accounts before the page)."""
    view, total = reading.view, views.account_count(reading.view)
    offset = tables.offset_of(query, total)
    known = [] if offset else reading.names.accounts()
    listed = [address for address, _ in islice(view.accounts(), offset, offset + PAGE_ROWS)]
    rows, more = (
        tuple(_row(views.holder_of(view, Address(address), {}), reading) for address in some)
        for some in (known, listed)
    )
    note, pager = "in order of address", tables.pager_of(query, total)
    table = parts.PageTable(
        "accounts", "All accounts and actors", COLUMNS, more, "There is none.", pager=pager, note=note
    )
    first = parts.PageTable("known", "Development accounts", COLUMNS, rows, note="their keys are public")
    return parts.Document("Accounts", "Accounts", (first, table) if rows else (table,))


def _row(holder: views.Holder, reading: Reading) -> parts.Row:
    name, timers = reading.names.short(holder.address) or None, None
    if holder.timers:
        timers = cells.link(f"{holder.timers:,}", links.query(links.TIMERS, {"actor": holder.address}), kind="number")
    kind = "actor" if holder.kind == views.ACTOR else cells.text("account", kind="dim")
    where, balance = cells.whole_address(holder.address), cells.bare_money(holder.balance)
    return cells.row(holder.address.hex(), name, where, kind, balance, holder.nonce or None, timers)


def account(reading: Reading, query: Query, subject: str) -> parts.Document | Redirect:
    """Return the page of an account; an actor has a page of its own."""
    address = Address(parse_id(subject, (Address.WIDTH,)))
    holder = views.holder_of(reading.view, address, {})
    if holder.kind == views.ACTOR:
        return Redirect(links.query(links.actor(address), query.parameters))
    waiting = reading.node.mempool.of_sender(holder.address)
    pending = cells.link(counted(len(waiting), "transaction"), links.MEMPOOL) if waiting else None
    rows: dict[str, Words] = {"Balance": cells.money(holder.balance), "Nonce": holder.nonce, "In the mempool": pending}
    sections: list[parts.Section] = [cells.facts("facts", "What it holds", rows, span=HALF)]
    if holder.kind == views.NO_ACCOUNT:
        fund = f"It has never received anything. To fund it: trailboss faucet {address} --url {node_url(reading)}"
        sections.insert(0, parts.Notice("empty", "The chain has no such account", cells.text(fund), tone="warn"))
    runway = reading.runway(address)
    if runway.timers or runway.actors:
        facts = cells.facts("balance", "Its balance for timers", payer_runway.runway_facts(runway), span=HALF)
        sections += [facts, *payer_runway.runway_sections(runway, reading)]
    paid = _timers(reading, TimerFilter(payer=address), "Next timers that it pays for")
    sections += [*((paid,) if paid.rows else ()), *payer_runway.spend_chart(reading, address, FULL)]
    sections.append(tables.receipts_table(reading, query, address, "Transactions"))
    about = cells.address(address, reading.names, whole=True)
    return parts.Document(f"Account {str(address)[:10]}", "Account", tuple(sections), subject=about)


def actor(reading: Reading, query: Query, subject: str) -> parts.Document | Redirect:
    """Return the page of an actor; an account without code has a page of its own."""
    address = Address(parse_id(subject, (Address.WIDTH,)))
    found = views.actor_view(reading.view, address)
    if found is None:
        if reading.view.account(address) is not None:
            return Redirect(links.query(links.account(address), query.parameters))
        return missing_document(f"There is no actor at {address}", "It may be deployed in a later block.")
    runway, spend = reading.runway(address), tuple(payer_runway.spend_chart(reading, address))
    sections: tuple[parts.Section, ...] = (
        _actor_facts(reading, found),
        cells.facts("balance", "Its balance for timers", payer_runway.runway_facts(runway), span=HALF),
        *payer_runway.runway_sections(runway, reading),
        _timers(reading, TimerFilter(actor=address), "Next timers"),
        *schedule_sections(reading, address),
        *spend,
        _storage(reading, query, address, span=HALF if spend else FULL),
        tables.receipts_table(reading, query, address, "Transactions and fires"),
        _code(reading, found),
    )
    title = f"{reading.names.label(address) or 'Actor'} {str(address)[:10]}"
    return parts.Document(title, "Actor", sections, subject=cells.address(address, reading.names, whole=True))


def _actor_facts(reading: Reading, found: views.ActorView) -> parts.Facts:
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


def _timers(reading: Reading, wanted: TimerFilter, title: str) -> parts.PageTable:
    page = timer_page(reading.view, reading.node.index, wanted, 0, TIMERS_SHOWN)
    rows = tuple(tables.timer_row(entry, reading) for entry in page.timers)
    chosen = {"actor": wanted.actor, "payer": wanted.payer}
    more = parts.Cell(f"All {page.total_count:,} live", href=links.query(links.TIMERS, chosen))
    if not rows:
        more = parts.Cell("Those that ended", href=links.query(links.TIMERS, {**chosen, "state": "all"}))
    empty = "It has no live timer, so nothing of it runs by itself. Those that ended may show why."
    return parts.PageTable("timers", title, tables.TIMER_COLUMNS, rows, empty, more=more)


def _storage(reading: Reading, query: Query, address: Address, *, span: str) -> parts.PageTable:
    """Return a page of its slots: a page begins where the one before it ended."""
    text = query.text("slot")
    cursor = Hash32(parse_id(text, (Hash32.WIDTH,))) if text else None
    page = views.storage_page(reading.view, address, SLOTS_SHOWN, cursor)
    rows = tuple(
        cells.row(name.hex(), cells.octets(name), payload(value), len(value)) for name, value in page.storage.items()
    )
    following = query.but(slot=f"0x{page.next_cursor.hex()}") if page.next_cursor is not None else ""
    pager = None
    if text or following:
        words = f"{len(rows)} slots, in the order of their hashed names"
        pager = parts.Pager(words, first=query.but(slot="") if text else "", following=following)
    return parts.PageTable(
        "storage", "Storage", STORAGE_COLUMNS, rows, "It has stored nothing.", pager=pager, span=span
    )


def _code(reading: Reading, found: views.ActorView) -> parts.Section:
    source = views.source_of(reading.view, found.code_hash)
    if source is None:
        return parts.Notice("code", "Its code is not in the state")
    lines = source_lines(source)
    note, copy = f"{len(lines):,} lines, {len(source):,} bytes", source.decode("utf-8", errors="replace")
    note += f"; the first {LINES_MAX:,} are shown" if len(lines) > LINES_MAX else ""
    return parts.Code("code", "Code", tuple(lines[:LINES_MAX]), note=note, copy=copy)


def payers(reading: Reading, query: Query, _subject: str) -> parts.Document:
    """Return the page: alerts first, then those who pay most, then the timers that ended unfunded."""
    index, upto = reading.node.index, reading.height
    offset = (query.page() - 1) * PAYERS_SHOWN
    spenders = {each.payer: each.fees for each in index.payers(upto, offset, PAYERS_SHOWN + 1)}
    shown = list(spenders)[:PAYERS_SHOWN]
    if not offset:
        shown += [payer for payer in upcoming_payers(reading) if payer not in spenders][:PAYERS_SHOWN]
    runways = {payer: reading.runway(payer) for payer in shown}
    rows = tuple(_payer_row(runways[payer], spenders.get(payer, 0), reading) for payer in shown)
    empty = "No account pays for a timer yet. The actor pays for a fire, unless it names the sender who schedules it."
    note = "those who have spent most on fires, and those whose timers come next"
    pager = _payers_pager(query, offset, len(shown), more=len(spenders) > PAYERS_SHOWN)
    table = parts.PageTable("payers", "Payers", PAYER_COLUMNS, rows, empty, pager=pager, note=note)
    alerts = payer_runway.payer_alerts(list(runways.values()), reading)
    return parts.Document("Payers", "Payers", (*alerts, table, _ends(reading, query)))


def upcoming_payers(reading: Reading) -> list[Address]:
    """Return who pays for the timers that are due or come next. Complexity: O(``UPCOMING``)."""
    timers = islice(reading.view.timers(), UPCOMING)
    return list(dict.fromkeys(Address(timer.fee_payer) for timer in timers))


def _payer_row(runway: Runway, spent: int, reading: Reading) -> parts.Row:
    tone = payer_runway.alert_tone(runway)
    left: tuple[Words, ...] = (None, None, None)
    if runway.timers:
        present, doubled = runway.reaches[:2]
        dry = _dry(present.dry_at, reading, tone if tone == "bad" else "")
        left = (present.fires, dry, _dry(doubled.dry_at, reading, ""))
    payer, balance = cells.address(runway.payer, reading.names), cells.bare_money(runway.balance)
    timers = cells.text(f"{'over ' if runway.has_more else ''}{runway.timers:,}", kind="number")
    fees = cells.bare_money(spent) if spent else None
    return cells.row(runway.payer.hex(), payer, balance, fees, timers, *left, tone=tone)


def _dry(dry_at: int | None, reading: Reading, tone: str) -> parts.Content:
    if dry_at is None:
        return cells.text("never", kind="dim")
    ahead = dry_at - reading.height
    near = cells.text(f"{blocks_words(ahead)}, ", kind=tone or "dim") if ahead <= payer_runway.LATER_BLOCKS else ()
    return near + cells.text(dry_at, kind=f"number {tone}".rstrip())


def _payers_pager(query: Query, offset: int, count: int, *, more: bool) -> parts.Pager | None:
    """Return the pager of a list whose length is not known."""
    if not offset and not more:
        return None
    page = offset // PAYERS_SHOWN + 1
    return parts.Pager(
        f"{offset + 1:,} to {offset + count:,}",
        first=query.but(page="") if page > 1 else "",
        previous=query.but(page=page - 1) if page > 1 else "",
        following=query.but(page=page + 1) if more else "",
    )


def _ends(reading: Reading, query: Query) -> parts.PageTable:
    """Return the timers that were removed because their payer could not pay, the latest first."""
    index, upto, wanted = reading.node.index, reading.height, EventFilter(name=TIMER_UNFUNDED)
    total = index.events(wanted, upto, 0, 1).total
    offset = tables.offset_of(query, total, rows=ENDS_SHOWN, name="ends")
    places = index.events(wanted, upto, offset, ENDS_SHOWN, newest_first=True).items
    rows = tuple(
        cells.row(
            f"{event.block_height}.{offset + at}",
            cells.block(event.block_height),
            cells.timer(event.timer_id),
            cells.address(event.data["fee_payer"], reading.names),
            _owner(reading, event.timer_id),
            cells.bare_money(event.data["required"]),
            cells.bare_money(event.data["available"]),
        )
        for at, event in enumerate(read_events(reading.view.blocks, places))
    )
    empty = "No timer has ended because its payer could not pay."
    pager = tables.pager_of(query, total, rows=ENDS_SHOWN, name="ends") if total > ENDS_SHOWN else None
    return parts.PageTable("ends", "Timers that ended unfunded", END_COLUMNS, rows, empty, pager=pager)


def _owner(reading: Reading, timer_id: bytes | None) -> Words:
    found = None if timer_id is None else reading.node.index.timer(timer_id, reading.height)
    return None if found is None else cells.address(found.actor, reading.names)
