"""A block's writes before the commit: one table over the store, with an undo log and marks.

A nested call takes a mark and reverts to it on failure; success needs no action, at any depth.
"""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from trailboss.codec.canonical import pack
from trailboss.primitives.errors import InvariantError
from trailboss.state.keys import MISSING, STORAGE_BYTE, Missing, storage_address, storage_key
from trailboss.state.slots import SlotChanges, decode_slot
from trailboss.state.store import KeyValue

Record = TypeVar("Record", bound=Struct)


class Overlay:
    """Reads and writes over committed values, valid until its base changes, such as by committing ``changes``.

    Invariant: undoing the log from its end restores exactly the table's earlier states.
    """

    __slots__ = ("_base", "_log", "_read_base", "_slots", "_slots_noted", "_slots_undone", "_table")

    def __init__(self, base: KeyValue) -> None:
        self._base = base
        self._read_base = base.read
        # What is written many times in a block lies here as a record, and is packed once.
        self._table: dict[bytes, bytes | Struct | None] = {}
        self._log: list[tuple[bytes, bytes | Struct | Missing | None]] = []
        # The slot changes know the log up to a length, but for the keys whose writes were undone since.
        self._slots: SlotChanges | None = None
        self._slots_noted = 0
        self._slots_undone: list[bytes] = []

    def read(self, key: bytes) -> bytes | None:
        """Return the value of a full key, or None if it has none. Complexity: O(1)."""
        value = self._table.get(key, MISSING)
        return self._read_base(key) if value is MISSING else _packed(value)

    def read_record(self, key: bytes, decode: Callable[[bytes], Record]) -> Record | None:
        """Return the record of a full key, or None if it has none; all records of a key are of one kind. O(1)."""
        value = self._table.get(key, MISSING)
        if value is MISSING:
            value = self._read_base(key)
        return decode(value) if isinstance(value, bytes) else value  # type: ignore[return-value]  # of that kind

    def write(self, key: bytes, value: bytes | Struct) -> None:
        """Set the value of a full key: bytes, or a record that does not change any more. Complexity: O(1).

        A storage key takes a slot record (`slots.encode_slot`).
        """
        table = self._table
        self._log.append((key, table.get(key, MISSING)))
        table[key] = value

    def delete(self, key: bytes) -> None:
        """Remove the value of a full key, if it has one. Complexity: O(1)."""
        table = self._table
        self._log.append((key, table.get(key, MISSING)))
        table[key] = None

    def mark(self) -> int:
        """Return a mark of everything written so far, to revert to. Complexity: O(1)."""
        return len(self._log)

    def revert(self, mark: int) -> None:
        """Revert all writes since ``mark``, in O(writes); later marks become void. `InvariantError` if it is."""
        self._check_mark(mark)
        log, table = self._log, self._table
        if mark < self._slots_noted:
            self._slots_undone += (key for key, _ in log[mark : self._slots_noted] if key[0] == STORAGE_BYTE)
            self._slots_noted = mark
        while len(log) > mark:
            key, old = log.pop()
            if old is MISSING:
                del table[key]
            else:
                table[key] = old

    def changes(self) -> dict[bytes, bytes | None]:
        """Return all differences from the store; None for deleted. O(keys written)."""
        return {key: value for key, value in self.written().items() if value != self._read_base(key)}

    def written(self) -> dict[bytes, bytes | None]:
        """Return the value of every key written, which may be the store's; None for deleted. O(keys written)."""
        return {key: _packed(value) for key, value in self._table.items()}

    def changed_slots(self, mark: int = 0) -> list[tuple[bytes, bytes]]:
        """Return address and name of every slot whose value differs from that at a mark, ascending.

        Mark 0 compares with the committed values. Complexity: O(writes since, and the changed slots sorted).

        Raises:
            InvariantError: If the overlay has already gone back before the mark.
        """
        self._check_mark(mark)
        before: dict[bytes, bytes | None] = {}
        for key, old in self._log[mark:]:
            if key[0] == STORAGE_BYTE and key not in before:
                before[key] = self._read_base(key) if old is MISSING else _packed(old)
        changed: list[tuple[bytes, bytes]] = []
        for key, old_record in before.items():
            records = (self.read(key), old_record)
            if records[0] != records[1]:
                # At least one of the two is there, and both would name the same slot.
                name, _ = decode_slot(next(record for record in records if record is not None))
                changed.append((storage_address(key), name))
        return sorted(changed)

    def scan(self, address: bytes, prefix: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Return name and value of an actor's first slots whose names begin with ``prefix``, ascending by name.

        Names longer than ``slots.SCANNED_NAME_MAX`` are skipped. Complexity: O(limit × log slots), and O(log slots) for
        each slot written since the last scan.
        """
        names = self._noted_slots().scan(address, self._base.slot_names(address), prefix, limit)
        records = (self.read(storage_key(address, name)) for name in names)
        return [decode_slot(record) for record in records if record is not None]

    def _check_mark(self, mark: int) -> None:
        if not 0 <= mark <= len(self._log):
            raise InvariantError(f"mark {mark} is void: the overlay holds {len(self._log)} writes")

    def _noted_slots(self) -> SlotChanges:
        """Return the slot changes, caught up with the log."""
        slots = self._slots = self._slots or SlotChanges()
        fresh = self._log[self._slots_noted :]
        touched = self._slots_undone + [key for key, _ in fresh if key[0] == STORAGE_BYTE]
        for key in dict.fromkeys(touched):
            slots.note(key, self.read(key), self._read_base(key))
        self._slots_undone = []
        self._slots_noted = len(self._log)
        return slots


def _packed(value: bytes | Struct | None) -> bytes | None:
    return pack(value) if isinstance(value, Struct) else value
