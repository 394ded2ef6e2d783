"""Exports: a chain in one file comes back equal, and a file that is not what it was is refused."""

import os
from pathlib import Path
from random import Random

import pytest

from tests.model.histories import history, seeded
from tests.model.session import Session
from trailboss.chain import Chain
from trailboss.chain.export import check_export, export_chain, import_chain
from trailboss.chain.export_frames import (
    MAGIC,
    BlockContent,
    Content,
    EndContent,
    FrameWriter,
    GenesisContent,
    IdleContent,
    frames_of,
)
from trailboss.codec.wire import encode_transaction
from trailboss.execution.genesis import Genesis, encode_genesis
from trailboss.primitives.errors import StorageError
from trailboss.primitives.octets import Address
from trailboss.testing import LocalChain

GENESIS = Genesis(chain_id=1, proposer=Address(b"\x09" * 20), accounts={Address(b"\x01" * 20): 5})


def contents(path: Path) -> list[Content]:
    with frames_of(path) as reader:
        return list(reader.frames())


def write(path: Path, frames: list[Content], height: int) -> None:
    """Write frames as an export would, with right checksums."""
    with path.open("wb") as file:
        writer = FrameWriter(path, file)
        for content in frames:
            writer.write(content)
        writer.end(height)


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """Return an export: a transfer, idle blocks, a block at an odd time, idle blocks."""
    path = tmp_path / "export"
    with LocalChain() as local:
        local.transfer(local.accounts[1], 7, sender=local.accounts[0])
        local.mine(3)
        local.chain.build(timestamp_ms=local.chain.head.header.timestamp_ms + 17)
        local.mine(2)
        export_chain(local.chain, path)
    return path


@pytest.mark.spec("F-83")
@pytest.mark.parametrize("seed", range(6))
def test_chain_comes_back_when_exported_and_imported(tmp_path: Path, seed: int) -> None:
    """Random histories: every block with its receipts and events, the state, and the same file again."""
    random_history = history(seeded(seed))
    session = Session(random_history)
    session.play(random_history.blocks)
    heard: list[int] = []
    summary = export_chain(session.chain, tmp_path / "one", lambda block: heard.append(block.height))
    assert (summary.genesis, summary.height) == (session.chain.genesis, session.chain.height)
    assert summary == check_export(tmp_path / "one")
    imported = import_chain(
        tmp_path / "one", on_block=lambda block: heard.append(block.height), engine=session.chain.engine
    )
    assert heard == 2 * list(range(1, summary.height + 1))
    assert list(imported.blocks) == list(session.chain.blocks)
    assert imported.state_root == session.chain.state_root
    imported.check_invariants()
    export_chain(imported, tmp_path / "two")
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()


def test_export_is_the_same_when_idle_blocks_were_built_one_by_one(tmp_path: Path) -> None:
    """What is in the file follows from the blocks, not from how they were made or where they lie."""
    fast, slow = Chain(GENESIS), Chain(GENESIS)
    list(fast.advance_to(1_100))
    for _ in range(1_100):
        slow.build()
    for name, chain in (("fast", fast), ("slow", slow)):
        export_chain(chain, tmp_path / name)
    assert (tmp_path / "fast").read_bytes() == (tmp_path / "slow").read_bytes()
    kinds = [type(content) for content in contents(tmp_path / "fast")]
    assert kinds == [GenesisContent, IdleContent, EndContent]
    assert import_chain(tmp_path / "fast").head == slow.head


def test_times_come_back_when_they_were_given(exported: Path) -> None:
    """A block at its own time is no idle one."""
    kinds = [type(content) for content in contents(exported)]
    assert kinds == [GenesisContent, BlockContent, IdleContent, BlockContent, IdleContent, EndContent]
    chain = import_chain(exported)
    times = [block.header.timestamp_ms - chain.blocks[0].header.timestamp_ms for block in chain.blocks]
    assert times == [0, 1_000, 2_000, 3_000, 4_000, 4_017, 5_017, 6_017]


def test_export_is_refused_or_the_same_when_damaged(exported: Path) -> None:
    """A hundred flipped bits and a hundred cuts, anywhere: each refused with the file's name."""
    octets, dice = exported.read_bytes(), Random(5)
    damaged = []
    for _ in range(100):
        at = dice.randrange(len(octets))
        damaged.append(octets[:at] + bytes((octets[at] ^ 1 << dice.randrange(8),)) + octets[at + 1 :])
        damaged.append(octets[: dice.randrange(len(octets))])
    for variant in damaged:
        exported.write_bytes(variant)
        with pytest.raises(StorageError) as caught:
            import_chain(exported)
        assert caught.value.path == str(exported)


@pytest.mark.parametrize(
    ("octets", "words"),
    [
        (b"", "is not an export of a chain"),
        (b"TRAILBOSS", "is not an export of a chain"),
        (b"SQLite format 3\x00 and more of it", "is not an export of a chain"),
        (MAGIC, "has export format 0, and this program reads format 3"),
        (MAGIC + b"\x00\x01", "has export format 1, and this program reads format 3"),
        (MAGIC + b"\x00\x03", "ends within the frame at offset 18"),
        (MAGIC + b"\x00\x03\xff\xff\xff\xff", "ends within the frame at offset 18"),
        (MAGIC + b"\x00\x03" + bytes(8), "the frame at offset 18 is damaged: it does not have the checksum"),
    ],
)
def test_file_is_refused_when_it_is_no_export(tmp_path: Path, octets: bytes, words: str) -> None:
    """Foreign, of another format, or cut off: with what it is and what to do."""
    path = tmp_path / "file"
    path.write_bytes(octets)
    with pytest.raises(StorageError, match=words) as caught:
        check_export(path)
    assert caught.value.fix


def test_file_is_refused_when_it_is_missing_or_a_directory(tmp_path: Path) -> None:
    """The system's own words, as a refusal."""
    for path, words in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(StorageError, match=words):
            check_export(path)


def test_export_is_refused_when_its_frames_make_no_chain(exported: Path) -> None:
    """Right checksums around wrong contents."""
    genesis, block, idle, odd, *_ = contents(exported)
    assert isinstance(genesis, GenesisContent)
    unknown = encode_genesis(Genesis(chain_id=1, preset="lunar", proposer=GENESIS.proposer))
    cases = [
        ([block], 1, "it should hold the genesis"),
        ([GenesisContent(b"\xa0", b"", b"")], 0, "an encoded genesis is a map of exactly: chain_id, preset"),
        ([GenesisContent(unknown, b"", b"")], 0, "unknown preset 'lunar'"),
        ([genesis, genesis], 0, "it cannot follow block 0"),
        ([genesis, block, block], 1, "it cannot follow block 1"),
        ([genesis, odd], 5, "it cannot follow block 0"),
        ([genesis, idle, idle], 4, "it cannot follow block 4"),
        ([genesis, block], 2, "it cannot follow block 1"),
    ]
    for frames, height, words in cases:
        write(exported, frames, height)
        with pytest.raises(StorageError, match=r"the frame at offset \d+ is damaged: ") as caught:
            import_chain(exported)
        assert words in caught.value.what


def test_export_is_refused_when_something_follows_its_end_or_the_digest_is_another(exported: Path) -> None:
    """The end is the end, and it speaks for all that came before."""
    *frames, _ = contents(exported)
    exported.write_bytes(exported.read_bytes() + b"\x00")
    with pytest.raises(StorageError, match="1 bytes come after it, and it is the end"):
        check_export(exported)
    write(exported, [*frames, EndContent(7, bytes(32))], 7)
    with pytest.raises(StorageError, match="the bytes before it do not have the digest that it names"):
        check_export(exported)


def test_import_is_refused_when_a_block_does_not_come_out_again(exported: Path) -> None:
    """The first height at which the file says something else than the rules, with both roots or hashes."""
    genesis, block, idle, odd, last, _ = contents(exported)
    assert isinstance(genesis, GenesisContent)
    assert isinstance(block, BlockContent)
    assert isinstance(idle, IdleContent)
    transfer = block.transactions
    root, zeros = f"0x{block.state_root.hex()}", bytes(32)
    later = BlockContent(2, block.timestamp_ms, (), zeros, zeros)
    earlier = BlockContent(2, 0, (), zeros, zeros)
    again = BlockContent(2, block.timestamp_ms + 1_000, transfer, zeros, zeros)
    foreign = BlockContent(1, block.timestamp_ms, (b"\x07",), zeros, zeros)
    cases = [
        ([GenesisContent(genesis.genesis, zeros, zeros)], 0, "block 0 at offset 18 .* and 0x0000"),
        ([GenesisContent(genesis.genesis, zeros, genesis.state_root)], 0, "block 0 at offset 18 .*: its hash is 0x"),
        (
            [genesis, BlockContent(1, block.timestamp_ms, transfer, block.hash, zeros)],
            1,
            f"block 1 .*: the state root is {root}, and 0x00",
        ),
        (
            [genesis, BlockContent(1, block.timestamp_ms + 1, transfer, block.hash, block.state_root)],
            1,
            "block 1 .*: its hash is",
        ),
        ([genesis, block, later], 2, "block 2 .*: the state root is "),
        ([genesis, block, earlier], 2, "block 2 .*: it is refused: timestamp 0 ms lies before the parent's"),
        ([genesis, block, again], 2, "block 2 .*: transaction 0x.* is refused: .*nonce"),
        ([genesis, foreign], 1, "block 1 .*: it is refused: .*a transaction starts with version 2, not 7"),
        ([genesis, block, IdleContent(4, zeros)], 4, f"block 4 .*: its hash is .*, and 0x{zeros.hex()} is recorded"),
        ([genesis, block, IdleContent(5, idle.hash), last], 7, "block 5 .*: its hash is "),
        ([genesis, block, idle, odd, IdleContent(7, zeros)], 7, "block 7 .*: its hash is "),
    ]
    for frames, height, words in cases:
        write(exported, frames, height)
        assert check_export(exported).height == height
        with pytest.raises(StorageError, match=words):
            import_chain(exported)


def test_idle_run_is_refused_when_a_timer_would_fire_in_it(tmp_path: Path) -> None:
    """The first block of the run that is not idle is named, though only the last hash of a run is in the file."""
    path = tmp_path / "export"
    source = tmp_path / "clock.py"
    source.write_text(
        "def init(payload):\n    pvm_host.schedule_timer(5, b'')\n\ndef handle_timer(payload):\n    pass\n"
    )
    with LocalChain() as local:
        local.deploy(source, sender=local.accounts[0], value=10**12)
        local.mine(8)
        export_chain(local.chain, path)
    genesis, deployed, *_ = contents(path)
    write(path, [genesis, deployed, IdleContent(9, bytes(32))], 9)
    with pytest.raises(StorageError, match=r"block 5 at offset .*: the state root is"):
        import_chain(path)


def test_file_that_was_there_stays_when_the_export_fails(exported: Path) -> None:
    """Nothing half written, under no name."""
    before = exported.read_bytes()
    chain = import_chain(exported)

    def stop(block: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_chain(chain, exported, stop)
    assert exported.read_bytes() == before
    assert list(exported.parent.iterdir()) == [exported]


def test_export_is_refused_when_the_file_cannot_be_written(tmp_path: Path) -> None:
    """No such directory; a name that is a directory's."""
    chain = Chain(GENESIS)
    with pytest.raises(StorageError, match="cannot be written: No such file or directory"):
        export_chain(chain, tmp_path / "none" / "export")
    (tmp_path / "taken" / "by").mkdir(parents=True)
    with pytest.raises(StorageError, match="cannot be written"):
        export_chain(chain, tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_export_is_refused_when_the_name_is_no_files(tmp_path: Path) -> None:
    """A pipe or a device is not replaced by a file; nor is a link, which goes on leading where it did."""
    chain = Chain(GENESIS)
    pipe, link, other = tmp_path / "pipe", tmp_path / "link", tmp_path / "other"
    os.mkfifo(pipe)
    link.symlink_to(other)
    with pytest.raises(StorageError, match="cannot be written: it is no regular file"):
        export_chain(chain, pipe)
    assert pipe.is_fifo()
    for _ in range(2):
        export_chain(chain, link)
        assert link.is_symlink()
        assert check_export(other).height == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "other", "pipe"]


def test_import_makes_what_is_above_the_directory_and_follows_no_link(tmp_path: Path, exported: Path) -> None:
    """As `trailboss init` does; a link that leads nowhere counts as something that is there."""
    import_chain(exported, tmp_path / "new" / "deeper" / "chain").close()
    assert Chain.open(tmp_path / "new" / "deeper" / "chain").height == check_export(exported).height
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StorageError, match="is there already"):
        import_chain(exported, tmp_path / "link")


def test_transactions_stand_in_the_file_as_their_wire_bytes(tmp_path: Path) -> None:
    """Anybody can read them with the public codec."""
    with LocalChain() as local:
        local.transfer(local.accounts[1], 7, sender=local.accounts[0])
        export_chain(local.chain, tmp_path / "export")
        (transaction,) = local.chain.head.transactions
    assert encode_transaction(transaction) in (tmp_path / "export").read_bytes()
