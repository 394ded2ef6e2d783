"""Slot records and the ordered names derived from them."""

import pytest

from trailboss.primitives.errors import InvariantError
from trailboss.state.keys import storage_key
from trailboss.state.slots import SlotChanges, SlotIndex, decode_slot, encode_slot

ADDRESS = b"\x01" * 20


def test_slot_record_is_a_messagepack_pair_when_encoded() -> None:
    """The record is the array of name and value, and reads back."""
    record = encode_slot(b"name", b"value")
    assert record == b"\x92\xc4\x04name\xc4\x05value"
    assert decode_slot(record) == (b"name", b"value")


@pytest.mark.parametrize("record", [b"", b"\x91\xc4\x00", b"\x92\x01\x02", b"\x92\xc4\x00\xc4\x00\x00"])
def test_slot_record_is_refused_when_malformed(record) -> None:
    """Anything but one pair of byte strings stops the chain."""
    with pytest.raises(InvariantError, match="is not the record of a slot"):
        decode_slot(record)


def test_index_keeps_names_ordered_when_they_come_and_go() -> None:
    """Names ascend; long ones are left out; an actor without names leaves nothing behind."""
    index = SlotIndex()
    for name in (b"b", b"a", b"x" * 64, b"x" * 65):
        index.add(ADDRESS, name)
    assert list(index.names(ADDRESS)) == [b"a", b"b", b"x" * 64]
    for name in (b"a", b"b", b"x" * 64, b"x" * 65):
        index.remove(ADDRESS, name)
    assert index.all_names() == {}


def test_scan_skips_the_run_when_many_names_are_hidden() -> None:
    """Hidden names at the front, in the middle and at the end are passed over; added ones fall into place."""
    committed = [bytes([n]) for n in range(100)]
    changes = SlotChanges()
    for n in [*range(30), *range(40, 60), *range(90, 100)]:
        name = bytes([n])
        changes.note(storage_key(ADDRESS, name), None, encode_slot(name, b""))
    for name in (b"\x05+", b"\x63+"):
        changes.note(storage_key(ADDRESS, name), encode_slot(name, b""), None)
    expected = sorted([bytes([n]) for n in [*range(30, 40), *range(60, 90)]] + [b"\x05+", b"\x63+"])
    assert changes.scan(ADDRESS, committed, b"", 1000) == expected
    assert changes.scan(ADDRESS, committed, b"", 3) == expected[:3]
    assert changes.scan(ADDRESS, committed, b"\x05", 3) == [b"\x05+"]
    assert changes.scan(b"\x02" * 20, [], b"", 3) == []
