"""The limits: what they pass on unchanged, and what they refuse, with which code."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.api.limits import FAUCET_PER_MINUTE, HEADERS_BYTES_MAX, TokenBucket, limited
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
    """The limits before an application that reads a body and answers 200, and a clock that stands still."""

    def __init__(self, host: str = "127.0.0.1", **options: Any) -> None:
        self.now = 0.0
        self.metrics = Metrics()
        self.app = limited(self._app, NodeOptions(host=host, **options), self.metrics, clock=lambda: self.now)
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
        kind: str = "http",
        **headers: str | None,
    ) -> Answer:
        """Send a request whose body comes in pieces; headers as ``content_type=...``."""
        named: dict[str, str | None] = {"host": "localhost:4000", "connection": "keep-alive"}
        if pieces is not None:
            named |= {"content-length": str(sum(map(len, pieces)))}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [(name.encode(), value.encode("latin-1")) for name, value in named.items() if value is not None]
        scope = {"type": kind, "method": method, "path": path, "headers": lines}
        return asyncio.run(self.pass_on(scope, pieces or (b"",)))

    async def pass_on(self, scope: dict[str, Any], pieces: tuple[bytes, ...]) -> Answer:
        """Give a request to the application."""
        self._answer = answer = Answer()
        incoming = [
            {"type": "http.request", "body": piece, "more_body": at < len(pieces)}
            for at, piece in enumerate(pieces, start=1)
        ]

        async def receive() -> dict[str, Any]:
            if not incoming:
                await asyncio.Event().wait()
            return incoming.pop(0)

        async def send(message: Any) -> None:
            answer.messages.append(message)

        await self.app(scope, receive, send)
        return answer


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
    answer = asyncio.run(gate.pass_on(scope, (b"",)))
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
    for answer in (gate.ask(**page), gate.ask(host="example.org", **page)):
        assert answer.headers["access-control-allow-origin"] == "https://dashboard.example"
        assert answer.headers["vary"] == "Origin"
    assert gate.ask("POST", "/dev/mine", (b"{}",), **page, **JSON).status == 200
    asked = gate.ask("OPTIONS", "/dev/mine", access_control_request_method="POST", **page)
    assert (asked.status, asked.bodies) == (200, [])
    assert asked.headers["access-control-allow-methods"] == "GET, POST"
    assert "content-type" in asked.headers["access-control-allow-headers"]
    assert asked.headers["access-control-allow-origin"] == "https://dashboard.example"


def test_pages_may_not_read_when_their_origin_is_another() -> None:
    """Neither after a question before a change, nor without one."""
    gate = Gate(cors_origins=("https://dashboard.example",))
    asked = gate.ask("OPTIONS", "/dev/mine", access_control_request_method="POST", origin="https://other.example")
    assert (asked.status, asked.bodies) == (400, [])
    assert "access-control-allow-origin" not in asked.headers
    assert gate.ask("POST", "/dev/mine", origin="https://other.example").code == 4006


def test_all_pages_may_read_when_every_origin_is_allowed() -> None:
    """As the options say."""
    answer = Gate(cors_origins=("*",)).ask(origin="https://any.example")
    assert answer.headers["access-control-allow-origin"] == "*"


def test_request_is_refused_when_its_headers_are_too_long() -> None:
    """Together, not each alone."""
    answer = Gate().ask(a="x" * (HEADERS_BYTES_MAX // 2), b="x" * (HEADERS_BYTES_MAX // 2))
    assert (answer.status, answer.code) == (431, 4031)


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


# What is remembered of the last request


def test_page_of_another_origin_may_read_and_then_not_post() -> None:
    """What was let through with the same headers, to read, says nothing of what changes something."""
    gate = Gate()
    foreign = {"origin": "https://example.org"}
    assert gate.ask("GET", **foreign).status == 200
    assert gate.ask("POST", "/submit", **foreign).status == 403
    assert gate.ask("POST", "/submit").status == 200
    assert gate.ask("POST", "/submit", **foreign).status == 403


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_refused_headers_stay_refused_when_they_were_trailers_of_another_request(method: str) -> None:
    """The server adds the trailers of a body to the headers that were let through."""
    gate = Gate()
    headers = [(b"host", b"localhost:4000")]
    forged = [*headers, (b"host", b"example.org"), (b"origin", b"https://example.org")]

    def ask(lines: list[tuple[bytes, bytes]]) -> int:
        scope = {"type": "http", "method": method, "path": "/height", "headers": lines}
        return asyncio.run(gate.pass_on(scope, (b"",))).status

    assert ask(forged) == 400
    assert ask(headers) == 200
    headers += forged[1:]
    assert ask(forged) == 400


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


@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_answer_is_counted_once_when_it_ends_or_breaks_off(chunks: int) -> None:
    """With the status that its client has seen, also if its client left before anything came."""
    metrics = Metrics()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(chunks):
            await send({"type": "http.response.body", "body": b"chunk", "more_body": True})
        raise ConnectionResetError

    async def send(message: Any) -> None:
        pass

    scope = {"type": "http", "method": "GET", "path": "/events", "headers": [(b"host", b"localhost")]}
    with pytest.raises(ConnectionResetError):
        asyncio.run(limited(application, NodeOptions(), metrics)(scope, send, send))  # type: ignore[arg-type]
    count = metrics.registry.get_sample_value
    assert count("trailboss_requests_total", {"route": "none", "status": "200"}) == 1
    assert count("trailboss_request_seconds_count", {"route": "none"}) == 1
