"""The frames that an export is made of: one after the other into a file and out of it, each with its checksum.

```text
file     magic ‖ format version (2) ‖ genesis frame ‖ block and idle frames, ascending ‖ end frame
frame    length of the content (4) ‖ content ‖ CRC-32 of both (4)
content  positional msgpack, the name of its kind first:
         ["genesis", genesis, hash, state root]
         ["block", height, timestamp, [transaction…], hash, state root]
         ["proposed", …the same, proposer]    a block of a network, where each has a proposer of its own
         ["idle", height of the last, hash of the last]
         ["end", height of the last, SHA-256 of all bytes before this frame]
```

Numbers outside contents are big-endian, their widths in parentheses are bytes. Decision: D-50.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, EFBIG, ENOSPC
from hashlib import sha256
from io import SEEK_END
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from trailboss.codec.canonical import pack
from trailboss.primitives.errors import StorageError

MAGIC: Final = b"TRAILBOSS CHAIN\n"
FORMAT_VERSION: Final = 3

_VERSION_WIDTH: Final = 2
_LENGTH_WIDTH: Final = 4
_CHECKSUM_WIDTH: Final = 4
_NO_ROOM: Final = (ENOSPC, EDQUOT, EFBIG)
_ANOTHER_COPY: Final = "use another copy of the file, or export the chain again"
_NAME_AN_EXPORT: Final = "name a file that trailboss export wrote"


class GenesisContent(msgspec.Struct, frozen=True, array_like=True, tag="genesis"):
    """What the chain starts from."""

    genesis: bytes  # canonical CBOR
    hash: bytes  # of block 0
    state_root: bytes  # after block 0


class BlockContent(msgspec.Struct, frozen=True, array_like=True, tag="block"):
    """One block."""

    height: int  # its height
    timestamp_ms: int  # milliseconds since 1970
    transactions: tuple[bytes, ...]  # wire bytes of each, in order
    hash: bytes  # its hash
    state_root: bytes  # after it


class ProposedContent(BlockContent, frozen=True, array_like=True, tag="proposed"):
    """One block of a network."""

    proposer: bytes  # account that got its tips, 20 bytes


class IdleContent(msgspec.Struct, frozen=True, array_like=True, tag="idle"):
    """A run of blocks in which nothing happens, after the block before."""

    last: int  # height of the last of them
    hash: bytes  # of the last; it commits to all of them


class EndContent(msgspec.Struct, frozen=True, array_like=True, tag="end"):
    """The end."""

    last: int  # height of the head
    digest: bytes  # SHA-256 of all bytes of the file before this frame


Content = GenesisContent | BlockContent | ProposedContent | IdleContent | EndContent

_decoder: Final[msgspec.msgpack.Decoder[Content]] = msgspec.msgpack.Decoder(Content)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an operating system's error within into a `StorageError` that names the path."""
    try:
        yield
    except OSError as error:
        fix = "make room, or choose another place" if error.errno in _NO_ROOM else "choose another place"
        raise StorageError(path, f"cannot be written: {error.strerror}", fix) from None


class FrameWriter:
    """Frames on their way into a file, and the digest of all of them."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        """Begin a file.

        Raises:
            StorageError: Here and in every method, if it cannot be written.
        """
        self._path = path
        self._file = file
        self._digest = sha256()
        self._put(MAGIC + FORMAT_VERSION.to_bytes(_VERSION_WIDTH, "big"))

    def write(self, content: Content) -> None:
        """Write a frame."""
        octets = pack(content)
        frame = len(octets).to_bytes(_LENGTH_WIDTH, "big") + octets
        self._put(frame + zlib.crc32(frame).to_bytes(_CHECKSUM_WIDTH, "big"))

    def end(self, height: int) -> None:
        """Write the end frame of a chain whose head has that height."""
        self.write(EndContent(height, self._digest.digest()))

    def _put(self, octets: bytes) -> None:
        with writing(self._path):
            self._file.write(octets)
        self._digest.update(octets)


class FrameReader:
    """The frames of an export, one after the other, each checked against its checksum; ``offset`` is the last one's."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        """Begin to read a file.

        Raises:
            StorageError: If it is foreign, of another format, or cannot be read.
        """
        self.path = path
        self.offset = 0
        self._file = file
        self._digest = sha256()
        with _reading(path):
            self._left = file.seek(0, SEEK_END)
            file.seek(0)
        head = self._take(min(self._left, len(MAGIC) + _VERSION_WIDTH))
        if not head.startswith(MAGIC):
            raise StorageError(path, "is not an export of a chain", _NAME_AN_EXPORT)
        version = int.from_bytes(head[len(MAGIC) :], "big")
        if version != FORMAT_VERSION:
            what = f"has export format {version}, and this program reads format {FORMAT_VERSION}"
            raise StorageError(path, what, "use the program that wrote it, or a newer one")

    def frames(self) -> Iterator[Content]:
        """Yield the content of every frame, the end frame last.

        Raises:
            StorageError: Naming the offset of a frame that is cut off or damaged, or of what comes after the end.
        """
        content: Content | None = None
        while not isinstance(content, EndContent):
            digest = self._digest.digest()
            content = self._next_content()
            if isinstance(content, EndContent) and content.digest != digest:
                raise self.damaged("the bytes before it do not have the digest that it names")
            yield content
        if self._left:
            raise self.damaged(f"{self._left} bytes come after it, and it is the end")

    def damaged(self, what: str) -> StorageError:
        """Return the refusal of the frame read last."""
        return StorageError(self.path, f"the frame at offset {self.offset} is damaged: {what}", _ANOTHER_COPY)

    def _next_content(self) -> Content:
        with _reading(self.path):
            self.offset = self._file.tell()
        length_octets = self._take(_LENGTH_WIDTH)
        octets = self._take(int.from_bytes(length_octets, "big"))
        checksum = zlib.crc32(octets, zlib.crc32(length_octets))
        if checksum != int.from_bytes(self._take(_CHECKSUM_WIDTH), "big"):
            raise self.damaged("it does not have the checksum that it names")
        try:
            return _decoder.decode(octets)
        except msgspec.DecodeError as error:
            raise self.damaged(str(error)) from None

    def _take(self, length: int) -> bytes:
        # A damaged length could ask for gigabytes that the file does not have.
        if length > self._left:
            raise StorageError(self.path, f"ends within the frame at offset {self.offset}", _ANOTHER_COPY)
        with _reading(self.path):
            octets = self._file.read(length)
        self._left -= length
        self._digest.update(octets)
        return octets


@contextmanager
def frames_of(path: Path) -> Iterator[FrameReader]:
    """Open an export for reading.

    Raises:
        StorageError: If it cannot be opened, is foreign, or of another format.
    """
    with _reading(path):
        file = path.open("rb")
    with file:
        yield FrameReader(path, file)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(path, f"cannot be read: {error.strerror}", _NAME_AN_EXPORT) from None
