"""The timer lane in whole blocks: eight fires with few and with very many due, idle blocks, and the fairness window."""

from functools import partial
from itertools import repeat
from typing import Final

from msgspec.structs import replace

from benchmarks.measure import Case, Report, measure, timed
from benchmarks.world import FIRE_CYCLES, World, check_applied
from trailboss.execution.lane.fairness import count_fires, leave_window
from trailboss.execution.ledger import Ledger
from trailboss.execution.markets import MARKETS
from trailboss.execution.session import BlockSession
from trailboss.mechanisms.base import Follower
from trailboss.model.configs import MarketKind
from trailboss.primitives.units import Height
from trailboss.state.overlay import Overlay

SIZES: Final = (10_000, 1_000_000)
FIRES: Final = 8
RATIO: Final = 3
IDLE_RATIO: Final = 1.2
ACTORS: Final = 1_000
DUE: Final = 40
FAIRNESS_FIRES: Final = 200
"""As many as the lane of the preset mainnet lets fire."""
FAIRNESS_SECONDS: Final = 10e-6
WINDOW: Final = 1_000
USED: Final = FIRE_CYCLES // 2
"""What a fire of these worlds uses."""
LANE: Final = {
    "timers.max_timers_per_actor": 10_000_000,
    "timers.lane_cycles_per_block": (FIRES - 1) * USED + FIRE_CYCLES,
    "timers.max_cycles_per_fire": FIRE_CYCLES,
    "lane.max_cycles_per_fire": FIRE_CYCLES,
    "lane.joined_max": max(SIZES),
    "lane.activation_height": DUE - 10,
    "lane.basefee_min": 1,
}


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report(f"The timer lane in whole blocks: {FIRES} fires", "one block; one fire")
    cases = [
        Case(
            name=f"{FIRES} fires, {size:,} due",
            sample=partial(_block, _crowd(size)),
            beside="" if size == SIZES[0] else f"{FIRES} fires, {SIZES[0]:,} due",
            ratio_max=None if size == SIZES[0] else RATIO,
        )
        for size in SIZES
    ]
    measure(report, cases, rounds)
    idle = [
        Case(name="idle, under FIFO", sample=partial(_idle, World(senders=1, actors=1, overrides={}))),
        Case(
            name="idle, in the lane",
            sample=partial(_idle, World(senders=1, actors=1, overrides={"lane.activation_height": 1})),
            beside="idle, under FIFO",
            ratio_max=IDLE_RATIO,
        ),
    ]
    measure(report, idle, rounds)
    world = World(senders=1, actors=FAIRNESS_FIRES, overrides={"lane.activation_height": 1})
    fairness = [
        Case(name="fairness, one fire counted", sample=partial(_count, world), seconds_max=FAIRNESS_SECONDS),
        Case(name="fairness, one fire leaves the window", sample=partial(_leave, world), seconds_max=FAIRNESS_SECONDS),
    ]
    measure(report, fairness, rounds)
    report.notes += [
        f"{FIRES} fires: no program runs; the rest of the block, receipts, state root and record included.",
        f"fairness: {FAIRNESS_FIRES} fires of as many actors in one block; the account's write is part of it.",
    ]
    return report


def _crowd(size: int) -> World:
    """Return a world in which so many timers have joined the lane, and all but a few still wait."""
    world = World(senders=1, actors=ACTORS, overrides=LANE)
    world.plant(repeat(DUE, size))
    for _ in world.chain.advance_to(DUE):
        pass
    return world


def _block(world: World) -> float:
    return timed(lambda: check_applied(world.chain.build(), FIRES))


def _idle(world: World) -> float:
    blocks = 10_000
    chain = world.chain
    if chain.height == 0:
        for _ in chain.advance_to(100):
            pass

    def advance() -> None:
        for _ in chain.advance_to(chain.height + blocks):
            pass

    return timed(advance) / blocks


def _session(world: World, overlay: Overlay, height: int) -> BlockSession:
    context = world.chain.next_context()
    context = replace(context, height=Height(height))
    return BlockSession(
        context, overlay, Ledger(overlay), world.chain.queue, world.chain.engine, Follower(), MARKETS[MarketKind.LANE]
    )


def _count(world: World) -> float:
    session, fires = _session(world, Overlay(world.chain.store), 1), dict.fromkeys(map(bytes, world.actors), 1)
    return timed(lambda: count_fires(session, fires)) / FAIRNESS_FIRES


def _leave(world: World) -> float:
    overlay = Overlay(world.chain.store)
    session = _session(world, overlay, 1)
    count_fires(session, dict.fromkeys(map(bytes, world.actors), 1))
    later = _session(world, overlay, 1 + WINDOW)
    return timed(lambda: leave_window(later)) / FAIRNESS_FIRES
