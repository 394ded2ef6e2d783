"""A page as data: what a page's function returns and the renderer draws. Every text in here is shown as text."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

FULL: Final = "full"
HALF: Final = "half"
THIRD: Final = "third"
TWO_THIRDS: Final = "wide"


class Cell(Struct, frozen=True):
    """A piece of text.

    Attributes:
        text: What is shown.
        href: Path on this node that it leads to.
        copy: What its copy button copies; empty for no button.
        note: Shown on hover: the whole of what is shortened, or base units.
        kind: Its style: ``mono``, ``dim``, ``good``, ``warn``, ``bad``, ``badge`` and such, separated by spaces.
    """

    text: str
    href: str = ""
    copy: str = ""
    note: str = ""
    kind: str = ""


Content = tuple[Cell, ...]
"""Cells in one line, or in one cell of a table."""


class Options(Struct, frozen=True, kw_only=True):
    """What every section may have: words, a link and a copied text beside its heading, and its share of the width."""

    note: str = ""
    more: Cell | None = None
    copy: str = ""
    span: str = FULL


class Section(Options, frozen=True):
    """A part of a page, with a key that is unique there and a heading, which may be empty."""

    key: str
    title: str


class Fact(Struct, frozen=True):
    """A label and what there is to say about it."""

    label: str
    content: Content


class Facts(Section, frozen=True):
    """Facts below one another."""

    rows: tuple[Fact, ...]


class Column(Struct, frozen=True):
    """A column of a table.

    Attributes:
        label: Its heading.
        right: Whether it is aligned to the right, as numbers are.
        wide: Whether it takes the room that is left and wraps its text.
        bare: Whether it needs no heading where a row is drawn as a card.
    """

    label: str
    right: bool = False
    wide: bool = False
    bare: bool = False


def columns(*labels: str, wide: bool = False) -> tuple[Column, ...]:
    """Return columns of words."""
    return tuple(Column(label, wide=wide) for label in labels)


def numbers(*labels: str) -> tuple[Column, ...]:
    """Return columns of numbers."""
    return tuple(Column(label, right=True) for label in labels)


def bare(*labels: str, wide: bool = False) -> tuple[Column, ...]:
    """Return columns that need no heading on a card."""
    return tuple(Column(label, wide=wide, bare=True) for label in labels)


class Row(Struct, frozen=True):
    """A row of a table: a content for each column, a key that outlives a refresh, and a tone such as ``bad``."""

    cells: tuple[Content, ...]
    key: str
    tone: str = ""


class Pager(Struct, frozen=True):
    """Which part of a long list is shown, and the paths of other parts; a path is empty where there is none."""

    words: str
    first: str = ""
    previous: str = ""
    following: str = ""
    last: str = ""


class Filter(Struct, frozen=True):
    """A field above a table for a parameter of the query: to type into, or with (value, label) to choose from."""

    name: str
    label: str
    value: str = ""
    options: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    numeric: bool = False


class Table(Section, frozen=True):
    """Rows below columns.

    Attributes:
        columns: In order.
        rows: Those of this page alone.
        empty: What is shown if there are none, with a ``command`` to try.
        pager: Shown if there may be more rows than these.
        filters: Fields of a form that chooses among all.
        scrolls: Whether it scrolls sideways on a narrow screen; otherwise each row becomes a card there.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    empty: str = ""
    command: str = ""
    pager: Pager | None = None
    filters: tuple[Filter, ...] = ()
    scrolls: bool = False


Series = tuple[str, Sequence[int | float | None]]
"""A name and its values, None for a gap."""


class Chart(Section, frozen=True):
    """Values by height or by day, as lines or as bars that stand on one another.

    Attributes:
        label: What it shows, in a sentence.
        points: Labels of the horizontal axis.
        series: One value for each point.
        bars: Whether values are bars.
    """

    label: str
    points: Sequence[int | str]
    series: Sequence[Series]
    bars: bool = False


class HeatCell(Struct, frozen=True):
    """Some heights of the calendar, how many timers are due there, and a colour from 0 for none to 6."""

    first: int
    last: int
    count: int
    level: int


class HeatMap(Section, frozen=True):
    """Counts by height, as a grid of cells that lead to the timers of these heights.

    Attributes:
        columns: Cells in a row.
        cells: Row by row.
        scale: Levels and what they stand for.
        now: Height that is marked.
    """

    columns: int
    cells: tuple[HeatCell, ...]
    scale: tuple[tuple[int, str], ...]
    now: int


class Code(Section, frozen=True):
    """Source text, the number of its first line, and the numbers of lines that stand out."""

    lines: tuple[str, ...]
    first: int = 1
    marked: tuple[int, ...] = ()


class Step(Struct, frozen=True):
    """When something happened, and what."""

    when: Content
    content: Content
    tone: str = ""


class Steps(Section, frozen=True):
    """What happened, in order."""

    steps: tuple[Step, ...]
    pager: Pager | None = None


class Notice(Section, frozen=True):
    """An alert, or why there is nothing to see and what to do."""

    content: Content = ()
    tone: str = ""


class Stat(Struct, frozen=True):
    """A number with its name, a few words about it, and how full something is in percent, None for no bar."""

    label: str
    content: Content
    hint: Content = ()
    share: int | None = None


class Stats(Section, frozen=True):
    """Numbers beside one another."""

    items: tuple[Stat, ...]


class Document(Struct, frozen=True):
    """A page: the window's title, its heading, its sections, what it is about, and its HTTP status."""

    title: str
    heading: str
    sections: tuple[Section, ...]
    subject: Content = ()
    status: int = 200
