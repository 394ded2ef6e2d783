"""Reading lists: how many postings they have within bounds, and a page of several of them in one order."""

from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import Any, Final, NamedTuple

from trailboss.index.schema import after

PAGE_MAX: Final = 10_000
"""Most items of one page."""
OFFSET_MAX: Final = 2**62
NEWEST_FIRST: Final = "item DESC"
OLDEST_FIRST: Final = "item"
BY_HEIGHT: Final = "item, about"
"""For live timers, whose item is a height and no coordinate."""


class Bounds(NamedTuple):
    """Coordinates from the first one up to, and without, the second one."""

    low: int
    high: int


class Window(NamedTuple):
    """Which part of an answer is asked for, and of which height it is to be.

    Attributes:
        upto: Height.
        offset: Items left out at the beginning.
        limit: Most items.
    """

    upto: int
    offset: int
    limit: int

    @property
    def bounds(self) -> Bounds:
        """All coordinates up to its height."""
        return Bounds(0, after(self.upto))

    @property
    def part(self) -> tuple[int, int]:
        """Most rows, and rows left out, as queries take them."""
        return max(min(self.limit, PAGE_MAX), 0), max(min(self.offset, OFFSET_MAX), 0)


class Source(NamedTuple):
    """A query for the columns ``item`` and ``about``, and how many rows it has.

    Attributes:
        query: Without an order; what it reads is called ``here``, and it ends in a condition.
        values: Its values.
        size: How many rows there are.
    """

    query: str
    values: tuple[object, ...]
    size: int


class Condition(NamedTuple):
    """What must hold of a row: an expression over ``here.item`` and ``here.about``, and its values."""

    expression: str
    values: tuple[object, ...]


def list_size(connection: Connection, number: int, bounds: Bounds) -> int:
    """Return how many postings a list has within bounds. Complexity: O(log n)."""
    if bounds.high <= bounds.low:
        return 0
    return _count_below(connection, number, bounds.high) - _count_below(connection, number, bounds.low)


def _count_below(connection: Connection, number: int, bound: int) -> int:
    query = "SELECT number FROM postings WHERE list = ? AND item < ? ORDER BY item DESC LIMIT 1"
    row = connection.execute(query, (number, bound)).fetchone()
    return 0 if row is None else row[0] + 1


def sources(connection: Connection, numbers: Iterable[int], bounds: Bounds) -> list[Source]:
    """Return those of some lists that have postings within bounds."""
    query = "SELECT item, about FROM postings AS here WHERE list = ? AND item >= ? AND item < ?"
    found = ((number, list_size(connection, number, bounds)) for number in numbers)
    return [Source(query, (number, *bounds), size) for number, size in found if size]


def one(item: int, about: int, bounds: Bounds) -> list[Source]:
    """Return a source of one row, if it lies within bounds."""
    if not bounds.low <= item < bounds.high:
        return []
    return [Source("SELECT item, about FROM (SELECT ? AS item, ? AS about) AS here WHERE true", (item, about), 1)]


def is_in(numbers: Sequence[int]) -> Condition:
    """Return the condition that an item stands in one of some lists too."""
    places = ",".join("?" * len(numbers))
    query = f"SELECT true FROM postings AS other WHERE other.list IN ({places}) AND other.item = here.item"
    return Condition(f"EXISTS ({query})", tuple(numbers))


def total(connection: Connection, found: Sequence[Source], conditions: Sequence[Condition] = ()) -> int:
    """Return how many rows sources have that meet all conditions.

    Complexity: O(1) without conditions, else O(rows of the sources).
    """
    if not conditions:
        return sum(source.size for source in found)
    query, values = _joined(found, conditions)
    count: int = connection.execute(f"SELECT count(*) FROM ({query})", values).fetchone()[0] if found else 0
    return count


def page(
    connection: Connection,
    found: Sequence[Source],
    window: Window,
    conditions: Sequence[Condition] = (),
    *,
    order: str = NEWEST_FIRST,
) -> Iterator[Any]:
    """Yield a page of the rows of sources that meet all conditions: item and about.

    Complexity: O(offset + limit) rows of the sources, and those before them that do not meet the conditions.
    """
    if not found:
        return iter(())
    query, values = _joined(found, conditions)
    return connection.execute(f"{query} ORDER BY {order} LIMIT ? OFFSET ?", (*values, *window.part))


def _joined(found: Sequence[Source], conditions: Sequence[Condition]) -> tuple[str, tuple[object, ...]]:
    """Return one query for the rows of all sources, and its values."""
    queries, values = [], []
    for source in found:
        queries.append(" AND ".join((source.query, *(condition.expression for condition in conditions))))
        values += [*source.values, *(value for condition in conditions for value in condition.values)]
    return " UNION ALL ".join(queries), tuple(values)
