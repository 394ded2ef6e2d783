"""Writing blocks into the tables, and taking them back.

Decision: D-75
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import add
from sqlite3 import Connection
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple, fields

from trailboss.index.idle_blocks import QuietHashes
from trailboss.index.journal import Changes, write_changes
from trailboss.index.lookup_cache import Book
from trailboss.index.records import Tally
from trailboss.index.row_builder import TIMERS, BlockRows, gather
from trailboss.index.schema import GREATEST, HEIGHT_MAX, PLACE_MAX, SPAN_BLOCKS, coordinate, loaded, stored
from trailboss.index.undo import take_back
from trailboss.model.blocks import Block
from trailboss.model.configs import amount_of
from trailboss.primitives.errors import InvariantError

TALLY_COLUMNS: Final = tuple(field.name for field in fields(Tally))
_GREATER: Final = "max(ifnull({0}, excluded.{0}), ifnull(excluded.{0}, {0}))"
_KEEP_GREATEST: Final = (
    f"INSERT INTO spans (span, {', '.join(GREATEST)}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (span) DO UPDATE SET "
    + ", ".join(f"{column} = {_GREATER.format(column)}" for column in GREATEST)
)
_SET_SPEND: Final = (
    "INSERT INTO spend VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (payer, origin, day) DO UPDATE SET "
    "runs = excluded.runs, burned = excluded.burned, tips = excluded.tips, refunds = excluded.refunds"
)
_SET_SPENT: Final = "INSERT INTO payers VALUES (?, ?) ON CONFLICT (payer) DO UPDATE SET spent = excluded.spent"
_ADD_BLOCK: Final = f"INSERT INTO blocks VALUES ({','.join('?' * (3 + len(TALLY_COLUMNS) + len(GREATEST) + 1))})"
_ADD_TIMER: Final = f"INSERT INTO timers VALUES ({','.join('?' * 20)})"


class Standing(Struct, frozen=True):
    """What the next block is measured by.

    Attributes:
        sums: Over all blocks so far, in the order of a `Tally`.
        basefees: In force in the last block that is not quiet: of a cycle and of a cell.
        lane_basefee: In force in that block; None without a timer lane.
        next_lane_basefee: In the block after it.
    """

    sums: tuple[int, ...]
    basefees: tuple[int, int] | None = None
    lane_basefee: int | None = None
    next_lane_basefee: int | None = None


class Writer:
    """Writes one index. One thread at a time may use it.

    Attributes:
        height: Of the last block in it; -1 for none.
        hash: Of that block; after going back to a quiet one only the first bytes of it.
    """

    height: int
    hash: bytes

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._book = Book(connection)
        self._reload()

    def _reload(self) -> None:
        connection = self._connection
        self.height, self.hash = connection.execute("SELECT height, hash FROM state").fetchone()
        self._quiet = QuietHashes(connection)
        self._book.forget()
        columns = f"{', '.join(TALLY_COLUMNS)}, cycle_basefee, cell_basefee, lane_basefee, next_lane_basefee"
        row = connection.execute(f"SELECT {columns} FROM blocks ORDER BY height DESC LIMIT 1").fetchone()
        if row is None:
            self._standing = Standing((0,) * len(TALLY_COLUMNS))
            return
        *sums, cycle_basefee, cell_basefee, lane_basefee, next_lane_basefee = row
        self._standing = Standing(
            tuple(map(loaded, sums)),
            (loaded(cycle_basefee), loaded(cell_basefee)),
            _loaded_or_none(lane_basefee),
            _loaded_or_none(next_lane_basefee),
        )

    def join(self, blocks: Sequence[Block], accounts: Iterable[bytes]) -> None:
        """Take back what is not of a chain, so that its next blocks can follow.

        Args:
            blocks: Of the chain.
            accounts: Addresses that hold something from genesis on.
        """
        if self.height < 0:
            for address in accounts:
                self._book.address(address, 0)
        elif self.height >= len(blocks) or not blocks[self.height].hash.startswith(self.hash):
            self.revert(self._last_common(blocks))

    # Going on

    def apply(self, blocks: Sequence[Block]) -> None:
        """Index the next blocks, all of them or none.

        Raises:
            InvariantError: If they do not continue what is indexed, or lie too high to be.
        """
        if not blocks:
            return
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for block in blocks:
                self._check_next(block)
                self._add(block)
                self.height, self.hash = block.height, bytes(block.hash)
            self._quiet.flush()
            self._connection.execute("UPDATE state SET height = ?, hash = ?", (self.height, self.hash))
            self._connection.execute("COMMIT")
        except BaseException:
            self._begin_anew()
            raise

    def _begin_anew(self) -> None:
        """Drop what is not committed, and go on with what is."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._reload()

    def _check_next(self, block: Block) -> None:
        parent = block.header.parent
        if block.height != self.height + 1 or (self.height >= 0 and parent[: len(self.hash)] != self.hash):
            raise InvariantError(
                f"block {block.height}, child of {parent.hex()}, does not continue the index, which ends with block "
                f"{self.height}, {self.hash.hex()}"
            )
        if block.height > HEIGHT_MAX:
            raise InvariantError(f"block {block.height} lies above {HEIGHT_MAX}, the highest that can be indexed")

    def _add(self, block: Block) -> None:
        header, last = block.header, self._standing
        basefees = amount_of(header.cycle_basefee), amount_of(header.cell_basefee)
        has_content = bool(block.transactions or block.receipts or block.events or block.decisions)
        if not has_content and basefees == last.basefees and last.lane_basefee == last.next_lane_basefee:
            self._quiet.append(block.height, block.hash)
            return
        rows = gather(block, self._book)
        lane = rows.lane or (last.next_lane_basefee, last.next_lane_basefee)
        if block.decisions is not None and rows.lane is None:
            lane = None, None
        counts = rows.tally()
        self._standing = Standing(tuple(map(add, last.sums, astuple(counts))), basefees, *lane)
        self._add_timers(rows)
        self._add_lists(rows)
        self._add_spend(rows)
        self._add_block(block, counts)
        self._add_journal(rows)

    def _add_timers(self, rows: BlockRows) -> None:
        run = self._connection.executemany
        first = coordinate(rows.height)
        scheduled = self._standing.sums[TALLY_COLUMNS.index("scheduled")] - len(rows.timers)
        run(
            "INSERT INTO transactions VALUES (?, ?, ?)",
            ((first + position, *found) for position, found in enumerate(rows.transactions)),
        )
        run(
            _ADD_TIMER,
            (
                (
                    *(timer.coordinate, identity, timer.actor, timer.target, timer.payer, handler, timer.height),
                    *columns,
                    *(rows.parents.get(timer.coordinate), timer.root, timer.generation, sequence),
                    *(timer.ended, timer.ending, timer.reverted),
                )
                for sequence, (timer, identity, handler, columns) in enumerate(rows.timers, scheduled)
            ),
        )
        run(
            "UPDATE timers SET height = ? WHERE coordinate = ?",
            ((height, timer) for timer, height in rows.moves.items()),
        )
        run("UPDATE timers SET ended = ?, ending = ?, reverted = ? WHERE coordinate = ?", rows.ended)
        there = (row for row, is_there in rows.live.items() if is_there)
        gone = (row for row, is_there in rows.live.items() if not is_there)
        # A timer moved away and back within the block is there already.
        run("INSERT OR IGNORE INTO live VALUES (?, ?, ?)", there)
        run("DELETE FROM live WHERE list = ? AND height = ? AND timer = ?", gone)

    def _add_lists(self, rows: BlockRows) -> None:
        postings: list[tuple[int, int, int, int | None, int | bytes | None]] = []
        for number in sorted(rows.lists):
            added = rows.lists[number]
            size = self._book.grow(number, len(added))
            postings.extend((number, item, place, about, due) for place, (item, about, due) in enumerate(added, size))
            highest = added[-1][0]
            if highest - coordinate(rows.height) > PLACE_MAX:
                raise InvariantError(f"block {rows.height} holds more than {PLACE_MAX} events or receipts")
        self._connection.executemany("INSERT INTO postings VALUES (?, ?, ?, ?, ?)", postings)

    def _add_spend(self, rows: BlockRows) -> None:
        spend, payers = [], []
        for (payer, origin), added in rows.spend.items():
            spent = self._book.spend((payer, origin, rows.day))
            spent[:] = map(add, spent, added)
            spend.append((payer, origin, rows.day, *map(stored, spent)))
            _, burned, tips, _ = added
            if origin == TIMERS and burned + tips:
                payers.append((payer, stored(self._book.add_spent(payer, burned + tips))))
        self._connection.executemany(_SET_SPEND, spend)
        self._connection.executemany(_SET_SPENT, payers)

    def _add_block(self, block: Block, counts: Tally) -> None:
        standing, header = self._standing, block.header
        prices = (*(standing.basefees or ()), standing.lane_basefee, standing.next_lane_basefee)
        used = (counts.cycles, counts.cells, counts.timer_cycles)
        numbers = [None if value is None else stored(value) for value in (*standing.sums, *used, *prices)]
        self._connection.execute(_ADD_BLOCK, (block.height, bytes(block.hash), stored(header.timestamp_ms), *numbers))
        greatest = numbers[len(TALLY_COLUMNS) : len(TALLY_COLUMNS) + len(GREATEST)]
        self._connection.execute(_KEEP_GREATEST, (block.height // SPAN_BLOCKS, *greatest))

    def _add_journal(self, rows: BlockRows) -> None:
        spend = [
            (payer, origin, runs, stored(burned), stored(tips), stored(refunds))
            for (payer, origin), (runs, burned, tips, refunds) in rows.spend.items()
        ]
        changes = Changes(rows.day, sorted(rows.lists), spend, list(rows.moved.items()))
        write_changes(self._connection, rows.height, changes)

    # Going back

    def _last_common(self, blocks: Sequence[Block]) -> int:
        """Return the height of the last block that is not quiet and that is one of a chain's too."""
        run = self._connection.execute

        def differs(number: int) -> bool:
            query = "SELECT height, hash FROM blocks ORDER BY height LIMIT 1 OFFSET ?"
            height, known = run(query, (number,)).fetchone()
            return bool(height >= len(blocks) or blocks[height].hash != known)

        (count,) = run("SELECT count(*) FROM blocks").fetchone()
        first = bisect_left(range(count), True, key=differs)
        height: int = run("SELECT height FROM blocks ORDER BY height LIMIT 1 OFFSET ?", (first - 1,)).fetchone()[0]
        return height

    def revert(self, height: int) -> None:
        """Take back the blocks above a height.

        Complexity: O(what they hold).

        Raises:
            InvariantError: If there is no block of that height.
        """
        if not 0 <= height <= self.height:
            raise InvariantError(f"the index cannot go back to block {height} from block {self.height}")
        if height == self.height:
            return
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            take_back(self._connection, self._quiet, height)
            self._connection.execute("COMMIT")
        finally:
            self._begin_anew()


def _loaded_or_none(value: int | bytes | None) -> int | None:
    return None if value is None else loaded(value)
