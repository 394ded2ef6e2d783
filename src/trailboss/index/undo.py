"""Taking blocks back out of the tables.

Decision: D-75
"""

from collections.abc import Sequence
from operator import add
from sqlite3 import Connection
from typing import Any, Final

from trailboss.index.idle_blocks import QuietHashes, hash_prefix
from trailboss.index.journal import Changes, changes_after
from trailboss.index.lookup_cache import SPEND_COLUMNS, Book, parties
from trailboss.index.row_builder import TIMERS
from trailboss.index.schema import (
    ENDING_NUMBERS,
    GREATEST,
    SPAN_BLOCKS,
    Facet,
    after,
    list_of,
    live_list,
    loaded,
    stored,
)

_SUM_UP_AGAIN: Final = (
    f"INSERT INTO spans SELECT height / {SPAN_BLOCKS} AS span, {', '.join(f'max({column})' for column in GREATEST)} "
    "FROM blocks WHERE height BETWEEN ? AND ? GROUP BY span"
)


def take_back(connection: Connection, quiet: QuietHashes, height: int) -> None:
    """Take everything back that blocks above a height have added. Complexity: O(what they hold).

    Args:
        connection: Within a transaction.
        quiet: The hashes of quiet blocks, all written.
        height: Of a block in the index.
    """
    journal = list(changes_after(connection, height))
    _revert_timers(connection, height, journal)
    _revert_spend(connection, journal)
    touched = sorted({number for changes in journal for number in changes.lists})
    bound = after(height)
    connection.executemany("DELETE FROM postings WHERE list = ? AND item >= ?", ((number, bound) for number in touched))
    connection.execute("DELETE FROM transactions WHERE coordinate >= ?", (bound,))
    _revert_blocks(connection, height)
    quiet.truncate(height)
    row = connection.execute("SELECT hash FROM blocks WHERE height = ?", (height,)).fetchone()
    block_hash = hash_prefix(connection, height) if row is None else row[0]
    connection.execute("UPDATE state SET height = ?, hash = ?", (height, block_hash))


def _revert_timers(connection: Connection, height: int, journal: Sequence[Changes]) -> None:
    """Bring back the timers that ended above a height, at the heights that they had, and forget those set there."""
    run, many, bound = connection.execute, connection.executemany, after(height)
    heights = {timer: before for changes in journal for timer, before in changes.moved if timer < bound}
    columns = "coordinate, actor, target, payer, height, ended FROM timers WHERE coordinate"
    changed = set(heights) | _ended_since(connection, bound)
    rows: list[Any] = run(f"SELECT {columns} >= ?", (bound,)).fetchall()
    for timer in changed:
        rows.extend(run(f"SELECT {columns} = ? AND coordinate < ?", (timer, bound)))
    gone, back, again = [], [], []
    for timer, actor, target, payer, due, ended in rows:
        was_due = heights.get(timer, due)
        lists = [live_list(address, roles) for address, roles in parties(actor, target, payer)]
        if ended is None:
            gone += [(number, due, timer) for number in lists]
        if timer < bound and (ended is None or ended >= bound):
            back += [(number, was_due, timer) for number in lists]
            again.append((was_due, timer))
    many("DELETE FROM live WHERE list = ? AND height = ? AND timer = ?", gone)
    many("INSERT INTO live VALUES (?, ?, ?)", back)
    many("UPDATE timers SET height = ?, ended = NULL, ending = NULL WHERE coordinate = ?", again)
    run("DELETE FROM timers WHERE coordinate >= ?", (bound,))


def _ended_since(connection: Connection, bound: int) -> set[int]:
    """Return the timers that an event from a coordinate on has ended, by coordinate."""
    ended: set[int] = set()
    for name in ENDING_NUMBERS:
        row = connection.execute("SELECT number FROM names WHERE name = ?", (name,)).fetchone()
        if row is not None:
            query = "SELECT about FROM postings WHERE list = ? AND item >= ?"
            found = connection.execute(query, (list_of(Facet.NAME, row[0]), bound))
            ended.update(timer for (timer,) in found)
    return ended


def _revert_spend(connection: Connection, journal: Sequence[Changes]) -> None:
    spent: dict[tuple[int, int, int], list[int]] = {}
    fees: dict[int, int] = {}
    for changes in journal:
        for payer, origin, *added in changes.spend:
            sums = spent.setdefault((payer, origin, changes.day), [0] * SPEND_COLUMNS)
            sums[:] = map(add, sums, map(loaded, added))
            if origin == TIMERS and (added[1], added[2]) != (0, 0):
                fees[payer] = fees.get(payer, 0) + loaded(added[1]) + loaded(added[2])
    many, book = connection.executemany, Book(connection)
    rows = [
        (*map(stored, (now - back for now, back in zip(book.spend(key), sums, strict=True))), *key)
        for key, sums in spent.items()
    ]
    many(
        "UPDATE spend SET runs = ?, burned = ?, tips = ?, refunds = ? WHERE payer = ? AND origin = ? AND day = ?",
        rows,
    )
    many(
        "DELETE FROM spend WHERE payer = ? AND origin = ? AND day = ? AND (runs, burned, tips, refunds) = (0, 0, 0, 0)",
        spent,
    )
    many(
        "UPDATE payers SET spent = ? WHERE payer = ?",
        [(stored(book.add_spent(payer, -back)), payer) for payer, back in fees.items()],
    )
    many("DELETE FROM payers WHERE payer = ? AND spent = 0", ((payer,) for payer in fees))


def _revert_blocks(connection: Connection, height: int) -> None:
    run = connection.execute
    for table in ("blocks", "journal"):
        run(f"DELETE FROM {table} WHERE height > ?", (height,))
    last_number = "SELECT number FROM addresses WHERE first <= ? ORDER BY number DESC LIMIT 1"
    run(f"DELETE FROM addresses WHERE number > ifnull(({last_number}), 0)", (height,))
    span = height // SPAN_BLOCKS
    run("DELETE FROM spans WHERE span >= ?", (span,))
    run(_SUM_UP_AGAIN, (span * SPAN_BLOCKS, height))
