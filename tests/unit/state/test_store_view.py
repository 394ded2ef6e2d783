"""Views of a store: what they cost, what they keep alive, and how they read the tables of a store on disk."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import TypeVar

import pytest

from trailboss.primitives.errors import InvariantError, StorageError
from trailboss.state.disk.store import DiskStore, StoreSettings
from trailboss.state.disk.tables import STATE, Tables
from trailboss.state.keys import ACCOUNTS, TIMERS, account_key, timer_key
from trailboss.state.store import MemoryStore
from trailboss.state.view import FOLLOWED_MAX, Trail, ValueChange

Result = TypeVar("Result")

KEY = account_key(b"\x01" * 20)
OTHER = account_key(b"\x02" * 20)
IDENTITY = b"\x07" * 32
PATIENCE_SECONDS = 60
SMALL = StoreSettings(flush_interval=2, kept_journal=3, map_size=1 << 16)


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[MemoryStore, DiskStore]]:
    """Yield a store in memory and one on disk."""
    disk = DiskStore.create(tmp_path / "chain", b"genesis", durable=False, settings=SMALL)
    yield MemoryStore(), disk
    disk.close()


def elsewhere(action: Callable[[], Result]) -> Result:
    """Return what an action gives in another thread, or fail if it does not end."""
    given: list[Result] = []
    thread = Thread(target=lambda: given.append(action()), daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert given, "it waits, or has failed"
    return given[0]


def changes_in_memory() -> list[ValueChange]:
    gc.collect()
    return [item for item in gc.get_objects() if isinstance(item, ValueChange)]


def test_nothing_is_noted_when_nobody_has_a_view(
    monkeypatch: pytest.MonkeyPatch, stores: tuple[MemoryStore, DiskStore]
) -> None:
    """No change is announced, and going back reads no more values than it did before there were views."""
    announced = []
    announce = Trail.announce
    monkeypatch.setattr(Trail, "announce", lambda *given: (announced.append(given), announce(*given))[1])
    for store in stores:
        announced.clear()
        for height in range(5):
            store.commit(height, {KEY: bytes([height])})
        store.revert(1)
        assert announced == []
        store.view()
        store.commit(2, {KEY: b"two"})
        store.commit(3, {})
        store.revert(1)
        assert [height for _, _, height in announced] == [2, 1]


def test_changes_are_forgotten_when_no_view_from_before_them_is_left() -> None:
    """A view keeps alive what changed since, and a store nothing."""
    store = MemoryStore()
    store.commit(0, {KEY: b"0"})
    known = len(changes_in_memory())
    views = [store.view()]
    for height in range(1, 6):
        store.commit(height, {KEY: bytes([height])})
        views.append(store.view())
    assert len(changes_in_memory()) == known + 5
    del views[0], views[0]
    assert len(changes_in_memory()) == known + 3
    views.clear()
    assert len(changes_in_memory()) == known


def test_changes_are_put_together_when_a_view_has_many_behind_it() -> None:
    """The first reader makes one table of them; then the view keeps none of them alive, and tells what it told."""
    store = MemoryStore()
    store.commit(0, {KEY: b"0", timer_key(5, IDENTITY): b"timer"})
    known, seen = len(changes_in_memory()), store.view()
    for height in range(1, 2 * FOLLOWED_MAX):
        store.commit(height, {KEY: bytes([height]), timer_key(4 + height, IDENTITY): None})
    assert len(changes_in_memory()) > known + FOLLOWED_MAX
    assert (seen.read(OTHER), len(changes_in_memory())) == (None, known)
    store.revert(2)
    assert (seen.read(KEY), seen.read(timer_key(5, IDENTITY)), seen.timer_height(IDENTITY)) == (b"0", b"timer", 5)
    assert (seen.lowest_since(), seen.changed_since(ACCOUNTS)) == (0, {KEY})


def test_nothing_is_copied_when_a_view_of_many_timers_is_held_for_long() -> None:
    """With 20,000 timers held over 50 blocks, all that is kept is one small change a block."""
    store = MemoryStore()
    ids = [number.to_bytes(32, "big") for number in range(20_000)]
    store.commit(0, {timer_key(1 + number % 1_000, identity): b"t" for number, identity in enumerate(ids)})
    view, others = store.view(), changes_in_memory()  # of other tests, whose chains this process still holds
    for height in range(1, 51):
        store.commit(height, {timer_key(height, ids[height - 1]): None})
    kept = [change for change in changes_in_memory() if not any(change is each for each in others)]
    assert [len(change.before) for change in kept] == [1] * 50
    assert (view.count(TIMERS), store.count(TIMERS)) == (20_000, 19_950)
    assert sum(1 for _ in view.iterate(TIMERS)) == 20_000
    assert view.timer_height(ids[10]) == 11
    assert store.timer_height(ids[10]) is None


def test_view_of_a_store_on_disk_reads_when_a_transaction_is_under_way(stores: tuple[MemoryStore, DiskStore]) -> None:
    """Neither waits for the other, and the view tells what it has always told."""
    _, store = stores
    store.commit(0, {KEY: b"0"})
    store.commit(1, {KEY: b"1", OTHER: b"1"})
    store.seal(None)
    view = store.view()
    put, seen = store._tables.put_record, []

    def put_and_look(*given: object) -> None:
        put(*given)
        seen.append(elsewhere(lambda: (view.read(KEY), view.read(OTHER), view.timer_height(IDENTITY))))

    store._tables.put_record = put_and_look
    for height in range(2, 8):
        store.commit(height, {KEY: bytes([height]), timer_key(9, IDENTITY): bytes([height])})
        store.seal((height, b"a block"))
    store._tables.put_record = put
    assert len(seen) > 10
    assert set(seen) == {(b"1", b"1", None)}
    assert elsewhere(lambda: store.record_at(6)) == (6, b"a block")
    assert elsewhere(lambda: list(store.records(5))) == [(height, b"a block") for height in (5, 6, 7)]


def test_view_of_a_store_on_disk_reads_when_its_file_has_grown(
    tmp_path: Path, stores: tuple[MemoryStore, DiskStore]
) -> None:
    """The map moves under the readers' transaction, which begins anew."""
    _, store = stores
    store.commit(0, {KEY: b"0"})
    store.seal(None)
    view = store.view()
    for height in range(1, 9):
        store.commit(height, {account_key(bytes([height, part]) * 10): bytes(3_000) for part in range(50)})
        store.seal(None)
        assert elsewhere(lambda: view.read(KEY)) == b"0"
    assert (tmp_path / "chain" / "chain.mdb").stat().st_size > SMALL.map_size


def test_view_says_so_when_its_store_is_closed(stores: tuple[MemoryStore, DiskStore]) -> None:
    """What is at hand can still be read; a value of the tables cannot, and no further view can be had."""
    _, store = stores
    store.commit(0, {KEY: b"0", OTHER: b"0"})
    store.commit(1, {KEY: b"1"})
    store.seal(None)
    view = store.view()
    store.close()
    with pytest.raises(StorageError, match="the chain is closed"):
        view.read(KEY)
    with pytest.raises(StorageError, match="the chain is closed"):
        store.record_at(0)
    with pytest.raises(StorageError, match="takes no more blocks: it is closed"):
        store.view()


def test_tables_are_not_read_from_elsewhere_when_they_are_not_shared(tmp_path: Path) -> None:
    """A store shares them with its first view."""
    tables = Tables(tmp_path / "tables", map_size=1 << 16, durable=False, create=True)
    with pytest.raises(InvariantError, match="have not been shared"):
        tables.get_shared(STATE, KEY)
    tables.share()
    tables.share()
    assert tables.get_shared(STATE, KEY) is None
    tables.close()
