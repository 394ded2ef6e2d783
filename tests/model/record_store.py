"""A store of block records in a plain dictionary, in the place of one on disk."""

from collections.abc import Iterator


class RecordTable:
    """Opaque records by height.

    Attributes:
        rows: The records.
        seals: How often somebody waited until everything was safe.
    """

    def __init__(self) -> None:
        self.rows: dict[int, bytes] = {}
        self.seals = 0

    def seal(self, record: tuple[int, bytes] | None) -> None:
        self.seals += 1
        if record is not None:
            height, octets = record
            assert height not in self.rows
            self.rows[height] = octets

    def record_at(self, height: int) -> tuple[int, bytes]:
        found = max(each for each in self.rows if each <= height)
        return found, self.rows[found]

    def records(self, first: int) -> Iterator[tuple[int, bytes]]:
        return iter([(height, self.rows[height]) for height in sorted(self.rows) if height >= first])

    def revert(self, height: int) -> None:
        for above in [each for each in self.rows if each > height]:
            del self.rows[above]
