"""Whether a file of tables can be trusted with LMDB, and what LMDB does itself that looks like damage."""

from pathlib import Path
from random import Random

import lmdb
import pytest
from lmdb.verify import VerifyError, verify

from trailboss.primitives.errors import StorageError
from trailboss.state.disk.tables import _Walker, check_structure, unexplained

SPARE = "freeDB DB: overflow page 40 header mp_pages 3 != OVPAGES(4072)=1"
COUNT = "freeDB DB: walked 81 overflow pages, record says 83"
UNREACHED = "2 page(s) are neither reachable nor in the freeDB -- a leak (first: page 41)"


def write_over(path: Path, *sizes: int) -> None:
    """Write records of these sizes over one another, in one transaction."""
    with lmdb.open(str(path), subdir=False, lock=False) as environment, environment.begin(write=True) as transaction:
        for size in sizes:
            transaction.put(b"key", b"\x01" * size)


def test_file_is_sound_when_a_record_was_overwritten_by_a_shorter_one(tmp_path: Path) -> None:
    """LMDB leaves the spare pages with the record: the walker complains, and there is nothing wrong."""
    path = tmp_path / "tables"
    write_over(path, 9_000, 3_000)
    assert len(verify(str(path))) == 3
    check_structure(path)


def test_file_is_refused_when_a_record_claims_pages_of_others(tmp_path: Path) -> None:
    """The same record whose length was raised by damage would free pages that are in use."""
    path = tmp_path / "tables"
    write_over(path, 9_000)
    octets = bytearray(path.read_bytes())
    page = next(at for at in range(0, len(octets), 4_096) if int.from_bytes(octets[at + 10 : at + 12], "little") == 4)
    assert int.from_bytes(octets[page + 12 : page + 16], "little") == 3
    octets[page + 12] = 5
    path.write_bytes(octets)
    with pytest.raises(StorageError, match="mp_pages 5"):
        check_structure(path)


@pytest.mark.parametrize(
    ("faults", "left"),
    [
        ([], []),
        ([SPARE, COUNT, UNREACHED], []),
        ([SPARE, COUNT, UNREACHED, "page 7 is wrong"], ["page 7 is wrong"]),
        (["page 7 is wrong"], ["page 7 is wrong"]),
        ([UNREACHED], [UNREACHED]),
        ([SPARE, COUNT], [SPARE, COUNT]),
        ([SPARE, UNREACHED], [SPARE, UNREACHED]),
        ([SPARE, COUNT, UNREACHED.replace("2 page", "1 page")], None),
        ([SPARE, COUNT.replace("83", "82"), UNREACHED], None),
        ([SPARE, COUNT.replace("freeDB", "state"), UNREACHED], None),
        ([SPARE.replace("mp_pages 3", "mp_pages 0"), COUNT, UNREACHED], None),
    ],
)
def test_faults_are_explained_when_the_three_numbers_agree_and_only_then(
    faults: list[str], left: list[str] | None
) -> None:
    """Spare pages of a record, the count of its table and the pages that nothing reaches must be the same pages."""
    assert unexplained(faults) == (faults if left is None else left)


def faults(path: Path, walk) -> list[str]:
    """Return what a walk finds; the error of a file that cannot be walked."""
    try:
        return walk(path)
    except VerifyError as error:
        return [str(error)]


def walked(path: Path) -> list[str]:
    """Walk as `check_structure` does."""
    with path.open("rb") as file:
        return _Walker(file, path.stat().st_size).verify()


def test_short_way_through_leaf_pages_finds_what_the_long_one_finds(tmp_path: Path) -> None:
    """Wherever a byte of the file is damaged, the faults are those of the binding's own walker, in its words."""
    path, draw = tmp_path / "tables", Random(20)
    with lmdb.open(str(path), subdir=False, lock=False, max_dbs=1) as environment:
        table = environment.open_db(b"table")
        with environment.begin(write=True) as transaction:
            for number in range(400):
                transaction.put(draw.randbytes(20), bytes(number % 90), db=table)
            transaction.put(b"long", bytes(9_000), db=table)
    octets, found = path.read_bytes(), 0
    for _ in range(800):
        at = draw.randrange(len(octets)) // 4_096 * 4_096 + draw.choice((draw.randrange(64), draw.randrange(4_096)))
        path.write_bytes(octets[:at] + bytes((octets[at] ^ 1 << draw.randrange(8),)) + octets[at + 1 :])
        expected = faults(path, verify)
        assert faults(path, walked) == expected
        found += bool(expected)
    assert found > 200
