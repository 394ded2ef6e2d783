"""What going back has to take back and does not find by coordinate, a row for every block that is not quiet."""

from collections.abc import Iterator
from sqlite3 import Connection
from typing import Final

import msgspec

Amount = int | bytes
"""As it is stored."""


class Changes(msgspec.Struct, array_like=True):
    """What a block has changed that cannot be told by coordinates.

    Attributes:
        day: Of its timestamp, since 1970.
        lists: That it has added to, by number.
        spend: Payer, origin, runs, burned, tips and refunds.
        moved: Timers by coordinate, and the height at which they were due before.
    """

    day: int
    lists: list[int]
    spend: list[tuple[int, int, int, Amount, Amount, Amount]]
    moved: list[tuple[int, Amount]]


_decoder: Final = msgspec.msgpack.Decoder(Changes)


def write_changes(connection: Connection, height: int, changes: Changes) -> None:
    """Write what a block has changed."""
    connection.execute("INSERT INTO journal VALUES (?, ?)", (height, msgspec.msgpack.encode(changes)))


def changes_after(connection: Connection, height: int) -> Iterator[Changes]:
    """Yield what the blocks above a height have changed, the last one first."""
    query = "SELECT changes FROM journal WHERE height > ? ORDER BY height DESC"
    for (octets,) in connection.execute(query, (height,)):
        yield _decoder.decode(octets)
