"""Empty blocks on the way to a height."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Case, Figure, Report, measure, timed
from benchmarks.worker import Worker, anonymous_memory
from benchmarks.world import World
from trailboss.chain import Chain
from trailboss.chain.history import CHECKPOINT_BLOCKS

BLOCKS = 2_000
PENDING = 100_000
FAR = 10_000_000
RATE_MIN = 20_000
LONG, LONGER = 259_200, 2_592_000
"""Three days of one-second blocks, and 30."""
COMPARED = 1_000
"""Blocks at the end of a long way that are built again one by one."""
BUILT = "build, block by block"
ADVANCED = "advance_to"
MEBIBYTE = 1 << 20


def run(rounds: int, large: bool) -> Report:
    """Measure; large goes ten times as far."""
    report = Report("Empty blocks: advance_to", "one block")
    with TemporaryDirectory() as directory:
        worlds = {place: World(1, 1, directory=path, durable=True) for place, path in _places(Path(directory, "short"))}
        memory, disk = worlds.values()
        full = World(senders=1, actors=100)
        full.plant(FAR + index for index in range(PENDING))
        cases = [
            Case(name=BUILT, sample=lambda: timed(lambda: [memory.chain.build() for _ in range(BLOCKS)], BLOCKS)),
            _advance(memory, ADVANCED, BUILT),
            _advance(full, f"{ADVANCED}, {PENDING:,} timers pending", ADVANCED),
            _advance(disk, f"{ADVANCED}, on disk", ADVANCED),
        ]
        measure(report, cases, rounds)
        disk.close()
        for place, path in _places(Path(directory, "long")):
            worker = Worker(LongWay, path)
            blocks = LONGER if large else LONG
            case = Case(
                name=f"{ADVANCED} over {blocks:,}, {place}",
                sample=partial(worker.ask, "advance", blocks),
                beside="",
                rate_min=RATE_MIN,
            )
            measure(report, [case], rounds=1, warm=False)
            held = worker.ask("held")
            if held is not None:
                name = f"memory held after {blocks:,} empty blocks, {place}"
                report.figures.append(Figure(name=name, value=held / MEBIBYTE, unit="MiB"))
            worker.ask("check")
            worker.close()
    report.notes += [
        f"on disk: made durable {CHECKPOINT_BLOCKS:,} blocks at a time. The long ways are taken once, each in a",
        f"process of its own; their last {COMPARED:,} blocks, built again one by one, have the same hashes.",
    ]
    return report


class LongWay:
    """A chain without timers that goes far."""

    def __init__(self, directory: Path | None) -> None:
        """Start it, in memory or on disk."""
        self._chain: Chain = World(1, 1, directory=directory, durable=True).chain
        self._before = anonymous_memory()

    def advance(self, blocks: int) -> float:
        """Go on, and return the seconds of one block."""

        def walk() -> None:
            for _ in self._chain.advance_to(self._chain.height + blocks):
                pass

        return timed(walk, blocks)

    def held(self) -> int | None:
        """Return how many bytes of anonymous memory came to be held; None if the system does not tell."""
        after = anonymous_memory()
        return None if after is None or self._before is None else after - self._before

    def check(self) -> None:
        """Check that the last blocks are those that building one by one gives.

        Raises:
            AssertionError: If they are not.
        """
        chain = self._chain
        last = chain.height
        advanced = [block.hash for block in chain.blocks[last - COMPARED + 1 :]]
        chain.reorg(COMPARED)
        built = [chain.build().block.hash for _ in range(COMPARED)]
        if advanced != built:
            raise AssertionError(f"advance_to and build differ below block {last}")


def _places(directory: Path) -> list[tuple[str, Path | None]]:
    return [("in memory", None), ("on disk", directory)]


def _advance(world: World, name: str, beside: str) -> Case:
    chain = world.chain
    walk: Callable[[], object] = lambda: [None for _ in chain.advance_to(chain.height + BLOCKS)]  # noqa: E731
    return Case(name=name, sample=lambda: timed(walk, BLOCKS), beside=beside, rate_min=RATE_MIN)
