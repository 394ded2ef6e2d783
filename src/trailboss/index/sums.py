"""What payers have spent, and what blocks come to.

Both are sums that the writer keeps. The answer of a height leaves out what came after it: of blocks because each row
has the sums up to it, of spending because each block's part is kept too. Decision: D-75.
"""

from collections.abc import Iterator
from itertools import groupby
from operator import add, sub
from sqlite3 import Connection
from typing import Any, Final

from trailboss.index import schema
from trailboss.index.pages import PAGE_LIMIT, Window, address_of, number_of
from trailboss.index.records import BlockSpan, BlockTally, DaySpend, PayerSpend, Spend, UnfundedPayer
from trailboss.index.row_builder import TIMERS
from trailboss.index.writer import TALLY_COLUMNS
from trailboss.primitives.octets import Address

BASEFEES: Final = schema.GREATEST[3:]
"""Of the columns of which the greatest are kept, those that stay in force until the next row."""
SPANS_MAX: Final = 2_000  # most points of one chart
_ROW: Final = (
    f"SELECT {', '.join((*TALLY_COLUMNS, *BASEFEES))} FROM blocks WHERE height <= ? ORDER BY height DESC LIMIT 1"
)
_SPENT: Final = "runs, burned, tips, refunds"
_NOTHING: Final = (0,) * 4
_GREATEST: Final = ", ".join(f"max({column})" for column in schema.GREATEST)
_OF_BLOCKS: Final = f"SELECT {_GREATEST} FROM blocks WHERE height BETWEEN ? AND ?"
_OF_SPANS: Final = f"SELECT {_GREATEST} FROM spans WHERE span BETWEEN ? AND ?"


def spend_by_day(
    connection: Connection, payer: bytes, upto: int, first_day: int = 0, last_day: int = schema.INTEGER_MAX
) -> tuple[DaySpend, ...]:
    """Return what executions cost a payer in each day of chain time that had any, ascending; days are since 1970."""
    number = number_of(connection, payer)
    later: dict[tuple[int, int], list[int]] = {}
    query = f"SELECT day, origin, {_SPENT} FROM spending WHERE height > ? AND payer = ?"
    for day, origin, *added in connection.execute(query, (upto, number)):
        later[day, origin] = list(map(add, later.get((day, origin), _NOTHING), map(schema.loaded, added)))
    query = f"SELECT day, {_SPENT} FROM days WHERE payer = ? AND origin = ? AND day BETWEEN ? AND ?"
    found = []
    for origin in range(len(schema.ORIGINS)):
        for day, *sums in connection.execute(query, (number, origin, first_day, last_day)):
            spent = tuple(map(sub, map(schema.loaded, sums), later.get((day, origin), _NOTHING)))
            if any(spent):
                found.append((day, origin, spent))
    return tuple(
        DaySpend(day=day, spend=tuple(Spend(schema.ORIGINS[origin], *spent) for _, origin, spent in of_day))
        for day, of_day in groupby(sorted(found), lambda row: row[0])
    )


def rank_payers(connection: Connection, upto: int, offset: int = 0, limit: int = PAGE_LIMIT) -> tuple[PayerSpend, ...]:
    """Return payers by what they have spent on timers, the greatest first."""
    window = Window(upto, offset, limit)
    later: dict[int, int] = {}
    query = "SELECT payer, burned, tips FROM spending WHERE height > ? AND origin = ?"
    for payer, burned, tips in connection.execute(query, (window.upto, TIMERS)):
        later[payer] = later.get(payer, 0) + schema.loaded(burned) + schema.loaded(tips)
    most, begin = window.part
    # A payer that has spent something since may stand too high, none stands too low.
    query = "SELECT spent, payer FROM payers WHERE spent > 0 ORDER BY spent DESC, payer DESC LIMIT ?"
    rows = connection.execute(query, (begin + most + len(later),))
    ranked = sorted(((schema.loaded(spent) - later.get(payer, 0), payer) for spent, payer in rows), reverse=True)
    return tuple(
        PayerSpend(payer=Address(address_of(connection, payer)), fees=fees)
        for fees, payer in ranked[begin : begin + most]
        if fees
    )


def find_unfunded(connection: Connection, since: int, upto: int, limit: int = PAGE_LIMIT) -> tuple[UnfundedPayer, ...]:
    """Return who could not pay for timers from a block on, the latest first. O(timers that ended for it since)."""
    window = Window(upto, 0, limit)
    query = (
        "SELECT payer, count(*), max(ended) AS latest FROM timers INDEXED BY ended_by_ending "
        "WHERE ending = ? AND ended >= ? AND ended < ? GROUP BY payer ORDER BY latest DESC LIMIT ? OFFSET ?"
    )
    values = (schema.ENDINGS.index("unfunded"), schema.before(since), window.bound, *window.part)
    return tuple(
        UnfundedPayer(payer=Address(address_of(connection, payer)), timers=timers, last_height=schema.height_of(latest))
        for payer, timers, latest in connection.execute(query, values).fetchall()
    )


def sum_up(connection: Connection, upto: int) -> BlockTally:
    """Return the sums over all blocks up to a height."""
    return _tally(_row(connection, upto))


def chart(connection: Connection, first: int, last: int, points: int, upto: int) -> tuple[BlockSpan, ...]:
    """Return what the blocks of a range come to, for a chart of at most so many points, 1 to 2,000.

    Every point stands for equally many blocks and begins at a multiple of their number, so that it stays where it is
    while the chain goes on; the first and the last one are cut off where the range is. Complexity: O(points · log
    blocks), and one row for every block, or for 256 if a run is longer.
    """
    head: int = connection.execute("SELECT height FROM state").fetchone()[0]
    first, last, points = max(first, 0), min(last, upto, head), min(points, SPANS_MAX)
    if first > last or points < 1:
        return ()
    width = _width(first, last, points)
    spans = []
    row = _row(connection, first - 1)
    for number in range(first // width, last // width + 1):
        begin, end = max(number * width, first), min((number + 1) * width - 1, last)
        before_it, row = row, _row(connection, end)
        spans.append(_span(connection, begin, end, before_it, row))
    return tuple(spans)


def _width(first: int, last: int, points: int) -> int:
    """Return the blocks of a run: as few as make no more than so many points, all of which begin at a multiple."""
    width = -(-(last - first + 1) // points)
    step = 1 if width < schema.SPAN_BLOCKS else schema.SPAN_BLOCKS
    width = -(-width // step) * step
    while last // width - first // width >= points:
        width += step
    return width


def _row(connection: Connection, height: int) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(_ROW, (height,)).fetchone()
    return (0,) * len(TALLY_COLUMNS) + (None,) * len(BASEFEES) if row is None else row


def _tally(row: tuple[Any, ...], before_it: tuple[Any, ...] | None = None) -> BlockTally:
    """Return sums up to a row, or from another one to it."""
    sums = [schema.loaded(value) for value in row[: len(TALLY_COLUMNS)]]
    if before_it is not None:
        sums = list(map(sub, sums, map(schema.loaded, before_it)))
    return BlockTally(**dict(zip(TALLY_COLUMNS, sums, strict=True)))


def _span(connection: Connection, first: int, last: int, before_it: tuple[Any, ...], row: tuple[Any, ...]) -> BlockSpan:
    greatest = list(_greatest(connection, first, last))
    if connection.execute("SELECT height FROM blocks WHERE height = ?", (first,)).fetchone() is None:
        # In its first blocks the prices of an earlier one are still in force.
        held = before_it[len(TALLY_COLUMNS) :]
        for column, price in enumerate(held, len(schema.GREATEST) - len(BASEFEES)):
            values = (greatest[column], schema.loaded_or_none(price))
            greatest[column] = max((value for value in values if value is not None), default=None)
    *most, lane_max = greatest
    cycle, cell, lane = map(schema.loaded_or_none, row[len(TALLY_COLUMNS) :])
    figures: list[Any] = [*(each or 0 for each in most), lane_max, cycle or 0, cell or 0, lane]
    return BlockSpan(first, last, _tally(row, before_it), *figures)


def _greatest(connection: Connection, first: int, last: int) -> Iterator[int | None]:
    """Yield the greatest value of each column in a range of heights: of whole spans, and of the blocks around them."""
    begin, end = -(-first // schema.SPAN_BLOCKS), (last + 1) // schema.SPAN_BLOCKS
    ranges = [(_OF_BLOCKS, first, last)]
    if begin < end:
        ranges = [
            (_OF_BLOCKS, first, begin * schema.SPAN_BLOCKS - 1),
            (_OF_SPANS, begin, end - 1),
            (_OF_BLOCKS, end * schema.SPAN_BLOCKS, last),
        ]
    rows = [connection.execute(query, (low, high)).fetchone() for query, low, high in ranges if low <= high]
    for column in zip(*rows, strict=True):
        yield max((schema.loaded(value) for value in column if value is not None), default=None)
