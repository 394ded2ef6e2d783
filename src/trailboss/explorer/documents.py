"""A page as data: what a page's function returns, what the browser is sent, and what two refreshes are compared by.

Every text in here is shown as text. Links lead to paths of this node alone.
"""

from typing import Any, Final

import msgspec

FULL: Final = "full"
HALF: Final = "half"
THIRD: Final = "third"
TWO_THIRDS: Final = "wide"


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of text.

    Attributes:
        text: What is shown.
        href: Path that it leads to; empty for none.
        copy: What its copy button puts on the clipboard; empty for no button.
        note: What is told on hover and to screen readers: the whole of what is shortened, or base units.
        kind: How it looks: ``mono``, ``dim``, ``good``, ``warn``, ``bad``, ``badge`` and such, apart by spaces.
    """

    text: str
    href: str = ""
    copy: str = ""
    note: str = ""
    kind: str = ""


Content = tuple[Cell, ...]
"""Cells that stand in one line, or in one cell of a table."""


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A label and what is to be said about it."""

    label: str
    content: Content


class Facts(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="facts"):
    """Facts below one another."""

    key: str
    title: str
    rows: tuple[Fact, ...]
    span: str = FULL


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column of a table.

    Attributes:
        label: Its heading.
        right: Whether it is set to the right, as numbers are.
        wide: Whether it takes the room that is left and its text goes on in the next line.
        bare: Whether it needs no heading where a row stands as a card of its own.
    """

    label: str
    right: bool = False
    wide: bool = False
    bare: bool = False


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row of a table.

    Attributes:
        cells: One content for each column.
        key: What tells it apart from other rows from one refresh to the next.
        tone: ``bad``, ``warn``, ``dim``, ``now`` or nothing.
    """

    cells: tuple[Content, ...]
    key: str
    tone: str = ""


class Pager(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where one is in a long list.

    Attributes:
        words: Which of how many are shown.
        first: Path of the first page; empty if this is it.
        previous: Path of the page before; empty if there is none.
        following: Path of the page after; empty likewise.
        last: Path of the last page; empty if this is it.
    """

    words: str
    first: str = ""
    previous: str = ""
    following: str = ""
    last: str = ""


class Filter(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field of the form above a table.

    Attributes:
        name: Of the query's parameter.
        label: What people see.
        value: What stands in it.
        options: (value, label) to choose from; empty for a field to type into.
        hint: What may be typed.
        numeric: Whether that is a number.
    """

    name: str
    label: str
    value: str = ""
    options: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    numeric: bool = False


class Table(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="table"):
    """Rows below columns.

    Attributes:
        key: Of the section.
        title: Of the section.
        columns: In order.
        rows: Those of this page alone.
        empty: What to say, and what to do, if there are none.
        command: What can be typed then.
        pager: If there may be more than these.
        filters: A form that chooses among all.
        note: Words below the title.
        more: Where there is more of this, with the words of the link.
        scrolls: Whether it scrolls sideways on a narrow screen; otherwise each row stands there as a card.
        span: Of the grid.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    empty: str
    command: str = ""
    pager: Pager | None = None
    filters: tuple[Filter, ...] = ()
    note: str = ""
    more: Cell | None = None
    scrolls: bool = False
    span: str = FULL


class Chart(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="chart"):
    """A chart.

    Attributes:
        key: Of the section.
        title: Of the section.
        label: What it shows, in words, for those who cannot see it.
        options: Of ECharts; colours come from the theme.
        note: Words below the title.
        tall: Whether it is higher than usual.
        span: Of the grid.
    """

    key: str
    title: str
    label: str
    options: dict[str, Any]
    note: str = ""
    tall: bool = False
    span: str = FULL


class HeatCell(msgspec.Struct, frozen=True, array_like=True):
    """Some heights of the calendar. There are many of them, so the browser makes words and links of the numbers.

    Attributes:
        first: Lowest height; as text if a browser's numbers cannot hold it.
        last: Highest height, likewise.
        count: Timers due there.
        level: How hot it is, 0 for none to 6.
    """

    first: int | str
    last: int | str
    count: int
    level: int


class HeatMap(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="heatmap"):
    """Counts by height as a grid of cells that lead to the timers of these heights, row by row.

    Attributes:
        key: Of the section.
        title: Of the section.
        path: Of the list of timers, which takes ``from`` and ``to``.
        columns: Cells in a row.
        cells: Row by row.
        scale: Levels and what they stand for.
        now: Height that is marked.
        note: Words below the title.
        span: Of the grid.
    """

    key: str
    title: str
    path: str
    columns: int
    cells: tuple[HeatCell, ...]
    scale: tuple[tuple[int, str], ...]
    now: int
    note: str = ""
    span: str = FULL


class Code(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="code"):
    """Source text with line numbers.

    Attributes:
        key: Of the section.
        title: Of the section.
        lines: Its lines.
        first: Number of the first of them.
        marked: Numbers of the lines that stand out.
        note: Words below the title.
        copy: What the copy button copies.
        more: Where there is more of this.
        span: Of the grid.
    """

    key: str
    title: str
    lines: tuple[str, ...]
    first: int = 1
    marked: tuple[int, ...] = ()
    note: str = ""
    copy: str = ""
    more: Cell | None = None
    span: str = FULL


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened, or will.

    Attributes:
        when: When, with a link.
        content: What.
        tone: ``good``, ``bad``, ``warn``, ``now`` or nothing.
    """

    when: Content
    content: Content
    tone: str = ""


class Steps(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="steps"):
    """What happened, in order."""

    key: str
    title: str
    steps: tuple[Step, ...]
    note: str = ""
    pager: Pager | None = None
    span: str = FULL


class Notice(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="notice"):
    """Something to know: an alert, or why there is nothing to see and what to do."""

    key: str
    title: str
    content: Content = ()
    tone: str = ""
    span: str = FULL


class Stat(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number with its name, and a few words about it.

    Attributes:
        label: Its name.
        content: The number.
        hint: The words.
        share: How full something is, in percent; None for no bar.
    """

    label: str
    content: Content
    hint: Content = ()
    share: int | None = None


class Stats(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="stats"):
    """Numbers beside one another."""

    key: str
    title: str
    items: tuple[Stat, ...]
    span: str = FULL


Section = Facts | Table | Chart | HeatMap | Code | Steps | Notice | Stats


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page.

    Attributes:
        title: Of the browser's window.
        heading: Of the page.
        sections: In order; the key of each is its own.
        subject: What the page is about: an id with its copy button, badges.
        status: HTTP status.
    """

    title: str
    heading: str
    sections: tuple[Section, ...]
    subject: Content = ()
    status: int = 200


def encoded(part: msgspec.Struct) -> dict[str, Any]:
    """Return a part of a document as JSON has it."""
    found: dict[str, Any] = msgspec.to_builtins(part)
    return found
