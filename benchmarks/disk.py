"""What a chain directory costs: blocks on disk beside blocks in memory, flushes, and opening."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Case, Report, measure, percentile, timed
from benchmarks.pending import Opened, plant_directory
from benchmarks.worker import Worker
from benchmarks.world import World, check_applied
from trailboss.crypto.digest import domain_digest
from trailboss.model.transactions import Transaction, Transfer
from trailboss.primitives.octets import Address
from trailboss.state.disk.store import DiskStore

IDLE = "idle"
CHANGES = 100
"""Transfers, or schedules, of a block."""
PENDING = 100_000
FAR = 1_000_000
STRIDE = 7_919
PLAIN_BLOCKS = 8
"""Blocks of a sample, of which the median is taken."""
CYCLES, CELLS = 10_000, 500
"""What a transfer uses."""
OPENED = (100_000, 1_000_000)
OPENED_LARGE = 5_000_000
OPEN_ROUNDS_MAX = 3
OPEN_SECONDS = 4.0
"""Budget of a node that is ready with a million timers."""
PLACES = {"memory": (False, False), "disk": (True, False), "durable": (True, True)}
"""Whether each is on disk, and whether its blocks survive the end of the machine."""


def run(rounds: int, large: bool) -> Report:
    """Measure; the larger size takes five minutes more and three gigabytes of disk."""
    report = Report(f"A chain directory, {PENDING:,} timers pending", "one block, or opening once")
    with TemporaryDirectory() as temporary:
        chains = {
            place: Blocks(Path(temporary, place) if on_disk else None, durable)
            for place, (on_disk, durable) in PLACES.items()
        }
        measure(report, list(_block_cases(chains)), rounds)
        for chain in chains.values():
            chain.close()
    with TemporaryDirectory() as temporary:
        for size in (*OPENED, OPENED_LARGE) if large else OPENED:
            directory = Path(temporary, str(size))
            Worker(plant_directory, size, directory).close()
            measure(report, list(_open_cases(size, directory)), min(rounds, OPEN_ROUNDS_MAX), warm=False)
    report.notes += [
        "disk: survives the end of the process; durable: on disk, and survives the end of the machine as well.",
        "flush: the block, one of 64 with changes, that brings the flat tables up to the journal. open: in a fresh",
        "process; after kill -9 the structure of the file and every checksum are checked as well.",
    ]
    return report


class Blocks:
    """A chain that builds blocks of one kind."""

    def __init__(self, directory: Path | None, durable: bool) -> None:
        """Plant timers far ahead, in memory or on disk."""
        self._world = World(senders=CHANGES, actors=CHANGES, directory=directory, durable=durable)
        self._world.plant(FAR + number for number in range(PENDING))
        self._numbers = count()
        self.kinds: dict[str, Callable[[], list[Transaction]]] = {
            IDLE: list,
            f"{CHANGES} transfers": self._transfers,
            f"{CHANGES} schedules": self._schedules,
        }

    def plain(self, kind: str) -> float:
        """Return the median seconds of some blocks in which no table is flushed."""
        seconds: list[float] = []
        while len(seconds) < PLAIN_BLOCKS:
            taken, flushed = self._build(kind)
            seconds += [] if flushed else [taken]
        return percentile(seconds, 50)

    def flush(self, kind: str) -> float:
        """Return the seconds of the next block in which the tables are flushed."""
        taken, flushed = self._build(kind)
        while not flushed:
            taken, flushed = self._build(kind)
        return taken

    def close(self) -> None:
        """Check that what has been measured was a right chain, and close it."""
        self._world.chain.check_invariants()
        self._world.close()

    def _build(self, kind: str) -> tuple[float, bool]:
        """Build a block; return its seconds, and whether it flushed."""
        transactions = self.kinds[kind]()
        chain, before = self._world.chain, self._flushed()
        accepted = len(transactions)
        seconds = timed(lambda: check_applied(chain.build(transactions), accepted))
        return seconds, self._flushed() != before

    def _flushed(self) -> int:
        store = self._world.chain.store
        return store._directory.marker.flushed_height if isinstance(store, DiskStore) else 0

    def _transfers(self) -> list[Transaction]:
        return [
            self._world.sign(sender, Transfer(_receiver(number), 1), cycles=CYCLES, cells=CELLS)
            for sender, number in zip(range(CHANGES), self._numbers, strict=False)
        ]

    def _schedules(self) -> list[Transaction]:
        return [self._world.schedule(self._heights(), each=1)]

    def _heights(self) -> Iterator[int]:
        return (FAR + number * STRIDE % FAR for number in self._numbers)


def _receiver(number: int) -> Address:
    return Address(domain_digest(b"benchmark-receiver", number.to_bytes(8, "big"))[:20])


def _block_cases(chains: dict[str, Blocks]) -> Iterator[Case]:
    first = next(iter(chains))
    for kind in chains[first].kinds:
        for place, chain in chains.items():
            beside = "" if place == first else f"{kind}, {first}"
            yield Case(name=f"{kind}, {place}", sample=partial(chain.plain, kind), beside=beside)
            if place != first and kind != IDLE:
                beside = f"{kind}, {place}"
                yield Case(name=f"flush, {kind}, {place}", sample=partial(chain.flush, kind), beside=beside)


def _open_cases(size: int, directory: Path) -> Iterator[Case]:
    def clean() -> float:
        worker = Worker(Opened, size, directory)
        seconds: float = worker.ask("opening")
        worker.ask("close")
        worker.close()
        return seconds

    def killed() -> float:
        victim = Worker(Opened, size, directory)
        victim.ask("build")
        victim.kill()
        return clean()

    most = OPEN_SECONDS if size == OPENED[-1] else None
    yield Case(name=f"open, {size:,} timers", sample=clean, seconds_max=most)
    yield Case(
        name=f"open after kill -9, {size:,} timers", sample=killed, beside=f"open, {size:,} timers", seconds_max=most
    )
