"""Snapshots: taken, served, restored; and whatever a hostile peer sends is refused and leaves nothing behind."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests.unit.chain.joining import Offer, filled_chain, offer_of, small_parts
from trailboss.chain import Chain, snapshots
from trailboss.chain.snapshots import Restoration, SnapshotError, SnapshotFault, SnapshotShelf, StateSnapshot
from trailboss.codec.canonical import pack
from trailboss.crypto.digest import sha256
from trailboss.network.sync_answers import CHUNK_DECISIONS, OFFER_RESULTS, ChunkResult, OfferResult
from trailboss.primitives.errors import InvariantError, StorageError
from trailboss.state.disk.files import LOCK_NAME, TABLES_NAME, UNFINISHED_NAME
from trailboss.state.disk.journal import Marker
from trailboss.state.disk.recovery import put_marker
from trailboss.state.disk.store import DiskStore
from trailboss.state.disk.tables import BLOCKS, Transaction

OTHER = bytes(range(32))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_parts(monkeypatch)


@pytest.fixture(scope="module")
def offer() -> Iterator[Offer]:
    """A snapshot of some dozen chunks."""
    with pytest.MonkeyPatch.context() as patch:
        small_parts(patch)
        local, _ = filled_chain()
        yield offer_of(local.chain)
    local.close()


def again(snapshot: StateSnapshot, metadata: bytes) -> StateSnapshot:
    """Return a snapshot with other metadata, whose hash is right."""
    return replace(snapshot, metadata=metadata, hash=sha256(metadata))


def forged(offer: Offer, change: Callable[[list], object]) -> StateSnapshot:
    """Return the snapshot with metadata that has been changed as a list of header, top and parts."""
    fields = msgspec.msgpack.decode(offer.snapshot.metadata)
    change(fields)
    return again(offer.snapshot, pack(fields))


def test_snapshot_has_many_chunks_when_parts_are_small(offer: Offer) -> None:
    """Otherwise these tests say little."""
    assert len(offer.chunks) == offer.snapshot.chunks >= 8
    assert all(0 < len(chunk) <= snapshots.CHUNK_OCTETS for chunk in offer.chunks)
    assert len(set(offer.chunks)) == len(offer.chunks)


HEADER, TOP, PARTS = range(3)
HEIGHT, STATE_ROOT = 2, 8
FALSE_METADATA: dict[str, Callable[[Offer], StateSnapshot]] = {
    "another hash": lambda offer: replace(offer.snapshot, hash=OTHER),
    "no hash": lambda offer: replace(offer.snapshot, hash=b""),
    "nothing": lambda offer: again(offer.snapshot, b""),
    "cut off": lambda offer: again(offer.snapshot, offer.snapshot.metadata[:-1]),
    "a byte more": lambda offer: again(offer.snapshot, offer.snapshot.metadata + b"\x00"),
    "no list": lambda offer: again(offer.snapshot, pack("snapshot")),
    "a field more": lambda offer: forged(offer, lambda fields: fields.append(1)),
    "not canonical": lambda offer: again(offer.snapshot, b"\xdc\x00\x03" + offer.snapshot.metadata[1:]),
    "four billion chunks": lambda offer: again(offer.snapshot, offer.snapshot.metadata[:-40] + b"\xdd\xff\xff\xff\xff"),
    "four billion nodes": lambda offer: again(
        offer.snapshot, b"\x93\x9e" + b"\x00" * 14 + b"\x92\x90\xdd\xff\xff\xff\xff"
    ),
    "four gigabytes": lambda offer: again(offer.snapshot, b"\x93\x9e\x01\x01\x01\xc6\xff\xff\xff\xff"),
    "too large": lambda offer: again(offer.snapshot, bytes(snapshots.METADATA_OCTETS_MAX + 1)),
    "another height": lambda offer: replace(offer.snapshot, height=offer.snapshot.height + 1),
    "header of another height": lambda offer: forged(offer, lambda fields: fields[HEADER].__setitem__(HEIGHT, 7)),
    "header of another state": lambda offer: forged(
        offer, lambda fields: fields[HEADER].__setitem__(STATE_ROOT, OTHER)
    ),
    "another namespace": lambda offer: forged(offer, lambda fields: fields[TOP][0].__setitem__(1, OTHER)),
    "a namespace less": lambda offer: forged(offer, lambda fields: fields[TOP][0].pop()),
    "another node": lambda offer: forged(offer, lambda fields: fields[TOP][1].__setitem__(0, bytes(560))),
    "a node more": lambda offer: forged(offer, lambda fields: fields[TOP][1].append(b"\x02")),
    "no nodes": lambda offer: forged(offer, lambda fields: fields[TOP][1].clear()),
    "a chunk less": lambda offer: forged(offer, lambda fields: fields[PARTS].pop()),
    "a chunk more": lambda offer: forged(offer, lambda fields: fields[PARTS].append(1)),
    "an empty chunk": lambda offer: forged(
        offer, lambda fields: fields[PARTS].__setitem__(slice(0, 2), [0, fields[PARTS][0] + fields[PARTS][1]])
    ),
    "a negative chunk": lambda offer: forged(
        offer, lambda fields: fields[PARTS].__setitem__(slice(0, 2), [-1, fields[PARTS][0] + fields[PARTS][1] + 1])
    ),
    "other chunks": lambda offer: replace(offer.snapshot, chunks=offer.snapshot.chunks - 1),
}


@pytest.mark.parametrize("name", FALSE_METADATA)
def test_snapshot_is_refused_when_its_metadata_is_false(tmp_path: Path, offer: Offer, name: str) -> None:
    """Its senders are to be rejected; nothing has been written, and the right snapshot succeeds in the same place."""
    directory = tmp_path / "chain"
    with pytest.raises(SnapshotError, match=f"block {FALSE_METADATA[name](offer).height} is false") as caught:
        offer.begin(directory, FALSE_METADATA[name](offer))
    assert caught.value.fault is SnapshotFault.METADATA
    assert OFFER_RESULTS[caught.value.fault] is OfferResult.REJECT_SENDER
    assert not directory.exists()
    with offer.restore(directory) as joined:
        assert joined.state_root == offer.view.state_root


def test_snapshot_is_refused_when_the_trusted_hash_is_another(tmp_path: Path, offer: Offer) -> None:
    """A snapshot of another chain, or of another block, is none of this one."""
    with pytest.raises(SnapshotError, match=f"{OTHER.hex()} is trusted"):
        Restoration(tmp_path / "chain", offer.chain.genesis, offer.snapshot, OTHER)
    assert not (tmp_path / "chain").exists()


def test_snapshot_is_refused_when_its_format_is_unknown(tmp_path: Path, offer: Offer) -> None:
    """The engine may have others."""
    with pytest.raises(SnapshotError, match="format 2, and this program reads format 1") as caught:
        offer.begin(tmp_path / "chain", replace(offer.snapshot, format=2))
    assert OFFER_RESULTS[caught.value.fault] is OfferResult.REJECT_FORMAT


WRONG_CHUNKS: dict[str, Callable[[Offer, int], bytes]] = {
    "nothing": lambda offer, at: offer.chunks[at][:0],
    "the one before": lambda offer, at: offer.chunks[at - 1],
    "the one after": lambda offer, at: offer.chunks[at + 1],
    "two of them": lambda offer, at: offer.chunks[at] + offer.chunks[at + 1],
    "twice": lambda offer, at: offer.chunks[at] * 2,
    "cut off": lambda offer, at: offer.chunks[at][:-1],
    "a byte more": lambda offer, at: offer.chunks[at] + b"t",
    "another value": lambda offer, at: offer.chunks[at][:-1] + bytes((offer.chunks[at][-1] ^ 1,)),
    "another key": lambda offer, at: bytes((offer.chunks[at][0], offer.chunks[at][1] ^ 1)) + offer.chunks[at][2:],
    "no namespace": lambda offer, at: b"x" + offer.chunks[at][1:],
    "four gigabytes": lambda offer, at: offer.chunks[at] + b"t" + b"\xff" * 44,
    "too large": lambda offer, at: offer.chunks[at].ljust(snapshots.CHUNK_OCTETS_MAX + 1),
}


@pytest.mark.parametrize("name", WRONG_CHUNKS)
def test_chunk_is_refused_when_it_is_wrong(tmp_path: Path, offer: Offer, name: str) -> None:
    """It is fetched again, its sender is rejected, nothing of it is kept, and the right one succeeds."""
    restoration = offer.begin(tmp_path / "chain")
    for index in range(len(offer.chunks)):
        missing = restoration.missing
        if 0 < index < len(offer.chunks) - 1:
            with pytest.raises(SnapshotError, match=f"chunk {index} ") as caught:
                restoration.accept(index, WRONG_CHUNKS[name](offer, index))
            decision = CHUNK_DECISIONS[caught.value.fault]
            assert (decision.result, decision.refetches, decision.rejects_sender) == (ChunkResult.RETRY, True, True)
        assert restoration.missing == missing
        restoration.accept(index, offer.chunks[index])
    restoration.finish()
    with Chain.open(tmp_path / "chain") as joined:
        assert list(joined.store.iterate(b"t")) == list(offer.view.store.iterate(b"t"))
        joined.check_invariants()


def test_chunk_is_refused_when_it_is_that_of_another_height(tmp_path: Path) -> None:
    """Right chunks of a block later fit nowhere, unless nothing in them has changed."""
    local, _ = filled_chain()
    with local:
        before = offer_of(local.chain)
        local.mine(3)
        after = offer_of(local.chain)
        restoration = before.begin(tmp_path / "chain")
        for index, chunk in enumerate(after.chunks[: len(before.chunks)]):
            if chunk != before.chunks[index]:
                with pytest.raises(SnapshotError, match="is wrong"):
                    restoration.accept(index, chunk)
        assert restoration.missing >= len(before.chunks) // 2
        restoration.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("index", [-1, 1, 10_000])
def test_chunk_is_refused_when_it_is_there_already_or_is_none(tmp_path: Path, offer: Offer, index: int) -> None:
    """No engine sends it, so the state sync ends."""
    restoration = offer.begin(tmp_path / "chain")
    restoration.accept(1, offer.chunks[1])
    with pytest.raises(SnapshotError, match=f"no chunk {index} among {len(offer.chunks)}") as caught:
        restoration.accept(index, offer.chunks[1])
    assert CHUNK_DECISIONS[caught.value.fault].result is ChunkResult.ABORT
    restoration.discard()


@pytest.mark.parametrize("existed", [False, True])
def test_nothing_is_left_behind_when_a_restoration_is_discarded(tmp_path: Path, offer: Offer, *, existed: bool) -> None:
    """The directory is gone, or as empty as it was."""
    directory = tmp_path / "chain"
    if existed:
        directory.mkdir()
    restoration = offer.begin(directory)
    restoration.accept(0, offer.chunks[0])
    assert {entry.name for entry in directory.iterdir()} == {UNFINISHED_NAME, LOCK_NAME}
    with pytest.raises(StorageError, match="interrupted here"):
        Chain.open(directory)
    restoration.discard()
    assert [entry.name for entry in tmp_path.rglob("*")] == ["chain"] * existed
    with offer.restore(directory) as joined:
        assert joined.height == offer.view.height


def test_restoration_is_no_chain_when_chunks_are_missing(tmp_path: Path, offer: Offer) -> None:
    """Finishing it is a mistake of the caller."""
    restoration = offer.begin(tmp_path / "chain")
    restoration.accept(0, offer.chunks[0])
    with pytest.raises(InvariantError, match=f"{len(offer.chunks) - 1} of {len(offer.chunks)} chunks are missing"):
        restoration.finish()
    restoration.discard()


def test_restoration_is_refused_when_something_is_in_its_directory(tmp_path: Path, offer: Offer) -> None:
    """A chain and foreign files stay as they are."""
    offer.restore(tmp_path / "chain").close()
    before = (tmp_path / "chain" / TABLES_NAME).read_bytes()
    with pytest.raises(StorageError, match="a chain is there already"):
        offer.begin(tmp_path / "chain")
    assert (tmp_path / "chain" / TABLES_NAME).read_bytes() == before
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(StorageError, match="holds something else"):
        offer.begin(tmp_path)
    running = offer.begin(tmp_path / "other")
    with pytest.raises(StorageError, match="in use by process"):
        offer.begin(tmp_path / "other")
    running.discard()


def test_restoration_leaves_no_chain_when_the_disk_fails_at_its_end(
    tmp_path: Path, offer: Offer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has no name yet; discarding removes it."""
    restoration = offer.begin(tmp_path / "chain")
    for index, chunk in enumerate(offer.chunks):
        restoration.accept(index, chunk)

    def fail(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(StorageError, match="No space left"):
        restoration.finish()
    monkeypatch.undo()
    restoration.discard()
    assert list(tmp_path.iterdir()) == []


def test_shelf_keeps_two_snapshots_and_serves_them_while_the_chain_goes_on(tmp_path: Path) -> None:
    """Chunks of a kept snapshot are those of its height; of a dropped one there is nothing."""
    local, _ = filled_chain()
    shelf = SnapshotShelf(10)
    with local:
        taken, expected = [], {}
        while len(taken) < 3:
            local.mine(1)
            shelf.follow()
            if shelf.is_due(local.chain.height):
                taken.append(shelf.take(local.chain.publish()))
                expected[taken[-1].height] = offer_of(local.chain)
        local.mine(25)
        assert [snapshot.height for snapshot in taken] == [20, 30, 40]
        assert shelf.snapshots == (taken[2], taken[1])
        for snapshot in taken[1:]:
            found = [shelf.chunk(snapshot.height, 1, index) for index in range(snapshot.chunks)]
            assert (snapshot, found) == (expected[snapshot.height].snapshot, expected[snapshot.height].chunks)
        assert shelf.chunk(taken[0].height, 1, 0) == b""
        assert shelf.chunk(taken[2].height, 2, 0) == b""
        assert shelf.chunk(taken[2].height, 1, taken[2].chunks) == b""
    assert not shelf.is_due(0)


def test_snapshot_is_refused_when_the_engine_could_not_carry_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One value or the metadata may be too large; the shelf keeps what it has."""
    local, _ = filled_chain()
    with local:
        shelf = SnapshotShelf(1)
        kept = shelf.take(local.chain.publish())
        local.mine(1)
        view = local.chain.publish()
        for limit in ("CHUNK_OCTETS_MAX", "METADATA_OCTETS_MAX"):
            with monkeypatch.context() as patch:
                patch.setattr(snapshots, limit, 300)
                with pytest.raises(SnapshotError, match="block 16 cannot be taken") as caught:
                    shelf.take(view)
            assert caught.value.fault is SnapshotFault.SIZE
        assert shelf.snapshots == (kept,)


def test_snapshots_are_the_same_bytes_when_the_chain_has_been_elsewhere(tmp_path: Path) -> None:
    """A chain on disk that has gone back, restarted and flushed its tables gives what a chain in memory gives."""
    local, _ = filled_chain()
    wandering, actor = filled_chain(data_dir=tmp_path / "chain")
    with local:
        mark = wandering.snapshot()
        actor.call("fill", b"c", sender=wandering.accounts[2], check=True)
        wandering.mine(40)
        wandering.revert(mark)
        wandering.close()
        with Chain.open(tmp_path / "chain") as chain:
            found, expected = offer_of(chain), offer_of(local.chain)
            assert (found.snapshot, found.chunks) == (expected.snapshot, expected.chunks)


def test_chain_is_refused_when_its_first_blocks_are_missing_and_it_never_joined(tmp_path: Path) -> None:
    """A chain whose records of blocks have been cut is damaged: its journal reaches further back than its blocks."""
    local, _ = filled_chain(data_dir=tmp_path / "chain")
    local.close()
    with DiskStore.open(tmp_path / "chain") as store:
        tables, marker = store._tables, store._directory.marker

        def cut(transaction: Transaction) -> Marker:
            assert tables.delete_first(transaction, BLOCKS, 2) is not None
            return put_marker(tables, transaction, marker)

        store._directory.write(cut)
    with pytest.raises(StorageError, match="the first block is 14, and the journal reaches back to 0"):
        Chain.open(tmp_path / "chain")
