"""Histories: what is kept, what is derived, and what is refused."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.model.record_store import RecordTable
from trailboss.chain import Chain
from trailboss.chain.block_archive import DiskArchive, LastRecord, MemoryArchive
from trailboss.chain.block_records import encode_block
from trailboss.chain.history import CHECKPOINT_BLOCKS, History, idle_after
from trailboss.execution.genesis import Genesis
from trailboss.model.blocks import Block
from trailboss.primitives.errors import InvariantError, StorageError
from trailboss.primitives.octets import Address

INTERVAL_MS = 1_000
GENESIS = Genesis(chain_id=1, proposer=Address(b"\x09" * 20))


@pytest.fixture(scope="module")
def blocks() -> list[Block]:
    """Return genesis and some idle blocks, each built the long way, from its own transition."""
    chain = Chain(GENESIS)
    for _ in range(12):
        chain.build()
    return list(chain.blocks)


def months(count: int, genesis: Block) -> list[Block]:
    found = [genesis]
    for _ in range(count):
        found.append(idle_after(found[-1], INTERVAL_MS))
    return found


def test_idle_blocks_are_kept_only_every_so_often(blocks: list[Block]) -> None:
    """Genesis and every 1,024th, whether they come one by one or in runs."""
    archive = MemoryArchive()
    history = History(archive, INTERVAL_MS, blocks[0])
    many = months(3 * CHECKPOINT_BLOCKS, blocks[0])
    for block in many[1:1_500]:
        history.extend((block,))
    for start in range(1_500, len(many), 700):
        history.extend(many[start : start + 700])
    assert [block.height for block in archive.records(0)] == [0, 1_024, 2_048, 3_072]
    assert (len(history), history.head) == (len(many), many[-1])
    assert [history[height] for height in (0, 1, 1_023, 1_024, 2_047, -2)] == [
        many[height] for height in (0, 1, 1_023, 1_024, 2_047, -2)
    ]


def test_last_record_is_all_that_is_kept_where_a_chain_is_only_compared(blocks: list[Block]) -> None:
    """The chain comes out the same; a block before the last record is refused, not another one returned for it."""
    archive = LastRecord()
    chain, whole = (Chain(GENESIS, archive=each) for each in (archive, None))
    for blocks_on in (1, CHECKPOINT_BLOCKS + 3, 1):
        for each in (chain, whole):
            each.build(timestamp_ms=each.head.header.timestamp_ms + 1)
            list(each.advance_to(each.height + blocks_on))
    assert chain.head == whole.head
    assert [record.height for record in archive.records(0)] == [whole.blocks.record_at(whole.height).height]
    assert chain.blocks[-2:] == whole.blocks[-2:]
    with pytest.raises(InvariantError, match="the record of block 1 is gone: block 1031 took its place"):
        chain.blocks[1]


def test_blocks_are_found_by_slice_and_not_beyond_the_ends(blocks: list[Block]) -> None:
    """As in a list."""
    history = History(MemoryArchive(), INTERVAL_MS, blocks[0])
    history.extend(blocks[1:])
    assert history[3:7] == blocks[3:7]
    assert history[-3:] == blocks[-3:]
    assert history[8:2:-3] == blocks[8:2:-3]
    assert history[20:] == []
    assert list(history.since(-5)) == blocks
    assert list(history.since(13)) == []
    assert blocks[4] in history
    assert history.index(blocks[4]) == 4
    for height in (13, -14):
        with pytest.raises(IndexError, match=f"there is no block {height}: the head is block 12"):
            history[height]


def test_nothing_is_found_when_what_is_asked_for_lies_above_the_head(tmp_path: Path) -> None:
    """However far, in memory and on disk."""
    with Chain(GENESIS) as in_memory, Chain.create(tmp_path / "chain", GENESIS) as on_disk:
        for chain in (in_memory, on_disk):
            assert not list(chain.blocks.eventful(2**64))
            assert not list(chain.blocks.since(2**64))


def test_nothing_changes_when_a_block_does_not_continue_the_head(blocks: list[Block]) -> None:
    """Another height, another parent, a run with a gap, a run that is not idle, a run too long."""
    history = History(MemoryArchive(), INTERVAL_MS, blocks[0])
    history.extend(blocks[1:3])
    loud = replace(blocks[4], events=("something",))
    cases = [
        ([blocks[4]], "block 4, child of .*, does not continue block 2"),
        ([blocks[2]], "block 2, child of .*, does not continue block 2"),
        ([replace(blocks[3], header=blocks[2].header)], "does not continue block 2"),
        ([blocks[3], blocks[5]], "block 5, child of .*, does not continue block 3"),
        ([blocks[3], loud], "block 4 of a run does not follow idly"),
        ([blocks[3]] * (CHECKPOINT_BLOCKS + 1), "1025 blocks come at once, more than 1024"),
    ]
    for run, words in cases:
        with pytest.raises(InvariantError, match=words):
            history.extend(run)
        assert list(history) == blocks[:3]
    history.extend([])
    history.extend(blocks[3:])
    assert list(history) == blocks


def test_history_is_refused_when_it_would_not_begin_at_the_beginning(blocks: list[Block]) -> None:
    """Block 0 or none."""
    with pytest.raises(InvariantError, match="a history starts with block 0, not 1"):
        History(MemoryArchive(), INTERVAL_MS, blocks[1])


def test_going_back_is_refused_when_there_is_no_such_block(blocks: list[Block]) -> None:
    """Before genesis or above the head."""
    history = History(MemoryArchive(), INTERVAL_MS, blocks[0])
    for height in (-1, 1):
        with pytest.raises(InvariantError, match=f"cannot go back to block {height} from block 0"):
            history.truncate(height)


def test_every_append_is_sealed_once_when_the_shelf_is_on_disk(blocks: list[Block]) -> None:
    """Idle blocks write no record, and are safe all the same."""
    table = RecordTable()
    history = History(DiskArchive(table, Path("chain")), INTERVAL_MS, blocks[0])
    history.extend((blocks[1],))
    history.extend(blocks[2:])
    assert (table.seals, list(table.rows)) == (3, [0])


def test_going_back_is_refused_when_the_store_has_not(blocks: list[Block]) -> None:
    """Two views of one chain may not part."""
    table = RecordTable()
    late = Chain(Genesis(chain_id=1, proposer=Address(b"\x09" * 20)))
    late.build(timestamp_ms=late.head.header.timestamp_ms)
    history = History(DiskArchive(table, Path("chain")), INTERVAL_MS, blocks[0])
    history.extend((late.head,))
    with pytest.raises(InvariantError, match="the store keeps the record of block 1 after going back to block 0"):
        history.truncate(0)


def test_record_on_disk_is_refused_when_it_is_not_its_block(blocks: list[Block]) -> None:
    """Damaged, or under another height: with the directory and what to do."""
    table = RecordTable()
    archive = DiskArchive(table, Path("some/chain"))
    table.rows[0] = b"\x01\x90"
    with pytest.raises(
        StorageError, match=r"some/chain: block 0 cannot be read: malformed block record.*from an export"
    ):
        archive.at(0)
    table.rows[0] = encode_block(blocks[5])
    with pytest.raises(StorageError, match="some/chain: the record of block 0 holds block 5"):
        list(archive.records(0))
