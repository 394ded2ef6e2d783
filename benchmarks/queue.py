"""The calendar queue alone, over a state in memory: place and take, and open, beside what others offer."""

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from itertools import count
from math import log

from benchmarks.measure import Case, Report, measure, timed
from benchmarks.queue_peers import CancellingPeer, Entry, Heap, JobStore, ListsByHeight, OneList, Peer
from trailboss.model.timers import DEFAULT_HANDLER, RECORD_VERSION, Timer, encode_timer
from trailboss.params import CalendarParams
from trailboss.primitives.units import Cycles, Height
from trailboss.state.keys import timer_key
from trailboss.state.store import MemoryStore
from trailboss.timer_queue.bucket import Pending
from trailboss.timer_queue.queue import READ_AHEAD_MAX, TimerQueue
from trailboss.timer_queue.source import StoredTimers

SIZES = (10_000, 100_000, 1_000_000)
LARGE = 5_000_000
PEER_SIZE_MAX = 100_000
"""The most timers that the peers hold: with more, APScheduler's list takes minutes."""
CALENDAR = CalendarParams(ring_size=4_096, epoch_length=3_600, epoch_count=720)
"""The geometry of the preset mainnet."""
START = 1_000
"""Where the clock stands: enough blocks have passed to read everything near, whatever is pending."""
REACH = CALENDAR.epoch_length * (CALENDAR.epoch_count + 1)
NEAR, EPOCH, OVERFLOW = range(2_000, 3_600), range(7_200, REACH), range(REACH, 10 * REACH)
"""Heights of each tier; those near are in memory, the others are not."""
BATCH = 1_000
ROUNDS_FACTOR = 3
"""A sample takes a few milliseconds, so a neighbour on the machine can hit one side of a ratio: more rounds even it."""
FLAT = 1.5
"""What passes for flat over a hundred times as many timers, whose records no longer fit the processor's cache."""
STRIDE = 7_919
"""A prime: steps of it visit a range evenly, in no order that would help."""
ADDRESS = bytes(20)


def run(rounds: int, large: bool) -> Report:
    """Measure; the larger size takes some minutes and gigabytes."""
    report = Report("Timer queue alone, a third of the pending timers in each tier", "place and take one timer")
    sizes = (*SIZES, LARGE) if large else SIZES
    cases: list[Case] = []
    for size in sizes:
        cases += _cases(size, flat=size == sizes[-1])
    measure(report, cases, ROUNDS_FACTOR * rounds)
    report.notes += [
        "near: placed at the next height and taken from the due ones when it has come; else placed and taken by id.",
        f"open: a queue over a state, ready for its first block; it reads {READ_AHEAD_MAX:,} timers.",
        "Beyond what is near, our queue keeps nothing: the timers are in the state, whose cost is that of `commit`.",
        "heapq cannot take a timer from its middle, as a cancel must. The other peers find a timer by id in a dict.",
        "APScheduler: its MemoryJobStore alone, add_job, get_due_jobs and remove_job, with jobs that do nothing.",
    ]
    return report


def _cases(size: int, flat: bool) -> list[Case]:
    source = StoredTimers(_store(size))
    queue = TimerQueue(CALENDAR, source)
    for now in range(1, START):
        queue.advance(now)
    identities = count(size)
    samples: dict[str, Callable[[], float]] = {
        "near": lambda: _near(queue, identities),
        "epoch": lambda: _far(queue, identities, EPOCH),
        "overflow": lambda: _far(queue, identities, OVERFLOW),
        "open": lambda: timed(lambda: TimerQueue(CALENDAR, source)),
    }
    ours = [
        Case(
            name=f"{name}, {size:,} pending",
            sample=sample,
            beside="" if size == SIZES[0] else f"{name}, {SIZES[0]:,} pending",
            ratio_max=_growth(name, size) if flat else None,
        )
        for name, sample in samples.items()
    ]
    return ours + _peer_cases(size, identities)


def _peer_cases(size: int, identities: Iterator[int]) -> list[Case]:
    if size > PEER_SIZE_MAX:
        return []
    heap = Heap(_pending(size))
    peers: dict[str, CancellingPeer] = {
        "SortedList": OneList(_pending(size)),
        "SortedDict": ListsByHeight(_pending(size)),
        "APScheduler": JobStore(_pending(size)),
    }
    samples = {("heapq", "near"): lambda: _peer_near(heap, identities)}
    for name, peer in peers.items():
        samples[name, "near"] = partial(_peer_near, peer, identities)
        samples[name, "epoch"] = partial(_peer_far, peer, identities)
    return [
        Case(name=f"{name}, {tier}, {size:,} pending", sample=sample, beside=f"{tier}, {size:,} pending")
        for (name, tier), sample in samples.items()
    ]


def _growth(name: str, size: int) -> float | None:
    """Return how much dearer a timer may be than with the fewest pending: as the logarithm where there is order."""
    if name in ("near", "epoch", "open"):
        return FLAT
    return log(size) / log(SIZES[0]) if name == "overflow" else None


def _identity(number: int) -> bytes:
    return sha256(number.to_bytes(8, "big")).digest()


def _spread(heights: range, number: int) -> int:
    return heights[number * STRIDE % len(heights)]


def _pending(size: int) -> Iterator[tuple[int, int, bytes]]:
    for number in range(size):
        yield _spread((NEAR, EPOCH, OVERFLOW)[number % 3], number // 3), number, _identity(number)


def _store(size: int) -> MemoryStore:
    store = MemoryStore()
    store.commit(
        0,
        {
            timer_key(height, identity): encode_timer(
                Timer(
                    version=RECORD_VERSION,
                    actor=ADDRESS,
                    height=Height(height),
                    timer_id=identity,
                    sequence=number,
                    handler=DEFAULT_HANDLER,
                    payload=identity,
                    fee_payer=ADDRESS,
                    gas_limit=Cycles(1),
                    access_limit=0,
                    expires_at=Height(height),
                    schedule_block=Height(0),
                )
            )
            for height, number, identity in _pending(size)
        },
    )
    return store


def _batch(identities: Iterator[int]) -> list[tuple[int, bytes]]:
    return [(number, _identity(number)) for number, _ in zip(identities, range(BATCH), strict=False)]


def _near(queue: TimerQueue, identities: Iterator[int]) -> float:
    batch = _batch(identities)

    def place_and_take() -> None:
        due = queue.now + 1
        for number, identity in batch:
            queue.place(Pending(due, number, identity, ADDRESS, due))
        queue.advance(due)
        for _, _, identity in list(queue.due(due)):
            queue.cancel(identity)

    return timed(place_and_take, BATCH)


def _far(queue: TimerQueue, identities: Iterator[int], heights: range) -> float:
    batch = [(_spread(heights, number), number, identity) for number, identity in _batch(identities)]

    def place_and_take() -> None:
        for height, number, identity in batch:
            queue.place(Pending(height, number, identity, ADDRESS, height))
        for _, _, identity in batch:
            queue.cancel(identity)

    return timed(place_and_take, BATCH)


def _peer_near(peer: Peer, identities: Iterator[int]) -> float:
    batch: list[Entry] = [(1, number, identity) for number, identity in _batch(identities)]

    def place_and_take() -> None:
        for entry in batch:
            peer.place(entry)
        peer.take(BATCH)

    return timed(place_and_take, BATCH)


def _peer_far(peer: CancellingPeer, identities: Iterator[int]) -> float:
    batch: list[Entry] = [(_spread(EPOCH, number), number, identity) for number, identity in _batch(identities)]

    def place_and_cancel() -> None:
        for entry in batch:
            peer.place(entry)
        for _, _, identity in batch:
            peer.cancel(identity)

    return timed(place_and_cancel, BATCH)
