"""The guard: what it lets through as it came, and what it refuses, with which code."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.api import guard
from trailboss.api.guard import BODY_BYTES_MAX, FAUCET_PER_MINUTE, SUBMIT_BYTES_MAX, Guard, TokenBucket
from trailboss.node.metrics import Metrics
from trailboss.node.options import NodeOptions

JSON = {"content-type": "application/json"}


@dataclass
class Answer:
    """What a client gets.

    Attributes:
        messages: What the server was given to send.
        bodies: What the application read, if it was asked.
    """

    messages: list[dict[str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def status(self) -> int:
        """The status."""
        return self.messages[0]["status"]

    @property
    def headers(self) -> dict[str, str]:
        """The headers."""
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def code(self) -> int:
        """The code of the error."""
        error = json.loads(self.messages[1]["body"])["error"]
        assert set(error) == {"code", "slug", "what", "why", "fix", "context"}
        return error["code"]


class Gate:
    """A guard before an application that reads a body and answers 200, a clock held in the hand."""

    def __init__(self, host: str = "127.0.0.1", **options: Any) -> None:
        self.now = 0.0
        held = {name: options.pop(name) for name in ("body_seconds", "held_bytes_max") if name in options}
        self.metrics = Metrics()
        self.guard = Guard(self._app, NodeOptions(host=host, **options), self.metrics, clock=lambda: self.now, **held)
        self._answer = Answer()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            self._answer.bodies.append(b"")
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self._answer.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-app", b"1")]})
        await send({"type": "http.response.body", "body": b"ok"})

    def ask(
        self,
        method: str = "GET",
        path: str = "/height",
        pieces: tuple[bytes, ...] | None = None,
        *,
        ends: bool = True,
        kind: str = "http",
        **headers: str | None,
    ) -> Answer:
        """Send a request whose body comes in pieces, and perhaps not to its end; headers as ``content_type=...``."""
        named: dict[str, str | None] = {"host": "localhost:4000", "connection": "keep-alive"}
        if pieces is not None:
            named |= {"content-length": str(sum(map(len, pieces)))}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [(name.encode(), value.encode("latin-1")) for name, value in named.items() if value is not None]
        scope = {"type": kind, "method": method, "path": path, "headers": lines}
        return asyncio.run(self.pass_on(scope, pieces or (b"",), ends=ends))

    async def pass_on(self, scope: dict[str, Any], pieces: tuple[bytes, ...], *, ends: bool) -> Answer:
        """Give a request to the guard."""
        self._answer = answer = Answer()
        incoming = [
            {"type": "http.request", "body": piece, "more_body": not ends or at < len(pieces)}
            for at, piece in enumerate(pieces, start=1)
        ]

        async def receive() -> dict[str, Any]:
            if not incoming:
                await asyncio.Event().wait()
            return incoming.pop(0)

        async def send(message: Any) -> None:
            answer.messages.append(message)

        await self.guard(scope, receive, send)
        return answer


# Bodies


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=6), st.booleans())
def test_body_comes_through_as_it_came_when_it_is_small(pieces: list[bytes], is_chunked: bool) -> None:
    """In however many pieces, announced or not; and nothing of it is held afterwards."""
    gate = Gate(held_bytes_max=300)
    for _ in range(3):
        length = {"content_length": None, "transfer_encoding": "chunked"} if is_chunked else {}
        answer = gate.ask("POST", "/submit", tuple(pieces), content_type="application/octet-stream", **length)
        assert (answer.status, answer.bodies) == (200, [b"".join(pieces)])


@pytest.mark.parametrize(
    ("path", "limit"), [("/submit", SUBMIT_BYTES_MAX), ("/submit_wait", SUBMIT_BYTES_MAX), ("/view", BODY_BYTES_MAX)]
)
@pytest.mark.parametrize("is_chunked", [False, True])
def test_body_is_refused_when_it_is_too_large(path: str, limit: int, is_chunked: bool) -> None:
    """One byte more than the limit, as announced or as counted while it comes; the limit itself is let through."""
    gate = Gate()
    length = {"content_length": None, "transfer_encoding": "chunked"} if is_chunked else {}
    piece = bytes(limit // 2)
    assert gate.ask("POST", path, (piece, piece), **JSON, **length).status == 200
    answer = gate.ask("POST", path, (piece, piece, b"x"), ends=not is_chunked, **JSON, **length)
    assert (answer.status, answer.code, answer.bodies) == (413, 4013, [])
    # Nothing is held of what was refused.
    assert gate.guard._held == 0


def test_body_is_not_read_when_it_announces_too_much() -> None:
    """It is refused at once."""
    answer = Gate().ask("POST", "/view", (b"",), ends=False, content_length=str(10**15), **JSON)
    assert (answer.status, answer.code) == (413, 4013)


def test_body_is_refused_when_it_does_not_arrive() -> None:
    """The client is told, and the connection ends."""
    gate = Gate(body_seconds=0.01)
    answer = gate.ask("POST", "/view", (b"a", b"b"), ends=False, content_length="100", **JSON)
    assert (answer.status, answer.code, answer.headers["connection"]) == (408, 4009, "close")
    assert gate.guard._held == 0


def test_nothing_is_answered_when_the_client_goes_within_a_body() -> None:
    """The application never hears of it."""
    gate = Gate()
    answer = Answer()
    messages = [
        {"type": "http.request", "body": b"a", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: Any) -> None:
        answer.messages.append(message)

    lines = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"9")]
    asyncio.run(gate.guard({"type": "http", "method": "POST", "path": "/view", "headers": lines}, receive, send))
    assert (answer.messages, gate._answer.bodies, gate.guard._held) == ([], [], 0)


def test_body_is_refused_when_too_many_are_in_memory() -> None:
    """Together they are bounded, not each alone."""

    async def test() -> None:
        gate = Gate(held_bytes_max=10)
        lines = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"8")]
        scope = {"type": "http", "method": "POST", "path": "/view", "headers": lines}
        held = asyncio.create_task(gate.pass_on(dict(scope), (b"12345678",), ends=False))
        await asyncio.sleep(0)
        refused = await gate.pass_on(dict(scope), (b"12345678",), ends=True)
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (503, 4503, "1")
        held.cancel()
        await asyncio.gather(held, return_exceptions=True)
        assert (await gate.pass_on(dict(scope), (b"12345678",), ends=True)).status == 200

    asyncio.run(test())


def test_connection_is_closed_when_the_client_waits_for_leave_to_send() -> None:
    """It will not send what was refused, so the next request would be taken for it."""
    answer = Gate().ask("POST", "/view", (b"",), content_length=str(10**9), expect="100-continue", **JSON)
    assert (answer.status, answer.headers["connection"]) == (413, "close")


# Media types


@pytest.mark.parametrize(
    "media_type",
    [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "json",
     "application/json, text/plain", "text/plain; application/json"],
)  # fmt: skip
def test_body_is_refused_when_a_page_could_send_it_unasked(media_type: str | None) -> None:
    """Browsers send forms and plain text to anybody."""
    answer = Gate().ask("POST", "/dev/mine", (b"{}",), content_type=media_type)
    assert (answer.status, answer.code) == (415, 4015)


@pytest.mark.parametrize(
    "media_type", ["application/json", "Application/JSON; charset=utf-8", "application/octet-stream"]
)
def test_body_is_read_when_its_type_is_one_of_ours(media_type: str) -> None:
    """Parameters and capitals do not matter."""
    assert Gate().ask("POST", "/submit", (b"{}",), content_type=media_type).status == 200


def test_media_type_does_not_matter_when_there_is_no_body() -> None:
    """A call without members has nothing to say."""
    assert Gate().ask("POST", "/dev/snapshot").status == 200


# Hosts and origins


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:4000", "127.0.0.1", "127.0.0.1:9", "[::1]:4000", "[::1]", "127.8.9.1"]
)
def test_request_is_let_through_when_it_is_for_this_machine(host: str) -> None:
    """Whatever the port: tunnels have others."""
    assert Gate().ask(host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "example.org",
        "example.org:4000",
        "localhost.example.org",
        "localhost@example.org",
        "127.0.0.1.example.org",
        "0.0.0.0:4000",
        "10.0.0.1",
        "localhost:4000:1",
        "localhost:",
        "[::2]",
        "::1",
        "127.1",
        "2130706433",
        "localhost,localhost",
        "localhost\xa0",
        "",
    ],
)
def test_request_is_refused_when_it_is_for_another_host(host: str) -> None:
    """A name that points here may belong to a page that tries to reach what only this machine may."""
    for answer in (Gate().ask(host=host), Gate().ask("POST", "/dev/mine", (b"{}",), host=host, **JSON)):
        assert (answer.status, answer.code) == (421, 4021)


def test_any_host_is_let_through_when_others_reach_the_node() -> None:
    """It cannot know the names that it has."""
    gate = Gate(host="0.0.0.0", rate_limit=0)
    assert gate.ask(host="node.example.org").status == 200


def test_bound_name_is_let_through_when_it_is_what_the_node_listens_on() -> None:
    """Another address of this machine alone."""
    gate = Gate(host="127.5.5.5")
    assert gate.ask(host="127.5.5.5:4000").status == 200


def test_request_is_refused_when_it_does_not_name_one_host() -> None:
    """None or two: proxies and servers would disagree which it is."""
    assert (Gate().ask(host=None).status, Gate().ask(host=None).code) == (400, 4000)
    gate = Gate(host="0.0.0.0")
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"a"), (b"host", b"b")]}
    answer = asyncio.run(gate.pass_on(scope, (b"",), ends=True))
    assert (answer.status, answer.code) == (400, 4000)


@pytest.mark.parametrize(
    "origin", ["https://example.org", "null", "http://localhost:4001", "http://localhost:4000.example.org", ""]
)
def test_change_is_refused_when_a_foreign_page_asks(origin: str) -> None:
    """Also without a body; but it may look, as far as its browser lets it."""
    gate = Gate()
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = gate.ask(method, "/dev/snapshot", origin=origin)
        assert (answer.status, answer.code, answer.bodies) == (403, 4006, [])
    looked = gate.ask("GET", "/height", origin=origin)
    assert looked.status == 200
    assert "access-control-allow-origin" not in looked.headers


def test_change_is_let_through_when_the_nodes_own_page_asks() -> None:
    """The explorer's pages have the node's own host."""
    assert Gate().ask("POST", "/dev/mine", (b"{}",), origin="http://localhost:4000", **JSON).status == 200


def test_pages_may_read_when_their_origin_is_allowed() -> None:
    """The answers say so, refusals too, and so does the answer to the question before a change."""
    gate = Gate(cors_origins=("https://Dashboard.example",))
    page = {"origin": "https://dashboard.example"}
    for answer in (gate.ask(**page), gate.ask("POST", "/view", (b"{}",), content_type="text/plain", **page)):
        assert answer.headers["access-control-allow-origin"] == "https://dashboard.example"
        assert answer.headers["vary"] == "origin"
    assert gate.ask("POST", "/dev/mine", (b"{}",), **page, **JSON).status == 200
    asked = gate.ask("OPTIONS", "/dev/mine", access_control_request_method="POST", **page)
    assert (asked.status, asked.bodies) == (204, [])
    assert asked.headers["access-control-allow-methods"] == "GET, POST"
    assert "content-type" in asked.headers["access-control-allow-headers"]
    assert asked.headers["access-control-allow-origin"] == "https://dashboard.example"


def test_pages_may_not_read_when_their_origin_is_another() -> None:
    """Their question goes on to the application, which has no such method."""
    gate = Gate(cors_origins=("https://dashboard.example",))
    asked = gate.ask("OPTIONS", "/dev/mine", access_control_request_method="POST", origin="https://other.example")
    assert asked.bodies == [b""]
    assert "access-control-allow-origin" not in asked.headers
    assert gate.ask("POST", "/dev/mine", origin="https://other.example").code == 4006


def test_all_pages_may_read_when_every_origin_is_allowed() -> None:
    """Whoever says so means it."""
    answer = Gate(cors_origins=("*",)).ask(origin="https://any.example")
    assert answer.headers["access-control-allow-origin"] == "https://any.example"


@pytest.mark.parametrize(
    ("headers", "code"),
    [({"host": "example.org"}, 4021), ({"origin": "https://example.org"}, 4006), ({"host": None}, 4000)],
)
def test_socket_is_refused_when_a_foreign_page_opens_it(headers: dict[str, str | None], code: int) -> None:
    """Browsers let every page open a socket to everybody; the answer to it is theirs to give."""
    refused = Gate().ask(path="/socket", kind="websocket", **headers)
    assert (refused.messages, refused.bodies) == ([{"type": "websocket.close", "code": 1008}], [])
    gate = Gate()
    lines = [(b"host", b"example.org")]
    scope = {"type": "websocket", "path": "/", "headers": lines, "extensions": {guard.DENIAL: {}}}
    denied = asyncio.run(gate.pass_on(scope, (b"",), ends=True))
    assert [each["type"] for each in denied.messages] == [
        "websocket.http.response.start",
        "websocket.http.response.body",
    ]
    assert (denied.status, denied.code) == (421, 4021)


def test_socket_is_let_through_when_the_nodes_own_page_opens_it() -> None:
    """With an origin of its own host, or from a program."""
    own = Gate().ask(path="/socket", kind="websocket", origin="http://localhost:4000")
    assert (own.messages, own.bodies) == ([], [b""])
    assert Gate().ask(path="/socket", kind="websocket").bodies == [b""]


def test_lifespan_is_passed_on() -> None:
    """It is no request."""
    assert Gate().ask(kind="lifespan", host=None).bodies == [b""]


# Rates


def test_requests_are_refused_when_there_are_too_many() -> None:
    """As many as a second allows at once, then as they come; the answer says when."""
    gate = Gate(rate_limit=3)
    assert [gate.ask().status for _ in range(5)] == [200, 200, 200, 429, 429]
    refused = gate.ask()
    assert (refused.code, refused.headers["retry-after"]) == (4029, "1")
    gate.now += 1 / 3
    assert [gate.ask().status for _ in range(2)] == [200, 429]
    gate.now += 1_000
    assert [gate.ask().status for _ in range(4)] == [200, 200, 200, 429]


@pytest.mark.parametrize("path", ["/explorer/assets/a.js", "/explorer/stream", "/health", "/metrics"])
def test_request_is_not_counted_when_it_belongs_to_the_explorer_or_watches_the_node(path: str) -> None:
    """A page loads its files, and a flood must not shut out those who watch."""
    gate = Gate(rate_limit=1)
    assert [gate.ask(path=path).status for _ in range(4)] == [200] * 4
    assert gate.ask().status == 200


def test_faucet_is_shut_when_it_was_asked_too_often() -> None:
    """Five times a minute, whatever else the node answers."""
    gate = Gate()
    asked = [gate.ask("POST", "/faucet", (b"{}",), **JSON) for _ in range(FAUCET_PER_MINUTE + 1)]
    assert [each.status for each in asked] == [200] * FAUCET_PER_MINUTE + [429]
    assert asked[-1].headers["retry-after"] == "12"
    gate.now += 12
    assert [gate.ask("POST", "/faucet", (b"{}",), **JSON).status for _ in range(2)] == [200, 429]
    assert gate.ask().status == 200


@given(st.integers(1, 20), st.lists(st.floats(0, 2), max_size=60))
def test_bucket_gives_no_more_than_its_rate_when_it_is_asked_at_any_time(rate: int, waits: list[float]) -> None:
    """Over any stretch of time: what it holds, and what has come since; and it says how long to wait."""
    now = 0.0
    bucket = TokenBucket(rate=rate, depth=rate, clock=lambda: now)
    taken: list[float] = []
    for wait in waits:
        now += wait
        left = bucket.take()
        assert 0 <= left <= 1 / rate
        if not left:
            taken.append(now)
            assert all(len(taken) - at <= rate + (now - since) * rate + 1e-6 for at, since in enumerate(taken))
        else:
            now += left + 1e-9
            assert bucket.take() == 0
            taken.append(now)


# Counting


def test_answers_are_counted_when_they_are_given() -> None:
    """By status; those that the guard gives too, under no path."""
    gate = Gate()
    gate.ask()
    gate.ask(host="example.org")
    count = gate.metrics.registry.get_sample_value
    assert count("trailboss_requests_total", {"route": "none", "status": "200"}) == 1
    assert count("trailboss_requests_total", {"route": "none", "status": "421"}) == 1
    assert count("trailboss_request_seconds_count", {"route": "none"}) == 2
