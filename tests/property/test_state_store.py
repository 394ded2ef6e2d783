"""A store that branches and goes back is the store that never branched."""

from hypothesis import given
from hypothesis import strategies as st

from trailboss.state import keys
from trailboss.state.slots import encode_slot
from trailboss.state.store import BEFORE_GENESIS, MemoryStore

ACTORS = (b"\x01" * 20, b"\x02" * 20)
KEYS = st.one_of(
    st.integers(0, 40).map(lambda number: keys.account_key(bytes([number]) * 20)),
    st.tuples(st.integers(0, 9), st.integers(0, 20)).map(lambda t: keys.timer_key(t[0], bytes([t[0], t[1]]) * 16)),
    st.integers(0, 9).map(lambda number: keys.config_key(bytes([number]))),
    st.integers(0, 9).map(keys.mailbox_key),
)
SLOTS = st.tuples(st.sampled_from(ACTORS), st.binary(max_size=1))
BLOCKS = st.tuples(
    st.dictionaries(KEYS, st.none() | st.binary(max_size=3), max_size=40),
    st.dictionaries(SLOTS, st.none() | st.binary(max_size=3), max_size=10),
).map(
    lambda block: (
        block[0]
        | {
            keys.storage_key(actor, name): None if value is None else encode_slot(name, value)
            for (actor, name), value in block[1].items()
        }
    )
)
STEPS = st.lists(BLOCKS | st.just({}) | st.integers(0, 6), max_size=14)


def view(store: MemoryStore):
    """Return everything a store tells."""
    return (
        store.height,
        store.state_root,
        [list(store.iterate(namespace)) for namespace in keys.KEY_WIDTHS],
        [store.count(namespace) for namespace in keys.KEY_WIDTHS],
        [list(store.slot_names(actor)) for actor in ACTORS],
    )


@given(steps=STEPS)
def test_store_equals_a_straight_one_when_it_went_back(steps) -> None:
    """Blocks (changes) and steps back (numbers), in any order, end as the surviving blocks alone do."""
    store, surviving = MemoryStore(), []
    for step in steps:
        if isinstance(step, dict):
            surviving.append(step)
            store.commit(store.height + 1, step)
        else:
            back = min(step, len(surviving))
            surviving = surviving[: len(surviving) - back]
            store.revert(store.height - back)
    store.check_invariants()
    straight = MemoryStore()
    for height, changes in enumerate(surviving):
        straight.commit(height, changes)
    assert view(store) == view(straight)
    store.revert(BEFORE_GENESIS)
    assert view(store) == view(MemoryStore())


@given(contents=BLOCKS, order=st.randoms(use_true_random=False), parts=st.integers(1, 5))
def test_state_root_is_the_same_when_insertion_order_differs(contents, order, parts) -> None:
    """The root is that of the contents: in one block or several, in any order."""
    once = MemoryStore()
    once.commit(0, contents)
    entries = list(contents.items())
    order.shuffle(entries)
    pieces = MemoryStore()
    for part in range(parts):
        pieces.commit(part, dict(entries[part::parts]))
    assert pieces.state_root == once.state_root
