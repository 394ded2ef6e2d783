"""The names of actor storage in order, for prefix scans.

A storage key holds the hash of the slot's name, so that keys have one width and the tree stays shallow. The
names are in the values, as the record ``[name, value]``; this view is derived from them and can be rebuilt at any time.
Names longer than ``SCANNED_NAME_MAX`` are stored but never scanned.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import msgspec
from sortedcontainers import SortedList

from trailboss.primitives.errors import InvariantError
from trailboss.state.keys import storage_address

SCANNED_NAME_MAX: Final = 64  # bytes of the longest slot name that a prefix scan returns

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[bytes, bytes]).decode
_NO_NAMES: Final[Sequence[bytes]] = ()


def encode_slot(name: bytes, value: bytes) -> bytes:
    """Return the stored record of an actor's slot."""
    return _encode((name, value))


def decode_slot(record: bytes) -> tuple[bytes, bytes]:
    """Return name and value of a stored slot record. `InvariantError` if it is not such a record."""
    try:
        return _decode(record)
    except msgspec.DecodeError as error:
        raise InvariantError(f"{record.hex():.80} is not the record of a slot: {error}") from error


class SlotIndex:
    """Slot names in ascending order, for each actor."""

    __slots__ = ("_names",)

    def __init__(self) -> None:
        self._names: dict[bytes, SortedList] = {}

    def add(self, address: bytes, name: bytes) -> None:
        """Add a name that the actor's list lacks; one too long for scans is left out. Complexity: O(log names)."""
        if len(name) > SCANNED_NAME_MAX:
            return
        if address not in self._names:
            self._names[address] = SortedList()
        self._names[address].add(name)

    def remove(self, address: bytes, name: bytes) -> None:
        """Remove a name that was added. Complexity: O(log names)."""
        if len(name) > SCANNED_NAME_MAX:
            return
        names = self._names[address]
        names.remove(name)
        if not names:
            del self._names[address]

    def names(self, address: bytes) -> Sequence[bytes]:
        """Return the actor's names, ascending, as a live sequence that must not be kept."""
        names: Sequence[bytes] = self._names.get(address, _NO_NAMES)
        return names

    def all_names(self) -> dict[bytes, list[bytes]]:
        """Return a copy of the whole index."""
        return {address: list(names) for address, names in self._names.items()}


class SlotChanges:
    """Where the slots of an overlay differ from the committed ones: names added, names hidden."""

    __slots__ = ("_added", "_hidden", "_noted")

    def __init__(self) -> None:
        self._added = SlotIndex()
        self._hidden = SlotIndex()
        self._noted: dict[bytes, bytes] = {}

    def note(self, key: bytes, record: bytes | None, committed: bytes | None) -> None:
        """Update one storage key, with its records in the overlay and in the store; None if there is none."""
        differs = (record is None) != (committed is None)
        if differs == (key in self._noted):
            return
        index = self._added if committed is None else self._hidden
        address = storage_address(key)
        if differs:
            # Exactly one of the two is there, and both would name the same slot.
            name, _ = decode_slot(next(there for there in (record, committed) if there is not None))
            self._noted[key] = name
            index.add(address, name)
        else:
            index.remove(address, self._noted.pop(key))

    def scan(self, address: bytes, committed: Sequence[bytes], prefix: bytes, limit: int) -> list[bytes]:
        """Return the first names that begin with ``prefix``, ascending; ``committed`` are the actor's committed names.

        Complexity: O(limit × log names), however many names are hidden.
        """
        added, hidden = self._added.names(address), self._hidden.names(address)
        old, new = bisect_left(committed, prefix), bisect_left(added, prefix)
        found: list[bytes] = []
        while len(found) < limit:
            old = _next_visible(committed, hidden, old) if hidden else old
            take_new = new < len(added) and (old == len(committed) or added[new] < committed[old])
            if not take_new and old == len(committed):
                break
            name = added[new] if take_new else committed[old]
            if not name.startswith(prefix):
                break
            found.append(name)
            new, old = (new + 1, old) if take_new else (new, old + 1)
        return found


def _next_visible(committed: Sequence[bytes], hidden: Sequence[bytes], index: int) -> int:
    """Return the least index from ``index`` on whose committed name is not hidden; the length if there is none.

    Every hidden name is a committed one and both ascend. From a hidden name on, the two run in step until the first
    visible name and never again, and a bisection finds where they part: a run of hidden names costs only its logarithm.
    """
    if index == len(committed) or committed[index] not in hidden:
        return index
    start = bisect_left(hidden, committed[index])
    run = range(min(len(committed) - index, len(hidden) - start))
    return index + bisect_left(run, True, key=lambda step: committed[index + step] != hidden[start + step])
