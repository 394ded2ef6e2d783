"""The page for addresses at which there is none."""

from trailboss.explorer.documents import Document
from trailboss.explorer.failures import missing_document
from trailboss.explorer.page_context import Reading
from trailboss.explorer.query import Query


def nowhere(_reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page that says so."""
    return missing_document(f"There is no page at {query.path}")
