"""Printing: tables that fit the terminal, facts in two columns, JSON. Data on stdout, progress and notes on stderr."""

import json
import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

import typer

from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.views.json_values import to_json_value
from trailboss.views.labels import labelled, labels_in_use
from trailboss.views.mechanism.base import Column, Fact, Value, ValueKind, drawn
from trailboss.views.text import SHORT_DIGITS, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPED_WIDTH: Final = 1_000  # columns where there is no terminal: a pipe cuts nothing off
REFRESH_SECONDS: Final = 0.1  # how often a progress bar moves
PACE_SECONDS: Final = 3_600  # of the past from which the time that is left is estimated
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
Form = list[tuple[Column, list[str]]]  # the columns of a table that are shown, with their texts


def columns(heads: str) -> tuple[Column, ...]:
    """Return the columns of a table by its head, as ``timer | >gas limit? | data/29``.

    ``>`` aligns to the right, ``?`` leaves out where there is no room, and ``/29`` wraps to 29 or more characters.
    """
    found = []
    for head in heads.split(" | "):
        title, _, least = head.rstrip("?").lstrip(">").partition("/")
        kind = ValueKind.NUMBER if head.startswith(">") else ValueKind.TEXT
        found.append(Column(title, title, kind, extra=head.endswith("?"), least=int(least or 0)))
    return tuple(found)


def console(*, stderr: bool = False) -> "Console":
    """Return what prints: without a limit of width unless it is a terminal, or COLUMNS sets one."""
    from rich.console import Console  # noqa: PLC0415

    found = Console(stderr=stderr, highlight=False)
    is_bounded = found.is_terminal or "COLUMNS" in os.environ
    return found if is_bounded else Console(stderr=stderr, highlight=False, width=PIPED_WIDTH)


def note(text: str) -> None:
    """Print a remark that is not data."""
    typer.echo(text, err=True)


def print_json(document: object) -> None:
    """Print one JSON document, in ASCII: bytes as 0x…, ids in their own text form, amounts in base units."""
    typer.echo(json.dumps(to_json_value(document), indent=2))


def drawn_facts(facts: Iterable[Fact]) -> dict[str, Cell]:
    """Return facts of a mechanism, ready to print."""
    return {fact.label: drawn(fact.kind, fact.value) for fact in facts}


def drawn_rows(columns: Sequence[Column], rows: Iterable[Sequence[Value]]) -> list[tuple[Cell, ...]]:
    """Return the rows of a mechanism's table, ready to print."""
    kinds = [column.kind for column in columns]
    return [tuple(map(drawn, kinds, row)) for row in rows]


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


def print_table(title: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], empty: str = "") -> None:
    """Print rows as a table in the widest form that fits: whole ids, shortened ids, fewer columns.

    Without rows it prints the remark ``empty``, if there is one.
    """
    if empty and not rows:
        note(empty)
        return
    printer = console()
    if printer.is_terminal:
        printer.print(fitting_table(printer, title, columns, rows))
        return
    lines = _plain_lines(columns, rows, printer.width)
    if not lines:
        with printer.capture() as captured:
            printer.print(fitting_table(printer, "", columns, rows))
        # Only a terminal's colours need the blanks that fill the lines up.
        lines = [line.rstrip() for line in captured.get().splitlines()]
    typer.echo("\n".join(lines))


def print_section(title: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], limit: int = 0) -> None:
    """Print a table among others, below its title also in a pipe; at most ``limit`` rows if it is not 0."""
    if rows:
        shown = rows[: limit or None]
        typer.echo("" if console().is_terminal else f"\n{title}")
        print_table(title, columns, shown)
        note_rest(len(shown), len(rows))


def fitting_table(printer: "Console", title: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> "Table":
    """Return rows as a table, in the widest form that fits."""
    from rich.measure import Measurement  # noqa: PLC0415

    unbounded = printer.options.update(width=PIPED_WIDTH)
    tables = [_table(title, form) for form in _forms(columns, rows)]
    fitting = (table for table in tables if Measurement.get(printer, unbounded, table).minimum <= printer.width)
    return next(fitting, tables[-1])


def _forms(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> Iterator[Form]:
    """Yield a table in each of its forms, the widest first."""
    for whole, with_extra in FORMS:
        shown = [index for index, column in enumerate(columns) if with_extra or not column.extra]
        yield [(columns[index], shortened([row[index] for row in rows], whole)) for index in shown]


def _plain_lines(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int) -> list[str]:
    """Return the lines of a table in the widest form that fits, or none if text in it must be wrapped.

    These are the lines of `_table`, a hundred times as fast: a list may have a row for each of 100,000 timers.
    """
    from rich.cells import cell_len  # noqa: PLC0415  # rich comes where it prints: help does without it

    def aligned(text: str, width: int, *, right: bool) -> str:
        blanks = " " * (width - cell_len(text))
        return blanks + text if right else text + blanks

    for form in _forms(columns, rows):
        cells = [[column.title, *texts] for column, texts in form]
        if any("\n" in text for texts in cells for text in texts):
            return []
        widths = [max(map(cell_len, texts)) for texts in cells]
        room = width - GAP * (len(form) - 1)
        if sum(widths) <= room:
            lists = [
                [aligned(text, size, right=column.right) for text in texts]
                for (column, _), texts, size in zip(form, cells, widths, strict=True)
            ]
            return [(" " * GAP).join(line).rstrip() for line in zip(*lists, strict=True)]
        sizes = zip(form, widths, strict=True)
        if sum(min(size, max(column.least or size, len(column.title))) for (column, _), size in sizes) <= room:
            return []
    return []


def _table(title: str, form: Form) -> "Table":
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD if title else None,
        pad_edge=False,
        padding=(0, GAP, 0, 0),
    )
    for column, texts in form:
        longest = max(map(len, texts))
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=not column.least,
            min_width=max(len(column.title), min(column.least or longest, longest)),
            overflow="fold" if column.least else "ellipsis",
        )
    for row in zip(*(texts for _, texts in form), strict=True):
        table.add_row(*map(Text, row))
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
    if type(cell) in (Hash32, Address) and labels_in_use().get(cell):  # type: ignore[arg-type]  # those are bytes
        return labels_in_use().short(cell)  # type: ignore[arg-type]
    text = f"{cell:,}" if isinstance(cell, int) else visible(str(cell))
    return f"{text[: 2 + digits]}…" if digits else text


def print_facts(facts: Mapping[str, Cell]) -> None:
    """Print facts, one a line: label and value."""
    print_pairs(console(), [(label, str(value)) for label, value in facts.items() if value is not None])


def print_pairs(printer: "Console", pairs: Sequence[tuple[str, str]], indent: str = "") -> None:
    """Print labels and values, one pair a line; a value that is too long goes on in the next line, below itself."""
    from rich.text import Text  # noqa: PLC0415

    width = max((len(label) for label, _ in pairs), default=0)
    margin = " " * (len(indent) + width + 2)
    for label, value in pairs:
        room = max(printer.width - len(margin), WRAPPED_MIN)
        lines = textwrap.wrap(visible(labelled(value)), room, break_long_words=False, break_on_hyphens=False) or [""]
        text = Text(f"{indent}{label:{width}}  ", style="bold")
        text.append(f"\n{margin}".join(lines), style="not bold")
        printer.print(text, soft_wrap=True)


@contextmanager
def progress(label: str, total: int, *, quiet: bool = False) -> Iterator[Callable[..., None]]:
    """Show a bar on stderr during something long, if that is a terminal, and yield what counts a step of it.

    There may be millions of steps, so the bar moves only now and then.
    """
    from rich import progress as parts  # noqa: PLC0415

    shown = console(stderr=True)
    columns = (parts.TextColumn("{task.description}"), parts.BarColumn(), parts.MofNCompleteColumn())
    steps, shown_at = 0, monotonic()

    def advance(_step: object = None) -> None:
        nonlocal steps, shown_at
        steps += 1
        if monotonic() - shown_at >= REFRESH_SECONDS:
            bar.advance(task, steps)
            steps, shown_at = 0, monotonic()

    with parts.Progress(
        *columns, parts.TimeElapsedColumn(), console=shown, transient=True, disable=quiet or not shown.is_terminal
    ) as bar:
        task = bar.add_task(label, total=total)
        yield advance


@contextmanager
def growing_progress(label: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a bar as `progress` does, with the time left, and yield what sets how many steps are done, and of how many.

    What is done at the first call counts for no pace: it was done before.
    """
    from rich import progress as parts  # noqa: PLC0415

    shown = console(stderr=True)
    columns = (parts.TextColumn("{task.description}"), parts.BarColumn(), parts.MofNCompleteColumn())
    disabled = quiet or not shown.is_terminal
    left = (parts.TimeElapsedColumn(), parts.TextColumn("left"), parts.TimeRemainingColumn())
    with parts.Progress(
        *columns, *left, console=shown, transient=True, disable=disabled, speed_estimate_period=PACE_SECONDS
    ) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
