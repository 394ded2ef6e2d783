"""An actor's recurring timers and their last runs, as its own slots and events have them."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from trailboss.explorer import cells
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import HALF, PageTable, Row, Section, bare, columns, numbers
from trailboss.explorer.page_context import Reading
from trailboss.index import EventFilter, read_events
from trailboss.primitives.octets import Address
from trailboss.recurrence import RUN_EVENT
from trailboss.views.schedules import LOST, PAUSED, RunView, ScheduleView, runs_of, schedules_of

SCHEDULES_SHOWN: Final = 20
RUNS_SHOWN: Final = 10
COLUMNS: Final = (
    bare("Schedule")
    + numbers("Every, blocks")
    + bare("Align", "Handler", "Next run")
    + numbers("Ok", "Failed", "Missed", "Skipped")
)
RUN_COLUMNS: Final = (
    numbers("Block")
    + bare("Schedule")
    + numbers("Slot", "Late", "Attempt", "Missed")
    + bare("Outcome")
    + columns("Why", wide=True)
)
TONES: Final = {"ok": "good", "retried": "warn", "failed": "bad", "missed": "warn", "skipped": "warn"}
"""How an outcome looks."""


def schedule_sections(reading: Reading, actor: Address) -> Iterator[Section]:
    """Yield the tables of an actor's recurring timers and of their last runs, if it has any."""
    found = list(islice(schedules_of(reading.view, actor), SCHEDULES_SHOWN + 1))
    if not found:
        return
    rows = tuple(_row(each, reading) for each in found[:SCHEDULES_SHOWN])
    note = f"the first {SCHEDULES_SHOWN} by name" if len(found) > SCHEDULES_SHOWN else "by its own record"
    yield PageTable("schedules", "Recurring timers", COLUMNS, rows, note=note, span=HALF)
    wanted = EventFilter(name=RUN_EVENT, emitter=actor)
    places = reading.node.index.events(wanted, reading.height, 0, RUNS_SHOWN, newest_first=True).items
    runs = runs_of(read_events(reading.view.blocks, places))
    shown = tuple(_run_row(number, each) for number, each in enumerate(runs))
    yield PageTable("runs", "Their last runs", RUN_COLUMNS, shown, "None of them has run yet.", span=HALF)


def _row(each: ScheduleView, reading: Reading) -> Row:
    following: Words = cells.badge(each.state, "bad" if each.state == LOST else "warn")
    if each.due is not None and each.state != PAUSED:
        attempt = f", attempt {each.attempt}" if each.attempt > 1 else ""
        following = cells.line(cells.future(each.due, now=reading.height), attempt, " ", cells.timer(each.timer_id))
    names = cells.said(each.name), each.blocks, cells.said(each.align), cells.said(each.handler)
    tone = "bad" if each.state == LOST else ""
    return cells.row(each.name, *names, following, each.ok, each.failed, each.missed, each.skipped, tone=tone)


def _run_row(number: int, each: RunView) -> Row:
    name, slot, why = cells.said(each.name), cells.height(each.slot), cells.said(each.why) if each.why else None
    outcome = cells.badge(each.outcome, TONES[each.outcome]) if each.outcome in TONES else cells.said(each.outcome)
    block = cells.block(each.block_height)
    return cells.row(
        f"{each.block_height}.{number}", block, name, slot, each.late, each.attempt, each.missed, outcome, why
    )
