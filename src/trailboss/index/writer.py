"""Writing blocks into the tables, and taking them back. Decision: D-75."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain as chained
from itertools import islice
from operator import add
from sqlite3 import Connection
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple, fields

from trailboss.chain.reader import ChainReader
from trailboss.index import schema
from trailboss.index.records import BlockTally
from trailboss.index.row_builder import TIMERS, Batch, Lookups, Row, earlier_row
from trailboss.model.blocks import Block
from trailboss.model.configs import amount_of
from trailboss.model.decisions import Order
from trailboss.model.events import TIMER_SCHEDULED
from trailboss.model.timers import Timer
from trailboss.primitives.errors import InvariantError
from trailboss.views.records import block_events

EARLIER_AT_ONCE: Final = 10_000  # timers of blocks that are not here that are written together
TALLY_COLUMNS: Final = tuple(field.name for field in fields(BlockTally))
SCHEDULED: Final = TALLY_COLUMNS.index("scheduled")
BASEFEE_COLUMNS: Final = ("cycle_basefee", "cell_basefee", "lane_basefee", "next_lane_basefee")
BY_PLACE: Final = ("transactions", "receipts", "events", "mentions", "timers", "moves")
"""Tables whose rows are found by ``at``."""
BY_HEIGHT: Final = ("blocks", "idle_blocks", "spending")
_ENDED: Final = "timers INDEXED BY ended_by_ending WHERE ending IN (0, 1, 2, 3) AND ended >= ?"
_COUNTED: Final = (
    "'name', name, {} FROM events WHERE at >= ?",
    "'emitter', emitter, {} FROM events WHERE at >= ?",
    "'mention', address, {} FROM mentions WHERE at >= ?",
    "'receipt ' || origin, address, {} FROM receipts WHERE at >= ?",
    *(f"'{role} ' || ending, {role}, {{}} FROM {_ENDED}" for role in ("actor", "target", "payer")),
)
_COUNT: Final = tuple(
    f"INSERT INTO counts SELECT {each} GROUP BY 1, 2 ON CONFLICT DO UPDATE SET count = count + excluded.count"
    for each in _COUNTED
)
_INDEXES_OF_TIMERS: Final = (
    "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'timers' AND sql IS NOT NULL"
)
_SUM_UP_SPANS: Final = (
    f"INSERT INTO spans SELECT height / {schema.SPAN_BLOCKS} AS span, "
    f"{', '.join(f'max({column})' for column in schema.GREATEST)} FROM blocks WHERE height >= ? GROUP BY span"
)


class Sums(Struct, frozen=True):
    """What the next block is measured by: sums of all blocks, in the order of a `BlockTally`, and present prices."""

    totals: tuple[int, ...]
    basefees: tuple[int | None, int | None] = (None, None)
    lane_basefee: int | None = None
    next_lane_basefee: int | None = None


class Writer:
    """Writes one index. One thread at a time may use it."""

    height: int  # of the last block in it; -1 for none
    hash: bytes  # of that block; after going back to an idle one only its first bytes

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lookups = Lookups(connection)
        self._reload()

    def _reload(self) -> None:
        connection = self._connection
        self.height, self.hash = connection.execute("SELECT height, hash FROM state").fetchone()
        self._lookups.forget()
        columns = ", ".join((*TALLY_COLUMNS, *BASEFEE_COLUMNS))
        row = connection.execute(f"SELECT {columns} FROM blocks ORDER BY height DESC LIMIT 1").fetchone()
        if row is None:
            self._sums = Sums((0,) * len(TALLY_COLUMNS))
            return
        cycle, cell, lane, next_lane = map(schema.loaded_or_none, row[len(TALLY_COLUMNS) :])
        self._sums = Sums(tuple(map(schema.loaded, row[: len(TALLY_COLUMNS)])), (cycle, cell), lane, next_lane)

    def join(self, chain: ChainReader) -> None:
        """Take back what is not of a chain, so that its next blocks can follow."""
        blocks, base = chain.blocks, chain.blocks.base
        (first,) = self._connection.execute("SELECT min(height) FROM blocks").fetchone()
        if first != base:
            self._begin(chain)
            return
        known = range(base, min(self.height + 1, len(blocks)))
        common = bisect_left(known, True, key=lambda height: not blocks[height].hash.startswith(self._hash_at(height)))
        self.revert(base + common - 1)

    def _begin(self, chain: ChainReader) -> None:
        """Begin an empty index with the first block of a chain.

        On a node that joined a network it has the live timers that earlier blocks, and that one, scheduled, as their
        records have them. Decision: D-105
        """
        base, run = chain.blocks.base, self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            for table in ("names", "addresses", "spans", "counts", "days", "payers", *BY_PLACE, *BY_HEIGHT):
                run(f"DELETE FROM {table}")
            self._lookups.forget()
            for address in chain.genesis.accounts:
                self._lookups.address(address, 0)
            scheduled = 0
            if base:
                self._add_earlier(timer for timer in chain.timers() if timer.schedule_block <= base)
                later = chained.from_iterable(map(block_events, chain.blocks.eventful(base + 1)))
                scheduled = chain.totals().scheduled - sum(each.name == TIMER_SCHEDULED for each in later)
            self._set_head(base - 1, b"")
            run("COMMIT")
        except BaseException:
            self._begin_again()
            raise
        self._sums = Sums(tuple(scheduled if at == SCHEDULED else 0 for at in range(len(TALLY_COLUMNS))))

    def _add_earlier(self, timers: Iterator[Timer]) -> None:
        # Rows come in no order that an index has: making it of all rows at once takes an eighth of the time.
        indexes = self._connection.execute(_INDEXES_OF_TIMERS).fetchall()
        for name, _ in indexes:
            self._connection.execute(f"DROP INDEX {name}")
        while rows := [earlier_row(timer, self._lookups) for timer in islice(timers, EARLIER_AT_ONCE)]:
            self._insert("timers", rows)
        for _, statement in indexes:
            self._connection.execute(statement)

    def _hash_at(self, height: int) -> bytes:
        """Return the hash of a block; of an idle one the first bytes."""
        query = "SELECT hash FROM blocks WHERE height = ? UNION ALL SELECT prefix FROM idle_blocks WHERE height = ?"
        octets: bytes = self._connection.execute(query, (height, height)).fetchone()[0]
        return octets

    def apply(self, blocks: Sequence[Block]) -> None:
        """Index blocks, all or none. `InvariantError` if they lie too high, or hold too much, to be indexed."""
        if not blocks:
            return
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            batch = Batch(self._lookups)
            for block in blocks:
                self._add(batch, block)
            self._write(batch, blocks[0].height)
            self._set_head(blocks[-1].height, bytes(blocks[-1].hash))
            self._connection.execute("COMMIT")
        except BaseException:
            self._begin_again()
            raise

    def _begin_again(self) -> None:
        """Drop what is not committed, and go on with what is."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._reload()

    def _set_head(self, height: int, block_hash: bytes) -> None:
        self.height, self.hash = height, block_hash
        self._connection.execute("UPDATE state SET height = ?, hash = ?", (height, block_hash))

    def _add(self, batch: Batch, block: Block) -> None:
        if block.height > schema.HEIGHT_MAX:
            raise InvariantError(
                f"block {block.height} lies above {schema.HEIGHT_MAX}, the highest that can be indexed"
            )
        header, last, decisions = block.header, self._sums, block.decisions
        basefees = amount_of(header.cycle_basefee), amount_of(header.cell_basefee)
        has_content = bool(block.transactions or block.receipts or block.events or decisions)
        if not has_content and basefees == last.basefees and last.lane_basefee == last.next_lane_basefee:
            batch.tables["idle_blocks"].append((block.height, bytes(block.hash[: schema.PREFIX_WIDTH])))
            return
        counts = batch.add(block, last.totals[SCHEDULED])
        lane: tuple[int | None, int | None] = (last.next_lane_basefee, last.next_lane_basefee)
        if decisions is not None:
            is_lane = decisions.order is Order.PRIORITY
            lane = (decisions.lane_basefee, decisions.next_lane_basefee) if is_lane else (None, None)
        self._sums = Sums(tuple(map(add, last.totals, astuple(counts))), basefees, *lane)
        values = (*self._sums.totals, counts.cycles, counts.cells, counts.timer_cycles, *basefees)
        prices = (None if each is None else schema.stored(each) for each in lane)
        row = (block.height, bytes(block.hash), header.timestamp_ms, *map(schema.stored, values), *prices)
        batch.tables["blocks"].append(row)

    def _write(self, batch: Batch, first: int) -> None:
        batch.tables["timers"] = batch.timers()
        for table, rows in batch.tables.items():
            if rows:
                self._insert(table, rows)
        heights = ((height, at) for at, height in batch.heights.items())
        self._connection.executemany("UPDATE timers SET height = ? WHERE at = ?", heights)
        query = "UPDATE timers SET ended = ?, ending = ?, reverted = ? WHERE at = ?"
        self._connection.executemany(query, batch.endings)
        if batch.tables["blocks"]:
            self._count(first, "count(*)")
            self._add_spending(batch.days, batch.spent)
            self._sum_up_spans(first)

    def _insert(self, table: str, rows: Sequence[Row]) -> None:
        self._connection.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)

    def _count(self, first: int, change: str) -> None:
        """Count the rows that blocks from a height on have added, or take them off the counts."""
        for query in _COUNT:
            self._connection.execute(query.format(change), (schema.after(first - 1),))

    def _add_spending(self, days: dict[tuple[int, int, int], list[int]], spent: dict[int, int]) -> None:
        """Add to what payers have spent, by day and in all; the numbers may be negative."""
        run = self._connection.execute
        key = "payer = ? AND origin = ? AND day = ?"
        for place, added in days.items():
            row = run(f"SELECT runs, burned, tips, refunds FROM days WHERE {key}", place).fetchone() or (0,) * 4
            sums = map(schema.stored, map(add, map(schema.loaded, row), added))
            run("INSERT OR REPLACE INTO days VALUES (?, ?, ?, ?, ?, ?, ?)", (*place, *sums))
        for payer, fees in spent.items():
            row = run("SELECT spent FROM payers WHERE payer = ?", (payer,)).fetchone() or (0,)
            run("INSERT OR REPLACE INTO payers VALUES (?, ?)", (payer, schema.stored(schema.loaded(row[0]) + fees)))

    def _sum_up_spans(self, height: int) -> None:
        """Find the greatest values of the spans from a height on."""
        span = max(height, 0) // schema.SPAN_BLOCKS
        self._connection.execute("DELETE FROM spans WHERE span >= ?", (span,))
        self._connection.execute(_SUM_UP_SPANS, (span * schema.SPAN_BLOCKS,))

    def revert(self, height: int) -> None:
        """Take back blocks above a height, in O(what they hold). `InvariantError` if it has no block of that height."""
        if not 0 <= height <= self.height:
            raise InvariantError(f"the index cannot go back to block {height} from block {self.height}")
        if height == self.height:
            return
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._take_back(height)
            self._connection.execute("COMMIT")
        finally:
            self._begin_again()

    def _take_back(self, height: int) -> None:
        run, bound = self._connection.execute, schema.after(height)
        self._count(height + 1, "-count(*)")
        moves = run("SELECT height, timer FROM moves WHERE at >= ? ORDER BY at DESC", (bound,)).fetchall()
        self._connection.executemany("UPDATE timers SET height = ? WHERE at = ?", moves)
        ended = [row for (row,) in run(f"SELECT at FROM {_ENDED}", (bound,)).fetchall()]
        query = "UPDATE timers SET ended = NULL, ending = NULL, reverted = NULL WHERE at = ?"
        self._connection.executemany(query, ((at,) for at in ended))
        days: dict[tuple[int, int, int], list[int]] = {}
        spent: dict[int, int] = {}
        query = "SELECT payer, origin, day, runs, burned, tips, refunds FROM spending WHERE height > ?"
        for payer, origin, day, *sums in run(query, (height,)).fetchall():
            added = [-schema.loaded(value) for value in sums]
            days[payer, origin, day] = list(map(add, days.get((payer, origin, day), (0,) * 4), added))
            if origin == TIMERS:
                spent[payer] = spent.get(payer, 0) + added[1] + added[2]
        self._add_spending(days, spent)
        for table in BY_PLACE:
            run(f"DELETE FROM {table} WHERE at >= ?", (bound,))
        for table in BY_HEIGHT:
            run(f"DELETE FROM {table} WHERE height > ?", (height,))
        last_number = "SELECT number FROM addresses WHERE first <= ? ORDER BY number DESC LIMIT 1"
        run(f"DELETE FROM addresses WHERE number > ifnull(({last_number}), 0)", (height,))
        self._sum_up_spans(height)
        self._set_head(height, self._hash_at(height))
