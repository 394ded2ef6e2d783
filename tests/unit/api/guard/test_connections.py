"""Connections: what comes in however many pieces is the same request, and what does not move is cut."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.server import ServerState

from trailboss.api.connections import ABORT, ConnectionLimits, connection_protocol
from trailboss.node.metrics import Metrics

LIMITS = ConnectionLimits(connections_max=2, head_bytes_max=400, pipelined_max=4)


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.unread = 0
        self.is_reading = True
        self.is_ended = False
        self.is_aborted = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def write(self, data: bytes) -> None:
        assert not self.is_ended
        self.written += data

    def write_eof(self) -> None:
        self.is_ended = True

    def close(self) -> None:
        self.is_ended = True

    def abort(self) -> None:
        self.is_aborted = self.is_ended = True

    def is_closing(self) -> bool:
        return self.is_ended

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def get_write_buffer_size(self) -> int:
        return self.unread

    @property
    def statuses(self) -> list[int]:
        """The statuses of what was answered."""
        return [int(part[:3]) for part in bytes(self.written).split(b"HTTP/1.1 ")[1:]]


class Desk:
    """Connections of one server, whose application answers with the length of the body, or when it is told to."""

    def __init__(self, limits: ConnectionLimits = LIMITS) -> None:
        self.metrics = Metrics()
        self.asked: list[tuple[str, int]] = []
        self.left: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.scopes: list[Any] = []
        self._config = uvicorn.Config(
            self._app, interface="asgi3", lifespan="off", log_config=None, proxy_headers=False
        )
        self._config.load()
        self._protocol = connection_protocol(self.metrics, limits)
        self._state = ServerState()

    async def _app(self, scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        self.scopes.append(scope)
        length, more = 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                self.left.append(scope["path"])
                return
            length += len(message["body"])
            more = message["more_body"]
        self.asked.append((scope["path"], length))
        if scope["path"] == "/stream":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"more", "more_body": True})
            assert (await receive())["type"] == "http.disconnect"
            self.left.append("/stream")
            return
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    def connect(self) -> tuple[Any, Wire]:
        """Return a new connection's protocol and transport."""
        connection, wire = self._protocol(self._config, self._state, {}, asyncio.get_running_loop()), Wire()
        connection.connection_made(wire)
        return connection, wire

    def cuts(self, reason: str) -> float | None:
        """Return how many connections were cut for a reason."""
        return self.metrics.registry.get_sample_value("trailboss_connection_cuts_total", {"reason": reason})


async def turns() -> None:
    """Let tasks go as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


BODIES = st.lists(st.integers(0, 1_500), min_size=1, max_size=4)


@settings(max_examples=50)
@given(BODIES, st.lists(st.integers(1, 700), max_size=12), st.booleans())
def test_requests_are_the_same_when_they_come_in_other_pieces(
    bodies: list[int], sizes: list[int], is_chunked: bool
) -> None:
    """However they are cut, and whatever the limit of heads is: bodies are no heads."""

    async def test() -> None:
        desk = Desk()
        connection, wire = desk.connect()
        sent = b""
        for at, length in enumerate(bodies):
            body = bytes(length)
            framing = "transfer-encoding: chunked" if is_chunked else f"content-length: {length}"
            head = f"POST /{at} HTTP/1.1\r\nhost: a\r\n{framing}\r\nx: {'y' * 300}\r\n\r\n"
            if is_chunked:
                body = (b"%x\r\n%b\r\n" % (length, body) if length else b"") + b"0\r\n\r\n"
            sent += head.encode() + body
        for size in [*sizes, len(sent)]:
            piece, sent = sent[:size], sent[size:]
            if piece:
                connection.data_received(piece)
                await turns()
        assert desk.asked == [(f"/{at}", length) for at, length in enumerate(bodies)]
        assert wire.statuses == [204] * len(bodies)
        connection.connection_lost(None)

    asyncio.run(test())


def test_connection_is_lent_to_the_application_when_it_answers() -> None:
    """So that it can cut a reader who does not read."""

    async def test() -> None:
        desk = Desk()
        connection, wire = desk.connect()
        connection.data_received(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
        await turns()
        desk.scopes[0]["extensions"][ABORT]["abort"]()
        assert wire.is_aborted
        connection.connection_lost(None)

    asyncio.run(test())


def test_whoever_answers_is_told_when_the_client_goes_behind_another_request() -> None:
    """The first of several requests is the one that is answered."""

    async def test() -> None:
        desk = Desk()
        connection, _ = desk.connect()
        connection.data_received(b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\n" + b"GET /b HTTP/1.1\r\nhost: a\r\n\r\n")
        await turns()
        connection.connection_lost(None)
        await turns()
        assert desk.left == ["/stream"]

    asyncio.run(test())


def test_nothing_is_written_into_an_answer_when_garbage_follows_its_request() -> None:
    """Nobody could tell where the answer ends; before an answer has begun the refusal takes its place."""

    async def test() -> None:
        desk = Desk()
        connection, wire = desk.connect()
        connection.data_received(b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\n")
        await turns()
        before = bytes(wire.written)
        connection.data_received(b"garbage\r\n\r\n")
        await turns()
        assert (bytes(wire.written), wire.is_ended) == (before, True)
        connection.connection_lost(None)
        desk.may_answer.clear()
        connection, wire = desk.connect()
        connection.data_received(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\ngarbage\r\n\r\n")
        await turns()
        desk.may_answer.set()
        await turns()
        assert wire.statuses == [400]
        connection.connection_lost(None)
        assert desk.cuts("malformed") == 2

    asyncio.run(test())


def test_requests_are_refused_when_too_many_wait_behind_one() -> None:
    """The answer to the first is not given either: the connection is over."""

    async def test() -> None:
        desk = Desk()
        desk.may_answer.clear()
        connection, wire = desk.connect()
        connection.data_received(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n" * 5)
        await turns()
        assert wire.statuses == []
        connection.data_received(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
        desk.may_answer.set()
        await turns()
        assert wire.statuses == [429]
        assert desk.cuts("pipelined") == 1
        connection.connection_lost(None)

    asyncio.run(test())


def test_connection_is_refused_when_there_are_as_many_as_may_be() -> None:
    """When one is lost there is room for another."""

    async def test() -> None:
        desk = Desk()
        first, second = desk.connect(), desk.connect()
        third = desk.connect()
        assert (third[1].statuses, third[1].is_ended) == ([503], True)
        third[0].connection_lost(None)
        first[0].connection_lost(None)
        fourth = desk.connect()
        assert fourth[1].statuses == []
        for connection, _ in (second, fourth):
            connection.connection_lost(None)

    asyncio.run(test())


class Looks:
    """A loop's clock for the looks alone: they come when a test says so."""

    def __init__(self, patch: pytest.MonkeyPatch, loop: asyncio.AbstractEventLoop) -> None:
        self.waiting: list[Callable[[], None]] = []
        call_later = loop.call_later

        def later(delay: float, callback: Callable[..., None], *arguments: Any, **options: Any) -> Any:
            if delay == LIMITS.look_seconds:
                self.waiting.append(callback)
                return call_later(10_000, lambda: None)
            return call_later(delay, callback, *arguments, **options)

        patch.setattr(loop, "call_later", later)

    def look(self) -> None:
        """Have every connection looked at."""
        due, self.waiting = self.waiting, []
        for callback in due:
            callback()


SITUATIONS = {
    "nothing came": ([], None, [], "late head"),
    "a part of a head came": ([b"GET / HT"], None, [408], "late head"),
    "a part of a second head came": ([b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n", b"GET /b"], None, [204, 408], "late head"),
    "answers are not read": ([b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n"], 70_000, [204], "unread"),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_connection_is_cut_when_it_stands_where_it_stood(situation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the first look, but at the second; after the last words, at the next."""
    pieces, unread, statuses, why = SITUATIONS[situation]

    async def test() -> None:
        looks = Looks(monkeypatch, asyncio.get_running_loop())
        desk = Desk()
        connection, wire = desk.connect()
        for piece in pieces:
            connection.data_received(piece)
            await turns()
        if unread is not None:
            wire.unread = unread
            connection.pause_writing()
        looks.look()
        assert not wire.is_ended
        looks.look()
        assert (wire.is_ended, wire.statuses) == (True, statuses)
        for _ in range(2):
            looks.look()
        assert wire.is_aborted
        assert desk.cuts(why) == 1
        connection.connection_lost(None)

    asyncio.run(test())


def test_connection_is_left_alone_when_it_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sends one request after another, waits for the node, or fetches what it was answered, slowly."""

    async def test() -> None:
        looks = Looks(monkeypatch, asyncio.get_running_loop())
        desk = Desk()
        connection, wire = desk.connect()
        for _ in range(4):
            connection.data_received(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
            await turns()
            looks.look()
        desk.may_answer.clear()
        connection.data_received(b"GET /a HTTP/1.1\r\nhost: a\r\n\r\n")
        for _ in range(4):
            await turns()
            looks.look()
        connection.pause_writing()
        for unread in (300, 200, 100):
            wire.unread = unread
            looks.look()
        connection.resume_writing()
        looks.look()
        desk.may_answer.set()
        await turns()
        assert not wire.is_ended
        connection.connection_lost(None)

    asyncio.run(test())


def test_connection_ends_at_once_when_the_server_does_and_nothing_is_answered() -> None:
    """Also one that was refused and waits for its client to go."""

    async def test() -> None:
        desk = Desk()
        (idle, idle_wire), (refused, refused_wire) = desk.connect(), desk.connect()
        refused.data_received(b"garbage\r\n\r\n")
        for connection in (idle, refused):
            connection.shutdown()
        assert idle_wire.is_ended
        assert refused_wire.is_aborted
        for connection in (idle, refused):
            connection.connection_lost(None)

    asyncio.run(test())
