"""Connections: what the HTTP server leaves open, bounded.

The server reads heads of any length, waits for them for any time, and keeps answers that nobody fetches. Here every
connection is looked at now and then, and one that stands where it stood at the last look is cut: waiting for the rest
of a head, for somebody to fetch an answer, or for its own end.

Decision: D-73
"""

import asyncio
import re
import sys
from typing import Any, ClassVar, Final

from httptools import HttpParserInvalidMethodError
from msgspec import Struct
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from trailboss.api.errors import HttpError, HttpReason, error_body, shown
from trailboss.node.metrics import Metrics
from trailboss.primitives.errors import TrailbossError

ABORT: Final = "trailboss.abort"
"""Extension of the scope: its ``abort`` cuts the connection at once, whatever waits in it."""
CROWDED: Final = "crowded"
LONG_HEAD: Final = "long head"
LATE_HEAD: Final = "late head"
LATE_BODY: Final = "late body"
MALFORMED: Final = "malformed"
PIPELINED: Final = "pipelined"
UNREAD: Final = "unread"
ENDED: Final = "ended"
METHODS: Final = "GET, HEAD, POST"
UNKNOWN_METHOD: Final = re.compile(rb"([A-Z]{1,80}) [!-~]+ HTTP/1\.[01]\r?\n")
"""First line of a request whose method the parser may not know."""
Standing = tuple[str, int]
"""What a connection waits for, and a number that changes when it gets on."""


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """What connections may do.

    Attributes:
        connections_max: Open at a time, those of streams and of the explorer included.
        head_bytes_max: Bytes of the names and values of a request's headers, and of its target.
        pipelined_max: Requests that wait on one connection for the answer to the one before.
        look_seconds: From one look at a connection to the next: what does not move is cut after one to two of them.
    """

    connections_max: int = 4_096
    head_bytes_max: int = 32_768
    pipelined_max: int = 64
    look_seconds: float = 10.0


def connection_protocol(metrics: Metrics, limits: ConnectionLimits | None = None) -> type[HttpToolsProtocol]:
    """Return the protocol that a server speaks under limits: ``uvicorn.Config(http=...)``.

    Args:
        metrics: Counts what is cut.
        limits: What connections may do; None for the usual.
    """

    class Connection(_Connection):
        LIMITS = limits or ConnectionLimits()
        METRICS = metrics

    return Connection


class _RefusedError(TrailbossError):
    """Ends the reading of a head that is refused; the parser passes it on as an error of its own."""


class _Connection(HttpToolsProtocol):
    LIMITS: ClassVar[ConnectionLimits]
    METRICS: ClassVar[Metrics]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._answering: RequestResponseCycle | None = None
        self._refusal: tuple[HttpError, str] | None = None
        self._came = b""
        self._heads = 0
        self._head_bytes = 0
        self._is_in_head = True
        self._is_over = False
        self._stood: Standing | None = None
        self._next_look: asyncio.TimerHandle | None = None

    # What the server calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the server has it
        """Begin, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.LIMITS.connections_max:
            what = f"{self.LIMITS.connections_max:,} connections are open already, and no more at a time"
            self._refuse(HttpError(HttpReason.UNAVAILABLE, what), CROWDED)
            transport.close()
            return
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let whoever answers know; the server tells only whoever would answer last."""
        super().connection_lost(exc)
        self._look_no_more()
        self._disown()

    def data_received(self, data: bytes) -> None:
        """Read on, but not a head without end."""
        if self._is_over:
            return
        heads, was_in_head = self._heads, self._is_in_head
        self._came = data
        super().data_received(data)
        is_all_head = was_in_head and self._is_in_head and heads == self._heads
        self._head_bytes = self._head_bytes + len(data) if is_all_head else 0
        if self._head_bytes > self.LIMITS.head_bytes_max and not self._is_over:
            self._refuse(*self._long_head(self._head_bytes))

    def on_message_begin(self) -> None:
        """Lend whoever will answer the means to cut the connection."""
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: {"abort": self.transport.abort}}

    def on_headers_complete(self) -> None:
        """Begin to answer, unless the head is too long, or too much waits to be answered already."""
        self._came = b""
        self._heads += 1
        self._is_in_head = False
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.LIMITS.head_bytes_max:
            self._refusal = self._long_head(size)
        elif len(self.pipeline) >= self.LIMITS.pipelined_max:
            what = f"{len(self.pipeline)} requests of this connection wait already"
            self._refusal = HttpError(HttpReason.TOO_MANY_REQUESTS, what), PIPELINED
        if self._refusal is not None:
            raise _RefusedError(self._refusal[1])
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Wait for the next head."""
        super().on_message_complete()
        self._is_in_head = True

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser does not take, in the shape that all refusals have."""
        line = UNKNOWN_METHOD.match(self._came)
        if self._refusal is not None:
            self._refuse(*self._refusal)
        elif line is not None and isinstance(sys.exception(), HttpParserInvalidMethodError):
            what, allowed = f"no path has a method {shown(line[1].decode())}", {"Allow": METHODS}
            self._refuse(HttpError(HttpReason.METHOD_NOT_ALLOWED, what, headers=allowed, rule=METHODS), MALFORMED)
        else:
            self._refuse(HttpError(HttpReason.BAD_REQUEST, f"what came is no request: {msg}"), MALFORMED)

    def shutdown(self) -> None:
        """End, after the answer that is being given; at once if there is none to be given."""
        if self._is_over:
            self.transport.abort()
        else:
            super().shutdown()

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to the protocol of sockets."""
        self._look_no_more()
        super().handle_websocket_upgrade()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    # Looking

    def _look_later(self) -> None:
        self._next_look = self.loop.call_later(self.LIMITS.look_seconds, self._look)

    def _look_no_more(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()

    def _look(self) -> None:
        standing = self._standing()
        if standing is not None and standing == self._stood:
            self._cut(standing[0])
        self._stood = standing
        self._look_later()

    def _standing(self) -> Standing | None:
        """Return what the connection waits for of its client; None if it waits for nothing, or for the node."""
        if self._is_over or self.transport.is_closing():
            return ENDED, 0
        if self.flow.write_paused:
            return UNREAD, self.transport.get_write_buffer_size()
        if self._is_answering:
            return None
        return (LATE_HEAD if self._is_in_head else LATE_BODY), self._heads

    @property
    def _is_answering(self) -> bool:
        return self._answering is not None and not self._answering.response_complete

    def _cut(self, why: str) -> None:
        if why == LATE_HEAD and self._head_bytes:
            what = f"the head of the request is not there after {self.LIMITS.look_seconds:g} seconds"
            self._refuse(HttpError(HttpReason.SLOW_REQUEST, what), why)
            return
        if why != ENDED:
            self.METRICS.cut(why)
        self.transport.abort()

    # Refusing

    def _long_head(self, size: int) -> tuple[HttpError, str]:
        limit = self.LIMITS.head_bytes_max
        what = f"the head of the request has {size:,} bytes or more, above {limit:,}"
        return HttpError(HttpReason.HEADERS_TOO_LARGE, what, bytes_max=limit), LONG_HEAD

    def _refuse(self, error: HttpError, why: str) -> None:
        """Answer with a refusal and read no more; in the midst of another answer nobody could tell the two apart."""
        self.METRICS.cut(why)
        self._is_over = True
        is_begun = self._answering is not None and self._answering.response_started and self._is_answering
        self._disown()
        if is_begun:
            self.transport.close()
            return
        body = error_body(error.error())
        headers = [
            *self.server_state.default_headers,
            *((name.encode(), value.encode()) for name, value in error.headers.items()),
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            CLOSE_HEADER,
        ]
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        self.transport.write(b"".join((STATUS_LINE[error.reason.status], lines, b"\r\n", body)))
        # A client that is still sending would lose the answer if the connection were closed under it.
        self.transport.write_eof()
        self.flow.resume_reading()

    def _disown(self) -> None:
        """Tell whoever answers that nobody listens any more."""
        self.pipeline.clear()
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()
