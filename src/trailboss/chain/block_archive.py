"""Where the records of a history lie: whole blocks by height, in memory or in a store on disk. Decision: D-50."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from trailboss.chain.block_records import decode_block, encode_block
from trailboss.model.blocks import Block
from trailboss.primitives.errors import InvariantError, Rejection, StorageError

READ_AHEAD: Final = 64  # records in memory that are taken at a time


class Records(Protocol):
    """Whole blocks by height for reading."""

    def at(self, height: int) -> Block:
        """Return the last record at or below a height."""

    def records(self, first: int) -> Iterator[Block]:
        """Yield the records from a height on, ascending. Do not keep or drop any meanwhile."""


class BlockArchive(Records, Protocol):
    """Where records lie."""

    def keep(self, record: Block | None) -> None:
        """Keep a record above all others, or none; all that came since the last call is safe when this returns."""

    def drop_above(self, height: int) -> None:
        """Forget the records above a height."""


class MemoryArchive:
    """An archive in memory."""

    __slots__ = ("_heights", "_records")

    def __init__(self) -> None:
        self._heights: list[int] = []
        self._records: list[Block] = []

    def keep(self, record: Block | None) -> None:
        """Keep a record above all others, or none."""
        if record is not None:
            self._heights.append(record.height)
            self._records.append(record)

    def at(self, height: int) -> Block:
        """Return the last record at or below a height."""
        return self._records[bisect_right(self._heights, height) - 1]

    def records(self, first: int) -> Iterator[Block]:
        """Yield the records from a height on, ascending. Do not keep or drop any meanwhile."""
        at = bisect_left(self._heights, first)
        # Slices, which another thread may take from a list that gets longer or shorter meanwhile.
        while records := self._records[at : at + READ_AHEAD]:
            yield from records
            at += len(records)

    def drop_above(self, height: int) -> None:
        """Forget the records above a height."""
        end = bisect_right(self._heights, height)
        del self._heights[end:], self._records[end:]


class LastRecord(MemoryArchive):
    """An archive in memory that holds the last record alone, for a chain that is only compared as it is built."""

    __slots__ = ()

    def keep(self, record: Block | None) -> None:
        """Keep a record above all others in place of them, or none."""
        if record is not None:
            self.drop_above(-1)
            super().keep(record)

    def at(self, height: int) -> Block:
        """Return the last record. `InvariantError` if the height is below it."""
        record = super().at(height)
        if record.height > height:
            raise InvariantError(f"the record of block {height} is gone: block {record.height} took its place")
        return record


class RecordStore(Protocol):
    """What an archive on disk needs of a store: opaque records by height, written together with the staged blocks."""

    def seal(self, record: tuple[int, bytes] | None) -> None:
        """Make all staged blocks durable, and with them a record under its height, if one is given."""

    def record_at(self, height: int) -> tuple[int, bytes]:
        """Return the last record at or below a height, and its height."""

    def records(self, first: int) -> Iterator[tuple[int, bytes]]:
        """Yield heights and records from a height on, ascending."""


class DiskArchive:
    """An archive in a store on disk: a record becomes durable in one step with the state after its block."""

    __slots__ = ("_path", "_store")

    def __init__(self, store: RecordStore, path: Path) -> None:
        self._store = store
        self._path = path

    def base(self) -> int:
        """Return the height of the first record; 0 if there is none. `StorageError` if it is damaged."""
        return next((height for height, _ in self._store.records(0)), 0)

    def keep(self, record: Block | None) -> None:
        """Seal the store, with a record above all others, or none."""
        self._store.seal(None if record is None else (record.height, encode_block(record)))

    def at(self, height: int) -> Block:
        """Return the last record at or below a height.

        Raises:
            StorageError: If it is not the record of a block of its height.
        """
        return self._decoded(*self._store.record_at(height))

    def records(self, first: int) -> Iterator[Block]:
        """Yield the records from a height on, ascending; raises as `at`."""
        for height, record in self._store.records(first):
            yield self._decoded(height, record)

    def drop_above(self, height: int) -> None:
        """Check that the store has gone back, which deletes the records above a height.

        Raises:
            InvariantError: If it still holds one.
        """
        kept = next(self._store.records(height + 1), None)
        if kept is not None:
            raise InvariantError(f"the store keeps the record of block {kept[0]} after going back to block {height}")

    def _decoded(self, height: int, record: bytes) -> Block:
        try:
            block = decode_block(record)
        except Rejection as rejection:
            raise self._unusable(f"block {height} cannot be read: {rejection.what}") from None
        if block.height != height:
            raise self._unusable(f"the record of block {height} holds block {block.height}")
        return block

    def _unusable(self, what: str) -> StorageError:
        return StorageError(self._path, what, "restore the chain from an export")
