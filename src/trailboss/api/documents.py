"""The documentation on a node: ``/llms.txt``, an index for agents, and the pages as Markdown below ``/docs``."""

import asyncio
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from trailboss.documentation import INDEX, document_pages, documents_index

PLACE = "/docs/"
MARKDOWN = "text/markdown; charset=utf-8"


def document_routes() -> list[BaseRoute]:
    """Return the routes."""
    return [Route(f"/{INDEX}", _index), Route(PLACE + "{page:path}", _page)]


async def _index(_: Request) -> Response:
    return Response(await asyncio.to_thread(documents_index, PLACE), media_type="text/plain; charset=utf-8")


async def _page(request: Request) -> Response:
    pages = await asyncio.to_thread(document_pages)
    page = pages.get(request.path_params["page"])
    if page is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return Response(page.text, media_type=MARKDOWN)
