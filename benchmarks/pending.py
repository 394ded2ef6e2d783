"""A chain with many pending timers over 30 days, and what is done to it; it lives in a process of its own."""

import gc
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from benchmarks.measure import timed
from benchmarks.worker import anonymous_memory
from benchmarks.world import TIMER_PAYLOAD, World, check_applied
from trailboss.model.timers import timer_id
from trailboss.model.transactions import Transaction
from trailboss.primitives.octets import Address
from trailboss.state.disk.store import DEFAULT_SETTINGS, StoreSettings
from trailboss.state.store import MemoryStore

EPOCH = 3_600
EPOCHS = 720
"""The calendar of the preset mainnet: 30 days of one-second blocks."""
HORIZON = EPOCH * EPOCHS
QUIET = 64
"""The first heights of every epoch, at which no planted timer is due: what an epoch's first block costs is its own."""
PLANTED_EPOCH = 3
"""The epoch in which the first planted timer is due."""
START = 2 * EPOCH
"""Where the clock stands: the ring reaches the first planted timers, and none is due for an epoch."""
ACTORS = 100
PER_ACTOR = 1_000
"""Most pending timers of an actor; where there are more timers, there are more actors."""
EACH = 10
TIMERS = ACTORS * EACH
"""Timers of a measured block: each of 100 actors schedules or cancels as many, and as many are due."""
IDLE_BLOCKS = 128
"""Two of the stretches in which the queue reads ahead, so that every sample has its share of reading."""
STRIDE = 7_919
"""A prime: steps of it visit a range evenly, in no order that would help."""
TIERS = {
    "near": range(START + 2_000, START + EPOCH),
    "far": range((PLANTED_EPOCH + 1) * EPOCH, HORIZON),
    "beyond": range(HORIZON + 4 * EPOCH, 2 * HORIZON),
}
"""Heights of each tier as long as the clock stands in the epoch of `START`: ring, epoch queue, overflow set."""
PLANTING = StoreSettings(flush_interval=1, kept_journal=1)
"""A block that plants 100,000 timers goes to the tables at once, not after 64 of them."""


def planted_height(number: int, size: int) -> int:
    """Return the height of a planted timer, of ``size`` that lie evenly over the horizon."""
    busy = EPOCH - QUIET
    epoch, offset = divmod(number * EPOCHS * busy // size, busy)
    return (PLANTED_EPOCH + epoch) * EPOCH + QUIET + offset


class Rollover(NamedTuple):
    """What the first blocks of an epoch cost.

    Attributes:
        busy: Seconds of the processor for the first block.
        elapsed: Seconds by the clock for it.
        after: Seconds of the processor for the second block.
    """

    busy: float
    elapsed: float
    after: float


class Pending:
    """A chain with as many planted timers as wanted, ready to be measured."""

    def __init__(self, size: int, directory: Path | None = None) -> None:
        """Plant the timers in memory, or open a chain directory that `plant_directory` has left.

        Args:
            size: How many timers, at most 1,000 an actor.
            directory: Where they lie; None for memory.
        """
        self._size = size
        self._steps = count()
        self._before = anonymous_memory()
        start = perf_counter()
        if directory is None:
            world = _world(size, None, DEFAULT_SETTINGS)
            world.plant(planted_height(number, size) for number in range(size))
            # What takes the planting back is no part of a pending timer.
            store = world.chain.store
            if isinstance(store, MemoryStore):
                store._journal.clear()
        else:
            world = _world(size, directory, DEFAULT_SETTINGS)
        self._seconds = perf_counter() - start
        self._world = world
        self._held = anonymous_memory()
        for _ in world.chain.advance_to(START):
            pass
        gc.freeze()

    def opening(self) -> float:
        """Return the seconds that planting, or opening the directory, has taken."""
        return self._seconds

    def memory(self) -> float | None:
        """Return the bytes of anonymous memory that each pending timer takes; None if the system does not tell."""
        if self._held is None or self._before is None:
            return None
        return (self._held - self._before) / self._size

    def idle(self) -> float:
        """Return the seconds of a block in which nothing is due."""
        chain = self._world.chain
        before = chain.snapshot()
        seconds = timed(lambda: [chain.build() for _ in range(IDLE_BLOCKS)], IDLE_BLOCKS)
        chain.revert(before)
        return seconds

    def schedule(self, tier: str) -> float:
        """Return the seconds that one more scheduled timer costs a block."""
        heights = self._heights(tier)
        return self._beyond_idle(lambda each: self._world.schedule(heights, each, ACTORS))

    def cancel(self, tier: str) -> float:
        """Return the seconds that one more cancelled timer costs a block; those far ahead are planted ones."""
        chain = self._world.chain
        before = chain.snapshot()
        identities = self._planted() if tier == "far" else self._scheduled(tier)
        seconds = self._beyond_idle(
            lambda each: self._world.cancel({actor: own[:each] for actor, own in identities.items()})
        )
        chain.revert(before)
        return seconds

    def fire(self) -> float:
        """Return the seconds that one more due timer costs a block."""
        chain = self._world.chain
        before = chain.snapshot()
        idle = timed(chain.build)
        chain.revert(before)
        due = iter(lambda: chain.height + 2, None)
        check_applied(chain.build([self._world.schedule(due, EACH, ACTORS)]), 1)
        seconds = timed(lambda: check_applied(chain.build(), TIMERS))
        chain.revert(before)
        return (seconds - idle) / TIMERS

    def reorg(self) -> float:
        """Return the seconds of dropping a block in which 100 timers were scheduled far ahead."""
        chain = self._world.chain
        check_applied(chain.build([self._world.schedule(self._heights("far"), 1, ACTORS)]), 1)
        return timed(lambda: chain.reorg(1))

    def rollovers(self, epochs: int) -> list[Rollover]:
        """Return what the first and the second block of each of the next epochs cost; timers fire between."""
        chain = self._world.chain
        measured = []
        for _ in range(epochs):
            first = chain.height - chain.height % EPOCH + EPOCH
            for _ in chain.advance_to(first - 1):
                pass
            start, begun = process_time(), perf_counter()
            chain.build()
            elapsed, busy = perf_counter() - begun, process_time() - start
            start = process_time()
            chain.build()
            measured.append(Rollover(busy, elapsed, process_time() - start))
        return measured

    def check(self) -> None:
        """Check that what has been measured was a right chain: money, timers, queue and trees still agree."""
        self._world.chain.check_invariants()

    def close(self) -> None:
        """Close the chain."""
        self._world.close()

    def _heights(self, tier: str) -> Iterator[int]:
        heights = TIERS[tier]
        return (heights[next(self._steps) * STRIDE % len(heights)] for _ in count())

    def _planted(self) -> dict[Address, list[bytes]]:
        """Return ids of planted timers all over the horizon, ten of each actor, others at every call."""
        actors = self._world.actors
        each = self._size // len(actors)
        first = next(self._steps)
        found: dict[Address, list[bytes]] = {}
        for place, actor in enumerate(actors[:ACTORS]):
            nonces = ((first + step * each // EACH) % each for step in range(EACH))
            heights = ((planted_height(nonce * len(actors) + place, self._size), nonce) for nonce in nonces)
            found[actor] = [timer_id(actor, height, TIMER_PAYLOAD, nonce) for height, nonce in heights]
        return found

    def _scheduled(self, tier: str) -> dict[Address, list[bytes]]:
        """Schedule timers in a block, and return their ids."""
        world = self._world
        nonces = {actor: world.account(actor).timer_nonce for actor in world.actors[:ACTORS]}
        heights = list(islice(self._heights(tier), TIMERS))
        check_applied(world.chain.build([world.schedule(iter(heights), EACH, ACTORS)]), 1)
        return {
            actor: [
                timer_id(actor, height, TIMER_PAYLOAD, nonce + step)
                for step, height in enumerate(heights[place * EACH : (place + 1) * EACH])
            ]
            for place, (actor, nonce) in enumerate(nonces.items())
        }

    def _beyond_idle(self, transaction: Callable[[int], Transaction]) -> float:
        """Return the seconds a timer of a block that treats ten of each actor, less one that treats none."""
        chain = self._world.chain

        def block(each: int) -> float:
            before = chain.snapshot()
            call = transaction(each)
            seconds = timed(lambda: check_applied(chain.build([call]), 1))
            chain.revert(before)
            return seconds

        return (block(EACH) - block(0)) / TIMERS


def plant_directory(size: int, directory: Path) -> None:
    """Leave a chain directory with as many timers as `Pending` has in memory."""
    world = _world(size, directory, PLANTING)
    world.plant(planted_height(number, size) for number in range(size))
    world.close()


class Opened:
    """A chain directory that has just been opened."""

    def __init__(self, size: int, directory: Path) -> None:
        """Open the directory that `plant_directory` has left."""
        start = perf_counter()
        self._world = _world(size, directory, DEFAULT_SETTINGS)
        self._seconds = perf_counter() - start

    def opening(self) -> float:
        """Return the seconds that opening has taken."""
        return self._seconds

    def build(self) -> None:
        """Build an empty block."""
        self._world.chain.build()

    def close(self) -> None:
        """Close the chain."""
        self._world.close()


def _world(size: int, directory: Path | None, settings: StoreSettings) -> World:
    return World(senders=1, actors=max(ACTORS, size // PER_ACTOR), directory=directory, settings=settings)
