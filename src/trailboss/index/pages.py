"""Pages of rows in the order of an index, of several of them merged, with the number of rows in all."""

from collections.abc import Iterable, Sequence
from itertools import chain
from sqlite3 import Connection
from typing import Any, Final, NamedTuple

from trailboss.index.schema import after, loaded

PAGE_MAX: Final = 10_000  # most items of one page
PAGE_LIMIT: Final = 50  # items of a page by default
OFFSET_MAX: Final = 2**62
Conditions = dict[str, tuple[object, ...]]  # what else must hold of a row, each with its values


class Window(NamedTuple):
    """Which part of an answer is wanted, and of which height."""

    upto: int
    offset: int
    limit: int

    @property
    def bound(self) -> int:
        """The first place above its height."""
        return after(self.upto)

    @property
    def part(self) -> tuple[int, int]:
        """Most rows, and rows left out, as queries take them."""
        return max(min(self.limit, PAGE_MAX), 0), max(min(self.offset, OFFSET_MAX), 0)


class Source(NamedTuple):
    """A query in the order of an index, which ends in a condition, its values, and its size, if that is known."""

    query: str
    values: tuple[object, ...]
    size: int | None = None

    def where(self, conditions: Conditions) -> "Source":
        """Return the rows for which other conditions hold too, each with its values."""
        if not conditions:
            return self
        values = (*self.values, *chain.from_iterable(conditions.values()))
        return Source(" AND ".join((self.query, *conditions)), values)


def count(connection: Connection, of: str, number: int, since: Source) -> int:
    """Return how many rows a number of a column has up to a height: the count of all, less those since."""
    row = connection.execute("SELECT count FROM counts WHERE of = ? AND number = ?", (of, number)).fetchone()
    return row[0] - size_of(connection, [since]) if row else 0


def size_of(connection: Connection, sources: Iterable[Source]) -> int:
    """Return how many rows sources have. Complexity: O(1) for a size that is known, else O(rows)."""
    total = 0
    for source in sources:
        if source.size is None:
            query = f"SELECT count(*) FROM ({source.query})"
            total += connection.execute(query, source.values).fetchone()[0]
        else:
            total += source.size
    return total


def page(connection: Connection, sources: Sequence[Source], window: Window, order: str) -> list[Any]:
    """Return a page of the rows of sources, merged. Complexity: O(offset + limit) rows of each."""
    found = [source for source in sources if source.size != 0]
    if not found:
        return []
    query = " UNION ALL ".join(source.query for source in found)
    values = (value for source in found for value in source.values)
    return connection.execute(f"{query} ORDER BY {order} LIMIT ? OFFSET ?", (*values, *window.part)).fetchall()


def number_of(connection: Connection, address: bytes) -> int | None:
    """Return the number of an address; None if no block has named it."""
    row = connection.execute("SELECT number FROM addresses WHERE address = ?", (bytes(address),)).fetchone()
    return None if row is None else row[0]


def address_of(connection: Connection, number: int) -> bytes:
    """Return the address of a number."""
    octets: bytes = connection.execute("SELECT address FROM addresses WHERE number = ?", (number,)).fetchone()[0]
    return octets


def name_number(connection: Connection, name: str) -> int | None:
    """Return the number of an event's name; None if no block has it."""
    row = connection.execute("SELECT number FROM names WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]


def sum_upto(connection: Connection, column: str, height: int) -> int:
    """Return a sum over all blocks up to a height."""
    query = f"SELECT {column} FROM blocks WHERE height <= ? ORDER BY height DESC LIMIT 1"
    row = connection.execute(query, (height,)).fetchone()
    return 0 if row is None else loaded(row[0])
