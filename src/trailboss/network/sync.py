"""State sync over the engine's snapshot connection: the snapshots that a node offers, and the one that it joins by.

Decision: D-105
"""

from pathlib import Path
from threading import Thread
from typing import Any, Final

from trailboss.chain.opening import Genesis
from trailboss.chain.snapshots import Restoration, SnapshotError, SnapshotShelf, StateSnapshot
from trailboss.chain.view import ChainView
from trailboss.network.sync_answers import CHUNK_DECISIONS, OFFER_RESULTS, ChunkResult, OfferResult
from trailboss.node.logs import log
from trailboss.primitives.octets import Hash32

FOLLOW_BLOCKS: Final = 64  # blocks after which kept views follow the chain


class SnapshotOffer:
    """The snapshots that a node offers to those that join. Each is taken on a thread of its own."""

    def __init__(self, interval: int) -> None:
        """Offer snapshots of the heights that are multiples of an interval."""
        self._shelf = SnapshotShelf(interval)
        self._taking: Thread | None = None

    def note(self, view: ChainView) -> None:
        """Take a snapshot of a view if one is due, unless one is still being taken."""
        if view.height % FOLLOW_BLOCKS == 0:
            self._shelf.follow()
        if self._shelf.is_due(view.height) and (self._taking is None or not self._taking.is_alive()):
            self._taking = Thread(target=self._take, args=(view,), name="snapshot", daemon=True)
            self._taking.start()

    def _take(self, view: ChainView) -> None:
        try:
            snapshot = self._shelf.take(view)
        except SnapshotError as error:
            log().warning("no snapshot is taken", height=view.height, what=str(error))
        else:
            log().info("snapshot", height=snapshot.height, chunks=snapshot.chunks)

    def list_snapshots(self, _: Any, answer: Any) -> None:
        """Answer with the snapshots there are."""
        for each in self._shelf.snapshots:
            answer.snapshots.add(
                height=each.height, format=each.format, chunks=each.chunks, hash=each.hash, metadata=each.metadata
            )

    def load_chunk(self, request: Any, answer: Any) -> None:
        """Answer with a chunk; with nothing if it is no longer here."""
        answer.chunk = self._shelf.chunk(request.height, request.format, request.chunk)

    def close(self) -> None:
        """Wait for a snapshot that is being taken: it reads the chain."""
        if self._taking is not None:
            self._taking.join()


class Joining:
    """A chain that is fetched from other nodes: one snapshot after another, until one is whole."""

    def __init__(self, directory: Path, genesis: Genesis) -> None:
        """Join in a directory without a chain."""
        self._directory = directory
        self._genesis = genesis
        self._restoration: Restoration | None = None
        self.joined: tuple[int, Hash32] | None = None  # height and app hash of the chain, once it is there

    def standing(self) -> tuple[int, Hash32]:
        """Return height and app hash of the chain; height 0 until it is there."""
        return self.joined or (0, Hash32(bytes(Hash32.WIDTH)))

    def offer(self, request: Any, answer: Any) -> None:
        """Begin with a snapshot whose metadata is that of the trusted app hash; refuse any other."""
        self._drop()
        offered = request.snapshot
        snapshot = StateSnapshot(offered.height, offered.format, offered.chunks, offered.hash, offered.metadata)
        try:
            self._restoration = Restoration(self._directory, self._genesis, snapshot, request.app_hash)
        except SnapshotError as error:
            log().warning("a snapshot is refused", height=offered.height, reason=error.fault.value, what=str(error))
            answer.result = OFFER_RESULTS[error.fault]
        else:
            log().info("joins by a snapshot", height=offered.height, chunks=offered.chunks)
            answer.result = OfferResult.ACCEPT

    def apply_chunk(self, request: Any, answer: Any) -> None:
        """Check a chunk and keep it, and make the chain of the last one; refuse what is not the snapshot's."""
        restoration = self._restoration
        if restoration is None:
            answer.result = ChunkResult.ABORT
            return
        try:
            restoration.accept(request.index, request.chunk)
            if not restoration.missing:
                restoration.finish()
                self._restoration = None
                self.joined = restoration.header.height, restoration.app_hash
                log().info("joined the network", height=restoration.header.height)
            answer.result = ChunkResult.ACCEPT
        except SnapshotError as error:
            log().warning(
                "a chunk is refused", chunk=request.index, sender=request.sender.decode(errors="replace"),
                reason=error.fault.value, what=str(error),
            )  # fmt: skip
            decision = CHUNK_DECISIONS[error.fault]
            answer.result = decision.result
            if decision.refetches:
                answer.refetch_chunks.append(request.index)
            if decision.rejects_sender:
                answer.reject_senders.append(request.sender)

    def close(self) -> None:
        """Leave nothing of a snapshot that is not whole."""
        self._drop()

    def _drop(self) -> None:
        if self._restoration is not None:
            self._restoration.discard()
            self._restoration = None
