"""A node on a chain in memory, on the event loop of the test that asks for it."""

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import wraps

from tests.event_loop import Test, on_loop
from tests.unit.node.service.world import Notes
from trailboss.chain import Chain
from trailboss.chain.opening import GenesisOptions, new_genesis
from trailboss.mempool import Mempool
from trailboss.node.block_builder import Clocks
from trailboss.node.options import MANUAL, NodeOptions
from trailboss.node.service import Node


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


def on_node(options: NodeOptions | None = None) -> Callable[[Test], Callable[..., None]]:
    """Have a test run on a node of a pace, its first argument: manual, unless told otherwise."""

    def decorate(test: Test) -> Callable[..., None]:
        @wraps(test)
        async def whole(**fixtures: object) -> None:
            async with running_node(options or NodeOptions(pace=MANUAL)) as node:
                await test(node, **fixtures)

        signature = inspect.signature(test)
        run = on_loop(whole)
        run.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
        return run

    return decorate
