"""The stream on the wire: a thousand readers at a time, readers who do not read, and the end of the node."""

import asyncio
import json
import logging
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.integration.node.wires import ask, on_uvloop, request, running_node, serving
from tests.unit.api.stream.broadcasts import Believer, Broadcasts, Told, believed, read_told, truth_of
from trailboss.api import stream
from trailboss.api.sse import StreamFilter
from trailboss.api.stream import Streams

READERS = 1_000
CHUNK_END = b"\r\n"


@pytest.fixture(autouse=True)
def _no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No reader is an error of the node's, however he ends."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


class Listener(asyncio.Protocol):
    """A reader of the stream, as light as can be: it keeps what it gets."""

    def __init__(self, query: str = "", **headers: str) -> None:
        self.received = bytearray()
        self.ended = asyncio.Event()
        self._request = request("GET", f"/events{query}", **headers)
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        """Ask."""
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Keep what comes."""
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note of the end."""
        self.ended.set()

    @property
    def text(self) -> bytes:
        """The stream's text so far, without the frames of its chunks."""
        head, _, rest = bytes(self.received).partition(b"\r\n\r\n")
        assert not head or head.startswith(b"HTTP/1.1 200 "), head
        pieces = []
        while rest:
            size, _, rest = rest.partition(CHUNK_END)
            length = int(size, 16)
            pieces.append(rest[:length])
            rest = rest[length + len(CHUNK_END) :]
        return b"".join(pieces)

    @property
    def told(self) -> list[Told]:
        """The events of the stream so far."""
        return read_told(self.text.decode())

    async def got(self, mark: str) -> None:
        """Wait for an id, or its beginning."""
        sought = f"id: {mark}".encode()
        while sought not in self.received:
            assert not self.ended.is_set()
            await asyncio.sleep(0.001)


async def listen(port: int, listener: Listener, **options: Any) -> Listener:
    """Connect a reader."""
    await asyncio.get_running_loop().create_connection(lambda: listener, "127.0.0.1", port, **options)
    return listener


@contextmanager
def many_files(count: int) -> Iterator[None]:
    """Let the process hold so many files and sockets, or skip the test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        pytest.skip(f"the system lets a process hold {hard} files, {count} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@on_uvloop
async def test_thousand_readers_are_told_the_same_when_they_read_at_once() -> None:
    """Each gets every block from the first on, once, in order, though half of them came late."""
    with many_files(2 * READERS + 200):
        async with running_node() as (node, port):
            assert node.development is not None
            await node.development.mine(10)
            early = [await listen(port, Listener("?since=1")) for _ in range(READERS // 2)]
            for _ in range(5):
                await node.development.mine(1)
            late = [await listen(port, Listener("?since=1")) for _ in range(READERS // 2)]
            for _ in range(5):
                await node.development.mine(1)
            for reader in (*early, *late):
                await reader.got("20.0.")
            texts = {reader.text for reader in (*early, *late)}
            assert len(texts) == 1
            assert believed(texts.pop().decode()) == truth_of(node.view.blocks[1:])
            readers = node.metrics.registry.get_sample_value("trailboss_stream_readers")
            assert readers == READERS
            for reader in (*early, *late):
                reader.transport.abort()


@on_uvloop
async def test_readers_are_dropped_when_they_do_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others go on meanwhile, and publishing takes no longer for them."""
    monkeypatch.setattr(stream, "STALL_SECONDS", 1.0)
    with Broadcasts() as world:
        streams = Streams(world.feed, world.index, world.metrics, waiting_max=400_000)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await streams.open(StreamFilter(), None)(scope, receive, send)

        async with serving(app) as port:
            slow = []
            for _ in range(20):
                client = socket.socket()
                # What the system holds for a reader is not held by the node.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                client.setblocking(False)
                await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
                reader = Listener()
                await asyncio.get_running_loop().create_connection(lambda found=reader: found, sock=client)
                slow.append(reader)
            quick = [await listen(port, Listener()) for _ in range(20)]
            while len(world.feed) < 40:
                await asyncio.sleep(0.001)
            for reader in slow:
                reader.transport.pause_reading()
            while len(world.feed) > 20:
                world.mine(256)
                world.publish()
                for reader in quick:
                    await reader.got(f"{world.chain.height}.0.")
            count = world.metrics.registry.get_sample_value
            while count("trailboss_stream_readers") != 20:
                await asyncio.sleep(0.01)
            assert count("trailboss_stream_ends_total", {"reason": "stalled"}) == 20
            world.mine()
            world.publish()
            for reader in quick:
                await reader.got(f"{world.chain.height}.0.")
            for reader in (*slow, *quick):
                reader.transport.abort()


@on_uvloop
async def test_readers_get_the_last_words_when_the_node_ends() -> None:
    """All of them, and then the end of the answer; the server need not cut anybody off."""
    async with running_node() as (node, port):
        assert node.development is not None
        readers = [await listen(port, Listener("?since=0")) for _ in range(50)]
        await node.development.mine(3)
        for reader in readers:
            await reader.got("3.0.")
    for reader in readers:
        await reader.ended.wait()
        last = reader.told[-1]
        assert (last.kind, last.data) == ("end", {"reason": "stopping"})
        assert reader.received.endswith(b"0\r\n\r\n")


@on_uvloop
async def test_reader_goes_on_when_he_comes_back_with_the_last_id() -> None:
    """As browsers do by themselves; also when the chain went back in between."""
    async with running_node() as (node, port):
        assert node.development is not None
        await node.development.mine(5)
        first = await listen(port, Listener("?since=2"))
        await first.got("5.0.")
        first.transport.abort()
        believer = Believer()
        for each in first.told:
            believer.hear(each)
        await node.development.reorg(3)
        await node.development.faucet(node.view.genesis.proposer)
        await node.development.mine(2)
        second = await listen(port, Listener("?since=2", last_event_id=believer.mark or ""))
        await second.got(f"{node.view.height}.0.")
        assert second.told[0].kind == "reorg"
        for each in second.told:
            believer.hear(each)
        assert believer.blocks == truth_of(node.view.blocks[2:])
        second.transport.abort()


MISREAD = (
    "since=-1",
    "since=x",
    "since=",
    "since=18446744073709551616",
    "emitter=0x12",
    "timer_id=12",
    "address=me",
    "kinds=all",
    "kinds=",
    "name=",
    "name=%00",
    "name=%FF",
    "nonsense=1",
    "since=1&since=2",
    f"name={'x' * 65}",
)


@on_uvloop
async def test_stream_is_refused_when_what_is_asked_cannot_be_read() -> None:
    """With 400 and a code; and whoever says where he was with an id of another stream is not put anywhere else."""
    async with running_node() as (_, port):
        for query in MISREAD:
            reply = await ask(port, "GET", f"/events?{query}")
            assert (reply.status, reply.code) == (400, 4000), query
        for mark in ("5", "x", "1.2.3", "\xff"):
            reply = await ask(port, "GET", "/events", last_event_id=mark)
            assert (reply.status, reply.code) == (400, 4000), mark
            assert json.loads(reply.body)["error"]["context"]["parameter"] == "Last-Event-ID"


@on_uvloop
async def test_head_of_the_stream_is_answered_when_nothing_else_is_wanted() -> None:
    """HEAD has no body, so it does not go on for ever."""
    async with running_node() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("HEAD", "/events", connection="close"))
        head = await reader.read()
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"text/event-stream" in head
        assert head.endswith(b"\r\n\r\n")
        writer.close()


@on_uvloop
async def test_metrics_are_answered_when_the_node_runs() -> None:
    """In the text format of Prometheus, with what has happened so far."""
    async with running_node() as (node, port):
        assert node.development is not None
        await node.development.mine(3)
        await ask(port, "GET", "/height")
        reply = await ask(port, "GET", "/metrics")
        assert reply.status == 200
        assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = reply.body.decode().splitlines()
        for line in (
            "trailboss_height 3.0",
            "trailboss_blocks_total 3.0",
            'trailboss_requests_total{route="/height",status="200"} 1.0',
            "trailboss_mempool_transactions 0.0",
        ):
            assert line in lines
