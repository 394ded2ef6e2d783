"""The overview: what the chain does right now, and what it will do next."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from trailboss.explorer import cells, links
from trailboss.explorer.documents import (
    HALF,
    THIRD,
    TWO_THIRDS,
    Cell,
    Chart,
    Column,
    Content,
    Document,
    Row,
    Section,
    Series,
    Stat,
    Stats,
    Table,
)
from trailboss.explorer.empty_hints import schedule_command
from trailboss.explorer.page_context import Reading
from trailboss.explorer.pages.payers import payer_alerts, upcoming_payers
from trailboss.explorer.parts import BLOCK_COLUMNS, BLOCK_EVENT_COLUMNS, block_event_row, block_row
from trailboss.explorer.query import Query
from trailboss.explorer.text import share_words
from trailboss.index import EventFilter, read_events
from trailboss.primitives.units import format_cby
from trailboss.views.status import ChainStatus, status_of
from trailboss.views.text import counted
from trailboss.views.timer_list import TimerFilter, list_timers

BLOCKS_SHOWN: Final = 10
EVENTS_SHOWN: Final = 14
NEXT_SHOWN: Final = 10
SPARK_BLOCKS: Final = 120
PERCENT: Final = 100
PAYERS_LOOKED_AT: Final = 6
"""Of those whose timers come next; the page of payers looks at more."""
HANDLER_MAX: Final = 24
NEXT_COLUMNS: Final = (Column("Height", right=True), Column("Timer"), Column("Handler", wide=True))


def overview(reading: Reading, _query: Query, _subject: str) -> Document:
    """Return the page."""
    status = status_of(reading.view)
    sections: tuple[Section, ...] = (
        *payer_alerts([reading.runway(payer) for payer in upcoming_payers(reading)[:PAYERS_LOOKED_AT]], reading),
        _stats(reading, status),
        _blocks(reading),
        _next_timers(reading),
        _events(reading),
        *_charts(reading),
    )
    return Document("Overview", "Overview", sections)


def _stats(reading: Reading, status: ChainStatus) -> Stats:
    head, lane_max = reading.view.head.header, reading.view.rules().timer_cycles_max()
    used = head.timer_cycles_used
    items = [
        Stat("Live timers", cells.link(f"{status.timers.live:,}", links.TIMERS), _due_words(reading)),
        Stat("Fires", cells.number(status.timers.fires), _endings(status)),
        Stat(
            "Lane use, last block",
            cells.text(share_words(used, lane_max)),
            cells.text(f"{used:,} of {lane_max:,} cycles"),
            share=used * PERCENT // lane_max if lane_max else None,
        ),
        Stat(
            "Cycle basefee",
            cells.link(f"{status.basefees.cycle:,}", links.FEES),
            cells.text(f"{status.basefees.cell:,} a cell"),
        ),
        *_mechanism_stats(status),
        Stat("Mempool", cells.link(f"{len(reading.node.mempool):,}", links.MEMPOOL), cells.text("transactions wait")),
        Stat("Burned", cells.short_money(status.burned), cells.text(f"of {format_cby(status.supply)} CBY at genesis")),
    ]
    return Stats("stats", "", tuple(items))


def _due_words(reading: Reading) -> Content:
    due = reading.view.due_count()
    if not due:
        return cells.text("none is due and waits")
    words = f"{due:,} {'is' if due == 1 else 'are'} due and {'waits' if due == 1 else 'wait'}"
    return cells.link(words, links.query(links.TIMERS, {"state": "due"}), kind="warn")


def _endings(status: ChainStatus) -> Content:
    timers = status.timers
    told = [f"{timers.unfunded:,} unfunded", f"{timers.expired:,} expired", f"{timers.cancelled:,} cancelled"]
    return cells.text(", ".join(told))


def _mechanism_stats(status: ChainStatus) -> Iterator[Stat]:
    lane, auction, box = status.lane, status.auction, status.globalbox
    if lane.basefee is not None:
        yield Stat(
            "Lane basefee", cells.link(f"{lane.basefee:,}", links.LANE), cells.text(f"median tip {lane.previous_tip:,}")
        )
    elif lane.activation_height is not None:
        yield Stat("Lane begins", cells.link(str(lane.activation_height), links.LANE), cells.text("height"))
    if auction is not None:
        hint = cells.text(f"{counted(auction.waiting, 'timer')} waiting, next at {auction.next_epoch_at}")
        yield Stat("Auction epoch", cells.link(f"{auction.epoch:,}", links.LANE), hint)
    if box is not None:
        hint = cells.text(f"{box.mailbox:,} in the mailbox")
        yield Stat("Globalbox", cells.link(counted(box.queued, "fire"), links.LANE), hint)


def _blocks(reading: Reading) -> Table:
    blocks = reading.view.blocks[max(0, reading.height + 1 - BLOCKS_SHOWN) :]
    lane_max = reading.view.rules().timer_cycles_max()
    rows = tuple(block_row(block, lane_max) for block in reversed(blocks))
    more = Cell("All blocks", href=links.BLOCKS)
    return Table(
        "blocks",
        "Latest blocks",
        BLOCK_COLUMNS,
        rows,
        "There is no block yet.",
        more=more,
        scrolls=True,
        span=TWO_THIRDS,
    )


def _next_timers(reading: Reading) -> Table:
    now = reading.height
    entries = islice(list_timers(reading.view, TimerFilter(first=now + 1)), NEXT_SHOWN)
    rows = tuple(
        Row(
            (
                cells.text(entry.height, kind="number"),
                cells.timer(entry.timer_id),
                cells.said(entry.handler, HANDLER_MAX),
            ),
            entry.timer_id.hex(),
            tone="now" if entry.height == now + 1 else "",
        )
        for entry in entries
    )
    empty = "Nothing is scheduled. Deploy an actor that schedules timers, or schedule one without:"
    command = schedule_command(reading)
    more = Cell("All timers", href=links.TIMERS)
    return Table("next", "Next due timers", NEXT_COLUMNS, rows, empty, command=command, more=more, span=THIRD)


def _events(reading: Reading) -> Table:
    found = reading.node.index.events(EventFilter(), reading.height, 0, EVENTS_SHOWN, newest_first=True).items
    told = zip(found, read_events(reading.view.blocks, found), strict=True)
    rows = tuple(block_event_row(event, reading.names, f"{place.height}.{place.index}") for place, event in told)
    more = Cell("All events", href=links.EVENTS)
    return Table("events", "Latest events", BLOCK_EVENT_COLUMNS, rows, "Nothing has happened yet.", more=more)


def _charts(reading: Reading) -> Iterator[Chart]:
    height = reading.height
    if not height:
        return
    first = max(1, height + 1 - SPARK_BLOCKS)
    blocks = reading.node.index.statistics(first, height, SPARK_BLOCKS, height)
    heights = [block.last for block in blocks]
    series: list[Series] = [("Cycle basefee", [block.cycle_basefee for block in blocks])]
    if any(block.lane_basefee is not None for block in blocks):
        series.append(("Lane basefee", [block.lane_basefee for block in blocks]))
    count = counted(len(blocks), "block")
    label = f"Basefees in the last {count}; the last one is {blocks[-1].cycle_basefee:,} a cycle."
    note = "base units a cycle"
    yield Chart("basefees", "Basefees", label, heights, series, note=note, span=HALF)
    fires = [block.tally.timer_cycles for block in blocks]
    others = [block.tally.cycles - block.tally.timer_cycles for block in blocks]
    label = f"Cycles of fires and of transactions in the last {count}."
    used: list[Series] = [("Fires", fires), ("Transactions", others)]
    yield Chart("use", "Cycles used", label, heights, used, bars=True, span=HALF)
