"""What one timer costs the chain, beyond the program that schedules it and the one that it runs."""

from collections.abc import Callable, Iterator
from itertools import count, repeat

from cowboy_sdk import mock_host
from cowboy_sdk.testing import SimulatedChain

from benchmarks.measure import Case, Report, measure, timed
from benchmarks.world import TIMER_PAYLOAD, World
from trailboss.execution.block import Applied

SIZES = (10_000, 100_000)
ACTORS = 100
EACH = 10
TIMERS = ACTORS * EACH
"""Timers of a measured block: each actor schedules as many, and as many are due."""
FAR = 1_000_000
SPREAD = 100_000
"""Blocks over which the pending timers lie, and those scheduled over the whole horizon."""
STRIDE = 7_919
"""A prime: steps of it visit the horizon evenly, in no order that would help."""


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report(f"Timers: {ACTORS} actors, {EACH} timers each, in one block", "one timer, without the program")
    cases: list[Case] = []
    worlds = {size: _world(size) for size in SIZES}
    for size, world in worlds.items():
        budgeted = size == SIZES[-1]
        near = _schedule(world, repeat(world.chain.height + 2))
        far = _schedule(world, (FAR + step * STRIDE % SPREAD for step in count()))
        suffix = f"{size:,} pending"
        cases += [
            Case(name=f"schedule, one height, {suffix}", sample=near, seconds_max=40e-6 if budgeted else None),
            Case(name=f"schedule, 100,000 heights, {suffix}", sample=far, seconds_max=40e-6 if budgeted else None),
            Case(name=f"fire, {suffix}", sample=_fire(world), seconds_max=30e-6 if budgeted else None),
        ]
    fire = cases[-1].name
    cases += [
        Case(name=f"SimulatedChain, fire, {TIMERS:,} pending", sample=_peer(0), beside=fire),
        Case(name=f"SimulatedChain, fire, {SIZES[0]:,} pending", sample=_peer(SIZES[0]), beside=fire),
    ]
    measure(report, cases, rounds)
    for world in worlds.values():
        # What has been measured was a right chain: money, timers, queue and trees still agree.
        world.chain.check_invariants()
    report.notes += [
        "schedule: a block in which 100 actors schedule 10 timers each, less one in which they schedule none;",
        "id, record, account, queue, event, receipt and state root included.",
        "fire: a block with 1,000 due timers, less an idle one; pre-charge, frame, settlement and the rest included.",
        "SimulatedChain: no fees, no events, no root, no revert.",
    ]
    return report


def _world(size: int) -> World:
    world = World(senders=1, actors=ACTORS)
    world.plant(FAR + index * STRIDE % SPREAD for index in range(size))
    return world


def _schedule(world: World, heights: Iterator[int]) -> Callable[[], float]:
    chain = world.chain

    def block(each: int) -> float:
        before = chain.snapshot()
        call = world.schedule(heights, each)
        seconds = timed(lambda: _all_applied(chain.build([call]), 1))
        chain.revert(before)
        return seconds

    return lambda: (block(EACH) - block(0)) / TIMERS


def _fire(world: World) -> Callable[[], float]:
    chain = world.chain

    def sample() -> float:
        before = chain.snapshot()
        idle = timed(chain.build)
        chain.revert(before)
        chain.build([world.schedule(repeat(chain.height + 2), EACH)])
        seconds = timed(lambda: _all_applied(chain.build(), TIMERS))
        chain.revert(before)
        return (seconds - idle) / TIMERS

    return sample


def _all_applied(applied: Applied, receipts: int) -> None:
    """Refuse to time a block that did not do its work."""
    ran = [receipt.status.value for receipt in applied.block.receipts]
    if ran != ["ok"] * receipts:
        raise AssertionError(f"{receipts} executions were to succeed, {ran.count('ok')} of {len(ran)} did")


class _Still:
    """An actor of the public SDK's test chain that does nothing when its timer fires."""

    def handle_timer(self, payload: bytes) -> None:
        """Return at once."""


def _peer(pending: int) -> Callable[[], float]:
    def sample() -> float:
        chain = SimulatedChain(_Still())
        for index in range(pending):
            mock_host.schedule_timer(FAR + index, TIMER_PAYLOAD)
        for _ in range(TIMERS):
            mock_host.schedule_timer(chain.block_height + 1, TIMER_PAYLOAD)
        return timed(chain.advance_block, TIMERS)

    return sample
