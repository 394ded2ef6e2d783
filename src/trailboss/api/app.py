"""The application: every path of the node's API, its description, and its refusals.

Decision: D-72, D-99
"""

import asyncio
from collections.abc import Sequence
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from trailboss.api.documents import document_routes
from trailboss.api.errors import HttpError, HttpReason, clipped, encode_json, shown, status_of
from trailboss.api.operations import BEGUN, JSON, Endpoint, Refusal, Server, refusal, respond
from trailboss.api.routes import OPERATIONS
from trailboss.node.block_builder import StoppingError
from trailboss.node.traces import TraceBusyError
from trailboss.primitives.errors import Rejection, StorageError, ViewGoneError

if TYPE_CHECKING:
    from trailboss.node.service import Node

DESCRIPTIONS: Final = ("/openapi.json", "/api-docs/openapi.json")
REFERENCE: Final = "/swagger-ui"


def create_app(node: "Node", others: Sequence[BaseRoute] = ()) -> ASGIApp:
    """Return the application of a node, with other routes beside those of the API."""
    server = Server(node)
    routes: list[BaseRoute] = [
        Route(each.path, Endpoint(server, each), methods=[each.method], name=each.name) for each in OPERATIONS
    ]
    routes += [Route(path, _description) for path in DESCRIPTIONS]
    routes += [Route(REFERENCE, _reference), *document_routes()]
    return Api([*routes, *others])


class Api:
    """Starlette's routes without its layers around each answer, which took a fifth of our time for a short one.

    It goes to an operation without parameters in its path at once; the router tries one route after another.
    """

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._router = Router(routes, redirect_slashes=False)
        self._fixed = {
            (method, route.path): route.endpoint
            for route in routes
            if isinstance(route, Route) and isinstance(route.endpoint, Endpoint) and not route.param_convertors
            for method in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, also one that is refused or fails; a failure goes on to the server, which logs it."""
        scope["app"] = self  # the router then raises its refusals, and answers none itself
        endpoint = self._fixed.get((scope.get("method", ""), scope.get("path", "")))
        try:
            if endpoint is None:
                await self._router(scope, receive, send)
            else:
                scope["endpoint"], scope["path_params"] = endpoint, {}
                await endpoint(scope, receive, send)
        except Exception as error:
            if BEGUN in scope:
                raise
            refused = _refusal_of(error, Request(scope))
            if refused is None:
                failure = HttpError(HttpReason.INTERNAL, f"the node failed: {type(error).__name__}")
                await refusal(failure)(scope, receive, send)
                raise
            await refused(scope, receive, send)


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


def _refusal_of(error: Exception, request: Request) -> Response | None:
    """Return the answer to a request that an error refuses; None if the node has failed."""
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
            return None


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
