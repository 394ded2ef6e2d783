"""A copy of a store: the same state at the same height, on its own from there."""

from pathlib import Path

import pytest

from trailboss.primitives.errors import InvariantError
from trailboss.state import keys
from trailboss.state.disk.store import DiskStore
from trailboss.state.slots import encode_slot
from trailboss.state.store import MemoryStore, Store

ACTOR = b"\x05" * 20
KEY = keys.config_key(b"counter")
SLOT = keys.storage_key(ACTOR, b"name")
TIMER = keys.timer_key(70, b"\x07" * 32)


def filled(store: Store) -> Store:
    """Return a store of three blocks that holds a configuration, a slot and a timer."""
    store.commit(0, {KEY: b"first", TIMER: b"timer"})
    store.commit(1, {KEY: b"second", SLOT: encode_slot(b"name", b"value")})
    store.commit(2, {})
    return store


def test_copy_holds_the_same_state_when_the_store_is_in_memory_or_on_disk(tmp_path: Path) -> None:
    """Height, root, values, timers by id and slots in order."""
    disk = DiskStore.create(tmp_path / "store", b"genesis", durable=False)
    for store in (filled(MemoryStore()), filled(disk)):
        copy = MemoryStore.copy_of(store, {})
        assert (copy.height, copy.state_root) == (2, store.state_root)
        assert [list(copy.iterate(space)) for space in keys.KEY_WIDTHS] == [
            list(store.iterate(space)) for space in keys.KEY_WIDTHS
        ]
        assert copy.timer_height(b"\x07" * 32) == 70
        assert list(copy.slot_names(ACTOR)) == [b"name"]
        copy.check_invariants()
    disk.close()


def test_copy_and_store_go_their_own_ways_when_either_changes() -> None:
    """Neither sees what the other commits or takes back."""
    store = filled(MemoryStore())
    root = store.state_root
    copy = MemoryStore.copy_of(store, {})
    copy.commit(3, {KEY: b"copy", TIMER: None, SLOT: None})
    assert (store.height, store.state_root, store.read(KEY), store.read(TIMER)) == (2, root, b"second", b"timer")
    store.revert(0)
    assert (copy.read(KEY), copy.height) == (b"copy", 3)
    copy.revert(2)
    assert (copy.state_root, copy.read(KEY)) == (root, b"second")
    assert list(copy.slot_names(ACTOR)) == [b"name"]
    copy.check_invariants()


def test_copy_holds_something_else_when_that_is_wanted() -> None:
    """The changes are part of the copy's own height: going back to it keeps them."""
    store = filled(MemoryStore())
    copy = MemoryStore.copy_of(store, {KEY: b"other", SLOT: None})
    assert (copy.height, copy.read(KEY), copy.read(SLOT)) == (2, b"other", None)
    assert copy.state_root != store.state_root
    copy.commit(3, {KEY: b"later"})
    copy.revert(2)
    assert copy.read(KEY) == b"other"
    copy.check_invariants()


def test_copy_refuses_to_go_back_below_where_it_began() -> None:
    """It knows no earlier state."""
    copy = MemoryStore.copy_of(filled(MemoryStore()), {})
    copy.commit(3, {KEY: b"later"})
    with pytest.raises(InvariantError, match="cannot go back to block 1: this is a copy made after block 2"):
        copy.revert(1)
    assert (copy.height, copy.read(KEY)) == (3, b"later")
