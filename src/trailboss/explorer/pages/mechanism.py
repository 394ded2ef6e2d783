"""The page of the mechanism that chooses among due timers: its rules, its state, its tables, and what it did lately."""

from collections.abc import Sequence
from typing import Final

from trailboss.explorer import cells, tables
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import HALF, Chart, Document, Facts, PageTable, Row, Section, numbers
from trailboss.explorer.links import Query
from trailboss.explorer.page_context import Reading
from trailboss.explorer.text import share_words
from trailboss.model.blocks import Block
from trailboss.model.decisions import DecisionRecord
from trailboss.views.mechanism import base
from trailboss.views.status import MechanismView, mechanism_view, status_facts
from trailboss.views.text import counted

RECENT: Final = 120
SHOWN: Final = 20
PERCENT: Final = 100
CHARGES: Final = {
    "all_first": "all payers of a block before the first fire",
    "in_turn": "each payer when its turn comes",
}
BLOCK_COLUMNS: Final = numbers(
    "Block", "Examined", "Fired", "Used", "Cut-off", "Outranked", "Priced out", "Over cap", "Yet to join"
)


def mechanism(reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page."""
    found, views = mechanism_view(reading.view), reading.mechanism
    sections: list[Section] = [_rules(reading, found), _state(reading, found)]
    own = views.tables(reading.view)
    sections += [_own_table(each, reading, query, name="page" if len(own) == 1 else each.key) for each in own]
    blocks = reading.view.blocks[max(1, reading.height + 1 - RECENT) :]
    sections += [_use(reading, blocks), _blocks(blocks)]
    return Document(views.title, views.title, tuple(sections), subject=cells.badge(found.mechanism))


def _rules(reading: Reading, found: MechanismView) -> Facts:
    rules = reading.view.rules()
    changed = f"{found.mechanism}, {found.first} before" if found.first != found.mechanism else found.mechanism
    joined = f"{counted(found.joined_max, 'due timer')} a block" if found.joined_max else "all due timers at once"
    cap = f"{reading.mechanism.cycles_per_fire(rules):,} cycles, {rules.timer.max_cells_per_fire:,} cells"
    facts = {
        "Mechanism": changed,
        "Timers run": found.delivers.replace("_", " the block's "),
        "Charges": CHARGES[found.charges],
        "A block has": f"{rules.timer_cycles_max():,} cycles for fires",
        "One fire may use": cap,
        "Examines": f"at most {counted(found.examined_max, 'due timer')} a block",
        "Join": joined,
    }
    return cells.facts("rules", "How it chooses", facts, span=HALF)


def _state(reading: Reading, found: MechanismView) -> Facts:
    rows: dict[str, Words] = {
        "After block": cells.block(found.height),
        "Due and waiting": counted(reading.view.due_count(), "timer"),
        **cells.mechanism_facts(status_facts(found), reading.names),
    }
    return cells.facts("state", "Its state", rows, span=HALF)


def _own_table(found: base.Table, reading: Reading, query: Query, *, name: str) -> PageTable:
    def row(at: int) -> Row:
        shown = tables.mechanism_cells(found.columns, found.rows[at], reading.names)
        return Row(shown, "".join(cell.copy or cell.text for content in shown[:3] for cell in content))

    columns, total = tables.mechanism_columns(found.columns), len(found.rows)
    return tables.paged_table(found.key, found.title, columns, total, row, query=query, name=name, empty=found.empty)


def _use(reading: Reading, blocks: Sequence[Block]) -> Chart:
    budget = reading.view.rules().timer_cycles_max() or 1
    used = [round(block.header.timer_cycles_used * PERCENT / budget, 2) for block in blocks]
    mean = share_words(sum(block.header.timer_cycles_used for block in blocks), budget * max(1, len(blocks)))
    label = f"Use of the timer budget in the last {counted(len(blocks), 'block')}, {mean} in the mean."
    heights, note = [block.height for block in blocks], f"percent, {mean} in the mean"
    return Chart("use", "Use of the timer budget", label, heights, [("Use", used)], bars=True, note=note)


def _blocks(blocks: Sequence[Block]) -> PageTable:
    rows = tuple(_block_row(block, block.decisions) for block in reversed(blocks) if block.decisions is not None)
    note = f"of the last {counted(len(blocks), 'block')}, those with due timers"
    empty = "No timer has fallen due lately. A decision record appears here as soon as one does."
    return PageTable("decisions", "Decisions", BLOCK_COLUMNS, rows[:SHOWN], empty, note=note, scrolls=True)


def _block_row(block: Block, record: DecisionRecord) -> Row:
    fired = sum(item.outcome == "fire" for item in record.decided)
    used = cells.text(share_words(record.lane_cycles_used, record.lane_cycles_max), kind="number")
    counts = (record.cut_off, record.outranked, record.priced_out, record.over_cap, record.not_joined)
    shown = (count or None for count in counts)
    return cells.row(block.height, cells.block(block.height), record.examined_count, fired, used, *shown)
