"""One reader of the feed for all clients: it sets a flag for each page in the foreground, and waits for none."""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trailboss.node.feed import Feed


class Wakes:
    """Flags that new blocks set. While nobody has one, the feed is not read."""

    def __init__(self, feed: "Feed") -> None:
        self._feed = feed
        self._flags: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """Return how many wait for blocks."""
        return len(self._flags)

    def add(self, flag: asyncio.Event) -> None:
        """Set a flag with every new block from now on."""
        self._flags.add(flag)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow())

    def remove(self, flag: asyncio.Event) -> None:
        """Leave a flag alone."""
        self._flags.discard(flag)
        if not self._flags and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self) -> None:
        async with self._feed.subscribe() as steps:
            async for _ in steps:
                for flag in self._flags:
                    flag.set()
        # The feed has ended: the node stops, and every page says so once.
        for flag in self._flags:
            flag.set()
