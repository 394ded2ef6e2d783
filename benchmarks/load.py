"""Load on a node from this process, which is the second one: plain HTTP over connections that stay open."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any, Final

LOOPBACK: Final = "127.0.0.1"
CONTENT_LENGTH: Final = b"content-length:"
OK: Final = b" 200 "


@contextmanager
def running_node(*options: str) -> Iterator[int]:
    """Run ``trailboss dev`` in a process of its own, and return its port once it answers."""
    with running("dev", "--port", "0", *options) as (port, _):
        yield port


@contextmanager
def running(*arguments: str) -> Iterator[tuple[int, int]]:
    """Run a command that serves in a process of its own, and return its port and the process's id once it answers."""
    command = [sys.executable, "-m", "trailboss", *arguments, "--json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COWBOY", "TRAILBOSS"))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        try:
            yield int(_ready(process)["port"]), process.pid
        finally:
            process.terminate()


def seconds_until_ready(*options: str) -> float:
    """Start a node, and return the seconds from the start of its process until it has answered a request."""
    began = perf_counter()
    with running_node(*options) as port:
        asyncio.run(_ask_once(port))
        return perf_counter() - began


def _ready(process: subprocess.Popen[bytes]) -> Any:
    """Return what a node prints when it is ready: one JSON document over several lines."""
    text = ""
    for line in process.stdout or ():
        text += line.decode()
        if line == b"}\n":
            return json.loads(text)
    raise RuntimeError(f"the node has ended with status {process.wait()} before it was ready")


async def _ask_once(port: int) -> None:
    connection = await Connection.open(port)
    await connection.ask(get("/health"))
    connection.close()


def get(path: str) -> bytes:
    """Return a request to read a path."""
    return f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\n\r\n".encode()


def post(path: str, body: bytes, media: str = "application/octet-stream") -> bytes:
    """Return a request with a body."""
    head = f"POST {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Connection:
    """One connection, which asks one thing at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int, host: str = LOOPBACK) -> "Connection":
        """Connect to the node of a port."""
        return cls(*await asyncio.open_connection(host, port, limit=2**22))

    async def ask(self, request: bytes) -> bytes:
        """Send a request and return the body of the answer.

        Raises:
            RuntimeError: If its status is not 200.
        """
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next(int(line[len(CONTENT_LENGTH) :]) for line in lines if line.startswith(CONTENT_LENGTH))
        body = await self._reader.readexactly(length)
        if OK not in head.split(b"\r\n", 1)[0] + b" ":
            raise RuntimeError(f"{head!r} {body[:500]!r}")
        return body

    async def listen(self, path: str) -> AsyncIterator[bytes]:
        """Yield the lines of a stream."""
        self._writer.write(get(path))
        while line := await self._reader.readline():
            yield line

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


async def read_for(
    port: int, paths: Sequence[str], seconds: float, connections: int, rate: float | None = None
) -> float:
    """Ask for paths in turn over several connections for a while, and return the answers a second.

    Args:
        port: Of the node.
        paths: What is asked for.
        seconds: For how long.
        connections: How many.
        rate: Requests a second that are meant, all connections together; None for as many as come.
    """
    requests = [get(path) for path in paths]
    until = perf_counter() + seconds
    began = perf_counter()

    async def ask(at: int) -> int:
        connection, answers = await Connection.open(port), 0
        while perf_counter() < until:
            await connection.ask(requests[(at + answers) % len(requests)])
            answers += 1
            if rate is not None:
                await asyncio.sleep(max(0.0, began + answers * connections / rate - perf_counter()))
        connection.close()
        return answers

    answers = sum(await asyncio.gather(*map(ask, range(connections))))
    return answers / (perf_counter() - began)


async def send_all(port: int, requests: Sequence[bytes], connections: int) -> None:
    """Send requests, each once, over several connections; those of one connection in order."""

    async def send(at: int) -> None:
        connection = await Connection.open(port)
        for request in requests[at::connections]:
            await connection.ask(request)
        connection.close()

    await asyncio.gather(*map(send, range(connections)))


async def until_empty(port: int) -> None:
    """Wait until no transaction waits any more."""
    connection = await Connection.open(port)
    while json.loads(await connection.ask(get("/mempool?limit=1")))["total_count"]:
        await asyncio.sleep(0.01)
    connection.close()


async def block_times(port: int, heard: Callable[[float], None], host: str = LOOPBACK) -> None:
    """Tell the time at which each block is heard of, until cancelled."""
    connection = await Connection.open(port, host)
    with suppress(asyncio.CancelledError):
        async for line in connection.listen("/events?kinds=blocks"):
            if line == b"event: block\n":
                heard(perf_counter())
    connection.close()
