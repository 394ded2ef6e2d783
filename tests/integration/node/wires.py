"""A node behind a real server on a port of its own, and clients that write raw bytes."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import uvicorn
import uvloop

from tests.event_loop import on_loop
from trailboss.node.options import MANUAL, NodeOptions
from trailboss.node.service import Node
from trailboss.node.startup import open_node
from trailboss.server import build_application


class _Server(uvicorn.Server):
    """A server that says when it listens, and leaves signals alone."""

    listens: asyncio.Event

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[int]:
    """Serve an application as a node does, and return the port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )
        server = _Server(config)
        server.listens = asyncio.Event()
        running = asyncio.create_task(server.serve([listener]))
        try:
            await server.listens.wait()
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await running


@asynccontextmanager
async def running_node(**options: Any) -> AsyncIterator[tuple[Node, int]]:
    """Run a whole node on a chain in memory that builds blocks when it is told to, and return it with its port."""
    node = open_node(NodeOptions(**{"pace": MANUAL, "explorer": False} | options))
    try:
        async with serving(build_application(node)) as port:
            node.start()
            yield node, port
            node.begin_stop()
    finally:
        await node.close()


on_uvloop = partial(on_loop, loop_factory=uvloop.new_event_loop)
"""Has a test run on a loop as the node's is."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer as it came.

    Attributes:
        status: Its status.
        headers: Its headers.
        body: Its body.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> int:
        """The code of the error that it is."""
        error = json.loads(self.body)["error"]
        assert set(error) == {"code", "slug", "what", "why", "fix", "context"}
        return error["code"]


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """Return the bytes of a request; headers as ``content_type=...``."""
    named = {"host": "localhost", "content-length": str(len(body))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


async def converse(port: int, *pieces: bytes, ends: bool = False) -> list[Reply]:
    """Write bytes to a node and return all answers until it ends the connection, or has answered what is whole.

    Args:
        port: The node's.
        pieces: What is written, with a pause after each.
        ends: Whether the client says that it writes no more.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if ends:
            writer.write_eof()
        return await read_replies(reader)
    finally:
        writer.close()


async def read_replies(reader: asyncio.StreamReader, count: int | None = None) -> list[Reply]:
    """Return so many answers, or all until the connection ends."""
    replies: list[Reply] = []
    while count is None or len(replies) < count:
        try:
            reply = await read_reply(reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            break
        replies.append(reply)
        if reply.headers.get("connection") == "close":
            break
    return replies


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    """Return the next answer, whose length is announced."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Reply(int(first.split()[1]), headers, body)


async def ask(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> Reply:
    """Send one request and return its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request(method, path, body, **headers))
        return await read_reply(reader)
    finally:
        writer.close()
