"""Which timers scheduled which: a fire may schedule others, and those others again.

All that descend from one timer stand in one list, and each timer knows the one whose fire scheduled it and how many
fires lie before it. So a page of a family of any length, the place of a timer in it and the number of its ancestors
take a look-up; the way up to an ancestor takes one for each fire between.

Decision: D-75
"""

from sqlite3 import Connection

from trailboss.index.lists import (
    OLDEST_FIRST,
    Bounds,
    Condition,
    Source,
    Window,
    list_size,
    one,
    page,
    sources,
    total,
)
from trailboss.index.records import IndexedTimer, Lineage, Page
from trailboss.index.schema import ENDINGS, Facet, after, before, block_of, list_of
from trailboss.index.timers import coordinates_of, read_timer
from trailboss.primitives.octets import Hash32

NONE: Page[IndexedTimer] = Page((), 0)


def find_lineage(connection: Connection, timer_id: bytes, upto: int) -> Lineage | None:
    """Return where a timer stands in its family; None if there is no such timer."""
    found = coordinates_of(connection, timer_id, upto)
    if not found:
        return None
    coordinate = found[-1][0]
    root, root_id = _root(connection, coordinate)
    number, bounds = list_of(Facet.KIN, root), Bounds(0, after(upto))
    children, condition = _children(connection, coordinate, root, upto)
    return Lineage(
        timer=read_timer(connection, coordinate, upto),
        root=Hash32(root_id),
        family_size=1 + list_size(connection, number, bounds),
        place=0 if coordinate == root else 1 + list_size(connection, number, Bounds(0, coordinate)),
        children=total(connection, children, [condition]),
    )


def list_family(connection: Connection, timer_id: bytes, window: Window) -> Page[IndexedTimer]:
    """Return the first timer of a timer's line, and all that descend from it, as they were scheduled."""
    found = coordinates_of(connection, timer_id, window.upto)
    if not found:
        return NONE
    root, _ = _root(connection, found[-1][0])
    family = sources(connection, [list_of(Facet.KIN, root)], window.bounds)
    return _page(connection, [*one(root, root, window.bounds), *family], window)


def list_children(connection: Connection, timer_id: bytes, window: Window) -> Page[IndexedTimer]:
    """Return the timers that the fires of a timer scheduled, as they did."""
    found = coordinates_of(connection, timer_id, window.upto)
    if not found:
        return NONE
    coordinate = found[-1][0]
    root, _ = _root(connection, coordinate)
    children, condition = _children(connection, coordinate, root, window.upto)
    return _page(connection, children, window, condition)


def list_ancestors(connection: Connection, timer_id: bytes, window: Window) -> Page[IndexedTimer]:
    """Return the timer whose fire scheduled a timer, the one whose fire scheduled that, and so on.

    Complexity: O(offset + limit).
    """
    found = coordinates_of(connection, timer_id, window.upto)
    if not found:
        return NONE
    timer = read_timer(connection, found[-1][0], window.upto)
    query = (
        "WITH RECURSIVE line (coordinate, parent) AS ("
        "SELECT coordinate, parent FROM timers WHERE coordinate = ? UNION ALL "
        "SELECT timers.coordinate, timers.parent FROM line JOIN timers ON timers.coordinate = line.parent"
        ") SELECT coordinate FROM line LIMIT ? OFFSET ? + 1"
    )
    rows = connection.execute(query, (found[-1][0], *window.part))
    return Page(tuple(read_timer(connection, each, window.upto) for (each,) in rows), timer.generation)


def _root(connection: Connection, coordinate: int) -> tuple[int, bytes]:
    """Return the coordinate and the id of the first timer of a timer's line."""
    query = (
        "SELECT first.coordinate, first.id FROM timers AS timer "
        "JOIN timers AS first ON first.coordinate = ifnull(timer.root, timer.coordinate) WHERE timer.coordinate = ?"
    )
    root, identity = connection.execute(query, (coordinate,)).fetchone()
    return root, identity


def _children(connection: Connection, coordinate: int, root: int, upto: int) -> tuple[list[Source], Condition]:
    """Return where the timers are that the fires of a timer scheduled, and what tells them from others of its family.

    A timer that ended by firing fired in that block alone.
    """
    query = "SELECT ended, ending FROM timers WHERE coordinate = ?"
    ended, ending = connection.execute(query, (coordinate,)).fetchone()
    first, last = coordinate, upto
    if ended is not None and ENDINGS[ending] == "fired":
        first, last = before(block_of(ended)), min(upto, block_of(ended))
    found = sources(connection, [list_of(Facet.KIN, root)], Bounds(first, after(last)))
    return found, Condition("here.about = ?", (coordinate,))


def _page(connection: Connection, found: list[Source], window: Window, *conditions: Condition) -> Page[IndexedTimer]:
    rows = page(connection, found, window, conditions, order=OLDEST_FIRST)
    items = tuple(read_timer(connection, item, window.upto) for item, _ in rows)
    return Page(items, total(connection, found, conditions))
