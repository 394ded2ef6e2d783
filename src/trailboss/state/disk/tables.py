"""The named tables of a chain in one LMDB file: reading, writing in one transaction, growing, and checking the file.

A damaged file can crash the process that maps it, so the walker of LMDB's Python binding checks its structure byte by
byte before LMDB opens it. Decision: D-48.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import Struct, unpack_from
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

import lmdb
from lmdb.verify import VerifyError, _Verifier

from trailboss.primitives.errors import InvariantError, StorageError
from trailboss.state.disk.files import RESTORE
from trailboss.state.disk.journal import DamagedRecord, with_checksum, without_checksum

META: Final = b"meta"
STATE: Final = b"state"
TIMER_HEIGHTS: Final = b"timer_heights"
JOURNAL: Final = b"journal"
BLOCKS: Final = b"blocks"
NAMES: Final = (META, STATE, TIMER_HEIGHTS, JOURNAL, BLOCKS)

if TYPE_CHECKING:
    Transaction = lmdb.Transaction[bytes]
    Cursor = lmdb.Cursor[bytes]
else:
    Transaction = lmdb.Transaction
    Cursor = lmdb.Cursor
Result = TypeVar("Result")


def height_key(height: int) -> bytes:
    """Return the key of a height in the journal and in the table of blocks."""
    return height.to_bytes(8, "big")


def key_height(key: bytes) -> int:
    """Return the height of a key of the journal or of the table of blocks."""
    return int.from_bytes(key, "big")


_SPARE = re.compile(
    r"(?P<table>.+ DB): overflow page \d+ header mp_pages (?P<held>\d+) != OVPAGES\(\d+\)=(?P<needed>\d+)"
)
_COUNT = re.compile(r"(?P<table>.+ DB): walked (?P<needed>\d+) overflow pages, record says (?P<held>\d+)")
_UNREACHED = re.compile(r"(?P<pages>\d+) page\(s\) are neither reachable nor in the freeDB -- a leak .*")


def unexplained(faults: Sequence[str]) -> list[str]:
    """Return a file's faults, as the walker reports them, without those that LMDB itself causes.

    LMDB writes a long record over a longer one of the same transaction into the pages of the longer one, and the pages
    behind it stay with the record. The walker reports three faults: the record has spare pages, its table counts them,
    and nothing reaches them. That is sound if the three agree; otherwise the spare pages belong to something else.
    """
    spare: Counter[str] = Counter()
    others, unreached = [], 0
    for fault in faults:
        if (found := _SPARE.fullmatch(fault)) and _surplus(found) > 0:
            spare[found["table"]] += _surplus(found)
        elif found := _UNREACHED.fullmatch(fault):
            unreached = int(found["pages"])
        else:
            others.append(fault)
    counted = Counter({found["table"]: _surplus(found) for found in map(_COUNT.fullmatch, others) if found})
    if not spare or counted != spare or unreached != spare.total():
        return list(faults)
    return [fault for fault in others if not _COUNT.fullmatch(fault)]


def _surplus(found: re.Match[str]) -> int:
    return int(found["held"]) - int(found["needed"])


_PAGE_HEADER: Final = 16  # bytes of the header of a page of LMDB 0.9, the format of all chains
_NODE_HEADER: Final = 8
_BOUNDS: Final = Struct("=12xHH")  # where the free bytes of a page begin and end
_NODE: Final = Struct("=HHHH")  # size of the value, low half and high half; flags; size of the key


class _Walker(_Verifier):
    """The walker of LMDB's binding, with a short way through plain leaf pages, which nearly all pages are."""

    def _walk_leaf(self, context: dict[str, Any], number: int, page: bytes) -> None:
        if not self._is_plain_leaf(context, page):
            super()._walk_leaf(context, number, page)  # type: ignore[no-untyped-call]

    def _is_plain_leaf(self, context: dict[str, Any], page: bytes) -> bool:
        """Note the records of a page if all lie in it and ascend; return False, and note nothing, for any other."""
        size, last = len(page), context["last_key"] or b""
        free, used = _BOUNDS.unpack_from(page)
        is_plain_table = not context["db"].flags and not context["is_free"]
        if self.hdrsz != _PAGE_HEADER or not is_plain_table or not _PAGE_HEADER < free <= used <= size:
            return False
        nodes = unpack_from(f"={(free - _PAGE_HEADER) // 2}H", page, _PAGE_HEADER)
        if min(nodes) < used or max(nodes) > size - _NODE_HEADER:
            return False
        for node in nodes:
            value_size, too_long, flags, key_size = _NODE.unpack_from(page, node)
            start = node + _NODE_HEADER
            end = start + key_size
            key = page[start:end]
            if flags or too_long or end + value_size > size or key <= last:
                return False
            last = key
        context["last_key"] = last
        context["entries"] += len(nodes)
        return True


def check_structure(path: Path) -> None:
    """Check that a file is sound for LMDB, at 1 µs a row. `StorageError` if it is foreign, damaged or truncated."""
    try:
        with path.open("rb", buffering=0) as file:
            faults = unexplained(_Walker(file, path.stat().st_size).verify())  # type: ignore[no-untyped-call]
    except (VerifyError, OSError) as error:
        raise StorageError(path, f"not a file of chain tables: {error}", RESTORE) from error
    if faults:
        raise StorageError(path, f"the file is damaged: {faults[0]}", RESTORE)


class Tables:
    """The open tables of one chain in the file ``path``. One thread owns them; its reads see the last transaction.

    Once they are shared, other threads can call `get_shared`, `record_from` and `record_to`. These read within one
    transaction, one thread at a time, and never wait for a write: LMDB keeps the pages of the last state while the next
    one is written, so the readers' transaction is renewed after each write and never during one. Hence it is never
    older than LMDB allows without a lock file of its own.
    """

    def __init__(
        self, path: Path, *, map_size: int, durable: bool, create: bool = False, is_writable: bool = True
    ) -> None:
        """Open the tables of a file with a sound structure, or create them.

        The map has ``map_size`` bytes at first and grows by doubling. If ``durable``, a transaction returns only when
        it is on disk.

        Raises:
            StorageError: If the file cannot be opened or lacks a table.
        """
        self.path = path
        self._reader: Transaction | None = None
        self._shared: Transaction | None = None
        self._sharing = Lock()
        self._is_open = True
        size = path.stat().st_size if path.exists() else 0
        while map_size < 2 * size:
            map_size *= 2
        self._map_size = map_size
        with self._explained():
            # No lock file of LMDB's own: the directory's lock admits one store, and one thread of it writes.
            self._environment = lmdb.open(
                bytes(path), map_size=map_size, subdir=False, max_dbs=len(NAMES), lock=False, sync=durable,
                readonly=not is_writable, create=create,
            )  # fmt: skip
        try:
            with self._explained():
                self._handles: dict[bytes, Any] = {
                    name: self._environment.open_db(name, create=create) for name in NAMES
                }
                for name, handle in self._handles.items():
                    # A table with unusual flags would be read in another order.
                    if any(handle.flags().values()):
                        raise StorageError(self.path, f"table {name.decode()} has foreign flags", RESTORE)
        except StorageError:
            self.close()
            raise

    @property
    def transaction(self) -> int:
        """Number of the last transaction."""
        with self._explained():
            return int(self._environment.info()["last_txnid"])

    def get(self, table: bytes, key: bytes) -> bytes | None:
        """Return the value under a key, or None."""
        # This is the one hot path: a context manager would double its price.
        try:
            return (self._reader or self._reading()).get(key, db=self._handles[table])
        except lmdb.Error as error:
            raise self._failure(error) from error

    def share(self) -> None:
        """Let other threads read from now on."""
        if self._shared is None:
            self._share_anew()

    def get_shared(self, table: bytes, key: bytes) -> bytes | None:
        """Return the value under a key, or None; for any thread. `InvariantError` if the tables are not shared."""
        with self._sharing:
            if self._shared is None:
                raise InvariantError("the tables are read from another thread, and have not been shared")
            # As in `get`, a context manager would double the price.
            try:
                return self._shared.get(key, db=self._handles[table])
            except lmdb.Error as error:
                raise self._failure(error) from error

    def get_record(self, table: bytes, key: bytes) -> bytes | None:
        """Return the record under a key, its checksum verified, or None. `StorageError` if it is damaged."""
        stored = self.get(table, key)
        return None if stored is None else self.content(table, key, stored)

    def content(self, table: bytes, key: bytes, stored: bytes) -> bytes:
        """Return the content of a record as it is stored; `StorageError` if its checksum is wrong."""
        with self.undamaged():
            return without_checksum(table, key, stored)

    @contextmanager
    def undamaged(self) -> Iterator[None]:
        """Turn the fault of a damaged record into a `StorageError` about the file."""
        try:
            yield
        except DamagedRecord as error:
            raise StorageError(self.path, str(error), RESTORE) from error

    def scan(self, table: bytes, first: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values, ascending from ``first`` on. Do not write meanwhile."""
        with self._explained():
            cursor = self._reading().cursor(db=self._handles[table])
            if cursor.set_range(first):
                yield from cursor.iternext()

    def keys(self, table: bytes, first: bytes = b"") -> Iterator[bytes]:
        """Yield keys, ascending from ``first`` on, in half the time of `scan`. Do not write meanwhile."""
        with self._explained():
            cursor = self._reading().cursor(db=self._handles[table])
            if cursor.set_range(first):
                yield from cursor.iternext(values=False)

    def record_from(self, table: bytes, key: bytes) -> tuple[bytes, bytes] | None:
        """Return key and record of the first one at or after ``key``, its checksum verified, or None."""
        with self._looking(table) as cursor:
            found = cursor.item() if cursor.set_range(key) else None
        return None if found is None else (found[0], self.content(table, *found))

    def record_to(self, table: bytes, key: bytes) -> tuple[bytes, bytes] | None:
        """Return key and record of the last one at or before ``key``, its checksum verified, or None."""
        with self._looking(table) as cursor:
            there = cursor.set_range(key)
            if not there:
                there = cursor.last()
            elif cursor.key() != key:
                there = cursor.prev()
            found = cursor.item() if there else None
        return None if found is None else (found[0], self.content(table, *found))

    def write(self, action: Callable[[Transaction], Result]) -> Result:
        """Run ``action`` in one transaction, completely or not at all, and return its result.

        The action runs again when the map has to grow, so it changes nothing but the transaction.

        Raises:
            StorageError: If the disk is full or fails. The tables must not be written any more then.
        """
        while True:
            self._end_reading()
            try:
                with self._environment.begin(write=True) as transaction:
                    result = action(transaction)
                if self._shared is not None:
                    self._share_anew()
                return result
            except lmdb.MapFullError:
                self._grow()
            except lmdb.Error as error:
                raise self._failure(error) from error

    def replace(self, transaction: Transaction, table: bytes, key: bytes, value: bytes | None) -> None:
        """Store a value within a transaction, or delete the key if it is None."""
        if value is None:
            transaction.delete(key, db=self._handles[table])
        else:
            transaction.put(key, value, db=self._handles[table])

    def put_record(self, transaction: Transaction, table: bytes, key: bytes, content: bytes) -> None:
        """Store a record with its checksum within a transaction."""
        transaction.put(key, with_checksum(table, key, content), db=self._handles[table])

    def delete_from(self, transaction: Transaction, table: bytes, first: bytes) -> None:
        """Delete every key from ``first`` on within a transaction."""
        with transaction.cursor(db=self._handles[table]) as cursor:
            cursor.set_range(first)
            while cursor.key():
                cursor.delete()

    def delete_first(self, transaction: Transaction, table: bytes, kept: int) -> bytes | None:
        """Delete the lowest keys within a transaction until ``kept`` are left; return the last one deleted, or None."""
        deleted = None
        excess = transaction.stat(self._handles[table])["entries"] - kept
        with transaction.cursor(db=self._handles[table]) as cursor:
            cursor.first()
            while excess > 0:
                deleted = cursor.key()
                cursor.delete()
                excess -= 1
        return deleted

    def close(self) -> None:
        """Close the file."""
        self._end_reading()
        with self._sharing:
            # The ended transaction stays, so that its readers get the error of a closed chain.
            self._end_sharing()
            self._is_open = False
            self._environment.close()

    def _reading(self) -> Transaction:
        if self._reader is None:
            self._reader = self._environment.begin()
        return self._reader

    def _end_reading(self) -> None:
        if self._reader is not None:
            self._reader.abort()
            self._reader = None

    def _share_anew(self) -> None:
        """Let the other threads see the last transaction. No write may be under way."""
        with self._sharing, self._explained():
            self._end_sharing()
            self._shared = self._environment.begin()

    def _end_sharing(self) -> None:
        if self._shared is not None:
            self._shared.abort()

    @contextmanager
    def _looking(self, table: bytes) -> Iterator[Cursor]:
        """Open a cursor for one lookup."""
        with self._explained():
            if self._shared is None:
                yield self._reading().cursor(db=self._handles[table])
            else:
                with self._sharing, self._shared.cursor(db=self._handles[table]) as cursor:
                    yield cursor

    def _grow(self) -> None:
        self._map_size *= 2
        with self._sharing, self._explained():
            # The map can move, so no read may be under way.
            self._end_sharing()
            self._environment.set_mapsize(self._map_size)
            if self._shared is not None:
                self._shared = self._environment.begin()

    def _failure(self, error: lmdb.Error) -> StorageError:
        if not self._is_open:
            return StorageError(self.path, "the chain is closed", "open it again")
        fix = "free space or repair the disk, then open the chain again; no sealed block is lost"
        return StorageError(self.path, f"the tables cannot be used: {error}", fix)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except lmdb.Error as error:
            raise self._failure(error) from error
