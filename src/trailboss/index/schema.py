"""The tables of the index, and how numbers stand in them.

Everything that grows without bound and is asked for in order is a *list* of postings in one table: the events of a
name, the receipts of an address, the timers of an actor that have fired. A list only grows at its end, every posting
knows how many came before it, and its item is a *coordinate*: a block's height and a place within that block in one
integer. So what a list holds up to some height is counted with one look-up, and answers of one height need no copy of
the database.

Decision: D-75
"""

from enum import IntEnum
from typing import Final

from trailboss.model.blocks import Origin
from trailboss.model.events import TIMER_ENDINGS

APPLICATION: Final = 0x54424958
"""Marks the file as an index of this program: ``TBIX``."""
FORMAT: Final = 2
"""Of the tables below; an index of another one is built anew."""

PLACE_BITS: Final = 22
PLACE_MAX: Final = (1 << PLACE_BITS) - 1
"""Highest place of an event, a receipt or a transaction within its block."""
FACET_BITS: Final = 6
HEIGHT_MAX: Final = (1 << 35) - 1
"""Highest block that can be indexed: list numbers and coordinates are integers of 63 bits."""
INTEGER_MAX: Final = 2**63 - 1
"""Largest integer of SQLite; what may be larger is `stored`."""
AMOUNT_WIDTH: Final = 16
PREFIX_WIDTH: Final = 8
"""Bytes of a hash or an id that are indexed; the row has them all."""
QUIET_CHUNK: Final = 512
"""Quiet blocks whose hashes stand in one row, `PREFIX_WIDTH` bytes of each: a page of the file."""

SPAN_BLOCKS: Final = 256
"""Heights whose greatest values stand in one row."""
GREATEST: Final = ("block_cycles", "block_cells", "block_timer_cycles", "cycle_basefee", "cell_basefee", "lane_basefee")
"""Columns of which the greatest of a span is kept."""

ORIGINS: Final = tuple(Origin)
ENDINGS: Final = ("fired", "expired", "unfunded", "cancelled")
"""How timers end, by the number that the tables have for it."""
ENDING_NUMBERS: Final = {name: ENDINGS.index(state) for name, state in TIMER_ENDINGS.items()}
"""That number by the event that ends a timer."""


class Facet(IntEnum):
    """What a list is of; the rest of its number says of which one."""

    NAME = 0
    """Events of a name. About: the timer."""
    EMITTER = 1
    """Events that an address emitted. About: the number of the name."""
    MENTION = 2
    """The chain's own events that name an address and that it did not emit. About: the number of the name."""
    TIMER = 3
    """Events of a timer but for those that schedule and end it. About: the number of the name."""
    KIN = 4
    """Timers that descend from one, by coordinate. About: the timer whose fire scheduled it."""
    RECEIPT = 8
    """Receipts of an address; one facet for each of `ORIGINS`. About: a sum of `Part` and, above its
    bits, the number of the origin."""
    ENDED = 32
    """Ended timers of an address; one facet for each sum of `Role` and each of `ENDINGS`. About: the timer, and when it
    was due."""


class Role(IntEnum):
    """In which role an address has to do with a timer; sums of them for several."""

    ACTOR = 1
    TARGET = 2
    PAYER = 4


ALL_ROLES: Final = sum(Role)
ROLE_SUMS: Final = range(1, ALL_ROLES + 1)


class Part(IntEnum):
    """In which role an address is part of a receipt; sums of them for several."""

    SENDER = 1
    PAYER = 2
    TARGET = 4
    ACTOR = 8


PART_BITS: Final = 4

TABLES: Final = """
CREATE TABLE state (genesis BLOB NOT NULL, height INTEGER NOT NULL, hash BLOB NOT NULL, boot TEXT, is_closed INTEGER);
CREATE TABLE names (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE addresses (number INTEGER PRIMARY KEY, address BLOB NOT NULL UNIQUE, first INTEGER NOT NULL);

-- Blocks that are not quiet. The sums are over all blocks up to and including this one, the next three of it alone.
CREATE TABLE blocks (
    height INTEGER PRIMARY KEY, hash BLOB NOT NULL, timestamp_ms,
    transactions, fires, messages, events, scheduled, fired, expired, unfunded, cancelled,
    cycles, cells, timer_cycles, burned, tips,
    block_cycles, block_cells, block_timer_cycles, cycle_basefee, cell_basefee, lane_basefee, next_lane_basefee
);
CREATE INDEX block_hashes ON blocks (substr(hash, 1, 8));
CREATE INDEX block_events ON blocks (events);
-- The greatest of each, of the blocks in the table above, for every 256 heights.
CREATE TABLE spans (
    span INTEGER PRIMARY KEY,
    block_cycles, block_cells, block_timer_cycles, cycle_basefee, cell_basefee, lane_basefee
);
CREATE TABLE quiet (first INTEGER PRIMARY KEY, hashes BLOB NOT NULL);

CREATE TABLE transactions (coordinate INTEGER PRIMARY KEY, hash BLOB NOT NULL, receipt INTEGER NOT NULL);
CREATE INDEX transaction_hashes ON transactions (substr(hash, 1, 8));

CREATE TABLE timers (
    coordinate INTEGER PRIMARY KEY, id BLOB NOT NULL, actor INTEGER, target INTEGER, payer INTEGER, handler INTEGER,
    height, gas_limit, expires_at, max_fee, max_priority_fee,
    receipt INTEGER, position INTEGER, parent INTEGER, root INTEGER, generation INTEGER, sequence INTEGER,
    ended INTEGER, ending INTEGER, reverted INTEGER
);
CREATE INDEX timer_ids ON timers (substr(id, 1, 8));
CREATE INDEX ended_heights ON timers (ending, height, ended) WHERE ending IS NOT NULL;
CREATE TABLE live (list INTEGER, height, timer INTEGER, PRIMARY KEY (list, height, timer)) WITHOUT ROWID;

CREATE TABLE postings (
    list INTEGER, item INTEGER, number INTEGER, about INTEGER, due, PRIMARY KEY (list, item)
) WITHOUT ROWID;

CREATE TABLE spend (
    payer INTEGER, origin INTEGER, day INTEGER, runs, burned, tips, refunds, PRIMARY KEY (payer, origin, day)
) WITHOUT ROWID;
CREATE TABLE payers (payer INTEGER PRIMARY KEY, spent);
CREATE INDEX payers_by_spent ON payers (spent);

-- What going back has to take back and does not find by coordinate.
CREATE TABLE journal (height INTEGER PRIMARY KEY, changes BLOB NOT NULL);
"""


def coordinate(height: int, place: int = 0) -> int:
    """Return the coordinate of a place within a block.

    Args:
        height: Of the block, 0 to ``HEIGHT_MAX``, or one more for what comes after all.
        place: 0 to ``PLACE_MAX``.
    """
    return height << PLACE_BITS | place


def block_of(found: int) -> int:
    """Return the height that a coordinate lies in."""
    return found >> PLACE_BITS


def place_of(found: int) -> int:
    """Return the place within its block of a coordinate."""
    return found & PLACE_MAX


def after(height: int) -> int:
    """Return the first coordinate above a block, of any height that a reader may ask for."""
    return coordinate(min(max(height, -1), HEIGHT_MAX) + 1)


def before(height: int) -> int:
    """Return the first coordinate of a block, of any height that a reader may ask for."""
    return after(height - 1)


def list_of(facet: int, key: int) -> int:
    """Return the number of a list.

    Args:
        facet: A `Facet`, and what it is divided into.
        key: Number of an address or a name, or the coordinate of a timer.
    """
    return key << FACET_BITS | facet


def key_of(number: int) -> int:
    """Return what a list is of, by its number: the key that `list_of` was given."""
    return number >> FACET_BITS


def receipts_list(address: int, origin: int) -> int:
    """Return the list of the receipts of an address, by number, that came from one of `ORIGINS`."""
    return list_of(Facet.RECEIPT + origin, address)


def ended_list(address: int, roles: int, ending: int) -> int:
    """Return the list of the timers of an address that ended in one of `ENDINGS`."""
    return list_of(Facet.ENDED + len(ENDINGS) * (roles - 1) + ending, address)


def live_list(address: int, roles: int) -> int:
    """Return the number that live timers of an address stand under."""
    return list_of(roles, address)


def stored(value: int) -> int | bytes:
    """Return what stands for an unsigned integer of up to 128 bits in the tables.

    SQLite sorts integers before blobs and blobs by their bytes, so the order is that of the integers.

    >>> stored(7), stored(2**64) < stored(2**65), loaded(stored(2**100)) == 2**100
    (7, True, True)
    """
    return value if value <= INTEGER_MAX else value.to_bytes(AMOUNT_WIDTH, "big")


def loaded(value: int | bytes) -> int:
    """Return the integer that `stored` gave this for."""
    return value if isinstance(value, int) else int.from_bytes(value, "big")
