"""Fees: how the basefees went, how full blocks and the timer budget were, what was burned and what proposers got."""

from collections.abc import Sequence
from typing import Final

from trailboss.explorer import cells
from trailboss.explorer.documents import HALF, Chart, Document, Filter, PageTable, Section, Series, Stats
from trailboss.explorer.links import Query
from trailboss.explorer.page_context import Reading
from trailboss.explorer.pages.overview import burned_stat, mechanism_stat
from trailboss.index.records import BlockSpan
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.views.status import status_of
from trailboss.views.text import counted

POINTS: Final = 240
RANGES: Final = {**{str(last): f"last {last:,} blocks" for last in (240, 2_400, 24_000)}, "all": "all blocks"}


def fees(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page."""
    chosen = query.choice("blocks", RANGES, "240")
    first = 1 if chosen == "all" else max(1, reading.height + 1 - int(chosen))
    spans = reading.node.index.statistics(first, reading.height, POINTS, reading.height) if reading.height else ()
    note = f"blocks {first} to {reading.height}. {_thinned(spans)}" if spans else "there is no block yet"
    filters = (Filter("blocks", "Blocks", chosen, options=tuple(RANGES.items())),)
    form = PageTable("range", "Range", (), (), note=note, filters=filters)
    sections: tuple[Section, ...] = (_stats(reading), form, *(_charts(reading, spans) if spans else ()))
    return Document("Fees", "Fees", sections)


def _thinned(spans: Sequence[BlockSpan]) -> str:
    widest = max(span.last - span.first + 1 for span in spans)
    if widest == 1:
        return "A point is one block"
    return f"A point is {counted(widest, 'block')}: the highest basefees of them, and the mean of a block of all else"


def _stats(reading: Reading) -> Stats:
    status, totals = status_of(reading.view), reading.node.index.totals(reading.height)
    timer_cycle, timer_cell = reading.view.rules().timer_basefees()
    counts = f"{totals.transactions:,} transactions, {totals.fires:,} fires"
    others = status.basefees
    cycle = "of the next block" if timer_cycle == others.cycle else f"fires pay {timer_cycle:,}"
    cell = "of the next block" if timer_cell == others.cell else f"fires pay {timer_cell:,}"
    items = (
        *(cells.stat("Cycle basefee", others.cycle, cycle), cells.stat("Cell basefee", others.cell, cell)),
        *(mechanism_stat(status), burned_stat(totals.burned, status)),
        cells.stat("Tips", cells.short_money(totals.tips), "to proposers"),
        cells.stat("Fees in all", cells.short_money(totals.burned + totals.tips), counts),
    )
    return Stats("stats", "", items)


def _charts(reading: Reading, spans: Sequence[BlockSpan]) -> tuple[Chart, ...]:
    heights = [span.last for span in spans]
    blocks = [(span, span.last - span.first + 1) for span in spans]
    prices: list[Series] = [("Cycle basefee", [span.cycle_basefee_max for span in spans])]
    if any(span.lane_basefee_max is not None for span in spans):
        prices.append(("Lane basefee", [span.lane_basefee_max for span in spans]))
    highest = max(span.cycle_basefee_max for span in spans)
    fires = [span.tally.timer_cycles // count for span, count in blocks]
    others = [(span.tally.cycles - span.tally.timer_cycles) // count for span, count in blocks]
    budget = reading.view.rules().timer_cycles_max() or 1
    use = [round(100 * cycles / budget, 2) for cycles in fires]
    burned, tips = (
        [round(getattr(span.tally, name) / count / BASE_UNITS_PER_CBY, 6) for span, count in blocks]
        for name in ("burned", "tips")
    )
    cell = [("Cell basefee", [span.cell_basefee_max for span in spans])]

    def bars(key: str, title: str, label: str, series: list[Series], note: str = "") -> Chart:
        return Chart(key, title, label, heights, series, bars=True, note=note, span=HALF)

    label = f"Basefees of a cycle by height; the cycle basefee was {highest:,} at most."
    use_label = f"Use of the timer budget in percent by height, {max(use):g} percent at most."
    used: list[Series] = [("Fires", fires), ("Transactions", others)]
    money: list[Series] = [("Burned", burned), ("Tips", tips)]
    return (
        Chart("basefees", "Basefees a cycle", label, heights, prices, note="base units"),
        bars("use", "Use of the timer budget", use_label, [("Use", use)], "percent"),
        bars("cycles", "Cycles a block", "Cycles that fires and transactions used, by height.", used),
        bars("burned", "Burned and tips a block", "CBY burned and CBY of tips, by height.", money, "CBY"),
        Chart("cell-basefee", "Basefee a cell", "Cell basefee by height.", heights, cell, note="base units", span=HALF),
    )
