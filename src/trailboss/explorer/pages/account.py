"""One account: what it holds, what it sent, what it pays for, and how long its purse lasts."""

from typing import Final

from trailboss.explorer import cells, links
from trailboss.explorer.documents import FULL, HALF, Cell, Document, Fact, Facts, Notice, Section, Table
from trailboss.explorer.empty_hints import faucet_command
from trailboss.explorer.page_context import Reading, Redirect
from trailboss.explorer.parts import TIMER_COLUMNS, timer_row
from trailboss.explorer.payer_runway import purse_facts, purse_sections
from trailboss.explorer.query import Query, parse_id
from trailboss.explorer.receipts import receipts_table
from trailboss.explorer.spend_chart import spend_chart
from trailboss.index.answers.timers import timer_page
from trailboss.primitives.octets import Address
from trailboss.views.accounts import ACTOR, NO_ACCOUNT, Holder, holder_of
from trailboss.views.text import counted
from trailboss.views.timer_list import TimerFilter

TIMERS_SHOWN: Final = 10


def account(reading: Reading, query: Query, subject: str) -> Document | Redirect:
    """Return the page of an account; an actor has a page of its own."""
    address = Address(parse_id(subject, (Address.WIDTH,)))
    holder = holder_of(reading.view, address, {})
    if holder.kind == ACTOR:
        return Redirect(links.query(links.actor(address), query.parameters))
    sections: list[Section] = []
    if holder.kind == NO_ACCOUNT:
        fund = f"Nobody has sent it anything yet. To fund it: {faucet_command(reading, address)}"
        sections.append(Notice("empty", "The chain has no such account", content=cells.text(fund), tone="warn"))
    sections += [_facts(reading, holder), *_purse(reading, address), *_paid_timers(reading, address)]
    sections += [*spend_chart(reading, address, FULL), receipts_table(reading, query, address, "Transactions")]
    subject_cells = cells.address(address, reading.names, whole=True)
    return Document(f"Account {str(address)[:10]}", "Account", tuple(sections), subject=subject_cells)


def _facts(reading: Reading, holder: Holder) -> Facts:
    waiting = reading.node.mempool.of_sender(holder.address)
    rows = [Fact("Balance", cells.money(holder.balance)), Fact("Nonce", cells.number(holder.nonce))]
    if waiting:
        rows.append(Fact("In the mempool", cells.link(counted(len(waiting), "transaction"), links.MEMPOOL)))
    return Facts("facts", "What it holds", tuple(rows), span=HALF)


def _purse(reading: Reading, address: Address) -> tuple[Section, ...]:
    runway = reading.runway(address)
    if not runway.timers and not runway.actors:
        return ()
    facts = Facts("purse", "Its purse for timers", purse_facts(runway), span=HALF)
    return (facts, *purse_sections(runway, reading))


def _paid_timers(reading: Reading, address: Address) -> tuple[Table, ...]:
    page = timer_page(reading.view, reading.node.index, TimerFilter(payer=address), 0, TIMERS_SHOWN)
    if not page.timers:
        return ()
    rows = tuple(timer_row(entry, reading) for entry in page.timers)
    more = Cell(f"All {page.total_count:,}", href=links.query(links.TIMERS, {"payer": address}))
    return (Table("timers", "Next timers that it pays for", TIMER_COLUMNS, rows, "", more=more),)
