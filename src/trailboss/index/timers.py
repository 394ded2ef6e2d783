"""Where timers are: one by its id, those that ended, those that live, and which of them scheduled which."""

from collections.abc import Iterable
from sqlite3 import Connection
from typing import Any, Final

from trailboss.index import pages
from trailboss.index.records import Cause, IndexedTimer, Lineage, ListPage
from trailboss.index.schema import ENDINGS, PLACE_BITS, ROLES, after, height_of, loaded_or_none, stored
from trailboss.model.blocks import Origin
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.timer_list import ALL, TimerFilter

LIVE: Final = "live"
SORTED_MAX: Final = 10_000  # most timers that are sorted for a page of them
NONE: ListPage[IndexedTimer] = ListPage((), 0)
Parties = dict[str, int]  # numbers of addresses by their role
_TERMS: Final = ("height", "gas_limit", "expires_at", "max_fee_per_cycle", "max_priority_fee_per_cycle")
_TIMER: Final = f"""
SELECT timer.id, actor.address, target.address, payer.address, handler.name, timer.height, timer.gas_limit,
    timer.expires_at, timer.max_fee, timer.max_priority_fee, timer.ended, timer.ending, timer.reverted,
    timer.receipt, parent.id, transactions.hash, timer.sequence, timer.generation
FROM timers AS timer
JOIN addresses AS actor ON actor.number = timer.actor
JOIN addresses AS target ON target.number = timer.target
JOIN addresses AS payer ON payer.number = timer.payer
JOIN names AS handler ON handler.number = timer.handler
LEFT JOIN timers AS parent ON parent.at = timer.parent
LEFT JOIN transactions ON transactions.at = (timer.at >> {PLACE_BITS} << {PLACE_BITS}) + timer.position
WHERE timer.at = ?
"""


def places_of(connection: Connection, timer_id: bytes, upto: int) -> list[tuple[int, int]]:
    """Return the place of each timer of an id, and the first one of its line, the first timer first."""
    query = "SELECT at, ifnull(root, at) FROM timers WHERE id = ? AND at < ?"
    return sorted(connection.execute(query, (bytes(timer_id), after(upto))))


def find_timer(connection: Connection, timer_id: bytes, upto: int) -> IndexedTimer | None:
    """Return the timer of an id, live or ended; of several the last one. None if no block scheduled it."""
    found = places_of(connection, timer_id, upto)
    return _read(connection, found[-1][0], upto) if found else None


def _read(connection: Connection, at: int, upto: int) -> IndexedTimer:
    row = connection.execute(_TIMER, (at,)).fetchone()
    identity, actor, target, payer, handler, *terms, ended, ending, reverted = row[:13]
    receipt, parent, transaction, sequence, generation = row[13:]
    has_ended = ended is not None and ended < after(upto)
    facts: dict[str, Any] = dict(zip(_TERMS, map(loaded_or_none, terms), strict=True))
    facts |= zip(ROLES, map(Address, (actor, target, payer)), strict=True)
    return IndexedTimer(
        **facts,
        timer_id=Hash32(identity),
        handler=handler,
        state=ENDINGS[ending] if has_ended else LIVE,
        ended_at=height_of(ended) if has_ended else None,
        reverted=has_ended and bool(reverted),
        cause=None
        if receipt is None
        else Cause(
            origin=Origin.TRANSACTION if transaction else Origin.TIMER if parent else Origin.MESSAGE,
            timer_id=parent and Hash32(parent),
            transaction=transaction and Hash32(transaction),
            height=height_of(at),
            receipt=receipt,
        ),
        sequence=sequence,
        generation=generation,
    )


def _read_all(connection: Connection, places: Iterable[int], upto: int) -> tuple[IndexedTimer, ...]:
    return tuple(_read(connection, at, upto) for at in places)


def event_heights(connection: Connection, timer_id: bytes, upto: int) -> tuple[int, ...]:
    """Return the heights of the blocks that hold events about a timer, ascending."""
    query = "SELECT at FROM events WHERE timer = ? AND at < ?"
    places = (timer for timer, _ in places_of(connection, timer_id, upto))
    rows = (row for timer in places for row in connection.execute(query, (timer, after(upto))))
    return tuple(sorted({height_of(at) for (at,) in rows}))


def list_ended(
    connection: Connection, wanted: TimerFilter, upto: int, offset: int = 0, limit: int = pages.PAGE_LIMIT
) -> ListPage[IndexedTimer]:
    """Return the ended timers that a filter lets pass, the last one first; its state ``all`` is for all four.

    Complexity: O(log n) for the number of those that ended in a way, of an address or of all; within heights, or of
    several addresses, O(what the narrowest condition alone lets pass).
    """
    window = pages.Window(upto, offset, limit)
    endings = list(range(len(ENDINGS))) if wanted.state == ALL else [ENDINGS.index(wanted.state)]
    parties = _parties(connection, wanted)
    if parties is None or wanted.first > wanted.last:
        return NONE
    if parties:
        counted = ([_ended(connection, role, parties, each, window) for each in endings] for role in parties)
        found = min(counted, key=lambda sources: pages.size_of(connection, sources))
        heights: pages.Conditions = {"height >= ? AND height <= ?": _heights(wanted)} if _is_limited(wanted) else {}
        found = [source.where(_in_roles(parties) | heights) for source in found]
    elif _is_limited(wanted):
        found = _ended_within(connection, wanted, endings, window)
    else:
        found = [_ended(connection, "", {}, each, window) for each in endings]
    rows = pages.page(connection, found, window, "ended DESC")
    return ListPage(_read_all(connection, (at for _, at in rows), window.upto), pages.size_of(connection, found))


def _ended(connection: Connection, role: str, parties: Parties, ending: int, window: pages.Window) -> pages.Source:
    """Return the timers that ended in a way, of an address in a role or of all, with their number."""
    index, condition, number = ("ending", "true", ()) if not role else (role, f"{role} = ?", (parties[role],))
    query = f"SELECT ended, at FROM timers INDEXED BY ended_by_{index} WHERE {condition} AND ending = ? AND ended"
    since = pages.Source(f"{query} >= ?", (*number, ending, window.bound))
    if role:
        size = pages.count(connection, f"{role} {ending}", parties[role], since)
    else:
        size = pages.sum_upto(connection, ENDINGS[ending], window.upto)
    return pages.Source(f"{query} < ?", since.values, size)


def _is_limited(wanted: TimerFilter) -> bool:
    return wanted.first > 0 or wanted.last < U64_MAX


def _heights(wanted: TimerFilter) -> tuple[int | bytes, int | bytes]:
    return stored(wanted.first), stored(wanted.last)


def _parties(connection: Connection, wanted: TimerFilter) -> Parties | None:
    """Return the addresses of a filter by role; None if one is unknown."""
    numbers: Parties = {}
    for role in ROLES:
        address = getattr(wanted, role)
        if address is not None:
            number = pages.number_of(connection, address)
            if number is None:
                return None
            numbers[role] = number
    return numbers


def _in_roles(parties: Parties) -> pages.Conditions:
    """Return the conditions that a timer has to do with each of several addresses; none for one, which led to it."""
    return {f"+{role} = ?": (number,) for role, number in parties.items()} if len(parties) > 1 else {}


def _ended_within(
    connection: Connection, wanted: TimerFilter, endings: list[int], window: pages.Window
) -> list[pages.Source]:
    found = []
    rows = "FROM timers INDEXED BY ended_by_height WHERE ending = ? AND height >= ? AND height <= ? AND ended < ?"
    latest = 0
    for ending in endings:
        values = (ending, *_heights(wanted), window.bound)
        size, last = connection.execute(f"SELECT count(*), ifnull(max(ended), 0) {rows}", values).fetchone()
        found.append(pages.Source(f"SELECT ended, at {rows}", values, size))
        latest = max(latest, last)
    if pages.size_of(connection, found) <= SORTED_MAX:
        return found
    # Timers end about as they are due, so a page lies close below the last one.
    where = "WHERE ending = ? AND ended <= ? AND height >= ? AND height <= ?"
    query = f"SELECT ended, at FROM timers INDEXED BY ended_by_ending {where}"
    bounds = ((ending, latest, *_heights(wanted)) for ending in endings)
    return [pages.Source(query, each, source.size) for each, source in zip(bounds, found, strict=True)]


def list_live(
    connection: Connection, wanted: TimerFilter, upto: int, offset: int = 0, limit: int = pages.PAGE_LIMIT
) -> ListPage[Hash32]:
    """Return the ids of the live timers of an actor, target or payer that a filter lets pass, whatever its state.

    They come by height and insertion. Without an address there are none: the view has that answer. Complexity: O(live
    timers of the address within the heights).
    """
    window = pages.Window(upto, offset, limit)
    parties = _parties(connection, wanted)
    if not parties or wanted.first > wanted.last:
        return ListPage((), 0)
    lists = [_live(role, number, wanted, window) for role, number in parties.items()]
    found = min(lists, key=lambda sources: pages.size_of(connection, sources)) if len(lists) > 1 else lists[0]
    found = [source.where(_in_roles(parties)) for source in found]
    sized = [source._replace(size=pages.size_of(connection, [source])) for source in found]
    rows = pages.page(connection, sized, window, "height, at")
    return ListPage(tuple(Hash32(identity) for _, _, identity in rows), pages.size_of(connection, sized))


def _live(role: str, number: int, wanted: TimerFilter, window: pages.Window) -> list[pages.Source]:
    """Return the timers of an address in a role that live, and those that have ended above the height."""
    values = (number, window.bound, *_heights(wanted))
    rows = f"{role} = ? AND at < ? AND height >= ? AND height <= ?"
    live = f"SELECT height, at, id FROM timers INDEXED BY live_by_{role} WHERE {rows} AND ended IS NULL"
    ended = f"SELECT height, at, id FROM timers INDEXED BY ended_by_{role} WHERE {rows} AND ending = ? AND ended >= ?"
    since = (pages.Source(ended, (*values, ending, window.bound)) for ending in range(len(ENDINGS)))
    return [pages.Source(live, values), *since]


def next_paid(connection: Connection, payer: bytes, limit: int) -> tuple[Hash32, ...]:
    """Return the ids of the first live timers that an address pays for, at the index's own height. O(limit)."""
    query = "SELECT id FROM timers WHERE payer = ? AND ended IS NULL ORDER BY height, at LIMIT ?"
    rows = connection.execute(query, (pages.number_of(connection, payer), limit))
    return tuple(Hash32(identity) for (identity,) in rows)


def live_payers(connection: Connection, cursor: int, limit: int) -> tuple[tuple[Address, ...], int]:
    """Return some payers of live timers at the index's own height, and where the next ones begin.

    That is 0 after the last ones, and the first ones begin at 0. Complexity: O(limit · log n).
    """
    found: list[Address] = []
    query = "SELECT payer FROM timers WHERE payer > ? AND ended IS NULL ORDER BY payer LIMIT 1"
    for _ in range(limit):
        row = connection.execute(query, (cursor,)).fetchone()
        if row is None:
            return tuple(found), 0
        cursor = row[0]
        found.append(Address(pages.address_of(connection, cursor)))
    return tuple(found), cursor


def find_lineage(connection: Connection, timer_id: bytes, upto: int) -> Lineage | None:
    """Return where a timer stands among those that scheduled one another; None if no block scheduled it."""
    found = places_of(connection, timer_id, upto)
    if not found:
        return None
    at, root = found[-1]
    (identity,) = connection.execute("SELECT id FROM timers WHERE at = ?", (root,)).fetchone()
    (place,) = connection.execute("SELECT place FROM timers WHERE at = ?", (at,)).fetchone()
    return Lineage(
        timer=_read(connection, at, upto),
        root=Hash32(identity),
        family_size=_family_size(connection, root, upto),
        place=place,
        children=pages.size_of(connection, [_children(at, upto)]),
    )


def _family_size(connection: Connection, root: int, upto: int) -> int:
    query = "SELECT place FROM timers WHERE root = ? AND at < ? ORDER BY place DESC LIMIT 1"
    row = connection.execute(query, (root, after(upto))).fetchone()
    return 1 + (row[0] if row else 0)


def _children(at: int, upto: int) -> pages.Source:
    return pages.Source("SELECT at FROM timers WHERE parent = ? AND at < ?", (at, after(upto)))


def list_family(
    connection: Connection, timer_id: bytes, upto: int, offset: int = 0, limit: int = pages.PAGE_LIMIT
) -> ListPage[IndexedTimer]:
    """Return the first timer of a timer's line, and all that descend from it, as they were scheduled.

    Where each one schedules the next it is a chain; `Lineage.place` is where the timer itself stands.
    """
    window = pages.Window(upto, offset, limit)
    found = places_of(connection, timer_id, window.upto)
    if not found:
        return NONE
    root, (most, begin) = found[-1][1], window.part
    query = "SELECT at FROM timers WHERE root = ? AND place >= ? AND at < ? ORDER BY place LIMIT ?"
    first = [] if begin or not most else [root]
    values = (root, max(begin, 1), window.bound, most - len(first))
    rows = (row[0] for row in connection.execute(query, values).fetchall())
    size = _family_size(connection, root, window.upto)
    return ListPage(_read_all(connection, (*first, *rows), window.upto), size)


def list_children(
    connection: Connection, timer_id: bytes, upto: int, offset: int = 0, limit: int = pages.PAGE_LIMIT
) -> ListPage[IndexedTimer]:
    """Return the timers that the fires of a timer scheduled, as they did."""
    window = pages.Window(upto, offset, limit)
    found = places_of(connection, timer_id, window.upto)
    if not found:
        return NONE
    children = [_children(found[-1][0], window.upto)]
    rows = pages.page(connection, children, window, "at")
    return ListPage(_read_all(connection, (at for (at,) in rows), window.upto), pages.size_of(connection, children))


def list_ancestors(
    connection: Connection, timer_id: bytes, upto: int, offset: int = 0, limit: int = pages.PAGE_LIMIT
) -> ListPage[IndexedTimer]:
    """Return the timer whose fire scheduled a timer, and the one whose fire did that, and so on. O(offset + limit)."""
    window = pages.Window(upto, offset, limit)
    found = places_of(connection, timer_id, window.upto)
    if not found:
        return NONE
    timer = _read(connection, found[-1][0], window.upto)
    query = (
        "WITH RECURSIVE line (at, parent) AS (SELECT at, parent FROM timers WHERE at = ? UNION ALL "
        "SELECT timers.at, timers.parent FROM line JOIN timers ON timers.at = line.parent"
        ") SELECT at FROM line LIMIT ? OFFSET ? + 1"
    )
    rows = connection.execute(query, (found[-1][0], *window.part)).fetchall()
    return ListPage(_read_all(connection, (at for (at,) in rows), window.upto), timer.generation)
