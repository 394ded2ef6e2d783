"""Steps of the chain, one at a time: what is built, what is made known, and in what order."""

import pytest

from tests.unit.node.service.world import MILLISECOND, World, gift, make_world, person, take_time
from trailboss.chain.development import DEPLOYER, development_account
from trailboss.chain.drafts import Terms, draft_transaction
from trailboss.model.transactions import SetBalance
from trailboss.node.block_builder import BATCH_BLOCKS, StoppingError
from trailboss.node.options import MANUAL, Clock, NodeOptions
from trailboss.primitives.errors import Rejection, RejectionReason


@pytest.fixture
def world() -> World:
    """Return a new chain with a builder."""
    return make_world()


def test_index_has_a_block_before_the_mempool_lets_go_of_it_when_it_is_built(world: World) -> None:
    """Whoever misses a transaction in the mempool finds it in the view."""
    world.send(gift())
    settle, seen = world.mempool.settle, []

    def watch(view, included, refused, returned=()):
        seen.append((world.index.height, world.builder.view.height, len(world.mempool)))
        return settle(view, included, refused, returned)

    world.mempool.settle = watch
    world.builder.build()
    assert seen == [(1, 1, 1)]


def test_no_block_is_built_when_it_is_optional_and_nothing_comes_into_it(world: World) -> None:
    """Nothing waits, or nothing that can run: nobody hears of anything."""
    assert not world.builder.build(is_optional=True)
    world.send(gift(), ahead=1)
    assert not world.builder.build(is_optional=True)
    assert world.chain.height == 0
    assert world.announced == []
    assert len(world.mempool) == 1


@pytest.mark.parametrize(("before", "taken"), [(0, 3), (1_000, 1)])
def test_rest_waits_in_order_when_the_time_of_a_block_is_used_up(world: World, before: int, taken: int) -> None:
    """Each transaction takes 100 of 300 ms; one is taken even if what came before, such as fires, used up all."""
    sent = [world.send(gift(9), sender=index) for index in range(5)]
    take_time(world, 100, before=before)
    assert world.builder.build(late=0, within=300 * MILLISECOND)
    assert world.builder.build()
    first, second = world.announced
    hashes = [[receipt.origin_hash for receipt in each.blocks[0].receipts] for each in (first, second)]
    assert hashes == [sent[:taken], sent[taken:]]
    assert (first.left, second.left) == (5 - taken, 0)
    assert (first.refused, second.refused) == ({}, {})
    assert len(world.mempool) == 0


def test_refusal_is_announced_when_a_block_refuses_for_good(world: World) -> None:
    """What waits was admitted while its sender had money, and something in the block before it has taken that."""
    poor, good = world.send(gift()), world.send(gift(), sender=3)
    governor = development_account(DEPLOYER)
    tip = Terms(max_priority_fee_per_cycle=100)
    world.add(draft_transaction(world.builder.view, SetBalance(person(0), 5), governor.private_key, terms=tip))
    assert world.builder.build()
    [published] = world.announced
    assert published.blocks[0].receipts[1].origin_hash == good
    assert [(each, rejection.reason) for each, rejection in published.refused.items()] == [
        (poor, RejectionReason.INSUFFICIENT_GAS_BALANCE)
    ]
    assert world.mempool.refusal(poor) is published.refused[poor]
    assert len(world.mempool) == 0


def test_no_block_is_built_when_it_is_optional_and_all_are_refused(world: World) -> None:
    """The refusals are announced all the same."""
    world.send(gift())
    # Behind the mempool's back.
    world.chain.build([world.draft(gift(), ahead=-1)])
    world.index.height = 1
    assert not world.builder.build(is_optional=True)
    assert world.chain.height == 1
    [published] = world.announced
    assert (published.blocks, len(published.refused)) == ((), 1)


def test_signatures_are_not_looked_at_again_when_a_block_is_built(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is in the mempool has had its own checked; that is half of a transfer's work."""

    def refuse(_: object) -> None:
        raise AssertionError

    world.send(gift())
    monkeypatch.setattr("trailboss.execution.development.check_signature", refuse)
    world.builder.build()
    assert len(world.announced[0].blocks[0].transactions) == 1


def test_block_timestamps_are_an_interval_apart_when_the_clock_is_the_chains(world: World) -> None:
    """The wall clock has no part in it."""
    start = world.chain.head.header.timestamp_ms
    world.wall = (start + 10**9) * MILLISECOND
    world.builder.build()
    world.builder.advance(3)
    assert [block.header.timestamp_ms - start for block in world.chain.blocks] == [0, 1_000, 2_000, 3_000]


def test_block_timestamps_are_the_machines_when_the_clock_is_the_walls() -> None:
    """Never before the parent's: time that the chain was sent ahead by creeps on until the machine has caught up."""
    world = make_world(NodeOptions(pace=MANUAL, clock=Clock.WALL))
    start = world.chain.head.header.timestamp_ms
    world.wall = (start + 5_000) * MILLISECOND
    world.builder.build()
    world.wall += 1_234 * MILLISECOND
    world.builder.build()
    world.builder.advance(12)
    world.builder.build()
    assert [world.chain.blocks[height].header.timestamp_ms - start for height in (1, 2, 12, 13)] == [
        5_000, 6_234, 16_234, 16_235,
    ]  # fmt: skip


def test_advance_builds_what_waits_first_and_then_in_batches(world: World) -> None:
    """One block for the transactions, the rest a batch at a time; the index hears of every one of them."""
    world.send(gift())
    world.send(gift(2), sender=3)
    end = 2 * BATCH_BLOCKS + 10
    world.builder.advance(end)
    assert [len(published.blocks) for published in world.announced] == [1, BATCH_BLOCKS, BATCH_BLOCKS, 9]
    assert len(world.announced[0].blocks[0].transactions) == 2
    assert world.index.height == world.chain.height == end


def test_advance_stops_between_batches_when_the_node_stops(world: World) -> None:
    """What is built stays, and is known."""

    def stop(_: object) -> None:
        world.is_stopping = True

    world = make_world(announce=stop)
    with pytest.raises(StoppingError, match=rf"stops at height {BATCH_BLOCKS}, before 100000"):
        world.builder.advance(100_000)
    assert world.index.height == world.chain.height == BATCH_BLOCKS


def test_revert_restores_chain_and_mempool_when_both_have_gone_on(world: World) -> None:
    """Balances, height, root, what waited then, and nothing of what came since."""
    included, kept = world.send(gift()), world.send(gift(2), sender=3, ahead=1)
    root, balance = world.chain.state_root, world.balance(1)
    mark = world.builder.mark()
    world.builder.build()
    late = world.send(gift(), sender=4)
    world.builder.revert(mark)
    assert (world.chain.state_root, world.balance(1), world.chain.height) == (root, balance, 0)
    assert {pooled.hash for pooled in world.mempool.pooled()} == {included, kept}
    published = world.announced[-1]
    assert (published.reorg_from, published.blocks) == (0, ())
    assert published.refused[late].reason is RejectionReason.WITHDRAWN
    assert world.index.told[-2:] == [("revert", 0), ("apply", [])]
    world.builder.build()
    assert world.balance(1) == balance + 7


def test_revert_is_refused_when_another_branch_holds_the_height(world: World) -> None:
    """A snapshot of a block that is gone."""
    world.builder.advance(3)
    mark = world.builder.mark()
    world.builder.reorg(1)
    world.send(gift())
    world.builder.build()
    with pytest.raises(Rejection, match="does not hold block"):
        world.builder.revert(mark)
    assert world.chain.height == 3
