"""Hostile bytes on the wire: every one of them is answered with 4xx and a code, or cut; and the node lives."""

import asyncio
import logging
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.node.wires import Reply, ask, converse, on_uvloop, read_replies, request, running_node
from trailboss.api import operations
from trailboss.api.operations import BODY_BYTES_MAX
from trailboss.api.routes.submission import SUBMISSION_BYTES_MAX

JSON = {"content_type": "application/json"}
HOST = b"Host: localhost\r\n"


@pytest.fixture(autouse=True)
def _no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing that a client sends is an error of the node's."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


async def lives(port: int) -> bool:
    """Return whether the node answers."""
    return (await ask(port, "GET", "/height")).status == 200


MALFORMED = {
    "noise": b"\x00\xff\x13\x37" * 64 + b"\r\n\r\n",
    "another version": b"GET /height HTTP/9.9\r\n" + HOST + b"\r\n",
    "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "greeting of TLS": bytes.fromhex("16030100a5010000a10303") + bytes(160),
    "unknown method": b"FROB /height HTTP/1.1\r\n" + HOST + b"\r\n",
    "method in small letters": b"get /height HTTP/1.1\r\n" + HOST + b"\r\n",
    "header without colon": b"GET /height HTTP/1.1\r\n" + HOST + b"nonsense\r\n\r\n",
    "blank before the colon": b"GET /height HTTP/1.1\r\nHost : localhost\r\n\r\n",
    "name with a blank": b"GET /height HTTP/1.1\r\n" + HOST + b"a b: c\r\n\r\n",
    "zero byte in a value": b"GET /height HTTP/1.1\r\n" + HOST + b"a: b\x00c\r\n\r\n",
    "line feed in a value": b"GET /height HTTP/1.1\r\n" + HOST + b"a: b\rc\r\n\r\n",
    "blank in the path": b"GET /hei ght HTTP/1.1\r\n" + HOST + b"\r\n",
    "bytes above ASCII in the path": b"GET /\xff\xfe HTTP/1.1\r\n" + HOST + b"\r\n",
    "length that is no number": b"POST /view HTTP/1.1\r\n" + HOST + b"Content-Length: ten\r\n\r\n",
    "negative length": b"POST /view HTTP/1.1\r\n" + HOST + b"Content-Length: -5\r\n\r\n",
    "length with a sign": b"POST /view HTTP/1.1\r\n" + HOST + b"Content-Length: +5\r\n\r\nabcde",
    "length beyond 64 bits": b"POST /view HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999999999999\r\n\r\n",
    "chunk that is no number": b"POST /view HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "chunk longer than it says": b"POST /view HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
}
SMUGGLED = {
    "length and chunks": b"POST /view HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": b"POST /view HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST /view HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "list of lengths": b"POST /view HTTP/1.1\r\n" + HOST + b"Content-Length: 4, 4\r\n\r\nabcd",
    "encoding that is none": b"POST /view HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "encoding after the chunks": b"POST /view HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "blank before the colon": b"POST /view HTTP/1.1\r\n" + HOST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "folded header": b"POST /view HTTP/1.1\r\n" + HOST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "line feeds alone": b"POST /view HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked\n\n0\n\n",
    "zero byte before the name": b"POST /view HTTP/1.1\r\n" + HOST + b"\x00Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}
HIDDEN = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"
"""What a smuggler wants to have answered as a request of its own."""


@on_uvloop
async def test_bytes_are_refused_when_they_are_no_request() -> None:
    """All with 4xx; the connection ends."""
    async with running_node() as (_, port):
        for name, sent in MALFORMED.items():
            replies = await converse(port, sent)
            assert [reply.status // 100 for reply in replies] == [4], (name, replies)
        assert await lives(port)


@on_uvloop
async def test_request_is_refused_when_servers_would_disagree_where_it_ends() -> None:
    """Nothing that is hidden behind it is answered as a request, but with 4xx at most."""
    async with running_node() as (_, port):
        for name, sent in SMUGGLED.items():
            replies = await converse(port, sent + HIDDEN)
            assert replies, name
            assert all(400 <= reply.status < 500 for reply in replies), (name, replies)
            assert all("/smuggled" not in reply.body.decode() for reply in replies), name
        assert await lives(port)


@on_uvloop
async def test_body_is_refused_when_it_is_too_large() -> None:
    """Announced or in chunks, sent to the end or not; afterwards the connection is as good as before."""
    async with running_node() as (_, port):
        for path, limit in (("/submit", SUBMISSION_BYTES_MAX), ("/view", BODY_BYTES_MAX)):
            large = bytes(limit + 1)
            sent = request("POST", path, large, **JSON) + request("GET", "/height", connection="close")
            assert [reply.status for reply in await converse(port, sent)] == [413, 200]
            chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (large[: limit // 2],) * 3)
            head = request("POST", path, transfer_encoding="chunked", **JSON).replace(b"content-length: 0\r\n", b"")
            replies = await converse(port, head + chunks + b"0\r\n\r\n" + request("GET", "/height", connection="close"))
            assert [(reply.status, reply.status == 413 and reply.code) for reply in replies] == [
                (413, 4013),
                (200, False),
            ]
        # What is a body is no head, in however many pieces both come.
        large = request("POST", "/dev/mine", bytes(100_000), **JSON) + request("GET", "/none", connection="close")
        pieces = [large[at : at + 33_000] for at in range(0, len(large), 33_000)]
        assert [reply.status for reply in await converse(port, *pieces)] == [400, 404]
        waits = request("POST", "/view", content_length="9999999", expect="100-continue", **JSON)
        (reply,) = await converse(port, waits)
        assert (reply.status, reply.code, reply.headers["connection"]) == (413, 4013, "close")
        assert await lives(port)


@on_uvloop
async def test_body_comes_through_when_it_is_sent_in_chunks_or_after_leave() -> None:
    """What is allowed works: the guard only counts."""
    async with running_node() as (_, port):
        chunked = request("POST", "/dev/mine", transfer_encoding="chunked", **JSON)
        chunked = chunked.replace(b"content-length: 0\r\n", b"") + b'c\r\n{"blocks": 2\r\n1\r\n}\r\n0\r\n\r\n'
        replies = await converse(port, chunked + request("GET", "/none", connection="close"))
        assert [reply.status for reply in replies] == [200, 404]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request("POST", "/dev/mine", content_length="13", expect="100-continue", **JSON))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        writer.write(b'{"blocks": 3}')
        assert [each.status for each in await read_replies(reader, 1)] == [200]
        writer.close()
        assert b'"height":5' in (await ask(port, "GET", "/height")).body


@on_uvloop
async def test_request_is_refused_when_its_body_arrives_too_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is told, and the connection ends."""
    monkeypatch.setattr(operations, "BODY_SECONDS", 0.3)
    async with running_node() as (_, port):
        (reply,) = await converse(port, request("POST", "/view", b"{", **JSON | {"content_length": "100"}))
        assert (reply.status, reply.code, reply.headers["connection"]) == (408, 4009, "close")
        assert await lives(port)


@on_uvloop
async def test_requests_are_answered_in_order_when_they_come_at_once() -> None:
    """On one connection, one after the other."""
    async with running_node() as (_node, port):
        few = request("GET", "/height") * 20 + request("GET", "/none", connection="close")
        assert [reply.status for reply in await converse(port, few)] == [200] * 20 + [404]
        assert await lives(port)


MISUSES: tuple[tuple[str, dict[str, str], int, int], ...] = (
    ("GET", {"host": "example.org"}, 421, 4021),
    ("GET", {"host": "127.0.0.1.nip.io:4000"}, 421, 4021),
    ("POST", {"content_type": "text/plain"}, 415, 4015),
    ("POST", {"content_type": "application/x-www-form-urlencoded"}, 415, 4015),
    ("POST", {"origin": "https://example.org", **JSON}, 403, 4006),
)


@on_uvloop
async def test_request_is_refused_when_a_page_would_misuse_the_browser() -> None:
    """Names that point here, forms, other origins: also the development calls are out of reach."""
    async with running_node() as (node, port):
        before = node.view.height
        for method, headers, status, code in MISUSES:
            for path in ("/dev/mine", "/submit") if status == 415 else ("/dev/mine", "/submit", "/height", "/"):
                reply = await ask(port, method, path, b"" if method == "GET" else b'{"blocks": 1}', **headers)
                assert (reply.status, reply.code) == (status, code)
        assert node.view.height == before


@on_uvloop
async def test_node_lives_when_it_is_flooded_with_garbage() -> None:
    """Random bytes, broken requests and honest ones, many at a time: nothing but 4xx, and the honest are served."""
    dice = random.Random(6)

    def broken() -> bytes:
        whole = bytearray(
            dice.choice(
                [*MALFORMED.values(), *SMUGGLED.values(), request("POST", "/submit", dice.randbytes(99), **JSON)]
            )
        )
        for _ in range(dice.randrange(4)):
            whole[dice.randrange(len(whole))] = dice.randrange(256)
        return bytes(whole[: dice.randrange(len(whole))]) if dice.random() < 0.3 else bytes(whole)

    async def attack(port: int, count: int) -> list[Reply]:
        return [reply for _ in range(count) for reply in await converse(port, broken(), ends=True)]

    async def work(port: int, count: int) -> list[int]:
        return [(await ask(port, "GET", "/status")).status for _ in range(count)]

    async with running_node() as (node, port):
        jobs: list[Any] = [attack(port, 25) for _ in range(8)]
        *attacks, honest = await asyncio.gather(*jobs, work(port, 40))
        assert honest == [200] * 40
        statuses = {reply.status for replies in attacks for reply in replies}
        assert all(400 <= status < 500 for status in statuses - {200}), statuses
        assert 400 in statuses
        await node.development.mine(1)
        assert node.view.height == 1
