"""A block in which nothing is due, however many timers wait."""

import gc
import tracemalloc
from collections.abc import Callable

from cowboy_sdk import mock_host
from cowboy_sdk.testing import SimulatedChain

from benchmarks.measure import Case, Report, measure, repeated, timed
from benchmarks.world import World

SIZES = (1_000, 100_000, 1_000_000)
PEER_SIZES = (1_000, 50_000)
WEIGHED = 100_000
EPOCHS_AHEAD = 10
HEIGHTS = 100_000
"""Blocks over which the pending timers are spread."""
BLOCKS = 200
PEER_BLOCKS = 3


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report("Idle block: nothing due, many waiting", "one block")
    worlds = {size: _world(size) for size in SIZES}
    idle = [
        Case(
            name=_name(size),
            sample=repeated(world.chain.build, BLOCKS),
            beside="" if size == SIZES[0] else _name(SIZES[0]),
            ratio_max=1.2 if size == SIZES[-1] else None,
        )
        for size, world in worlds.items()
    ]
    measure(report, idle, rounds)
    rollovers = [Case(name=f"{_name(size)}, epoch begins", sample=_rollover(worlds[size])) for size in SIZES]
    measure(report, rollovers, rounds)
    worlds[SIZES[1]].chain.check_invariants()
    peers = [Case(name=f"SimulatedChain, {_name(size)}", sample=_peer(size)) for size in PEER_SIZES]
    measure(report, peers, rounds)
    report.notes.append(
        "epoch begins: up to 3,600 heights with all their timers move into the ring, once in 3,600 blocks"
    )
    for heights in (WEIGHED, WEIGHED // 10):
        report.notes.append(
            f"memory at {WEIGHED:,} pending over {heights:,} heights: {_weigh(heights):,.0f} bytes a timer (budget 600)"
        )
    return report


def _name(size: int) -> str:
    return f"{size:,} pending"


def _world(size: int, heights: int = HEIGHTS) -> World:
    world = World(senders=1, actors=100)
    first = world.chain.params.calendar.epoch_length * EPOCHS_AHEAD + 1
    world.plant(first + index % heights for index in range(size))
    return world


def _rollover(world: World) -> Callable[[], float]:
    """Return a sample of the first block of the epoch in which the first timers are due."""
    chain = world.chain

    def sample() -> float:
        for _ in chain.advance_to(chain.params.calendar.epoch_length * EPOCHS_AHEAD - 1):
            pass
        before = chain.snapshot()
        seconds = timed(chain.build)
        chain.revert(before)
        return seconds

    return sample


def _peer(size: int) -> Callable[[], float]:
    """Return a sample of the public SDK's test chain: no fees, no root; it sorts all timers in every block."""
    SimulatedChain(object())
    for index in range(size):
        mock_host.schedule_timer(HEIGHTS + index, b"")
    pending = mock_host.get_timers()

    def sample() -> float:
        chain = SimulatedChain(object())
        # Making a chain empties the host, which all chains share.
        mock_host._timers = pending
        return timed(lambda: chain.advance_block(PEER_BLOCKS), PEER_BLOCKS)

    return sample


def _weigh(heights: int) -> float:
    """Return the bytes that a pending timer holds in state, tree and queue, the undo journal of its block left out."""
    gc.collect()
    tracemalloc.start()
    world = _world(WEIGHED, heights)
    world.chain._store._journal.clear()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / WEIGHED
