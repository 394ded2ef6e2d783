"""The page for addresses at which there is none."""

from trailboss.node.explorer.documents import Document
from trailboss.node.explorer.failures import missing_document
from trailboss.node.explorer.query import Query
from trailboss.node.explorer.reading import Reading


def nowhere(_reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page that says so."""
    return missing_document(f"There is no page at {query.path}")
