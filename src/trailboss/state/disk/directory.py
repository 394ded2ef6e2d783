"""A chain directory in use: its lock, its tables, and a head that follows every transaction. Decision: D-48."""

from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Self

from trailboss.primitives.errors import StorageError
from trailboss.state.disk import files
from trailboss.state.disk.files import DirectoryLock, Head, HeadFile
from trailboss.state.disk.journal import Marker
from trailboss.state.disk.recovery import check_rest, initialize, load_genesis, load_marker
from trailboss.state.disk.tables import Tables, Transaction, check_structure


class ChainDirectory:
    """The files of one chain, locked and open; ``marker`` is the state after the last transaction."""

    __slots__ = (
        *("_clean", "_closing", "_has_written", "_head", "_is_writable", "_refusal", "genesis", "marker", "path"),
        "tables",
    )

    @classmethod
    def create(cls, path: Path, genesis: bytes, *, durable: bool, map_size: int) -> Self:
        """Create a chain without blocks, and open it.

        The tables' file gets its name last, so an interrupted creation leaves no chain and can be repeated.

        Raises:
            StorageError: If a chain or anything else is there already, or it cannot be written.
        """
        files.make_directory(path)
        files.check_vacant(path)
        with ExitStack() as opened:
            opened.callback(DirectoryLock(path).release)
            files.check_vacant(path)
            try:
                _make(path, genesis, durable=durable, map_size=map_size)
            except StorageError:
                files.remove_unfinished(path)
                raise
            return cls(path, opened, durable=durable, map_size=map_size)

    @classmethod
    def open(cls, path: Path, *, durable: bool, map_size: int) -> Self:
        """Open the directory of a chain; one that cannot be written is opened read-only.

        Raises:
            StorageError: If there is no chain, it is in use, of another format, damaged, truncated or behind its head.
        """
        files.check_present(path)
        with ExitStack() as opened:
            lock = DirectoryLock(path)
            opened.callback(lock.release)
            return cls(path, opened, durable=durable, map_size=map_size, is_writable=lock.is_writable)

    def __init__(
        self, path: Path, opened: ExitStack, *, durable: bool, map_size: int, is_writable: bool = True
    ) -> None:
        """Open the files of a directory; use `create` or `open`. If that succeeds, ``opened`` is taken over."""
        self.path = path
        self._is_writable = is_writable
        self._clean = files.is_clean(path)
        if not self._clean:
            check_structure(path.joinpath(files.TABLES_NAME))
        self.tables = Tables(
            path.joinpath(files.TABLES_NAME), map_size=map_size, durable=durable, is_writable=is_writable
        )
        opened.callback(self.tables.close)
        self.genesis = load_genesis(self.tables)
        self.marker = load_marker(self.tables)
        files.check_head(path.joinpath(files.HEAD_NAME), _head(self.marker), tables_are_clean=self._clean)
        if not self._clean:
            check_rest(self.tables)
        if is_writable:
            self._head = HeadFile(path.joinpath(files.HEAD_NAME))
            opened.callback(self._head.close)
            self._head.reset(_head(self.marker))
        self._refusal: str | None = None
        self._has_written = False
        self._closing = opened.pop_all()

    def write(self, action: Callable[[Transaction], Marker]) -> None:
        """Run ``action`` in one transaction; it writes and returns the marker. See `Tables.write`.

        Raises:
            StorageError: If the disk is full or fails; nothing more can be written then.
        """
        try:
            if self._clean:
                files.remove_clean(self.path)
                self._clean = False
            self._has_written = True
            self.marker = self.tables.write(action)
            self._head.write(_head(self.marker))
        except StorageError as error:
            self._refusal = f"it stopped when {error.path} failed: {error.what}"
            raise

    def check_writable(self) -> None:
        """Check that blocks can be written. `StorageError` if closed or read-only, or after a failed write."""
        if not self._is_writable:
            fix = "copy the directory to where it can be written"
            raise StorageError(self.path, "the chain can only be read: its files cannot be written here", fix)
        self.check_open()

    def check_open(self) -> None:
        """Check that the state can be read. `StorageError` if closed, or after a failed write."""
        if self._refusal is not None:
            raise StorageError(self.path, f"the store takes no more blocks: {self._refusal}", "open it again")

    def abandon(self) -> None:
        """Close all files without recording an orderly close."""
        self._refusal = "what it holds does not agree"
        self.close()

    @property
    def is_written(self) -> bool:
        """Whether it has been written since it was opened, is open, and no write has failed or been interrupted."""
        return self._has_written and self._refusal is None and self.tables.transaction == self.marker.transaction

    def close(self) -> None:
        """Close all files and release the directory; closing again does nothing."""
        changed_in_order = self._refusal is None and not self._clean and self._is_writable
        self._refusal = self._refusal or "it is closed"
        with self._closing:
            if changed_in_order:
                # Without it the next opening checks more, and takes longer. Nothing is wrong.
                with suppress(StorageError):
                    files.write_clean(self.path)


def _head(marker: Marker) -> Head:
    return Head(marker.transaction, marker.height, marker.state_root)


def _make(path: Path, genesis: bytes, *, durable: bool, map_size: int) -> None:
    """Write the files of a chain without blocks."""
    unfinished = path.joinpath(files.UNFINISHED_NAME)
    with files.explained(unfinished):
        unfinished.unlink(missing_ok=True)
    with closing(Tables(unfinished, map_size=map_size, durable=durable, create=True)) as tables:
        marker = initialize(tables, genesis)
    complete(path, marker, durable=durable)


def complete(path: Path, marker: Marker, *, durable: bool) -> None:
    """Make the unfinished tables of a directory, which are closed, its chain."""
    unfinished = path.joinpath(files.UNFINISHED_NAME)
    with closing(HeadFile(path.joinpath(files.HEAD_NAME))) as head:
        head.reset(_head(marker))
        if durable:
            head.make_durable()
            files.make_durable(unfinished)
    with files.explained(path):
        unfinished.rename(path.joinpath(files.TABLES_NAME))
    if durable:
        files.make_durable(path)
        files.make_durable(path.parent)
