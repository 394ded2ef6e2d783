"""Ten thousand timers in one height: what scheduling them, reading them ahead and firing them costs a block."""

import gc
from itertools import repeat
from time import perf_counter
from typing import Final

from benchmarks.measure import Case, Report, Row, calibrate, percentile, timed
from benchmarks.world import FIRE_CYCLES, World, check_applied
from trailboss.timer_queue.queue import READ_AHEAD_MAX

CROWD = 10_000
ACTORS = 100
EACH = 10
AT_ONCE = ACTORS * EACH
AHEAD = 9_000
"""Blocks to the due height: it lies beyond the ring, so that the crowd is read from the state."""
WATCHED = 4_200
"""Blocks before the due height that are timed one by one; the ring reaches the height within them."""
ROUNDS_MAX = 5
"""Every round makes its chains anew, which takes seconds."""
NARROW: Final = {"timers.max_timers_per_actor": 10_000_000}
"""The lane of the preset mainnet."""
WIDE: Final = NARROW | {"timers.lane_cycles_per_block": CROWD * FIRE_CYCLES}
"""A lane for all of them in one block."""
SCHEDULE, BEFORE, WORST = f"schedule {AT_ONCE:,}", "before", "before, the dearest"
ALL, FIRST, NEXT = "due, all fire", "due, 100 fire, the others begin to wait", "the next, 100 fire, the others wait"


def run(rounds: int, large: bool) -> Report:
    """Measure; there is no larger size."""
    del large
    report = Report(f"{CROWD:,} timers in one height", "one block")
    seconds: dict[str, list[float]] = {name: [] for name in (SCHEDULE, BEFORE, WORST, ALL, FIRST, NEXT)}
    for _ in range(min(rounds, ROUNDS_MAX)):
        report.calibration.append(calibrate())
        _all_at_once(seconds)
        _through_the_lane(seconds)
    for name, times in seconds.items():
        beside = "" if name == BEFORE else BEFORE
        pairs = zip(times, seconds[BEFORE], strict=True) if beside else ()
        report.rows.append(
            Row(Case(name=name, sample=float, beside=beside), times, [own / idle for own, idle in pairs])
        )
    report.notes += [
        f"before: {WATCHED:,} blocks up to the due one; each reads at most {READ_AHEAD_MAX:,} timers, none is due.",
        "100 fire: the lane of mainnet. Timers without room in it say so once; every block looks at them again.",
    ]
    return report


def _all_at_once(seconds: dict[str, list[float]]) -> None:
    world, scheduling = _crowd(WIDE)
    seconds[SCHEDULE].append(percentile(scheduling, 50))
    watched = [timed(world.chain.build) for _ in range(WATCHED)]
    seconds[BEFORE].append(percentile(watched, 50))
    seconds[WORST].append(max(watched))
    seconds[ALL].append(timed(lambda: check_applied(world.chain.build(), CROWD)))


def _through_the_lane(seconds: dict[str, list[float]]) -> None:
    world, _ = _crowd(NARROW)
    chain = world.chain
    for _ in chain.advance_to(chain.height + WATCHED):
        pass
    fires = chain.params.timers.lane_cycles_per_block // FIRE_CYCLES
    for name in (FIRST, NEXT):
        seconds[name].append(timed(lambda: check_applied(chain.build(), fires)))


def _crowd(overrides: dict[str, int]) -> tuple[World, list[float]]:
    """Return a world with the crowd ``WATCHED`` + 1 blocks ahead, and the seconds of the blocks that scheduled it."""
    world = World(senders=1, actors=ACTORS, overrides=overrides)
    world.plant([])
    chain = world.chain
    due = chain.height + AHEAD
    scheduling = []
    for _ in range(CROWD // AT_ONCE):
        call = world.schedule(repeat(due), EACH)
        start = perf_counter()
        check_applied(chain.build([call]), 1)
        scheduling.append(perf_counter() - start)
    for _ in chain.advance_to(due - WATCHED - 1):
        pass
    gc.collect()
    return world, scheduling
