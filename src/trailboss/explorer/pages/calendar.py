"""The calendar: how many timers wait at which heights, in its three tiers, as maps whose cells lead to these timers."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from trailboss.explorer import cells, links
from trailboss.explorer import documents as parts
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import THIRD, TWO_THIRDS, columns, numbers
from trailboss.explorer.failures import schedule_command
from trailboss.explorer.links import Query
from trailboss.explorer.page_context import Reading
from trailboss.primitives.units import U64_MAX
from trailboss.views.calendar import tier_counts, tier_ends
from trailboss.views.text import counted

COLUMNS: Final = 60
NEXT_CELLS: Final = 240
RING_CELLS: Final = 360
OVERFLOW_CELLS: Final = 120
LEVELS: Final = 6
BUSIEST: Final = 8
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
    sections: tuple[parts.Section, ...] = (_facts(reading), _busiest(stretches, counts), *maps)
    if not view.timer_count():
        empty = cells.text(f"The maps fill as actors schedule. To try it: {schedule_command(reading)}")
        sections = (parts.Notice("empty", "No timer is scheduled", content=empty), *maps)
    return parts.Document("Calendar", "Calendar", sections)


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
    last = _last_height(reading)
    if last >= epochs_end:
        step = max(1, -(-(last + 1 - epochs_end) // OVERFLOW_CELLS))
        bounds = (*range(epochs_end, last + 1, step), last + 1)
        yield Stretch("overflow", bounds, f"A cell is {counted(step, 'height')}.")


def _last_height(reading: Reading) -> int:
    """Return the greatest height at which a timer is due; 0 if there is none. Complexity: O(log n), 64 times."""
    view, total = reading.view, reading.view.timer_count()
    low, high = 0, U64_MAX if total else 0
    while low < high:
        middle = (low + high) // 2
        is_before = view.timer_counts((0, middle + 1))[0] < total
        low, high = (middle + 1, high) if is_before else (low, middle)
    return low


def _heat_map(stretch: Stretch, counts: Sequence[int], now: int) -> parts.HeatMap:
    steps = thresholds(max(counts, default=0))
    drawn = tuple(
        parts.HeatCell(first, last, count, spread(level_of(count, steps), len(steps)))
        for first, last, count in _cells(stretch, counts)
    )
    is_next = stretch.bounds[0] <= now + 1 < stretch.bounds[1]
    title = f"{TITLES[stretch.key]}, {counted(sum(counts), 'timer')}"
    note = f"{stretch.note} The framed one holds the next block." if is_next else stretch.note
    return parts.HeatMap(stretch.key, title, min(COLUMNS, len(drawn)), drawn, scale_words(steps), now + 1, note=note)


def _cells(stretch: Stretch, counts: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    for (first, end), count in zip(pairwise(stretch.bounds), counts, strict=True):
        yield first, end - 1, count


def thresholds(greatest: int) -> tuple[int, ...]:
    """Return the least count of each level above 0: in equal ratios up to the greatest count there is.

    >>> thresholds(0), thresholds(3), thresholds(1_000_000)
    ((), (1, 2, 3), (1, 10, 100, 1000, 10000, 100000))
    """
    if greatest <= LEVELS:
        return tuple(range(1, greatest + 1))
    # The root of a whole number, without the rounding of floats deciding about a colour.
    return tuple(sorted({max(1, round(greatest ** (level / LEVELS))) for level in range(LEVELS)}))


def level_of(count: int, steps: Sequence[int]) -> int:
    """Return the level of a count: how many of the thresholds it reaches."""
    return bisect_right(steps, count)


def spread(level: int, levels: int) -> int:
    """Return the colour of a level: few levels are as far apart as many, and the greatest is the strongest.

    >>> [spread(level, 2) for level in range(3)], [spread(level, 6) for level in range(7)]
    ([0, 3, 6], [0, 1, 2, 3, 4, 5, 6])
    """
    return -(-level * LEVELS // levels) if levels else 0


def scale_words(steps: Sequence[int]) -> tuple[tuple[int, str], ...]:
    """Return the colour of each level and what it stands for, from 0 on."""
    told = [(0, "0")]
    for at, step in enumerate(steps):
        last = steps[at + 1] - 1 if at + 1 < len(steps) else None
        words = f"{step:,} and more" if last is None else f"{step:,} to {last:,}" if last > step else f"{step:,}"
        told.append((spread(at + 1, len(steps)), words))
    return tuple(told)


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


def _busiest(stretches: Sequence[Stretch], counts: Sequence[Sequence[int]]) -> parts.Table:
    hottest = [
        (-count, first, last)
        for stretch, some in zip(stretches, counts, strict=True)
        if stretch.key != "next" or len(stretches) == 1
        for first, last, count in _cells(stretch, some)
        if count
    ]
    rows = tuple(
        cells.row(f"{first}-{last}", cells.link(words, links.query(links.TIMERS, {"from": first, "to": last})), -count)
        for count, first, last in sorted(hottest)[:BUSIEST]
        for words in (str(first) if first == last else f"{first} to {last}",)
    )
    return parts.Table(
        "busiest", "Busiest heights", columns("Heights") + numbers("Timers"), rows, "No timer is scheduled.", span=THIRD
    )
