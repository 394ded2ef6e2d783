"""The mempool's journal: the transactions that came and went, in a file, so that a killed node finds what waited.

```text
file     magic(16) ‖ format version(2) ‖ hash of the genesis(32) ‖ records
record   length of the content(4) ‖ kind(1) ‖ content ‖ CRC-32 of all that(4)
came     kind 1: height of the chain(8) ‖ wire bytes
went     kind 2: hashes of transactions, 32 bytes each
```

Numbers are big-endian, their widths in parentheses are bytes. A record is safe as soon as the system has taken it: the
process may be killed then. A power cut may lose the last ones. A row of SQLite would cost six times as much.

Nothing is changed in place. Once more than half of the file is over, what waits is written to a new file, which takes
the place of the old one in one step. Decision: D-71.
"""

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple, Self

from trailboss.crypto.digest import sha256
from trailboss.mempool.records import MEBIBYTE, Pooled
from trailboss.primitives.errors import StorageError
from trailboss.primitives.octets import Hash32

MAGIC: Final = b"TRAILBOSS POOL\n\n"
FORMAT_VERSION: Final = 1
WASTE_MIN: Final = MEBIBYTE  # bytes that are over, below which a file is not written again
CAME: Final = 1
WENT: Final = 2

_VERSION_WIDTH: Final = 2
_CHECKSUM_WIDTH: Final = 4
_FRONT: Final = Struct(">IB")
_HEIGHT_WIDTH: Final = 8
_FILE_MODE: Final = 0o644
_ELSEWHERE: Final = "remove it, or keep it elsewhere, and start again"


class JournalEntry(NamedTuple):
    """A transaction that waited when the journal was written last: its wire bytes, and the height when it came."""

    height: int
    raw: bytes


class Recovered(NamedTuple):
    """The content of a file."""

    waiting: dict[bytes, JournalEntry]  # transactions by hash, in order of arrival
    end: int  # offset behind the last whole record
    damage: str | None  # what is wrong from there on; None at the end of the file


class Journal:
    """A journal, open for writing. Its methods are called under one lock of the caller's."""

    def __init__(self, path: Path, header: bytes, found: Recovered) -> None:
        self.path = path
        self.size = found.end
        self._found = found
        self._live = len(header) + sum(_width_of(entry.raw) for entry in found.waiting.values())
        self._header = header
        self._is_torn = True
        with _explained(path):
            self._file = _open(path)
        try:
            self._append(b"" if self.size else header)
        except StorageError:
            os.close(self._file)
            raise

    @classmethod
    def open(cls, path: Path, genesis: bytes) -> Self:
        """Open the journal of a chain, or begin one. What is damaged at its end is cut off.

        Raises:
            StorageError: If the file is no journal, of another version, of another chain, or cannot be used.
        """
        header = MAGIC + FORMAT_VERSION.to_bytes(_VERSION_WIDTH, "big") + genesis
        with _explained(path):
            octets = path.read_bytes() if path.exists() else b""
        # A process that is killed while it begins one leaves a part of the header.
        is_begun = len(octets) < len(header) and header.startswith(octets)
        if not is_begun:
            _check_header(path, octets, header)
        return cls(path, header, Recovered({}, 0, None) if is_begun else _read_records(octets, len(header)))

    def take_found(self) -> Recovered:
        """Return what was found when the file was opened; nothing the next time."""
        found, self._found = self._found, Recovered({}, self._found.end, None)
        return found

    def shorten(self, waiting: Iterable[Pooled]) -> None:
        """Keep only what waits, if more than half of the file is over, and not for little."""
        over = self.size - self._live
        if over >= WASTE_MIN and 2 * over > self.size:
            # If the disk refuses, the old file goes on.
            with suppress(StorageError):
                self.rewrite(waiting)

    def append(self, height: int, raw: bytes, gone: Sequence[Pooled] = ()) -> None:
        """Write that a transaction came at a height, and which ones went for it: one call of the system.

        Raises:
            StorageError: If the system refuses; the journal is as before.
        """
        # Cut off in between, it has both; the other way round it would have neither.
        self._append(_came(height, raw) + _went(gone))
        self._live += _width_of(raw) - sum(_width_of(pooled.raw) for pooled in gone)

    def forget(self, gone: Sequence[Pooled]) -> None:
        """Write that transactions went: one call of the system; raises as `append`."""
        self._append(_went(gone))
        self._live -= sum(_width_of(pooled.raw) for pooled in gone)

    def rewrite(self, waiting: Iterable[Pooled]) -> None:
        """Write what waits to a new file in the place of the old one; raises as `append`."""
        octets = self._header + b"".join(_came(pooled.admitted_height, pooled.raw) for pooled in waiting)
        copy = self.path.with_name(self.path.name + ".new")
        with _explained(copy):
            copy.unlink(missing_ok=True)
            file = _open(copy)
            try:
                _write(file, octets)
                copy.replace(self.path)
            except OSError:
                os.close(file)
                copy.unlink(missing_ok=True)
                raise
        os.close(self._file)
        self._file, self._is_torn = file, False
        self.size = self._live = len(octets)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _append(self, octets: bytes) -> None:
        """Write at the end, after cutting off what a failed write may have left there."""
        with _explained(self.path):
            if self._is_torn:
                os.ftruncate(self._file, self.size)
            self._is_torn = True
            _write(self._file, octets)
        self.size += len(octets)
        self._is_torn = False


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND, _FILE_MODE)


def _write(file: int, octets: bytes) -> None:
    if os.write(file, octets) < len(octets):
        raise OSError(ENOSPC, os.strerror(ENOSPC))


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


def _check_header(path: Path, octets: bytes, header: bytes) -> None:
    if not octets.startswith(MAGIC):
        raise StorageError(path, "it is not a mempool's journal", _ELSEWHERE)
    version = int.from_bytes(octets[len(MAGIC) : len(MAGIC) + _VERSION_WIDTH], "big")
    if version != FORMAT_VERSION:
        raise StorageError(path, f"it has format version {version}; this program writes {FORMAT_VERSION}", _ELSEWHERE)
    if not octets.startswith(header):
        raise StorageError(path, "it is the journal of another chain's mempool", _ELSEWHERE)


def _read_records(octets: bytes, offset: int) -> Recovered:
    waiting: dict[bytes, JournalEntry] = {}
    while offset < len(octets):
        start = offset + _FRONT.size
        width, kind = _FRONT.unpack_from(octets, offset) if start <= len(octets) else (0, 0)
        end = start + width
        expected = zlib.crc32(octets[offset:end]).to_bytes(_CHECKSUM_WIDTH, "big")
        if kind not in (CAME, WENT) or octets[end : end + _CHECKSUM_WIDTH] != expected:
            left = len(octets) - offset
            return Recovered(waiting, offset, f"the record at offset {offset} is cut or damaged: {left} bytes lost")
        content = octets[start:end]
        if kind == CAME:
            raw = content[_HEIGHT_WIDTH:]
            waiting[sha256(raw)] = JournalEntry(int.from_bytes(content[:_HEIGHT_WIDTH], "big"), raw)
        else:
            for at in range(0, width, Hash32.WIDTH):
                waiting.pop(content[at : at + Hash32.WIDTH], None)
        offset = end + _CHECKSUM_WIDTH
    return Recovered(waiting, offset, None)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses into a `StorageError` about ``path``."""
    try:
        yield
    except OSError as error:
        what = f"the system refuses: {error.strerror or error}"
        raise StorageError(path, what, "remove the cause and try again; what waited still waits") from error
