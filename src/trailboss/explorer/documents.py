"""A page as data: what a page's function returns and the renderer draws. Every text in here is shown as text."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from trailboss.views.trace.tree import TreeNode

FULL: Final = "full"
HALF: Final = "half"
THIRD: Final = "third"
TWO_THIRDS: Final = "wide"


class Cell(Struct, frozen=True):
    """A piece of text."""

    text: str  # what is shown
    href: str = ""  # path on this node that it leads to
    copy: str = ""  # what its copy button copies; empty for no button
    note: str = ""  # shown on hover: the whole of what is shortened, or base units
    kind: str = ""  # its style: ``mono``, ``dim``, ``good``, ``warn``, ``bad``, ``badge`` and such, separated by spaces


Content = tuple[Cell, ...]  # cells in one line, or in one cell of a table


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


class PageFact(Struct, frozen=True):
    """A label and what there is to say about it."""

    label: str
    content: Content


class Facts(Section, frozen=True):
    """Facts below one another."""

    rows: tuple[PageFact, ...]


class PageColumn(Struct, frozen=True):
    """A column of a table."""

    label: str  # its heading
    right: bool = False  # whether it is aligned to the right, as numbers are
    wide: bool = False  # whether it takes the room that is left and wraps its text
    bare: bool = False  # whether it needs no heading where a row is drawn as a card


def columns(*labels: str, **style: bool) -> tuple[PageColumn, ...]:
    """Return columns of one style, without any those of words."""
    return tuple(PageColumn(label, **style) for label in labels)


numbers: Final = partial(columns, right=True)
bare: Final = partial(columns, bare=True)  # columns that need no heading on a card


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


class PageTable(Section, frozen=True):
    """Rows below columns."""

    columns: tuple[PageColumn, ...]  # in order
    rows: tuple[Row, ...]  # those of this page alone
    empty: str = ""  # what is shown if there are none, with a ``command`` to try
    command: str = ""
    pager: Pager | None = None  # shown if there may be more rows than these
    filters: tuple[Filter, ...] = ()  # fields of a form that chooses among all
    scrolls: bool = False  # whether it scrolls sideways on a narrow screen; otherwise each row becomes a card there


Series = tuple[str, Sequence[int | float | None]]  # a name and its values, None for a gap


class Chart(Section, frozen=True):
    """Values by height or by day, as lines or as bars that stand on one another."""

    label: str  # what it shows, in a sentence
    points: Sequence[int | str]  # labels of the horizontal axis
    series: Sequence[Series]  # one value for each point
    bars: bool = False  # whether values are bars


class HeatCell(Struct, frozen=True):
    """Some heights of the calendar, how many timers are due there, and a colour from 0 for none to 6."""

    first: int
    last: int
    count: int
    level: int


class HeatMap(Section, frozen=True):
    """Counts by height, as a grid of cells that lead to the timers of these heights."""

    columns: int  # cells in a row
    cells: tuple[HeatCell, ...]  # row by row
    scale: tuple[tuple[int, str], ...]  # levels and what they stand for
    now: int  # height that is marked


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


class CallTree(Section, frozen=True):
    """Frames and calls below one another, each of which folds and unfolds."""

    root: TreeNode
    filters: tuple[Filter, ...] = ()


class Document(Struct, frozen=True):
    """A page: the window's title, its heading, its sections, what it is about, and its HTTP status."""

    title: str
    heading: str
    sections: tuple[Section, ...]
    subject: Content = ()
    status: int = 200
