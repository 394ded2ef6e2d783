"""The explorer's routes: pages, their style sheet and script, and a stream that reports when pages change.

Decision: D-100
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from trailboss.explorer import links
from trailboss.explorer.address_labels import Labels, Names, fixed_names
from trailboss.explorer.cells import text
from trailboss.explorer.documents import Document, Notice
from trailboss.explorer.failures import failure_document, gone_document, rejection_document
from trailboss.explorer.links import Query
from trailboss.explorer.page_context import Page, Reading, Redirect
from trailboss.explorer.pages import NOWHERE, PAGES, SUBJECT
from trailboss.explorer.renderer import DIGEST_DIGITS, FAVICON, assets, page_html
from trailboss.explorer.text import visible
from trailboss.node.block_builder import StoppingError
from trailboss.primitives.errors import Rejection, ViewGoneError
from trailboss.views.label_file import LABELS_NAME, LabelFile

if TYPE_CHECKING:
    from trailboss.node.service import Node

READERS: Final = 2
"""Pages that are made at the same time: they share the interpreter with the blocks, and neither may starve."""
PAGES_KEPT: Final = 64  # pages that are kept for others who look at the same page of the same block
LOOK_SECONDS: Final = 0.25  # how often a stream looks whether pages have changed
SILENT_LOOKS: Final = 60
"""Looks without a change after which a stream sends a comment, so that a lost connection is noticed."""
SECURITY: Final = {
    # Nothing is loaded from, or sent to, anywhere else, and no script is in a page. Bars and grids have styles.
    "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
FRESH: Final = {**SECURITY, "cache-control": "no-store"}
FOREVER: Final = {**SECURITY, "cache-control": "public, max-age=31536000, immutable"}
_log: Final = logging.getLogger(__name__)


class Shown(Struct, frozen=True):
    """A page as it is sent: its HTML and its status."""

    html: str
    status: int


class Explorer:
    """What all who look at the pages of a node share."""

    def __init__(self, node: "Node") -> None:
        self.node = node
        self._known = fixed_names(node.view)
        self._labels: Labels = {}
        directory = node.options.directory
        self._chosen = None if directory is None else LabelFile(directory / LABELS_NAME)
        self._readers = asyncio.Semaphore(READERS)
        self._pages: OrderedDict[object, asyncio.Task[Shown | Redirect]] = OrderedDict()

    def look(self) -> Reading:
        """Return a look at the node as it is now."""
        view = self.node.view
        chosen = None if self._chosen is None else self._chosen.book()
        return Reading(self.node, view, Names(view, self._known, self._labels, chosen))

    def mark(self) -> str:
        """Return a text that changes whenever a live page may show something else. Costs next to nothing."""
        node, pace = self.node, self.node.pace
        labels = 0 if self._chosen is None else self._chosen.stamp()
        parts = (node.view.head.hash.hex()[:DIGEST_DIGITS], len(node.mempool), node.health.status, pace.rhythm.value)
        return "-".join(map(str, (*parts, pace.block_time_ms, labels)))

    async def page(self, path: str, parameters: dict[str, str]) -> Shown | Redirect:
        """Return the page at a path, made once for all who ask for the same page of the same block."""
        page, subject = page_at(path)
        query, mark = Query.of(path, parameters), self.mark()
        key = (query.key(), mark)
        task = self._pages.get(key)
        if task is None:
            task = self._pages[key] = asyncio.create_task(self._make(page, query, subject, mark))
            while len(self._pages) > PAGES_KEPT:
                self._pages.popitem(last=False)
        return await asyncio.shield(task)

    async def _make(self, page: Page, query: Query, subject: str, mark: str) -> Shown | Redirect:
        async with self._readers:
            return await asyncio.to_thread(self._draw, page, query, subject, mark)

    def _draw(self, page: Page, query: Query, subject: str, mark: str) -> Shown | Redirect:
        document = build_document(page, query, subject, self.look)
        if isinstance(document, Redirect):
            return document
        return Shown(page_html(document, page, self.look(), mark, query.text("q")), document.status)

    async def changes(self) -> AsyncIterator[str]:
        """Yield an event with the mark now and whenever it changes, until the node stops."""
        sent, silent = "", 0
        while self.node.feed.reason is None:
            mark, silent = self.mark(), silent + 1
            if mark != sent:
                sent, silent = mark, 0
                yield f"data: {mark}\n\n"
            elif silent >= SILENT_LOOKS:
                silent = 0
                yield ":\n\n"
            await asyncio.sleep(LOOK_SECONDS)


def build_document(page: Page, query: Query, subject: str, look: Callable[[], Reading]) -> Document | Redirect:
    """Return a page; what goes wrong is a page too, and what is wrong with the query stands at its top.

    It takes a look at the node once, and again if the chain went back meanwhile.
    """
    try:
        try:
            document = page.build(look(), query, subject)
        except ViewGoneError:
            query.complaints.clear()
            document = page.build(look(), query, subject)
    except ViewGoneError as error:
        return gone_document(error)
    except Rejection as rejection:
        return rejection_document(rejection)
    except StoppingError as error:
        return failure_document(error)
    # A defect of one page is shown there and logged; the node goes on.
    except Exception as error:  # noqa: BLE001
        _log.exception("the explorer's page %s could not be built", page.path)
        return failure_document(error)
    if isinstance(document, Redirect) or not query.complaints:
        return document
    complaints = "; ".join(dict.fromkeys(map(visible, query.complaints)))
    notice = Notice("complaints", "", content=text(f"{complaints}."), tone="warn")
    return replace(document, sections=(notice, *document.sections))


def page_at(path: str) -> tuple[Page, str]:
    """Return the page at a path, and the subject that the path names."""
    pages = {page.path: page for page in PAGES}
    parent, _, subject = path.rpartition("/")
    if path in pages:
        return pages[path], ""
    return (pages.get(f"{parent}/{SUBJECT}", NOWHERE), subject) if subject else (NOWHERE, "")


def explorer_routes(node: "Node") -> list[Route]:
    """Return the routes of a node's explorer: ``/``, ``/favicon.ico``, and all below ``/explorer``."""
    explorer = Explorer(node)

    async def page(request: Request) -> Response:
        found = await explorer.page(request.url.path, dict(request.query_params))
        if isinstance(found, Redirect):
            return RedirectResponse(found.href, headers=FRESH)
        return HTMLResponse(found.html, found.status, headers=FRESH)

    async def stream(_: Request) -> Response:
        return StreamingResponse(explorer.changes(), media_type="text/event-stream", headers=FRESH)

    async def asset(request: Request) -> Response:
        for path, content, media_type in assets().values():
            if path == request.url.path:
                return Response(content, media_type=media_type, headers=FOREVER)
        return await page(request)

    async def favicon(_: Request) -> Response:
        return Response(FAVICON, media_type="image/svg+xml", headers=FOREVER)

    return [
        Route(links.FAVICON, favicon),
        Route(links.STREAM, stream),
        Route(f"{links.ASSETS}/{{name}}", asset),
        *(Route(path, page) for path in (links.OVERVIEW, links.ROOT, f"{links.ROOT}/{{rest:path}}")),
    ]
