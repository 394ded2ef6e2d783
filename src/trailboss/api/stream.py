"""The stream: blocks and events as they come, and those of the past before, to any number of readers.

A reader of the past is served in pieces, each from the newest view, and nothing is kept for him meanwhile. When he has
reached the head he listens to the feed, from the very next step on. Chains go back: before each piece, and whenever he
comes back, the hash of the last block he was told of says whether he is still on the chain; if not, he is told how far
it went back, and then the blocks that took the place of his.

Decision: D-73
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from trailboss.api.connections import ABORT
from trailboss.api.errors import HttpError, HttpReason
from trailboss.api.sse import END, HEARTBEAT, REORG, Past, Place, Selection, Tellings, ToldBlock, read_page, told
from trailboss.chain import ChainView
from trailboss.index import Index
from trailboss.node.block_builder import Published
from trailboss.node.feed import Feed
from trailboss.node.metrics import Metrics
from trailboss.primitives.errors import ViewGoneError

READERS_MAX: Final = 2_000
WAITING_MAX: Final = 4 * 2**20
"""Bytes that may wait for a reader, about, besides what the operating system holds for him."""
HEARTBEAT_SECONDS: Final = 15.0
RETRY_MS: Final = 2_000
"""Milliseconds after which a browser that has lost the stream comes back."""
STALL_SECONDS: Final = 10.0
"""Time that a reader has to take the next 64 KiB; then the connection is cut."""
END_SECONDS: Final = 1.0
"""Time that he has for the last words, when the node stops."""
PAGES_AT_ONCE: Final = 2
"""Pieces of the past that are read at the same time, for all readers together."""
WRITE_OCTETS: Final = 2**16
DISCONNECTED: Final = "disconnected"
STALLED: Final = "stalled"
CUT: Final = "cut"

Write = Callable[[bytes], Awaitable[None]]


class Step(Struct, frozen=True):
    """A step of the chain, encoded once for all readers.

    Attributes:
        fork: Where a reader stands who knows the last block that was left, if blocks were lost.
        blocks: Those that came.
        text: All that is told of them.
    """

    fork: Place | None
    blocks: tuple[ToldBlock, ...]
    text: bytes


def encode_step(published: Published, kept: Tellings) -> Step:
    """Encode a step of the chain. It may take its time: other threads can do it."""
    tellings = tuple(map(kept.of, published.blocks))
    for telling in tellings:
        telling.prepare()
    fork = None
    if published.reorg_from is not None:
        # Of the blocks that come with it, the last one says where a reader stands.
        fork = Place(published.reorg_from + 1) if published.blocks else Place.after(published.view.head)
    return Step(fork, tellings, b"".join(telling.text() for telling in tellings))


class Streams:
    """What all readers share.

    Attributes:
        feed: Whence the present comes.
        metrics: Counts readers and how they end.
        heartbeat: Seconds of silence after which a sign of life is sent.
        readers_max: Readers that are served at a time.
        waiting_max: Bytes that may wait for one of them.
        pages: Held while a piece of the past is read.
    """

    def __init__(
        self,
        feed: Feed,
        index: Index,
        metrics: Metrics,
        *,
        heartbeat: float = HEARTBEAT_SECONDS,
        readers_max: int = READERS_MAX,
        waiting_max: int = WAITING_MAX,
    ) -> None:
        self.feed = feed
        self.metrics = metrics
        self.heartbeat = heartbeat
        self.readers_max = readers_max
        self.waiting_max = waiting_max
        self.pages = asyncio.Semaphore(PAGES_AT_ONCE)
        self._index = index
        self._tellings = Tellings()
        self._readers = 0
        self._steps: WeakKeyDictionary[Published, asyncio.Future[Step]] = WeakKeyDictionary()

    def open(self, selection: Selection, place: Place | None, since: int = 0) -> "EventStream":
        """Return the answer that streams to one more reader.

        Args:
            selection: What he wants.
            place: Where he goes on; None for the next block.
            since: Height below which he wants nothing.

        Raises:
            HttpError: ``UNAVAILABLE`` if there are as many readers as may be.
        """
        if self._readers >= self.readers_max:
            what = f"{self._readers:,} readers are served already, and no more at a time"
            raise HttpError(HttpReason.UNAVAILABLE, what, readers_max=self.readers_max)
        start = Place.after(self.feed.view.head) if place is None else place
        return EventStream(self, Reader(self, selection, start, since))

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
        return Past(view, self._index, self._tellings)

    async def encoded(self, published: Published) -> Step:
        """Return a step encoded; whoever asks first has a worker do it, and all others share it."""
        future = self._steps.get(published)
        if future is None:
            future = self._steps[published] = asyncio.ensure_future(
                asyncio.to_thread(encode_step, published, self._tellings)
            )
        # A reader who goes away meanwhile does not take the work away from the others.
        return await asyncio.shield(future)


class Reader:
    """One reader: what he wants and where he stands."""

    def __init__(self, streams: Streams, selection: Selection, place: Place, since: int) -> None:
        self._streams = streams
        self._feed = streams.feed
        self._selection = selection
        self._place = place
        self._since = since
        self._told_at = 0.0

    async def tell(self, write: Write) -> None:
        """Write the past and then the present, until the feed ends, and why it did.

        Whoever falls behind, because more comes at once than can be told, reads the past again.

        Args:
            write: Takes what the reader is told; may wait for him.
        """
        await self._say(write, b"retry: %d\n\n" % RETRY_MS)
        while self._feed.reason is None:
            if self._is_at_head():
                await self._follow(write)
            else:
                await self._replay(write)
        await self._say(write, told(END, {"reason": self._feed.reason}))

    def _is_at_head(self) -> bool:
        view = self._feed.view
        return self._place.height > view.height and self._place.is_on(view)

    # The past

    async def _replay(self, write: Write) -> None:
        """Tell one piece of the past."""
        view = self._feed.view
        try:
            async with self._streams.pages:
                page = await asyncio.to_thread(read_page, self._streams.past(view), self._place, self._selection)
            text, self._place = await self._find_fork(view) if page is None else page
        except ViewGoneError:
            await self._newer_than(view)
        else:
            await self._say(write, text)

    async def _find_fork(self, view: ChainView) -> tuple[bytes, Place]:
        """Return what a reader is told who is not on the chain of a view, and where he stands then."""
        present, tag = self._feed.view, self._place.tag
        height = None if tag is None else self._feed.fork_of(tag)
        if height is None and present is not view:
            # The block may have come back meanwhile.
            return b"", self._place
        # Nobody remembers a block of before the node was started: then all of the chain is told anew.
        fork = await asyncio.to_thread(present.blocks.__getitem__, height or 0)
        return self._go_back(Place.after(fork))

    async def _newer_than(self, view: ChainView) -> None:
        """Wait until the feed has heard what the chain has done since a view."""
        async with self._feed.subscribe() as news:
            if self._feed.view is view:
                await news.take_next()

    # The present

    async def _follow(self, write: Write) -> None:
        """Tell what comes. Whoever stands at the head of the feed's view subscribes before it has another one."""
        async with self._feed.subscribe(self._streams.waiting_max) as subscription:
            while True:
                try:
                    async with asyncio.timeout(self._streams.heartbeat):
                        published = await subscription.take_next()
                except TimeoutError:
                    await self._say(write, HEARTBEAT)
                    continue
                if published is None:
                    return
                await self._say(write, self._present(await self._streams.encoded(published)))

    def _present(self, step: Step) -> bytes:
        pieces: list[bytes] = []
        if step.fork is not None:
            text, self._place = self._go_back(step.fork)
            pieces.append(text)
        if self._selection.is_everything and step.blocks and step.blocks[0].block.height >= self._place.height:
            pieces.append(step.text)
            self._place = Place.after(step.blocks[-1].block)
        else:
            for telling in step.blocks:
                if telling.block.height >= self._place.height:
                    pieces.append(self._selection.take(telling))
                    self._place = Place.after(telling.block)
        return b"".join(pieces)

    # Both

    def _go_back(self, fork: Place) -> tuple[bytes, Place]:
        """Return what a reader is told when the chain has gone back, and where he stands then."""
        place = fork if fork.height >= self._since else Place(self._since)
        return told(REORG, {"height": fork.height - 1}), place

    async def _say(self, write: Write, text: bytes) -> None:
        """Write a text; instead of an empty one, after long silence, a sign of life."""
        now = asyncio.get_running_loop().time()
        if not text:
            if now - self._told_at < self._streams.heartbeat:
                return
            text = HEARTBEAT
        for start in range(0, len(text), WRITE_OCTETS):
            await write(text[start : start + WRITE_OCTETS])
        self._told_at = now


class EventStream(Response):
    """The answer to one reader, for as long as he listens, or the node."""

    media_type = "text/event-stream"

    def __init__(self, streams: Streams, reader: Reader) -> None:
        self._streams = streams
        self._reader = reader
        self.status_code = HTTPStatus.OK
        self.background = None
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the reader goes, or the node, or the reader falls behind."""
        reason = CUT
        self._streams.begin()
        try:
            reason = await self._serve(scope, receive, send)
        finally:
            self._streams.end(reason)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> str:
        """Write until there is nothing more to tell or nobody to tell it to, and return which."""
        feed = self._streams.feed
        writing = asyncio.create_task(self._write(send))
        leaving = asyncio.create_task(_disconnected(receive))
        ending = asyncio.create_task(feed.closed())
        try:
            await asyncio.wait((writing, leaving, ending), return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                # Whoever reads gets the last words; whoever does not is not waited for.
                await asyncio.wait((writing, leaving), timeout=END_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            is_stalled = writing.result() if writing.done() else not leaving.done()
            if is_stalled and _abort(scope):
                await leaving
        finally:
            for task in (writing, leaving, ending):
                task.cancel()
            await asyncio.gather(writing, leaving, ending, return_exceptions=True)
        if writing.cancelled() and not leaving.cancelled():
            # A server that has lost the client does not mind; one that answers HEAD waits for the end.
            await send(_body(b"", more=False))
        return STALLED if is_stalled else feed.reason or DISCONNECTED

    async def _write(self, send: Send) -> bool:
        """Stream; return whether the reader did not take what he was told."""

        async def write(text: bytes) -> None:
            try:
                async with asyncio.timeout(STALL_SECONDS):
                    await send(_body(text, more=True))
            except TimeoutError:
                raise _StalledError from None

        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            await self._reader.tell(write)
        except _StalledError:
            return True
        await send(_body(b"", more=False))
        return False


class _StalledError(Exception):
    """A reader has not taken what he was told, for too long."""


def _body(text: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": text, "more_body": more}


async def _disconnected(receive: Receive) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _abort(scope: Scope) -> bool:
    """Cut the connection, whatever waits in it; return whether the server lends the means."""
    means = scope.get("extensions", {}).get(ABORT)
    if means is not None:
        means["abort"]()
    return means is not None
