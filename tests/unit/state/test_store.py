"""The store in memory: blocks, going back, and what it refuses."""

import re

import pytest

from trailboss.primitives.errors import InvariantError
from trailboss.state import keys
from trailboss.state.slots import encode_slot
from trailboss.state.store import BEFORE_GENESIS, KEPT_ROOTS, MemoryStore

ACTOR = b"\x05" * 20
KEY = keys.config_key(b"counter")


def counted(blocks: int) -> MemoryStore:
    """Return a store whose block ``n`` sets one configuration to ``n`` and adds one timer."""
    store = MemoryStore()
    for height in range(blocks):
        store.commit(height, {KEY: bytes([height]), keys.timer_key(height + 10, bytes([height]) * 32): b"timer"})
    return store


def test_iterate_ends_with_its_namespace_when_the_bound_lies_beyond() -> None:
    """The last actor and the last height have their bound in the next namespace."""
    store = MemoryStore()
    last, top = b"\xff" * 20, 2**64 - 1
    slot, timer = keys.storage_key(last, b"name"), keys.timer_key(top, b"\xff" * 32)
    store.commit(0, {slot: encode_slot(b"name", b""), timer: b"timer"})
    assert [key for key, _ in store.iterate(keys.STORAGE, *keys.storage_range(last))] == [slot]
    assert [key for key, _ in store.iterate(keys.TIMERS, *keys.timer_range(top, top))] == [timer]


@pytest.mark.parametrize("height", [-1, 1, 3])
def test_commit_is_refused_when_the_height_is_not_the_next(height) -> None:
    """Blocks are committed one after the other."""
    store = counted(2)
    with pytest.raises(InvariantError, match=f"block {height} cannot be committed on top of block 1"):
        store.commit(height, {})


def test_commit_takes_a_value_that_is_there_already_for_no_change() -> None:
    """The journal has nothing of it, so that the block costs as little as one that writes nothing."""
    store = counted(2)
    root = store.state_root
    store.commit(2, {KEY: b"\x01", keys.config_key(b"missing"): None})
    assert (store.height, store.state_root, store.changes_at(2)) == (2, root, {})


@pytest.mark.parametrize(
    "wrong", [{b"z": b"value"}, {keys.account_key(b"short"): b"value"}, {keys.storage_key(ACTOR, b"n"): b"value"}]
)
def test_commit_changes_nothing_when_a_change_is_malformed(wrong) -> None:
    """A bad key or slot record is found before the first write."""
    store = counted(2)
    root = store.state_root
    with pytest.raises(InvariantError):
        store.commit(2, {KEY: b"new"} | wrong)
    assert (store.height, store.state_root, store.read(KEY)) == (1, root, b"\x01")
    store.check_invariants()
    store.revert(0)
    assert store.read(KEY) == b"\x00"


def test_key_is_kept_only_when_the_last_changes_came_right_after_the_root() -> None:
    """A block that changed another key keeps it, one without changes is none, and after going back nothing is known."""
    store, other = counted(2), keys.config_key(b"other")
    root = store.state_root
    store.commit(2, {other: b"new"})
    store.commit(3, {})
    assert store.has_kept({KEY}, root)
    assert not store.has_kept({KEY, other}, root)
    between = store.state_root
    store.commit(4, {other: b"newer"})
    assert (store.has_kept({KEY}, root), store.has_kept({KEY}, between)) == (False, True)
    store.revert(1)
    assert not store.has_kept({KEY}, between)


@pytest.mark.parametrize("height", [-2, 2])
def test_revert_is_refused_when_the_height_never_was(height) -> None:
    """One can go back only to where one has been."""
    with pytest.raises(InvariantError, match=f"cannot go back to block {height} from block 1"):
        counted(2).revert(height)


def broken_value(store: MemoryStore) -> None:
    store._values[KEY] = b"forged"


def broken_root(store: MemoryStore) -> None:
    store.state_root = MemoryStore().state_root


def broken_names(store: MemoryStore) -> None:
    store._slots.add(ACTOR, b"forged")


def misplaced_slot(store: MemoryStore) -> None:
    store.commit(store.height + 1, {keys.storage_key(ACTOR, b"here"): encode_slot(b"there", b"")})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (broken_value, "the tree of namespace c is not that of its values"),
        (broken_root, "the state root is not that of the trees"),
        (broken_names, "the slot names in order are not those of the stored slots"),
        (misplaced_slot, f"state key {keys.storage_key(ACTOR, b'here').hex()} is not that of the slot 7468657265"),
    ],
)
def test_invariants_are_refuted_when_the_store_is_damaged(damage, message) -> None:
    """Each part that is kept twice is compared."""
    store = counted(3)
    store.check_invariants()
    damage(store)
    with pytest.raises(InvariantError, match=re.escape(message)):
        store.check_invariants()


def test_revert_is_refuted_when_values_no_longer_give_the_old_root() -> None:
    """Trees that are changed back are compared with the root that the block had."""
    store = counted(KEPT_ROOTS + 5)
    store._journal[0].values[KEY] = b"forged"
    with pytest.raises(InvariantError, match="going back to block -1 gives another state root than it had"):
        store.revert(BEFORE_GENESIS)
