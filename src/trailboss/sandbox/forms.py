"""Compiled actors on disk, so that no guest compiles a source again after a restart, or for want of memory.

A form is kept in a private file that is named by source and image, behind a digest of both and of its bytes. Whatever
is missing, damaged or foreign is not there: the actor is then compiled again. Decision: D-102.
"""

import hashlib
import os
import threading
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct, msgpack

from trailboss.sandbox.private_files import read_private, write_private

FORMS_BYTES_MAX: Final = 1 << 30
"""What the files of an image may take; those that were used longest ago go first. A form has at most some five bytes
for one of its source, so whoever fills this pays for deployments of 200 MB, which take all cycles of 800 blocks."""
_TRIMMED_BYTES: Final = FORMS_BYTES_MAX // 8 * 7  # that remain, so that the directory is seldom read
_FILE_BYTES: Final = 4_096  # what a file takes beside its bytes
_DIGEST_BYTES: Final = 32
_FASTEST: Final = 1  # of the compressor's levels


class CompiledActor(Struct, frozen=True):
    """An actor's source as a guest loads it."""

    octets: bytes  # which only a guest reads
    handlers: frozenset[str]


_decoder: Final = msgpack.Decoder(CompiledActor)


class CompiledForms:
    """The forms of one image in a directory, which need not exist. Processes and threads can share it."""

    def __init__(self, directory: Path, image: bytes) -> None:
        self._directory = directory
        self._image = image
        self._lock = threading.Lock()
        self._bytes = sum(size for _, size, _ in self._files())

    def find(self, source: str, code_hash: bytes) -> CompiledActor | None:
        """Return the form of a source, if it is kept."""
        path = self._path(source, code_hash)
        with suppress(OSError):
            octets = read_private(path)
            if octets is not None and octets[:_DIGEST_BYTES] == _digest(path, octets[_DIGEST_BYTES:]):
                os.utime(path)
                return _decoder.decode(zlib.decompress(octets[_DIGEST_BYTES:]))
        return None

    def keep(self, source: str, code_hash: bytes, actor: CompiledActor) -> None:
        """Keep the form of a source. Where nothing can be written, nothing is kept."""
        path = self._path(source, code_hash)
        octets = zlib.compress(msgpack.encode(actor), _FASTEST)
        with self._lock, suppress(OSError):
            write_private(path, _digest(path, octets), octets)
            self._bytes += _DIGEST_BYTES + len(octets) + _FILE_BYTES
            if self._bytes > FORMS_BYTES_MAX:
                self._trim()

    def _path(self, source: str, code_hash: bytes) -> Path:
        name = hashlib.sha256(code_hash + source.encode()).hexdigest()
        return self._directory.joinpath(f"{self._image.hex()}.{name}.form")

    def _trim(self) -> None:
        """Remove the files that were used longest ago."""
        files = sorted(self._files())
        self._bytes = sum(size for _, size, _ in files)
        for _, size, path in files:
            if self._bytes <= _TRIMMED_BYTES:
                break
            path.unlink(missing_ok=True)
            self._bytes -= size

    def _files(self) -> list[tuple[int, int, Path]]:
        """Return the files: when each was used last, what it takes, where it is."""
        files: list[tuple[int, int, Path]] = []
        with suppress(FileNotFoundError):  # Another process can have removed one: what is found is enough.
            for path in self._directory.glob(f"{self._image.hex()}.*.form"):
                facts = path.lstat()
                files.append((facts.st_mtime_ns, facts.st_size + _FILE_BYTES, path))
        return files


def _digest(path: Path, octets: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + octets).digest()
