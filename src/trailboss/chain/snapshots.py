"""Snapshots: the state after a block in chunks, for a node that joins a network without replaying its blocks.

A snapshot of block H consists of its metadata and of chunks, byte for byte the same on every node. The metadata holds
our header of H, whose hash the network's validators have signed as the app hash, and the top of the state under the
header's root. Both are checked when a snapshot is offered; from then on every chunk is checked by itself as it comes,
before anything of it is kept. Decision: D-105.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec
from msgspec import Struct

from trailboss.chain.block_records import encode_block
from trailboss.chain.view import ChainView
from trailboss.codec.canonical import pack
from trailboss.crypto.digest import sha256
from trailboss.execution.genesis import Genesis, encode_genesis
from trailboss.model.blocks import Block, Header, header_hash
from trailboss.primitives.errors import InvariantError, ProofError, TrailbossError
from trailboss.primitives.octets import Hash32
from trailboss.state.disk.intake import Intake
from trailboss.state.parts import Part, StoredPart, Top, check_parts, check_top, cut_state

SNAPSHOT_FORMAT: Final = 1  # of metadata and chunks; any change of their meaning raises it
KEPT_SNAPSHOTS: Final = 2  # of each shelf: a node that joins has an interval's blocks of time to fetch the older one
CHUNK_OCTETS: Final = 1 << 22  # most bytes of a chunk with more than one part
CHUNK_OCTETS_MAX: Final = 10_000_000  # most bytes of any chunk; the engine carries 16 MB
METADATA_OCTETS_MAX: Final = 3_900_000  # most bytes of metadata; the engine carries 4 MB, with some fields around it


class SnapshotFault(StrEnum):
    """Why a snapshot, or a chunk of one, is refused."""

    FORMAT = "format"  # it has a format that this program does not read
    METADATA = "metadata"  # what it says of itself is malformed or false: whoever offers it lies
    CHUNK = "chunk"  # a chunk is not what the metadata commits to: whoever sent it lies
    ORDER = "order"  # a chunk that is there already, or that the snapshot does not have
    SIZE = "size"  # a state that cannot be taken: its metadata, or one value, is too large for the engine


class SnapshotError(TrailbossError):
    """A refused snapshot or chunk; nothing of it has been kept."""

    def __init__(self, fault: SnapshotFault, what: str) -> None:
        super().__init__(fault, what)
        self.fault = fault
        self.what = what

    def __str__(self) -> str:
        return self.what


class StateSnapshot(Struct, frozen=True):
    """A snapshot as it is offered."""

    height: int  # of the block whose state it holds
    format: int  # version of metadata and chunks
    chunks: int  # number of chunks
    hash: bytes  # SHA-256 of the metadata
    metadata: bytes


class _Metadata(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What is said of a snapshot, as positional msgpack."""

    header: Header  # of its block
    top: Top  # of the state
    parts: tuple[int, ...]  # number of parts of each chunk


class _Kept(Struct, frozen=True):
    """A snapshot on a shelf."""

    snapshot: StateSnapshot
    view: ChainView  # where its values are read
    chunks: list[list[StoredPart]]


class SnapshotShelf:
    """The last snapshots of a chain, for any thread. Chunks are read from the views that they were taken of."""

    def __init__(self, interval: int) -> None:
        """Keep snapshots of the heights that are multiples of an interval, 1 or more."""
        self.interval = interval
        self._kept: tuple[_Kept, ...] = ()
        self._taking = Lock()

    def is_due(self, height: int) -> bool:
        """Return whether a snapshot of a height is to be taken."""
        return height > 0 and height % self.interval == 0

    def take(self, view: ChainView) -> StateSnapshot:
        """Take the snapshot of a view, and drop the oldest one if there are too many. O(state): 3 s a million timers.

        Raises:
            SnapshotError: ``SIZE`` if one value or the metadata would be too large.
        """
        with self._taking:
            top, parts = cut_state(view.store.roots, view.store.read)
            chunks = list(_chunks_of(parts))
            metadata = pack(_Metadata(view.head.header, top, tuple(map(len, chunks))))
            largest = max((part.octets for part in parts), default=0)
            if largest > CHUNK_OCTETS_MAX or len(metadata) > METADATA_OCTETS_MAX:
                what = f"the state of block {view.height} cannot be taken: its largest value has {largest} bytes, "
                what += f"of {CHUNK_OCTETS_MAX}, and its metadata {len(metadata)}, of {METADATA_OCTETS_MAX}"
                raise SnapshotError(SnapshotFault.SIZE, what)
            snapshot = StateSnapshot(view.height, SNAPSHOT_FORMAT, len(chunks), sha256(metadata), metadata)
            self._kept = (_Kept(snapshot, view, chunks), *self._kept)[:KEPT_SNAPSHOTS]
            return snapshot

    @property
    def snapshots(self) -> tuple[StateSnapshot, ...]:
        """The snapshots there are, the latest first."""
        return tuple(kept.snapshot for kept in self._kept)

    def chunk(self, height: int, format: int, index: int) -> bytes:  # noqa: A002
        """Return a chunk, counted from 0; nothing if it is not, or no longer, here. O(chunk): 50 ms at most."""
        for kept in self._kept:
            if (kept.snapshot.height, kept.snapshot.format) == (height, format) and index < len(kept.chunks):
                return b"".join([part.encode(kept.view.store.read) for part in kept.chunks[index]])
        return b""

    def follow(self) -> None:
        """Let the views follow the chain: called every few blocks, it halves the memory that they hold."""
        for kept in self._kept:
            kept.view.store.lowest_since()


class Restoration:
    """A chain that is built from a snapshot in a directory. Any number of wrong chunks leaves it as it is."""

    def __init__(self, directory: Path, genesis: Genesis, snapshot: StateSnapshot, app_hash: bytes) -> None:
        """Begin with an offered snapshot, in a directory that is missing or empty, or where this was interrupted.

        Args:
            directory: Where the chain will be.
            genesis: What its network starts from.
            snapshot: As it is offered; nothing of it is trusted.
            app_hash: Hash of the header of the snapshot's block, which is trusted.

        Raises:
            SnapshotError: ``FORMAT`` or ``METADATA`` if the snapshot is refused; nothing has been written then.
            StorageError: If the directory holds a chain or anything else, or cannot be written.
        """
        metadata, parts = _check_snapshot(snapshot, app_hash)
        self.header = metadata.header
        self.app_hash = Hash32(app_hash)
        remaining = iter(parts)
        self._parts = [list(islice(remaining, count)) for count in metadata.parts]
        self._missing = set(range(len(self._parts)))
        self._intake = Intake(directory, encode_genesis(genesis))

    @property
    def missing(self) -> int:
        """Number of chunks that have not been accepted."""
        return len(self._missing)

    def accept(self, index: int, octets: bytes) -> None:
        """Check a chunk and keep it; they can come in any order.

        Raises:
            SnapshotError: ``CHUNK`` or ``ORDER`` if it is refused; nothing has changed then, and the right one can
                follow.
            StorageError: If the disk is full or fails; only `discard` is left then.
        """
        if index not in self._missing:
            what = f"there is no chunk {index} among {len(self._parts)}, or it has been accepted"
            raise SnapshotError(SnapshotFault.ORDER, what)
        if len(octets) > CHUNK_OCTETS_MAX:
            what = f"chunk {index} has {len(octets)} bytes, more than {CHUNK_OCTETS_MAX}"
            raise SnapshotError(SnapshotFault.CHUNK, what)
        try:
            entries = check_parts(self._parts[index], octets)
        except ProofError as error:
            what = f"chunk {index} of block {self.header.height} is wrong: {error}"
            raise SnapshotError(SnapshotFault.CHUNK, what) from None
        self._intake.add(entries)
        self._missing.remove(index)

    def finish(self) -> None:
        """Make it a chain, which `Chain.open` opens: its first block is the snapshot's, and it has that one's header.

        Raises:
            InvariantError: If chunks are missing.
            StorageError: If the disk is full or fails; there is no chain then.
        """
        if self._missing:
            raise InvariantError(f"{len(self._missing)} of {len(self._parts)} chunks are missing")
        block = Block(header=self.header, hash=header_hash(self.header))
        self._intake.finish(block.height, self.header.state_root, encode_block(block))

    def discard(self) -> None:
        """Remove all that has been written."""
        self._intake.discard()


def _chunks_of(parts: Sequence[StoredPart]) -> Iterator[list[StoredPart]]:
    chunk: list[StoredPart] = []
    octets = 0
    for part in parts:
        if chunk and octets + part.octets > CHUNK_OCTETS:
            yield chunk
            chunk, octets = [], 0
        chunk.append(part)
        octets += part.octets
    if chunk:
        yield chunk


def _check_snapshot(snapshot: StateSnapshot, app_hash: bytes) -> tuple[_Metadata, list[Part]]:
    """Return the metadata of a snapshot and the parts of its state, once they are known to be right."""
    if snapshot.format != SNAPSHOT_FORMAT:
        what = f"the snapshot has format {snapshot.format}, and this program reads format {SNAPSHOT_FORMAT}"
        raise SnapshotError(SnapshotFault.FORMAT, what)
    octets = snapshot.metadata
    if len(octets) > METADATA_OCTETS_MAX:
        raise _false(snapshot, f"it has {len(octets)} bytes, more than {METADATA_OCTETS_MAX}")
    if sha256(octets) != snapshot.hash:
        raise _false(snapshot, f"its hash is {sha256(octets).hex()}, not {snapshot.hash.hex()}")
    try:
        metadata = msgspec.msgpack.decode(octets, type=_Metadata)
        if pack(metadata) != octets:
            raise _false(snapshot, "it is not canonical")
        found = header_hash(metadata.header)
        if found != app_hash or metadata.header.height != snapshot.height:
            what = f"it has the header {found} of block {metadata.header.height}, and {app_hash.hex()} is trusted"
            raise _false(snapshot, what)
        parts = check_top(metadata.top, metadata.header.state_root)
    except (msgspec.DecodeError, ProofError) as error:
        raise _false(snapshot, str(error)) from None
    if (
        len(metadata.parts) != snapshot.chunks
        or min(metadata.parts, default=1) < 1
        or sum(metadata.parts) != len(parts)
    ):
        raise _false(
            snapshot, f"{snapshot.chunks} chunks of {sum(metadata.parts)} parts are not its {len(parts)} parts"
        )
    return metadata, parts


def _false(snapshot: StateSnapshot, what: str) -> SnapshotError:
    return SnapshotError(
        SnapshotFault.METADATA, f"the metadata of a snapshot of block {snapshot.height} is false: {what}"
    )
