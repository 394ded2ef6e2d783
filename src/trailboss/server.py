"""The HTTP server of a node: its socket, its signals, and the way from options to an exit status."""

import asyncio
import errno
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from time import perf_counter
from typing import Any, Final, Protocol, cast

import uvicorn
import uvloop
from starlette.routing import BaseRoute
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from trailboss.api.app import create_app
from trailboss.api.limits import limited
from trailboss.chain import Chain
from trailboss.chain.processors import usable_processors
from trailboss.node.options import NodeOptions
from trailboss.node.service import FAILED, Node
from trailboss.node.startup import open_node
from trailboss.primitives.errors import ConfigurationError

BACKLOG: Final = 2_048  # connections that wait to be accepted at most
OPEN_FILES: Final = 65_536  # sockets that a node asks the system for
GRACE_SECONDS: Final = 2  # how long answers that have begun may take when the node stops
BY_SIGNAL: Final = 128  # exit status of a program that a second signal ends: this and the signal's number
BUFFERED_BYTES_MAX: Final = 64 * 1024  # of an answer that wait for the end of a turn of the event loop
POLL_SECONDS: Final = 0.0002  # how long after an answer the event loop looks for the next request without a sleep
CONNECTIONS_MAX: Final = 4_096  # above which requests are refused with 503; those of streams count
# Time that a thread keeps the interpreter while another wants it. Python's own 5 ms are too long: on two cores, two
# readers and one sender get 230 transfers a second at 5 ms and 990 at 0.1 ms; while actors run, a read takes 5.2 ms at
# 5 ms and 0.2 ms at 0.1 ms.
SWITCH_SECONDS: Final = 0.0001
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
Ready = Callable[[Node, int], None]


class Companion(Protocol):
    """What runs beside a node, on its event loop."""

    def check(self, chain: Chain) -> None:
        """Refuse by an error to run beside a chain."""

    def begin(self, node: Node) -> None:
        """Begin, once the node has begun."""

    async def close(self) -> None:
        """End; the node stops and closes after it. Called again, it does nothing."""


def run_node(options: NodeOptions, ready: Ready, companion: Companion | None = None) -> int:
    """Run a node until a signal or a failure ends it, and return the exit status: 0, or 1 after a failure.

    ``ready`` is called with the node and the port when it answers.

    Raises:
        ConfigurationError: If it cannot listen, or the options do not fit one another or the chain.
        StorageError: If the chain's directory cannot be used.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    _allow_many_connections()
    with listen(options.host, options.port) as listener:
        # Outside of the loop: an index that is rebuilt takes its time, and Ctrl-C ends that as it ends any program.
        node = open_node(options) if companion is None else open_node(options, companion.check)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(node, listener, ready, companion))
    return 1 if node.health.status == FAILED else 0


async def _serve(node: Node, listener: socket.socket, ready: Ready, companion: Companion | None) -> None:
    """Answer requests until the node is stopped, or fails."""

    def begin() -> None:
        node.start()
        if companion is not None:
            companion.begin(node)
        ready(node, listener.getsockname()[1])

    stop = _catch_signals()
    # Several nodes of a network share a machine; and one processor belongs to the client that is to ask.
    polls = companion is None and usable_processors() > 1
    poll = BusyPoll(asyncio.get_running_loop(), lambda: polls and not node.is_busy)
    try:
        config = uvicorn.Config(
            build_application(node),
            limit_concurrency=CONNECTIONS_MAX,
            http=cast("type[asyncio.Protocol]", partial(BufferedHttp, poll)),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        server = _Server(config, begin)
        watching = asyncio.create_task(_end(node, companion, server, stop))
        try:
            await server.serve([listener])
        finally:
            watching.cancel()
    finally:
        if companion is not None:
            await companion.close()
        await node.close()


class BufferedHttp(HttpToolsProtocol):
    """Uvicorn's protocol, whose answers leave whole: it writes head and body apart, and each would wake a client.

    A complete one leaves at once: the client works while the rest of the turn is done.
    """

    def __init__(self, poll: "BusyPoll", *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._poll = poll

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin a connection."""
        self._buffer = WriteBuffer(transport, asyncio.get_running_loop())
        super().connection_made(cast("asyncio.Transport", self._buffer))

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._buffer.flush()
        super().on_response_complete()
        self._poll.begin()


class BusyPoll:
    """Keeps the event loop awake for a moment after each answer, because most clients ask again at once.

    To wake a loop that sleeps takes longer than most answers do. Decision: D-125
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, may_poll: Callable[[], bool], clock: Callable[[], float] = perf_counter
    ) -> None:
        """Take what says whether the loop may use its processor for this, and a clock in seconds."""
        self._loop, self._may_poll, self._clock = loop, may_poll, clock
        self._until = 0.0
        self._is_awake = False

    def begin(self) -> None:
        """Stay awake for `POLL_SECONDS` from now on, as long as the loop may."""
        self._until = self._clock() + POLL_SECONDS
        if not self._is_awake:
            self._is_awake = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        # A loop that has something to call looks for what has come, and does not sleep.
        self._is_awake = self._clock() < self._until and self._may_poll()
        if self._is_awake:
            self._loop.call_soon(self._turn)


class WriteBuffer:
    """A transport that sends together what is written in one turn of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        """Do all else as the transport itself does."""
        return getattr(self._transport, name)

    def write(self, octets: bytes) -> None:
        """Send bytes at the end of this turn; many at once, so that a slow reader stops the writer."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(octets)
        self._size += len(octets)
        if self._size > BUFFERED_BYTES_MAX:
            self.flush()

    def close(self) -> None:
        """Send what waits, and end the connection."""
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        """Send what waits."""
        parts, self._parts, self._size = self._parts, [], 0
        # What was written to a connection that the client has ended since goes nowhere.
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))


def build_application(node: Node) -> ASGIApp:
    """Return all that a node serves: the API, the explorer if it is wanted, and the limits of both."""
    routes: Sequence[BaseRoute] = ()
    if node.options.explorer:
        # Only now: a node without an explorer starts faster.
        from trailboss.explorer import explorer_routes  # noqa: PLC0415

        routes = explorer_routes(node)
    return limited(create_app(node, routes), node.options, node.metrics)


async def _end(node: Node, companion: Companion | None, server: uvicorn.Server, stop: asyncio.Event) -> None:
    """Wait for a signal or a failure, and stop the node and the server."""
    stopped, failed = asyncio.create_task(stop.wait()), asyncio.create_task(node.ended.wait())
    await asyncio.wait((stopped, failed), return_when=asyncio.FIRST_COMPLETED)
    if companion is not None:
        # First, while the chain still answers it.
        await companion.close()
    node.begin_stop()
    server.should_exit = True


class _Server(uvicorn.Server):
    """A server that reports when it is ready, and leaves signals to `_catch_signals`."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections, and report it."""
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def _catch_signals() -> asyncio.Event:
    """Return an event that the first signal sets; a second signal ends the process at once, which harms no chain."""
    stop = asyncio.Event()

    def catch(number: int) -> None:
        if stop.is_set():
            os._exit(BY_SIGNAL + number)
        stop.set()

    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, catch, number)
    return stop


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, at any free port for 0; clients that connect wait until the node is ready.

    Raises:
        ConfigurationError: If nothing can listen there, with what to do.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise ConfigurationError(f"{host!r} is no address of this machine: name one with --host") from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigurationError(_refusal(host, port, error)) from None
    return listener


def _refusal(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return (
                f"port {port} of {host} is in use: end the program that listens there, or choose another port with "
                "--port; --port 0 takes any that is free"
            )
        case errno.EACCES:
            return f"port {port} of {host} needs privileges: choose one from 1024 on with --port"
        case errno.EADDRNOTAVAIL:
            return f"{host!r} is no address of this machine: name one with --host"
        case _:
            return f"cannot listen on port {port} of {host}: {error.strerror}"


def _allow_many_connections() -> None:
    """Raise the limit on open files as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
