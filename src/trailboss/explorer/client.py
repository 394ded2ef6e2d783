"""One page in one browser: drawn once, changed in place while somebody looks at it, and forgotten when it is closed."""

import asyncio
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from trailboss.explorer.documents import Document
from trailboss.explorer.page_builder import Page, Redirect
from trailboss.explorer.page_service import Explorer
from trailboss.explorer.query import Query
from trailboss.explorer.renderer import DocumentView, ShellElement
from trailboss.node.options import Rhythm

if TYPE_CHECKING:
    from nicegui import Client
    from nicegui.events import GenericEventArguments

REFRESH_SECONDS: Final = 0.5
"""Least time between two refreshes of a page."""
POLL_SECONDS: Final = 1.0
"""How often a page that nothing has woken looks at the mempool and at the node's health, which no block tells of."""
REST_FACTOR: Final = 4
"""A page that takes long to read is left alone for so many times as long."""
QUIET_BLOCKS: Final = 3
QUIET_SECONDS: Final = 3
"""A node that has built no block for so many block times, and so many seconds besides, is shown as quiet."""
MILLISECONDS: Final = 1_000


class PageClient:
    """A page as one client has it open."""

    def __init__(self, explorer: Explorer, page: Page, query: Query, subject: str, client: "Client") -> None:
        self._explorer = explorer
        self._page = page
        self._query = query
        self._subject = subject
        self._client = client
        self._flag = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._shown: object = None

    def draw(self, document: Document) -> None:
        """Draw the page, and listen to what the browser tells."""
        self._shown = self._explorer.mark()
        self._view = DocumentView(document, self._explorer.look().pulse())
        self._shell = ShellElement(self._live())
        self._shell.on("seen", self._on_seen)
        self._shell.on("go", self._on_go)
        self._client.on_connect(self.begin)
        self._client.on_disconnect(self.end)
        self._client.on_delete(self.end)

    def begin(self) -> None:
        """Follow the chain: the page is in the foreground."""
        if self._task is None:
            self._flag.set()
            self._explorer.wakes.add(self._flag)
            self._task = asyncio.create_task(self._follow())

    def end(self) -> None:
        """Leave the chain alone: the page is in the background, or gone."""
        self._explorer.wakes.remove(self._flag)
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self) -> None:
        while True:
            # Not `wait_for`, which may swallow the end of this task when the flag is set just then.
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._flag.wait()
            self._flag.clear()
            began = monotonic()
            await self._refresh()
            taken = monotonic() - began
            await asyncio.sleep(max(REFRESH_SECONDS, REST_FACTOR * taken))

    async def _refresh(self) -> None:
        mark = self._explorer.mark()
        if mark == self._shown:
            return
        self._shell.show(self._live())
        if self._page.is_live:
            query = self._query
            document = await self._explorer.document(self._page, query, self._subject)
            if isinstance(document, Document):
                self._show(document, query)
        self._shown = mark

    async def _on_go(self, event: "GenericEventArguments") -> None:
        search = str(event.args).removeprefix("?")
        self._query = query = Query.of(self._query.path, dict(parse_qsl(search)))
        document = await self._explorer.document(self._page, query, self._subject)
        if isinstance(document, Redirect):
            if not self._client.is_deleted:
                self._client.open(document.href)
        else:
            self._show(document, query)

    def _show(self, document: Document, query: Query) -> None:
        # Meanwhile somebody may have turned the page, or closed it.
        if query is self._query and not self._client.is_deleted:
            self._view.show(document)

    def _on_seen(self, event: "GenericEventArguments") -> None:
        if event.args:
            self.begin()
        else:
            self.end()

    def _live(self) -> dict[str, Any]:
        node = self._explorer.node
        pace, health = node.pace, node.health
        quiet = QUIET_BLOCKS * pace.block_time_ms / MILLISECONDS + QUIET_SECONDS
        return {
            "texts": self._explorer.look().pulse().texts(),
            "height": node.view.height,
            # Without an interval no block is due at any time.
            "quiet": quiet if pace.rhythm is Rhythm.INTERVAL else 1e9,
            "failed": "" if health.status == "running" else health.reason or health.status,
        }
