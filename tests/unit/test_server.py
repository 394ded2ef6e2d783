"""The HTTP server: what is written in one turn leaves together, and the loop looks for the next request a while."""

import asyncio
from typing import Any

from uvicorn import Config
from uvicorn.server import ServerState

from tests.event_loop import on_loop
from trailboss.server import BUFFERED_BYTES_MAX, POLL_SECONDS, BufferedHttp, BusyPoll, WriteBuffer


class Wire:
    """A transport that notes what is written to it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, octets: bytes) -> None:
        assert not self.is_closed
        self.written.append(octets)

    def get_extra_info(self, name: str) -> None:
        """There is none."""

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


@on_loop
async def test_writes_of_one_turn_leave_together_and_a_long_one_at_once() -> None:
    """In their order."""
    wire: Any = Wire()
    buffer = WriteBuffer(wire, asyncio.get_running_loop())
    buffer.write(b"head ")
    buffer.write(b"body")
    assert wire.written == []
    await asyncio.sleep(0)
    assert wire.written == [b"head body"]
    buffer.write(bytes(BUFFERED_BYTES_MAX))
    buffer.write(b"more")
    assert wire.written[1:] == [bytes(BUFFERED_BYTES_MAX) + b"more"]


@on_loop
async def test_complete_answer_leaves_at_once_and_once() -> None:
    """What comes after it leaves with the turn."""
    wire: Any = Wire()
    buffer = WriteBuffer(wire, asyncio.get_running_loop())
    buffer.write(b"answer")
    buffer.flush()
    assert wire.written == [b"answer"]
    buffer.write(b"next")
    await asyncio.sleep(0)
    assert wire.written == [b"answer", b"next"]


@on_loop
async def test_protocol_sends_an_answer_before_the_application_goes_on() -> None:
    """Head and body in one, and not a turn of the loop later."""
    wire, seen = Wire(), []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
        seen.extend(wire.written)

    config = Config(application, lifespan="off", log_config=None)  # type: ignore[arg-type]
    config.load()
    poll = BusyPoll(asyncio.get_running_loop(), lambda: False)
    protocol = BufferedHttp(poll, config, ServerState(), {})
    protocol.connection_made(wire)  # type: ignore[arg-type]
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asyncio.gather(*protocol.tasks)
    [answer] = seen
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nok")
    protocol.timeout_keep_alive_task.cancel()


@on_loop
async def test_close_sends_what_waits_and_nothing_follows_it() -> None:
    """A connection that its client has ended takes nothing any more."""
    wire: Any = Wire()
    buffer = WriteBuffer(wire, asyncio.get_running_loop())
    buffer.write(b"last words")
    buffer.close()
    assert (wire.written, buffer.is_closing()) == ([b"last words"], True)
    buffer.write(b"too late")
    await asyncio.sleep(0)
    assert wire.written == [b"last words"]


@on_loop
async def test_loop_polls_for_a_moment_after_an_answer_and_not_while_it_may_not() -> None:
    """Each answer begins the moment again."""
    now, asked, may_poll = 0.0, 0, True

    def ask() -> bool:
        nonlocal asked
        asked += 1
        return may_poll

    async def turns() -> int:
        nonlocal asked
        asked = 0
        for _ in range(3):
            await asyncio.sleep(0)
        return asked

    poll = BusyPoll(asyncio.get_running_loop(), ask, lambda: now)
    poll.begin()
    assert await turns() == 3
    now = POLL_SECONDS / 2
    poll.begin()
    now = POLL_SECONDS
    assert await turns() == 3
    now = 2 * POLL_SECONDS
    assert await turns() == 0
    poll.begin()
    may_poll = False
    assert await turns() == 1
