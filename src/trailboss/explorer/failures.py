"""Pages for what went wrong: nothing there, not what it looks like, or a defect of the explorer's own."""

from typing import Final

from trailboss.explorer import links
from trailboss.explorer.cells import link, text
from trailboss.explorer.documents import Content, Document, Notice
from trailboss.explorer.text import visible
from trailboss.primitives.errors import Rejection, ViewGoneError

NOT_FOUND: Final = 404
BAD_REQUEST: Final = 400
GONE: Final = 503
DEFECT: Final = 500
WHERE_TO: Final[Content] = (
    *text("Go on to the "),
    *link("overview", links.OVERVIEW),
    *text(", the "),
    *link("blocks", links.BLOCKS),
    *text(" or the "),
    *link("timers", links.TIMERS),
    *text(", or search above for a height, a hash, a timer or an address."),
)


def missing_document(what: str, fix: str = "") -> Document:
    """Return the page for something that is not there.

    Args:
        what: What was looked for, and that it is not there.
        fix: What may help; empty for the ways on alone.
    """
    sentence = text(f"{fix} ") if fix else ()
    notice = Notice("missing", visible(what), content=(*sentence, *WHERE_TO), tone="warn")
    return Document("Not found", "Not found", (notice,), status=NOT_FOUND)


def rejection_document(rejection: Rejection) -> Document:
    """Return the page for a subject that cannot be."""
    error = rejection.error()
    notice = Notice(
        "refused", visible(error.what), content=(*text(f"{error.why}; {error.fix}. "), *WHERE_TO), tone="warn"
    )
    return Document("Not a page", "This cannot be shown", (notice,), status=BAD_REQUEST)


def gone_document(error: ViewGoneError) -> Document:
    """Return the page for a chain that goes back faster than it can be read."""
    content = text(f"{error}. Load the page again.")
    notice = Notice("gone", "The chain has gone back while this page was read", content=content, tone="warn")
    return Document("Gone", "The chain has gone back", (notice,), status=GONE)


def failure_document(error: Exception) -> Document:
    """Return the page for a defect: what is known of it, and that the node goes on."""
    content = text(
        f"{type(error).__name__}: {visible(str(error))}. The node goes on; its log has the traceback. "
        "Please report it with the address of this page."
    )
    notice = Notice("defect", "This page has a defect", content=content, tone="bad")
    return Document("Defect", "This page could not be built", (notice,), status=DEFECT)
