"""The head and the digest beside the tables."""

from pathlib import Path

import pytest

from trailboss.primitives.errors import StorageError
from trailboss.state.disk import files
from trailboss.state.disk.files import SLOT_WIDTH, Head, HeadFile


def head_of(transaction: int) -> Head:
    return Head(transaction, transaction + 100, bytes([transaction]) * 32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a head after transactions 7, 8 and 9."""
    head = HeadFile(tmp_path / "head")
    head.reset(head_of(7))
    head.write(head_of(8))
    head.write(head_of(9))
    head.close()
    return tmp_path / "head"


def damage_slot(path: Path, slot: int) -> None:
    octets = bytearray(path.read_bytes())
    octets[slot * SLOT_WIDTH + 3] ^= 1
    path.write_bytes(octets)


@pytest.mark.parametrize(("transaction", "fits"), [(7, False), (8, False), (9, True), (10, True)])
def test_tables_are_refused_when_they_are_behind_the_head(path, transaction, fits) -> None:
    """Tables may be ahead, for the head is written after them and is not flushed."""
    if fits:
        files.check_head(path, head_of(transaction), tables_are_clean=False)
        return
    with pytest.raises(StorageError, match=rf"transaction {transaction} at block {transaction + 100}, and trans.* 9 "):
        files.check_head(path, head_of(transaction), tables_are_clean=False)


@pytest.mark.parametrize("slot", [0, 1])
def test_unreadable_slot_counts_as_the_newer_one(path, slot) -> None:
    """Nobody knows which of the two it was, so tables that might be behind are refused."""
    damage_slot(path, slot)
    last = 8 if slot == 1 else 9
    files.check_head(path, head_of(last + 1), tables_are_clean=False)
    with pytest.raises(StorageError, match=f"transaction {last + 1} had been committed"):
        files.check_head(path, head_of(last), tables_are_clean=False)
    files.check_head(path, head_of(last), tables_are_clean=True)


def test_head_is_refused_when_no_slot_can_be_read(path) -> None:
    """Unless the tables are known to be whole, a damaged head is not passed over."""
    damage_slot(path, 0)
    damage_slot(path, 1)
    files.check_head(path, head_of(9), tables_are_clean=True)
    with pytest.raises(StorageError, match="the record of the last block is damaged"):
        files.check_head(path, head_of(9), tables_are_clean=False)


def test_tables_are_refused_when_they_contradict_the_head(path) -> None:
    """The same transaction cannot have had another root."""
    with pytest.raises(StorageError, match="is not the head that was committed: block 109 with root 0909"):
        files.check_head(path, head_of(9)._replace(state_root=bytes(32)), tables_are_clean=False)


def test_digest_matches_until_the_tables_change(tmp_path) -> None:
    """One changed byte, or a damaged digest, and the tables count as unchecked."""
    tables = tmp_path / files.TABLES_NAME
    tables.write_bytes(b"tables")
    assert not files.is_clean(tmp_path)
    files.write_clean(tmp_path)
    assert files.is_clean(tmp_path)
    tables.write_bytes(b"tableS")
    assert not files.is_clean(tmp_path)
    tables.write_bytes(b"tables")
    (tmp_path / files.CLEAN_NAME).write_bytes(b"damaged")
    assert not files.is_clean(tmp_path)


def test_refusals_of_the_system_are_explained(tmp_path) -> None:
    """What the system says is part of the message."""
    with pytest.raises(StorageError, match="the system refuses: No such file or directory"):
        HeadFile(tmp_path / "missing" / "head")
