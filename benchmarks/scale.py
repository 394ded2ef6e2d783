"""What pending timers cost everything else: chains with a thousand to five million of them, over 30 days."""

from collections.abc import Callable, Iterator
from functools import partial
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory

from cowboy_sdk import mock_host
from cowboy_sdk.testing import SimulatedChain

from benchmarks.measure import Case, Figure, Report, measure, percentile, shown_time, timed
from benchmarks.pending import TIERS, TIMERS, Pending, Rollover, plant_directory
from benchmarks.worker import Worker
from benchmarks.world import TIMER_PAYLOAD

SIZES = (1_000, 100_000, 1_000_000)
LARGE = 5_000_000
BUDGETED = 100_000
"""The size for which design budgets times."""
IDLE_RATIO = 1.2
FLAT = 1.5
"""What passes for flat, with records that no longer fit the processor's cache."""
LOGARITHMIC = "beyond"
"""The tier that may cost as much more as the logarithm grows."""
SECONDS_MAX = {"schedule": 40e-6, "fire": 30e-6}
"""Budgets of one timer at the size `BUDGETED`; the ratios of the larger sizes have budgets of their own."""
BYTES_MAX = 600
ROLLOVERS = 100
ROLLOVERS_AT_ONCE = 10
ROLLOVER_RATIO = 3
PEER_SIZES = (1_000, 50_000)
PEER_BLOCKS = 3
FAR = 1_000_000


def in_memory(rounds: int, large: bool) -> Report:
    """Measure chains in memory; the larger size takes three minutes more to build and four gigabytes."""
    report = Report("Pending timers over 30 days, in memory", "a block, or one timer of one")
    workers = {size: Worker(Pending, size) for size in _sizes(large)}
    _measure(report, workers, rounds)
    peers = [Case(name=f"SimulatedChain, idle block, {size:,}", sample=_peer_idle(size)) for size in PEER_SIZES]
    peers += [Case(name=f"SimulatedChain, fire, {size:,}", sample=_peer_fire(size)) for size in PEER_SIZES]
    measure(report, peers, rounds)
    report.notes.append("SimulatedChain: the public SDK's test chain; no fees, no metering, no root, no revert.")
    return report


def on_disk(rounds: int, large: bool) -> Report:
    """Measure chains on disk; the larger size takes three minutes more to build and three gigabytes of disk."""
    report = Report("Pending timers over 30 days, on disk", "a block, or one timer of one")
    with TemporaryDirectory() as temporary:
        workers: dict[int, Worker] = {}
        for size in _sizes(large):
            directory = Path(temporary, str(size))
            # Planted by another process, so that the one that is measured has only what opening gives it.
            Worker(plant_directory, size, directory).close()
            workers[size] = Worker(Pending, size, directory)
        _measure(report, workers, rounds)
    report.notes.append("Blocks survive the end of the process, not of the machine: `disk` has what that costs.")
    return report


def _sizes(large: bool) -> tuple[int, ...]:
    return (*SIZES, LARGE) if large else SIZES


def _measure(report: Report, workers: dict[int, Worker], rounds: int) -> None:
    report.notes += [
        "schedule, cancel: a block that treats 1,000 timers of 100 actors, less one that treats none; near: in the",
        "ring, far: within 30 days, beyond: after them. fire: a block with 1,000 due, less an idle one. All that a",
        "block does is included, but for the program. reorg: dropping a block in which 100 timers were scheduled.",
    ]
    measure(report, list(_cases(workers)), rounds)
    for size, worker in workers.items():
        held = worker.ask("memory")
        if held is not None and size > SIZES[0]:
            report.figures.append(
                Figure(name=f"memory of a pending timer, {size:,}", value=held, unit="bytes", most=BYTES_MAX)
            )
    _rollovers(report, workers)
    workers[BUDGETED].ask("check")
    for worker in workers.values():
        worker.ask("close")
        worker.close()


def _cases(workers: dict[int, Worker]) -> Iterator[Case]:
    """Yield the cases of one operation after another, so that those of a ratio run close together."""
    operations: dict[str, tuple[tuple[str, ...], float | None]] = {
        "idle block": (("idle",), IDLE_RATIO),
        **{f"schedule {tier}": (("schedule", tier), FLAT) for tier in TIERS},
        **{f"cancel {tier}": (("cancel", tier), FLAT) for tier in TIERS},
        "fire": (("fire",), FLAT),
        "reorg of one block": (("reorg",), None),
    }
    first = min(workers)
    for name, (question, ratio_max) in operations.items():
        for size, worker in workers.items():
            most = log(size) / log(first) if LOGARITHMIC in question else ratio_max
            seconds_max = SECONDS_MAX.get(question[0]) if size == BUDGETED else None
            yield Case(
                name=f"{name}, {size:,}",
                sample=partial(worker.ask, *question),
                beside="" if size == first else f"{name}, {first:,}",
                ratio_max=None if size == first or seconds_max else most,
                seconds_max=seconds_max,
            )


def _rollovers(report: Report, workers: dict[int, Worker]) -> None:
    """Add what the first blocks of epochs cost; the workers take turns, as the cases of a comparison do."""
    measured: dict[int, list[Rollover]] = {size: [] for size in workers}
    for _ in range(ROLLOVERS // ROLLOVERS_AT_ONCE):
        for size, worker in workers.items():
            measured[size] += worker.ask("rollovers", ROLLOVERS_AT_ONCE)
    for size, rollovers in measured.items():
        busy, elapsed, after = (list(column) for column in zip(*rollovers, strict=True))
        told = f"first block of {len(rollovers)} epochs, {size:,}: {_percentiles(busy)}"
        report.notes.append(f"{told} (by the clock {_percentiles(elapsed)}); the block after it: {_percentiles(after)}")
        ratio = percentile(busy, 99) / percentile(busy, 50)
        name = f"first block of an epoch, {size:,}, p99 / p50"
        report.figures.append(Figure(name=name, value=ratio, most=ROLLOVER_RATIO))
    report.notes.append(
        "Blocks of epochs are given in time of the processor: by the clock, one of a hundred meets a neighbour."
    )


def _percentiles(seconds: list[float]) -> str:
    return f"p50 {shown_time(percentile(seconds, 50))}, p99 {shown_time(percentile(seconds, 99))}"


class _Still:
    """An actor of the public SDK's test chain that does nothing when its timer fires."""

    def handle_timer(self, payload: bytes) -> None:
        """Return at once."""


def _peer_idle(size: int) -> Callable[[], float]:
    def sample() -> float:
        chain = _peer(size)
        return timed(lambda: chain.advance_block(PEER_BLOCKS), PEER_BLOCKS)

    return sample


def _peer_fire(size: int) -> Callable[[], float]:
    def sample() -> float:
        chain = _peer(size)
        for _ in range(TIMERS):
            mock_host.schedule_timer(chain.block_height + 1, TIMER_PAYLOAD)
        return timed(chain.advance_block, TIMERS)

    return sample


def _peer(size: int) -> SimulatedChain:
    """Return a test chain with pending timers; making it empties the host, which all of them share."""
    chain = SimulatedChain(_Still())
    for index in range(size):
        mock_host.schedule_timer(FAR + index, TIMER_PAYLOAD)
    return chain
