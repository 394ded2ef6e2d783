"""The journal has what waits, whatever happens to the process, the file or the disk."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.mempool.world import BASEFEE, World, restless, small, transfer
from trailboss.crypto.digest import sha256
from trailboss.mempool import AdmissionStatus, End, Journal, Mempool, MempoolLimits, Pooled, journal
from trailboss.model.transactions import Transaction
from trailboss.primitives.errors import StorageError
from trailboss.primitives.octets import Hash32

GENESIS = World().chain.genesis.instance_id()
BETTER = {"max_fee_per_cycle": 3 * BASEFEE, "max_fee_per_cell": 3 * BASEFEE, "max_priority_fee_per_cycle": 2}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the journal is."""
    return tmp_path / "mempool.journal"


def opened(path: Path, **limits: int) -> World:
    """Return a world whose mempool has a journal."""
    return small(Journal.open(path, GENESIS), **limits)


def reopened(world: World, path: Path) -> World:
    """Return the same chain with a mempool that begins anew over the journal."""
    world.mempool.close()
    return World(Mempool(world.mempool.limits, Journal.open(path, GENESIS)), world.chain)


def found(path: Path) -> list[bytes]:
    """Return the hashes of what a journal says is waiting."""
    opened_again = Journal.open(path, GENESIS)
    opened_again.close()
    return list(opened_again.take_found().waiting)


# Starting again


def test_what_waited_waits_again_after_a_start(path: Path) -> None:
    """In the same order, of the same age; what has gone, for whatever reason, stays away."""
    world = opened(path, transactions_max=6)
    world.go_on(2)
    for sender in range(6):
        world.add(transfer(sender))
    world.build()
    for sender in range(6):
        world.add(transfer(sender, 1))
    world.add(transfer(0, 1, **BETTER))
    world.add(transfer(6, 0, max_priority_fee_per_cycle=9))
    waiting = world.mempool.pooled()
    assert len(waiting) == 6
    again = reopened(world, path)
    recovery = again.mempool.recover(again.view)
    assert (recovery.admitted, recovery.endings, recovery.damage) == (6, [], None)
    assert [(each.hash, each.admitted_height) for each in again.mempool.pooled()] == [
        (each.hash, each.admitted_height) for each in waiting
    ]
    assert again.mempool.recover(again.view).admitted == 6, "asked again, there is nothing more to find"


def test_what_a_last_block_held_is_told_of_after_a_start(path: Path) -> None:
    """The node was killed between the block and the mempool; and after the next start nothing is said any more."""
    world = opened(path)
    names = [world.add(transfer(nonce=nonce)).hash for nonce in range(3)]
    world.chain.build(world.take()[:1])
    for expected in (names[:1], []):
        world = reopened(world, path)
        recovery = world.mempool.recover(world.view)
        assert [(ending.hash, ending.end) for ending in recovery.endings] == [
            (name, End.INVALIDATED) for name in expected
        ]
        assert (recovery.admitted, world.waiting()) == (2, names[1:])


def test_what_waited_waits_again_when_only_its_price_or_its_distance_is_against_it(path: Path) -> None:
    """A start loses nobody for what a newcomer would be refused for."""
    genesis = restless().chain.genesis.instance_id()
    world = restless(Mempool(journal=Journal.open(path, genesis)))
    world.chain.build([transfer(nonce=0)])
    world.go_on(0)
    names = [world.add(transfer(1, max_fee_per_cycle=BASEFEE + 1)).hash, world.add(transfer(nonce=65)).hash]
    world.chain.reorg(1)
    world.chain.build([transfer(2), transfer(3)])
    world.go_on(0)
    world.mempool.close()
    again = World(Mempool(journal=Journal.open(path, genesis)), world.chain)
    recovery = again.mempool.recover(again.view)
    assert (recovery.admitted, recovery.endings, again.waiting()) == (2, [], names)


def test_mempool_without_a_journal_finds_nothing() -> None:
    """It begins with nothing, and has nothing to close."""
    world = World()
    assert world.mempool.recover(world.view).admitted == 0
    world.mempool.close()


def test_transaction_that_cannot_be_read_is_told_of(path: Path) -> None:
    """As after a change of the transaction format: it does not keep a node from starting."""
    world = opened(path)
    store = Journal.open(path, GENESIS)
    store.append(0, b"\xff no transaction")
    store.close()
    world = reopened(world, path)
    [ending] = world.mempool.recover(world.view).endings
    assert ending.rejection is not None
    assert ending.rejection.reason.code == 1213


# Damage


def waiter(raw: bytes) -> Pooled:
    """Return something that waits, and has few bytes."""
    return Pooled(
        transaction=transfer(),
        hash=Hash32(sha256(raw)),
        raw=raw,
        arrival=0,
        cost=0,
        cycles=0,
        cells=0,
        admitted_height=0,
    )


def written(path: Path) -> list[tuple[int, list[bytes]]]:
    """Write a short journal with everything in it; return its length and what waits, after each record."""
    store = Journal.open(path, GENESIS)
    first, second, third = (waiter(raw) for raw in (b"one", b"two", b"three"))
    points = [(store.size, list[bytes]())]
    store.append(1, first.raw)
    points.append((store.size, [first.hash]))
    store.append(300, second.raw)
    points.append((store.size, [first.hash, second.hash]))
    store.append(2, third.raw, [first])
    # Who came is written before those that went for it.
    points.append((points[-1][0] + points[1][0] - points[0][0] + 2, [first.hash, second.hash, third.hash]))
    points.append((store.size, [second.hash, third.hash]))
    store.forget([second, third])
    points.append((store.size, []))
    store.append(3, second.raw)
    points.append((store.size, [second.hash]))
    store.close()
    return points


def test_journal_has_all_whole_records_when_it_is_cut_anywhere(path: Path, tmp_path: Path) -> None:
    """What is behind the cut is reported, and cut off; then it goes on."""
    points = written(path)
    octets, cut = path.read_bytes(), tmp_path / "cut"
    ends, header = dict(points), points[0][0]
    assert len(ends) == len(points) == 7
    for length in range(len(octets)):
        cut.write_bytes(octets[:length])
        store = Journal.open(cut, GENESIS)
        waiting, end, damage = store.take_found()
        if length <= header:
            assert (list(waiting), damage) == ([], None)
        else:
            assert (damage is None) == (end == length) == (length in ends)
        if end in ends:
            assert list(waiting) == ends[end]
        if damage is not None:
            assert damage == f"the record at offset {end} is cut or damaged: {length - end} bytes lost"
        assert header <= store.size == cut.stat().st_size <= max(length, header)
        store.append(7, b"more")
        store.close()
        waiting, _, damage = Journal.open(cut, GENESIS).take_found()
        assert (list(waiting.values())[-1], damage) == ((7, b"more"), None)


def test_journal_has_all_before_the_damage_when_a_byte_is_changed(path: Path, tmp_path: Path) -> None:
    """Never what was not written; a header that is not ours is another matter."""
    points = written(path)
    octets, changed = path.read_bytes(), tmp_path / "changed"
    header = points[0][0]
    for offset in range(header, len(octets)):
        changed.write_bytes(octets[:offset] + bytes([octets[offset] ^ 1 << offset % 8]) + octets[offset + 1 :])
        store = Journal.open(changed, GENESIS)
        waiting, end, damage = store.take_found()
        store.close()
        assert end <= offset
        assert damage is not None
        if end in dict(points):
            assert list(waiting) == dict(points)[end]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda _: b"something else, and longer than the header of a journal is", "it is not a mempool's journal"),
        (lambda _: b"short", "it is not a mempool's journal"),
        (lambda octets: octets[:17] + b"\x09" + octets[18:], "it has format version 9; this program writes 1"),
        (lambda octets: octets[:18] + bytes(32), "it is the journal of another chain's mempool"),
    ],
)
def test_file_is_refused_when_it_is_no_journal_of_this_chain(
    path: Path, change: Callable[[bytes], bytes], what: str
) -> None:
    """And left as it is."""
    written(path)
    path.write_bytes(change(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(StorageError) as caught:
        Journal.open(path, GENESIS)
    assert (caught.value.what, caught.value.fix) == (what, "remove it, or keep it elsewhere, and start again")
    assert path.read_bytes() == before


def test_path_is_refused_when_no_file_can_be_there(tmp_path: Path) -> None:
    """The system's own words."""
    with pytest.raises(StorageError, match="Is a directory"):
        Journal.open(tmp_path, GENESIS)


# A disk that refuses


def test_journal_is_not_begun_when_the_disk_is_full(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And begins when there is room again."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_: 3)
        with pytest.raises(StorageError, match="No space left on device"):
            Journal.open(path, GENESIS)
    world = opened(path)
    name = world.add(transfer()).hash
    assert found(path) == [name]


def test_transaction_is_not_taken_when_the_journal_cannot_be_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has changed, and what was written of it is cut off by the next."""
    world = opened(path)
    first = world.add(transfer()).hash
    write = os.write

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, octets: write(file, octets[: len(octets) // 2]))
        with pytest.raises(StorageError, match="No space left on device"):
            world.add(transfer(nonce=1))
        with pytest.raises(StorageError, match="No space left on device"):
            world.add(transfer(0, **BETTER))
    assert world.waiting() == [first]
    second = world.add(transfer(1)).hash
    assert found(path) == [first, second]


def test_journal_goes_on_when_it_cannot_be_written_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file is whole until the new one is in its place."""
    monkeypatch.setattr(journal, "WASTE_MIN", 1)
    world = opened(path)
    names = [world.add(transfer(sender)).hash for sender in range(5)]

    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        world.mempool.settle(world.view, names[:4], {})
        large = path.stat().st_size
    assert sorted(path.parent.iterdir()) == [path]
    assert found(path) == names[4:]
    second = world.add(transfer(6)).hash
    assert path.stat().st_size < large
    assert found(path) == [*names[4:], second]


# Writing it again


def test_journal_is_written_again_when_more_than_half_is_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before, and not for little."""
    world = opened(path)
    names = [world.add(transfer(sender)).hash for sender in range(6)]
    large = path.stat().st_size
    world.mempool.settle(world.view, names[:5], {})
    assert path.stat().st_size > large, "a megabyte is little"
    monkeypatch.setattr(journal, "WASTE_MIN", 1)
    world.mempool.settle(world.view, (), {})
    assert path.stat().st_size == world.mempool.statistics().journal_bytes < large / 2
    assert found(path) == names[5:]
    more = [world.add(transfer(sender, 1)).hash for sender in range(3)]
    before = path.stat().st_size
    world.mempool.settle(world.view, more[:1], {})
    assert path.stat().st_size > before, "most of it is not over"
    assert found(path) == [*names[5:], *more[1:]]


def test_journal_is_bounded_by_what_waits(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many come and go, by blocks or by replacement."""
    monkeypatch.setattr(journal, "WASTE_MIN", 1)
    world = opened(path, bytes_max=1_000)
    sizes = []
    for number in range(100):
        name = world.add(transfer(number % 9, 0, max_priority_fee_per_cycle=number)).hash
        world.mempool.settle(world.view, [name], {})
        sizes.append(path.stat().st_size)
    assert max(sizes) <= 2 * 1_000 + 300


def test_nothing_is_written_when_a_transaction_is_refused(path: Path) -> None:
    """A flood of bad transactions costs the disk nothing."""
    world = opened(path)
    before = path.stat().st_size
    bad: list[Transaction] = [transfer(chain_id=3), transfer(nonce=99), transfer(cycles_limit=1)]
    assert [world.add(transaction).status for transaction in bad] == [AdmissionStatus.REFUSED] * 3
    assert path.stat().st_size == before


def test_limits_are_those_of_the_documentation() -> None:
    """What a node has when nobody says otherwise."""
    limits = MempoolLimits()
    assert (limits.transactions_max, limits.bytes_max, limits.transaction_bytes_max) == (10_000, 67_108_864, 131_072)
    assert (limits.sender_transactions_max, limits.nonces_ahead_max, limits.replacement_percent) == (64, 64, 10)
    assert (limits.expiry_blocks, limits.remembered_max) == (3_600, 10_000)
