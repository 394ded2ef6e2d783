"""A published view: blocks that are there and blocks that are gone, what it costs, and counts over its calendar."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trailboss.chain import Chain, ChainView
from trailboss.chain.history import PublishedBlocks
from trailboss.model.blocks import Block
from trailboss.primitives.errors import Rejection, StorageError, TrailbossError, ViewGoneError
from trailboss.primitives.units import U64_MAX
from trailboss.rehearsal.rehearse import rehearse_activation
from trailboss.rehearsal.run import fork_of
from trailboss.state.store import Store
from trailboss.testing import LocalChain

CBY = 10**9
BEATS = """
import pvm_host

def init(payload):
    for height in (3, 3, 70, 9_000):
        pvm_host.schedule_timer(pvm_host.block_height() + height, b"", gas_limit=50_000)

def handle_timer(payload):
    pvm_host.set_state(b"beats", payload + b"x")
"""


@pytest.fixture(params=["memory", "disk"])
def local(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalChain]:
    """Yield a chain at height 8 with two fires behind it and two timers ahead."""
    with LocalChain(data_dir=tmp_path / "chain" if request.param == "disk" else None) as local:
        local.deploy(BEATS, sender=local.accounts[0], value=50 * CBY)
        local.mine(7)
        yield local


def other_branch(chain: Chain, height: int) -> None:
    """Go back to a height and build another block after it, and five more."""
    chain.reorg(chain.height - height)
    chain.build(timestamp_ms=chain.head.header.timestamp_ms + 1)
    for _ in chain.advance_to(height + 6):
        pass


def test_view_has_all_its_blocks_when_the_chain_goes_back_to_above_it(local: LocalChain) -> None:
    """To go back to the view's own head takes nothing from it either."""
    view, blocks = local.chain.publish(), list(local.chain.blocks)
    local.mine(9)
    other_branch(local.chain, 10)
    other_branch(local.chain, 8)
    assert list(view.blocks) == blocks


LOOKS: tuple[Callable[[ChainView], object], ...] = (
    lambda view: view.blocks[6],
    lambda view: view.decisions(6),
    lambda view: view.blocks[4:8],
    lambda view: view.blocks[::2],
    lambda view: list(view.blocks),
    lambda view: view.blocks.record_at(7),
    lambda view: list(view.blocks.records()),
    lambda view: list(view.blocks.eventful(3)),
)


def test_view_says_that_blocks_are_gone_when_the_chain_went_back_below_them(local: LocalChain) -> None:
    """Those above the point; what it has of the ones below, of its head and of the state it keeps."""
    view, blocks, accounts = local.chain.publish(), list(local.chain.blocks), list(local.chain.accounts())
    other_branch(local.chain, 5)
    for look in LOOKS:
        with pytest.raises(ViewGoneError, match="back to block 5") as gone:
            look(view)
        assert (gone.value.height, gone.value.lowest, isinstance(gone.value, TrailbossError)) == (8, 5, True)
    assert (view.blocks[:6], view.blocks[5], view.blocks[8]) == (blocks[:6], blocks[5], blocks[8])
    assert (list(view.accounts()), view.state_root) == (accounts, blocks[8].header.state_root)
    assert local.chain.publish().blocks[:6] == blocks[:6]


def test_view_says_that_blocks_are_gone_when_the_chain_goes_back_amid_a_look(local: LocalChain) -> None:
    """What was yielded before is right; nothing of the other branch follows it."""
    view, blocks = local.chain.publish(), list(local.chain.blocks)
    run = view.blocks.since(0)
    seen = [next(run) for _ in range(3)]
    other_branch(local.chain, 1)
    with pytest.raises(ViewGoneError):
        seen.extend(run)
    assert seen == blocks[: len(seen)]


def test_view_says_that_a_block_is_gone_when_the_list_gets_shorter_amid_a_search() -> None:
    """As if the chain went back between two instructions of a reader."""
    with LocalChain() as local:
        for _ in range(6):
            local.transfer(local.accounts[1], 1, sender=local.accounts[0])
        view = local.chain.publish()
        archive = local.chain.blocks.archive
        heights, records = archive._heights, archive._records

        class Shrinking(list[Block]):
            def __getitem__(self, index: int) -> Block:
                archive._records = records
                if local.chain.height == 6:
                    local.chain.reorg(5)
                return records[index]

        archive._records = Shrinking(records)
        with pytest.raises(ViewGoneError, match="back to block 1"):
            view.blocks[5]
        assert len(heights) == len(records) == 2


def test_nothing_is_made_for_views_when_a_chain_never_publishes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No point, no change, no sequence of blocks: a local chain works as it did before there were views."""
    made = []
    for owner, name in ((Store, "view"), (PublishedBlocks, "__init__"), (Chain, "publish")):
        monkeypatch.setattr(owner, name, lambda *_, name=name: made.append(name))
    with LocalChain(data_dir=tmp_path / "chain") as local:
        local.deploy(BEATS, sender=local.accounts[0], value=50 * CBY)
        mark = local.snapshot()
        local.advance_to(200)
        local.revert(mark)
        local.chain.check_invariants()
        assert (made, local.chain.store._trail, local.chain.store._tables._shared) == ([], None, None)


@pytest.mark.parametrize("bounds", [[-1, 4], [4, 3], [0, U64_MAX + 2]])
def test_counts_are_refused_when_heights_do_not_ascend(local: LocalChain, bounds: list[int]) -> None:
    """Or are none."""
    with pytest.raises(Rejection, match=r"must ascend within 0\.\.=18446744073709551616"):
        local.chain.timer_counts(bounds)


def test_fork_of_a_view_is_that_of_the_chain_when_the_chain_has_gone_on(local: LocalChain) -> None:
    """It has an engine of its own, for the chain's may be at work in another thread."""
    view = local.chain.publish()
    told = rehearse_activation(local.chain, 20, blocks=60)
    local.mine(20)
    assert rehearse_activation(view, 20, blocks=60) == told
    fork = fork_of(view)
    for _ in fork.advance_to(28):
        pass
    assert (fork.state_root, list(fork.blocks)) == (local.state_root, list(local.chain.blocks))
    assert fork.engine is not local.chain.engine
    fork.close()


def test_view_reads_its_blocks_no_more_when_the_chain_on_disk_is_closed(tmp_path: Path) -> None:
    """It says so; what it holds itself is still there."""
    with LocalChain(data_dir=tmp_path / "chain") as local:
        local.mine(3)
        view = local.chain.publish()
    assert view.head.height == 3
    with pytest.raises(StorageError, match="the chain is closed"):
        view.blocks[1]
    with pytest.raises(StorageError, match="takes no more blocks: it is closed"):
        local.chain.publish()
