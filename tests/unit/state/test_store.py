"""The store in memory: blocks, going back, and what it refuses."""

import re

import pytest

from trailboss.primitives.errors import InvariantError
from trailboss.state import keys
from trailboss.state.commitment import state_root
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


def test_commit_changes_values_root_and_counts_when_a_block_has_changes() -> None:
    """A committed block can be read back, counted and listed in order."""
    store = MemoryStore()
    empty = store.state_root
    timers = {keys.timer_key(height, bytes([height]) * 32): bytes([height]) for height in (9, 3, 7)}
    root = store.commit(0, timers | {KEY: b"value"})
    assert root == store.state_root != empty
    assert (store.height, store.read(KEY), store.count(keys.TIMERS)) == (0, b"value", 3)
    assert state_root(store.roots) == root
    assert [value[0] for _, value in store.iterate(keys.TIMERS)] == [3, 7, 9]
    assert [keys.timer_height(key) for key, _ in store.iterate(keys.TIMERS, *keys.timer_range(4, 7))] == [7]


def test_iterate_ends_with_its_namespace_when_the_bound_lies_beyond() -> None:
    """The last actor and the last height have their bound in the next namespace."""
    store = MemoryStore()
    last, top = b"\xff" * 20, 2**64 - 1
    slot, timer = keys.storage_key(last, b"name"), keys.timer_key(top, b"\xff" * 32)
    store.commit(0, {slot: encode_slot(b"name", b""), timer: b"timer"})
    assert [key for key, _ in store.iterate(keys.STORAGE, *keys.storage_range(last))] == [slot]
    assert [key for key, _ in store.iterate(keys.TIMERS, *keys.timer_range(top, top))] == [timer]


def test_commit_keeps_the_root_when_a_block_has_no_changes() -> None:
    """An idle block only raises the height, and going back over it lowers it again."""
    store = counted(1)
    root = store.state_root
    assert store.commit(1, {}) == root
    assert store.height == 1
    store.revert(0)
    assert (store.height, store.state_root) == (0, root)


@pytest.mark.parametrize("first", [3, 9])
def test_timer_is_found_at_its_new_height_when_a_block_moves_it(first) -> None:
    """Whichever of its two heights the block names first, the timer keeps one of them, and going back moves it back."""
    identity = b"\x01" * 32
    old, new = keys.timer_key(3, identity), keys.timer_key(9, identity)
    moved = {old: None, new: b"new"} if first == 3 else {new: b"new", old: None}
    store = MemoryStore()
    store.commit(0, {old: b"old"})
    store.commit(1, moved)
    assert (store.read(old), store.read(new), store.timer_height(identity)) == (None, b"new", 9)
    store.commit(2, {old: None})
    assert (store.read(new), store.timer_height(identity)) == (b"new", 9)
    store.check_invariants()
    store.revert(0)
    assert (store.read(old), store.read(new), store.timer_height(identity)) == (b"old", None, 3)
    store.check_invariants()


@pytest.mark.parametrize("height", [-1, 1, 3])
def test_commit_is_refused_when_the_height_is_not_the_next(height) -> None:
    """Blocks are committed one after the other."""
    store = counted(2)
    with pytest.raises(InvariantError, match=f"block {height} cannot be committed on top of block 1"):
        store.commit(height, {})


@pytest.mark.parametrize(
    "wrong", [{b"z": b"value"}, {keys.transient_key(b"k", b""): b"value"}, {keys.storage_key(ACTOR, b"n"): b"value"}]
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


@pytest.mark.parametrize("depth", [1, KEPT_ROOTS, KEPT_ROOTS + 1, KEPT_ROOTS + 20])
def test_revert_gives_the_straight_store_when_it_goes_far_back(depth) -> None:
    """Within the kept trees and beyond them, the state is that of a store that never went further."""
    blocks = KEPT_ROOTS + 40
    store, straight = counted(blocks), counted(blocks - depth)
    store.revert(blocks - 1 - depth)
    assert (store.height, store.state_root) == (straight.height, straight.state_root)
    assert list(store.iterate(keys.TIMERS)) == list(straight.iterate(keys.TIMERS))
    store.check_invariants()
    for height in range(blocks - depth, blocks):
        changes = {KEY: bytes([height]), keys.timer_key(height + 10, bytes([height]) * 32): b"timer"}
        assert store.commit(height, changes) == straight.commit(height, changes)


def test_revert_empties_the_store_when_it_goes_before_genesis() -> None:
    """Before genesis there is nothing."""
    store = counted(3)
    store.revert(BEFORE_GENESIS)
    assert (store.height, store.state_root, store.read(KEY)) == (-1, MemoryStore().state_root, None)


@pytest.mark.parametrize("height", [-2, 2])
def test_revert_is_refused_when_the_height_never_was(height) -> None:
    """One can go back only to where one has been."""
    with pytest.raises(InvariantError, match=f"cannot go back to block {height} from block 1"):
        counted(2).revert(height)


def test_slot_names_follow_when_slots_are_committed_and_taken_back() -> None:
    """The names in order are those of the stored slots at every height."""
    store = MemoryStore()
    store.commit(0, {keys.storage_key(ACTOR, name): encode_slot(name, b"") for name in (b"b", b"a", b"n" * 65)})
    store.commit(1, {keys.storage_key(ACTOR, b"a"): None, keys.storage_key(ACTOR, b"c"): encode_slot(b"c", b"")})
    assert list(store.slot_names(ACTOR)) == [b"b", b"c"]
    store.revert(0)
    assert list(store.slot_names(ACTOR)) == [b"a", b"b"]


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
