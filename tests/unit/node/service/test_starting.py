"""Starting a node: what is opened, what is taken up again, and what is closed when it cannot be."""

import asyncio
import threading
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.node.service.world import AT_ONCE, PATIENCE, TIGHT, gift
from trailboss.chain import Chain
from trailboss.chain.development import account_name, development_account
from trailboss.chain.drafts import draft_transaction
from trailboss.chain.opening import GenesisOptions, create_temporary, temporary_directory
from trailboss.chain.replay import verify_chain
from trailboss.codec.wire import encode_transaction
from trailboss.mempool import Journal
from trailboss.node.options import MANUAL, NodeOptions
from trailboss.node.service import Node
from trailboss.node.startup import INDEX_FILE, JOURNAL_FILE, open_node, progress_line
from trailboss.primitives.errors import ConfigurationError, StorageError
from trailboss.testing import LocalChain
from trailboss.vm.native import NativeEngine
from trailboss.vm.sdk_source import load_sdk_module

CLOCK = Path(__file__).parents[4] / "examples" / "actors" / "clock.py"


class Log:
    """A logger that remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def __call__(self) -> "Log":
        """Be the node's logger."""
        return self

    def info(self, event: str, **facts: Any) -> None:
        """Remember a line."""
        self.lines.append(("info", event, facts))

    def warning(self, event: str, **facts: Any) -> None:
        """Remember a warning."""
        self.lines.append(("warning", event, facts))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Return what remembers all that is logged while a node starts."""
    found = Log()
    monkeypatch.setattr("trailboss.node.startup.log", found)
    return found


def live(directory: Path, transactions: int = 0, blocks: int = 0) -> Node:
    """Let a node in a directory take transactions and build blocks, and close it."""

    async def story() -> Node:
        node = open_node(NodeOptions(directory=directory, pace=MANUAL))
        node.start()
        try:
            async with asyncio.timeout(PATIENCE):
                key = development_account(account_name(0)).private_key
                drafts = [
                    draft_transaction(node.view, gift(), key, terms=TIGHT, waiting=n) for n in range(transactions)
                ]
                assert all(verdict.rejection is None for verdict in await node.submit(drafts))
                if blocks:
                    await node.development.mine(blocks)
        finally:
            await node.close()
        return node

    return asyncio.run(story())


def test_node_takes_up_what_waited_when_it_is_started_again(tmp_path: Path, log: Log) -> None:
    """And says so; what is in a block by then does not wait any more."""
    directory = tmp_path / "chain"
    live(directory, transactions=3)
    assert log.lines == []
    assert len(live(directory, blocks=2).mempool) == 0
    [(_, event, facts)] = log.lines
    assert "transactions wait" in event
    assert facts == {"transactions": 3}
    log.lines.clear()
    node = live(directory)
    assert log.lines == []
    assert node.view.height == 2
    assert node.index.height == 2


def test_damage_at_the_end_of_the_journal_is_told_when_it_is_cut_off(tmp_path: Path, log: Log) -> None:
    """What stands before it waits."""
    directory = tmp_path / "chain"
    live(directory, transactions=2)
    with (directory / JOURNAL_FILE).open("ab") as file:
        file.write(b"half a record")
    node = live(directory)
    assert len(node.mempool) == 2
    [(level, event, facts), _] = log.lines
    assert level == "warning"
    assert "damaged" in event
    assert facts["what"]


def test_transaction_is_dropped_when_the_journal_holds_it_with_a_false_signature(tmp_path: Path, log: Log) -> None:
    """The file may have come from anywhere, and blocks take what waits for signed."""
    directory = tmp_path / "chain"
    live(directory)
    with Chain.open(directory) as chain:
        accounts = [development_account(account_name(index)) for index in range(2)]
        good, other = (draft_transaction(chain, gift(), each.private_key, terms=TIGHT) for each in accounts)
        journal = Journal.open(directory / JOURNAL_FILE, chain.genesis.instance_id())
        for transaction in (good, replace(other, signature=good.signature)):
            journal.append(0, encode_transaction(transaction))
        journal.close()
    node = live(directory, blocks=1)
    assert [transaction.sender for transaction in node.view.head.transactions] == [accounts[0].address]
    [(level, event, facts), (_, _, waiting)] = log.lines
    assert (level, facts, waiting) == ("warning", {"transactions": 1}, {"transactions": 1})
    assert "false signatures" in event
    with Chain.open(directory) as chain:
        assert verify_chain(chain).ok


def test_chain_is_released_when_something_else_cannot_be_opened(tmp_path: Path) -> None:
    """The next start finds nobody in its way."""
    directory = tmp_path / "chain"
    live(directory, blocks=1)
    (directory / JOURNAL_FILE).write_bytes(b"something else entirely, and long enough to be looked at closely")
    with pytest.raises(StorageError, match=JOURNAL_FILE):
        open_node(NodeOptions(directory=directory))
    Chain.open(directory).close()
    (directory / JOURNAL_FILE).unlink()
    (directory / INDEX_FILE).unlink()
    (directory / INDEX_FILE).mkdir()
    with pytest.raises(StorageError, match=INDEX_FILE):
        open_node(NodeOptions(directory=directory))
    Chain.open(directory).close()
    (directory / INDEX_FILE).rmdir()
    assert live(directory).view.height == 1


def test_node_needs_a_directory_when_it_is_no_development_node() -> None:
    """It makes no chain."""
    with pytest.raises(ConfigurationError, match="name its directory"):
        open_node(NodeOptions(development=False))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of one's own for all that is temporary."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def test_chain_is_in_a_temporary_directory_when_none_is_named(temporary: Path) -> None:
    """Blocks, receipts and the index are not in memory, and nothing of them is left when the node has ended."""

    async def story() -> None:
        node = open_node(NodeOptions(pace=MANUAL))
        node.start()
        try:
            async with asyncio.timeout(PATIENCE):
                await node.development.mine(3)
            [directory] = temporary.iterdir()
            assert {"chain.mdb", INDEX_FILE} <= {path.name for path in directory.iterdir()}
            assert JOURNAL_FILE not in {path.name for path in directory.iterdir()}
        finally:
            await node.close()

    asyncio.run(story())
    assert list(temporary.iterdir()) == []


def test_temporary_directory_is_removed_by_the_next_node_when_its_own_was_killed(temporary: Path) -> None:
    """One that a process has open stays, and so does what is no chain's."""
    with temporary_directory() as used, create_temporary(Path(used), GenesisOptions()):
        copytree(used, f"{used}-left")
        Path(f"{used}-other").mkdir()
        with temporary_directory() as new:
            assert set(map(str, temporary.iterdir())) == {used, f"{used}-other", new}
    assert set(map(str, temporary.iterdir())) == {f"{used}-other"}


def test_sdk_is_loaded_when_a_node_starts(tmp_path: Path) -> None:
    """The first block with an SDK actor takes no longer than the next."""
    directory = tmp_path / "chain"
    with LocalChain(data_dir=directory) as local:
        local.deploy(CLOCK, sender=local.accounts[0], value=20 * 10**9)
    load_sdk_module.cache_clear()

    async def story() -> None:
        node = open_node(NodeOptions(directory=directory, pace=MANUAL))
        node.start()
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*node._tasks)
                loaded = load_sdk_module.cache_info().misses
                assert loaded
                await node.development.mine(6)
        finally:
            await node.close()
        assert node.view.totals().fired == 1
        assert load_sdk_module.cache_info().misses == loaded

    asyncio.run(story())


@pytest.fixture
def begun(tmp_path: Path) -> NodeOptions:
    """Return the options of a node whose chain has a block."""
    with LocalChain(data_dir=tmp_path / "chain") as local:
        local.mine()
    return NodeOptions(directory=tmp_path / "chain", pace=AT_ONCE)


def test_block_of_transfers_does_not_wait_for_the_engine(begun: NodeOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first block after the start comes at once."""
    released = threading.Event()
    monkeypatch.setattr(NativeEngine, "prepare", lambda _: released.wait())

    async def story() -> None:
        node = open_node(begun)
        node.start()
        try:
            async with asyncio.timeout(PATIENCE):
                key = development_account(account_name(0)).private_key
                [verdict] = await node.submit([draft_transaction(node.view, gift(), key, terms=TIGHT)])
                outcome = await node.outcome(verdict.hash, PATIENCE * 1_000)
            assert outcome is not None
            assert outcome.place is not None
        finally:
            released.set()
            await node.close()

    asyncio.run(story())


def test_node_fails_when_its_engine_cannot_be_loaded(begun: NodeOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops, and says why, rather than refuse every program."""

    def prepare(_: NativeEngine) -> None:
        raise ConfigurationError("the image is damaged")

    monkeypatch.setattr(NativeEngine, "prepare", prepare)

    async def story() -> None:
        node = open_node(begun)
        node.start()
        try:
            async with asyncio.timeout(PATIENCE):
                await node.ended.wait()
        finally:
            await node.close()
        assert node.health.reason == "the image is damaged"

    asyncio.run(story())


def test_progress_is_told_every_few_seconds(log: Log) -> None:
    """And not at all when it does not take so long."""
    now = 100.0
    tell = progress_line(lambda: now)
    for height, seconds in ((10, 0.5), (20, 1.0), (30, 0.6), (40, 1.0), (50, 5.0)):
        now += seconds
        tell(height, 60)
    assert [facts for _, _, facts in log.lines] == [{"height": 30, "of": 60}, {"height": 50, "of": 60}]
