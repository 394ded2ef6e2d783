"""The feed: everybody hears every step, in order, or is ended with a reason; and nobody is waited for."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.event_loop import on_loop
from tests.unit.api.stream.broadcasts import SPEAKER, Broadcasts
from trailboss.api.sse import EncodedBlock
from trailboss.node.block_builder import Published
from trailboss.node.feed import FELL_BEHIND, REMEMBERED, STEP_OCTETS, Feed, Subscription, size_of, tag_of


@pytest.fixture(scope="module")
def steps() -> Iterator[list[Published]]:
    """Return steps of a chain, one block each."""
    with Broadcasts() as world:
        found = []
        for _ in range(6):
            world.mine()
            found.append(world.publish())
        yield found


def room_of(published: Published) -> int:
    """Return what a step takes of a subscription's room."""
    return STEP_OCTETS + sum(map(size_of, published.blocks))


async def heard(subscription: Subscription) -> list[Published]:
    """Return all that a subscription yields up to its end."""
    return [published async for published in subscription]


@on_loop
async def test_subscribers_hear_every_step_in_order_when_they_keep_up(steps: list[Published]) -> None:
    """Each gets what is published from its beginning on."""
    feed = Feed(steps[0].view)
    async with feed.subscribe() as first:
        feed.publish(steps[1])
        async with feed.subscribe() as second:
            feed.publish(steps[2])
            feed.close("stopping")
            assert await heard(first) == steps[1:3]
            assert await heard(second) == steps[2:3]
            assert (first.reason, second.reason) == ("stopping", "stopping")
    assert len(feed) == 0


@on_loop
async def test_subscriber_is_ended_when_more_waits_than_may(steps: list[Published]) -> None:
    """It keeps nothing then, and others go on."""
    feed = Feed(steps[0].view)
    room = 2 * room_of(steps[0])
    async with feed.subscribe(room) as slow, feed.subscribe() as other:
        for published in steps[:3]:
            feed.publish(published)
        assert slow.reason == FELL_BEHIND
        assert await heard(slow) == []
        assert len(feed) == 1
        feed.publish(steps[3])
        feed.close("stopping")
        assert await heard(other) == steps[:4]
        assert slow.reason == FELL_BEHIND


@on_loop
async def test_subscription_is_over_when_the_feed_was_closed_before(steps: list[Published]) -> None:
    """It says why."""
    feed = Feed(steps[0].view)
    feed.close("stopping")
    feed.close("again")
    async with feed.subscribe() as subscription:
        assert await heard(subscription) == []
        assert subscription.reason == "stopping"


@on_loop
async def test_end_is_known_when_the_feed_is_closed(steps: list[Published]) -> None:
    """Also to those who are not subscribed; the first reason stays."""
    feed = Feed(steps[0].view)
    waiting = asyncio.create_task(feed.closed())
    await asyncio.sleep(0)
    assert (waiting.done(), feed.reason) == (False, None)
    feed.close("stopping")
    feed.close("again")
    await waiting
    assert feed.reason == "stopping"


def test_size_grows_with_what_is_told_when_blocks_hold_more() -> None:
    """Blocks, events and their data all count, and the estimate is not below what is sent."""
    with Broadcasts() as world:
        local = world.local
        actor = local.deploy(SPEAKER, sender=local.accounts[0])
        for payload in (b"a=1", b"a=1;b=2", b"a=1;b=" + b"x" * 900):
            actor.call("say", payload, sender=local.accounts[0], check=True)
        sizes = [size_of(block) for block in world.chain.blocks[2:]]
        assert sizes == sorted(set(sizes))
        for block in world.chain.blocks:
            assert len(EncodedBlock(block).text()) <= size_of(block)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=25))
def test_fork_is_the_lowest_height_since_when_a_block_was_lost(history: list[tuple[bool, int]]) -> None:
    """Against a slow model that keeps every block with all that became of it."""
    with Broadcasts() as world:
        feed = world.feed
        lost: dict[bytes, int] = {}
        known: dict[int, bytes] = {}
        for grows, amount in history:
            if grows:
                (world.vary if amount % 2 else world.mine)()
            elif 1 <= amount <= world.chain.height:
                world.reorg(amount)
            published = world.publish()
            if published.reorg_from is not None:
                fork = published.reorg_from
                lost = {tag: min(height, fork) for tag, height in lost.items()}
                lost |= {tag: fork for height, tag in known.items() if height > fork}
                known = {height: tag for height, tag in known.items() if height <= fork}
            for block in published.blocks:
                known[block.height] = tag_of(block.hash)
                lost.pop(known[block.height], None)
            for tag in [*lost, *known.values()]:
                assert feed.fork_of(tag) == lost.get(tag)


def test_oldest_blocks_are_forgotten_when_there_are_too_many() -> None:
    """What is remembered is bounded, of the present and of the lost."""
    with Broadcasts() as world:
        world.mine(3)
        early = tag_of(world.chain.head.hash)
        world.publish()
        world.grow(REMEMBERED)
        late = tag_of(world.chain.head.hash)
        world.reorg(world.chain.height - 1)
        world.publish()
        assert world.feed.fork_of(early) is None
        assert world.feed.fork_of(late) == 1
