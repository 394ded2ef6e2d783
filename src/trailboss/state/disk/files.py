"""What a chain directory needs of the operating system: a lock, durable names, and two small files beside the tables.

```text
lock    the process id of the chain's owner; the lock is the kernel's and ends with the process; a directory that
        cannot be written is shared by its readers
head    two slots of 512 bytes, written in turn after every transaction of the tables, never flushed
        slot = transaction(8) ‖ height(8, signed) ‖ state root(32) ‖ sha256 of those
clean   size(8) ‖ sha256 of the tables' file(32) ‖ sha256 of those, written when the chain is closed and removed
        before its tables change
```

The head exists because LMDB uses the newer of its two meta pages, so one flipped bit there would silently give the
block before. The head records the last committed transaction. A slot is within one sector and written by one call, so
that neither a killed process nor a power cut can tear it. Decision: D-48.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from trailboss.primitives.errors import StorageError

TABLES_NAME: Final = "chain.mdb"
UNFINISHED_NAME: Final = "chain.mdb.new"
LOCK_NAME: Final = "lock"
HEAD_NAME: Final = "head"
CLEAN_NAME: Final = "clean"

SLOTS: Final = 2
SLOT_WIDTH: Final = 512

RESTORE: Final = "restore the directory from a copy, or import an export of the chain"

FOREIGN_SHOWN: Final = 5  # foreign files that a message names

_FILE_MODE: Final = 0o644
_UNWRITABLE: Final = (errno.EROFS, errno.EACCES, errno.EPERM)
_PID_DIGITS: Final = 20
_HEAD: Final = Struct(">Qq32s")
_CLEAN: Final = Struct(">Q32s")


class Head(NamedTuple):
    """The last commit: the tables' transaction, and height and state root of the last durable block."""

    transaction: int
    height: int
    state_root: bytes


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an operating system error into a `StorageError` about ``path``."""
    try:
        yield
    except OSError as error:
        what = f"the system refuses: {error.strerror or error}"
        raise StorageError(path, what, "correct this and try again; no sealed block is lost") from error


def make_directory(directory: Path) -> None:
    """Create a directory and its parents. `StorageError` if it is something else, or cannot be created."""
    with explained(directory):
        if directory.exists() and not directory.is_dir():
            raise StorageError(directory, "it is not a directory", "name a new or empty directory")
        directory.mkdir(parents=True, exist_ok=True)


def check_vacant(directory: Path) -> None:
    """Check that a directory holds at most an unfinished creation. `StorageError` if anything else is there."""
    with explained(directory):
        names = sorted(entry.name for entry in directory.iterdir())
    if TABLES_NAME in names:
        raise StorageError(directory, "a chain is there already", "open it, or choose another directory")
    foreign = [name for name in names if name not in (UNFINISHED_NAME, LOCK_NAME, HEAD_NAME)]
    if foreign:
        what = f"the directory holds something else: {', '.join(foreign[:FOREIGN_SHOWN])}"
        raise StorageError(directory, what, "choose an empty or new directory")


def check_present(directory: Path) -> None:
    """Check that a directory holds a chain. `StorageError` if it is missing, no directory, or holds none."""
    with explained(directory):
        if not directory.exists():
            raise StorageError(directory, "there is no such directory", "create a chain there, or name another one")
        if not directory.is_dir():
            raise StorageError(directory, "it is not a directory", "name the directory of a chain")
        names = sorted(entry.name for entry in directory.iterdir())
    if UNFINISHED_NAME in names and TABLES_NAME not in names:
        raise StorageError(directory, "the creation of a chain was interrupted here", "create it again")
    if TABLES_NAME not in names:
        raise StorageError(directory, f"there is no chain here: no {TABLES_NAME}", "create one, or name another")


class DirectoryLock:
    """The right to use a chain directory: of one store on the machine that can write, or of several that only read."""

    def __init__(self, directory: Path) -> None:
        """Take the lock, to write if the directory can be written, else to read.

        Raises:
            StorageError: If another store holds it, naming its process, or the file cannot be opened.
        """
        path = directory.joinpath(LOCK_NAME)
        self.is_writable = True
        self._file: int | None = None
        with explained(path):
            try:
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
            except OSError as error:
                if error.errno not in _UNWRITABLE:
                    raise
                self.is_writable = False
                # A read-only copy can lack the lock's file.
                with suppress(FileNotFoundError):
                    self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if self._file is not None:
                self._take(path, self._file)
        except StorageError:
            self.release()
            raise

    def _take(self, path: Path, file: int) -> None:
        with explained(path):
            try:
                fcntl.flock(file, (fcntl.LOCK_EX if self.is_writable else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = os.pread(file, _PID_DIGITS, 0).decode("ascii", "replace").strip()
                here = " (this one)" if holder == str(os.getpid()) else ""
                what = f"the chain is in use by process {holder or 'unknown'}{here}"
                raise StorageError(path.parent, what, "close it there first, or ask that node with --url") from error
            if self.is_writable:
                os.ftruncate(file, 0)
                os.pwrite(file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Release the lock; the file stays."""
        if self._file is not None:
            os.close(self._file)


class HeadFile:
    """The ``head`` of a chain directory, open for writing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with explained(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)

    def write(self, head: Head) -> None:
        """Write the head after a transaction, over the older slot."""
        with explained(self._path):
            os.pwrite(self._file, _slot(head), head.transaction % SLOTS * SLOT_WIDTH)

    def reset(self, head: Head) -> None:
        """Write both slots."""
        with explained(self._path):
            os.pwrite(self._file, _slot(head) * SLOTS, 0)
            os.ftruncate(self._file, SLOTS * SLOT_WIDTH)

    def make_durable(self) -> None:
        """Flush the head to disk."""
        with explained(self._path):
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def check_head(path: Path, found: Head, *, tables_are_clean: bool) -> None:
    """Check that the tables, whose last commit is ``found``, are not behind the head; a missing head is accepted.

    The head need not be readable if the tables are known to be as they were closed.

    Raises:
        StorageError: If the tables are behind it or contradict it, or it is damaged.
    """
    with explained(path):
        if not path.exists():
            return
        octets = path.read_bytes()
    slots = [_read_slot(octets[at : at + SLOT_WIDTH]) for at in range(0, SLOTS * SLOT_WIDTH, SLOT_WIDTH)]
    readable = [slot for slot in slots if slot is not None]
    if not readable:
        if tables_are_clean:
            return
        fix = "remove it to open the chain as its tables have it: the last block may be missing then"
        raise StorageError(path, "the record of the last block is damaged", fix)
    last = max(readable)
    # A slot that cannot be read may have been the newer one.
    least = last.transaction if tables_are_clean or len(readable) == SLOTS else last.transaction + 1
    if found.transaction < least:
        what = (
            f"the tables are behind the head: they end with transaction {found.transaction} at block {found.height}, "
            f"and transaction {least} had been committed (block {last.height} at least)"
        )
        raise StorageError(path.parent.joinpath(TABLES_NAME), what, RESTORE)
    if found.transaction == last.transaction and found != last:
        what = f"block {found.height} with root {found.state_root.hex()} is not the head that was committed: "
        what += f"block {last.height} with root {last.state_root.hex()}"
        raise StorageError(path.parent.joinpath(TABLES_NAME), what, RESTORE)


def write_clean(directory: Path) -> None:
    """Record size and digest of the tables' file, which is no longer written."""
    tables = directory.joinpath(TABLES_NAME)
    with explained(directory.joinpath(CLEAN_NAME)):
        content = _CLEAN.pack(tables.stat().st_size, _digest(tables))
        directory.joinpath(CLEAN_NAME).write_bytes(content + sha256(content).digest())


def remove_clean(directory: Path) -> None:
    """Remove the record of `write_clean`, before the tables' file changes."""
    path = directory.joinpath(CLEAN_NAME)
    with explained(path):
        path.unlink(missing_ok=True)


def remove_unfinished(directory: Path) -> None:
    """Remove the files of a failed creation."""
    with suppress(OSError):
        for name in (UNFINISHED_NAME, HEAD_NAME):
            directory.joinpath(name).unlink(missing_ok=True)


def is_clean(directory: Path) -> bool:
    """Return whether the tables' file is exactly as it was when the chain was last closed."""
    path, tables = directory.joinpath(CLEAN_NAME), directory.joinpath(TABLES_NAME)
    with explained(path):
        octets = path.read_bytes() if path.exists() else b""
        content, checksum = octets[: _CLEAN.size], octets[_CLEAN.size :]
        if checksum != sha256(content).digest() or len(content) != _CLEAN.size:
            return False
        size, digest = _CLEAN.unpack(content)
        return bool(tables.stat().st_size == size and _digest(tables) == digest)


def make_durable(path: Path) -> None:
    """Flush a file, or the names in a directory, to disk."""
    with explained(path):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return file_digest(file, "sha256").digest()


def _slot(head: Head) -> bytes:
    content = _HEAD.pack(*head)
    return (content + sha256(content).digest()).ljust(SLOT_WIDTH, b"\x00")


def _read_slot(octets: bytes) -> Head | None:
    """Return the head in a slot, or None if it is torn or damaged."""
    content, checksum = octets[: _HEAD.size], octets[_HEAD.size : _HEAD.size + sha256().digest_size]
    if len(octets) != SLOT_WIDTH or checksum != sha256(content).digest():
        return None
    return Head(*_HEAD.unpack(content))
