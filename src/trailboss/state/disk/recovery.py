"""The checks that a chain's tables must pass when they are opened. Decision: D-48."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from trailboss.primitives.errors import InvariantError, StorageError
from trailboss.state.commitment import EMPTY_ROOTS, Roots, build_roots, state_root
from trailboss.state.disk.files import RESTORE
from trailboss.state.disk.journal import JournalRow, Marker, decode, encode
from trailboss.state.disk.tables import BLOCKS, JOURNAL, META, STATE, TIMER_HEIGHTS, Tables, Transaction, height_key
from trailboss.state.keys import STORAGE, STORAGE_BYTE, TIMERS, TIMERS_BYTE, storage_address
from trailboss.state.slots import SlotIndex, decode_slot
from trailboss.state.store import BEFORE_GENESIS

FORMAT: Final = 3  # version of the tables; any change of their meaning raises it

_FORMAT_KEY: Final = b"format"
_GENESIS_KEY: Final = b"genesis"
_MARKER_KEY: Final = b"marker"


def initialize(tables: Tables, genesis: bytes) -> Marker:
    """Write the tables of a chain without blocks."""
    root = state_root(EMPTY_ROOTS)

    def action(transaction: Transaction) -> Marker:
        tables.put_record(transaction, META, _FORMAT_KEY, str(FORMAT).encode())
        tables.put_record(transaction, META, _GENESIS_KEY, genesis)
        return put_marker(tables, transaction, Marker(0, BEFORE_GENESIS, root, BEFORE_GENESIS, root, BEFORE_GENESIS))

    return tables.write(action)


def put_marker(tables: Tables, transaction: Transaction, marker: Marker) -> Marker:
    """Write a marker with the number of its transaction, and return it."""
    marker.transaction = transaction.id()
    tables.put_record(transaction, META, _MARKER_KEY, encode(marker))
    return marker


def load_genesis(tables: Tables) -> bytes:
    """Return the chain's genesis. `StorageError` if the tables have another version, or it is missing or damaged."""
    version = _meta(tables, _FORMAT_KEY)
    if version != str(FORMAT).encode():
        what = f"the tables have format {version.decode('ascii', 'replace')}, and this program reads format {FORMAT}"
        raise StorageError(
            tables.path, what, "open it with the version of trailboss that wrote it; nothing of it has been changed"
        )
    return _meta(tables, _GENESIS_KEY)


def load_marker(tables: Tables) -> Marker:
    """Return the last transaction's marker. `StorageError` if it is missing, damaged or another's."""
    octets = _meta(tables, _MARKER_KEY)
    with tables.undamaged():
        marker = decode(octets, Marker)
    if marker.transaction != tables.transaction:
        what = f"transaction {tables.transaction} holds the marker of transaction {marker.transaction}"
        raise StorageError(tables.path, what, RESTORE)
    return marker


def load_flat(tables: Tables, marker: Marker) -> tuple[Roots, SlotIndex]:
    """Build trees and slot names from the flat values. `StorageError` if they miss the flushed state root."""
    slots = SlotIndex()
    try:
        roots = build_roots(tables.scan(STATE))
        for key, value in takewhile(lambda entry: entry[0][0] == STORAGE_BYTE, tables.scan(STATE, STORAGE)):
            slots.add(storage_address(key), decode_slot(value)[0])
    except InvariantError as error:
        raise StorageError(tables.path, f"the table of values is damaged: {error}", RESTORE) from error
    if state_root(roots) != marker.flushed_root:
        what = (
            f"the table of values gives state root {state_root(roots).hex()}, "
            f"and block {marker.flushed_height} had {marker.flushed_root.hex()}"
        )
        raise StorageError(tables.path, what, RESTORE)
    return roots, slots


def load_rows(tables: Tables, height: int) -> Iterator[JournalRow]:
    """Yield the rows of the journal above a height, ascending. `StorageError` if one is damaged."""
    for key, stored in tables.scan(JOURNAL, height_key(height + 1)):
        content = tables.content(JOURNAL, key, stored)
        with tables.undamaged():
            row = decode(content, JournalRow)
        yield row


def check_rest(tables: Tables) -> None:
    """Check what the state root does not cover: the heights of timers, and every record of journal and blocks.

    Raises:
        StorageError: If the heights of timers differ from the table of values, or a record is damaged.
    """
    # Two sums over the same keys in different order; what one damaged row changes, no other puts right.
    expected = sum(int.from_bytes(key, "big") for key in tables.keys(STATE, TIMERS) if key[0] == TIMERS_BYTE)
    found = sum(int.from_bytes(TIMERS + height + identity, "big") for identity, height in tables.scan(TIMER_HEIGHTS))
    if expected != found:
        raise StorageError(tables.path, "the table of timer heights does not agree with the timers", RESTORE)
    for table in (JOURNAL, BLOCKS):
        for key, stored in tables.scan(table):
            tables.content(table, key, stored)


def _meta(tables: Tables, key: bytes) -> bytes:
    record = tables.get_record(META, key)
    if record is None:
        raise StorageError(tables.path, f"the tables have no record {key.decode()!r}: this is no chain", RESTORE)
    return record
