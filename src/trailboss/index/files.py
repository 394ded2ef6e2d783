"""The file of the index, and the connections to it.

A file is used again only if nothing speaks against it; any other is deleted and built again, for the blocks hold all
that stands in it. Decision: D-75.
"""

import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection
from tempfile import TemporaryDirectory
from typing import Final

from trailboss.index.schema import APPLICATION, FORMAT, TABLES
from trailboss.primitives.errors import StorageError

FILE_NAME: Final = "index.sqlite"
BESIDES: Final = ("", "-wal", "-shm", "-journal")
"""What SQLite has beside a file, by the end of its name, and the file itself."""
REBUILD: Final = "delete it: the next start builds it from the blocks"
CACHE_KIB: Final = 8_192  # memory for pages that the writer keeps at hand; eight times as much is no faster
LOG_PAGES: Final = 4_000  # pages in the log after which the writer carries them over, 4 KiB each
LOG_BYTES_MAX: Final = 1 << 26  # the log on disk is cut off to this when it has been carried over
BUSY_SECONDS: Final = 5.0
"""No caller waits for a lock in normal work; this is for a file that another thread opens or closes."""
PRIMARY_CODE: Final = 0xFF  # the bits of an error's code that say which kind it is
DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT)
"""Errors of a file that makes no sense, or contradicts what is to be written next."""
BOOT_FILE: Final = Path("/proc/sys/kernel/random/boot_id")


class IndexFile:
    """An index's file: one connection that writes, and as many that read as there are reads at once.

    Once a read or a write has found it damaged, it is deleted when it is closed.
    """

    def __init__(self, path: Path | None, genesis: bytes) -> None:
        """Open or make a chain's file, without a path a temporary one. `StorageError` if it can be neither."""
        self._directory = TemporaryDirectory(prefix="trailboss-index-") if path is None else None
        self.path = path or Path(self._directory.name if self._directory else "") / FILE_NAME
        self.is_damaged = False
        self._idle: deque[Connection] = deque()
        self.is_closed = False
        try:
            self.writer = self._reopen(genesis) or self._make(genesis)
        except (sqlite3.Error, OSError) as error:
            if self._directory is not None:
                self._directory.cleanup()
            what = f"the index can be neither opened nor made: {error}"
            raise StorageError(self.path, what, "make its directory writable, with some room on the disk") from None

    def _connect(self) -> Connection:
        # The pool sees to it that one thread at a time has a connection.
        connection = sqlite3.connect(self.path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA temp_store = MEMORY")
        return connection

    def _reopen(self, genesis: bytes) -> Connection | None:
        """Return a connection to the file if it can be trusted; None if there is none, or it must be made again."""
        if not self.path.exists():
            return None
        connection = self._connect()
        try:
            if self._is_usable(connection, genesis):
                _tune(connection)
                self._mark(connection, is_closed=False)
                return connection
        except sqlite3.DatabaseError:
            # What is no database, or half of one, is made again like one of another chain.
            pass
        connection.close()
        return None

    def _is_usable(self, connection: Connection, genesis: bytes) -> bool:
        def pragma(name: str) -> int:
            return int(connection.execute(f"PRAGMA {name}").fetchone()[0])

        if (pragma("application_id"), pragma("user_version")) != (APPLICATION, FORMAT):
            return False
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if self.path.stat().st_size != pragma("page_count") * pragma("page_size"):
            return False
        # What was written without waiting for the disk is there unless the power was cut since.
        query = "SELECT true FROM state WHERE genesis = ? AND (is_closed OR boot <> '' AND boot = ?)"
        return connection.execute(query, (genesis, boot_id())).fetchone() is not None

    def _make(self, genesis: bytes) -> Connection:
        self._delete()
        connection = self._connect()
        _tune(connection)
        connection.executescript(
            f"BEGIN; PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}; {TABLES} "
            f"INSERT INTO state VALUES (x'{genesis.hex()}', -1, x'', '', 0); COMMIT;"
        )
        self._mark(connection, is_closed=False)
        return connection

    def _mark(self, connection: Connection, *, is_closed: bool) -> None:
        """Write, and wait for the disk, whether the file is in order however the machine stops."""
        if self._directory is not None:
            return
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("UPDATE state SET boot = ?, is_closed = ?", (boot_id(), is_closed))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA synchronous = OFF")

    def _delete(self) -> None:
        for end in BESIDES:
            self.path.with_name(self.path.name + end).unlink(missing_ok=True)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn failures of what is done within into a `StorageError`: the file is damaged, or the disk full."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._failure(error) from error

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Lend a connection that sees one state, to any thread. `StorageError` if it is closed, or damaged."""
        if self.is_closed:
            raise StorageError(self.path, "the index is closed", "ask a node that runs")
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
        try:
            connection.execute("BEGIN")
            yield connection
        except sqlite3.Error as error:
            raise self._failure(error) from error
        finally:
            connection.rollback()
            self._idle.append(connection)
            if self.is_closed:
                self._close_idle()

    def _failure(self, error: sqlite3.Error) -> StorageError:
        if getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE in DAMAGE:
            self.is_damaged = True
        return StorageError(self.path, f"the index cannot be used: {error}", REBUILD)

    def close(self) -> None:
        """Close all connections, and delete a temporary or damaged file. Closing it again does nothing."""
        if self.is_closed:
            return
        self.is_closed = True
        self._close_idle()
        with closing(self.writer):
            if not self.is_damaged:
                # Where the disk is full it cannot be written, and the index is built again if the machine stops too.
                with suppress(sqlite3.Error):
                    self._mark(self.writer, is_closed=True)
        if self.is_damaged:
            self._delete()
        if self._directory is not None:
            self._directory.cleanup()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()


def boot_id() -> str:
    """Return what names the time since the machine was switched on; nothing if the system has no name for it."""
    try:
        return BOOT_FILE.read_text().strip()
    except OSError:
        return ""


def _tune(connection: Connection) -> None:
    for pragma in (
        "journal_mode = WAL",
        "synchronous = OFF",
        f"cache_size = -{CACHE_KIB}",
        f"wal_autocheckpoint = {LOG_PAGES}",
        f"journal_size_limit = {LOG_BYTES_MAX}",
    ):
        connection.execute(f"PRAGMA {pragma}")
