"""`mount_explorer`: the explorer on the node's own application, at ``/`` and below ``/explorer``.

Decision: D-76
"""

from functools import cache
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI, Request
from nicegui import Client, core, ui
from starlette.datastructures import MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trailboss.explorer import links
from trailboss.explorer.client import PageClient
from trailboss.explorer.documents import Document
from trailboss.explorer.page_builder import Page, Redirect
from trailboss.explorer.page_service import Explorer
from trailboss.explorer.pages import NOWHERE, PAGES
from trailboss.explorer.query import Query
from trailboss.explorer.shell import FAVICON, head_html, header_html

if TYPE_CHECKING:
    from trailboss.node.service import Node

NAME: Final = "Trailboss"
FRAMEWORK: Final = ("/_nicegui", "/_nicegui_ws")
"""Where NiceGUI keeps its own files and its socket."""
RESPONSE_SECONDS: Final = 30.0
"""Longest time that a page may be read for before the browser is told that it was too long."""
RECONNECT_SECONDS: Final = 5.0
"""How long a page is kept whose browser is gone."""
MESSAGES_KEPT: Final = 100
UNCLAIMED_MAX: Final = 128
"""Pages that are kept for browsers that have yet to open their socket."""
SCOPE_KEY: Final = "trailboss.explorer"
SECURITY: Final = {
    # The framework evaluates what its own server sends; nothing is loaded from, or sent to, anywhere else.
    "content-security-policy": "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def is_explorer_path(path: str) -> bool:
    """Return whether a path is the explorer's, and not the API's.

    >>> [is_explorer_path(path) for path in ("/", "/explorer/blocks", "/favicon.ico", "/explorers", "/blocks")]
    [True, True, True, False, False]
    """
    below = (links.ROOT, *FRAMEWORK)
    return path in (links.OVERVIEW, "/favicon.ico", *below) or path.startswith(tuple(f"{each}/" for each in below))


def mount_explorer(app: FastAPI, node: "Node") -> None:
    """Serve the explorer of a node from its application.

    A process has one explorer at a time, as it has one NiceGUI: a later one takes the place of the one before.

    Args:
        app: The node's application. Only the explorer's own paths are taken from it, and only those that nothing
            before this call has taken.
        node: The node.
    """
    _register_pages()
    Client.shared_head_html = head_html()
    # The socket is for the pages of this very host.
    core.sio.eio.cors_allowed_origins = None
    # What an application before this one has made of it.
    core.app.user_middleware.clear()
    core.app.middleware_stack = None
    ui.run_with(
        app,
        title=NAME,
        favicon=FAVICON,
        dark=False,  # The explorer's own colours follow the browser.
        language="en-US",
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=RECONNECT_SECONDS,
        message_history_length=MESSAGES_KEPT,
        gzip_middleware_factory=None,
        show_welcome_message=False,
    )
    # It stands last and would answer for every path that is not there: an API says so itself, in its own form.
    app.router.routes[-1] = _ExplorerMount(Explorer(node), core.app)


class _ExplorerMount(Mount):
    """The explorer's place on the application: its own paths alone."""

    def __init__(self, explorer: Explorer, app: ASGIApp) -> None:
        super().__init__("/", app=_with_security(app))
        self._explorer = explorer

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] not in ("http", "websocket") or not is_explorer_path(scope["path"]):
            return Match.NONE, {}
        found, child = super().matches(scope)
        return found, {**child, SCOPE_KEY: self._explorer}


def _with_security(app: ASGIApp) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY)
            await send(message)

        await app(scope, receive, send_secured)

    return answer


@cache
def _register_pages() -> None:
    for page in (*PAGES, NOWHERE):
        _register(page)


def _register(page: Page) -> None:
    async def serve(request: Request, client: Client) -> Response | None:
        _forget_unclaimed()
        explorer: Explorer = request.scope[SCOPE_KEY]
        query, subject = Query.of(request.url.path, request.query_params), request.path_params.get("subject", "")
        document = await explorer.document(page, query, subject)
        if isinstance(document, Redirect):
            return RedirectResponse(document.href)
        _frame(client, explorer, page, document, query)
        PageClient(explorer, page, query, subject, client).draw(document)
        return None

    ui.page(page.path, response_timeout=RESPONSE_SECONDS)(serve)


def _forget_unclaimed() -> None:
    """Forget the oldest of the pages that were asked for and never opened a socket, as programs ask for them."""
    unclaimed = [client for client in Client.instances.values() if client.environ is None]
    for client in unclaimed[: max(0, len(unclaimed) - UNCLAIMED_MAX)]:
        client.delete()


def _frame(client: Client, explorer: Explorer, page: Page, document: Document, query: Query) -> None:
    # Quasar's page is a <main>, and the one of the explorer leaves its footer outside.
    next(client.content.ancestors()).tag = "div"
    client.title = f"{document.title} · {NAME}"
    client.status_code = document.status
    ui.add_body_html(header_html(explorer.look().pulse(), page.section, query.text("q")))
