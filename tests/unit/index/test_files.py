"""The file of the index: used again when it can be trusted, and made anew when not."""

import os
import signal
import sqlite3
from pathlib import Path
from typing import NoReturn

import pytest

from tests.unit.index.conftest import Open
from tests.unit.index.made import GENESIS, MadeChain
from tests.unit.index.test_index import busy_chain, check
from trailboss.execution.genesis import Genesis
from trailboss.index import Index, files
from trailboss.index.files import BESIDES
from trailboss.primitives.errors import StorageError


def crowd() -> MadeChain:
    """Return the chain that is written while its writer is killed."""
    chain = MadeChain()
    for block in range(12):
        chain.fire(range(9 * block - 9, 9 * block) if block else (), range(9 * block, 9 * block + 9))
        chain.idle(block % 3)
    return chain


def steps(chain: MadeChain, opened: Open) -> tuple[Index, list[tuple[int, int]]]:
    """Open an index and return it, and what it told of its way."""
    told: list[tuple[int, int]] = []
    return opened(chain, lambda height, last: told.append((height, last))), told


def test_index_goes_on_where_it_was_when_it_is_opened_again(opened: Open) -> None:
    """Nothing is done twice, and what has come since is caught up with."""
    chain = busy_chain()
    _, told = steps(chain, opened)
    assert told == [(chain.height, chain.height)]
    index, told = steps(chain, opened)
    assert told == []
    chain.fire([9], [50])
    index, told = steps(chain, opened)
    assert told == [(chain.height, chain.height)]
    check(index, chain)


def test_writer_keeps_a_few_mib_of_pages_when_a_file_is_opened(opened: Open) -> None:
    """A node's memory is level after some minutes, not after hours."""
    index = opened(busy_chain())
    [kib] = index._file.writer.execute("PRAGMA cache_size").fetchone()
    assert -16_384 <= kib < 0


@pytest.mark.parametrize("fork", [0, 2, 4, 6, 8])
def test_index_takes_back_what_is_on_another_branch_when_it_is_opened(opened: Open, fork: int) -> None:
    """Wherever the branches part, in quiet blocks too, and whichever is longer."""
    chain = busy_chain()
    opened(chain)
    other = chain.branch(fork, b"other")
    other.transfer([(5, 6)])
    other.fire((), [100 + fork])
    index = opened(other)
    check(index, other)
    index = opened(chain)
    check(index, chain)


def test_index_goes_back_when_the_chain_is_shorter_than_it(opened: Open) -> None:
    """Down to a quiet block, and on from there."""
    chain = busy_chain()
    opened(chain)
    shorter = chain.branch(6, b"")
    index = opened(shorter)
    assert index.height == 6
    check(index, shorter)


def damaged(path: Path, damage: str) -> None:
    """Damage the file of a closed index."""
    size = path.stat().st_size
    match damage:
        case "garbage":
            path.write_bytes(b"this is no database" * 500)
        case "empty":
            path.write_bytes(b"")
        case "cut":
            os.truncate(path, size // 2)
        case "cut by a page":
            os.truncate(path, size - 4096)
        case "longer":
            path.write_bytes(path.read_bytes() + b"more")
        case "header":
            path.write_bytes(bytes(100) + path.read_bytes()[100:])
        case "first page":
            path.write_bytes(path.read_bytes()[:200] + bytes(3_896) + path.read_bytes()[4_096:])
        case "another program's":
            path.unlink()
            connection = sqlite3.connect(path)
            connection.execute("CREATE TABLE state (genesis, height)")
            connection.close()
        case "another format":
            connection = sqlite3.connect(path)
            connection.execute("PRAGMA user_version = 99")
            connection.close()
        case "half made":
            connection = sqlite3.connect(path)
            connection.execute("DELETE FROM state")
            connection.commit()
            connection.close()


@pytest.mark.parametrize(
    "damage",
    [
        "garbage", "empty", "cut", "cut by a page", "longer", "header", "first page", "another program's",
        "another format", "half made",
    ],
)  # fmt: skip
def test_index_is_made_anew_when_its_file_is_damaged_or_of_something_else(
    path: Path, opened: Open, damage: str
) -> None:
    """And answers as if nothing had been."""
    chain = busy_chain()
    opened(chain).close()
    damaged(path, damage)
    index, told = steps(chain, opened)
    assert told == [(chain.height, chain.height)]
    check(index, chain)


def test_index_is_made_anew_when_it_is_of_another_chain(opened: Open) -> None:
    """Another genesis, the same heights."""
    opened(busy_chain())
    other = MadeChain(Genesis(chain_id=2, proposer=GENESIS.proposer, accounts=GENESIS.accounts))
    other.idle(20)
    index, told = steps(other, opened)
    assert told == [(20, 20)]
    check(index, other)


@pytest.mark.parametrize(("boot", "is_made_anew"), [("the same", False), ("another", True), ("", True)])
def test_index_that_was_not_closed_is_used_only_if_the_machine_has_run_since(
    path: Path, monkeypatch: pytest.MonkeyPatch, boot: str, is_made_anew: bool
) -> None:
    """What was never waited for to reach the disk may be lost with the power, and only then."""
    chain = busy_chain()
    monkeypatch.setattr(files, "boot_id", lambda: "the same" if boot else "")
    left = Index.open(path, chain)  # type: ignore[arg-type]
    monkeypatch.setattr(files, "boot_id", lambda: boot)
    told: list[int] = []
    index = Index.open(path, chain, lambda height, _: told.append(height))  # type: ignore[arg-type]
    assert bool(told) == is_made_anew
    check(index, chain)
    index.close()
    left._file.writer.close()


def test_index_that_was_closed_is_used_after_any_restart(
    opened: Open, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has been waited for."""
    chain = busy_chain()
    opened(chain).close()
    assert [end for end in BESIDES if path.with_name(path.name + end).exists()] == [""]
    monkeypatch.setattr(files, "boot_id", lambda: "another")
    _, told = steps(chain, opened)
    assert told == []


def write_for_ever(path: Path, chain: MadeChain, told: int) -> NoReturn:
    """Be a writer that goes forth and back, and say so each time; a forked process must not come back."""
    try:
        index = Index.open(path, MadeChain())  # type: ignore[arg-type]
        while True:
            for block in chain.blocks[1:]:
                index.apply([block])
                os.write(told, b".")
            index.revert(0)
    finally:
        os._exit(1)


def test_index_is_right_or_made_anew_when_its_writer_is_killed(path: Path) -> None:
    """A process is killed in the midst of its writing, again and again on the same file."""
    chain = crowd()
    for writes in (3, 11, 17, 40):
        heard, told = os.pipe()
        child = os.fork()
        if not child:
            write_for_ever(path, chain, told)
        for _ in range(writes):
            assert os.read(heard, 1) == b"."
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(heard)
        os.close(told)
        index = Index.open(path, chain)  # type: ignore[arg-type]
        assert index.height == chain.height
        check(index, chain)
        index.close()


def test_index_made_in_no_directory_leaves_nothing_behind() -> None:
    """A temporary file is gone when it is closed."""
    chain = busy_chain()
    index = Index.open(None, chain)  # type: ignore[arg-type]
    check(index, chain)
    directory = index._file.path.parent
    assert directory.exists()
    index.close()
    index.close()
    assert not directory.exists()
    with pytest.raises(StorageError, match="the index is closed"):
        index.totals(0)


@pytest.mark.parametrize("place", ["missing/index.sqlite", "."])
def test_index_is_refused_when_its_file_cannot_be_made(tmp_path: Path, place: str) -> None:
    """With what is wrong, and nothing left open."""
    with pytest.raises(StorageError, match="can be neither opened nor made"):
        Index.open(tmp_path / place, MadeChain())  # type: ignore[arg-type]


def break_pages(path: Path) -> None:
    """Overwrite all pages but the first."""
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def test_index_is_made_anew_when_damage_is_met_on_the_way_to_the_head(path: Path, opened: Open) -> None:
    """A file that has its right size and first page, and nothing but rubbish behind it."""
    chain = busy_chain()
    opened(chain).close()
    break_pages(path)
    index, told = steps(chain, opened)
    assert told == [(chain.height, chain.height)]
    check(index, chain)


@pytest.mark.parametrize("is_read", [True, False], ids=["read", "write"])
def test_file_is_thrown_away_when_a_use_finds_it_damaged(path: Path, opened: Open, is_read: bool) -> None:
    """It is told when it is met, and the next start makes the file anew."""
    chain = busy_chain()
    opened(chain)
    index = opened(chain)
    break_pages(path)
    block = chain.fire([9], [60])
    index.apply([block])
    with pytest.raises(StorageError, match="the next start builds it from the blocks"):
        index.totals(0) if is_read else index.write()
    index.close()
    assert not path.exists()
    check(opened(chain), chain)
