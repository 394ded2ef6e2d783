"""Where blocks, transactions, receipts and addresses are."""

from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import Any, Final

from trailboss.index.idle_blocks import quiet_heights
from trailboss.index.lists import Window, page, sources, total
from trailboss.index.records import Found, IndexedReceipt, IndexedTransaction, Page
from trailboss.index.schema import (
    ORIGINS,
    PART_BITS,
    PREFIX_WIDTH,
    Part,
    after,
    block_of,
    coordinate,
    loaded,
    place_of,
    receipts_list,
)
from trailboss.model.blocks import Block, Origin
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32

HEXADECIMAL: Final = frozenset("0123456789abcdef")
_HASH_WITHIN: Final = "substr(hash, 1, 8) BETWEEN ? AND ? AND hash BETWEEN ? AND ?"
_BLOCKS: Final = f"SELECT height FROM blocks WHERE {_HASH_WITHIN} AND height < ?"
_TRANSACTIONS: Final = f"SELECT coordinate, hash, receipt FROM transactions WHERE {_HASH_WITHIN} AND coordinate < ?"
_TIMERS: Final = f"SELECT id FROM timers WHERE {_HASH_WITHIN.replace('hash', 'id')} AND coordinate < ?"


def address_number(connection: Connection, address: bytes) -> int | None:
    """Return the number of an address; None if no block has named it."""
    row = connection.execute("SELECT number FROM addresses WHERE address = ?", (bytes(address),)).fetchone()
    return None if row is None else row[0]


def find_block(connection: Connection, block_hash: bytes, blocks: Sequence[Block]) -> int | None:
    """Return the height of the block with a hash; see `Index.block_height`."""
    upto = len(blocks) - 1
    query = "SELECT height FROM blocks WHERE substr(hash, 1, 8) = ? AND hash = ? AND height <= ?"
    prefix = block_hash[:PREFIX_WIDTH]
    for (height,) in connection.execute(query, (prefix, bytes(block_hash), upto)):
        return int(height)
    heights = quiet_heights(connection, prefix, upto)
    return next((height for height in heights if blocks[height].hash == block_hash), None)


def find_transaction(connection: Connection, tx_hash: bytes, upto: int) -> IndexedTransaction | None:
    """Return where a transaction is."""
    query = "SELECT coordinate, receipt FROM transactions WHERE substr(hash, 1, 8) = ? AND hash = ? AND coordinate < ?"
    row = connection.execute(query, (tx_hash[:PREFIX_WIDTH], bytes(tx_hash), after(upto))).fetchone()
    return None if row is None else _transaction(row[0], tx_hash, row[1])


def list_transactions(connection: Connection, window: Window) -> Page[IndexedTransaction]:
    """Return transactions, the newest first."""
    query = "SELECT transactions FROM blocks WHERE height <= ? ORDER BY height DESC LIMIT 1"
    row = connection.execute(query, (window.upto,)).fetchone()
    query = (
        "SELECT coordinate, hash, receipt FROM transactions WHERE coordinate < ? "
        "ORDER BY coordinate DESC LIMIT ? OFFSET ?"
    )
    found = connection.execute(query, (window.bounds.high, *window.part))
    return Page(tuple(_transaction(*each) for each in found), 0 if row is None else loaded(row[0]))


def _transaction(found: int, tx_hash: bytes, receipt: int) -> IndexedTransaction:
    return IndexedTransaction(hash=Hash32(tx_hash), height=block_of(found), position=place_of(found), receipt=receipt)


def list_receipts(
    connection: Connection, address: bytes, origins: Iterable[Origin], window: Window
) -> Page[IndexedReceipt]:
    """Return the receipts of an address that came from some origins, the newest first."""
    number = address_number(connection, address)
    if number is None:
        return Page((), 0)
    lists = [receipts_list(number, ORIGINS.index(origin)) for origin in origins]
    found = sources(connection, lists, window.bounds)
    rows = page(connection, found, window)
    return Page(tuple(_receipt(connection, item, about) for item, about in rows), total(connection, found))


def _receipt(connection: Connection, item: int, about: int) -> IndexedReceipt:
    height, place = block_of(item), place_of(item)
    origin, position = ORIGINS[about >> PART_BITS], None
    if origin is Origin.TRANSACTION:
        # The receipts of a block's transactions stand next to one another.
        query = "SELECT receipt FROM transactions WHERE coordinate = ?"
        position = place - connection.execute(query, (coordinate(height),)).fetchone()[0]
    return IndexedReceipt(
        height=height,
        receipt=place,
        origin=origin,
        position=position,
        is_sender=bool(about & Part.SENDER),
        is_payer=bool(about & Part.PAYER),
        is_target=bool(about & Part.TARGET),
        is_actor=bool(about & Part.ACTOR),
    )


def search(connection: Connection, digits: str, blocks: Sequence[Block], limit: int) -> Found:
    """Return what begins with hexadecimal digits; see `Index.search`."""
    digits = digits.lower().removeprefix("0x")
    if not digits or not HEXADECIMAL.issuperset(digits):
        what = f"{digits!r:.80} is no beginning of an address or a hash: give hexadecimal digits"
        raise Rejection(RejectionReason.INVALID_DATA, what, field="digits")
    window = Window(len(blocks) - 1, 0, limit)
    bound = window.bounds.high
    transactions = _beginning(connection, _TRANSACTIONS, digits, bound, window)
    # Of the timers of Globalbox several may have one id.
    ids = dict.fromkeys(row[0] for row in _beginning(connection, _TIMERS, digits, bound, window))
    return Found(
        blocks=tuple(_blocks(connection, digits, blocks, window)),
        transactions=tuple(_transaction(*row) for row in transactions),
        timers=tuple(map(Hash32, ids)),
        addresses=tuple(_addresses(connection, digits, window)),
    )


def _blocks(connection: Connection, digits: str, blocks: Sequence[Block], window: Window) -> Iterator[int]:
    found = [height for (height,) in _beginning(connection, _BLOCKS, digits, window.upto + 1, window)]
    yield from found
    if not found and len(digits) >= 2 * PREFIX_WIDTH:
        heights = quiet_heights(connection, bytes.fromhex(digits[: 2 * PREFIX_WIDTH]), window.upto)
        yield from (height for height in heights if blocks[height].hash.hex().startswith(digits))


def _beginning(connection: Connection, query: str, digits: str, bound: int, window: Window) -> Iterator[Any]:
    """Return rows below a bound whose hashes begin with digits."""
    low, high = _range(digits, Hash32.WIDTH)
    values = (low[:PREFIX_WIDTH], high[:PREFIX_WIDTH], low, high, bound, *window.part)
    return connection.execute(f"{query} LIMIT ? OFFSET ?", values)


def _addresses(connection: Connection, digits: str, window: Window) -> Iterator[Address]:
    query = "SELECT address FROM addresses WHERE address BETWEEN ? AND ? AND first <= ? LIMIT ? OFFSET ?"
    low, high = _range(digits, Address.WIDTH)
    for (address,) in connection.execute(query, (low, high, window.upto, *window.part)):
        yield Address(address)


def _range(digits: str, width: int) -> tuple[bytes, bytes]:
    """Return the least and the greatest bytes of a width that begin with digits; nothing lies between if none do."""
    if len(digits) > 2 * width:
        return b"\xff", b""
    low, high = (bytes.fromhex(digits.ljust(2 * width, fill)) for fill in "0f")
    return low, high
