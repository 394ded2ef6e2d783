"""The guard: the outermost layer of the HTTP application, which lets no request in that could harm.

A body is in memory as a whole before anybody sees it, counted while it comes, so whoever sends one slowly, or without
end, holds nobody up. A node for this machine alone answers to this machine's names alone, and pages of other origins
change nothing: a browser would otherwise lend its reach to every page that it shows.

Decision: D-73
"""

import asyncio
import time
from collections.abc import Callable
from math import ceil
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trailboss.api.errors import HttpError, HttpReason, error_body
from trailboss.api.headers import RequestHead
from trailboss.node.metrics import Metrics
from trailboss.node.options import NodeOptions

BODY_BYTES_MAX: Final = 2**20
SUBMIT_BYTES_MAX: Final = 2**19
HELD_BYTES_MAX: Final = 2**26
"""Bytes of bodies that are in memory at a time, of all requests together."""
BODY_SECONDS: Final = 10.0
FAUCET_PER_MINUTE: Final = 5
SECONDS_PER_MINUTE: Final = 60
SUBMIT: Final = "/submit"
FAUCET: Final = "/faucet"
UNLIMITED: Final = ("/explorer/assets/", "/explorer/stream", "/health", "/metrics")
"""Beginnings of paths that the rate limit does not count: what a page loads, and those by which a node is watched."""
CHANGING: Final = frozenset(("POST", "PUT", "PATCH", "DELETE"))
UNROUTED: Final = "none"
JSON: Final = (b"content-type", b"application/json")
CLOSE: Final = (b"connection", b"close")
PREFLIGHT_HEADERS: Final = (
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"content-type, last-event-id"),
    (b"access-control-max-age", b"600"),
)
NO_CONTENT: Final = 204
POLICY_VIOLATION: Final = 1008
"""WebSocket's code for a connection that breaks a rule of the server."""
DENIAL: Final = "websocket.http.response"

Clock = Callable[[], float]


class TokenBucket:
    """So many things a second, and at once as many as could have been before.

    Examples:
        >>> now = 0.0
        >>> bucket = TokenBucket(rate=2, depth=2, clock=lambda: now)
        >>> [bucket.take() for _ in range(3)]
        [0.0, 0.0, 0.5]
        >>> now = 0.5
        >>> bucket.take()
        0.0
    """

    def __init__(self, *, rate: float, depth: float, clock: Clock) -> None:
        """Begin with a full bucket.

        Args:
            rate: Tokens that come a second, more than 0.
            depth: Tokens that it holds, at least 1.
            clock: Seconds, never going back.
        """
        self._rate = rate
        self._depth = depth
        self._clock = clock
        self._tokens = depth
        self._at = clock()

    def take(self) -> float:
        """Take a token and return 0; if there is none, return the seconds until there is one."""
        now = self._clock()
        self._tokens = min(self._depth, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
        self._tokens -= 1
        return 0.0


class Guard:
    """Lets requests through to an application, or refuses them.

    What is refused before its body has come is answered at once; the server reads on and forgets the body.
    """

    def __init__(
        self,
        app: ASGIApp,
        options: NodeOptions,
        metrics: Metrics,
        *,
        clock: Clock = time.monotonic,
        body_seconds: float = BODY_SECONDS,
        held_bytes_max: int = HELD_BYTES_MAX,
    ) -> None:
        """Stand before an application.

        Args:
            app: The application.
            options: How the node runs: where it listens, how much it answers, whose pages may read.
            metrics: Counts the answers.
            clock: Seconds, never going back.
            body_seconds: Time that a body may take to arrive.
            held_bytes_max: Bytes of bodies that are in memory at a time.
        """
        self._app = app
        self._metrics = metrics
        self._clock = clock
        self._body_seconds = body_seconds
        self._held_max = held_bytes_max
        self._is_local = options.is_loopback
        self._bound = options.host
        self._origins = frozenset(map(str.lower, options.cors_origins))
        rate = options.rate_limit
        self._requests = TokenBucket(rate=rate, depth=rate, clock=clock) if rate else None
        self._faucet = TokenBucket(rate=FAUCET_PER_MINUTE / SECONDS_PER_MINUTE, depth=FAUCET_PER_MINUTE, clock=clock)
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, let a socket through, or pass on what concerns the application alone."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._open_socket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    # Requests

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, head, body = self._clock(), RequestHead(scope), bytearray()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", UNROUTED)
                self._metrics.answered(route, message["status"], self._clock() - began)
                if self._origins:
                    message["headers"] = [*message.get("headers", ()), *self._sharing(head)]
            await send(message)

        try:
            self._check(scope, head)
            if head.is_preflight and head.is_shared_with(self._origins):
                await _send(answer, NO_CONTENT, PREFLIGHT_HEADERS)
                return
            if head.has_body:
                if not await self._read_body(scope, head, receive, body):
                    return
                receive = _replay(bytes(body), receive)
        except HttpError as error:
            # Who waits for leave to send, or does not send, will not send on; all others are let to finish.
            closes = head.expects_leave or error.reason is HttpReason.SLOW_REQUEST
            await _refuse(error, answer, (CLOSE,) if closes else ())
        else:
            await self._app(scope, receive, answer)
        finally:
            self._held -= len(body)

    def _check(self, scope: Scope, head: RequestHead) -> None:
        """Check what the head of a request tells.

        Raises:
            HttpError: With what is wrong.
        """
        path, is_changing = scope["path"], scope["method"] in CHANGING
        head.check_host(is_local=self._is_local, bound=self._bound)
        if self._requests is not None and not path.startswith(UNLIMITED):
            _check_rate(self._requests)
        if is_changing:
            head.check_origin(self._origins)
        if is_changing and head.has_body:
            head.check_media_type()
        if is_changing and path == FAUCET:
            _check_rate(self._faucet)

    async def _read_body(self, scope: Scope, head: RequestHead, receive: Receive, body: bytearray) -> bool:
        """Append a body, as it comes, to bytes that are held; return whether it has come, or the client has gone.

        Raises:
            HttpError: ``TOO_LARGE``; ``SLOW_REQUEST``; ``UNAVAILABLE`` if too many bodies are in memory.
        """
        limit = SUBMIT_BYTES_MAX if scope["path"].startswith(SUBMIT) else BODY_BYTES_MAX
        if head.length > limit:
            raise _too_large(limit)
        is_whole = False
        try:
            async with asyncio.timeout(self._body_seconds):
                while not is_whole:
                    message = await receive()
                    if message["type"] != "http.request":
                        return False
                    self._hold(body, message.get("body", b""), limit)
                    is_whole = not message.get("more_body", False)
        except TimeoutError:
            what = f"the body is not there after {self._body_seconds:g} seconds"
            raise HttpError(HttpReason.SLOW_REQUEST, what) from None
        return True

    def _hold(self, body: bytearray, piece: bytes, limit: int) -> None:
        if len(body) + len(piece) > limit:
            raise _too_large(limit)
        if self._held + len(piece) > self._held_max:
            what = f"{self._held:,} bytes of requests are in memory already"
            raise HttpError(HttpReason.UNAVAILABLE, what, headers={"Retry-After": "1"})
        body += piece
        self._held += len(piece)

    def _sharing(self, head: RequestHead) -> list[tuple[bytes, bytes]]:
        """Return the headers that let a browser hand an answer to a page of another origin, or not."""
        headers = [(b"vary", b"origin")]
        if head.origin is not None and head.is_shared_with(self._origins):
            headers.append((b"access-control-allow-origin", head.origin.encode("latin-1")))
            headers.append((b"access-control-expose-headers", b"retry-after"))
        return headers

    # Sockets

    async def _open_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = RequestHead(scope)
        try:
            head.check_host(is_local=self._is_local, bound=self._bound)
            head.check_origin(self._origins)
        except HttpError as error:
            self._metrics.answered(UNROUTED, error.reason.status, 0)
            await receive()
            if DENIAL in scope.get("extensions", {}):
                await _refuse(error, send, kind=DENIAL)
            else:
                await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        else:
            await self._app(scope, receive, send)


def _check_rate(bucket: TokenBucket) -> None:
    """Take a token.

    Raises:
        HttpError: ``TOO_MANY_REQUESTS`` if there is none.
    """
    wait = ceil(bucket.take())
    if wait:
        what = f"there were too many requests, the next one is answered in {wait} s"
        raise HttpError(HttpReason.TOO_MANY_REQUESTS, what, headers={"Retry-After": str(wait)}, seconds=wait)


def _too_large(limit: int) -> HttpError:
    return HttpError(HttpReason.TOO_LARGE, f"the body has more than {limit:,} bytes", bytes_max=limit)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that has come, and then whatever comes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


async def _refuse(
    error: HttpError, send: Send, headers: tuple[tuple[bytes, bytes], ...] = (), kind: str = "http.response"
) -> None:
    own = ((name.lower().encode(), value.encode()) for name, value in error.headers.items())
    await _send(send, error.reason.status, (JSON, *own, *headers), error_body(error.error()), kind)


async def _send(
    send: Send,
    status: int,
    headers: tuple[tuple[bytes, bytes], ...],
    body: bytes = b"",
    kind: str = "http.response",
) -> None:
    length = () if status == NO_CONTENT else ((b"content-length", b"%d" % len(body)),)
    await send({"type": f"{kind}.start", "status": status, "headers": [*headers, *length]})
    await send({"type": f"{kind}.body", "body": body})
