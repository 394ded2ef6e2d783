"""A chain with timers, slots and accounts, and a chain that joins it by a snapshot of small chunks."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from trailboss.chain import Chain, ChainView, snapshots
from trailboss.chain.snapshots import Restoration, SnapshotShelf, StateSnapshot
from trailboss.state import parts
from trailboss.testing import ActorHandle, LocalChain

KEEPER = """
def fill(payload):
    for number in range(40):
        pvm_host.set_state(payload + str(number).encode(), payload * 20)
    for number in range(20):
        pvm_host.schedule_timer(pvm_host.block_height() + 5 + number, payload)


def handle_timer(payload):
    pvm_host.emit_event("kept", payload)
    pvm_host.schedule_timer(pvm_host.block_height() + 30, payload)
"""
PART, CHUNK = 600, 2_000
"""Most bytes of a part and of a chunk in these tests."""


class Offer(Struct, frozen=True):
    """A snapshot that is offered, with its chunks."""

    chain: Chain
    view: ChainView
    snapshot: StateSnapshot
    chunks: list[bytes]

    def begin(self, directory: Path, snapshot: StateSnapshot | None = None) -> Restoration:
        """Begin to restore it, or another one that is offered in its place."""
        return Restoration(directory, self.chain.genesis, snapshot or self.snapshot, self.view.head.hash)

    def restore(self, directory: Path) -> Chain:
        """Return the chain that joins by it."""
        restoration = self.begin(directory)
        for index, chunk in enumerate(self.chunks):
            restoration.accept(index, chunk)
        restoration.finish()
        return Chain.open(directory)


def offer_of(chain: Chain) -> Offer:
    """Return the snapshot of a chain's head, with its chunks."""
    shelf, view = SnapshotShelf(1), chain.publish()
    snapshot = shelf.take(view)
    chunks = [shelf.chunk(snapshot.height, snapshot.format, index) for index in range(snapshot.chunks)]
    return Offer(chain, view, snapshot, chunks)


def small_parts(patch: pytest.MonkeyPatch) -> None:
    """Cut states into small parts and chunks."""
    patch.setattr(parts, "PART_OCTETS", PART)
    patch.setattr(snapshots, "CHUNK_OCTETS", CHUNK)


def filled_chain(**options: Any) -> tuple[LocalChain, ActorHandle]:
    """Return a local chain at height 15 with an actor that has timers and slots."""
    local = LocalChain(preset="minimal", **options)
    actor = local.deploy(KEEPER, sender=local.accounts[0], value=10**12)
    for payload in (b"a", b"b"):
        actor.call("fill", payload, sender=local.accounts[1], check=True)
    local.mine(15 - local.chain.height)
    return local, actor
