"""Documents for clients: read beside the event loop, shared by all who look at the same page of the same block."""

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from trailboss.explorer.address_labels import Labels, Names, fixed_names
from trailboss.explorer.documents import Document
from trailboss.explorer.page_builder import Page, Redirect, build_document
from trailboss.explorer.page_context import Reading
from trailboss.explorer.query import Query
from trailboss.explorer.refresh_signals import Wakes

if TYPE_CHECKING:
    from trailboss.node.service import Node

READERS: Final = 2
"""Pages that are read at the same time: they share the interpreter with the blocks, and neither may starve."""
DOCUMENTS_KEPT: Final = 64
"""Documents that are kept for others who look at the same page of the same block."""


class Explorer:
    """What all clients share.

    Attributes:
        node: The node.
        wakes: Tells clients of new blocks.
    """

    def __init__(self, node: "Node") -> None:
        self.node = node
        self.wakes = Wakes(node.feed)
        self._known = fixed_names(node.view)
        self._labels: Labels = {}
        self._readers = asyncio.Semaphore(READERS)
        self._documents: OrderedDict[object, asyncio.Task[Document | Redirect]] = OrderedDict()

    def look(self) -> Reading:
        """Return a look at the node as it stands now."""
        view = self.node.view
        return Reading(self.node, view, Names(view, self._known, self._labels))

    def mark(self) -> tuple[object, ...]:
        """Return what is another whenever a live page may say something else. Costs nothing."""
        return self.node.view.head.hash, len(self.node.mempool), self.node.health.status, self.node.pace

    async def document(self, page: Page, query: Query, subject: str) -> Document | Redirect:
        """Return a page as it stands now, read once for all who ask for the same of the same block."""
        key = (page.path, subject, query.key(), self.mark())
        task = self._documents.get(key)
        if task is None:
            task = asyncio.create_task(self._read(page, query, subject))
            self._documents[key] = task
            while len(self._documents) > DOCUMENTS_KEPT:
                self._documents.popitem(last=False)
        return await asyncio.shield(task)

    async def _read(self, page: Page, query: Query, subject: str) -> Document | Redirect:
        async with self._readers:
            return await asyncio.to_thread(build_document, page, query, subject, self.look)
