"""Which events there are: of a name, an emitter, an address, a timer, or all."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter
from sqlite3 import Connection
from typing import Final

from trailboss.index.lists import (
    NEWEST_FIRST,
    OLDEST_FIRST,
    Bounds,
    Condition,
    Window,
    is_in,
    page,
    sources,
    total,
)
from trailboss.index.queries import address_number
from trailboss.index.records import EventFilter, EventPlace, Page
from trailboss.index.schema import PLACE_MAX, Facet, before, block_of, key_of, list_of, loaded, place_of
from trailboss.index.timers import timer_events, total_of
from trailboss.model.blocks import Block
from trailboss.views.records import Event, block_events, event_view

Lists = tuple[int, ...]
NOTHING: Final[Lists] = ()
"""For a name or an address that no event has."""


def list_events(connection: Connection, wanted: EventFilter, window: Window, *, newest_first: bool) -> Page[EventPlace]:
    """Return where the events are that a filter lets pass; see `Index.events`."""
    names, addresses = _names(connection, wanted), list(_addresses(connection, wanted))
    if names == NOTHING or NOTHING in addresses:
        return Page((), 0)
    bounds = Bounds(before(wanted.since) + min(wanted.since_index, PLACE_MAX), window.bounds.high)
    conditions: list[Condition] = []
    if wanted.timer_id is not None:
        found = timer_events(connection, wanted.timer_id, bounds)
        conditions = [is_in(names)] if names else []
    elif addresses:
        # The shortest list is read, the others are asked.
        candidates = [(sources(connection, lists, bounds), lists) for lists in addresses]
        found, driving = min(candidates, key=lambda candidate: total_of(candidate[0]))
        addresses.remove(driving)
        conditions = [Condition("here.about = ?", (key_of(number),)) for number in names or ()]
    elif names:
        found = sources(connection, names, bounds)
    else:
        return _all_events(connection, wanted, window, newest_first=newest_first)
    conditions += map(is_in, addresses)
    rows = page(connection, found, window, conditions, order=NEWEST_FIRST if newest_first else OLDEST_FIRST)
    items = tuple(EventPlace(block_of(item), place_of(item)) for item, _ in rows)
    return Page(items, total(connection, found, conditions))


def _names(connection: Connection, wanted: EventFilter) -> Lists | None:
    """Return the list of events of the name that is asked for, if one is."""
    if wanted.name is None:
        return None
    row = connection.execute("SELECT number FROM names WHERE name = ?", (wanted.name,)).fetchone()
    return NOTHING if row is None else (list_of(Facet.NAME, row[0]),)


def _addresses(connection: Connection, wanted: EventFilter) -> Iterator[Lists]:
    """Yield, for each address that is asked for, the lists of which an event must stand in one."""
    for address, facets in ((wanted.emitter, (Facet.EMITTER,)), (wanted.address, (Facet.EMITTER, Facet.MENTION))):
        if address is not None:
            number = address_number(connection, address)
            yield NOTHING if number is None else tuple(list_of(facet, number) for facet in facets)


def _all_events(connection: Connection, wanted: EventFilter, window: Window, *, newest_first: bool) -> Page[EventPlace]:
    """Return a page of all events since a place: by how many events came before, the blocks say which they are."""
    upto, since, (most, passed_over) = window.upto, wanted.since, window.part
    earlier, of_since = (_events_upto(connection, min(height, upto)) for height in (since - 1, since))
    bottom, top = min(earlier + wanted.since_index, of_since), _events_upto(connection, upto)
    count = max(top - bottom, 0)
    if newest_first:
        end = top - min(passed_over, count)
        begin = max(end - most, bottom)
    else:
        begin = bottom + min(passed_over, count)
        end = min(begin + most, top)
    items = tuple(islice(_places(connection, begin), max(end - begin, 0)))
    return Page(items[::-1] if newest_first else items, count)


def _places(connection: Connection, ordinal: int) -> Iterator[EventPlace]:
    """Yield the places of the events from one on, by how many came before it."""
    query = "SELECT height, events FROM blocks WHERE events > ? ORDER BY events, height LIMIT 1"
    while row := connection.execute(query, (ordinal,)).fetchone():
        height, end = row
        begin = _events_upto(connection, height - 1)
        for index in range(ordinal - begin, end - begin):
            yield EventPlace(height, index)
        ordinal = end


def _events_upto(connection: Connection, height: int) -> int:
    query = "SELECT events FROM blocks WHERE height <= ? ORDER BY height DESC LIMIT 1"
    row = connection.execute(query, (height,)).fetchone()
    return 0 if row is None else loaded(row[0])


def read_events(blocks: Sequence[Block], places: Iterable[EventPlace]) -> list[Event]:
    """Return the events of some places, in that order.

    Complexity: O(events of each block that holds one); those of one block should stand next to one another.

    Args:
        blocks: Of a view of the chain, at the height that the index was asked for.
        places: As the index gives them.
    """
    found: list[Event] = []
    for height, of_block in groupby(places, attrgetter("height")):
        records = list(block_events(blocks[height]))
        found.extend(event_view(records[place.index], height) for place in of_block)
    return found
