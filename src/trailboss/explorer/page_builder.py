"""From an address to a document, whatever happens on the way."""

import logging
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.explorer.cells import text
from trailboss.explorer.documents import Document, Notice
from trailboss.explorer.failures import failure_document, gone_document, rejection_document
from trailboss.explorer.page_context import Reading
from trailboss.explorer.query import Query
from trailboss.explorer.text import visible
from trailboss.node.block_builder import StoppingError
from trailboss.primitives.errors import Rejection, ViewGoneError

_log: Final = logging.getLogger(__name__)


class Redirect(Struct, frozen=True):
    """Another page is the right one.

    Attributes:
        href: Its path.
    """

    href: str


Builder = Callable[[Reading, Query, str], Document | Redirect]
"""What makes a page: from a look at the node, the query, and the subject that the path names, if it names one."""


class Page(Struct, frozen=True):
    """A kind of page.

    Attributes:
        path: Its route; ``{subject}`` stands for what it is about.
        build: What makes it, in a thread of its own.
        section: Path of the main page that it belongs to.
        is_live: Whether it changes as blocks come.
    """

    path: str
    build: Builder
    section: str
    is_live: bool = True


def build_document(page: Page, query: Query, subject: str, look: Callable[[], Reading]) -> Document | Redirect:
    """Return a page.

    Args:
        page: Which kind.
        query: What its address asks for; what is wrong with it is told at the top of the page.
        subject: What it is about.
        look: Takes a look at the node: once, and again if the chain went back meanwhile.
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
    # A defect of one page is told there and in the log; the node has better things to do than to end of it.
    except Exception as error:  # noqa: BLE001
        _log.exception("the explorer's page %s could not be built", page.path)
        return failure_document(error)
    if isinstance(document, Redirect) or not query.complaints:
        return document
    complaints = "; ".join(dict.fromkeys(map(visible, query.complaints)))
    notice = Notice("complaints", "", content=text(f"{complaints}."), tone="warn")
    return replace(document, sections=(notice, *document.sections))
