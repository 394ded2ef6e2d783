"""A view kept of a store tells for ever what a full copy made in the same moment tells, at every instant."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from trailboss.state import keys, view
from trailboss.state.disk.store import DiskStore, StoreSettings
from trailboss.state.slots import SCANNED_NAME_MAX, decode_slot, encode_slot
from trailboss.state.store import BEFORE_GENESIS, MemoryStore, Store
from trailboss.state.view import StoreView

SMALL = StoreSettings(flush_interval=2, kept_journal=1_000, map_size=1 << 16)
ACTORS = (b"\x01" * 20, b"\x02" * 20)
NAMES = (b"", b"a", b"b", b"c" * SCANNED_NAME_MAX, b"d" * (SCANNED_NAME_MAX + 1))
TIMER_IDS = tuple(bytes([number]) * 32 for number in range(6))
HEIGHTS = range(4)
PLAIN_KEYS = (
    *(keys.account_key(bytes([number]) * 20) for number in range(40)),
    *(keys.config_key(bytes([number])) for number in range(3)),
    *(keys.mailbox_key(number) for number in range(3)),
)
TIMER_KEYS = tuple(keys.timer_key(height, identity) for height in HEIGHTS for identity in TIMER_IDS)
SLOT_KEYS = {keys.storage_key(actor, name): name for actor in ACTORS for name in NAMES}
ALL_KEYS = (*PLAIN_KEYS, *TIMER_KEYS, *SLOT_KEYS)

VALUES = st.none() | st.binary(max_size=2)
BLOCKS = st.tuples(
    st.dictionaries(st.sampled_from(PLAIN_KEYS), VALUES, max_size=12),
    st.dictionaries(st.sampled_from(sorted(SLOT_KEYS)), VALUES, max_size=6),
    # A timer has one height, so that setting it at another one deletes it where it was.
    st.dictionaries(
        st.sampled_from(TIMER_IDS), st.none() | st.tuples(st.sampled_from(HEIGHTS), st.binary(max_size=2)), max_size=5
    ),
)
STEPS = st.lists(
    BLOCKS.map(lambda block: ("commit", block))
    | BLOCKS.map(lambda block: ("commit and seal", block))
    | st.tuples(st.just("idle"), st.integers(1, 3))
    | st.tuples(st.just("revert"), st.integers(0, 6))
    | st.just(("publish", None)),
    min_size=8,
    max_size=24,
)
FOLLOWED = st.sampled_from((0, 1, view.FOLLOWED_MAX))
"""How many changes a view follows one by one before it makes a table of them."""
State = dict[bytes, bytes]


class Kept(NamedTuple):
    """A view, and the full copy made in the same moment."""

    seen: StoreView
    values: State
    timer_heights: dict[bytes, int]
    height: int
    root: bytes


def changes_of(block, state: State) -> dict[bytes, bytes | None]:
    """Return a generated block as changes of a state."""
    plain, slots, timers = block
    changes = dict(plain)
    changes |= {key: None if value is None else encode_slot(SLOT_KEYS[key], value) for key, value in slots.items()}
    for identity, timer in timers.items():
        changes |= {key: None for key in state if key in TIMER_KEYS and keys.timer_id(key) == identity}
        if timer is not None:
            changes[keys.timer_key(timer[0], identity)] = timer[1]
    return changes


def applied(state: State, changes: dict[bytes, bytes | None]) -> State:
    """Return a state with changes made."""
    return {key: value for key, value in (state | changes).items() if value is not None}


def check(kept: Kept) -> None:
    """Compare everything that a view tells with the copy."""
    seen, values = kept.seen, kept.values
    assert (seen.height, seen.state_root) == (kept.height, kept.root)
    assert {key: seen.read(key) for key in ALL_KEYS} == {key: values.get(key) for key in ALL_KEYS}
    for namespace in keys.KEY_WIDTHS:
        expected = sorted(item for item in values.items() if item[0].startswith(namespace))
        assert list(seen.iterate(namespace)) == expected
        assert seen.count(namespace) == len(expected)
    middle = sorted(item for item in values.items() if keys.timer_key(1, b"") <= item[0] < keys.timer_key(3, b""))
    assert list(seen.iterate(keys.TIMERS, *keys.timer_range(1, 2))) == middle
    below = sum(keys.TIMERS <= key < keys.timer_key(2, b"") for key in values)
    assert seen.count(keys.TIMERS, keys.timer_key(2, b"")) == below
    heights = {each: kept.timer_heights.get(each) for each in TIMER_IDS}
    assert {each: seen.timer_height(each) for each in TIMER_IDS} == heights
    for actor in ACTORS:
        names = [decode_slot(values[key])[0] for key in values if key.startswith(keys.STORAGE + actor)]
        assert list(seen.slot_names(actor)) == sorted(name for name in names if len(name) <= SCANNED_NAME_MAX)


class Watched(dict):
    """A table of a store that calls back before and after each of its changes, as if a reader came in between."""

    def __init__(self, content: dict, look: Callable[[], None]) -> None:
        super().__init__(content)
        self._look = look

    def _between(self, change: Callable, *arguments):
        self._look()
        changed = change(*arguments)
        self._look()
        return changed

    def __setitem__(self, key, value) -> None:
        self._between(super().__setitem__, key, value)

    def __delitem__(self, key) -> None:
        self._between(super().__delitem__, key)

    def pop(self, *arguments):
        return self._between(super().pop, *arguments)

    def update(self, *arguments) -> None:
        for key, value in dict(*arguments).items():
            self[key] = value

    def clear(self) -> None:
        for key in list(self):
            del self[key]


class Play:
    """A store, the states that its blocks left, and the views kept of it.

    Attributes:
        store: The store.
        kept: Its views.
        states: The full state after each block.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.kept: list[Kept] = []
        self.states: list[State] = []
        self.lowest: list[int] = []

    def look(self) -> None:
        """Read one key of each kind in every view."""
        for kept in self.kept:
            for key in (ALL_KEYS[0], TIMER_KEYS[0], TIMER_KEYS[-1], next(iter(SLOT_KEYS))):
                assert kept.seen.read(key) == kept.values.get(key)
            assert kept.seen.timer_height(TIMER_IDS[0]) == kept.timer_heights.get(TIMER_IDS[0])

    def do(self, word: str, argument) -> None:
        """Take a step."""
        state = self.states[-1] if self.states else {}
        if word.startswith("commit"):
            changes = changes_of(argument, state)
            self.states.append(applied(state, changes))
            self.store.commit(self.store.height + 1, changes)
            if isinstance(self.store, DiskStore) and word.endswith("seal"):
                self.store.seal(None)
        elif word == "idle":
            for _ in range(argument):
                self.states.append(state)
                self.store.commit(self.store.height + 1, {})
        elif word == "revert":
            height = max(self.store.height - argument, BEFORE_GENESIS)
            self.store.revert(height)
            del self.states[height + 1 :]
            self.lowest = [min(lowest, height) for lowest in self.lowest]
        else:
            heights = {keys.timer_id(key): keys.timer_height(key) for key in state if key.startswith(keys.TIMERS)}
            kept = Kept(self.store.view(), dict(state), heights, self.store.height, self.store.state_root)
            self.kept.append(kept)
            self.lowest.append(self.store.height)

    def finish(self) -> None:
        """Compare all views with their copies, and the store with itself."""
        for kept, lowest in zip(self.kept, self.lowest, strict=True):
            check(kept)
            assert kept.seen.lowest_since() == lowest
            changed = kept.seen.changed_since(keys.TIMERS)
            assert changed >= {key for key in TIMER_KEYS if kept.values.get(key) != self.store.read(key)}
            assert changed <= set(TIMER_KEYS)
        self.store.check_invariants()


@settings(max_examples=40)
@given(steps=STEPS, followed=FOLLOWED)
def test_kept_views_equal_full_copies_when_a_store_in_memory_goes_on_and_back(steps, followed) -> None:
    """Whatever is committed and taken back, every view tells the state of its moment, also amid each change."""
    store = MemoryStore()
    play = Play(store)
    store._values, store._timers = Watched({}, play.look), Watched({}, play.look)
    with patch.object(view, "FOLLOWED_MAX", followed):
        for word, argument in steps:
            play.do(word, argument)
        play.finish()


@settings(max_examples=30)
@given(steps=STEPS, followed=FOLLOWED)
def test_kept_views_equal_full_copies_when_a_store_on_disk_goes_on_and_back(steps, followed) -> None:
    """The same on disk, where tables follow the journal, and amid each write of a transaction that is under way."""
    directory = Path(tempfile.mkdtemp())
    try:
        store = DiskStore.create(directory / "chain", b"genesis", durable=False, settings=SMALL)
        play = Play(store)
        store._pending, store._pending_timers = Watched({}, play.look), Watched({}, play.look)
        replace = store._tables.replace

        def replace_and_look(*arguments) -> None:
            replace(*arguments)
            play.look()

        store._tables.replace = replace_and_look
        with patch.object(view, "FOLLOWED_MAX", followed):
            for word, argument in steps:
                play.do(word, argument)
            play.finish()
        store.close()
    finally:
        shutil.rmtree(directory)
