"""The application: every path of the node's API, its description, and how it refuses.

Decision: D-72
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trailboss.api.errors import HttpError, HttpReason, clipped, encode_json, shown, status_of
from trailboss.api.openapi import ABOUT, TAGS, TITLE, Refusal, route_options
from trailboss.api.operations import GET, JSON, Endpoint, Operation, Server, respond
from trailboss.api.page import reference_page
from trailboss.api.routes import OPERATIONS
from trailboss.api.routes.streams import add_watching
from trailboss.api.shapes import Schemas
from trailboss.node.block_builder import StoppingError
from trailboss.primitives.errors import Rejection, StorageError, ViewGoneError

if TYPE_CHECKING:
    from trailboss.node.service import Node

DESCRIPTIONS: Final = ("/openapi.json", "/api-docs/openapi.json")
REFERENCE: Final = "/swagger-ui"
NO_TELEMETRY: Final[Any] = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
"""A node tells nobody but those who ask."""
EVENT_STREAM: Final = b"text/event-stream"


def create_app(node: "Node") -> FastAPI:
    """Return the application that answers for a node."""
    app = FastAPI(
        title=TITLE,
        version=version("trailboss"),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
    )
    schemas = Schemas()
    add_operations(app, node, schemas, OPERATIONS)
    add_watching(app, node, schemas)
    _add_description(app, schemas)
    _add_refusals(app)
    app.add_middleware(Entrance)
    return app


def add_operations(app: FastAPI, node: "Node", schemas: Schemas, operations: Iterable[Operation]) -> None:
    """Have an application answer for operations of a node."""
    server = Server(node)
    for operation in operations:
        app.router.add_api_route(
            operation.path,
            server.endpoint(operation),
            route_class_override=Endpoint,
            **route_options(operation, schemas),
        )


# The description


def _add_description(app: FastAPI, schemas: Schemas) -> None:
    document: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not document:
            tags = [{"name": name, "description": about} for name, about in TAGS.items()]
            document.update(
                get_openapi(
                    title=app.title, version=app.version, description=ABOUT.strip(), routes=app.routes, tags=tags
                )
            )
            document.setdefault("components", {}).setdefault("schemas", {}).update(schemas.components)
        return document

    # The first one to ask has them written, which takes a while.
    async def description(_: Request) -> Response:
        return Response(await asyncio.to_thread(lambda: encode_json(openapi())), media_type=JSON)

    async def reference(_: Request) -> Response:
        return Response(await asyncio.to_thread(lambda: reference_page(openapi())), media_type="text/html")

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's manual has it
    app.router.routes.extend(Route(path, description, include_in_schema=False) for path in DESCRIPTIONS)
    app.router.routes.append(Route(REFERENCE, reference, include_in_schema=False))


# Refusals


def _add_refusals(app: FastAPI) -> None:
    handlers: dict[type[Exception], Callable[[Request, Any], Awaitable[Response]]] = {
        HttpError: _refuse_http,
        Rejection: _refuse_rule,
        StoppingError: _refuse_stopping,
        StorageError: _refuse_unreadable,
        ViewGoneError: _refuse_gone,
        HTTPException: _refuse_routing,
        RequestValidationError: _refuse_form,
        Exception: _refuse_bug,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


async def _refuse_http(_: Request, error: HttpError) -> Response:
    return refusal(error)


async def _refuse_rule(_: Request, rejection: Rejection) -> Response:
    return respond(Refusal(rejection.error()), status_of(rejection))


async def _refuse_stopping(_: Request, error: Exception) -> Response:
    return refusal(HttpError(HttpReason.UNAVAILABLE, str(error)))


async def _refuse_unreadable(_: Request, error: StorageError) -> Response:
    return refusal(HttpError(HttpReason.UNAVAILABLE, f"the chain cannot be read: {error.what}"))


async def _refuse_gone(_: Request, error: ViewGoneError) -> Response:
    what = f"the chain went back to block {error.lowest} while it was read"
    return refusal(HttpError(HttpReason.UNAVAILABLE, what, headers={"Retry-After": "1"}, height=error.lowest))


async def _refuse_routing(request: Request, error: HTTPException) -> Response:
    """Tell what the router refuses: paths and methods that there are not."""
    where = shown(request.url.path)
    match error.status_code:
        case HTTPStatus.NOT_FOUND:
            failure = HttpError(HttpReason.NOT_FOUND, f"there is no path {where}", path=clipped(request.url.path))
        case HTTPStatus.METHOD_NOT_ALLOWED:
            what = f"the path {where} has no method {shown(request.method)}"
            allowed = (error.headers or {}).get("Allow", "")
            allowed += ", HEAD" if allowed == GET else ""
            failure = HttpError(
                HttpReason.METHOD_NOT_ALLOWED,
                what,
                headers={"Allow": allowed},
                method=clipped(request.method),
                rule=allowed,
            )
        case _:
            failure = HttpError(HttpReason.BAD_REQUEST, str(error.detail), headers=error.headers)
    return refusal(failure)


async def _refuse_form(_: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    return refusal(HttpError(HttpReason.BAD_REQUEST, f"{name}: {first['msg']}", parameter=name, rule=first["msg"]))


async def _refuse_bug(_: Request, error: Exception) -> Response:
    return refusal(HttpError(HttpReason.INTERNAL, f"the node failed: {type(error).__name__}"))


def refusal(error: HttpError) -> Response:
    """Return the answer that an error of HTTP is."""
    return Response(
        encode_json(Refusal(error.error())), error.reason.status, headers=error.headers or None, media_type=JSON
    )


# The way in


class Entrance:
    """What holds for every path: none has control characters, and HEAD is GET without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif not scope["path"].isprintable():
            what = f"the path is {shown(scope['path'])}, it must not hold control characters"
            error = HttpError(HttpReason.BAD_REQUEST, what, value=clipped(scope["path"]), rule="no control characters")
            await refusal(error)(scope, receive, send)
        elif scope["method"] == "HEAD":
            await _answer_head(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)


async def _answer_head(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    is_stream = False

    async def send_head(message: Message) -> None:
        nonlocal is_stream
        if message["type"] == "http.response.start":
            is_stream = any(EVENT_STREAM in value for name, value in message["headers"] if name == b"content-type")
            await send(message)
        elif not message.get("more_body"):
            await send({"type": "http.response.body", "body": b""})

    async def receive_head() -> Message:
        # A stream has no end of its own; it ends when its reader goes.
        return {"type": "http.disconnect"} if is_stream else await receive()

    await app({**scope, "method": "GET"}, receive_head, send_head)
