"""The store on disk: what survives, what it refuses, and that a refusal says what to do."""

import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import lmdb
import pytest

from trailboss.primitives.errors import InvariantError, StorageError
from trailboss.state import keys
from trailboss.state.disk import directory as chain_directory
from trailboss.state.disk import files
from trailboss.state.disk.journal import Marker, encode_row, with_checksum
from trailboss.state.disk.recovery import load_marker, put_marker
from trailboss.state.disk.store import DiskStore, StoreSettings
from trailboss.state.disk.tables import BLOCKS, JOURNAL, META, NAMES, STATE, TIMER_HEIGHTS, Tables, height_key
from trailboss.state.slots import encode_slot
from trailboss.state.store import MemoryStore, Undo

ACTOR = b"\x05" * 20
KEY = keys.config_key(b"counter")
FORGED_ROW = encode_row(Undo(5, bytes(32), {}), {})
SMALL = StoreSettings(flush_interval=4, kept_journal=8, map_size=1 << 16)


def changes_of(height: int) -> dict[bytes, bytes | None]:
    """Return changes that set one configuration and a slot, and add one timer."""
    return {
        KEY: height.to_bytes(4, "big"),
        keys.storage_key(ACTOR, bytes([height % 7])): encode_slot(bytes([height % 7]), bytes([height])),
        keys.timer_key(height + 10, height.to_bytes(32, "big")): b"timer",
    }


def grow(store: DiskStore, blocks: int) -> None:
    """Seal so many blocks, each with a record."""
    for height in range(store.height + 1, store.height + 1 + blocks):
        store.commit(height, changes_of(height))
        store.seal((height, f"block {height}".encode()))


def straight(blocks: int) -> MemoryStore:
    """Return a store in memory with the same blocks."""
    store = MemoryStore()
    for height in range(blocks):
        store.commit(height, changes_of(height))
    return store


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Have the system refuse to write a file beyond so many bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "chain"


@pytest.fixture
def store(directory: Path):
    with DiskStore.create(directory, b"genesis", durable=False, settings=SMALL) as made:
        yield made


def reopened(store: DiskStore) -> DiskStore:
    """Close a store and open its directory again."""
    directory = store._directory.path
    store.close()
    return DiskStore.open(directory, durable=False, settings=SMALL)


@pytest.mark.parametrize("blocks", [1, 3, 4, 5, 23])
def test_state_survives_when_blocks_are_sealed(store, blocks) -> None:
    """Before, at and after a flush, the reopened store is that of the sealed blocks."""
    grow(store, blocks)
    with reopened(store) as again:
        expected = straight(blocks)
        assert (again.height, again.state_root) == (blocks - 1, expected.state_root)
        assert list(again.iterate(keys.TIMERS)) == list(expected.iterate(keys.TIMERS))
        assert list(again.slot_names(ACTOR)) == list(expected.slot_names(ACTOR))
        assert again.timer_height((0).to_bytes(32, "big")) == 10
        assert again.timer_height(bytes(range(32))) is None
        again.check_invariants()


def test_one_transaction_seals_a_run_of_idle_blocks(store) -> None:
    """However many blocks without changes are staged, sealing them is one transaction."""
    grow(store, 1)
    before = store._directory.marker.transaction
    for height in range(1, 1_000):
        store.commit(height, {})
    store.seal(None)
    store.seal(None)
    assert store._directory.marker.transaction == before + 1
    with reopened(store) as again:
        assert again.height == 999


def test_records_are_found_by_height_when_there_are_gaps(store) -> None:
    """A record stands for its height and those after it, until the next one."""
    for height in range(30):
        store.commit(height, {})
        if height % 10 == 3:
            store.seal((height, bytes([height])))
    store.seal(None)
    assert [store.record_at(height) for height in (3, 12, 13, 29)] == [
        (3, b"\x03"),
        (3, b"\x03"),
        (13, b"\x0d"),
        (23, b"\x17"),
    ]
    assert [height for height, _ in store.records(4)] == [13, 23]
    with pytest.raises(StorageError, match="there is no block record at or below 2"):
        store.record_at(2)


@pytest.mark.parametrize("height", [1, 2, 5])
def test_record_is_refused_when_its_height_is_not_above_the_last(store, height) -> None:
    """Records ascend, and none stands for a block that is not there."""
    grow(store, 3)
    store.commit(3, {})
    with pytest.raises(InvariantError, match=f"a block record of height {height} must lie within 3..=3"):
        store.seal((height, b"record"))


def test_revert_is_refused_when_the_journal_does_not_reach(store) -> None:
    """The message says how far it reaches, and going there works."""
    grow(store, 23)
    assert store.floor == 11
    with pytest.raises(StorageError, match="the journal reaches back to block 11, not to block 10"):
        store.revert(10)
    store.revert(11)
    assert store.state_root == straight(12).state_root


def test_map_grows_when_a_block_is_larger_than_it(store) -> None:
    """A block many times the size of the map is sealed like any other."""
    large = bytes(20 * SMALL.map_size)
    store.commit(0, {KEY: large})
    store.seal((0, large))
    with reopened(store) as again:
        assert again.read(KEY) == large
        assert again.record_at(0) == (0, large)


def test_store_stops_when_the_disk_refuses(store, directory) -> None:
    """After a failed write it takes nothing more; opening again gives the last sealed block."""
    grow(store, 3)
    root = store.state_root
    store.commit(3, {KEY: bytes(1 << 22)})
    with full_disk(1 << 19):
        with pytest.raises(StorageError, match=r"chain\.mdb: the tables cannot be used"):
            store.seal(None)
        with pytest.raises(StorageError, match=re.escape("the store takes no more blocks: it stopped when")):
            store.commit(4, {})
    with reopened(store) as again:
        assert (again.height, again.state_root) == (2, root)
        grow(again, 1)


def test_everything_is_refused_when_the_store_is_closed(store) -> None:
    """Closing twice is fine; using it afterwards is not."""
    grow(store, 1)
    store.close()
    store.close()
    for use in (lambda: store.commit(1, {}), lambda: store.seal(None), lambda: store.revert(0)):
        with pytest.raises(StorageError, match="the store takes no more blocks: it is closed"):
            use()
    with pytest.raises(StorageError, match="the chain is closed"):
        store.read(keys.config_key(b"other"))


def test_directory_is_refused_when_it_is_in_use(store, directory) -> None:
    """The message names the process that has it."""
    with pytest.raises(StorageError, match=rf"the chain is in use by process {os.getpid()} \(this one\)"):
        DiskStore.open(directory)


def test_creation_is_refused_when_something_is_there(store, directory, tmp_path) -> None:
    """Neither a chain nor foreign files are touched."""
    with pytest.raises(StorageError, match="a chain is there already"):
        DiskStore.create(directory, b"")
    with pytest.raises(StorageError, match="the directory holds something else: chain"):
        DiskStore.create(tmp_path, b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chain"]
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="it is not a directory"):
        DiskStore.create(tmp_path / "file", b"")


def test_creation_succeeds_when_an_earlier_one_was_interrupted(directory) -> None:
    """What an unfinished creation leaves is no chain, and does not stop the next one."""
    directory.mkdir()
    for name in ("lock", "head", "chain.mdb.new"):
        (directory / name).write_bytes(b"half")
    with pytest.raises(StorageError, match="the creation of a chain was interrupted here"):
        DiskStore.open(directory)
    with DiskStore.create(directory, b"genesis") as store:
        assert store.genesis == b"genesis"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"there is no chain here: no chain\.mdb"),
        (b"", r"chain\.mdb: not a file of chain tables"),
        (b"# a text\n" * 2_000, r"chain\.mdb: not a file of chain tables"),
    ],
)
def test_opening_is_refused_when_it_is_no_chain(directory, content, message) -> None:
    """An empty directory, an empty file and a foreign one are told apart from a damaged chain."""
    with pytest.raises(StorageError, match="there is no such directory"):
        DiskStore.open(directory)
    directory.mkdir()
    if content is not None:
        (directory / "chain.mdb").write_bytes(content)
    with pytest.raises(StorageError, match=message):
        DiskStore.open(directory)


def tampered(store: DiskStore, *changes: tuple[bytes, bytes, bytes | None]) -> Path:
    """Close a store of 6 blocks and change its tables, so that their structure and marker stay sound."""
    grow(store, 6)
    store.close()
    path = store._directory.path / "chain.mdb"
    tables = Tables(path, map_size=SMALL.map_size, durable=False)
    marker = load_marker(tables)

    def action(transaction) -> Marker:
        for table, key, value in changes:
            tables.replace(transaction, table, key, value)
        return put_marker(tables, transaction, marker)

    tables.write(action)
    tables.close()
    return path.parent


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([(STATE, KEY, b"forged")], "the table of values gives state root"),
        ([(STATE, b"z" * 9, b"foreign")], "the table of values is damaged: state key"),
        ([(STATE, keys.storage_key(ACTOR, b"n"), b"no slot")], "the table of values is damaged: 6e6f20736c6f74 is not"),
        ([(TIMER_HEIGHTS, bytes(32), height_key(11))], "the table of timer heights does not agree with the timers"),
        ([(TIMER_HEIGHTS, bytes(32), None)], "the table of timer heights does not agree with the timers"),
        ([(JOURNAL, height_key(5), b"forged" * 9)], "record 0000000000000005 of table journal has a wrong checksum"),
        ([(JOURNAL, height_key(5), None)], "the tables give state root"),
        ([(JOURNAL, height_key(4), None)], "the tables give state root"),
        ([(BLOCKS, height_key(2), b"forged" * 9)], "record 0000000000000002 of table blocks has a wrong checksum"),
        ([(META, b"genesis", b"forged" * 9)], "record 67656e65736973 of table meta has a wrong checksum"),
        ([(META, b"genesis", None)], "the tables have no record 'genesis'"),
    ],
)
def test_opening_is_refused_when_the_tables_do_not_agree(store, changes, message) -> None:
    """Every table is compared with something that commits to it."""
    directory = tampered(store, *changes)
    for _ in range(2):
        with pytest.raises(StorageError, match=message) as refusal:
            DiskStore.open(directory)
        assert "import an export of the chain" in str(refusal.value)


@pytest.mark.parametrize(
    ("table", "key", "content", "message"),
    [
        (META, b"format", b"1", "the tables have format 1, and this program reads format 3"),
        (META, b"format", b"4", "the tables have format 4, and this program reads format 3"),
        (META, b"marker", b"forged", "it is not a marker"),
        (JOURNAL, height_key(5), b"forged", "it is not a journal row"),
        (JOURNAL, height_key(5), FORGED_ROW, "the tables give state root .* and 0{64} was sealed"),
    ],
)
def test_opening_is_refused_when_a_record_has_its_checksum_and_another_content(
    store, table, key, content, message
) -> None:
    """A checksum is against accidents; what a record says is checked as well, its version first."""
    stored = with_checksum(table, key, content)
    if key == b"marker":
        directory = store._directory.path
        store.close()
        tables = Tables(directory / "chain.mdb", map_size=SMALL.map_size, durable=False)
        tables.write(lambda transaction: tables.replace(transaction, table, key, stored))
        tables.close()
    else:
        directory = tampered(store, (table, key, stored))
    with pytest.raises(StorageError, match=message):
        DiskStore.open(directory)


def test_opening_is_refused_when_a_table_is_of_another_kind(store, directory) -> None:
    """A table with LMDB's flags would be read in another order, and one that is missing was never a chain's."""
    for flags, message in ((None, "the tables cannot be used"), ({"reverse_key": True}, "table blocks has foreign")):
        path = directory.with_name(f"tables of {flags is None}")
        with lmdb.open(str(path), subdir=False, max_dbs=9, lock=False) as environment:
            for name in NAMES:
                if name != BLOCKS or flags is not None:
                    environment.open_db(name, **(flags or {} if name == BLOCKS else {}))
        with pytest.raises(StorageError, match=message):
            Tables(path, map_size=SMALL.map_size, durable=False)


def test_opening_is_refused_when_the_structure_is_damaged(store, directory) -> None:
    """A truncated file never reaches LMDB, which would crash on it."""
    grow(store, 20)
    store.close()
    octets = (directory / "chain.mdb").read_bytes()
    (directory / "chain.mdb").write_bytes(octets[: len(octets) // 2])
    with pytest.raises(StorageError, match=r"chain\.mdb: the file is damaged: .*import an export"):
        DiskStore.open(directory)


def test_opening_is_refused_when_another_program_wrote_the_tables(store) -> None:
    """A transaction that left no marker of its own is not one of the store's."""
    directory = tampered(store)
    tables = Tables(directory / "chain.mdb", map_size=SMALL.map_size, durable=False)
    tables.write(lambda transaction: tables.replace(transaction, META, b"other", b""))
    tables.close()
    with pytest.raises(StorageError, match=r"transaction \d+ holds the marker of transaction \d+"):
        DiskStore.open(directory)


def test_opening_is_refused_when_the_tables_are_an_older_copy(store, directory) -> None:
    """Tables that are sound but behind the head would silently lose blocks."""
    grow(store, 2)
    older = (directory / "chain.mdb").read_bytes()
    grow(store, 2)
    store.close()
    (directory / "chain.mdb").write_bytes(older)
    with pytest.raises(StorageError, match=r"behind the head: they end with transaction \d+ at block 1"):
        DiskStore.open(directory)


def test_opening_succeeds_when_a_damaged_head_is_removed(store, directory) -> None:
    """The message of a damaged head says what to do, and that works."""
    grow(store, 2)
    store.close()
    (directory / "clean").unlink()
    (directory / "head").write_bytes(b"")
    with pytest.raises(StorageError, match=r"damaged \(remove it to open the chain as its tables have it"):
        DiskStore.open(directory)
    (directory / "head").unlink()
    with DiskStore.open(directory) as again:
        assert again.height == 1


def test_opening_succeeds_when_head_is_damaged_and_tables_are_as_they_were_closed(store, directory) -> None:
    """Tables that match their digest need no head; the head is written anew."""
    grow(store, 2)
    store.close()
    (directory / "head").write_bytes(b"damaged")
    for _ in range(2):
        with DiskStore.open(directory) as again:
            assert again.height == 1
        (directory / "clean").unlink(missing_ok=True)


def test_note_of_the_close_is_gone_when_a_block_is_sealed(store, directory) -> None:
    """Whoever opens the directory after a kill need not read the file only to see that it has changed."""
    again = reopened(store)
    assert (directory / "clean").exists()
    grow(again, 1)
    assert not (directory / "clean").exists()
    again.close()
    assert (directory / "clean").exists()


def test_invariants_are_refuted_when_a_pending_value_is_damaged(store) -> None:
    """What lies in memory is compared with the trees too."""
    grow(store, 2)
    store.check_invariants()
    store._pending[KEY] = b"forged"
    with pytest.raises(InvariantError, match="the tree of namespace c is not that of its values"):
        store.check_invariants()


def test_invariants_are_refuted_when_a_timer_is_not_found(store) -> None:
    """The heights of timers are compared with their keys."""
    grow(store, 2)
    store._pending_timers[bytes(32)] = None
    with pytest.raises(InvariantError, match=f"timer {bytes(32).hex()} is not found at its height 10"):
        store.check_invariants()


def test_iterate_is_refuted_when_a_value_is_missing(store) -> None:
    """A key of the tree without a value is never passed over."""
    grow(store, 1)
    store._pending[KEY] = None
    with pytest.raises(InvariantError, match="is in the tree and has no value"):
        list(store.iterate(keys.CONFIGURATIONS))


def test_store_closes_in_peace_when_it_cannot_note_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The note only makes the next opening faster, so its failure is no reason to call a good run a bad one."""

    def refuse(directory: Path) -> None:
        raise StorageError(directory, "the system refuses: no space", "mend that")

    store = DiskStore.create(tmp_path / "chain", b"genesis", durable=False)
    store.commit(0, {})
    store.seal((0, b"block"))
    monkeypatch.setattr(files, "write_clean", refuse)
    store.close()
    monkeypatch.undo()
    with DiskStore.open(tmp_path / "chain", durable=False) as again:
        assert again.height == 0


MUCH = {keys.config_key(number.to_bytes(2, "big")): b"value" for number in range(1_001)}
"""What changes so much that an orderly close writes it to the flat tables."""


def much(store: DiskStore) -> bytes:
    """Seal a block that changes `MUCH`, and return its root."""
    store.commit(0, MUCH)
    store.seal((0, b"block 0"))
    return store.state_root


def straight_to(height: int) -> MemoryStore:
    """Return a store in memory of three blocks, the first of which changes `MUCH`, up to a height."""
    store = MemoryStore()
    blocks = (MUCH, {KEY: b"sealed", keys.config_key(bytes(2)): None}, {KEY: b"third"})
    for number, changes in enumerate(blocks[: height + 1]):
        store.commit(number, changes)
    return store


def test_tables_follow_when_a_store_is_closed_that_lacks_much(store) -> None:
    """The next opening redoes no block, can go back as before, and lacks what was not sealed."""
    much(store)
    with reopened(store) as again:
        assert again._directory.marker.flushed_height == 0
        assert next(again.records(0)) == (0, b"block 0")
        again.revert(-1)
        assert again.state_root == MemoryStore().state_root
        again.commit(0, {})
        again.seal(None)
        again.commit(1, changes_of(1))
    with DiskStore.open(again.path, durable=False) as last:
        assert (last.height, last.state_root) == (0, MemoryStore().state_root)
        last.check_invariants()


@pytest.mark.parametrize("unsealed", [{}, {KEY: b"unsealed"}])
def test_unsealed_block_is_lost_when_a_store_is_closed_that_lacks_much(store, unsealed) -> None:
    """A close makes nothing durable that is not sealed."""
    root = much(store)
    store.commit(1, unsealed)
    with reopened(store) as again:
        assert (again.height, again.state_root) == (0, root)


@pytest.mark.parametrize("place", [(DiskStore, "_put"), (Tables, "write")])
@pytest.mark.parametrize("step", ["commit", "seal", "revert"])
def test_sealed_blocks_are_there_when_a_step_was_interrupted_before_the_close(store, monkeypatch, place, step) -> None:
    """Of what Ctrl-C has left half done, a close makes nothing durable."""
    much(store)
    store.commit(1, {KEY: b"sealed", keys.config_key(bytes(2)): None})
    store.seal((1, b"block 1"))
    roots = [straight_to(height).state_root for height in range(3)]
    steps = {
        "commit": lambda: store.commit(2, {KEY: b"third"}),
        "seal": lambda: [store.commit(2, {KEY: b"third"}), store.seal((2, b"block 2"))],
        "revert": lambda: store.revert(0),
    }
    done = getattr(*place)

    def interrupted(*arguments: object) -> None:
        done(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(*place, interrupted)
    with suppress(KeyboardInterrupt):
        steps[step]()
    monkeypatch.undo()
    with reopened(store) as again:
        assert again.state_root == roots[again.height]
        assert [height for height, _ in again.records(0)] == list(range(again.height + 1))
        again.check_invariants()


def test_close_writes_no_table_of_a_store_that_has_sealed_nothing(store) -> None:
    """Also after a crash, when much is to be redone: an opening, also one that is refused, changes no table."""
    much(store)
    store._directory.close()
    tables, clean = (store.path / name for name in (files.TABLES_NAME, files.CLEAN_NAME))
    clean.unlink()
    before = tables.read_bytes()
    DiskStore.open(store.path, durable=False).close()
    assert tables.read_bytes() == before


def test_store_is_released_when_what_a_close_writes_is_interrupted(store, monkeypatch) -> None:
    """The next opening redoes the rest."""
    root = much(store)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DiskStore, "_flush", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.close()
    monkeypatch.undo()
    with DiskStore.open(store.path, durable=False) as again:
        assert (again.height, again.state_root) == (0, root)


def test_blocks_are_safe_when_the_disk_refuses_what_a_close_writes(store) -> None:
    """The close says nothing, for the journal has it all."""
    root = much(store)
    with full_disk(1 << 12):
        store.close()
    with DiskStore.open(store.path, durable=False) as again:
        assert (again.height, again.state_root) == (0, root)
        assert again._directory.marker.flushed_height == -1


def test_creation_leaves_nothing_half_done_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After making room, the same call makes the chain."""

    def refuse(*_: object, **__: object) -> None:
        raise StorageError(tmp_path, "the system refuses: no space", "mend that")

    monkeypatch.setattr(chain_directory, "initialize", refuse)
    with pytest.raises(StorageError, match="no space"):
        DiskStore.create(tmp_path / "chain", b"genesis", durable=False)
    assert [path.name for path in (tmp_path / "chain").iterdir()] == ["lock"]
    monkeypatch.undo()
    DiskStore.create(tmp_path / "chain", b"genesis", durable=False).close()


def test_store_is_made_when_the_name_of_its_directory_is_not_utf_8(tmp_path: Path) -> None:
    """A name is bytes to the system, whatever they say."""
    directory = tmp_path / os.fsdecode(b"\xff")
    DiskStore.create(directory, b"genesis", durable=False).close()
    DiskStore.open(directory, durable=False).close()
