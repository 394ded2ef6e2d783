"""Operations: functions that answer requests, and what Starlette needs to call them.

An operation takes a `Call` and its parameters by keyword, and returns a record or a response.
``async def`` runs on the event loop and must be short; ``def`` is a long read and runs in one of a few threads.

Decision: D-72, D-99
"""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, get_type_hints

from msgspec import Struct, field
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trailboss.api.errors import HttpError, HttpReason, clipped, encode_json, shown
from trailboss.api.requests import BODY, QUERY, Parameter, Reader, asked_of, parameters_of, read_document
from trailboss.api.stream import Streams
from trailboss.chain.view import ChainView
from trailboss.primitives.errors import ErrorObject, ViewGoneError
from trailboss.views.accounts import known_names

if TYPE_CHECKING:
    from trailboss.node.service import Node

JSON: Final = "application/json"
BEGUN: Final = "trailboss.begun"  # in a request's scope: its answer has begun
JSON_TYPE: Final = (b"content-type", JSON.encode())
READERS: Final = 2  # threads for long reads; more would only compete with the chain's
READS_WAITING_MAX: Final = 64  # long reads that wait for a thread; a further one is refused
BODY_BYTES_MAX: Final = 2**20
BODY_SECONDS: Final = 10.0  # time in which a body must arrive
GET: Final = "GET"
POST: Final = "POST"
ALWAYS: Final = (HttpReason.BAD_REQUEST, HttpReason.TOO_MANY_REQUESTS, HttpReason.UNAVAILABLE)
OF_BODIES: Final = (HttpReason.TOO_LARGE, HttpReason.MEDIA_TYPE)
NOT_FOUND: Final = (HttpReason.NOT_FOUND,)
Run = Callable[..., Any]


class Refusal(Struct, frozen=True):
    """A refused request."""

    error: ErrorObject  # why


class RawBody(Struct, frozen=True):
    """A body that the operation reads itself."""

    bytes_max: int  # its largest size
    media: Mapping[str, Mapping[str, Any]]  # schema by media type


class Call(Struct, eq=False):
    """One request, with bytes and media type of a `RawBody`, empty otherwise."""

    node: "Node"
    names: Mapping[bytes, str]
    streams: Streams
    scope: Scope
    body: bytes
    media: str
    _view: ChainView | None = None

    @property
    def view(self) -> ChainView:
        """The chain at the first use of this property; the same view from then on."""
        if self._view is None:
            self._view = self.node.view
        return self._view

    def look_again(self) -> None:
        """Drop the view, so that `view` is the newest one."""
        self._view = None


class Operation(Struct, frozen=True, kw_only=True, dict=True):
    """A function that answers one path and method."""

    run: Run  # the function; its name is the operation's id, its docstring the description
    method: str  # ``GET`` or ``POST``
    path: str  # with the names of its parameters in braces
    tag: str  # subject
    refuses: tuple[HttpReason, ...] = ()  # reasons for which it may refuse, beside those of all operations
    body: RawBody | None = None  # a body that it reads itself; None for one of parameters, or none
    # Records that it answers instead of a plain refusal, by status.
    refusals: Mapping[int, Any] = field(default_factory=dict)
    produces: str = JSON  # media type of its answer

    @property
    def name(self) -> str:
        """The operation's id."""
        return self.run.__name__

    @cached_property
    def hints(self) -> dict[str, Any]:
        """Types of its parameters and of its answer."""
        return get_type_hints(self.run, include_extras=True)

    @cached_property
    def asked(self) -> type[Struct]:
        """Struct of its parameters."""
        return asked_of(self.run, self.hints)

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Its parameters, by name."""
        place = BODY if self.method == POST and self.body is None else QUERY
        return parameters_of(self.asked, self.path, place)

    def reasons(self) -> tuple[HttpReason, ...]:
        """Return every reason for which it may refuse."""
        of_body = OF_BODIES if self.method == POST else ()
        return tuple(dict.fromkeys((*ALWAYS, *of_body, *self.refuses)))


class Routes:
    """Operations on one subject, declared by decorators."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self._operations: list[Operation] = []

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._operations)

    def get(self, path: str, **options: Any) -> Callable[[Run], Run]:
        """Declare the answer to GET; the options are attributes of `Operation`."""
        return partial(self._declare, {"method": GET, "path": path, **options})

    def post(self, path: str, **options: Any) -> Callable[[Run], Run]:
        """Declare the answer to POST; the options are attributes of `Operation`."""
        return partial(self._declare, {"method": POST, "path": path, **options})

    def _declare(self, options: dict[str, Any], run: Run) -> Run:
        self._operations.append(Operation(run=run, tag=self.tag, **options))
        return run


class Server:
    """What the operations of a node share."""

    def __init__(self, node: "Node") -> None:
        self.node = node
        self.names = known_names(node.view.genesis)
        self.streams = Streams(node.feed, node.index, node.metrics)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="reader")
        self._reading = 0

    async def read_long(self, run: Run, call: Call, **asked: Any) -> Response:
        """Run a long read in a thread.

        Raises:
            HttpError: ``UNAVAILABLE`` if too many wait.
        """
        waiting = self._reading - READERS
        if waiting >= READS_WAITING_MAX:
            what = f"{waiting} long reads wait already"
            raise HttpError(HttpReason.UNAVAILABLE, what, headers={"Retry-After": "1"}, waiting=waiting)
        self._reading += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, _read, run, call, asked)
        finally:
            self._reading -= 1


def _read(run: Run, call: Call, asked: Mapping[str, Any]) -> Response:
    return respond(run(call, **asked))


class Endpoint:
    """The ASGI application that answers an operation's requests."""

    __slots__ = ("_operation", "_reader", "_run", "_server", "path")

    def __init__(self, server: Server, operation: Operation) -> None:
        self.path = operation.path
        self._server = server
        self._operation = operation
        self._reader: Reader | None = None  # made for the first request
        is_short = inspect.iscoroutinefunction(operation.run)
        self._run: Run = operation.run if is_short else partial(server.read_long, operation.run)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        operation, document, body, media = self._operation, None, b"", ""
        if not scope["path"].isprintable():
            what = f"the path is {shown(scope['path'])}, it must not hold control characters"
            raise HttpError(HttpReason.BAD_REQUEST, what, value=clipped(scope["path"]), rule="no control characters")
        if operation.method == POST:
            body, media = await _read_body(operation.body, scope, receive)
            if operation.body is None:
                document, body = read_document(body), b""
        self._reader = self._reader or Reader(operation.asked, operation.parameters)
        asked = self._reader.read(scope["path_params"], scope["query_string"], document)
        server = self._server
        call = Call(server.node, server.names, server.streams, scope, body, media)
        try:
            answer = await self._run(call, **asked)
        except ViewGoneError:
            if operation.method == POST:
                raise
            # The chain went back behind the view; the next one is of the branch that holds now.
            call.look_again()
            answer = await self._run(call, **asked)
        if isinstance(answer, Response):
            await answer(scope, receive, send)
            return
        encoded = encode_json(answer)
        headers = [(b"content-length", b"%d" % len(encoded)), JSON_TYPE]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": encoded})


def respond(answer: object, status: int = 200) -> Response:
    """Return an answer: a response unchanged, anything else as JSON."""
    return answer if isinstance(answer, Response) else Response(encode_json(answer), status, media_type=JSON)


def refusal(error: HttpError) -> Response:
    """Return the answer that refuses a request."""
    body = encode_json(Refusal(error.error()))
    return Response(body, error.reason.status, headers=error.headers or None, media_type=JSON)


async def _read_body(expected: RawBody | None, scope: Scope, receive: Receive) -> tuple[bytes, str]:
    """Return a body and its media type.

    Raises:
        HttpError: ``TOO_LARGE``, ``SLOW_REQUEST``, ``MEDIA_TYPE``; ``BAD_REQUEST`` if the client leaves.
    """
    limit = BODY_BYTES_MAX if expected is None else expected.bytes_max
    headers = dict(scope["headers"])
    length = int(headers.get(b"content-length", b"0"))
    if length > limit:
        # A client that waits for leave to send does not send now; the next request would be taken for the body.
        raise _too_large(limit, {"Connection": "close"} if b"expect" in headers else None)
    body = b""
    if length or b"transfer-encoding" in headers:
        body = await _receive(limit, receive)
    media = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    accepted = (JSON,) if expected is None else tuple(expected.media)
    if media not in accepted and (body or expected is not None):
        known = " or ".join(accepted)
        what = f"the body is {shown(media) if media else 'of no media type'}, this path reads {known}"
        raise HttpError(HttpReason.MEDIA_TYPE, what, value=clipped(media), rule=known)
    return body, media


async def _receive(limit: int, receive: Receive) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            message = await receive()
            body: bytes = message.get("body", b"")
            while message["type"] == "http.request" and len(body) <= limit and message.get("more_body", False):
                message = await receive()
                body += message.get("body", b"")
    except TimeoutError:
        what = f"the body has not arrived after {BODY_SECONDS:g} seconds"
        raise HttpError(HttpReason.SLOW_REQUEST, what, headers={"Connection": "close"}) from None
    if message["type"] != "http.request":
        raise HttpError(HttpReason.BAD_REQUEST, "the body is incomplete", place=BODY)
    if len(body) > limit:
        raise _too_large(limit)
    return body


def _too_large(limit: int, headers: Mapping[str, str] | None = None) -> HttpError:
    return HttpError(HttpReason.TOO_LARGE, f"the body has more than {limit:,} bytes", headers=headers, bytes_max=limit)
