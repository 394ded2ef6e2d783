"""What the writer looks up while it gathers rows. The tables are the truth; some of them is kept in memory."""

from collections.abc import Iterable, Iterator
from itertools import islice
from sqlite3 import Connection
from typing import Any, Final

from trailboss.primitives.bounded import BoundedDict

REMEMBERED_MAX: Final = 1 << 17  # most addresses, or names, that are kept
ASKED_MAX: Final = 400  # timers of one query; SQLite took no more than 999 values until 3.32


class Lookups:
    """Numbers of addresses and names, and timers by id."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.addresses: BoundedDict[bytes, int] = BoundedDict(REMEMBERED_MAX)
        self._names: BoundedDict[str, int] = BoundedDict(REMEMBERED_MAX)

    def forget(self) -> None:
        """Forget everything: rows have been taken back."""
        self.addresses.clear()
        self._names.clear()

    def address(self, address: bytes, height: int) -> int:
        """Return the number of an address; a new one has first been named at a height."""
        number = self.addresses.get(address)
        if number is None:
            octets = bytes(address)
            row = self._row("SELECT number FROM addresses WHERE address = ?", octets)
            number = row[0] if row else self._insert("addresses (address, first) VALUES (?, ?)", octets, height)
            self.addresses[octets] = number
        return number

    def name(self, name: str) -> int:
        """Return the number of an event's or a handler's name."""
        number = self._names.get(name)
        if number is None:
            row = self._row("SELECT number FROM names WHERE name = ?", name)
            number = row[0] if row else self._insert("names (name) VALUES (?)", name)
            self._names[name] = number
        return number

    def timers(self, ids: Iterable[bytes]) -> Iterator[Any]:
        """Yield id, at, height, root and generation of timers that have rows; of one id the last one comes last."""
        rest = iter(ids)
        while asked := list(islice(rest, ASKED_MAX)):
            places = ",".join("?" * len(asked))
            query = f"SELECT id, at, height, root, generation FROM timers WHERE id IN ({places}) ORDER BY at"
            yield from self._connection.execute(query, asked)

    def descendants(self, root: int) -> int:
        """Return how many timers descend from the first one of a line."""
        row = self._row("SELECT place FROM timers WHERE root = ? ORDER BY place DESC LIMIT 1", root)
        return row[0] if row else 0

    def _row(self, query: str, value: object) -> Any:
        return self._connection.execute(query, (value,)).fetchone()

    def _insert(self, into: str, *values: object) -> int:
        return self._connection.execute(f"INSERT INTO {into}", values).lastrowid or 0
