"""Where blocks, transactions, receipts, events and addresses are."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from sqlite3 import Connection
from typing import Any, Final

from trailboss.index import pages, schema
from trailboss.index.records import EventFilter, EventPlace, Found, IndexedReceipt, IndexedTransaction, ListPage
from trailboss.index.timers import places_of
from trailboss.model.blocks import Block, Origin
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.records import Event, block_events, event_view

HEXADECIMAL: Final = frozenset("0123456789abcdef")
_IDLE: Final = "SELECT height FROM idle_blocks WHERE prefix = ? AND height <= ? ORDER BY height"
_MENTIONS: Final = (
    "SELECT mentions.at AS at FROM mentions INDEXED BY mentions_by_address "
    "CROSS JOIN events ON events.at = mentions.at WHERE mentions.address = ? AND mentions.at >= ? AND mentions.at < ?"
)
_CONCERNS: Final = (
    "(+events.emitter = ? OR EXISTS (SELECT true FROM mentions AS other WHERE other.at = events.at "
    "AND other.address = ?))"
)


def find_block(connection: Connection, block_hash: bytes, blocks: Sequence[Block]) -> int | None:
    """Return the height of a block by its hash; None if there is none. Idle blocks of the view are compared."""
    upto = len(blocks) - 1
    query = "SELECT height FROM blocks WHERE hash = ? AND height <= ?"
    row = connection.execute(query, (bytes(block_hash), upto)).fetchone()
    if row is not None:
        return int(row[0])
    heights = connection.execute(_IDLE, (bytes(block_hash[: schema.PREFIX_WIDTH]), upto))
    return next((height for (height,) in heights if blocks[height].hash == block_hash), None)


def find_transaction(connection: Connection, tx_hash: bytes, upto: int) -> IndexedTransaction | None:
    """Return where the transaction of a hash is; None if no block has it."""
    query = "SELECT at, hash, receipt FROM transactions WHERE hash = ? AND at < ?"
    row = connection.execute(query, (bytes(tx_hash), schema.after(upto))).fetchone()
    return None if row is None else _transaction(*row)


def list_transactions(
    connection: Connection, upto: int, offset: int = 0, limit: int = pages.PAGE_LIMIT
) -> ListPage[IndexedTransaction]:
    """Return where transactions are, the newest first."""
    window = pages.Window(upto, offset, limit)
    query = "SELECT at, hash, receipt FROM transactions WHERE at < ? ORDER BY at DESC LIMIT ? OFFSET ?"
    rows = connection.execute(query, (window.bound, *window.part))
    return ListPage(tuple(_transaction(*row) for row in rows), pages.sum_upto(connection, "transactions", window.upto))


def _transaction(at: int, tx_hash: bytes, receipt: int) -> IndexedTransaction:
    height, position = schema.height_of(at), schema.place_of(at)
    return IndexedTransaction(hash=Hash32(tx_hash), height=height, position=position, receipt=receipt)


def list_receipts(
    connection: Connection,
    address: bytes,
    upto: int,
    origins: Iterable[Origin] = schema.ORIGINS,
    *,
    offset: int = 0,
    limit: int = pages.PAGE_LIMIT,
) -> ListPage[IndexedReceipt]:
    """Return where the receipts of an address are, as sender, payer, target or actor, the newest first."""
    window = pages.Window(upto, offset, limit)
    number = pages.number_of(connection, address)
    if number is None:
        return ListPage((), 0)
    rows = "SELECT at, origin, parts FROM receipts INDEXED BY receipts_by_address WHERE address = ? AND origin = ?"
    sources = []
    for origin in map(schema.ORIGINS.index, origins):
        since = pages.Source(f"{rows} AND at >= ?", (number, origin, window.bound))
        size = pages.count(connection, f"receipt {origin}", number, since)
        sources.append(pages.Source(f"{rows} AND at < ?", since.values, size))
    found = pages.page(connection, sources, window, "at DESC")
    return ListPage(tuple(_receipt(connection, *row) for row in found), pages.size_of(connection, sources))


def _receipt(connection: Connection, at: int, origin: int, parts: int) -> IndexedReceipt:
    height, place, position = schema.height_of(at), schema.place_of(at), None
    if schema.ORIGINS[origin] is Origin.TRANSACTION:
        # The receipts of a block's transactions stand next to one another.
        query = "SELECT receipt FROM transactions WHERE at = ?"
        position = place - connection.execute(query, (schema.place_at(height),)).fetchone()[0]
    roles = {f"is_{role}": bool(parts & 1 << bit) for bit, role in enumerate(schema.PARTS)}
    return IndexedReceipt(height=height, receipt=place, origin=schema.ORIGINS[origin], position=position, **roles)


def list_events(
    connection: Connection,
    wanted: EventFilter,
    upto: int,
    offset: int = 0,
    limit: int = pages.PAGE_LIMIT,
    *,
    newest_first: bool = False,
    is_counted: bool = True,
) -> ListPage[EventPlace]:
    """Return where the events are that a filter lets pass; `read_events` has them.

    The total is counted only if ``is_counted``; without, it is the number of items. Complexity: O(offset + limit) for
    one condition, of several O(what the narrowest alone lets pass); the total of one with ``since`` and another
    condition O(what passes).
    """
    window = pages.Window(upto, offset, limit)
    name = None if wanted.name is None else pages.name_number(connection, wanted.name)
    emitter, address = (
        None if each is None else pages.number_of(connection, each) for each in (wanted.emitter, wanted.address)
    )
    for asked, found in ((wanted.name, name), (wanted.emitter, emitter), (wanted.address, address)):
        if asked is not None and found is None:
            return ListPage((), 0)
    low = schema.before(wanted.since) + min(wanted.since_index, schema.PLACE_MAX)
    sources = list(_event_sources(connection, wanted, (name, emitter, address), (low, window.bound)))
    rows = pages.page(connection, sources, window, "at DESC" if newest_first else "at")
    items = tuple(EventPlace(schema.height_of(at), schema.place_of(at)) for (at,) in rows)
    return ListPage(items, pages.size_of(connection, sources) if is_counted else len(items))


def _event_sources(
    connection: Connection,
    wanted: EventFilter,
    numbers: tuple[int | None, int | None, int | None],
    bounds: tuple[int, int],
) -> Iterator[pages.Source]:
    """Yield the queries of the narrowest condition of a filter, with the other conditions."""
    name, emitter, address = numbers
    concerns: pages.Conditions = {} if address is None else {_CONCERNS: (address, address)}
    of_emitter: pages.Conditions = {} if emitter is None else {"+events.emitter = ?": (emitter,)}
    of_name: pages.Conditions = {} if name is None else {"+events.name = ?": (name,)}
    if wanted.timer_id is not None:
        places = places_of(connection, wanted.timer_id, schema.height_of(bounds[1]) - 1)
        found, conditions = [_events("timer", at, bounds) for at, _ in places], concerns | of_emitter | of_name
    else:
        lists = [
            ([_counted(connection, column, number, bounds) for column in columns], others)
            for columns, number, others in (
                (("emitter", "mention"), address, of_emitter | of_name),
                (("emitter",), emitter, concerns | of_name),
                (("name",), name, concerns | of_emitter),
            )
            if number is not None
        ]
        if not lists:
            yield _all_events(connection, wanted, bounds)
            return
        # The shortest list is read.
        found, conditions = min(lists, key=lambda each: pages.size_of(connection, each[0]))
        if bounds[0]:
            found = [pages.Source(source.query, source.values) for source in found]
    for source in found:
        yield source.where(conditions)


def _events(column: str, number: int, bounds: tuple[int, int]) -> pages.Source:
    query = f"SELECT at FROM events INDEXED BY events_by_{column} WHERE {column} = ? AND at >= ? AND at < ?"
    return pages.Source(query, (number, *bounds))


def _counted(connection: Connection, column: str, number: int, bounds: tuple[int, int]) -> pages.Source:
    """Return the events of a number of a column, with the number of those up to the upper bound."""
    query = _MENTIONS if column == "mention" else _events(column, number, bounds).query
    since = pages.Source(query, (number, bounds[1], schema.after(schema.HEIGHT_MAX)))
    return pages.Source(query, (number, *bounds), pages.count(connection, column, number, since))


def _all_events(connection: Connection, wanted: EventFilter, bounds: tuple[int, int]) -> pages.Source:
    upto, since = schema.height_of(bounds[1]) - 1, wanted.since
    earlier, of_since, last = (
        pages.sum_upto(connection, "events", min(each, upto)) for each in (since - 1, since, upto)
    )
    size = max(last - min(earlier + wanted.since_index, of_since), 0)
    return pages.Source("SELECT at FROM events WHERE at >= ? AND at < ?", bounds, size)


def read_events(blocks: Sequence[Block], places: Iterable[EventPlace]) -> list[Event]:
    """Return the events of some places, in that order, from the blocks of a view.

    Complexity: O(events of each block that holds one); those of one block should stand next to one another.
    """
    found: list[Event] = []
    for height, of_block in groupby(places, attrgetter("height")):
        records = list(block_events(blocks[height]))
        found.extend(event_view(records[place.index], height) for place in of_block)
    return found


def search(connection: Connection, digits: str, blocks: Sequence[Block], limit: int = pages.PAGE_LIMIT) -> Found:
    """Return blocks, transactions, timers and addresses that begin with hexadecimal digits, with or without ``0x``.

    Idle blocks are found by 16 digits, or more.

    Raises:
        Rejection: ``INVALID_DATA`` if there are none, or others.
    """
    digits = digits.lower().removeprefix("0x")
    if not digits or not HEXADECIMAL.issuperset(digits):
        what = f"{digits!r:.80} is no beginning of an address or a hash: give hexadecimal digits"
        raise Rejection(RejectionReason.INVALID_DATA, what, field="digits")
    upto = len(blocks) - 1
    window = pages.Window(upto, 0, limit)

    def beginning(columns: str, column: str, bound: str, last: int, width: int = Hash32.WIDTH) -> Iterator[Any]:
        low, high = _range(digits, width)
        query = f"SELECT {columns} WHERE {column} BETWEEN ? AND ? AND {bound} <= ? LIMIT ? OFFSET ?"
        return connection.execute(query, (low, high, last, *window.part))

    heights = [height for (height,) in beginning("height FROM blocks", "hash", "height", upto)]
    if not heights and len(digits) >= 2 * schema.PREFIX_WIDTH:
        rows = connection.execute(_IDLE, (bytes.fromhex(digits[: 2 * schema.PREFIX_WIDTH]), upto))
        heights = [height for (height,) in rows if blocks[height].hash.hex().startswith(digits)]
    last = window.bound - 1
    transactions = beginning("at, hash, receipt FROM transactions", "hash", "at", last)
    # Several timers of Globalbox may have one id.
    timers = dict.fromkeys(identity for (identity,) in beginning("id FROM timers", "id", "at", last))
    addresses = beginning("address FROM addresses", "address", "first", upto, Address.WIDTH)
    return Found(
        blocks=tuple(heights),
        transactions=tuple(_transaction(*row) for row in transactions),
        timers=tuple(map(Hash32, timers)),
        addresses=tuple(Address(address) for (address,) in addresses),
    )


def _range(digits: str, width: int) -> tuple[bytes, bytes]:
    """Return the least and the greatest bytes of a width that begin with digits; nothing lies between if none do."""
    if len(digits) > 2 * width:
        return b"\xff", b""
    low, high = (bytes.fromhex(digits.ljust(2 * width, fill)) for fill in "0f")
    return low, high
