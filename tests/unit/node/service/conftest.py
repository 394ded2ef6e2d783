"""A node on a chain in memory, on the event loop of the test that asks for it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tests.unit.node.service.world import PATIENCE, Notes
from trailboss.chain import Chain
from trailboss.chain.opening import GenesisOptions, new_genesis
from trailboss.mempool import Mempool
from trailboss.node.block_builder import Clocks
from trailboss.node.options import MANUAL, NodeOptions
from trailboss.node.service import Node

Story = Callable[[Node], Awaitable[None]]


@asynccontextmanager
async def running_node(
    options: NodeOptions, now: Callable[[], int] = lambda: 0, **genesis: object
) -> AsyncIterator[Node]:
    """Run a node for as long as the block lasts, by a clock that counts nanoseconds."""
    chain = Chain(new_genesis(GenesisOptions(**genesis)))
    node = Node(chain, Mempool(), Notes(), options, Clocks(now, lambda: 0))
    node.start()
    try:
        yield node
    finally:
        await node.close()


@pytest.fixture
def play() -> Callable[..., None]:
    """Return a function that runs a story on a node of a pace: manual, unless told otherwise."""

    def run(story: Story, options: NodeOptions | None = None, **genesis: object) -> None:
        async def whole() -> None:
            async with (
                asyncio.timeout(PATIENCE),
                running_node(options or NodeOptions(pace=MANUAL), **genesis) as node,
            ):
                await story(node)

        asyncio.run(whole())

    return run
