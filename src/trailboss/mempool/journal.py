"""The mempool's journal: who came and who went, in a file, so that a killed node finds again what waited.

```text
file     magic(16) ‖ format version(2) ‖ hash of the genesis(32) ‖ records
record   length of the content(4) ‖ kind(1) ‖ content ‖ CRC-32 of all that(4)
came     kind 1: height of the chain(8) ‖ wire bytes
went     kind 2: hashes of transactions, 32 bytes each
```

Numbers are big-endian, their widths in parentheses are bytes. A record is there as soon as the system has taken it: the
process may be killed then. A power cut is another matter, and needs a durable journal.

Nothing is ever changed in place. What is over stays until more than half of the file is; then those that wait are
written to a new file, which takes the place of the old one in one step.

Decision: D-71
"""

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import Final, NamedTuple, Self

from trailboss.crypto.digest import sha256
from trailboss.mempool.records import MEBIBYTE, Pooled
from trailboss.primitives.errors import StorageError
from trailboss.primitives.octets import Hash32

MAGIC: Final = b"TRAILBOSS POOL\n\n"
FORMAT_VERSION: Final = 1
WASTE_MIN: Final = MEBIBYTE
"""Bytes that are over, below which a file is not written anew for their sake."""
CAME: Final = 1
WENT: Final = 2

_VERSION_WIDTH: Final = 2
_CHECKSUM_WIDTH: Final = 4
_FRONT: Final = Struct(">IB")
_HEIGHT_WIDTH: Final = 8
_FILE_MODE: Final = 0o644
_ELSEWHERE: Final = "remove it, or keep it elsewhere, and start again"


class Waiting(NamedTuple):
    """A transaction that waited when the journal was written last.

    Attributes:
        height: Of the chain when it came.
        raw: Its wire bytes.
    """

    height: int
    raw: bytes


class Found(NamedTuple):
    """What was found in a file.

    Attributes:
        waiting: What waited, by hash, in order of arrival.
        end: Offset behind the last whole record.
        damage: What is wrong from there on; None if that is the end of the file.
    """

    waiting: dict[bytes, Waiting]
    end: int
    damage: str | None


class Journal:
    """A journal, open for writing.

    `append` and `forget` are short, and are called under one lock of the caller's. `sync` and `rewrite` wait for the
    disk, and are called outside it.

    Attributes:
        path: The file.
        size: Bytes of it.
    """

    def __init__(self, path: Path, header: bytes, found: Found, *, durable: bool) -> None:
        """Go on with a file; `open` is the way."""
        self.path = path
        self.size = found.end
        self._found = found
        self._live = len(header) + sum(_width_of(waiting.raw) for waiting in found.waiting.values())
        self._header = header
        self._is_durable = durable
        self._copy = path.with_name(path.name + ".new")
        # Held while the file is made durable or exchanged: nobody waits for a file that is not the journal any more.
        self._exchange = Lock()
        self._since_copy: list[bytes] | None = None
        self._is_torn = True
        with _explained(path):
            self._copy.unlink(missing_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, _FILE_MODE)
        try:
            with _explained(path):
                self._write(b"" if self.size else header)
            self._make_durable()
        except StorageError:
            os.close(self._file)
            raise

    @classmethod
    def open(cls, path: Path, genesis: bytes, *, durable: bool = False) -> Self:
        """Open a journal, or begin one. What is damaged at its end is cut off.

        Args:
            path: The file.
            genesis: Hash of the genesis of the chain that the transactions are for, 32 bytes.
            durable: Whether a record shall survive a power cut too, once `sync` has returned.

        Raises:
            StorageError: If the file is no journal, of another version, of another chain, or cannot be used.
        """
        header = MAGIC + FORMAT_VERSION.to_bytes(_VERSION_WIDTH, "big") + genesis
        with _explained(path):
            octets = path.read_bytes() if path.exists() else b""
        # Whoever is killed while he begins one leaves a part of the header.
        is_begun = len(octets) < len(header) and header.startswith(octets)
        if not is_begun:
            _check_header(path, octets, header)
        found = Found({}, 0, None) if is_begun else _read_records(octets, len(header))
        return cls(path, header, found, durable=durable)

    def take_found(self) -> Found:
        """Return what was found when the file was opened; nothing when it is asked again."""
        found, self._found = self._found, Found({}, self._found.end, None)
        return found

    def append(self, height: int, raw: bytes, gone: Sequence[Pooled] = ()) -> None:
        """Write that a transaction came, and which ones went for it: one call of the system.

        Args:
            height: Of the chain.
            raw: Its wire bytes.
            gone: The others.

        Raises:
            StorageError: If the system refuses; the journal is as before.
        """
        # Cut off in between, it has both; the other way round it would have neither.
        self._append(_came(height, raw) + _went(gone))
        self._live += _width_of(raw) - sum(_width_of(pooled.raw) for pooled in gone)

    def forget(self, gone: Sequence[Pooled]) -> None:
        """Write that transactions went: one call of the system.

        Raises:
            StorageError: If the system refuses; the journal is as before.
        """
        self._append(_went(gone))
        self._live -= sum(_width_of(pooled.raw) for pooled in gone)

    def sync(self) -> None:
        """Wait until all that has been written is on disk, if the journal is durable.

        Raises:
            StorageError: If the system refuses.
        """
        if self._is_durable:
            with self._exchange, _explained(self.path):
                os.fsync(self._file)

    def rewrite(self, lock: Lock, waiting: Callable[[], Sequence[Pooled]], *, is_due: bool = False) -> bool:
        """Write the journal anew, if more than half of it is over, and return whether it was.

        Whatever happens, the old file is whole until the new one, whole too, takes its place.

        Args:
            lock: What `append` and `forget` are called under. It is free while the file is written.
            waiting: Returns what waits, by arrival; called under the lock.
            is_due: Whether it is to be written anew in any case.

        Raises:
            StorageError: If the system refuses; the journal is as before.
        """
        with self._exchange:
            with lock:
                over = self.size - self._live
                if not is_due and (over < WASTE_MIN or 2 * over <= self.size):
                    return False
                self._since_copy = []
                pooled = waiting()
                self._live = len(self._header) + sum(_width_of(each.raw) for each in pooled)
            try:
                self._write_copy(pooled)
                with lock:
                    self._adopt()
            finally:
                self._since_copy = None
                with suppress(OSError):
                    self._copy.unlink(missing_ok=True)
            self._make_durable()
            return True

    def close(self) -> None:
        """Close the file. It stays for the next start."""
        with self._exchange:
            os.close(self._file)

    def _append(self, records: bytes) -> None:
        with _explained(self.path):
            self._write(records)
        if self._since_copy is not None:
            self._since_copy.append(records)

    def _write_copy(self, waiting: Iterable[Pooled]) -> None:
        with _explained(self._copy), self._copy.open("wb") as file:
            file.write(self._header)
            file.writelines(_came(pooled.admitted_height, pooled.raw) for pooled in waiting)
            file.flush()
            if self._is_durable:
                os.fsync(file.fileno())

    def _adopt(self) -> None:
        """Put the copy in the place of the journal, with what was appended meanwhile."""
        with _explained(self._copy):
            file = os.open(self._copy, os.O_WRONLY | os.O_CLOEXEC | os.O_APPEND)
            try:
                size = os.fstat(file).st_size + _write_all(file, b"".join(self._since_copy or ()))
                if self._is_durable:
                    os.fsync(file)
                self._copy.replace(self.path)
            except OSError:
                os.close(file)
                raise
        os.close(self._file)
        self._file = file
        self.size = size

    def _write(self, octets: bytes) -> None:
        """Write at the end, after cutting off what an attempt before this one may have left there."""
        if self._is_torn:
            os.ftruncate(self._file, self.size)
        self._is_torn = True
        self.size += _write_all(self._file, octets)
        self._is_torn = False

    def _make_durable(self) -> None:
        """Wait until the file and its name are on disk, if the journal is durable."""
        if self._is_durable:
            with _explained(self.path):
                os.fsync(self._file)
                directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(directory)
                finally:
                    os.close(directory)


def _width_of(raw: bytes) -> int:
    """Return the bytes of the record by which a transaction came."""
    return _FRONT.size + _HEIGHT_WIDTH + len(raw) + _CHECKSUM_WIDTH


def _came(height: int, raw: bytes) -> bytes:
    return _record(CAME, height.to_bytes(_HEIGHT_WIDTH, "big") + raw)


def _went(gone: Iterable[Pooled]) -> bytes:
    names = b"".join(pooled.hash for pooled in gone)
    return _record(WENT, names) if names else b""


def _record(kind: int, content: bytes) -> bytes:
    record = _FRONT.pack(len(content), kind) + content
    return record + zlib.crc32(record).to_bytes(_CHECKSUM_WIDTH, "big")


def _write_all(file: int, octets: bytes) -> int:
    written = os.write(file, octets)
    if written < len(octets):
        raise OSError(ENOSPC, os.strerror(ENOSPC))
    return written


def _check_header(path: Path, octets: bytes, header: bytes) -> None:
    if not octets.startswith(MAGIC):
        raise StorageError(path, "it is not a mempool's journal", _ELSEWHERE)
    version = int.from_bytes(octets[len(MAGIC) : len(MAGIC) + _VERSION_WIDTH], "big")
    if version != FORMAT_VERSION:
        raise StorageError(path, f"it has format version {version}; this program writes {FORMAT_VERSION}", _ELSEWHERE)
    if not octets.startswith(header):
        raise StorageError(path, "it is the journal of another chain's mempool", _ELSEWHERE)


def _read_records(octets: bytes, offset: int) -> Found:
    waiting: dict[bytes, Waiting] = {}
    while offset < len(octets):
        record = _read_record(octets, offset)
        if record is None:
            left = len(octets) - offset
            return Found(waiting, offset, f"the record at offset {offset} is cut or damaged: {left} bytes lost")
        kind, content = record
        if kind == CAME:
            raw = content[_HEIGHT_WIDTH:]
            waiting[sha256(raw)] = Waiting(int.from_bytes(content[:_HEIGHT_WIDTH], "big"), raw)
        else:
            for start in range(0, len(content), Hash32.WIDTH):
                waiting.pop(content[start : start + Hash32.WIDTH], None)
        offset += _FRONT.size + len(content) + _CHECKSUM_WIDTH
    return Found(waiting, offset, None)


def _read_record(octets: bytes, offset: int) -> tuple[int, bytes] | None:
    """Return kind and content of the record at an offset; None if it is cut or damaged."""
    start = offset + _FRONT.size
    if start > len(octets):
        return None
    width, kind = _FRONT.unpack_from(octets, offset)
    content = octets[start : start + width]
    checksum = octets[start + width : start + width + _CHECKSUM_WIDTH]
    expected = zlib.crc32(octets[offset : start + width]).to_bytes(_CHECKSUM_WIDTH, "big")
    return (kind, content) if checksum == expected and kind in (CAME, WENT) else None


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses into a `StorageError` about ``path``."""
    try:
        yield
    except OSError as error:
        what = f"the system refuses: {error.strerror or error}"
        raise StorageError(path, what, "mend that and try again; what waited still waits") from error
