"""The hashes of quiet blocks: those in which nothing happens and no price moves, of which a chain may have millions.

Only the first bytes of each are kept, next to one another: a look-up reads them all, at the speed of memory, and the
block itself says whether it is the one.

Decision: D-75
"""

from collections.abc import Iterator
from sqlite3 import Connection

from trailboss.index.schema import PREFIX_WIDTH, QUIET_CHUNK


class QuietHashes:
    """Writes them: rows of up to ``QUIET_CHUNK`` heights in a row."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.reload()

    def reload(self) -> None:
        """Go on with what the table holds."""
        row = self._connection.execute("SELECT first, hashes FROM quiet ORDER BY first DESC LIMIT 1").fetchone()
        self._first: int = 0 if row is None else row[0]
        self._hashes = bytearray() if row is None else bytearray(row[1])
        self._is_written = True

    def append(self, height: int, block_hash: bytes) -> None:
        """Add the hash of a quiet block above all others; it is in the table after `flush`."""
        count = len(self._hashes) // PREFIX_WIDTH
        if height != self._first + count or count >= QUIET_CHUNK:
            self.flush()
            self._first, self._hashes = height, bytearray()
        self._hashes += block_hash[:PREFIX_WIDTH]
        self._is_written = False

    def flush(self) -> None:
        """Write what has been added."""
        if not self._is_written:
            row = self._first, bytes(self._hashes)
            self._connection.execute("INSERT OR REPLACE INTO quiet (first, hashes) VALUES (?, ?)", row)
            self._is_written = True

    def truncate(self, height: int) -> None:
        """Forget the blocks above a height; nothing may wait to be written."""
        self._connection.execute("DELETE FROM quiet WHERE first > ?", (height,))
        self.reload()
        kept = (height + 1 - self._first) * PREFIX_WIDTH
        if kept < len(self._hashes):
            del self._hashes[kept:]
            self._is_written = False
            self.flush()


def hash_prefix(connection: Connection, height: int) -> bytes:
    """Return the first bytes of the hash of a quiet block; nothing if there is no quiet block of that height."""
    query = "SELECT first, hashes FROM quiet WHERE first <= ? ORDER BY first DESC LIMIT 1"
    first, hashes = connection.execute(query, (height,)).fetchone() or (height, b"")
    begin = (height - first) * PREFIX_WIDTH
    return bytes(hashes[begin : begin + PREFIX_WIDTH])


def quiet_heights(connection: Connection, prefix: bytes, upto: int) -> Iterator[int]:
    """Yield the heights of quiet blocks whose hashes begin like one, ascending.

    Complexity: O(quiet blocks), a byte in about a nanosecond.

    Args:
        connection: The index.
        prefix: The first `PREFIX_WIDTH` bytes of a hash.
        upto: Highest height.
    """
    query = "SELECT first, hashes FROM quiet WHERE first <= ? AND instr(hashes, ?) ORDER BY first"
    for first, hashes in connection.execute(query, (upto, prefix)):
        at = hashes.find(prefix)
        while at >= 0:
            place, misplaced = divmod(at, PREFIX_WIDTH)
            if not misplaced and first + place <= upto:
                yield first + place
            at = hashes.find(prefix, at + 1)
