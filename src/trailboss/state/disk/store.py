"""Committed state in a directory: blocks staged in memory, sealed in one transaction, and the way back.

A sealed block is one row of the journal. The flat tables follow every 64 changed blocks, and before a close if they
lack much, in key order, in the same transaction as the marker that records it. Memory holds what the tables lack, and
the trees, which are rebuilt from the flat tables when the chain is opened. Decision: D-48.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from heapq import merge
from pathlib import Path
from typing import Final, Self

from msgspec import Struct

from trailboss.primitives.errors import InvariantError, StorageError
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX, Height
from trailboss.state.commitment import state_root
from trailboss.state.disk import files
from trailboss.state.disk.directory import ChainDirectory
from trailboss.state.disk.journal import JournalRow, Marker, decode, encode_row
from trailboss.state.disk.recovery import load_flat, load_rows, put_marker
from trailboss.state.disk.tables import BLOCKS, JOURNAL, STATE, TIMER_HEIGHTS, Transaction, height_key, key_height
from trailboss.state.keys import MISSING, timer_moves
from trailboss.state.store import Store, Undo
from trailboss.state.view import StoreView


class StoreSettings(Struct, frozen=True):
    """The tuning of a store on disk. It does not change the meaning of the files."""

    # Changed blocks after which the flat tables follow the journal. More save writes, because short-lived timers
    # never reach the tables; they cost memory and a longer opening.
    flush_interval: int = 64
    # Changed blocks that the journal keeps; a chain can go back that far. A row holds the old and the new value of
    # what its block changed: a few hundred bytes for a transfer, 50 KB for 100 timers.
    kept_journal: int = 4_096
    # Values that the flat tables may lack after an orderly close; to redo more at the next opening takes over 5 ms.
    unflushed_values: int = 1_000
    map_size: int = 1 << 24  # initial bytes of the file's address space; a power of two times the page size


DEFAULT_SETTINGS: Final = StoreSettings()


class DiskStore(Store):
    """A store in a directory.

    Invariant: the flat tables hold the state at the marker's flushed height; ``_pending`` and ``_pending_timers`` hold
    the later differences. ``_staged`` holds the journal rows of changed blocks that are not sealed yet.
    """

    __slots__ = (
        *("_directory", "_last_record", "_pending", "_pending_timers", "_settings", "_staged", "_tables", "_unflushed"),
    )

    @classmethod
    def create(
        cls, directory: Path, genesis: bytes, *, durable: bool = True, settings: StoreSettings = DEFAULT_SETTINGS
    ) -> Self:
        """Create a chain directory, with its parents, and open it; see `ChainDirectory.create`."""
        return cls(ChainDirectory.create(directory, genesis, durable=durable, map_size=settings.map_size), settings)

    @classmethod
    def open(cls, directory: Path, *, durable: bool = True, settings: StoreSettings = DEFAULT_SETTINGS) -> Self:
        """Open a chain directory, and check that it holds the last sealed state.

        If ``durable``, `seal` and `revert` return only when everything is on disk. Otherwise the data survives the end
        of the process, but not of the machine: for tests and imports. Complexity: O(state), about 1.5 µs a key after an
        orderly close and 4 µs otherwise. Raises as `ChainDirectory.open`.
        """
        return cls(ChainDirectory.open(directory, durable=durable, map_size=settings.map_size), settings)

    def __init__(self, directory: ChainDirectory, settings: StoreSettings) -> None:
        """Load an open directory, which is closed on failure; use `create` or `open`."""
        super().__init__()
        self._directory, self._tables, self._settings = directory, directory.tables, settings
        self._pending: dict[bytes, bytes | None] = {}
        self._pending_timers: dict[bytes, Height | None] = {}
        self._staged: list[tuple[int, bytes]] = []
        self._unflushed = 0
        self._last_record: int | None = None  # height of the last block record; None until it is looked up
        with ExitStack() as failing:
            failing.callback(directory.abandon)
            self.roots, self._slots = load_flat(directory.tables, directory.marker)
            self.state_root = state_root(self.roots)
            self._replay()
            failing.pop_all()

    def _replay(self) -> None:
        """Redo the journal above the flat tables, and compare the root with the marker's."""
        for row in load_rows(self._tables, self._directory.marker.flushed_height):
            self._check_root(row.root_before)
            self.height = row.height - 1
            super().commit(row.height, row.redo())
        self._check_root(self._directory.marker.state_root)
        self.height = self._directory.marker.height
        self._unflushed = len(self._staged)
        self._staged.clear()

    def _check_root(self, expected: bytes) -> None:
        if self.state_root != expected:
            what = f"the tables give state root {self.state_root.hex()}, and {expected.hex()} was sealed"
            raise StorageError(self._tables.path, what, files.RESTORE)

    @property
    def path(self) -> Path:
        """The chain directory."""
        return self._directory.path

    @property
    def genesis(self) -> bytes:
        """The genesis given to `create`."""
        return self._directory.genesis

    @property
    def floor(self) -> int:
        """Lowest height that the store can go back to; ``BEFORE_GENESIS`` until the journal has been pruned."""
        return self._directory.marker.floor

    def read(self, key: bytes) -> bytes | None:
        """Return the value of a full key, or None if it has none."""
        value = self._pending.get(key, MISSING)
        return self._tables.get(STATE, key) if value is MISSING else value

    def timer_height(self, identity: bytes) -> Height | None:
        """Return the height at which a committed timer is due, or None if there is none of that id."""
        return self._timer_height(identity, self._tables.get)

    def check_writable(self) -> None:
        """Check that blocks can be committed. `StorageError` if closed or read-only, or after a failed write."""
        self._directory.check_writable()

    def view(self) -> StoreView:
        """Return the current state, as `Store.view` does. `StorageError` if the store is closed or has failed."""
        self._directory.check_open()
        self._tables.share()
        return super().view()

    def read_shared(self, key: bytes) -> bytes | None:
        """Return the value that a full key has now, as `read` does, but from any thread: for `StoreView`."""
        # A value leaves the pending ones only when the tables have it, and other threads see that they do.
        value = self._pending.get(key, MISSING)
        return self._tables.get_shared(STATE, key) if value is MISSING else value

    def timer_height_shared(self, identity: bytes) -> Height | None:
        """Return the height at which a timer is due now, as `timer_height` does, but from any thread."""
        return self._timer_height(identity, self._tables.get_shared)

    def _timer_height(self, identity: bytes, get: Callable[[bytes, bytes], bytes | None]) -> Height | None:
        height = self._pending_timers.get(identity, MISSING)
        if height is not MISSING:
            return height
        stored = get(TIMER_HEIGHTS, identity)
        return None if stored is None else Height(key_height(stored))

    def commit(self, height: int, written: Mapping[bytes, bytes | None]) -> Hash32:
        """Stage one block, which sealing makes durable. `StorageError` if the store is closed or has failed."""
        self._directory.check_writable()
        return super().commit(height, written)

    def revert(self, height: int) -> None:
        """Go back to exactly the state after the block of ``height``; see `Store.revert`.

        Unsealed blocks are undone in memory. Sealed ones are undone in one transaction, with the block records above
        ``height``; it is durable when this returns.

        Raises:
            StorageError: If the journal does not reach that far, or the store is closed or has failed.
        """
        self._directory.check_writable()
        super().revert(height)

    def seal(self, record: tuple[int, bytes] | None) -> None:
        """Make everything staged durable, in one transaction, with height and block record; heights of records ascend.

        Raises:
            InvariantError: If the record's height is not above that of the last record, or is above the last block.
            StorageError: If the disk is full or fails, or the store is closed or has failed. It then refuses
                everything; sealed blocks are safe.
        """
        self._directory.check_writable()
        if record is not None:
            self._check_record_height(record[0])
        elif self.height == self._directory.marker.height:
            return
        unflushed = self._unflushed + len(self._staged)
        flush = unflushed >= self._settings.flush_interval
        tables, old = self._tables, self._directory.marker

        def action(transaction: Transaction) -> Marker:
            for height, row in self._staged:
                tables.put_record(transaction, JOURNAL, height_key(height), row)
            if record is not None:
                tables.put_record(transaction, BLOCKS, height_key(record[0]), record[1])
            if flush:
                return self._flush(transaction)
            flushed = old.flushed_height, old.flushed_root
            return put_marker(tables, transaction, Marker(0, self.height, self.state_root, *flushed, old.floor))

        self._directory.write(action)
        self._staged.clear()
        if record is not None:
            self._last_record = record[0]
        self._unflushed = 0 if flush else unflushed
        if flush:
            self._pending.clear()
            self._pending_timers.clear()

    def _flush(self, transaction: Transaction) -> Marker:
        """Have the flat tables follow the journal, and return the marker, which is put, of the present state."""
        self._put_flat(transaction, self._pending)
        deleted = self._tables.delete_first(transaction, JOURNAL, self._settings.kept_journal)
        present = self.height, self.state_root
        floor = self.floor if deleted is None else key_height(deleted)
        return put_marker(self._tables, transaction, Marker(0, *present, *present, floor))

    def record_at(self, height: int) -> tuple[int, bytes]:
        """Return height and content of the last sealed record up to a height. `StorageError` if none, or damaged."""
        found = self._tables.record_to(BLOCKS, height_key(height))
        if found is None:
            raise StorageError(self._tables.path, f"there is no block record at or below {height}", files.RESTORE)
        return key_height(found[0]), found[1]

    def records(self, first: int) -> Iterator[tuple[int, bytes]]:
        """Yield height and content of the sealed block records from ``first`` on, ascending.

        Blocks can be sealed or reverted meanwhile; each record is yielded as it is in its turn.

        Raises:
            StorageError: If one is damaged.
        """
        found = self._tables.record_from(BLOCKS, height_key(first))
        while found is not None:
            height = key_height(found[0])
            yield height, found[1]
            found = self._tables.record_from(BLOCKS, height_key(height + 1))

    def close(self) -> None:
        """Close the store and release the directory; unsealed blocks are lost. Closing again does nothing.

        If blocks were sealed and the flat tables lack much, they follow first, so that the next opening redoes little.
        """
        # What an interrupt has left half done fails one of these: then the tables stay as they are.
        is_sealed = self._directory.is_written and not self._staged and self.height == self._directory.marker.height
        try:
            if is_sealed and len(self._pending) > self._settings.unflushed_values:
                # If the disk fails here, the next opening redoes it, and no block is lost.
                with suppress(StorageError):
                    self._directory.write(self._flush)
        finally:
            self._directory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _put(self, undo: Undo, changes: Mapping[bytes, bytes | None]) -> None:
        self._staged.append((undo.height, encode_row(undo, changes)))
        self._pending.update(changes)
        self._pending_timers.update(timer_moves(changes))

    def _undo_above(self, height: int) -> list[Undo]:
        undone = [decode(row, JournalRow).undo() for staged, row in reversed(self._staged) if staged > height]
        if height < self._directory.marker.height:
            if height < self.floor:
                what = f"the journal reaches back to block {self.floor}, not to block {height}"
                raise StorageError(self._tables.path, what, "go back less far, or replay an export of the chain")
            undone += [row.undo() for row in reversed([*load_rows(self._tables, height)])]
        return undone

    def _take_back(self, height: int, undo: Undo) -> None:
        tables, old = self._tables, self._directory.marker
        flat = height < old.flushed_height

        def action(transaction: Transaction) -> Marker:
            tables.delete_from(transaction, JOURNAL, height_key(height + 1))
            tables.delete_from(transaction, BLOCKS, height_key(height + 1))
            flushed = (old.flushed_height, old.flushed_root)
            if flat:
                self._put_flat(transaction, undo.values)
                flushed = (height, undo.state_root)
            return put_marker(tables, transaction, Marker(0, height, undo.state_root, *flushed, old.floor))

        if height < old.height:
            self._directory.write(action)
            self._last_record = None
        self._staged = [row for row in self._staged if row[0] <= height]
        if flat:
            self._pending.clear()
            self._pending_timers.clear()
        else:
            self._pending.update(undo.values)
            self._pending_timers.update(timer_moves(undo.values))
        self._unflushed = sum(1 for _ in tables.scan(JOURNAL, height_key(self._directory.marker.flushed_height + 1)))

    def _values_in_order(self) -> Iterator[tuple[bytes, bytes]]:
        # A pending value comes before the flat one of the same key, and replaces it.
        flat = ((key, 1, value) for key, value in self._tables.scan(STATE))
        last = b""
        for key, _, value in merge(((key, 0, self._pending[key]) for key in sorted(self._pending)), flat):
            if key != last and value is not None:
                yield key, value
            last = key

    def _put_flat(self, transaction: Transaction, changes: Mapping[bytes, bytes | None]) -> None:
        """Write changes to the flat tables, in the order of their keys, which touches the fewest pages."""
        for key in sorted(changes):
            self._tables.replace(transaction, STATE, key, changes[key])
        for identity, height in sorted(timer_moves(changes).items()):
            self._tables.replace(transaction, TIMER_HEIGHTS, identity, None if height is None else height_key(height))

    def _check_record_height(self, height: int) -> None:
        if self._last_record is None:
            last = self._tables.record_to(BLOCKS, height_key(U64_MAX))
            self._last_record = -1 if last is None else key_height(last[0])
        least = self._last_record + 1
        if not least <= height <= self.height:
            raise InvariantError(f"a block record of height {height} must lie within {least}..={self.height}")
