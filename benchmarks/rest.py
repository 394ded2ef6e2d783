"""Very many timers at rest on disk: built, killed, opened and fired; with ``--large`` ten million of them."""

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.measure import Case, Figure, Report, calibrate, measure
from benchmarks.pending import Opened, Pending, plant_directory
from benchmarks.worker import Worker

SIZE = 1_000_000
LARGE = 10_000_000
BYTES_MAX = 400
"""Budget of a pending timer's memory, in a process that has opened the chain."""


def run(rounds: int, large: bool) -> Report:
    """Measure once; the larger size takes five minutes and four gigabytes of disk."""
    size = LARGE if large else SIZE
    report = Report(f"{size:,} timers at rest on disk", "one timer of a block with 1,000 due")
    with TemporaryDirectory() as temporary:
        directory = Path(temporary, "chain")
        began = perf_counter()
        Worker(plant_directory, size, directory).close()
        built = perf_counter() - began
        octets = sum(path.stat().st_blocks * 512 for path in directory.iterdir())
        victim = Worker(Opened, size, directory)
        in_order = victim.ask("opening")
        victim.ask("build")
        victim.kill()
        worker = Worker(Pending, size, directory)
        measure(report, [Case(name=f"fire, {size:,}", sample=lambda: worker.ask("fire"))], rounds)
        [rollover] = worker.ask("rollovers", 1)
        report.figures += [
            Figure(name="memory of a pending timer", value=worker.ask("memory"), unit="bytes", most=BYTES_MAX),
            Figure(name="disk of a pending timer", value=octets / size, unit="bytes"),
            Figure(name="build", value=built, unit="s"),
            Figure(name="open", value=in_order, unit="s"),
            Figure(name="open after kill -9", value=worker.ask("opening"), unit="s"),
            Figure(name="first block of the next epoch", value=rollover.elapsed * 1_000, unit="ms"),
        ]
        worker.ask("close")
        worker.close()
    report.calibration.append(calibrate())
    report.notes.append("memory: anonymous, in the process that has opened the chain. build: planted, 100,000 a block.")
    return report
