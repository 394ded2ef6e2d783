"""The outermost layer: hosts, origins and rates of requests, checked before anything is read of them.

A node for this machine alone answers to this machine's names alone, and pages of other origins change nothing: a
browser would otherwise lend its reach to every page that it shows.

Decision: D-73, D-99
"""

import re
import time
from collections.abc import Callable
from itertools import chain as chained
from math import ceil
from typing import Final

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trailboss.api.errors import SHOWN_CHARACTERS_MAX, HttpError, HttpReason
from trailboss.api.operations import BEGUN, refusal
from trailboss.node.metrics import Metrics
from trailboss.node.options import NodeOptions, is_loopback

HEADERS_BYTES_MAX: Final = 32_768
FAUCET_PER_MINUTE: Final = 5
PREFLIGHT_SECONDS: Final = 600
UNLIMITED: Final = ("/explorer/assets/", "/explorer/stream", "/health", "/metrics")
"""Beginnings of paths that the rate limit does not count: files that a page loads, and monitoring."""
READING: Final = frozenset(("GET", "HEAD", "OPTIONS"))
_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?", re.ASCII)

Clock = Callable[[], float]
Headers = list[tuple[bytes, bytes]]


class TokenBucket:
    """A rate limit that allows one second's worth, or another depth, at once.

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
        """Begin full: ``depth`` tokens, at least 1, at most; ``rate`` a second, above 0; a clock in seconds."""
        self._rate, self._depth, self._clock = rate, depth, clock
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


def limited(app: ASGIApp, options: NodeOptions, metrics: Metrics, clock: Clock = time.monotonic) -> ASGIApp:
    """Return an application behind the limits of a node, and readable for the origins that the options name."""
    guarded = Limits(app, options, metrics, clock)
    if not options.cors_origins:
        return guarded
    return CORSMiddleware(
        guarded,
        allow_origins=tuple(map(str.lower, options.cors_origins)),
        allow_methods=("GET", "POST"),
        allow_headers=("content-type", "last-event-id"),
        expose_headers=("retry-after",),
        max_age=PREFLIGHT_SECONDS,
    )


class Limits:
    """Passes requests on to an application, or refuses them; counts the answers."""

    def __init__(self, app: ASGIApp, options: NodeOptions, metrics: Metrics, clock: Clock) -> None:
        self._app, self._metrics, self._clock = app, metrics, clock
        self._is_local, self._bound = options.is_loopback, options.host
        self._origins = frozenset(map(str.lower, options.cors_origins))
        rate = options.rate_limit
        self._requests = TokenBucket(rate=rate, depth=rate, clock=clock) if rate else None
        self._accepted: dict[bool, Headers] = {}  # those of the last request that read, and of the last that did not
        self._faucet = TokenBucket(rate=FAUCET_PER_MINUTE / 60, depth=FAUCET_PER_MINUTE, clock=clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; pass on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, seconds = self._clock(), 0, 0.0

        def count() -> None:
            nonlocal status
            if status:
                self._metrics.answered(getattr(scope.get("endpoint"), "path", "none"), status, seconds)
                status = 0

        async def answer(message: Message) -> None:
            nonlocal status, seconds
            if message["type"] == "http.response.start":
                scope[BEGUN] = True
                status, seconds = message["status"], self._clock() - began
                await send(message)
            else:
                await send(message)
                count()  # once a short answer has left: its client need not wait for this

        try:
            self._check(scope)
        except HttpError as error:
            await refusal(error)(scope, receive, answer)
        else:
            try:
                await self._app(scope, receive, answer)
            finally:
                count()  # of a stream whose client left before anything came

    def _check(self, scope: Scope) -> None:
        headers, path, reads = scope["headers"], scope["path"], scope["method"] in READING
        # A client sends the same headers again and again.
        is_known = headers == self._accepted.get(reads)
        if not is_known:
            self._check_host(headers)
        if self._requests is not None and not path.startswith(UNLIMITED):
            _check_rate(self._requests)
        if not reads:
            if not is_known:
                self._check_origin(headers)
            if path == "/faucet":
                _check_rate(self._faucet)
        if not is_known:
            # A copy, for uvicorn appends the trailers of a body to its own list.
            self._accepted[reads] = headers.copy()

    def _check_host(self, headers: Headers) -> None:
        if sum(map(len, chained.from_iterable(headers))) > HEADERS_BYTES_MAX:
            what = f"the headers have more than {HEADERS_BYTES_MAX:,} bytes"
            raise HttpError(HttpReason.HEADERS_TOO_LARGE, what, bytes_max=HEADERS_BYTES_MAX)
        hosts = _values(headers, b"host")
        if len(hosts) != 1:
            raise HttpError(HttpReason.BAD_REQUEST, f"the request names {len(hosts)} hosts, it must name one")
        if self._is_local:
            parts = _HOST.fullmatch(hosts[0].lower())
            name = None if parts is None else parts[1] or parts[2]
            if name is None or not (name == self._bound or is_loopback(name)):
                shown = hosts[0][:SHOWN_CHARACTERS_MAX]
                raise HttpError(HttpReason.WRONG_HOST, f"the request is for the host {shown!r}", host=shown)

    def _check_origin(self, headers: Headers) -> None:
        """No page of another origin may ask; programs name no origin."""
        origins, [host] = _values(headers, b"origin"), _values(headers, b"host")
        origin = ",".join(origins).lower()
        is_foreign = origin not in self._origins and "*" not in self._origins
        if origins and is_foreign and origin.partition("://")[2] != host.lower():
            shown = origin[:SHOWN_CHARACTERS_MAX]
            raise HttpError(HttpReason.FOREIGN_ORIGIN, f"a page of {shown!r} asks", origin=shown)


def _values(headers: Headers, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name == wanted]


def _check_rate(bucket: TokenBucket) -> None:
    wait = ceil(bucket.take())
    if wait:
        what = f"there were too many requests, the next one is answered in {wait} s"
        raise HttpError(HttpReason.TOO_MANY_REQUESTS, what, headers={"Retry-After": str(wait)}, seconds=wait)
