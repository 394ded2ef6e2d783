"""The store on disk, the store in memory and a plain dict are one thing, however often it is closed and opened."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.test_state_store import ACTORS, BLOCKS
from trailboss.state import keys
from trailboss.state.disk.store import DiskStore, StoreSettings
from trailboss.state.slots import decode_slot
from trailboss.state.store import BEFORE_GENESIS, MemoryStore, Store

SMALL = StoreSettings(flush_interval=3, kept_journal=1_000, unflushed_values=3, map_size=1 << 16)
STEPS = st.lists(
    BLOCKS.map(lambda changes: ("commit", changes))
    | st.tuples(st.just("idle"), st.integers(1, 5))
    | st.tuples(st.just("seal"), st.booleans())
    | st.tuples(st.just("revert"), st.integers(0, 8))
    | st.just(("reopen", None)),
    max_size=20,
)


class Model:
    """A store as a list of dicts, one a block, with the records of blocks."""

    def __init__(self) -> None:
        self.states: list[dict[bytes, bytes]] = []
        self.records: dict[int, bytes] = {}
        self.sealed = BEFORE_GENESIS

    @property
    def height(self) -> int:
        return len(self.states) - 1

    def commit(self, changes: dict[bytes, bytes | None]) -> None:
        after = (self.states[-1] if self.states else {}) | changes
        self.states.append({key: value for key, value in after.items() if value is not None})

    def revert(self, height: int) -> None:
        del self.states[height + 1 :]
        self.sealed = min(self.sealed, height)
        self.records = {at: record for at, record in self.records.items() if at <= height}


def agree(store: Store, values: dict[bytes, bytes]) -> None:
    """Compare everything that a store tells with what a dict holds."""
    for namespace in keys.KEY_WIDTHS:
        expected = sorted(item for item in values.items() if item[0].startswith(namespace))
        assert list(store.iterate(namespace)) == expected
        assert store.count(namespace) == len(expected)
    timers = {keys.timer_id(key): keys.timer_height(key) for key in values if key.startswith(keys.TIMERS)}
    for number in range(21):
        for height in range(10):
            identity = bytes([height, number]) * 16
            assert store.timer_height(identity) == timers.get(identity)
    for actor in ACTORS:
        stored = [value for key, value in values.items() if key.startswith(keys.STORAGE + actor)]
        assert list(store.slot_names(actor)) == sorted(decode_slot(value)[0] for value in stored)


@settings(max_examples=60)
@given(steps=STEPS)
def test_stores_and_model_agree_when_blocks_are_sealed_reverted_and_reopened(steps) -> None:
    """What is sealed survives closing, what is not is gone, and roots are those of the store in memory."""
    directory = Path(tempfile.mkdtemp())
    try:
        disk = DiskStore.create(directory / "chain", b"genesis", durable=False, settings=SMALL)
        memory, model = MemoryStore(), Model()
        for word, argument in steps:
            if word in ("commit", "idle"):
                for changes in [argument] if word == "commit" else [{}] * argument:
                    model.commit(changes)
                    assert disk.commit(model.height, changes) == memory.commit(model.height, changes)
            elif word == "seal":
                fresh = argument and model.height > max(model.records, default=BEFORE_GENESIS)
                record = (model.height, f"block {model.height}".encode()) if fresh else None
                disk.seal(record)
                model.sealed = model.height
                model.records |= dict([record] if record else [])
            else:
                height = model.sealed if word == "reopen" else max(model.height - argument, BEFORE_GENESIS)
                if word == "revert":
                    disk.revert(height)
                else:
                    disk.close()
                    disk = DiskStore.open(directory / "chain", durable=False, settings=SMALL)
                memory.revert(height)
                model.revert(height)
            assert (disk.height, disk.state_root) == (memory.height, memory.state_root)
            assert disk.height == model.height
            assert list(disk.records(0)) == sorted(model.records.items())
        values = model.states[-1] if model.states else {}
        agree(disk, values)
        agree(memory, values)
        disk.check_invariants()
        memory.check_invariants()
        disk.close()
    finally:
        shutil.rmtree(directory)
