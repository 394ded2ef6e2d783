"""`Index`: what blocks say, kept so that no answer reads the chain."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection
from threading import Lock
from typing import Final, Self

from trailboss.chain.reader import ChainReader
from trailboss.index import queries, sums, timers
from trailboss.index.files import IndexFile
from trailboss.index.pages import Window
from trailboss.index.records import (
    BlockSpan,
    DaySpend,
    EventFilter,
    EventPlace,
    Found,
    IndexedReceipt,
    IndexedTimer,
    IndexedTransaction,
    Lineage,
    Page,
    PayerSpend,
    Tally,
    UnfundedPayer,
)
from trailboss.index.schema import INTEGER_MAX, ORIGINS
from trailboss.index.writer import Writer
from trailboss.model.blocks import Block, Origin
from trailboss.primitives.errors import InvariantError, StorageError
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.timer_list import TimerFilter

PAGE_LIMIT: Final = 50
"""Items of a page unless told otherwise."""
PENDING_BLOCKS_MAX: Final = 64
PENDING_ROWS_MAX: Final = 256
"""Blocks, and receipts and events, that wait to be written together."""
BATCH_BLOCKS: Final = 2_048
BATCH_RECEIPTS: Final = 20_000
"""Blocks and receipts after which a catch-up writes what it has."""
OnProgress = Callable[[int, int], object]
"""Told how far a catch-up is: the last height indexed, and that of the chain."""


class Index:
    """A cache of what the blocks of a chain say, in a file beside it.

    One thread at a time writes: `apply` and `revert`. Any thread reads, and neither waits for the other. Every answer
    is of one height: ``upto``, that of the view that the reader has taken, above which the index may be already. After
    the chain has gone back it may be below, and its answers are then of its own height; that the view's blocks are
    gone, the view says (`ViewGoneError`). Only the height of a timer that a development chain has moved is the last one
    that the index knows.

    Offsets and limits are not negative; a page has at most 10,000 items.

    Decision: D-75
    """

    def __init__(self, file: IndexFile) -> None:
        """Use a file; `Index.open` is the way."""
        self._file = file
        self._writer = Writer(file.writer)
        self._writing = Lock()
        self._pending: list[Block] = []
        self._pending_rows = 0

    @classmethod
    def open(cls, path: Path | None, chain: ChainReader, progress: OnProgress | None = None) -> Self:
        """Open the index of a chain, or make it, and bring it up to the chain's head.

        What belongs to another branch is taken back. A file that is damaged, of another format or another chain, or
        of which nobody knows whether it has been written out, is made anew.

        Args:
            path: The file; None for a temporary one.
            chain: What is indexed. It must not change meanwhile.
            progress: Told how far it is, if there is something to do.

        Raises:
            StorageError: If the file can be neither used nor made.
        """
        file = IndexFile(path, chain.genesis.instance_id())
        try:
            return cls._over(file, chain, progress)
        except StorageError:
            if not file.is_damaged:
                raise
        # What opening the file did not see has been met on the way. It has been deleted, so this one is new.
        return cls._over(IndexFile(path, chain.genesis.instance_id()), chain, progress)

    @classmethod
    def _over(cls, file: IndexFile, chain: ChainReader, progress: OnProgress | None) -> Self:
        try:
            with file.writing():
                index = cls(file)
                index._writer.join(chain.blocks, chain.genesis.accounts)
            for batch in _batches(chain.blocks.since(index.height + 1)):
                index.apply(batch)
                index.write()
                if progress is not None:
                    progress(index.height, chain.height)
        except BaseException:
            file.close()
            raise
        return index

    # Writing

    @property
    def height(self) -> int:
        """Height of the last block in it."""
        return self._pending[-1].height if self._pending else self._writer.height

    def apply(self, blocks: Sequence[Block]) -> None:
        """Index the next blocks, all of them or none. They are written with others, before the next read.

        Raises:
            InvariantError: If they do not continue the last one.
            StorageError: If the file cannot be written.
        """
        with self._writing:
            height, last = self._writer.height, self._writer.hash
            if self._pending:
                height, last = self._pending[-1].height, bytes(self._pending[-1].hash)
            for block in blocks:
                parent = block.header.parent
                if block.height != height + 1 or (height >= 0 and parent[: len(last)] != last):
                    raise InvariantError(
                        f"block {block.height}, child of {parent.hex()}, does not continue the index, which ends with "
                        f"block {height}, {last.hex()}"
                    )
                height, last = block.height, bytes(block.hash)
            self._pending += blocks
            self._pending_rows += sum(len(block.receipts) + len(block.events) for block in blocks)
            if len(self._pending) >= PENDING_BLOCKS_MAX or self._pending_rows >= PENDING_ROWS_MAX:
                self._write()

    def write(self) -> None:
        """Write the blocks that wait to be written.

        Raises:
            StorageError: If the file cannot be written.
        """
        with self._writing:
            self._write()

    def _write(self) -> None:
        with self._file.writing():
            self._writer.apply(self._pending)
        self._pending, self._pending_rows = [], 0

    def revert(self, height: int) -> None:
        """Take back the blocks above a height. Complexity: O(what they hold).

        Raises:
            InvariantError: If the index has no block of that height.
            StorageError: If the file cannot be written.
        """
        with self._writing:
            self._write()
            with self._file.writing():
                self._writer.revert(height)

    def close(self) -> None:
        """Write what waits and close the file, once no thread reads or writes. Closing it again does nothing."""
        if not self._file.is_closed and not self._file.is_damaged:
            # A file that cannot be written is built again by the next start.
            with suppress(StorageError):
                self.write()
        self._file.close()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        if self._pending:
            self.write()
        with self._file.reading() as connection:
            yield connection

    # Blocks, transactions, receipts

    def block_height(self, block_hash: Hash32, blocks: Sequence[Block]) -> int | None:
        """Return the height of a block by its hash; None if there is none.

        Complexity: O(log n); for a quiet block, or none, O(quiet blocks), a million of them in some 15 ms.

        Args:
            block_hash: Its hash.
            blocks: Of the view. Of quiet blocks the index has a part of the hash only, and looks whether it is theirs.
        """
        with self._reading() as connection:
            return queries.find_block(connection, block_hash, blocks)

    def transaction(self, tx_hash: Hash32, upto: int) -> IndexedTransaction | None:
        """Return where the transaction of a hash is; None if no block has it."""
        with self._reading() as connection:
            return queries.find_transaction(connection, tx_hash, upto)

    def transactions(self, upto: int, offset: int = 0, limit: int = PAGE_LIMIT) -> Page[IndexedTransaction]:
        """Return where transactions are, the newest first."""
        with self._reading() as connection:
            return queries.list_transactions(connection, Window(upto, offset, limit))

    def receipts(
        self,
        address: bytes,
        upto: int,
        origins: Iterable[Origin] = ORIGINS,
        offset: int = 0,
        limit: int = PAGE_LIMIT,
    ) -> Page[IndexedReceipt]:
        """Return where the receipts of an address are, as sender, payer, target or actor, the newest first.

        Args:
            address: 20 bytes.
            upto: Height of the view.
            origins: Of which origins: those of transactions only, of timers, of messages.
            offset: Items left out at the beginning.
            limit: Most items.
        """
        with self._reading() as connection:
            return queries.list_receipts(connection, address, origins, Window(upto, offset, limit))

    def search(self, digits: str, blocks: Sequence[Block], limit: int = PAGE_LIMIT) -> Found:
        """Return blocks, transactions, timers and addresses that begin with hexadecimal digits.

        Args:
            digits: With or without ``0x``. Quiet blocks are found by 16 of them, or more.
            blocks: Of the view.
            limit: Most of each.

        Raises:
            Rejection: ``INVALID_DATA`` if there are none, or others.
        """
        with self._reading() as connection:
            return queries.search(connection, digits, blocks, limit)

    # Timers

    def timer(self, timer_id: bytes, upto: int) -> IndexedTimer | None:
        """Return the timer of an id, live or ended; of several the last one. None if no block scheduled it."""
        with self._reading() as connection:
            return timers.find_timer(connection, timer_id, upto)

    def timer_heights(self, timer_id: bytes, upto: int) -> tuple[int, ...]:
        """Return the heights of the blocks that hold events about a timer, ascending."""
        with self._reading() as connection:
            return timers.event_heights(connection, timer_id, upto)

    def ended_timers(
        self, wanted: TimerFilter, upto: int, offset: int = 0, limit: int = PAGE_LIMIT
    ) -> Page[IndexedTimer]:
        """Return the ended timers that a filter lets pass, the last one first.

        Complexity: O(log n) for the number of those that ended in a way, of an address or of all; within heights, or
        of several addresses, O(what the narrowest condition alone lets pass).

        Args:
            wanted: In state ``fired``, ``expired``, ``unfunded``, ``cancelled``, or ``all`` for these four.
            upto: Height of the view.
            offset: Items left out at the beginning.
            limit: Most items.
        """
        with self._reading() as connection:
            return timers.list_ended(connection, wanted, Window(upto, offset, limit))

    def live_timers(self, wanted: TimerFilter, upto: int, offset: int = 0, limit: int = PAGE_LIMIT) -> Page[Hash32]:
        """Return the ids of the live timers that a filter lets pass, by height and insertion.

        Complexity: O(live timers of the address within the heights).

        Args:
            wanted: With an actor, target or payer; without any, the view has the answer. Its state is not looked at.
            upto: Height of the view.
            offset: Items left out at the beginning.
            limit: Most items.
        """
        with self._reading() as connection:
            return timers.list_live(connection, wanted, Window(upto, offset, limit))

    def next_paid(self, payer: bytes, limit: int) -> tuple[Hash32, ...]:
        """Return the ids of the first live timers that somebody pays for, by height and insertion.

        They are those of the index's own height.

        Complexity: O(limit), however many timers there are.

        Args:
            payer: 20 bytes.
            limit: Most ids.
        """
        with self._reading() as connection:
            return timers.next_paid(connection, payer, limit)

    def live_payers(self, cursor: int, limit: int) -> tuple[tuple[Address, ...], int]:
        """Return some of those who pay for live timers, and where the next ones begin.

        They are those of the index's own height.

        Complexity: O(limit · log n), however many timers there are.

        Args:
            cursor: Where they begin: 0 for the first, else what was returned with the ones before.
            limit: Most of them.

        Returns:
            The payers, and where the next begin; 0 if these were the last.
        """
        with self._reading() as connection:
            return timers.live_payers(connection, cursor, limit)

    def lineage(self, timer_id: bytes, upto: int) -> Lineage | None:
        """Return where a timer stands among those that scheduled one another; None if no block scheduled it."""
        with self._reading() as connection:
            return timers.find_lineage(connection, timer_id, upto)

    def family(self, timer_id: bytes, upto: int, offset: int = 0, limit: int = PAGE_LIMIT) -> Page[IndexedTimer]:
        """Return all timers of a lineage, as they were scheduled: where each one schedules the next, a chain.

        `Lineage.place` is where the timer itself stands.
        """
        with self._reading() as connection:
            return timers.list_family(connection, timer_id, Window(upto, offset, limit))

    def ancestors(self, timer_id: bytes, upto: int, offset: int = 0, limit: int = PAGE_LIMIT) -> Page[IndexedTimer]:
        """Return the timer whose fire scheduled a timer, the one whose fire scheduled that, and so on."""
        with self._reading() as connection:
            return timers.list_ancestors(connection, timer_id, Window(upto, offset, limit))

    def children(self, timer_id: bytes, upto: int, offset: int = 0, limit: int = PAGE_LIMIT) -> Page[IndexedTimer]:
        """Return the timers that the fires of a timer scheduled, as they were."""
        with self._reading() as connection:
            return timers.list_children(connection, timer_id, Window(upto, offset, limit))

    # Events

    def events(
        self,
        wanted: EventFilter,
        upto: int,
        offset: int = 0,
        limit: int = PAGE_LIMIT,
        *,
        newest_first: bool = False,
        is_counted: bool = True,
    ) -> Page[EventPlace]:
        """Return where the events are that a filter lets pass; `read_events` has them.

        Complexity: O(offset + limit) for one condition, of several O(what the narrowest alone lets pass); the total of
        one with ``since`` and another condition O(what passes).

        Args:
            wanted: The filter.
            upto: Height of the view.
            offset: Items left out at the beginning.
            limit: Most items.
            newest_first: Whether the newest come first.
            is_counted: Whether the total is wanted; without, it is the number of items.
        """
        with self._reading() as connection:
            return queries.list_events(
                connection, wanted, Window(upto, offset, limit), newest_first=newest_first, is_counted=is_counted
            )

    # Sums

    def spend(self, payer: bytes, upto: int, first_day: int = 0, last_day: int = INTEGER_MAX) -> tuple[DaySpend, ...]:
        """Return what executions cost a payer, day by day of chain time, ascending; days without any are left out.

        Args:
            payer: 20 bytes.
            upto: Height of the view.
            first_day: Days since 1970.
            last_day: Likewise.
        """
        with self._reading() as connection:
            return sums.spend_by_day(connection, payer, (first_day, last_day), upto)

    def payers(self, upto: int, offset: int = 0, limit: int = PAGE_LIMIT) -> tuple[PayerSpend, ...]:
        """Return those who have spent most on timers, the greatest first."""
        with self._reading() as connection:
            return sums.rank_payers(connection, Window(upto, offset, limit))

    def unfunded_payers(self, since: int, upto: int, limit: int = PAGE_LIMIT) -> tuple[UnfundedPayer, ...]:
        """Return those who could not pay for a timer from a block on, the latest first.

        Complexity: O(timers that ended for it since).
        """
        with self._reading() as connection:
            return sums.find_unfunded(connection, since, Window(upto, 0, limit))

    def totals(self, upto: int) -> Tally:
        """Return the sums over all blocks."""
        with self._reading() as connection:
            return sums.sum_up(connection, upto)

    def statistics(self, first: int, last: int, points: int, upto: int) -> tuple[BlockSpan, ...]:
        """Return what the blocks of a range come to, for a chart of at most so many points.

        Every point stands for equally many blocks and begins at a multiple of their number, so that it stays where it
        is while the chain goes on; the first and the last one are cut off where the range is.

        Args:
            first: Height.
            last: Height; the chain may end before.
            points: Most points, 1 to 2,000.
            upto: Height of the view.
        """
        with self._reading() as connection:
            return sums.chart(connection, first, last, points, upto)


def _batches(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Yield blocks in batches that are worth a write each."""
    batch: list[Block] = []
    receipts = 0
    for block in blocks:
        batch.append(block)
        receipts += len(block.receipts) + len(block.events)
        if len(batch) >= BATCH_BLOCKS or receipts >= BATCH_RECEIPTS:
            yield batch
            batch, receipts = [], 0
    if batch:
        yield batch
