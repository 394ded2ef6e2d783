"""The application: every path of the node's API, its description, and its refusals.

Decision: D-72, D-99
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from trailboss.api.documents import document_routes
from trailboss.api.errors import HttpError, HttpReason, clipped, encode_json, shown, status_of
from trailboss.api.operations import JSON, Endpoint, Refusal, Server, refusal, respond
from trailboss.api.routes import OPERATIONS
from trailboss.node.block_builder import StoppingError
from trailboss.node.traces import TraceBusyError
from trailboss.primitives.errors import Rejection, StorageError, ViewGoneError

if TYPE_CHECKING:
    from trailboss.node.service import Node

DESCRIPTIONS: Final = ("/openapi.json", "/api-docs/openapi.json")
REFERENCE: Final = "/swagger-ui"


def create_app(node: "Node", others: Sequence[BaseRoute] = ()) -> Starlette:
    """Return the application of a node, with other routes beside those of the API."""
    server = Server(node)
    routes: list[BaseRoute] = [
        Route(each.path, Endpoint(server, each), methods=[each.method], name=each.name) for each in OPERATIONS
    ]
    routes += [Route(path, _description) for path in DESCRIPTIONS]
    routes += [Route(REFERENCE, _reference), *document_routes()]
    app = Starlette(exception_handlers=HANDLERS)
    fixed = Middleware(FixedPaths, routes=routes)
    app.router = Router([*routes, *others], redirect_slashes=False, middleware=[fixed])
    return app


class FixedPaths:
    """Goes to an operation without parameters in its path at once; the router tries one route after another."""

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]) -> None:
        self._router = app
        self._fixed = {
            (method, route.path): route.endpoint
            for route in routes
            if isinstance(route, Route) and isinstance(route.endpoint, Endpoint) and not route.param_convertors
            for method in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        endpoint = self._fixed.get((scope.get("method", ""), scope.get("path", "")))
        if endpoint is None:
            await self._router(scope, receive, send)
        else:
            scope["endpoint"], scope["path_params"] = endpoint, {}
            await endpoint(scope, receive, send)


# The description


async def _description(_: Request) -> Response:
    return Response((await asyncio.to_thread(_described))[0], media_type=JSON)


async def _reference(_: Request) -> Response:
    return Response((await asyncio.to_thread(_described))[1], media_type="text/html")


@cache
def _described() -> tuple[bytes, str]:
    """Return the description, and its page for people."""
    # Imported by the first request: a node starts without it.
    from trailboss.api.openapi import describe  # noqa: PLC0415
    from trailboss.api.page import reference_page  # noqa: PLC0415

    document = describe(OPERATIONS)
    return encode_json(document), reference_page(document)


# Refusals


async def _refuse(request: Request, error: Exception) -> Response:
    match error:
        case HttpError():
            return refusal(error)
        case Rejection():
            return respond(Refusal(error.error()), status_of(error))
        case StoppingError():
            return refusal(HttpError(HttpReason.UNAVAILABLE, str(error)))
        case TraceBusyError():
            return refusal(HttpError(HttpReason.UNAVAILABLE, str(error), headers={"Retry-After": "1"}))
        case StorageError():
            return refusal(HttpError(HttpReason.UNAVAILABLE, f"the chain cannot be read: {error.what}"))
        case ViewGoneError():
            what = f"the chain went back to block {error.lowest} while it was read"
            retry = {"Retry-After": "1"}
            return refusal(HttpError(HttpReason.UNAVAILABLE, what, headers=retry, height=error.lowest))
        case HTTPException():
            return refusal(_of_routing(request, error))
        case _:
            return refusal(HttpError(HttpReason.INTERNAL, f"the node failed: {type(error).__name__}"))


def _of_routing(request: Request, error: HTTPException) -> HttpError:
    path, method = request.url.path, request.method
    match error.status_code:
        case HTTPStatus.NOT_FOUND:
            return HttpError(HttpReason.NOT_FOUND, f"there is no path {shown(path)}", path=clipped(path))
        case HTTPStatus.METHOD_NOT_ALLOWED:
            allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
            what = f"the path {shown(path)} has no method {shown(method)}"
            headers = {"Allow": allowed}
            return HttpError(HttpReason.METHOD_NOT_ALLOWED, what, headers=headers, method=clipped(method), rule=allowed)
        case _:
            return HttpError(HttpReason.BAD_REQUEST, str(error.detail), headers=error.headers)


HANDLERS: Final[dict[Any, Callable[[Request, Any], Awaitable[Response]]]] = dict.fromkeys(
    (HttpError, Rejection, StoppingError, TraceBusyError, StorageError, ViewGoneError, HTTPException, Exception),
    _refuse,
)
