"""A chain directory that is filled with the state of a block, in parts. Decision: D-105."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from trailboss.state.disk import files
from trailboss.state.disk.directory import complete
from trailboss.state.disk.files import DirectoryLock
from trailboss.state.disk.journal import Marker
from trailboss.state.disk.recovery import initialize, put_marker
from trailboss.state.disk.tables import BLOCKS, STATE, TIMER_HEIGHTS, Tables, Transaction, height_key
from trailboss.state.keys import timer_moves

MAP_SIZE: Final = 1 << 28  # initial bytes of the file's address space: that of a million timers, doubled once


class Intake:
    """A chain in the making: it has the whole state of a block, or there is no chain.

    The tables' file gets its name last, as in `ChainDirectory.create`, so the end of the process at any instruction
    leaves no chain, or the whole one; what is left otherwise, the next creation overwrites.
    """

    def __init__(self, path: Path, genesis: bytes) -> None:
        """Begin in a directory that is missing or empty, or where a creation has been interrupted.

        Raises:
            StorageError: If a chain or anything else is there already, or it cannot be written.
        """
        self.path = path
        self._is_new = not path.exists()
        files.make_directory(path)
        files.check_vacant(path)
        with ExitStack() as opened:
            opened.callback(DirectoryLock(path).release)
            files.check_vacant(path)
            files.remove_unfinished(path)
            unfinished = path.joinpath(files.UNFINISHED_NAME)
            # Nothing counts before the file has its name, so the disk need not follow every part.
            self._tables = Tables(unfinished, map_size=MAP_SIZE, durable=False, create=True)
            opened.callback(self._tables.close)
            initialize(self._tables, genesis)
            self._closing = opened.pop_all()

    def add(self, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Add full keys and values in one transaction; ascending keys are fastest. `StorageError` if the disk fails."""

        def action(transaction: Transaction) -> None:
            for key, value in entries:
                self._tables.replace(transaction, STATE, key, value)
            for identity, height in timer_moves(dict(entries)).items():
                self._tables.replace(
                    transaction, TIMER_HEIGHTS, identity, None if height is None else height_key(height)
                )

        self._tables.write(action)

    def finish(self, height: int, state_root: bytes, record: bytes) -> None:
        """Make it a chain, with the record of its first block, below which it cannot go back; it is closed and durable.

        The caller has checked that the entries are those of the state root; opening the chain checks it once more.

        Raises:
            StorageError: If the disk is full or fails; there is no chain then.
        """

        def action(transaction: Transaction) -> Marker:
            self._tables.put_record(transaction, BLOCKS, height_key(height), record)
            return put_marker(
                self._tables, transaction, Marker(0, height, state_root, height, state_root, floor=height)
            )

        with self._closing:
            marker = self._tables.write(action)
            self._tables.close()
            complete(self.path, marker, durable=True)
            files.write_clean(self.path)

    def discard(self) -> None:
        """Remove all that has been written, and the directory if it was made for this."""
        self._tables.close()
        files.remove_unfinished(self.path)
        with self._closing, files.explained(self.path):
            self.path.joinpath(files.LOCK_NAME).unlink(missing_ok=True)
            if self._is_new:
                self.path.rmdir()
