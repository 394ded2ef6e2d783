"""Where timers are: one by its id, those that ended, and which live ones an address has to do with."""

from collections.abc import Iterator, Sequence
from sqlite3 import Connection
from typing import Final

from trailboss.index.lists import (
    BY_HEIGHT,
    Bounds,
    Condition,
    Source,
    Window,
    one,
    page,
    sources,
    total,
)
from trailboss.index.queries import address_number
from trailboss.index.records import Cause, IndexedTimer, Page
from trailboss.index.schema import (
    ENDING_NUMBERS,
    ENDINGS,
    PLACE_BITS,
    PREFIX_WIDTH,
    ROLE_SUMS,
    Facet,
    Role,
    after,
    block_of,
    ended_list,
    key_of,
    list_of,
    live_list,
    loaded,
    stored,
)
from trailboss.model.blocks import Origin
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.timer_list import ALL, TimerFilter

LIVE: Final = "live"
SORTED_MAX: Final = 10_000
"""Most timers that are sorted for a page of them."""
_TIMER: Final = f"""
SELECT timer.id, actor.address, target.address, payer.address, handler.name, timer.height, timer.gas_limit,
    timer.expires_at, timer.max_fee, timer.max_priority_fee, timer.ended, timer.ending, timer.reverted,
    timer.receipt, parent.id, transactions.hash, timer.sequence, timer.generation
FROM timers AS timer
JOIN addresses AS actor ON actor.number = timer.actor
JOIN addresses AS target ON target.number = timer.target
JOIN addresses AS payer ON payer.number = timer.payer
JOIN names AS handler ON handler.number = timer.handler
LEFT JOIN timers AS parent ON parent.coordinate = timer.parent
LEFT JOIN transactions
    ON transactions.coordinate = (timer.coordinate >> {PLACE_BITS} << {PLACE_BITS}) + timer.position
WHERE timer.coordinate = ?
"""


def coordinates_of(connection: Connection, timer_id: bytes, upto: int) -> list[tuple[int, int | None]]:
    """Return the coordinate of each timer of an id, and that of its end if it is over by then, the first one first."""
    query = "SELECT coordinate, ended FROM timers WHERE substr(id, 1, 8) = ? AND id = ? AND coordinate < ?"
    bound = after(upto)
    rows = connection.execute(query, (timer_id[:PREFIX_WIDTH], bytes(timer_id), bound))
    return sorted((found, ended if ended is not None and ended < bound else None) for found, ended in rows)


def find_timer(connection: Connection, timer_id: bytes, upto: int) -> IndexedTimer | None:
    """Return the timer of an id, of several the last one."""
    found = coordinates_of(connection, timer_id, upto)
    return read_timer(connection, found[-1][0], upto) if found else None


def read_timer(connection: Connection, coordinate: int, upto: int) -> IndexedTimer:
    """Return the timer of a coordinate."""
    row = connection.execute(_TIMER, (coordinate,)).fetchone()
    identity, actor, target, payer, handler, height, gas_limit, expires_at, *fees, ended, ending, reverted = row[:13]
    receipt, parent, transaction, sequence, generation = row[13:]
    has_ended = ended is not None and ended < after(upto)
    max_fee, max_priority_fee = (None if fee is None else loaded(fee) for fee in fees)
    return IndexedTimer(
        timer_id=Hash32(identity),
        actor=Address(actor),
        target=Address(target),
        payer=Address(payer),
        handler=handler,
        height=loaded(height),
        gas_limit=loaded(gas_limit),
        expires_at=loaded(expires_at),
        max_fee_per_cycle=max_fee,
        max_priority_fee_per_cycle=max_priority_fee,
        state=ENDINGS[ending] if has_ended else LIVE,
        ended_at=block_of(ended) if has_ended else None,
        reverted=has_ended and bool(reverted),
        cause=_cause(coordinate, receipt, parent, transaction),
        sequence=sequence,
        generation=generation,
    )


def _cause(coordinate: int, receipt: int, parent: bytes | None, transaction: bytes | None) -> Cause:
    origin = Origin.TRANSACTION if transaction else Origin.TIMER if parent else Origin.MESSAGE
    return Cause(
        origin=origin,
        timer_id=Hash32(parent) if parent else None,
        transaction=Hash32(transaction) if transaction else None,
        height=block_of(coordinate),
        receipt=receipt,
    )


def timer_events(connection: Connection, timer_id: bytes, bounds: Bounds) -> list[Source]:
    """Return sources of all events about the timers of an id."""
    found: list[Source] = []
    for coordinate, ended in coordinates_of(connection, timer_id, block_of(bounds.high) - 1):
        found += one(coordinate, coordinate, bounds)
        found += sources(connection, [list_of(Facet.TIMER, coordinate)], bounds)
        if ended is not None:
            found += one(ended, coordinate, bounds)
    return found


def event_heights(connection: Connection, timer_id: bytes, upto: int) -> tuple[int, ...]:
    """Return the heights of the blocks that hold events about a timer, ascending."""
    found = timer_events(connection, timer_id, Bounds(0, after(upto)))
    heights: dict[int, None] = {}
    for source in found:
        heights |= dict.fromkeys(block_of(item) for item, _ in connection.execute(source.query, source.values))
    return tuple(sorted(heights))


# Those that ended


def list_ended(connection: Connection, wanted: TimerFilter, window: Window) -> Page[IndexedTimer]:
    """Return ended timers, the last one first; see `Index.ended_timers`."""
    endings = list(range(len(ENDINGS))) if wanted.state == ALL else [ENDINGS.index(wanted.state)]
    parties = _parties(connection, wanted)
    if parties is None or wanted.first > wanted.last:
        return Page((), 0)
    if parties:
        found = min((_ended_of(connection, *party, endings, window.bounds) for party in parties.items()), key=total_of)
        conditions = [*_due_within(wanted), *_in_roles(parties)]
        count = total(connection, found, conditions)
    else:
        found, conditions, count = _ended_within(connection, wanted, endings, window.bounds)
    rows = page(connection, found, window, conditions)
    return Page(tuple(read_timer(connection, about, window.upto) for _, about in rows), count)


def total_of(found: Sequence[Source]) -> int:
    """Return how many rows sources have."""
    return sum(source.size for source in found)


def _is_limited(wanted: TimerFilter) -> bool:
    return wanted.first > 0 or wanted.last < U64_MAX


def _parties(connection: Connection, wanted: TimerFilter) -> dict[int, int] | None:
    """Return the addresses of a filter by number, each with the roles that it must have; None if one is unknown."""
    roles: dict[int, int] = {}
    for role, address in ((Role.ACTOR, wanted.actor), (Role.TARGET, wanted.target), (Role.PAYER, wanted.payer)):
        if address is not None:
            number = address_number(connection, address)
            if number is None:
                return None
            roles[number] = roles.get(number, 0) | role
    return roles


def _sums_with(roles: int) -> Iterator[int]:
    return (each for each in ROLE_SUMS if each & roles == roles)


def _ended_of(connection: Connection, address: int, roles: int, endings: Sequence[int], bounds: Bounds) -> list[Source]:
    lists = (ended_list(address, each, ending) for each in _sums_with(roles) for ending in endings)
    return sources(connection, lists, bounds)


def _ended_within(
    connection: Connection, wanted: TimerFilter, endings: Sequence[int], bounds: Bounds
) -> tuple[list[Source], list[Condition], int]:
    """Return sources of all timers that ended in some ways, due within heights; conditions; and how many there are."""
    names = [name for name, ending in ENDING_NUMBERS.items() if ending in endings]
    if not _is_limited(wanted):
        found = sources(connection, _name_lists(connection, names), bounds)
        return found, [], total_of(found)
    rows = "FROM timers WHERE ending = ? AND height >= ? AND height <= ? AND ended < ?"
    heights = stored(wanted.first), stored(wanted.last)
    found, last = [], 0
    for ending in endings:
        values = (ending, *heights, bounds.high)
        size, latest = connection.execute(f"SELECT count(*), ifnull(max(ended), 0) {rows}", values).fetchone()
        query = f"SELECT item, about FROM (SELECT ended AS item, coordinate AS about {rows}) AS here WHERE true"
        found.append(Source(query, values, size))
        last = max(last, latest)
    count = total_of(found)
    if count <= SORTED_MAX:
        return found, [], count
    # Timers end about as they are due, so a page lies close below the last one.
    query = "SELECT true FROM timers WHERE coordinate = here.about AND height >= ? AND height <= ?"
    ended = sources(connection, _name_lists(connection, names), Bounds(bounds.low, last + 1))
    return ended, [Condition(f"EXISTS ({query})", heights)], count


def _name_lists(connection: Connection, names: Sequence[str]) -> Iterator[int]:
    for name in names:
        row = connection.execute("SELECT number FROM names WHERE name = ?", (name,)).fetchone()
        if row is not None:
            yield list_of(Facet.NAME, row[0])


def _due_within(wanted: TimerFilter) -> list[Condition]:
    """Return the condition that a timer's height lies within those of a filter, if it sets any."""
    heights = stored(wanted.first), stored(wanted.last)
    return [Condition("here.due >= ? AND here.due <= ?", heights)] if _is_limited(wanted) else []


def _in_roles(parties: dict[int, int]) -> list[Condition]:
    """Return the conditions that a timer has each of some addresses in its roles; none for one, which led to it."""
    conditions = []
    for number, roles in parties.items() if len(parties) > 1 else ():
        columns = [role.name.lower() for role in Role if roles & role]
        holds = " AND ".join(f"{column} = ?" for column in columns)
        query = f"SELECT true FROM timers WHERE coordinate = here.about AND {holds}"
        conditions.append(Condition(f"EXISTS ({query})", (number,) * len(columns)))
    return conditions


# Those that live


def list_live(connection: Connection, wanted: TimerFilter, window: Window) -> Page[Hash32]:
    """Return the ids of live timers of an address, by height and insertion; see `Index.live_timers`."""
    parties = _parties(connection, wanted)
    if not parties or wanted.first > wanted.last:
        return Page((), 0)
    live = (_live_of(connection, number, roles, wanted, window.upto) for number, roles in parties.items())
    found = min(live, key=total_of)
    conditions = _in_roles(parties)
    rows = page(connection, found, window, conditions, order=BY_HEIGHT)
    query = "SELECT id FROM timers WHERE coordinate = ?"
    ids = (connection.execute(query, (about,)).fetchone()[0] for _, about in rows)
    return Page(tuple(map(Hash32, ids)), total(connection, found, conditions))


def _live_of(connection: Connection, address: int, roles: int, wanted: TimerFilter, upto: int) -> list[Source]:
    """Return sources of the live timers of an address: their heights and coordinates."""
    heights, bound = (stored(wanted.first), stored(wanted.last)), after(upto)
    live = (
        "SELECT height AS item, timer AS about FROM live WHERE list = ? AND height >= ? AND height <= ? AND timer < ?"
    )
    asked: list[tuple[str, tuple[object, ...]]] = [
        (live, (live_list(address, each), *heights, bound)) for each in _sums_with(roles)
    ]
    head: int = connection.execute("SELECT height FROM state").fetchone()[0]
    if head > upto:
        # What has ended since was live then.
        ended = (
            "SELECT height AS item, coordinate AS about FROM postings JOIN timers ON coordinate = postings.about "
            "WHERE list = ? AND postings.item >= ? AND height >= ? AND height <= ? AND coordinate < ?"
        )
        lists = [ended_list(address, each, ending) for each in _sums_with(roles) for ending in range(len(ENDINGS))]
        asked += [(ended, (number, bound, *heights, bound)) for number in lists]
    found = []
    for query, values in asked:
        size = connection.execute(f"SELECT count(*) FROM ({query})", values).fetchone()[0]
        if size:
            found.append(Source(f"SELECT item, about FROM ({query}) AS here WHERE true", values, size))
    return found


# Payers


def next_paid(connection: Connection, payer: bytes, limit: int) -> tuple[Hash32, ...]:
    """Return the ids of the first live timers that somebody pays for; see `Index.next_paid`."""
    number = address_number(connection, payer)
    if number is None:
        return ()
    query = "SELECT height, timer FROM live WHERE list = ? ORDER BY height, timer LIMIT ?"
    lists = [live_list(number, roles) for roles in _sums_with(Role.PAYER)]
    rows = (row for each in lists for row in connection.execute(query, (each, limit)))
    found = sorted((loaded(height), timer) for height, timer in rows)[:limit]
    query = "SELECT id FROM timers WHERE coordinate = ?"
    return tuple(Hash32(connection.execute(query, (timer,)).fetchone()[0]) for _, timer in found)


def live_payers(connection: Connection, cursor: int, limit: int) -> tuple[tuple[Address, ...], int]:
    """Return payers of live timers from a place on, and the place behind them; see `Index.live_payers`."""
    found: list[Address] = []
    for _ in range(limit):
        row = connection.execute("SELECT list FROM live WHERE list > ? ORDER BY list LIMIT 1", (cursor,)).fetchone()
        if row is None:
            return tuple(found), 0
        cursor = row[0]
        if cursor & Role.PAYER:
            number = key_of(cursor)
            query = "SELECT address FROM addresses WHERE number = ?"
            found.append(Address(connection.execute(query, (number,)).fetchone()[0]))
            # The other lists of the address name it again.
            cursor = live_list(number + 1, 0)
    return tuple(found), cursor
