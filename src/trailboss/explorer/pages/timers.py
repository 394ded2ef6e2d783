"""The list of timers, by state, actor, payer, target and height."""

from typing import Final

from trailboss.explorer import cells, tables
from trailboss.explorer.documents import Document, Filter, Row, Table
from trailboss.explorer.failures import schedule_command
from trailboss.explorer.links import PAGE_ROWS, Query
from trailboss.explorer.page_context import Reading
from trailboss.index.answers.timers import SCANNED_MAX, timer_page
from trailboss.primitives.units import U64_MAX
from trailboss.views.records import TimerEntry
from trailboss.views.text import counted
from trailboss.views.timer_list import ALL, DEFERRED, DUE, ENDED, LIVE, TimerFilter

STATES: Final = (LIVE, DUE, DEFERRED, *ENDED, ALL)
"""States that timers have under every mechanism."""
NONE_LIVE: Final = "No timer is scheduled. Deploy an actor that schedules timers, or schedule one without an actor:"
NONE_MATCHES: Final = "No timer matches. Choose another state, or leave the other fields empty."


def timers(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page."""
    views, height = reading.mechanism, reading.height
    states = {state: state for state in STATES} | {name: each.label for name, each in views.timer_states.items()}
    state = query.choice("state", states, LIVE)
    wanted = TimerFilter(
        state=state,
        actor=query.address("actor"),
        target=query.address("target"),
        payer=query.address("payer"),
        first=query.number("from", 0),
        last=query.number("to", U64_MAX),
    )
    if wanted.last < wanted.first:
        query.complaints.append(f"no height is from {wanted.first} to {wanted.last}: swap them")
    offset = (query.page() - 1) * PAGE_ROWS
    page = timer_page(reading.view, reading.node.index, wanted, offset, PAGE_ROWS)
    if tables.offset_of(query, page.total_count) != offset:
        # Beyond the end, as when timers have fired since: the last page there is.
        offset = tables.offset_of(query, page.total_count)
        page = timer_page(reading.view, reading.node.index, wanted, offset, PAGE_ROWS)
    is_empty = not page.live and state == LIVE
    note = f"{counted(page.live, 'timer')} live after block {height}"
    if page.total_count >= SCANNED_MAX:
        note += f"; the first {SCANNED_MAX:,} were examined"
    table = Table(
        "timers",
        f"Timers: {states[state]}",
        tables.TIMER_COLUMNS + tables.mechanism_columns(views.timer_columns),
        tuple(_row(entry, reading) for entry in page.timers),
        NONE_LIVE if is_empty else NONE_MATCHES,
        command=schedule_command(reading) if is_empty else "",
        pager=tables.pager_of(query, page.total_count),
        filters=_filters(query, states, state, has_targets=views.has_targets),
        note=note,
    )
    return Document("Timers", "Timers", (table,))


def _row(entry: TimerEntry, reading: Reading) -> Row:
    row, views = tables.timer_row(entry, reading), reading.mechanism
    values = zip(views.timer_columns, views.timer_cells(entry), strict=True)
    tone = "warn" if entry.priced_out else ""
    return Row((*row.cells, *(cells.value(column.kind, each, reading.names) for column, each in values)), row.key, tone)


def _filters(query: Query, states: dict[str, str], state: str, *, has_targets: bool) -> tuple[Filter, ...]:
    addresses = ("actor", "target", "payer") if has_targets else ("actor", "payer")
    return (
        Filter("state", "State", state, options=tuple(states.items())),
        *(Filter(name, name.capitalize(), query.text(name), hint="0x…") for name in addresses),
        Filter("from", "From height", query.text("from"), numeric=True),
        Filter("to", "To height", query.text("to"), numeric=True),
    )
