"""What the writer looks up while it puts blocks into rows, each once: numbers, sizes of lists, timers, spending.

The tables are the truth and this remembers some of it, so it forgets everything when rows are taken back.
"""

from collections.abc import Iterable
from itertools import islice
from sqlite3 import Connection
from typing import Any, Final

from msgspec import Struct

from trailboss.index.schema import ALL_ROLES, PREFIX_WIDTH, Role, loaded

REMEMBERED_MAX: Final = 1 << 17
"""Most entries of one kind that are remembered; one more, and all of that kind are forgotten."""
ASKED_MAX: Final = 400
"""Timers asked for at once; SQLite took no more than 999 values until 3.32."""
SPEND_COLUMNS: Final = 4
"""Runs, burned, tips and refunds."""

SpendKey = tuple[int, int, int]
"""Payer, origin and day."""


class TimerFacts(Struct):
    """What the rows of a timer follow from.

    Attributes:
        coordinate: Of the event that scheduled it.
        actor: Number of its owner.
        target: Number of the actor whose handler it calls.
        payer: Number of who pays.
        height: At which it is due, as it is stored.
        root: The first timer of its line; None for itself.
        generation: Fires between it and the beginning of its lineage.
        ended: Coordinate of the event that ended it.
        ending: How.
        reverted: Whether by a fire that reverted.
        is_new: Whether it has no row yet.
    """

    coordinate: int
    actor: int
    target: int
    payer: int
    height: int | bytes
    root: int | None
    generation: int
    ended: int | None = None
    ending: int | None = None
    reverted: bool = False
    is_new: bool = False

    def parties(self) -> Iterable[tuple[int, int]]:
        """Return the number of each address that has to do with it, and the sum of its roles."""
        if self.actor == self.target == self.payer:
            return ((self.actor, ALL_ROLES),)
        return parties(self.actor, self.target, self.payer)


def parties(actor: int, target: int, payer: int) -> Iterable[tuple[int, int]]:
    """Return each of the addresses, and the sum of its roles."""
    roles = {actor: int(Role.ACTOR)}
    roles[target] = roles.get(target, 0) | Role.TARGET
    roles[payer] = roles.get(payer, 0) | Role.PAYER
    return roles.items()


class Book:
    """What has been looked up.

    Attributes:
        addresses: Numbers of addresses, those that are remembered.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.addresses: dict[bytes, int] = {}
        self._names: dict[str, int] = {}
        self._sizes: dict[int, int] = {}
        self._spend: dict[SpendKey, list[int]] = {}
        self._spent: dict[int, int] = {}

    def forget(self) -> None:
        """Forget everything."""
        for remembered in (self.addresses, self._names, self._sizes, self._spend, self._spent):
            remembered.clear()

    def address(self, address: bytes, height: int) -> int:
        """Return the number of an address; a new one has first been seen at a height."""
        number = self.addresses.get(address)
        if number is None:
            plain = bytes(address)
            row = self._row("SELECT number FROM addresses WHERE address = ?", plain)
            number = row[0] if row is not None else self._insert("addresses (address, first)", plain, height)
            _remember(self.addresses, plain, number)
        return number

    def name(self, name: str) -> int:
        """Return the number of an event's or a handler's name."""
        number = self._names.get(name)
        if number is None:
            row = self._row("SELECT number FROM names WHERE name = ?", name)
            number = row[0] if row is not None else self._insert("names (name)", name)
            _remember(self._names, name, number)
        return number

    def grow(self, number: int, count: int) -> int:
        """Return how many postings a list has, before it gets so many more."""
        size = self._sizes.get(number)
        if size is None:
            row = self._row("SELECT number FROM postings WHERE list = ? ORDER BY item DESC LIMIT 1", number)
            size = 0 if row is None else row[0] + 1
        _remember(self._sizes, number, size + count)
        return size

    def spend(self, key: SpendKey) -> list[int]:
        """Return what a payer has spent on an origin in a day: runs, burned, tips, refunds. It may be changed."""
        spent = self._spend.get(key)
        if spent is None:
            query = "SELECT runs, burned, tips, refunds FROM spend WHERE payer = ? AND origin = ? AND day = ?"
            row = self._row(query, *key)
            spent = [0] * SPEND_COLUMNS if row is None else [loaded(value) for value in row]
            _remember(self._spend, key, spent)
        return spent

    def add_spent(self, payer: int, fees: int) -> int:
        """Add to what a payer has spent on timers in all, and return the sum."""
        spent = self._spent.get(payer)
        if spent is None:
            row = self._row("SELECT spent FROM payers WHERE payer = ?", payer)
            spent = 0 if row is None else loaded(row[0])
        _remember(self._spent, payer, spent + fees)
        return spent + fees

    def timers(self, ids: Iterable[bytes]) -> dict[bytes, TimerFacts]:
        """Return the timers of some ids that have rows; of several of one id the last one."""
        found: dict[bytes, TimerFacts] = {}
        rest = iter(ids)
        while asked := list(islice(rest, ASKED_MAX)):
            query = (
                "SELECT coordinate, actor, target, payer, height, root, generation, id FROM timers "
                f"WHERE substr(id, 1, 8) IN ({','.join('?' * len(asked))})"
            )
            for row in self._connection.execute(query, [identity[:PREFIX_WIDTH] for identity in asked]):
                # Only the beginnings of ids have been looked up, so there may be others among them.
                other = found.get(row[-1])
                if other is None or other.coordinate < row[0]:
                    found[row[-1]] = TimerFacts(*row[:-1])
        return found

    def _row(self, query: str, *values: object) -> Any:
        return self._connection.execute(query, values).fetchone()

    def _insert(self, into: str, *values: object) -> int:
        places = ",".join("?" * len(values))
        number = self._connection.execute(f"INSERT INTO {into} VALUES ({places})", values).lastrowid
        return number or 0


def _remember(memory: dict[Any, Any], key: object, value: object) -> None:
    if len(memory) >= REMEMBERED_MAX:
        memory.clear()
    memory[key] = value
