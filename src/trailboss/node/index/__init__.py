"""The index: a cache in SQLite of what the blocks of a chain say.

Decision: D-75
"""

from trailboss.node.index.events import read_events
from trailboss.node.index.gathering import mentions
from trailboss.node.index.index import Index
from trailboss.node.index.records import EventFilter, EventPlace, Page

__all__ = ["EventFilter", "EventPlace", "Index", "Page", "mentions", "read_events"]
