"""An overlay: what it reads, and what is left after marks and reverts."""

import pytest

from trailboss.primitives.errors import InvariantError
from trailboss.state import keys
from trailboss.state.overlay import Overlay
from trailboss.state.slots import encode_slot
from trailboss.state.store import MemoryStore

ACTOR = b"\x07" * 20
OLD, NEW = keys.config_key(b"old"), keys.config_key(b"new")


@pytest.fixture
def overlay() -> Overlay:
    """An overlay over a store that holds one configuration and three slots of an actor."""
    store = MemoryStore()
    slots = {keys.storage_key(ACTOR, name): encode_slot(name, name.upper()) for name in (b"a1", b"a2", b"b1")}
    store.commit(0, {OLD: b"before"} | slots)
    return Overlay(store)


@pytest.mark.parametrize("mark", [1, -1])
def test_revert_is_refused_when_the_mark_is_void(overlay, mark) -> None:
    """A mark above what is written would mean that somebody kept it too long."""
    with pytest.raises(InvariantError, match=f"mark {mark} is void: the overlay holds 0 writes"):
        overlay.revert(mark)


def test_scan_merges_the_overlay_when_slots_were_added_and_deleted(overlay) -> None:
    """Added slots appear in order, deleted ones do not, changed ones show their new value."""
    overlay.write(keys.storage_key(ACTOR, b"a11"), encode_slot(b"a11", b"added"))
    overlay.write(keys.storage_key(ACTOR, b"a2"), encode_slot(b"a2", b"changed"))
    overlay.delete(keys.storage_key(ACTOR, b"a1"))
    assert overlay.scan(ACTOR, b"a", 10) == [(b"a11", b"added"), (b"a2", b"changed")]
    assert overlay.scan(ACTOR, b"", 2) == [(b"a11", b"added"), (b"a2", b"changed")]
    assert overlay.scan(b"\x08" * 20, b"", 2) == []


def test_scan_shows_the_slots_of_the_mark_when_reverted_between_scans(overlay) -> None:
    """What a scan has learnt is corrected after a revert."""
    mark = overlay.mark()
    overlay.write(keys.storage_key(ACTOR, b"c"), encode_slot(b"c", b""))
    overlay.delete(keys.storage_key(ACTOR, b"b1"))
    assert [name for name, _ in overlay.scan(ACTOR, b"", 10)] == [b"a1", b"a2", b"c"]
    overlay.revert(mark)
    assert [name for name, _ in overlay.scan(ACTOR, b"", 10)] == [b"a1", b"a2", b"b1"]


def slot_key(name: bytes) -> bytes:
    return keys.storage_key(ACTOR, name)


def test_changed_slots_are_net_when_writes_cancel_out(overlay) -> None:
    """Added, changed and deleted slots differ; what stands as before does not, and nothing else is a slot."""
    overlay.write(slot_key(b"z"), encode_slot(b"z", b"added"))
    overlay.write(slot_key(b"a1"), encode_slot(b"a1", b"changed"))
    overlay.delete(slot_key(b"a2"))
    overlay.write(slot_key(b"b1"), encode_slot(b"b1", b"for a while"))
    overlay.write(slot_key(b"b1"), encode_slot(b"b1", b"B1"))
    overlay.delete(slot_key(b"never"))
    overlay.write(NEW, b"no slot")
    assert overlay.changed_slots() == [(ACTOR, b"a1"), (ACTOR, b"a2"), (ACTOR, b"z")]


def test_changed_slots_are_refused_when_the_mark_is_void(overlay) -> None:
    """As a revert to it would be."""
    with pytest.raises(InvariantError, match="mark 1 is void: the overlay holds 0 writes"):
        overlay.changed_slots(1)
