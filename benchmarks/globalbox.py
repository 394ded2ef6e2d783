"""Globalbox's index and queue alone: what a block costs by how much is queued, and by how many watch."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from itertools import count

import msgspec

from benchmarks.measure import Case, Figure, Report, measure, timed
from trailboss.mechanisms.base import Decision, DueTimers, Verdict
from trailboss.mechanisms.context import GlobalboxMarket, SelectionContext
from trailboss.mechanisms.globalbox import Globalbox, build_globalbox
from trailboss.mechanisms.globalbox.candidates import Scoring
from trailboss.mechanisms.globalbox.index import GlobalboxIndex
from trailboss.mechanisms.globalbox.watches import TrackedTimer, WatchIndex
from trailboss.model.globalbox import CarriedHit, bid_octets, standing_octets
from trailboss.model.terms import GlobalboxTerms, QueuedFire, Trigger
from trailboss.model.timers import DEFAULT_HANDLER, RECORD_VERSION, Timer, terms_of
from trailboss.params import load_params
from trailboss.primitives.units import Amount, Cells, Cycles, Height, Price

QUEUED = (10_000, 1_000_000)
QUEUED_BESIDE = (10_000, 100_000)
"""For the other shapes: a million takes long to build."""
MOVED = 1_000
"""Fires that enter the queue in a block, and that leave it."""
SHARE = 16
MOVED_SECONDS = 0.05
RATIO = 2
WATCHES = 1_000_000
MODIFIED = 10_000
MATCH_SECONDS = 0.1
HITS_MAX = 10_000
BYTES_SIZE = 20_000
GAS = Cycles(250_000)
ONE = 1 << 96
HEIGHT = 1_000
EXPIRES = 10**6
OWNERS = 1_000
PRIME = 7_919
SCORING = Scoring(HEIGHT, ONE, 1, HEIGHT * ONE)
PARAMS = load_params()

Targets = Callable[[int], int]
SHAPES: dict[str, tuple[Targets, tuple[int, int]]] = {
    "10,000 targets": (lambda number: number * PRIME % 10_000, QUEUED),
    "one target": (lambda _: 0, QUEUED_BESIDE),
    "all targets differ": (lambda number: number, QUEUED_BESIDE),
}


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report("Globalbox: its queue and its watches", "one block")
    for shape, (targets, sizes) in SHAPES.items():
        _measure_queue(report, shape, targets, sizes, rounds)
    _measure_watches(report, rounds)
    report.notes += [
        f"Queued: {MOVED:,} candidates enter and {MOVED:,} fires leave, at most {SHARE} for a target where there "
        "are many; the mechanism decides, and hears of the records that delivery would write.",
        f"Watches: {MODIFIED:,} keys are modified, and at most {HITS_MAX:,} watches are hit.",
        "Records, the mailbox and handlers are delivery's, and stand still here.",
    ]
    return report


def _measure_queue(report: Report, shape: str, targets: Targets, sizes: tuple[int, int], rounds: int) -> None:
    few, many = sizes
    first = Case(name=f"{shape}, {few:,} queued", sample=partial(_move, _Block(few, targets), count()))
    second = Case(
        name=f"{shape}, {many:,} queued",
        sample=partial(_move, _Block(many, targets), count()),
        beside=first.name,
        seconds_max=MOVED_SECONDS,
    )
    measure(report, [first, second], rounds)
    ratio = report.rows[-1].ratio
    if ratio is not None:
        report.figures.append(Figure(name=f"{shape}, {many:,} queued to {few:,}", value=ratio, unit="×", most=RATIO))
    taken = _bytes(lambda: GlobalboxIndex(_queued(BYTES_SIZE, targets)))
    report.figures.append(Figure(name=f"{shape}, memory of a queued fire", value=taken, unit="B"))


def _octets(number: int, width: int) -> bytes:
    return sha256(number.to_bytes(8, "big")).digest()[:width]


def _timer(number: int, terms: GlobalboxTerms) -> Timer:
    owner = (number % OWNERS).to_bytes(20, "big")
    expires_at = EXPIRES + number % PRIME
    return Timer(
        version=RECORD_VERSION,
        actor=owner,
        height=Height(HEIGHT),
        timer_id=_octets(number, 32),
        sequence=number,
        handler=DEFAULT_HANDLER,
        payload=b"",
        fee_payer=owner,
        gas_limit=GAS,
        access_limit=0,
        expires_at=Height(expires_at),
        schedule_block=Height(1),
        terms=terms,
    )


def _due(number: int, targets: Targets, fire: QueuedFire | None = None) -> Timer:
    """Return a height timer that is due, and perhaps queued."""
    terms = GlobalboxTerms(Trigger.HEIGHT, _octets(targets(number), 20), bid_octets(number % 97 * ONE), fire=fire)
    return _timer(number, terms)


def _queued(size: int, targets: Targets) -> Iterator[Timer]:
    for number in range(size):
        bid, hit_height = number % 97 * ONE, HEIGHT - number * PRIME % HEIGHT
        standing = standing_octets(SCORING.standing(hit_height, bid))
        heights = Height(hit_height), Height(HEIGHT)
        fire = QueuedFire(standing, 0, 0, *heights, (), DEFAULT_HANDLER, b"", GAS, bid_octets(bid))
        yield _due(number, targets, fire)


class _Block:
    """A queue of a size, and what delivery would offer to it: records at hand, and an empty mailbox."""

    def __init__(self, size: int, targets: Targets) -> None:
        self.targets = targets
        self.has_one_target = targets(0) == targets(1)
        self.records: dict[bytes, Timer] = {}
        self.mechanism: Globalbox = build_globalbox(PARAMS)
        self.mechanism.begin(partial(self._remember, size))
        self.size = size
        self._deliver(DueTimers(()))

    def _remember(self, size: int) -> Iterator[Timer]:
        for timer in _queued(size, self.targets):
            self.records[timer.timer_id] = timer
            yield timer

    def _context(self, fires: int) -> SelectionContext[GlobalboxMarket]:
        return SelectionContext(
            height=Height(HEIGHT),
            cycle_basefee=Price(1),
            cell_basefee=Price(1),
            max_cells_per_fire=Cells(1),
            lane_cycles_max=GAS,
            gc_cycles_max=Cycles(0),
            gc_cycles_per_timer=Cycles(1),
            balance_of=lambda _: Amount(2**127),
            lane_cycles_left=lambda: GAS,
            market=GlobalboxMarket(
                max_cycles_per_fire=GAS,
                age_weight=SCORING.age_weight,
                bid_weight=SCORING.bid_weight,
                clock=SCORING.clock,
                max_fires=fires,
                max_fires_per_target=fires or 1 if self.has_one_target else SHARE,
                hits_max=HITS_MAX,
                modified=(),
                timer_of=lambda _, identity: self.records[identity],
                entries=lambda: iter(()),
            ),
        )

    def _deliver(self, due: DueTimers, fires: int = 0) -> list[Decision]:
        decisions, replace = [], self.mechanism.replace
        selection = self.mechanism.select(due, self._context(fires))
        for decision in selection:
            decisions.append(decision)
            timer, has_fire = decision.timer, decision.verdict is Verdict.ENQUEUE
            terms = terms_of(timer, GlobalboxTerms)
            terms = msgspec.structs.replace(
                terms, fire=decision.fire if has_fire else None, fire_seq=0 if has_fire else 1
            )
            timer = self.records[timer.timer_id] = msgspec.structs.replace(timer, terms=terms)
            replace(timer)
        return decisions

    def move(self, block: int) -> float:
        """Let fires in and out; return the seconds of that."""
        start = self.size + block * MOVED
        joining = [_due(number, self.targets) for number in range(start, start + MOVED)]
        self.records |= {timer.timer_id: timer for timer in joining}
        decided: list[Decision] = []

        def deliver() -> None:
            decided.extend(self._deliver(DueTimers((), joining), MOVED))

        seconds = timed(deliver)
        if len(decided) != 2 * MOVED:
            raise RuntimeError(f"{len(decided)} decisions instead of {2 * MOVED}")
        for decision in decided[MOVED:]:
            self.mechanism.leave(decision.timer.timer_id)
            del self.records[decision.timer.timer_id]
        return seconds


def _move(block: _Block, blocks: Iterator[int]) -> float:
    return block.move(next(blocks))


def _key(number: int) -> bytes:
    """Return a key of one of a thousand actors: 20 bytes, and 8 of a slot."""
    return _octets(number % 1_000, 20) + _octets(number, 8)


def _watch(number: int) -> tuple[bytes, ...]:
    """Return what a watch watches: one in a hundred a whole actor, others a slot."""
    return (_key(number)[:20] if number % 100 == 0 else _key(number),)


WATCHED: dict[str, Callable[[int], tuple[bytes, ...]]] = {
    "all keys differ": lambda number: (_key(number),),
    "one in 100 watches an actor": _watch,
    "all watch one key": lambda _: (_key(0),),
}


def _watches(size: int, keys: Callable[[int], tuple[bytes, ...]]) -> WatchIndex:
    index = WatchIndex()
    for number in range(size):
        expires_at = EXPIRES + number % PRIME
        index.add(TrackedTimer(expires_at, expires_at + 1, number, number.to_bytes(32, "big"), 1, keys(number)))
    return index


def _measure_watches(report: Report, rounds: int) -> None:
    for shape, keys in WATCHED.items():
        index = _watches(WATCHES, keys)
        modified = sorted({_key(number) for number in range(0, WATCHES, WATCHES // MODIFIED)})
        hits = [CarriedHit(key, 0, HEIGHT) for key in modified]
        name = f"{WATCHES:,} watches, {shape}"
        measure(report, [Case(name=name, sample=partial(_match, index, hits), seconds_max=MATCH_SECONDS)], rounds)
    for shape, keys in WATCHED.items():
        taken = _bytes(partial(_watches, BYTES_SIZE, keys))
        report.figures.append(Figure(name=f"memory of a watch, {shape}", value=taken, unit="B"))


def _match(index: WatchIndex, hits: list[CarriedHit]) -> float:
    found = 0

    def match() -> None:
        nonlocal found
        found = len(index.match(hits, HITS_MAX, HEIGHT)[0])

    seconds = timed(match)
    if not found:
        raise RuntimeError("no watch was hit")
    return seconds


def _bytes(build: Callable[[], object]) -> float:
    gc.collect()
    tracemalloc.start()
    built = build()
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del built
    return taken / BYTES_SIZE
