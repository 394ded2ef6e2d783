"""The tables of the index, and how values stand in them.

A place within the chain is one integer, `at`: the height of a block and a place within that block. Whatever blocks add
has one, so an answer of one height leaves out the rows above it, and going back deletes them. Decision: D-75.
"""

from typing import Final

from trailboss.model.blocks import Origin
from trailboss.model.events import TIMER_ENDINGS

APPLICATION: Final = 0x54424958  # marks the file as an index of this program: ``TBIX``
FORMAT: Final = 3  # of the tables below; an index of another one is built again

PLACE_BITS: Final = 22
PLACE_MAX: Final = (1 << PLACE_BITS) - 1  # highest place of an event, a receipt or a transaction within its block
HEIGHT_MAX: Final = (1 << 35) - 1  # highest block that can be indexed, so that `at` stays below 2**63
INTEGER_MAX: Final = 2**63 - 1  # largest integer of SQLite; a larger one is `stored`
AMOUNT_WIDTH: Final = 16
PREFIX_WIDTH: Final = 8  # bytes that are kept of the hash of an idle block

SPAN_BLOCKS: Final = 256  # heights whose greatest values stand in one row
GREATEST: Final = ("block_cycles", "block_cells", "block_timer_cycles", "cycle_basefee", "cell_basefee", "lane_basefee")
"""Columns of which the greatest of a span is kept."""

ORIGINS: Final = tuple(Origin)  # what receipts come from, by the number that the tables have for it
ENDINGS: Final = ("fired", "expired", "unfunded", "cancelled")
"""How timers end, by the number that the tables have for it."""
ENDING_NUMBERS: Final = {name: ENDINGS.index(state) for name, state in TIMER_ENDINGS.items()}
"""That number by the event that ends a timer."""
ROLES: Final = ("actor", "target", "payer")  # in which roles an address has to do with a timer: columns of its table
PARTS: Final = ("sender", "payer", "target", "actor")
"""In which roles an address is part of a receipt: bit n of ``parts`` is role n."""

TABLES: Final = """
-- at = height * 4194304 + place within the block; numbers above 2**63 are blobs of 16 bytes, big-endian.
CREATE TABLE state (genesis BLOB NOT NULL, height INTEGER NOT NULL, hash BLOB NOT NULL, boot TEXT, is_closed INTEGER);
CREATE TABLE names (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE addresses (number INTEGER PRIMARY KEY, address BLOB NOT NULL UNIQUE, first INTEGER NOT NULL);

-- Blocks in which something happens. The columns up to tips are sums over all blocks up to and including this one.
CREATE TABLE blocks (
    height INTEGER PRIMARY KEY, hash BLOB NOT NULL, timestamp_ms,
    transactions, fires, messages, events, scheduled, fired, expired, unfunded, cancelled,
    cycles, cells, timer_cycles, burned, tips,
    block_cycles, block_cells, block_timer_cycles, cycle_basefee, cell_basefee, lane_basefee, next_lane_basefee
);
CREATE INDEX blocks_by_hash ON blocks (hash);
-- The greatest of each, of the blocks in the table above, for every 256 heights.
CREATE TABLE spans (
    span INTEGER PRIMARY KEY,
    block_cycles, block_cells, block_timer_cycles, cycle_basefee, cell_basefee, lane_basefee
);
-- Blocks in which nothing happens and no price moves: the first 8 bytes of their hashes.
CREATE TABLE idle_blocks (height INTEGER PRIMARY KEY, prefix BLOB NOT NULL);
CREATE INDEX idle_blocks_by_prefix ON idle_blocks (prefix);

CREATE TABLE transactions (at INTEGER PRIMARY KEY, hash BLOB NOT NULL, receipt INTEGER NOT NULL);
CREATE INDEX transactions_by_hash ON transactions (hash);

-- One row for each address of a receipt. parts: 1 sender, 2 payer, 4 target, 8 actor.
CREATE TABLE receipts (at, address, origin, parts, PRIMARY KEY (at, address)) WITHOUT ROWID;
CREATE INDEX receipts_by_address ON receipts (address, origin, at, parts);

-- timer: where the timer was scheduled. mentions: addresses in an event's own fields, its emitter aside.
CREATE TABLE events (at INTEGER PRIMARY KEY, name INTEGER, emitter INTEGER, timer INTEGER);
CREATE INDEX events_by_name ON events (name, at);
CREATE INDEX events_by_emitter ON events (emitter, at, name);
CREATE INDEX events_by_timer ON events (timer, at) WHERE timer IS NOT NULL;
CREATE TABLE mentions (at, address, PRIMARY KEY (at, address)) WITHOUT ROWID;
CREATE INDEX mentions_by_address ON mentions (address, at);

-- at: of the event that scheduled the timer. parent: the timer whose fire did; root: the first of its line; place: its
-- place among all that descend from the root. ended: at of the event that ended it.
CREATE TABLE timers (
    at INTEGER PRIMARY KEY, id BLOB NOT NULL, actor INTEGER, target INTEGER, payer INTEGER, handler INTEGER,
    height, gas_limit, expires_at, max_fee, max_priority_fee,
    receipt INTEGER, position INTEGER, parent INTEGER, root INTEGER, generation INTEGER, place INTEGER,
    sequence INTEGER, ended INTEGER, ending INTEGER, reverted INTEGER
);
CREATE INDEX timers_by_id ON timers (id);
CREATE INDEX timers_by_root ON timers (root, place) WHERE root IS NOT NULL;
CREATE INDEX timers_by_parent ON timers (parent, at) WHERE parent IS NOT NULL;
CREATE INDEX live_by_actor ON timers (actor, height, at) WHERE ended IS NULL;
CREATE INDEX live_by_target ON timers (target, height, at) WHERE ended IS NULL;
CREATE INDEX live_by_payer ON timers (payer, height, at) WHERE ended IS NULL;
CREATE INDEX ended_by_actor ON timers (actor, ending, ended) WHERE ended IS NOT NULL;
CREATE INDEX ended_by_target ON timers (target, ending, ended) WHERE ended IS NOT NULL;
CREATE INDEX ended_by_payer ON timers (payer, ending, ended) WHERE ended IS NOT NULL;
CREATE INDEX ended_by_ending ON timers (ending, ended) WHERE ended IS NOT NULL;
CREATE INDEX ended_by_height ON timers (ending, height, ended) WHERE ended IS NOT NULL;
-- Where a development chain has moved a timer, and the height at which it was due before.
CREATE TABLE moves (at INTEGER PRIMARY KEY, timer INTEGER NOT NULL, height NOT NULL);

-- How many rows there are of each number of a column.
CREATE TABLE counts (of TEXT, number INTEGER, count INTEGER, PRIMARY KEY (of, number)) WITHOUT ROWID;

-- What payers spent: in each block, in each day of chain time (since 1970), and on timers in all.
CREATE TABLE spending (
    height INTEGER, payer INTEGER, origin INTEGER, day INTEGER, runs, burned, tips, refunds,
    PRIMARY KEY (height, payer, origin)
) WITHOUT ROWID;
CREATE TABLE days (
    payer INTEGER, origin INTEGER, day INTEGER, runs, burned, tips, refunds, PRIMARY KEY (payer, origin, day)
) WITHOUT ROWID;
CREATE TABLE payers (payer INTEGER PRIMARY KEY, spent);
CREATE INDEX payers_by_spent ON payers (spent);
"""


def place_at(height: int, place: int = 0) -> int:
    """Return the integer of a place within a block: 0 to ``PLACE_MAX`` of height 0 to ``HEIGHT_MAX`` + 1."""
    return height << PLACE_BITS | place


def height_of(at: int) -> int:
    """Return the height that a place lies in."""
    return at >> PLACE_BITS


def place_of(at: int) -> int:
    """Return the place within its block."""
    return at & PLACE_MAX


def after(height: int) -> int:
    """Return the first place above a block, of any height that a reader may ask for."""
    return place_at(min(max(height, -1), HEIGHT_MAX) + 1)


def before(height: int) -> int:
    """Return the first place of a block, of any height that a reader may ask for."""
    return after(height - 1)


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


def loaded_or_none(value: int | bytes | None) -> int | None:
    """Return the integer that `stored` gave this for; None for none."""
    return None if value is None else loaded(value)
