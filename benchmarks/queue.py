"""The calendar queue alone: place and take, beside a binary heap."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from heapq import heapify, heappop, heappush
from itertools import count
from math import log

from benchmarks.measure import Case, Report, measure, timed
from trailboss.params import CalendarParams
from trailboss.timer_queue.queue import TimerQueue

SIZES = (10_000, 100_000, 1_000_000)
LARGE = 10_000_000
CALENDAR = CalendarParams(ring_size=4_096, epoch_length=3_600, epoch_count=720)
"""The geometry of the preset mainnet."""
REACH = CALENDAR.epoch_length * (CALENDAR.epoch_count + 1)
NEAR, EPOCH, OVERFLOW = range(100, 3_600), range(3_600, REACH), range(REACH, 10 * REACH)
"""The heights of each tier while the clock stands in the first epoch; the overflow set has no end of its own."""
BATCH = 1_000
ROUNDS_FACTOR = 3
"""A sample takes a few milliseconds, so a neighbour on the machine can hit one side of a ratio: more rounds even it."""
FLAT = 1.5
"""What passes for flat over a hundred times as many timers, whose records no longer fit the processor's cache."""
STRIDE = 7_919
"""A prime: steps of it visit a range evenly, in no order that would help."""


def run(rounds: int, large: bool) -> Report:
    """Measure; the larger size takes two minutes and seven gigabytes."""
    report = Report("Timer queue alone, a third of the pending timers in each tier", "place and take one timer")
    sizes = (*SIZES, LARGE) if large else SIZES
    cases: list[Case] = []
    for size in sizes:
        cases += _cases(size, flat=size == sizes[-1])
    measure(report, cases, ROUNDS_FACTOR * rounds)
    report.notes += [
        "near: placed at the next height and taken from the due ones when it has come; else placed and taken by id.",
        "epoch: with 10,000,000 pending every height has its bucket already, and placing makes none.",
        "heapq: pushed below and popped from the top; it cannot take a timer from its middle, as a cancel must.",
    ]
    return report


def _cases(size: int, flat: bool) -> list[Case]:
    queue = TimerQueue(CALENDAR)
    queue.rebuild(_pending(size), now=0)
    heap = list(_pending(size))
    heapify(heap)
    identities = count(size)
    samples: dict[str, Callable[[], float]] = {
        "near": lambda: _near(queue, identities),
        "epoch": lambda: _far(queue, identities, EPOCH),
        "overflow": lambda: _far(queue, identities, OVERFLOW),
        "heapq, near": lambda: _heap(heap, identities),
    }
    return [
        Case(
            name=f"{name}, {size:,} pending",
            sample=sample,
            beside="" if size == SIZES[0] else f"{name}, {SIZES[0]:,} pending",
            ratio_max=_growth(name, size) if flat else None,
        )
        for name, sample in samples.items()
    ]


def _growth(name: str, size: int) -> float | None:
    """Return how much dearer a timer may be than with the fewest pending: as the logarithm where there is order."""
    if name in ("near", "epoch"):
        return FLAT
    return log(size) / log(SIZES[0]) if name == "overflow" else None


def _identity(number: int) -> bytes:
    return sha256(number.to_bytes(8, "big")).digest()


def _spread(heights: range, number: int) -> int:
    return heights[number * STRIDE % len(heights)]


def _pending(size: int) -> Iterator[tuple[int, int, bytes]]:
    for number in range(size):
        yield _spread((NEAR, EPOCH, OVERFLOW)[number % 3], number // 3), number, _identity(number)


def _batch(identities: Iterator[int]) -> list[tuple[int, bytes]]:
    return [(number, _identity(number)) for number, _ in zip(identities, range(BATCH), strict=False)]


def _near(queue: TimerQueue, identities: Iterator[int]) -> float:
    batch = _batch(identities)

    def place_and_take() -> None:
        for number, identity in batch:
            queue.place(1, number, identity)
        queue.advance(1)
        for _, _, identity in list(queue.due(1)):
            queue.cancel(identity)

    seconds = timed(place_and_take, BATCH)
    queue.rewind(0)
    return seconds


def _far(queue: TimerQueue, identities: Iterator[int], heights: range) -> float:
    batch = [(_spread(heights, number), number, identity) for number, identity in _batch(identities)]

    def place_and_take() -> None:
        for height, number, identity in batch:
            queue.place(height, number, identity)
        for _, _, identity in batch:
            queue.cancel(identity)

    return timed(place_and_take, BATCH)


def _heap(heap: list[tuple[int, int, bytes]], identities: Iterator[int]) -> float:
    batch = _batch(identities)

    def push_and_pop() -> None:
        for number, identity in batch:
            heappush(heap, (1, number, identity))
        for _ in batch:
            heappop(heap)

    return timed(push_and_pop, BATCH)
