"""The stream: blocks and events of the past and then as they come, to any number of readers.

The past is read in pages, each from the newest view; at the head a reader subscribes to the feed. Before each page and
at each reconnection the tag of the last block says whether the reader is still on the chain. If not, it receives how
far the chain went back, and then the blocks of the new branch.

Decision: D-73
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from trailboss.api.errors import HttpError, HttpReason
from trailboss.api.sse import (
    END,
    HEARTBEAT,
    REORG,
    EncodedBlock,
    EncodedBlocks,
    Past,
    Position,
    StreamFilter,
    read_page,
    sse_event,
)
from trailboss.chain import ChainView
from trailboss.index import Index
from trailboss.node.block_builder import Published
from trailboss.node.feed import Feed
from trailboss.node.metrics import Metrics
from trailboss.primitives.errors import ViewGoneError

EVENT_STREAM: Final = "text/event-stream"
READERS_MAX: Final = 2_000
WAITING_MAX: Final = 4 * 2**20  # bytes that may wait for a reader, estimated, beside those in the operating system
HEARTBEAT_SECONDS: Final = 15.0
RETRY_MS: Final = 2_000  # after which a browser reconnects
STALL_SECONDS: Final = 10.0  # time that a reader has to take the next 64 KiB; then the stream ends for it
PAGES_AT_ONCE: Final = 2  # pages of the past that are read at the same time, for all readers together
WRITE_OCTETS: Final = 2**16
DISCONNECTED: Final = "disconnected"
STALLED: Final = "stalled"
HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}


class EncodedStep(Struct, frozen=True):
    """A step of the chain for all readers; each piece of it is encoded once."""

    fork: Position | None  # position after the last block that both branches share, if blocks were lost
    blocks: tuple[EncodedBlock, ...]  # the new blocks
    text: bytes = b""  # all events of them, once they are encoded


def step_of(published: Published, kept: EncodedBlocks) -> EncodedStep:
    """Return a step of the chain, with no event encoded."""
    fork = None
    if published.reorg_from is not None:
        # If blocks come with it, the last of them gives the position.
        fork = Position(published.reorg_from + 1) if published.blocks else Position.after(published.view.head)
    return EncodedStep(fork, tuple(map(kept.of, published.blocks)))


def encode_step(published: Published, kept: EncodedBlocks) -> EncodedStep:
    """Encode a step of the chain with all events, on any thread."""
    step = step_of(published, kept)
    for each in step.blocks:
        each.prepare()
    return replace(step, text=b"".join(each.text() for each in step.blocks))


class Streams:
    """What all readers share."""

    def __init__(
        self,
        feed: Feed,
        index: Index,
        metrics: Metrics,
        *,
        heartbeat: float = HEARTBEAT_SECONDS,  # silence after which a comment is sent
        readers_max: int = READERS_MAX,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self.feed, self.metrics = feed, metrics
        self.heartbeat, self.readers_max, self.waiting_max = heartbeat, readers_max, waiting_max
        self.pages = asyncio.Semaphore(PAGES_AT_ONCE)
        self._index = index
        self._encoded = EncodedBlocks()
        self._readers = 0
        self._steps: WeakKeyDictionary[Published, asyncio.Future[EncodedStep]] = WeakKeyDictionary()

    def open(self, selection: StreamFilter, place: Position | None, since: int = 0) -> "EventStream":
        """Return the answer for one more reader, at a position or the next block; it wants nothing below ``since``.

        Raises:
            HttpError: ``UNAVAILABLE`` if there are too many readers.
        """
        if self._readers >= self.readers_max:
            what = f"{self._readers:,} readers are served already, and no more at a time"
            raise HttpError(HttpReason.UNAVAILABLE, what, readers_max=self.readers_max)
        start = Position.after(self.feed.view.head) if place is None else place
        return EventStream(self, _Reader(self, selection, start, since))

    def begin(self) -> None:
        """Count a reader in."""
        self._readers += 1
        self.metrics.stream_began()

    def end(self, reason: str) -> None:
        """Count a reader out."""
        self._readers -= 1
        self.metrics.stream_ended(reason)

    def past(self, view: ChainView) -> Past:
        """Return where the past of a view is read."""
        return Past(view, self._index, self._encoded)

    async def encoded(self, published: Published, selection: StreamFilter) -> EncodedStep:
        """Return a step with what a reader wants; events are encoded by one worker for all readers of events."""
        if not selection.events:
            return step_of(published, self._encoded)
        future = self._steps.get(published)
        if future is None:
            future = self._steps[published] = asyncio.ensure_future(
                asyncio.to_thread(encode_step, published, self._encoded)
            )
        # A reader that leaves meanwhile does not cancel the work for the others.
        return await asyncio.shield(future)


class _Reader:
    """What one reader wants, and its position."""

    def __init__(self, streams: Streams, selection: StreamFilter, place: Position, since: int) -> None:
        self._streams, self._feed = streams, streams.feed
        self._selection, self._place, self._since = selection, place, since
        self._written_at = 0.0

    async def read(self) -> AsyncGenerator[bytes, None]:
        """Yield the past and then the present, until the feed ends, and why it did.

        A reader that falls behind, because more comes at once than may wait, reads the past again.
        """
        yield b"retry: %d\n\n" % RETRY_MS
        while self._feed.reason is None:
            view = self._feed.view
            if self._place.height > view.height and self._place.is_on(view):
                texts = self._follow()
            else:
                texts = self._replay(view)
            # The state records what it changes for each view that is held, and a reader may follow for days.
            del view
            async with aclosing(texts):
                async for text in texts:
                    for piece in self._pieces(text):
                        yield piece
        yield sse_event(END, {"reason": self._feed.reason})

    async def _replay(self, view: ChainView) -> AsyncGenerator[bytes, None]:
        """Yield one page of the past."""
        try:
            async with self._streams.pages:
                page = await asyncio.to_thread(read_page, self._streams.past(view), self._place, self._selection)
            text, self._place = await self._find_fork(view) if page is None else page
        except ViewGoneError:
            # Wait until the feed has the step that took the view away.
            async with self._feed.subscribe() as news:
                if self._feed.view is view:
                    await news.take_next()
        else:
            yield text

    async def _find_fork(self, view: ChainView) -> tuple[bytes, Position]:
        """Return the reorg for a reader that is not on the chain of a view, and its position then."""
        present, tag = self._feed.view, self._place.tag
        height = None if tag is None else self._feed.fork_of(tag)
        if height is None and present is not view:
            # The block may have come back meanwhile.
            return b"", self._place
        # A block from before the node's start is unknown: then the reader receives the whole chain.
        fork = await asyncio.to_thread(present.blocks.__getitem__, max(height or 0, present.blocks.base))
        return self._go_back(Position.after(fork))

    async def _follow(self) -> AsyncGenerator[bytes, None]:
        """Yield what comes. A reader at the head of the feed's view subscribes before there is a newer one."""
        async with self._feed.subscribe(self._streams.waiting_max) as subscription:
            while True:
                try:
                    async with asyncio.timeout(self._streams.heartbeat):
                        published = await subscription.take_next()
                except TimeoutError:
                    yield HEARTBEAT
                    continue
                if published is None:
                    return
                yield self._present(await self._streams.encoded(published, self._selection))

    def _present(self, step: EncodedStep) -> bytes:
        pieces: list[bytes] = []
        if step.fork is not None:
            text, self._place = self._go_back(step.fork)
            pieces.append(text)
        if self._selection.is_everything and step.blocks and step.blocks[0].block.height >= self._place.height:
            pieces.append(step.text)
            self._place = Position.after(step.blocks[-1].block)
        else:
            for encoded in step.blocks:
                if encoded.block.height >= self._place.height:
                    pieces.append(self._selection.take(encoded))
                    self._place = Position.after(encoded.block)
        return b"".join(pieces)

    def _go_back(self, fork: Position) -> tuple[bytes, Position]:
        """Return the event that the chain has gone back, and the reader's position then."""
        place = fork if fork.height >= self._since else Position(self._since)
        return sse_event(REORG, {"height": fork.height - 1}), place

    def _pieces(self, text: bytes) -> list[bytes]:
        now = asyncio.get_running_loop().time()
        if not text:
            if now - self._written_at < self._streams.heartbeat:
                return []
            text = HEARTBEAT
        self._written_at = now
        return [text[start : start + WRITE_OCTETS] for start in range(0, len(text), WRITE_OCTETS)]


class EventStream(StreamingResponse):
    """The answer to one reader; it ends with the reader, with the node, or when the reader takes nothing for long."""

    def __init__(self, streams: Streams, reader: _Reader) -> None:
        self._events = reader.read()
        self._streams = streams
        super().__init__(self._events, media_type=EVENT_STREAM, headers=HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream."""

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(STALL_SECONDS):
                await send(message)

        reason = DISCONNECTED
        self._streams.begin()
        try:
            await super().__call__(scope, receive, send_in_time)
            reason = self._streams.feed.reason or DISCONNECTED
        except TimeoutError:
            reason = STALLED
        finally:
            await self._events.aclose()
            self._streams.end(reason)
        if reason == STALLED:
            # A clean end for a reader that returns; one that does not holds a socket, and nothing else.
            await send({"type": "http.response.body", "body": b"", "more_body": False})
