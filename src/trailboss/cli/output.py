"""Printing: tables that fit the terminal, facts in two columns, JSON. Data on stdout, progress and notes on stderr."""

import json
import os
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Final

import typer
from msgspec import Struct
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.views.json_values import to_json_value
from trailboss.views.mechanism.base import Column, Fact, Value, drawn
from trailboss.views.text import SHORT_DIGITS, visible

PIPED_WIDTH: Final = 1_000  # columns where there is no terminal: a pipe cuts nothing off
REFRESH_SECONDS: Final = 0.1  # how often a progress bar moves
WRAPPED_MIN: Final = 29  # least columns of text that is wrapped
DECIMALS: Final = 3  # decimals of a rounded amount
GAP: Final = 2  # columns between two columns of a table

FORMS: Final[tuple[tuple[frozenset[type], bool], ...]] = (
    (frozenset((Hash32, Address)), True),
    (frozenset(), True),
    (frozenset((Hash32,)), False),
    (frozenset(), False),
)
"""Forms of a table from the widest to the tightest: the kinds of ids in full, and whether extra columns stay."""

Cell = str | int | Hash32 | Address | None
"""What a cell holds; a number is shown with separators, so a height is given as text."""


class TableColumn(Struct, frozen=True):
    """One column of a table."""

    heading: str  # its title
    right: bool = False  # whether it is aligned to the right, as numbers are
    extra: bool = False  # whether it is left out where there is no room for everything
    least: int = 0  # least width to which a long text is wrapped; 0 for what is never wrapped


def columns(heads: str) -> tuple[TableColumn, ...]:
    """Return the columns of a table by its head, as ``timer | >gas limit? | data/29``.

    ``>`` aligns to the right, ``?`` leaves out where there is no room, and ``/29`` wraps to 29 or more characters.
    """
    found = []
    for head in heads.split(" | "):
        heading, _, least = head.rstrip("?").lstrip(">").partition("/")
        found.append(TableColumn(heading, right=head[0] == ">", extra=head[-1] == "?", least=int(least or 0)))
    return tuple(found)


def console() -> Console:
    """Return what prints to stdout: without a limit of width unless it is a terminal, or COLUMNS sets one."""
    return _console(stderr=False)


def error_console() -> Console:
    """Return what prints to stderr."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    found = Console(stderr=stderr, highlight=False)
    if found.is_terminal or "COLUMNS" in os.environ:
        return found
    return Console(stderr=stderr, highlight=False, width=PIPED_WIDTH)


def note(text: str) -> None:
    """Print a remark that is not data."""
    typer.echo(text, err=True)


def print_json(document: object) -> None:
    """Print one JSON document, in ASCII: bytes as 0x…, ids in their own text form, amounts in base units."""
    typer.echo(json.dumps(to_json_value(document), indent=2))


def show(document: object, facts: Mapping[str, Cell], *, as_json: bool) -> None:
    """Print a JSON document, or facts, one a line."""
    if as_json:
        print_json(document)
    else:
        print_facts(facts)


def drawn_facts(facts: Iterable[Fact]) -> dict[str, Cell]:
    """Return facts of a mechanism, ready to print."""
    return {fact.label: drawn(fact.kind, fact.value) for fact in facts}


def drawn_table(
    columns: Sequence[Column], rows: Iterable[Sequence[Value]]
) -> tuple[list[TableColumn], list[tuple[Cell, ...]]]:
    """Return columns and rows of a mechanism's table, ready to print."""
    kinds = [column.kind for column in columns]
    shown = [TableColumn(each.title, right=each.right, extra=each.extra, least=each.least) for each in columns]
    return shown, [tuple(map(drawn, kinds, row)) for row in rows]


def short_cby(amount: int) -> str:
    """Return base units as CBY with three decimals, the rest cut off; also Jain's index, in billionths.

    >>> short_cby(1_234_567_890_123), short_cby(10**9), short_cby(999_999_999), short_cby(999_999)
    ('1,234.567', '1.000', '0.999', '0.000')
    """
    whole, part = divmod(amount, BASE_UNITS_PER_CBY)
    return f"{whole:,}.{f'{part:09}'[:DECIMALS]}"


def note_rest(shown: int, total: int) -> None:
    """Print how much of a list is left out, if any is."""
    if shown < total:
        note(f"these are the first {shown:,} of {total:,}; --limit 0 shows all")


def print_table(title: str, columns: Sequence[TableColumn], rows: Sequence[Sequence[Cell]]) -> None:
    """Print rows as a table, in the widest form that fits: whole ids, shortened ids, fewer columns."""
    printer = console()
    lines = [] if printer.is_terminal else _plain_lines(columns, rows, printer.width)
    if lines:
        typer.echo("\n".join(lines))
        return
    table = fitting_table(printer, title if printer.is_terminal else "", columns, rows)
    if printer.is_terminal:
        printer.print(table)
        return
    with printer.capture() as captured:
        printer.print(table)
    # Only a terminal's colours need the blanks that fill the lines up.
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def print_section(title: str, columns: Sequence[TableColumn], rows: Sequence[Sequence[Cell]], limit: int = 0) -> None:
    """Print a table among others, below its title also in a pipe; at most ``limit`` rows if it is not 0."""
    if rows:
        shown = rows[: limit or None]
        typer.echo("" if console().is_terminal else f"\n{title}")
        print_table(title, columns, shown)
        note_rest(len(shown), len(rows))


def fitting_table(
    printer: Console, title: str, columns: Sequence[TableColumn], rows: Sequence[Sequence[Cell]]
) -> Table:
    """Return rows as a table, in the widest form that fits."""
    unbounded = printer.options.update(width=PIPED_WIDTH)
    tables = [_table(title, columns, rows, whole=whole, with_extra=with_extra) for whole, with_extra in FORMS]
    fitting = (table for table in tables if Measurement.get(printer, unbounded, table).minimum <= printer.width)
    return next(fitting, tables[-1])


def _plain_lines(columns: Sequence[TableColumn], rows: Sequence[Sequence[Cell]], width: int) -> list[str]:
    """Return the lines of a table in the widest form that fits, or none if text in it must be wrapped.

    These are the lines of `_table`, a hundred times as fast: a list may have a row for each of 100,000 timers.
    """
    for whole, with_extra in FORMS:
        shown = [index for index, column in enumerate(columns) if with_extra or not column.extra]
        cells = [[columns[index].heading, *shortened([row[index] for row in rows], whole)] for index in shown]
        if any("\n" in text for column in cells for text in column):
            return []
        widths = [max(map(cell_len, column)) for column in cells]
        gaps = GAP * (len(shown) - 1)
        if sum(widths) + gaps <= width:
            aligned = [
                _aligned(column, size, right=columns[index].right)
                for index, column, size in zip(shown, cells, widths, strict=True)
            ]
            return [(" " * GAP).join(line).rstrip() for line in zip(*aligned, strict=True)]
        wrapped = [
            min(size, max(columns[index].least or size, len(columns[index].heading)))
            for index, size in zip(shown, widths, strict=True)
        ]
        if sum(wrapped) + gaps <= width:
            return []
    return []


def _aligned(texts: list[str], width: int, *, right: bool) -> Iterator[str]:
    for text in texts:
        blanks = " " * (width - cell_len(text))
        yield blanks + text if right else text + blanks


def _table(
    title: str,
    columns: Sequence[TableColumn],
    rows: Sequence[Sequence[Cell]],
    *,
    whole: frozenset[type],
    with_extra: bool,
) -> Table:
    table = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD if title else None,
        pad_edge=False,
        padding=(0, GAP, 0, 0),
    )
    shown = [index for index, column in enumerate(columns) if with_extra or not column.extra]
    cut = {index: shortened([row[index] for row in rows], whole) for index in shown}
    for index in shown:
        column = columns[index]
        longest = max(map(len, cut[index]))
        narrowest = min(column.least or longest, longest)
        table.add_column(
            column.heading,
            justify="right" if column.right else "left",
            no_wrap=not column.least,
            min_width=max(len(column.heading), narrowest),
            overflow="fold" if column.least else "ellipsis",
        )
    for position, _ in enumerate(rows):
        table.add_row(*(Text(cut[index][position]) for index in shown))
    return table


def shortened(cells: Sequence[Cell], whole: frozenset[type] = frozenset()) -> list[str]:
    """Return the text of a column's cells, ids cut to the digits that distinguish them; ``whole`` ones are not cut."""
    ids = {str(cell) for cell in cells if type(cell) in (Hash32, Address) and type(cell) not in whole}
    digits = SHORT_DIGITS
    while len({text[: 2 + digits] for text in ids}) < len(ids):
        digits += 1
    return [_cell_text(cell, digits if str(cell) in ids else 0) for cell in cells]


def _cell_text(cell: Cell, digits: int) -> str:
    if cell is None:
        return "·"
    text = f"{cell:,}" if isinstance(cell, int) else visible(str(cell))
    return f"{text[: 2 + digits]}…" if digits else text


def print_facts(facts: Mapping[str, Cell]) -> None:
    """Print facts, one a line: label and value."""
    print_pairs(console(), [(label, str(value)) for label, value in facts.items() if value is not None])


def print_pairs(printer: Console, pairs: Sequence[tuple[str, str]], indent: str = "") -> None:
    """Print labels and values, one pair a line; a value that is too long goes on in the next line, below itself."""
    width = max((len(label) for label, _ in pairs), default=0)
    margin = " " * (len(indent) + width + 2)
    for label, value in pairs:
        room = max(printer.width - len(margin), WRAPPED_MIN)
        lines = textwrap.wrap(visible(value), room, break_long_words=False, break_on_hyphens=False) or [""]
        text = Text(f"{indent}{label:{width}}  ", style="bold")
        text.append(f"\n{margin}".join(lines), style="not bold")
        printer.print(text, soft_wrap=True)


@contextmanager
def progress(label: str, total: int | None, *, quiet: bool = False) -> Iterator["Advance"]:
    """Show a bar on stderr during something long, if that is a terminal; without a total if that is None."""
    shown = error_console()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=shown, transient=True, disable=quiet or not shown.is_terminal)
    with bar:
        yield Advance(bar, bar.add_task(label, total=total))


class Advance:
    """Counts the steps of something long; there may be millions, so the bar moves only now and then."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar = bar
        self._task = task
        self._steps = 0
        self._shown_at = monotonic()

    def __call__(self, _step: object = None) -> None:
        """Count one step."""
        self._steps += 1
        now = monotonic()
        if now - self._shown_at >= REFRESH_SECONDS:
            self._bar.advance(self._task, self._steps)
            self._steps, self._shown_at = 0, now
