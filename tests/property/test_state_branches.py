"""A branch is the store that goes on, and a view of an earlier block is the view that was taken then."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.test_state_store import view as everything
from tests.property.test_views import ACTORS, ALL_KEYS, BLOCKS, SMALL, TIMER_IDS, State, applied, changes_of
from trailboss.state.branch import BranchStore
from trailboss.state.disk.store import DiskStore
from trailboss.state.store import MemoryStore, Store

Open = Callable[[], "contextmanager[Store]"]


@contextmanager
def in_memory() -> Iterator[Store]:
    """Open a store in memory."""
    yield MemoryStore()


@contextmanager
def on_disk() -> Iterator[Store]:
    """Open a store in a directory, whose tables follow every other block."""
    folder = Path(tempfile.mkdtemp())
    store = DiskStore.create(folder / "chain", b"genesis", durable=False, settings=SMALL)
    try:
        yield store
    finally:
        store.close()
        shutil.rmtree(folder)


def commit(store: Store, changes: dict[bytes, bytes | None]) -> None:
    """Commit the next block, and seal it where that is how blocks are kept."""
    height = store.height + 1
    store.commit(height, changes)
    if isinstance(store, DiskStore):
        store.seal((height, b"block"))


def look(store: object) -> tuple[object, ...]:
    """Return what a view, or a store, answers."""
    return (
        everything(store),  # type: ignore[arg-type]
        [store.read(key) for key in ALL_KEYS],  # type: ignore[attr-defined]
        [store.timer_height(identity) for identity in TIMER_IDS],  # type: ignore[attr-defined]
        [list(store.slot_names(actor)) for actor in ACTORS],  # type: ignore[attr-defined]
    )


@pytest.mark.parametrize("opened", [in_memory, on_disk])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_view_of_an_earlier_block_is_the_one_taken_then(opened: Open, data: st.DataObject) -> None:
    """Whatever came after it, before the view is made and while it is read."""
    with opened() as store:
        taken, state = [], State()
        for block in data.draw(st.lists(BLOCKS, min_size=1, max_size=7)):
            changes = changes_of(block, state)
            state = applied(state, changes)
            commit(store, changes)
            taken.append(look(store))
        back = data.draw(st.integers(0, len(taken) - 1))
        earlier = store.view_at(store.height - back)
        assert look(earlier) == taken[len(taken) - 1 - back]
        commit(store, changes_of(data.draw(BLOCKS), state))
        assert look(earlier) == taken[len(taken) - 1 - back]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_branch_is_the_store_that_goes_on(data: st.DataObject) -> None:
    """The same blocks on a branch of a view and on the store itself give the same; going back, too."""
    store, state = MemoryStore(), State()

    def draw() -> dict[bytes, bytes | None]:
        nonlocal state
        changes = changes_of(data.draw(BLOCKS), state)
        state = applied(state, changes)
        return changes

    for _ in range(data.draw(st.integers(1, 3))):
        commit(store, draw())
    began, here = store.height, dict(state)
    branch = BranchStore(store.view(), {})
    for _ in range(data.draw(st.integers(0, 4))):
        changes = draw()
        commit(store, changes)
        commit(branch, changes)
    assert look(branch) == look(store)
    branch.check_invariants()
    back = data.draw(st.integers(began, store.height))
    store.revert(back)
    branch.revert(back)
    assert look(branch) == look(store)
    store.revert(began)
    branch.revert(began)
    state = here
    commit(store, draw())
    assert branch.height == began
    branch.check_invariants()
