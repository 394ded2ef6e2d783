"""What the engine is answered about a snapshot, or a chunk, that is refused.

Source: CometBFT 0.38, the results of OfferSnapshot and ApplySnapshotChunk. Decision: D-105.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from msgspec import Struct

from trailboss.chain.snapshots import SnapshotFault


class OfferResult(IntEnum):
    """Answers to an offered snapshot."""

    ACCEPT = 1
    ABORT = 2  # no snapshot is wanted: the engine ends its state sync
    REJECT = 3  # another snapshot is wanted
    REJECT_FORMAT = 4  # no snapshot of this format is wanted
    REJECT_SENDER = 5  # nothing more is wanted of whoever offers this one


class ChunkResult(IntEnum):
    """Answers to a chunk."""

    ACCEPT = 1
    ABORT = 2
    RETRY = 3  # this chunk is wanted once more
    RETRY_SNAPSHOT = 4  # all chunks are wanted once more
    REJECT_SNAPSHOT = 5  # another snapshot is wanted


class ChunkDecision(Struct, frozen=True):
    """The answer to a chunk, which concerns that chunk and its sender alone."""

    result: ChunkResult
    refetches: bool = False  # whether the chunk is to be fetched from another peer
    rejects_sender: bool = False  # whether nothing more is wanted of its sender


OFFER_RESULTS: Final[Mapping[SnapshotFault, OfferResult]] = {
    SnapshotFault.FORMAT: OfferResult.REJECT_FORMAT,
    SnapshotFault.METADATA: OfferResult.REJECT_SENDER,
}
"""The answer to a refused snapshot, by the fault; after a `StorageError` it is ABORT."""

CHUNK_DECISIONS: Final[Mapping[SnapshotFault, ChunkDecision]] = {
    SnapshotFault.CHUNK: ChunkDecision(ChunkResult.RETRY, refetches=True, rejects_sender=True),
    # The engine hands out each chunk that a snapshot has once.
    SnapshotFault.ORDER: ChunkDecision(ChunkResult.ABORT),
}
"""The answer to a refused chunk, by the fault; after a `StorageError` it is ABORT."""
