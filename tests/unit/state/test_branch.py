"""A branch of a store: the same state at the same height, on its own from there."""

import pytest

from trailboss.primitives.errors import InvariantError
from trailboss.state import keys
from trailboss.state.branch import BranchStore
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


def test_branch_holds_something_else_when_that_is_wanted() -> None:
    """The changes are part of the branch's own height: going back to it keeps them."""
    store = filled(MemoryStore())
    branch = BranchStore(store, {KEY: b"other", SLOT: None})
    assert (branch.height, branch.read(KEY), branch.read(SLOT)) == (2, b"other", None)
    assert branch.state_root != store.state_root
    branch.commit(3, {KEY: b"later"})
    branch.revert(2)
    assert branch.read(KEY) == b"other"
    branch.check_invariants()


def test_branch_refuses_to_go_back_below_where_it_began() -> None:
    """It knows no earlier state."""
    branch = BranchStore(filled(MemoryStore()), {})
    branch.commit(3, {KEY: b"later"})
    with pytest.raises(InvariantError, match="cannot go back to block 1: this branch began after block 2"):
        branch.revert(1)
    assert (branch.height, branch.read(KEY)) == (3, b"later")
