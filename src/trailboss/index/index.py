"""`Index`: what blocks say, kept so that no answer reads the chain."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from sqlite3 import Connection
from threading import Event, Lock
from typing import Concatenate, Final, ParamSpec, Self, TypeVar

from trailboss.chain.reader import ChainReader
from trailboss.index import queries, sums, timers
from trailboss.index.files import IndexFile
from trailboss.index.writer import Writer
from trailboss.model.blocks import Block
from trailboss.primitives.errors import InvariantError, StorageError

WRITTEN_BLOCKS: Final = 64  # blocks that are worth writing together
WRITTEN_ROWS: Final = 256  # receipts and events that are
PAUSE_SECONDS: Final = 0.05  # before a thread writes a block: readers of its news come first
WAITING_ROWS_MAX: Final = 16_384  # receipts and events that wait for a thread at most
BATCH_BLOCKS: Final = 2_048  # blocks after which a catch-up writes what it has
BATCH_RECEIPTS: Final = 20_000  # receipts and events after which it does
OnProgress = Callable[
    [int, int], object
]  # receives the progress of a catch-up: the last height indexed, and that of the chain
Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


def _reads(query: Callable[Concatenate[Connection, Asked], Answer]) -> Callable[Concatenate["Index", Asked], Answer]:
    """Return the method of an index that runs a query, once what waits has been written."""

    @wraps(query)
    def read(index: "Index", /, *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
        with index.reading() as connection:
            return query(connection, *args, **kwargs)

    return read


class Index:
    """A cache of what the blocks of a chain say, in a file beside it.

    One thread at a time calls `apply` and `revert`; any thread reads. Every answer is of one height: ``upto``, that of
    the reader's view, above which the index may be already. After the chain has gone back it may be below, and its
    answers are then of its own height; the view says that its blocks are gone (`ViewGoneError`). Only the height of a
    timer that a development chain has moved is the last one that the index knows.

    A page has at most 10,000 items. Decision: D-75.
    """

    def __init__(self, file: IndexFile) -> None:
        self._file = file
        self._writer = Writer(file.writer)
        self._writing = Lock()
        self._adding = Lock()  # held for a moment, also while the other is held
        self._pending: list[Block] = []
        self._pending_rows = 0
        self._behind = ThreadPoolExecutor(1, thread_name_prefix="index")
        self._written: Future[None] | None = None  # by that thread, the last time
        self._closing = Event()

    @classmethod
    def open(cls, path: Path | None, chain: ChainReader, progress: OnProgress | None = None) -> Self:
        """Open the index of a chain, or make it, and bring it up to the chain's head; without a path it is temporary.

        What belongs to another branch is taken back. A file that is damaged, of another format or another chain, or
        that may not have been written out, is made again. The index of a node that joined a network begins with its
        first block, and has the timers that lived then.

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
                index._writer.join(chain)
            for batch in _batches(chain.blocks.since(index.height + 1)):
                index.apply(batch)
                index.write()
                if progress is not None:
                    progress(index.height, chain.height)
        except BaseException:
            file.close()
            raise
        return index

    @property
    def height(self) -> int:
        """Height of the last block in it."""
        with self._adding:
            return self._pending[-1].height if self._pending else self._writer.height

    def apply(self, blocks: Sequence[Block]) -> None:
        """Index the next blocks, all of them or none. They are written with others, at the latest by the next read.

        A thread of the index writes large blocks, so that no answer waits for their rows.

        Raises:
            InvariantError: If they do not continue the last one.
            StorageError: If the file cannot be written.
        """
        with self._adding:
            # While the writer goes on, the blocks that it writes still wait.
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
            rows = _rows(blocks)
            self._pending += blocks
            self._pending_rows += rows
        if rows < WRITTEN_ROWS or self._pending_rows >= WAITING_ROWS_MAX:
            # A thread that writes little would take turns with this one for longer than the writing takes.
            if len(self._pending) >= WRITTEN_BLOCKS or self._pending_rows >= WRITTEN_ROWS:
                self.write()
        elif self._written is None or self._written.done():
            if self._written is not None:
                self._written.result()
            self._written = self._behind.submit(self._write_behind)

    def write(self) -> None:
        """Write the blocks that wait to be written. `StorageError` if the file cannot be written."""
        with self._writing:
            self._write()

    def _write_behind(self) -> None:
        self._closing.wait(PAUSE_SECONDS)
        self.write()

    def _write(self) -> None:
        with self._adding:
            blocks = list(self._pending)
        with self._file.writing():
            self._writer.apply(blocks)
        with self._adding:
            del self._pending[: len(blocks)]
            self._pending_rows -= _rows(blocks)

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
        """Write what waits and close the file, once no other thread reads. Closing it again does nothing."""
        self._closing.set()
        self._behind.shutdown()
        if not self._file.is_closed and not self._file.is_damaged:
            # A file that cannot be written is built again by the next start.
            with suppress(StorageError):
                self.write()
        self._file.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Lend a connection, once what waits is written. `StorageError` if closed, or the file cannot be used."""
        if self._pending:
            self.write()
        with self._file.reading() as connection:
            yield connection

    # Blocks, transactions, receipts, events
    block_height = _reads(queries.find_block)
    transaction = _reads(queries.find_transaction)
    transactions = _reads(queries.list_transactions)
    receipts = _reads(queries.list_receipts)
    events = _reads(queries.list_events)
    search = _reads(queries.search)
    # Timers
    timer = _reads(timers.find_timer)
    timer_heights = _reads(timers.event_heights)
    ended_timers = _reads(timers.list_ended)
    live_timers = _reads(timers.list_live)
    next_paid = _reads(timers.next_paid)
    live_payers = _reads(timers.live_payers)
    lineage = _reads(timers.find_lineage)
    family = _reads(timers.list_family)
    ancestors = _reads(timers.list_ancestors)
    children = _reads(timers.list_children)
    # Sums
    spend = _reads(sums.spend_by_day)
    payers = _reads(sums.rank_payers)
    unfunded_payers = _reads(sums.find_unfunded)
    totals = _reads(sums.sum_up)
    statistics = _reads(sums.chart)


def _rows(blocks: Sequence[Block]) -> int:
    return sum(len(block.receipts) + len(block.events) for block in blocks)


def _batches(blocks: Iterable[Block]) -> Iterator[list[Block]]:
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
