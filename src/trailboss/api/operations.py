"""Operations: what a path does, declared once, for the server and for OpenAPI.

An operation is a function from a `Call` to a record. ``async def`` runs on the event loop and must be short; ``def`` is
a long read and runs in one of a few threads. Either takes one view of the chain and answers wholly from it.

Decision: D-72
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fastapi import Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from msgspec import Struct, field
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route
from starlette.types import Scope

from trailboss.api.errors import HttpError, HttpReason, clipped, encode_json, shown
from trailboss.api.parsing import Parameter, Place, read_document, read_members, read_query
from trailboss.api.shapes import Schema
from trailboss.chain.view import ChainView
from trailboss.primitives.errors import ViewGoneError
from trailboss.views.accounts import known_names

if TYPE_CHECKING:
    from trailboss.node.service import Node

T = TypeVar("T")
Run = Callable[["Call"], Any]
JSON: Final = "application/json"
READERS: Final = 2
"""Threads that long reads have: more would only take turns with the chain's."""
READS_WAITING_MAX: Final = 64
"""Long reads that wait for a thread; one more is sent away."""
BODY_BYTES_MAX: Final = 2**20
GET: Final = "GET"
POST: Final = "POST"
ALWAYS: Final = (HttpReason.BAD_REQUEST, HttpReason.TOO_MANY_REQUESTS, HttpReason.UNAVAILABLE)
"""Refusals that every path has."""
OF_BODIES: Final = (HttpReason.TOO_LARGE, HttpReason.MEDIA_TYPE)


class RawBody(Struct, frozen=True):
    """A body that the operation reads itself.

    Attributes:
        bytes_max: Most bytes of it.
        media: Schema by media type.
    """

    bytes_max: int
    media: Mapping[str, Schema]


class Operation(Struct, frozen=True, kw_only=True):
    """What one path does with one method.

    Attributes:
        run: The function; its name is the operation's id, its docstring tells what it does.
        method: ``GET`` or ``POST``.
        path: With the names of its parameters in braces.
        tag: Subject.
        answers: Type of the record that it answers.
        parameters: What a client can say, by place and name.
        refuses: How it may refuse besides, with what a refusal means here.
        body: A body that it reads itself; None for none, or for one of members.
        refusals: Types of what it answers with a status, where that is more than the error.
    """

    run: Run
    method: str
    path: str
    tag: str
    answers: Any
    parameters: tuple[Parameter[Any], ...] = ()
    refuses: tuple[HttpReason, ...] = ()
    body: RawBody | None = None
    refusals: Mapping[int, Any] = field(default_factory=dict)

    @property
    def is_short(self) -> bool:
        """Whether it runs on the event loop."""
        return inspect.iscoroutinefunction(self.run)

    @property
    def name(self) -> str:
        """The operation's id."""
        return self.run.__name__

    def within(self, place: Place) -> dict[str, Parameter[Any]]:
        """Return the parameters of a place, by name."""
        return {each.name: each for each in self.parameters if each.place is place}

    def reasons(self) -> tuple[HttpReason, ...]:
        """Return every way in which it may refuse."""
        of_body = OF_BODIES if self.method == POST else ()
        return tuple(dict.fromkeys((*ALWAYS, *of_body, *self.refuses)))


class Said(Struct, frozen=True):
    """What a client has said.

    Attributes:
        values: Of the parameters, by name.
        body: The bytes of a `RawBody`; empty otherwise.
        media: Their media type.
    """

    values: Mapping[str, Any]
    body: bytes = b""
    media: str = ""


class Call:
    """One request, read.

    Attributes:
        node: The node.
        names: Of the accounts that have one, by address.
        body: The bytes of a `RawBody`; empty otherwise.
        media: Their media type.
    """

    __slots__ = ("_values", "_view", "body", "media", "names", "node")

    def __init__(self, node: "Node", names: Mapping[bytes, str], request: "Said") -> None:
        self.node = node
        self.names = names
        self.body = request.body
        self.media = request.media
        self._values = request.values
        self._view: ChainView | None = None

    @property
    def view(self) -> ChainView:
        """The chain as it stood when this was first asked for; the same one from then on."""
        if self._view is None:
            self._view = self.node.view
        return self._view

    def __getitem__(self, parameter: Parameter[T]) -> T:
        """Return what the client said, or the parameter's default."""
        value: T = self._values[parameter.name]
        return value

    def look_again(self) -> None:
        """Let go of the view, for a newer one."""
        self._view = None


class Routes:
    """The operations of a subject, as decorators declare them."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self._operations: list[Operation] = []

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._operations)

    def get(
        self,
        path: str,
        *parameters: Parameter[Any],
        answers: Any,
        refuses: tuple[HttpReason, ...] = (),
        refusals: Mapping[int, Any] | None = None,
    ) -> Callable[[Run], Run]:
        """Declare what GET answers at a path."""

        def declare(run: Run) -> Run:
            return self._add(
                Operation(
                    run=run,
                    method=GET,
                    path=path,
                    tag=self.tag,
                    answers=answers,
                    parameters=parameters,
                    refuses=refuses,
                    refusals=refusals or {},
                )
            )

        return declare

    def post(
        self,
        path: str,
        *parameters: Parameter[Any],
        answers: Any,
        refuses: tuple[HttpReason, ...] = (),
        body: RawBody | None = None,
        refusals: Mapping[int, Any] | None = None,
    ) -> Callable[[Run], Run]:
        """Declare what POST does at a path."""

        def declare(run: Run) -> Run:
            return self._add(
                Operation(
                    run=run,
                    method=POST,
                    path=path,
                    tag=self.tag,
                    answers=answers,
                    parameters=parameters,
                    refuses=refuses,
                    body=body,
                    refusals=refusals or {},
                )
            )

        return declare

    def _add(self, operation: Operation) -> Run:
        self._operations.append(operation)
        return operation.run


class Endpoint(APIRoute):
    """A route of FastAPI whose function reads its request itself: nothing stands between the two."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for this route: most are for another, and their beginnings tell."""
        if scope["type"] != "http" or not scope["path"].startswith(
            self.path.partition("{")[0], len(scope["root_path"])
        ):
            return Match.NONE, {}
        match, inner = Route.matches(self, scope)
        return match, inner if match is Match.NONE else {**inner, "route": self}

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]  # any awaitable
        """Return the function that answers."""
        return self.endpoint


class Server:
    """Answers requests for operations on a node."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        self._names = known_names(node.view.genesis)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="reader")
        self._reading = 0

    def endpoint(self, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        """Return the function that answers requests for an operation."""
        reader = _Reader(operation)

        async def answer(request: Request) -> Response:
            return await self._perform(operation, Call(self._node, self._names, await reader.read(request)))

        answer.__name__ = operation.name
        return answer

    async def _perform(self, operation: Operation, call: Call) -> Response:
        try:
            return await self._run(operation, call)
        except ViewGoneError:
            if operation.method != GET:
                raise
            # The chain has gone back behind the view; the next one is of the branch that holds now.
            call.look_again()
            return await self._run(operation, call)

    async def _run(self, operation: Operation, call: Call) -> Response:
        if operation.is_short:
            return respond(await operation.run(call))
        if self._reading >= READERS + READS_WAITING_MAX:
            waiting = self._reading - READERS
            what = f"{waiting} long reads wait already"
            raise HttpError(HttpReason.UNAVAILABLE, what, headers={"Retry-After": "1"}, waiting=waiting)
        self._reading += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, _read_long, operation, call)
        finally:
            self._reading -= 1


def _read_long(operation: Operation, call: Call) -> Response:
    return respond(operation.run(call))


def respond(answer: object, status: int = 200) -> Response:
    """Return an answer: a response as it is, anything else as JSON."""
    return answer if isinstance(answer, Response) else Response(encode_json(answer), status, media_type=JSON)


class _Reader:
    """Reads the requests for one operation."""

    __slots__ = ("_body", "_members", "_method", "_path", "_query")

    def __init__(self, operation: Operation) -> None:
        self._method = operation.method
        self._path = operation.within(Place.PATH)
        self._query = operation.within(Place.QUERY)
        self._members = operation.within(Place.BODY)
        self._body = operation.body

    async def read(self, request: Request) -> Said:
        scope = request.scope
        values = read_query(scope["query_string"], self._query)
        for name, parameter in self._path.items():
            values[name] = parameter.read(scope["path_params"][name])
        if self._method == GET:
            return Said(values)
        limit = BODY_BYTES_MAX if self._body is None else self._body.bytes_max
        body = await _read_body(request, limit)
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        accepted = (JSON,) if self._body is None else tuple(self._body.media)
        if media not in accepted and (body or self._body is not None):
            known = " or ".join(accepted)
            what = f"the body is {shown(media) if media else 'of no media type'}, this path reads {known}"
            raise HttpError(HttpReason.MEDIA_TYPE, what, value=clipped(media), rule=known)
        if self._body is not None:
            return Said(values, body, media)
        return Said(values | read_members(read_document(body), self._members))


async def _read_body(request: Request, bytes_max: int) -> bytes:
    octets = bytearray()
    try:
        async for chunk in request.stream():
            octets += chunk
            if len(octets) > bytes_max:
                what = f"the body has more than {bytes_max:,} bytes"
                raise HttpError(HttpReason.TOO_LARGE, what, bytes_max=bytes_max)
    except ClientDisconnect:
        raise HttpError(HttpReason.BAD_REQUEST, "the body ends before its end", place="body") from None
    return bytes(octets)
