"""What a block writes before it is committed: one table over the store, with an undo log and marks.

A nested call takes a mark, and goes back to it if it fails; if it succeeds there is nothing to do, however deep it is.
"""

from enum import Enum
from typing import Final

from trailboss.primitives.errors import InvariantError
from trailboss.state.keys import STORAGE_BYTE, TRANSIENT_BYTE, storage_address, storage_key
from trailboss.state.slots import SlotChanges, decode_slot
from trailboss.state.store import KeyValue


class _Absent(Enum):
    """A key that the table does not hold, as against one that it holds as deleted (None)."""

    ABSENT = "absent"


_ABSENT: Final = _Absent.ABSENT


class Overlay:
    """Reads and writes over committed values; it serves until its base changes, as by committing ``changes``.

    Invariant: undoing the log from its end takes the table back through exactly the tables it has been.
    """

    __slots__ = ("_base", "_clearings", "_log", "_read_base", "_slots", "_slots_noted", "_slots_undone", "_table")

    def __init__(self, base: KeyValue) -> None:
        self._base = base
        self._read_base = base.read
        self._table: dict[bytes, bytes | None] = {}
        self._log: list[tuple[bytes, bytes | _Absent | None]] = []
        # Lengths of the log at which transient values were cleared, ascending.
        self._clearings: list[int] = [0]
        # The slot changes know the log up to a length, but for the keys whose writes were undone since.
        self._slots = SlotChanges()
        self._slots_noted = 0
        self._slots_undone: list[bytes] = []

    def read(self, key: bytes) -> bytes | None:
        """Return the value of a full key, or None if it has none.

        Complexity: O(1).
        """
        value = self._table.get(key, _ABSENT)
        return self._read_base(key) if value is _ABSENT else value

    def write(self, key: bytes, value: bytes) -> None:
        """Set the value of a full key; a storage key takes a slot record (`slots.encode_slot`).

        Complexity: O(1).
        """
        table = self._table
        self._log.append((key, table.get(key, _ABSENT)))
        table[key] = value

    def delete(self, key: bytes) -> None:
        """Remove the value of a full key; a key without one stays without.

        Complexity: O(1).
        """
        table = self._table
        self._log.append((key, table.get(key, _ABSENT)))
        table[key] = None

    def mark(self) -> int:
        """Return a mark of everything written so far, to go back to.

        Complexity: O(1).
        """
        return len(self._log)

    def revert(self, mark: int) -> None:
        """Take back every write since ``mark``. Marks taken since are void.

        Complexity: O(writes since).

        Raises:
            InvariantError: If nothing as late as the mark has been written: the overlay has gone back before it.
        """
        self._check_mark(mark)
        log, table = self._log, self._table
        if mark < self._slots_noted:
            self._slots_undone += (key for key, _ in log[mark : self._slots_noted] if key[0] == STORAGE_BYTE)
            self._slots_noted = mark
        while self._clearings[-1] > mark:
            self._clearings.pop()
        while len(log) > mark:
            key, old = log.pop()
            if old is _ABSENT:
                del table[key]
            else:
                table[key] = old

    def clear_transient(self) -> None:
        """Forget all transient values; a revert to an earlier mark brings back those of that mark.

        Complexity: O(writes since the last call).
        """
        log, table = self._log, self._table
        written = [key for key, _ in log[self._clearings[-1] :] if key[0] == TRANSIENT_BYTE]
        for key in written:
            if key in table:
                log.append((key, table.pop(key)))
        self._clearings.append(len(log))

    def changes(self) -> dict[bytes, bytes | None]:
        """Return the net changes: value by full key, None for deleted; no transient key, none that equals the store.

        Complexity: O(keys written).
        """
        read_base = self._read_base
        return {
            key: value for key, value in self._table.items() if key[0] != TRANSIENT_BYTE and value != read_base(key)
        }

    def changed_slots(self, mark: int = 0) -> list[tuple[bytes, bytes]]:
        """Return address and name of every slot whose value is not what it was at a mark, ascending.

        Args:
            mark: As of when; 0 compares with the committed values.

        Complexity: O(writes since, and the changed slots sorted).

        Raises:
            InvariantError: If nothing as late as the mark has been written.
        """
        self._check_mark(mark)
        before: dict[bytes, bytes | None] = {}
        for key, old in self._log[mark:]:
            if key[0] == STORAGE_BYTE and key not in before:
                before[key] = self._read_base(key) if old is _ABSENT else old
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

        Names longer than ``slots.SCANNED_NAME_MAX`` are passed over.

        Args:
            address: The actor.
            prefix: What the names begin with; may be empty.
            limit: Most slots returned.

        Complexity: O(limit × log slots), and O(log slots) for each slot written since the last scan.
        """
        self._note_slots()
        names = self._slots.scan(address, self._base.slot_names(address), prefix, limit)
        records = (self.read(storage_key(address, name)) for name in names)
        return [decode_slot(record) for record in records if record is not None]

    def _check_mark(self, mark: int) -> None:
        if not 0 <= mark <= len(self._log):
            raise InvariantError(f"mark {mark} is void: the overlay holds {len(self._log)} writes")

    def _note_slots(self) -> None:
        """Let the slot changes catch up with the log."""
        fresh = self._log[self._slots_noted :]
        touched = self._slots_undone + [key for key, _ in fresh if key[0] == STORAGE_BYTE]
        for key in dict.fromkeys(touched):
            self._slots.note(key, self.read(key), self._read_base(key))
        self._slots_undone = []
        self._slots_noted = len(self._log)
