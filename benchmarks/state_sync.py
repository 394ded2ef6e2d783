"""What it costs to join a network by a snapshot, and to offer one: nothing of an engine or of a network is in it."""

from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.measure import Case, Figure, Report, measure, timed
from benchmarks.pending import Opened, plant_directory
from benchmarks.worker import Worker
from trailboss.chain.snapshots import Restoration, SnapshotShelf

SIZES = (100_000,)
SIZES_LARGE = (100_000, 1_000_000)
ROUNDS_MAX = 3
MEBIBYTE = 1 << 20
JOIN_SECONDS = {100_000: 10.0, 1_000_000: 45.0}
"""Budget of joining: all chunks read, checked and stored, and the chain opened; without the way between two nodes."""


class Sizes(NamedTuple):
    """How large a snapshot is.

    Attributes:
        chunks: Number of chunks.
        octets: Bytes of all of them.
        metadata: Bytes of the metadata.
    """

    chunks: int
    octets: int
    metadata: int


class Joining(Opened):
    """A chain directory with many pending timers, a snapshot of it, and nodes that join by it."""

    def __init__(self, size: int, directory: Path) -> None:
        """Open the directory that `plant_directory` has left, and take its snapshot."""
        super().__init__(size, directory)
        self._size, self._folder = size, directory.with_name(f"{directory.name}-joined")
        self._names = count()
        self._shelf = SnapshotShelf(1)
        self.take()
        self._chunks = [self._chunk(index) for index in range(self._snapshot.chunks)]

    def take(self) -> float:
        """Return the seconds in which a snapshot is taken."""
        view = self._world.chain.publish()
        seconds = timed(lambda: self._shelf.take(view))
        self._snapshot, self._trusted = self._shelf.snapshots[0], view.head.hash
        return seconds

    def serve(self) -> float:
        """Return the seconds in which all chunks are read."""
        return timed(lambda: [self._chunk(index) for index in range(self._snapshot.chunks)])

    def restore(self) -> float:
        """Return the seconds in which all chunks are checked and stored, until there is a chain on disk."""
        directory = self._folder / str(next(self._names))
        seconds = timed(lambda: self._restore(directory))
        rmtree(directory)
        return seconds

    def join(self) -> float:
        """Return the seconds of everything, from reading the chunks to a chain that can build its next block."""
        directory = self._folder / str(next(self._names))

        def run() -> Opened:
            self._chunks = [self._chunk(index) for index in range(self._snapshot.chunks)]
            self._restore(directory)
            return Opened(self._size, directory)

        joined: list[Opened] = []
        seconds = timed(lambda: joined.append(run()))
        ours, theirs = self._world.chain, joined[0]._world.chain
        if (theirs.height, theirs.state_root) != (ours.height, ours.state_root):
            raise AssertionError("the chain that joined has another state")
        joined[0].close()
        rmtree(directory)
        return seconds

    def sizes(self) -> Sizes:
        """Return how large the snapshot is."""
        return Sizes(len(self._chunks), sum(map(len, self._chunks)), len(self._snapshot.metadata))

    def _chunk(self, index: int) -> bytes:
        return self._shelf.chunk(self._snapshot.height, self._snapshot.format, index)

    def _restore(self, directory: Path) -> None:
        restoration = Restoration(directory, self._world.chain.genesis, self._snapshot, self._trusted)
        for index, chunk in enumerate(self._chunks):
            restoration.accept(index, chunk)
        restoration.finish()


def run(rounds: int, large: bool) -> Report:
    """Measure; the larger size takes two minutes and two gigabytes of disk."""
    report = Report("State sync of pending timers", "everything once")
    with TemporaryDirectory() as temporary:
        for size in SIZES_LARGE if large else SIZES:
            directory = Path(temporary, str(size))
            Worker(plant_directory, size, directory).close()
            worker = Worker(Joining, size, directory)
            measure(report, list(_cases(size, worker)), min(rounds, ROUNDS_MAX), warm=False)
            found = Sizes(*worker.ask("sizes"))
            worker.close()
            report.figures += [
                Figure(name=f"chunks, {size:,}", value=found.chunks),
                Figure(name=f"bytes of all chunks, {size:,}", value=found.octets / MEBIBYTE, unit="MiB"),
                Figure(name=f"metadata, {size:,}", value=found.metadata / MEBIBYTE, unit="MiB", most=1.0),
            ]
    report.notes += [
        "take: on the node that offers it, beside its blocks. serve: all chunks read there. restore: all chunks",
        "checked against the root and stored, durable. join: serve, restore, and the chain opened, which checks again.",
    ]
    return report


def _cases(size: int, worker: Worker) -> Iterator[Case]:
    for name in ("take", "serve", "restore"):
        yield Case(name=f"{name}, {size:,}", sample=partial(worker.ask, name))
    yield Case(name=f"join, {size:,}", sample=partial(worker.ask, "join"), seconds_max=JOIN_SECONDS[size])
