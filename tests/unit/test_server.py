"""The transport of the HTTP server: what is written in one turn of the event loop leaves together."""

import asyncio
from typing import Any

from tests.event_loop import on_loop
from trailboss.server import BUFFERED_BYTES_MAX, WriteBuffer


class Wire:
    """A transport that notes what is written to it."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_closed = False

    def write(self, octets: bytes) -> None:
        assert not self.is_closed
        self.written.append(octets)

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
