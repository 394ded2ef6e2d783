"""The overview: what the chain does now, and what it will do next."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from trailboss.explorer import cells, links, tables
from trailboss.explorer import documents as parts
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import HALF, THIRD, TWO_THIRDS, columns, numbers
from trailboss.explorer.failures import schedule_command
from trailboss.explorer.links import Query
from trailboss.explorer.page_context import Reading
from trailboss.explorer.pages.accounts import upcoming_payers
from trailboss.explorer.payer_runway import payer_alerts
from trailboss.explorer.text import share_words
from trailboss.index import EventFilter, read_events
from trailboss.primitives.units import format_cby
from trailboss.views.status import ChainStatus, status_facts, status_of
from trailboss.views.text import counted
from trailboss.views.timer_list import TimerFilter, list_timers

BLOCKS_SHOWN: Final = 10
EVENTS_SHOWN: Final = 14
NEXT_SHOWN: Final = 10
CHART_BLOCKS: Final = 120
PERCENT: Final = 100
PAYERS_EXAMINED: Final = 6  # payers of the next timers; the page of payers examines more
HANDLER_MAX: Final = 24
STATUS_FACTS: Final = 2  # facts about the mechanism that a page of numbers has room for
NEXT_COLUMNS: Final = numbers("Height") + columns("Timer") + columns("Handler", wide=True)


def overview(reading: Reading, _query: Query, _subject: str) -> parts.Document:
    """Return the page."""
    alerts = payer_alerts([reading.runway(payer) for payer in upcoming_payers(reading)[:PAYERS_EXAMINED]], reading)
    tables = (_blocks(reading), _next_timers(reading), _events(reading))
    return parts.Document("Overview", "Overview", (*alerts, _stats(reading), *tables, *_charts(reading)))


def _stats(reading: Reading) -> parts.Stats:
    status, head = status_of(reading.view), reading.view.head.header
    budget, used, timers = reading.view.rules().timer_cycles_max(), head.timer_cycles_used, status.timers
    endings = f"{timers.unfunded:,} unfunded, {timers.expired:,} expired, {timers.cancelled:,} cancelled"
    due = reading.view.due_count()
    waiting: Words = "none is due and waits"
    if due:
        words = f"{due:,} {'is' if due == 1 else 'are'} due and {'waits' if due == 1 else 'wait'}"
        waiting = cells.link(words, links.query(links.TIMERS, {"state": "due"}), kind="warn")
    share, basefees = used * PERCENT // budget if budget else None, status.basefees
    pool = cells.link(f"{len(reading.node.mempool):,}", links.MEMPOOL)
    items = (
        cells.stat("Live timers", cells.link(f"{timers.live:,}", links.TIMERS), waiting),
        cells.stat("Fires", timers.fires, endings),
        cells.stat("Budget use, last block", share_words(used, budget), f"{used:,} of {budget:,} cycles", share),
        cells.stat("Cycle basefee", cells.link(f"{basefees.cycle:,}", links.FEES), f"{basefees.cell:,} a cell"),
        mechanism_stat(status),
        cells.stat("Mempool", pool, "transactions wait"),
        burned_stat(status.burned, status),
    )
    return parts.Stats("stats", "", items)


def mechanism_stat(status: ChainStatus) -> parts.Stat:
    """Return which mechanism chooses among due timers, and the first facts about its state."""
    facts = [f"{each.label}: {each.value}" for each in status_facts(status)[:STATUS_FACTS]]
    return cells.stat("Mechanism", cells.link(status.mechanism, links.MECHANISM), "; ".join(facts))


def burned_stat(burned: int, status: ChainStatus) -> parts.Stat:
    """Return how much has been burned."""
    return cells.stat("Burned", cells.short_money(burned), f"of {format_cby(status.supply)} CBY at genesis")


def _blocks(reading: Reading) -> parts.PageTable:
    blocks = reading.view.blocks[max(0, reading.height + 1 - BLOCKS_SHOWN) :]
    budget = reading.view.rules().timer_cycles_max()
    rows = tuple(tables.block_row(block, budget) for block in reversed(blocks))
    more = parts.Cell("All blocks", href=links.BLOCKS)
    return parts.PageTable(
        "blocks", "Latest blocks", tables.BLOCK_COLUMNS, rows, more=more, scrolls=True, span=TWO_THIRDS
    )


def _next_timers(reading: Reading) -> parts.PageTable:
    following = reading.height + 1
    rows = tuple(
        cells.row(
            entry.timer_id.hex(),
            cells.height(entry.height),
            cells.timer(entry.timer_id),
            cells.said(entry.handler, HANDLER_MAX),
            tone="now" if entry.height == following else "",
        )
        for entry in islice(list_timers(reading.view, TimerFilter(first=following)), NEXT_SHOWN)
    )
    empty = "Nothing is scheduled. Deploy an actor that schedules timers, or schedule one without an actor:"
    command, more = schedule_command(reading), parts.Cell("All timers", href=links.TIMERS)
    return parts.PageTable("next", "Next due timers", NEXT_COLUMNS, rows, empty, command=command, more=more, span=THIRD)


def _events(reading: Reading) -> parts.PageTable:
    found = reading.node.index.events(EventFilter(), reading.height, 0, EVENTS_SHOWN, newest_first=True).items
    rows = tuple(
        tables.event_row(event, reading.names, f"{place.height}.{place.index}", with_block=True)
        for place, event in zip(found, read_events(reading.view.blocks, found), strict=True)
    )
    more, empty = parts.Cell("All events", href=links.EVENTS), "Nothing has happened yet."
    return parts.PageTable("events", "Latest events", tables.BLOCK + tables.EVENT_COLUMNS, rows, empty, more=more)


def _charts(reading: Reading) -> Iterator[parts.Chart]:
    height = reading.height
    if not height:
        return
    blocks = reading.node.index.statistics(max(1, height + 1 - CHART_BLOCKS), height, CHART_BLOCKS, height)
    heights = [block.last for block in blocks]
    prices: list[parts.Series] = [("Cycle basefee", [block.cycle_basefee for block in blocks])]
    if any(block.lane_basefee is not None for block in blocks):
        prices.append(("Lane basefee", [block.lane_basefee for block in blocks]))
    count = counted(len(blocks), "block")
    label = f"Basefees in the last {count}; the last one is {blocks[-1].cycle_basefee:,} a cycle."
    yield parts.Chart("basefees", "Basefees", label, heights, prices, note="base units a cycle", span=HALF)
    fires = [block.tally.timer_cycles for block in blocks]
    others = [block.tally.cycles - block.tally.timer_cycles for block in blocks]
    label = f"Cycles of fires and of transactions in the last {count}."
    used: list[parts.Series] = [("Fires", fires), ("Transactions", others)]
    yield parts.Chart("use", "Cycles used", label, heights, used, bars=True, span=HALF)
