"""The calendar: how many timers wait at which heights, in its three tiers, as maps whose cells lead to these timers."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from trailboss.explorer import cells, links
from trailboss.explorer import documents as parts
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import THIRD, TWO_THIRDS, bare, columns, numbers
from trailboss.explorer.failures import schedule_command
from trailboss.explorer.links import Query
from trailboss.explorer.page_context import Reading
from trailboss.index.answers.timers import height_at
from trailboss.primitives.units import U64_MAX, format_cby
from trailboss.rehearsal.forecast import NEAR_BLOCKS
from trailboss.views.calendar import tier_counts, tier_ends
from trailboss.views.text import counted

COLUMNS: Final = 60
NEXT_CELLS: Final = 240
RING_CELLS: Final = 360
OVERFLOW_CELLS: Final = 120
LEVELS: Final = 6
BUSIEST: Final = 8
COMING_ROWS: Final = 12
COMING_COLUMNS: Final = (
    numbers("Block") + bare("Timer") + columns("What") + numbers("Price a cycle", "CBY") + columns("Payer")
)
COMING_TONES: Final = {"reverts": "bad", "unfunded": "bad", "expired": "warn", "waits": "warn"}
TITLES: Final = {
    "next": "The next blocks",
    "ring": "Ring: the rest of this epoch",
    "epochs": "Epochs: beyond this one",
    "overflow": "Overflow: beyond the epochs",
}


class Stretch(Struct, frozen=True):
    """A section of heights in equal cells: the first height of each and the one after the last, and what a cell is."""

    key: str
    bounds: tuple[int, ...]
    note: str


def calendar(reading: Reading, _query: Query, _subject: str) -> parts.Document:
    """Return the page. A count is O(log n), so that a million timers are counted as fast as ten."""
    view, now = reading.view, reading.height
    stretches = [stretch for stretch in _stretches(reading) if len(stretch.bounds) > 1]
    counts = [view.timer_counts(stretch.bounds) for stretch in stretches]
    maps = tuple(_heat_map(stretch, found, now) for stretch, found in zip(stretches, counts, strict=True))
    sections: tuple[parts.Section, ...] = (_facts(reading), _busiest(stretches, counts), *_coming(reading), *maps)
    if not view.timer_count():
        empty = cells.text(f"The maps fill as actors schedule. To try it: {schedule_command(reading)}")
        sections = (parts.Notice("empty", "No timer is scheduled", content=empty), *maps)
    return parts.Document("Calendar", "Calendar", sections)


def _coming(reading: Reading) -> Iterator[parts.Section]:
    """Yield what timers do in the next blocks if nothing is sent, if any of them is due there."""
    found = reading.node.workbench.ahead(reading.view, NEAR_BLOCKS).forecast
    rows = []
    for at, each in enumerate(found.timers[:COMING_ROWS]):
        block: Words = "waits" if each.block is None else str(each.block)
        tone = COMING_TONES.get(each.outcome, "")
        what = cells.text(each.outcome, kind=tone) + cells.text(f" {each.delay} late" if each.delay else "", kind="dim")
        paid = None if each.paid is None else format_cby(each.paid)
        payer = cells.address(each.fee_payer, reading.names)
        rows.append(cells.row(at, block, cells.timer(each.timer_id), what, each.price_per_cycle, paid, payer))
    if rows:
        more = f", the first {COMING_ROWS}" if len(found.timers) > COMING_ROWS else ""
        note = f"if nothing is sent until block {found.last_height}{more}"
        yield parts.PageTable("coming", "What comes next", COMING_COLUMNS, tuple(rows), note=note)


def _stretches(reading: Reading) -> Iterator[Stretch]:
    params, following = reading.view.params.calendar, reading.height + 1
    length = params.epoch_length
    ring_end, epochs_end = (last + 1 for last in tier_ends(reading.view))
    near = min(NEXT_CELLS, length)
    yield Stretch("next", tuple(range(following, following + near + 1)), "A cell is one height.")
    step = -(-length // RING_CELLS)
    if step > 1:
        first = following - following % step
        bounds = (following, *range(first + step, ring_end, step), ring_end)
        yield Stretch("ring", bounds if following < ring_end else (), f"A cell is {step} heights.")
    starts = tuple(range(ring_end, epochs_end + 1, length))
    yield Stretch("epochs", starts, f"A cell is an epoch of {length:,} heights.")
    total = reading.view.timer_count()
    last = height_at(reading.view, 0, U64_MAX, total - 1) if total else 0
    if last >= epochs_end:
        step = max(1, -(-(last + 1 - epochs_end) // OVERFLOW_CELLS))
        bounds = (*range(epochs_end, last + 1, step), last + 1)
        yield Stretch("overflow", bounds, f"A cell is {counted(step, 'height')}.")


def _heat_map(stretch: Stretch, counts: Sequence[int], now: int) -> parts.HeatMap:
    scale = scale_of(max(counts, default=0))
    steps = [least for least, _, _ in scale]
    drawn = tuple(
        parts.HeatCell(first, end - 1, count, scale[bisect_right(steps, count) - 1][1])
        for (first, end), count in zip(pairwise(stretch.bounds), counts, strict=True)
    )
    levels = tuple((colour, words) for _, colour, words in scale)
    is_next = stretch.bounds[0] <= now + 1 < stretch.bounds[1]
    title = f"{TITLES[stretch.key]}, {counted(sum(counts), 'timer')}"
    note = f"{stretch.note} The framed one holds the next block." if is_next else stretch.note
    return parts.HeatMap(stretch.key, title, min(COLUMNS, len(drawn)), drawn, levels, now + 1, note=note)


def scale_of(greatest: int) -> list[tuple[int, int, str]]:
    """Return the levels of a map: the least count of each, its colour from 0 to 6, and what it stands for.

    The counts are in equal ratios up to the greatest one, which has the strongest colour.

    >>> scale_of(2)
    [(0, 0, '0'), (1, 3, '1'), (2, 6, '2 and more')]
    >>> [least for least, _, _ in scale_of(1_000_000)]
    [0, 1, 10, 100, 1000, 10000, 100000]
    """
    steps = {max(1, round(greatest ** (level / LEVELS))) for level in range(LEVELS)}
    least = list(range(greatest + 1)) if greatest <= LEVELS else [0, *sorted(steps)]
    words = [f"{first:,}" if first == end - 1 else f"{first:,} to {end - 1:,}" for first, end in pairwise(least)]
    words.append(f"{least[-1]:,} and more" if greatest else "0")
    return [(step, -(-at * LEVELS // max(1, len(least) - 1)), words[at]) for at, step in enumerate(least)]


def _facts(reading: Reading) -> parts.Facts:
    view, params = reading.view, reading.view.params.calendar
    epoch = reading.height // params.epoch_length
    tiers, end = tier_counts(view), tier_ends(view)[0] + 1
    waiting: Words = "none"
    if tiers.due:
        waiting = cells.link(counted(tiers.due, "timer"), links.query(links.TIMERS, {"state": "due"}), kind="warn")

    def tier(count: int, what: str) -> Words:
        return cells.line(count, cells.text(f" {'timer' if count == 1 else 'timers'}: {what}", kind="dim"))

    following = f"the next one begins at height {end}, in {counted(end - reading.height, 'block')}"
    rows = {
        "Live timers": cells.link(f"{view.timer_count():,}", links.TIMERS),
        "Due and waiting": waiting,
        "Epoch": f"{epoch:,}, {following}",
        "Ring": tier(tiers.ring, f"heights whose epoch has begun, {params.ring_size:,} slots"),
        "Epochs": tier(tiers.epoch, f"{params.epoch_count:,} epochs of {params.epoch_length:,} heights each"),
        "Overflow": tier(tiers.overflow, "all heights beyond, in order"),
    }
    return cells.facts("facts", "Where the chain stands", rows, span=TWO_THIRDS)


def _busiest(stretches: Sequence[Stretch], counts: Sequence[Sequence[int]]) -> parts.PageTable:
    hottest = [
        (-count, first, end - 1)
        for stretch, some in zip(stretches, counts, strict=True)
        if stretch.key != "next" or len(stretches) == 1
        for (first, end), count in zip(pairwise(stretch.bounds), some, strict=True)
        if count
    ]
    rows = tuple(
        cells.row(f"{first}-{last}", cells.link(words, links.query(links.TIMERS, {"from": first, "to": last})), -count)
        for count, first, last in sorted(hottest)[:BUSIEST]
        for words in (str(first) if first == last else f"{first} to {last}",)
    )
    heads, empty = columns("Heights") + numbers("Timers"), "No timer is scheduled."
    return parts.PageTable("busiest", "Busiest heights", heads, rows, empty, span=THIRD)
