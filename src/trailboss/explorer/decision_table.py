"""How a block chose among its due timers: its decision record, under each mechanism, in the command line's words."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from trailboss.explorer import cells
from trailboss.explorer.address_labels import Names
from trailboss.explorer.cells import NOTHING
from trailboss.explorer.documents import HALF, Column, Content, Fact, Facts, Notice, Row, Section, Table
from trailboss.explorer.page_context import Reading
from trailboss.explorer.parts import offset_of, pager_of
from trailboss.explorer.query import PAGE_ROWS, Query
from trailboss.explorer.text import share_words
from trailboss.model.decisions import Order
from trailboss.primitives.units import format_cby
from trailboss.views.records import DecisionRow, DecisionView
from trailboss.views.text import counted

RANK: Final = Column("Rank", right=True)
TIMER: Final = Column("Timer", bare=True)
LIMITS: Final = (Column("Gas limit", right=True), Column("Used", right=True), Column("Outcome", wide=True, bare=True))
FIFO_COLUMNS: Final = (RANK, TIMER, Column("Actor"), *LIMITS)
LANE_COLUMNS: Final = (
    RANK,
    TIMER,
    Column("Actor"),
    Column("Tip", right=True),
    Column("W", right=True),
    Column("Tip × W", right=True),
    Column("Max fee", right=True),
    Column("Fees"),
    *LIMITS,
)
AUCTION_COLUMNS: Final = (
    RANK,
    TIMER,
    Column("Actor"),
    Column("Tip", right=True),
    Column("Weight", right=True),
    Column("Max fee", right=True),
    Column("Bid by"),
    *LIMITS,
)
GLOBALBOX_COLUMNS: Final = (
    RANK,
    TIMER,
    Column("Fire", right=True),
    Column("Target"),
    Column("Deliver seq", right=True),
    Column("Tip", right=True),
    *LIMITS,
)
OUTCOME_TONES: Final = {"fired": "good", "expired": "warn", "unfunded": "bad", "waits": "faded"}


def decision_sections(view: DecisionView, reading: Reading, query: Query) -> tuple[Section, ...]:
    """Return how a block chose; nothing if no timer was due that could run."""
    rows = (*view.rows, *view.runners_up)
    if not rows and not view.sentences:
        return ()
    facts = Facts("lane", "How it chose among its due timers", tuple(_facts(view)), span=HALF)
    waiting = tuple(
        Notice(f"waiting-{index}", "", content=cells.text(f"Waiting: {sentence}."))
        for index, sentence in enumerate(view.sentences)
    )
    return (facts, _table(view, rows, reading.names, query), *waiting) if rows else (facts, *waiting)


def _facts(view: DecisionView) -> Iterator[Fact]:
    used = (
        f"{view.lane_cycles_used:,} of {view.lane_cycles_max:,} cycles "
        f"({share_words(view.lane_cycles_used, view.lane_cycles_max)}), at most {view.max_cycles_per_fire:,} a fire"
    )
    yield Fact("Mechanism", cells.text(view.mechanism))
    yield Fact("Used", cells.text(used))
    yield Fact("Basefees", cells.text(f"{view.cycle_basefee:,} a cycle, {view.cell_basefee:,} a cell"))
    if view.lane_basefee is not None and view.next_lane_basefee is not None:
        burned = f"it burned {format_cby(view.lane_burned)} CBY"
        yield Fact(
            "Lane basefee", cells.text(f"{view.lane_basefee:,} a cycle, next {view.next_lane_basefee:,}; {burned}")
        )
        fires = counted(view.median_fires or 0, "fire")
        yield Fact("Medians", cells.text(f"tip {view.previous_tip:,} in the block before, {fires} in the window"))
    if view.agent_cycles:
        bids = f", {len(view.bids):,} bids" if view.bids else ""
        yield Fact("Agents", cells.text(f"{view.agent_cycles:,} cycles{bids}"))
    if view.queued is not None:
        after = f"{counted(view.queued, 'fire')} in Globalbox, {view.in_mailbox:,} in the mailbox"
        yield Fact("After it", cells.text(after))
    named = "" if len(view.rows) == view.examined else f", of which the first {len(view.rows):,} are named"
    cut_off = "" if view.cut_off is None else f", cut-off at rank {view.cut_off:,}"
    yield Fact("Examined", cells.text(f"{view.examined:,}{named}{cut_off}"))


def _table(view: DecisionView, rows: Sequence[DecisionRow], names: Names, query: Query) -> Table:
    columns, cells_of = TABLES[Order(view.order)]
    offset = offset_of(query, len(rows), name="due")
    shown = rows[offset : offset + PAGE_ROWS]
    drawn = tuple(
        Row((*cells_of(row, names), *_limits(row)), str(offset + at), tone=OUTCOME_TONES.get(row.outcome, ""))
        for at, row in enumerate(shown)
    )
    pager = pager_of(query, len(rows), name="due") if len(rows) > PAGE_ROWS else None
    return Table("due", "Due timers", columns, drawn, "", pager=pager)


def _limits(row: DecisionRow) -> tuple[Content, ...]:
    outcome = f"{row.outcome}: {row.reason}" if row.reason else row.outcome
    return cells.number(row.gas_limit), cells.number(row.cycles_used), cells.text(outcome)


def _common(row: DecisionRow, names: Names) -> tuple[Content, ...]:
    return cells.number(row.rank), cells.timer(row.timer_id), cells.address(row.actor, names)


def _words(text: str | None) -> Content:
    return NOTHING if text is None else cells.text(text, kind="number")


def _lane_cells(row: DecisionRow, names: Names) -> tuple[Content, ...]:
    priority = row.effective_priority
    return (
        *_common(row, names),
        NOTHING if priority is None else cells.number(row.tip),
        _words(row.weight),
        NOTHING if priority is None else cells.text(f"{Decimal(priority):,}", kind="number"),
        cells.number(row.max_fee),
        cells.text(row.fees),
    )


def _auction_cells(row: DecisionRow, names: Names) -> tuple[Content, ...]:
    return (
        *_common(row, names),
        cells.number(row.tip if row.rank else None),
        _words(row.weight),
        cells.number(row.max_fee),
        cells.text(row.fees),
    )


def _globalbox_cells(row: DecisionRow, names: Names) -> tuple[Content, ...]:
    return (
        cells.number(row.rank),
        cells.timer(row.timer_id),
        cells.number(row.fire_seq),
        cells.address(row.target, names),
        cells.number(row.deliver_seq),
        cells.number(row.tip),
    )


TABLES: Final[Mapping[Order, tuple[tuple[Column, ...], Callable[[DecisionRow, Names], tuple[Content, ...]]]]] = {
    Order.DUE: (FIFO_COLUMNS, _common),
    Order.PRIORITY: (LANE_COLUMNS, _lane_cells),
    Order.TIP: (AUCTION_COLUMNS, _auction_cells),
    Order.STANDING: (GLOBALBOX_COLUMNS, _globalbox_cells),
}
"""Columns of a block's due timers and what fills them, by what the block ranks by."""
