"""The records of a chain's tables, each with a checksum over its table, its key and itself. Decision: D-48."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from trailboss.state.store import Undo


class DamagedRecord(ValueError):
    """A record with a wrong checksum or form."""


class JournalRow(Struct, frozen=True, array_like=True, gc=False):
    """What redoes and undoes one changed block."""

    height: int  # height of the block
    root_before: bytes  # state root before it
    changes: list[tuple[bytes, bytes | None, bytes | None]]  # full key, value before and after; None for none

    def undo(self) -> Undo:
        """Return what reverts the block."""
        return Undo(self.height, self.root_before, {key: old for key, old, _ in self.changes})

    def redo(self) -> dict[bytes, bytes | None]:
        """Return the block's changes: value by full key, None to delete."""
        return {key: new for key, _, new in self.changes}


class Marker(Struct, array_like=True):
    """The state after a transaction; the last record that it writes."""

    transaction: int  # number of the transaction
    height: int  # height of the last durable block
    state_root: bytes  # state root after it
    flushed_height: int  # height whose state the flat tables hold
    flushed_root: bytes  # state root after that height
    floor: int  # lowest height in the journal's reach


CHECKSUM_WIDTH: Final = 32
_NAMES: Final[dict[type, str]] = {JournalRow: "journal row", Marker: "marker"}

# Roots are bytes of a type of their own.
encode: Final = msgspec.msgpack.Encoder(enc_hook=bytes).encode
_RecordType = TypeVar("_RecordType", JournalRow, Marker)


def encode_row(undo: Undo, changes: Mapping[bytes, bytes | None]) -> bytes:
    """Return the journal row of a block, without checksum."""
    before = undo.values
    triples = [(key, before[key], value) for key, value in changes.items()]
    return encode(JournalRow(undo.height, undo.state_root, triples))


def decode(octets: bytes, record: type[_RecordType]) -> _RecordType:
    """Return a record of that type. `DamagedRecord` if the bytes are not one."""
    try:
        return msgspec.msgpack.decode(octets, type=record)
    except msgspec.DecodeError as error:
        raise DamagedRecord(f"it is not a {_NAMES[record]}: {error}") from error


def with_checksum(table: bytes, key: bytes, content: bytes) -> bytes:
    """Return ``content`` as it is stored under ``key`` in ``table``."""
    return sha256(table + key + content).digest() + content


def without_checksum(table: bytes, key: bytes, stored: bytes) -> bytes:
    """Return the content of what is stored under ``key`` in ``table``. `DamagedRecord` if its checksum is wrong."""
    content = stored[CHECKSUM_WIDTH:]
    if stored[:CHECKSUM_WIDTH] != sha256(table + key + content).digest():
        raise DamagedRecord(f"record {key.hex()} of table {table.decode()} has a wrong checksum")
    return content
