"""A history that keeps a few records is a list of all blocks."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.model.record_store import RecordTable
from trailboss.chain import history
from trailboss.chain.block_archive import BlockArchive, DiskArchive, MemoryArchive
from trailboss.chain.history import History, idle_after, is_eventful
from trailboss.model.blocks import Block, Header, header_hash
from trailboss.model.events import EventRecord

INTERVAL_MS = 1_000
CHECKPOINT = 8
SHARE = settings.default.max_examples // 2
GENESIS_HEADER = Header(1, 1, 0, bytes(32), 0, b"\x09" * 20, bytes(32), bytes(32), b"\x01" * 32, b"c", b"d", 0, 0, 0)
GENESIS = Block(header=GENESIS_HEADER, hash=header_hash(GENESIS_HEADER))

EVENTS = (EventRecord("note", b"\x01" * 20, b""),)
CHILDREN = st.sampled_from(("idle", "late", "event", "root", "fee", "use"))
STEPS = st.lists(
    st.one_of(
        CHILDREN,
        st.tuples(CHILDREN, st.integers(0, CHECKPOINT - 1)),
        st.integers(0, 2 * CHECKPOINT),
        st.just("reopen"),
        st.just("idle"),
    ),
    min_size=16,
    max_size=60,
)


def child(parent: Block, kind: str) -> Block:
    """Return a block that follows: idly, or otherwise in one respect."""
    idle = idle_after(parent, INTERVAL_MS)
    changes = {
        "idle": {},
        "late": {"timestamp_ms": idle.header.timestamp_ms + 1},
        "event": {"receipts_root": b"\x02" * 32},
        "root": {"state_root": bytes(reversed(range(32))) if idle.header.height % 2 else bytes(range(32))},
        "fee": {"cycle_basefee": idle.header.height.to_bytes(16, "big")},
        "use": {"cells_used": 1},
    }[kind]
    header = replace(idle.header, **changes)
    return Block(header=header, hash=header_hash(header), events=EVENTS if kind == "event" else ())


def recorded_heights(blocks: list[Block]) -> list[int]:
    """Return which blocks are kept: those that are not what is derived, and one after so many that are."""
    heights = [0]
    for parent, block in pairwise(blocks):
        if block != idle_after(parent, INTERVAL_MS) or block.height == heights[-1] + CHECKPOINT:
            heights.append(block.height)
    return heights


@contextmanager
def small() -> Iterator[None]:
    """Let checkpoints and the cache come soon."""
    with patch.object(history, "CHECKPOINT_BLOCKS", CHECKPOINT), patch.object(history, "CACHED_BLOCKS", 3):
        yield


@pytest.mark.parametrize("on_disk", [False, True])
@given(steps=STEPS, looks=st.lists(st.integers(0, 10**6), max_size=4))
@settings(max_examples=SHARE)
def test_history_equals_a_list(on_disk: bool, steps: list[str | tuple[str, int] | int], looks: list[int]) -> None:
    """Blocks, runs, steps back (numbers) and restarts in any order; read by height, slice, from anywhere on."""
    table, memory = RecordTable(), MemoryArchive()

    def archive() -> BlockArchive:
        return DiskArchive(table, Path("chain")) if on_disk else memory

    with small():
        blocks, found = [GENESIS], History(archive(), INTERVAL_MS, GENESIS)
        for step in steps:
            seals = table.seals
            if isinstance(step, int):
                height = max(0, len(blocks) - 1 - step)
                del blocks[height + 1 :]
                table.revert(height)
                found.truncate(height)
            elif step == "reopen":
                found = History(archive(), INTERVAL_MS, height=len(blocks) - 1)
            else:
                first, count = step if isinstance(step, tuple) else (step, 0)
                run = [child(blocks[-1], first)]
                for _ in range(count):
                    run.append(child(run[-1], "idle"))
                found.extend(run)
                blocks += run
                assert table.seals == seals + on_disk
            assert (len(found), found.height, found.head) == (len(blocks), len(blocks) - 1, blocks[-1])
            for look in looks:
                assert found[look % len(blocks)] == blocks[look % len(blocks)]
        assert list(found) == blocks
        for look in looks:
            since = look % (len(blocks) + 2)
            assert list(found.since(since)) == found[since:] == blocks[since:]
            assert list(found.eventful(since)) == [block for block in blocks[since:] if is_eventful(block)]
            assert found[since : since + 5 : 2] == blocks[since : since + 5 : 2]
        assert [block.height for block in archive().records(0)] == recorded_heights(blocks)


@given(runs=st.lists(st.integers(1, CHECKPOINT), min_size=4, max_size=12))
def test_records_are_the_same_when_the_same_blocks_come_in_other_runs(runs: list[int]) -> None:
    """What an archive holds follows from the blocks, not from how they came."""
    with small():
        together, apart = MemoryArchive(), MemoryArchive()
        in_runs, one_by_one = History(together, INTERVAL_MS, GENESIS), History(apart, INTERVAL_MS, GENESIS)
        for count in runs:
            run = [child(in_runs.head, "event" if count == 3 else "idle")]
            while len(run) < count:
                run.append(child(run[-1], "idle"))
            in_runs.extend(run)
            for block in run:
                one_by_one.extend((block,))
        assert list(together.records(0)) == list(apart.records(0))
