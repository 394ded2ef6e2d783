"""The feed: every step of the chain to every subscriber, without waiting for any.

It lives on the event loop and is called from nowhere else. What waits for a subscriber is bounded: one that falls
behind is ended with a reason, and the others go on. Decision: D-73.
"""

import asyncio
from collections import deque
from types import TracebackType
from typing import Final, Self

from trailboss.chain.view import ChainView
from trailboss.model.blocks import Block
from trailboss.node.block_builder import Published
from trailboss.primitives.bounded import BoundedDict
from trailboss.views.records import block_events

WAITING_MAX: Final = 4 * 2**20  # bytes that may wait for a subscriber, as `size_of` estimates them
STEP_OCTETS: Final = 256
BLOCK_OCTETS: Final = 640
EVENT_OCTETS: Final = 320
DATA_FACTOR: Final = 4  # JSON shows an event's data decoded, and in hexadecimal digits too
REMEMBERED: Final = 4_096  # blocks of which is known, once they are gone, how far the chain has gone back
TAG_OCTETS: Final = 8  # bytes of a block's hash that distinguish it from others of its height
FELL_BEHIND: Final = "fell behind"


def size_of(block: Block) -> int:
    """Return about how many bytes a block and its events take in JSON. Complexity: O(events)."""
    events = tuple(block_events(block))
    return BLOCK_OCTETS + EVENT_OCTETS * len(events) + DATA_FACTOR * sum(len(event.data) for event in events)


class Subscription:
    """One listener. ``async with`` begins it, ``async for`` yields every step that is published from then on.

    The iteration ends when the feed does, or when more waits than may; `reason` then says which.
    """

    def __init__(self, feed: "Feed", limit: int) -> None:
        self.reason: str | None = None
        self._feed = feed
        self._limit = limit
        self._waiting: deque[tuple[Published, int]] = deque()
        self._size = 0
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._feed.add(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._feed.remove(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Published:
        published = await self.take_next()
        if published is None:
            raise StopAsyncIteration
        return published

    async def take_next(self) -> Published | None:
        """Return the next step, once there is one; None at the end."""
        while not self._waiting:
            if self.reason is not None:
                return None
            self._news.clear()
            await self._news.wait()
        published, size = self._waiting.popleft()
        self._size -= size
        return published

    def offer(self, published: Published, size: int) -> bool:
        """Take a step of the chain unless too much waits already; return whether the subscription goes on.

        A subscriber that has read all before it takes one step however large it is.
        """
        if self._waiting and self._size + size > self._limit:
            self._waiting.clear()
            self._size = 0
            self.end(FELL_BEHIND)
            return False
        self._waiting.append((published, size))
        self._size += size
        self._news.set()
        return True

    def end(self, reason: str) -> None:
        """End the subscription after what waits; the first reason stays."""
        self.reason = self.reason or reason
        self._news.set()


class Feed:
    """Hands every step of the chain to all subscribers.

    `view` is the chain after the last published step: a reader that has read it to its head and subscribes in the same
    turn of the loop misses nothing and gets nothing twice. `reason` is why the feed has ended; None while it has not.
    """

    def __init__(self, view: ChainView) -> None:
        self.view = view
        self.reason: str | None = None
        self._closed = asyncio.Event()
        self._subscriptions: dict[Subscription, None] = {}
        # How far the chain went back when it lost a block, and the height of those that it has.
        self._present: BoundedDict[bytes, int] = BoundedDict(REMEMBERED)
        self._lost: BoundedDict[bytes, int] = BoundedDict(REMEMBERED)

    def __len__(self) -> int:
        return len(self._subscriptions)

    def subscribe(self, limit: int = WAITING_MAX) -> Subscription:
        """Return a subscription, which begins with ``async with``; the limit is in bytes, as of `size_of`."""
        return Subscription(self, limit)

    def add(self, subscription: Subscription) -> None:
        """Count a subscription in; it is ended at once if the feed is closed."""
        self._subscriptions[subscription] = None
        if self.reason is not None:
            subscription.end(self.reason)

    def remove(self, subscription: Subscription) -> None:
        """Forget a subscription."""
        self._subscriptions.pop(subscription, None)

    def publish(self, published: Published) -> None:
        """Hand a step of the chain to all subscribers. Never waits.

        Complexity: O(events), and O(1) for each subscriber.
        """
        self.view = published.view
        if published.reorg_from is not None:
            self._go_back(published.reorg_from)
        for block in published.blocks:
            # A block without transactions can come back as it was; a reader that has it has lost nothing.
            tag = tag_of(block.hash)
            self._lost.pop(tag, None)
            self._present[tag] = block.height
        if not self._subscriptions:
            return
        size = STEP_OCTETS + sum(map(size_of, published.blocks))
        for subscription in [each for each in self._subscriptions if not each.offer(published, size)]:
            self.remove(subscription)

    def _go_back(self, height: int) -> None:
        self._lost.update({tag: min(fork, height) for tag, fork in self._lost.items()})
        for tag in [tag for tag, found in self._present.items() if found > height]:
            del self._present[tag]
            self._lost[tag] = height

    def close(self, reason: str) -> None:
        """End every subscription, present and future, after what waits for it."""
        self.reason = self.reason or reason
        self._closed.set()
        for subscription in self._subscriptions:
            subscription.end(self.reason)

    async def closed(self) -> None:
        """Wait until the feed has ended."""
        await self._closed.wait()

    def fork_of(self, tag: bytes) -> int | None:
        """Return the lowest height that the chain went back to since it lost the block of a tag, if known."""
        return self._lost.get(tag)


def tag_of(block_hash: bytes) -> bytes:
    """Return the beginning of a block's hash that distinguishes it from others of its height."""
    return bytes(block_hash[:TAG_OCTETS])
