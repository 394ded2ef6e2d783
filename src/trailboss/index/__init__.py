"""The index: a cache in SQLite of what the blocks of a chain say. Decision: D-75."""

from trailboss.index.index import Index
from trailboss.index.queries import read_events
from trailboss.index.records import EventFilter, EventPlace, ListPage
from trailboss.index.row_builder import mentions

__all__ = ["EventFilter", "EventPlace", "Index", "ListPage", "mentions", "read_events"]
