"""Queues of equal timers: the mean backlog, and what no order changes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from math import inf, sqrt
from statistics import fmean, pvariance, stdev
from typing import Final

import numpy as np
from msgspec import Struct

from trailboss.simulator.agents.arrivals import Poisson
from trailboss.simulator.alone import Alone
from trailboss.simulator.metrics import statistics
from trailboss.simulator.orders import Fire
from trailboss.simulator.scenario import Scenario
from trailboss.simulator.streams import stream
from trailboss.simulator.validation.laws import Law, Reproduction, equal
from trailboss.simulator.validation.scripts import GAS, Script, capacity, run, timer

MECHANISMS: Final = ("fifo", "lane", "auction", "globalbox")
SERVED: Final = 10  # timers that a block serves, K
LOADS: Final = {0.75: 10_000, 0.9: 16_000, 0.95: 36_000}  # load to the blocks of its run
WARM_UP: Final = 500
BATCHES: Final = 20
STUDENT: Final = 2.861  # 99.5 % quantile of Student's t with one degree of freedom less than there are batches
ROUNDS: Final = 2_000  # of the fixed points, each of which brings them nearer by the load
STATES: Final = 600  # backlogs of the truncated chain

# Bulk service


def mean_backlog(load: float, served: int) -> float:
    """Return the exact mean backlog after a block that serves K timers at most, with Poisson arrivals of load·K.

    Its generating function has the denominator z^K - exp(λ(z - 1)), whose roots within the unit disc are fixed points
    of z = ω·exp(ρ(z - 1)), ω a K-th root of unity.
    """
    turns = np.exp(2j * np.pi * np.arange(1, served) / served)
    roots = turns * 0
    for _ in range(ROUNDS):
        roots = turns * np.exp(load * (roots - 1))
    rate = load * served
    return float(np.sum(1 / (1 - roots)).real) + (rate**2 - served * (served - 1)) / (2 * (served - rate))


def mean_of_the_chain(load: float, served: int) -> float:
    """Return the same from the stationary distribution of the chain of backlogs, cut off below `STATES`."""
    chances = np.zeros(STATES + served)
    chances[0] = np.exp(-load * served)
    for count in range(1, len(chances)):
        chances[count] = chances[count - 1] * load * served / count
    moves = np.zeros((STATES, STATES))
    for backlog in range(STATES):
        # Of a backlog and its arrivals, `served` leave; what the cut takes from a row falls back to its end.
        row = np.zeros(STATES + served)
        row[backlog:] = chances[: STATES + served - backlog]
        moves[backlog] = row[served:]
        moves[backlog, 0] += row[:served].sum()
        moves[backlog, -1] += 1 - moves[backlog].sum()
    balance = moves.T - np.eye(STATES)
    balance[-1] = 1  # the chances are one together
    stationary = np.linalg.solve(balance, np.eye(STATES)[-1])
    return float(stationary @ np.arange(STATES))


def bulk_service() -> Law:
    """Return the mean backlog at three loads."""
    return Law(
        name="A queue with bulk service",
        source='Bailey, "On Queueing Processes with Bulk Service", Journal of the Royal Statistical Society B 16, 1954',
        known=BULK_SERVICE,
        readings=tuple(reading for load in LOADS for reading in _bulk_readings(load)),
    )


def _bulk_readings(load: float) -> Iterator[Reproduction]:
    expected = mean_backlog(load, SERVED)
    yield equal(f"load {load}: mean backlog by the truncated chain", expected, mean_of_the_chain(load, SERVED), 10**-6)
    arrivals = Poisson(name="arrivals", rate=load * SERVED, actors=100, cycles=GAS)
    scenario = Scenario(
        name="bulk service",
        blocks=LOADS[load],
        agents=(arrivals,),
        mechanism="fifo",
        params=capacity("fifo", SERVED) | {"timers.max_timers_per_actor": 10**6},
    )
    alone = Alone(scenario.ground())
    waiting = [alone.build().waiting for _ in range(WARM_UP + scenario.blocks)][WARM_UP:]
    mean, half_width = batch_means(waiting)
    yield equal(f"load {load}: simulated, {scenario.blocks:,} blocks, with 99 % interval", expected, mean, half_width)


def batch_means(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of a series and half the width of its 99 % confidence interval, by the means of `BATCHES`."""
    size = len(values) // BATCHES
    means = [fmean(values[at : at + size]) for at in range(0, size * BATCHES, size)]
    return fmean(means), STUDENT * stdev(means) / sqrt(BATCHES)


BULK_SERVICE: Final = """
Timers arrive by Poisson's law, λ a block, each due in the next block; a block serves K. The backlog after a block is
Q' = max(Q + A − K, 0). Its generating function is (K − λ)(z − 1)·∏(z − zₖ)/(1 − zₖ) / (z^K − exp(λ(z − 1))), with the
K − 1 roots zₖ of the denominator within the unit disc, so the mean is
Σ 1/(1 − zₖ) + (λ² − K(K − 1)) / (2(K − λ)); with K = 1 it is that of M/D/1, ρ²/(2(1 − ρ)).
"""

# Four orders of the same arrivals

BLOCKS: Final = 600  # with arrivals; the run goes on until nothing waits
RATE: Final = 9.5
DRAIN: Final = 200
ACTORS: Final = 10
DEAR, CHEAP = 1_000, 1  # tips: the first half of the actors pays the higher one


class Flow(Struct, frozen=True):
    """A run of the same arrivals under one mechanism."""

    backlog: list[int]  # after each block
    fires: list[Fire]

    def delays(self, *, is_dear: bool | None = None) -> list[int]:
        """Return the blocks by which fires were late; of those with the higher tip, or the lower one, if asked."""
        return [fire.late for fire in self.fires if is_dear is None or (fire.plan.order.tag == DEAR) is is_dear]


def arrivals() -> list[list[int]]:
    """Return the actors whose timers arrive in each block, which are due in the next one."""
    draws = stream(1, "four orders")
    return [draws.integers(1, ACTORS + 1, count).tolist() for count in draws.poisson(RATE, BLOCKS)]


@cache
def flow(mechanism: str, quota: int = SERVED) -> Flow:
    """Return the run under one mechanism; under Globalbox with a quota of fires for each target."""
    script = {
        height: [timer(mechanism, actor, height + 1, DEAR if actor <= ACTORS // 2 else CHEAP) for actor in actors]
        for height, actors in enumerate(arrivals(), 1)
    }
    overrides = capacity(mechanism, SERVED) | {"globalbox.max_fires_per_target": quota}
    results = run(mechanism, overrides, Script(range(1, ACTORS + 1), script), BLOCKS + DRAIN)
    return Flow([result.waiting for result in results], [fire for result in results for fire in result.fires])


def recursion(counts: Sequence[int]) -> list[int]:
    """Return the backlog after each block of max(Q + A - K, 0), for arrivals of the block before."""
    before = [0, *counts, *[0] * (DRAIN - 1)]
    return list(accumulate(before, lambda backlog, arrived: max(backlog + arrived - SERVED, 0)))


def little() -> Law:
    """Return the law of Little for all mechanisms."""
    return Law(
        name="Little's law",
        source='Little, "A Proof for the Queuing Formula L = λW", Operations Research 9, 1961',
        known=LITTLE,
        readings=tuple(reading for mechanism in MECHANISMS for reading in _little_readings(mechanism)),
    )


def _little_readings(mechanism: str) -> Iterator[Reproduction]:
    found = flow(mechanism)
    fired = sum(map(len, arrivals()))
    yield equal(f"{mechanism}: fires", fired, len(found.fires))
    yield equal(
        f"{mechanism}: sum of the backlogs, against that of the delays", sum(found.delays()), sum(found.backlog)
    )
    first, last = BLOCKS // 4, 3 * BLOCKS // 4
    size = (last - first) // BATCHES
    by_due = Counter[int]()
    for fire in found.fires:
        by_due[fire.due] += fire.late
    # The backlog after the block of height h stands at h - 1 of the list.
    parted = [found.backlog[height - 1] - by_due[height] for height in range(first, first + size * BATCHES)]
    mean, half_width = batch_means(parted)
    yield equal(f"{mechanism}: mean backlog less λW within the run, with 99 % interval", 0, mean, half_width)


LITTLE: Final = """
Mean backlog = arrival rate × mean delay. Counted in blocks: a timer that is due at height d and fires at f is *late* by
f − d, and is part of the backlog *after* each of the blocks d to f − 1, which are f − d. So over a run that begins and
ends empty the sum of the backlogs is the sum of the delays, to the unit, whatever the order. (Counted *before* the
fires of each block, the delay that belongs to it is f − d + 1.) Within a run the two differ by what waits at its ends.
"""


def conservation() -> Law:
    """Return the law of Kleinrock for all mechanisms."""
    fifo = flow(MECHANISMS[0])
    readings = [equal("fifo: blocks whose backlog is not max(Q + A − K, 0)", 0, _parted(fifo.backlog, _all_arrivals()))]
    for mechanism in MECHANISMS[1:]:
        found = flow(mechanism)
        differing = sum(one != other for one, other in zip(found.backlog, fifo.backlog, strict=True))
        moved = sum(
            one.plan.order.tag != other.plan.order.tag for one, other in zip(found.fires, fifo.fires, strict=True)
        )
        readings += [
            equal(f"{mechanism}: blocks whose backlog is not that of fifo", 0, differing),
            equal(f"{mechanism}: ΣρW over the classes, beside that of fifo", _weighted(fifo), _weighted(found), 10**-9),
            Reproduction(f"{mechanism}: fires in whose place fifo serves the other class", 1, len(fifo.fires), moved),
            Reproduction(
                f"{mechanism}: variance of the delay, beside that of fifo",
                pvariance(fifo.delays()),
                inf,
                pvariance(found.delays()),
            ),
        ]
    dear = [sum(actor <= ACTORS // 2 for actor in actors) for actors in arrivals()]
    for mechanism in ("lane", "globalbox"):
        parted = _parted(_backlog_of_the_dear(flow(mechanism)), dear)
        readings.append(equal(f"{mechanism}: blocks in which the dear class is not a queue of its own", 0, parted))
    idling = flow("globalbox", 1).backlog
    differing = sum(one != other for one, other in zip(idling, fifo.backlog, strict=True))
    name = "globalbox with a quota of one fire a target: blocks whose backlog is not that of fifo"
    readings.append(Reproduction(name, 1, len(idling), differing))
    return Law(
        name="Kleinrock's conservation law",
        source='Kleinrock, "A Conservation Law for a Wide Class of Queueing Disciplines", Naval Research Logistics '
        'Quarterly 12, 1965; for the variance Kingman, "The Effect of Queue Discipline on Waiting Time Variance", 1962',
        known=CONSERVATION,
        readings=tuple(readings),
    )


def _all_arrivals() -> list[int]:
    return [len(actors) for actors in arrivals()]


def _parted(backlog: Sequence[int], counts: Sequence[int]) -> int:
    return sum(one != other for one, other in zip(backlog, recursion(counts), strict=True))


def _weighted(found: Flow) -> float:
    """Return ΣρW: of each class its load times its mean delay, in blocks."""
    classes = [found.delays(is_dear=is_dear) for is_dear in (True, False)]
    return sum(len(delays) / BLOCKS / SERVED * fmean(delays) for delays in classes)


def _backlog_of_the_dear(found: Flow) -> list[int]:
    backlog = [0] * (BLOCKS + DRAIN)
    for fire in found.fires:
        if fire.plan.order.tag == DEAR:
            for height in range(fire.due, fire.height):
                backlog[height - 1] += 1
    return backlog


CONSERVATION: Final = f"""
An order that never idles while timers wait, and does not look at how long each takes, changes who waits but not how
many: with equal gas the backlog is the same block by block, and Σρₖ·Wₖ over the classes, load times mean delay, is the
same for every order. The variance of the delay is least under first come, first served. And a class that goes before
all others sees a queue of its own, as if the others were not there. Here {ACTORS} actors send timers at a load of
{RATE / SERVED}, half of them with a high tip and half with a low one; Globalbox has room for as many materialized fires
as a block serves. With a quota of one fire a target it idles while timers wait, and the law does not hold.
"""

# Jain's index

RANDOM_SERVICES: Final = 1_000


def jain() -> Law:
    """Return Jain's index of k actors served out of n."""
    readings = [
        equal(f"{mechanism}: {served} of {ACTORS} served", served / ACTORS, index_of(mechanism, served))
        for mechanism in MECHANISMS
        for served in (1, 5, ACTORS)
    ]
    services = stream(1, "services").integers(0, ACTORS, (RANDOM_SERVICES, ACTORS)).tolist()
    indices = [statistics.jain(counts) for counts in services if any(counts)]
    readings += [
        Reproduction(f"least of {RANDOM_SERVICES:,} random services", 1 / ACTORS, 1, min(indices)),
        Reproduction(f"greatest of {RANDOM_SERVICES:,} random services", 1 / ACTORS, 1, max(indices)),
    ]
    return Law(
        name="Jain's index",
        source='Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination for Resource Allocation in '
        'Shared Computer Systems", DEC-TR-301, 1984',
        known="With n actors the index lies between 1/n and 1, and is k/n if k of them are served alike and the others "
        "are not at all.",
        readings=tuple(readings),
    )


def index_of(mechanism: str, served: int) -> float:
    """Return the index of one block's fires, which serves so many of `ACTORS` timers."""
    script = {1: [timer(mechanism, actor, 2, CHEAP) for actor in range(1, ACTORS + 1)]}
    _, block = run(mechanism, capacity(mechanism, served), Script(range(1, ACTORS + 1), script), 2)
    fires = Counter(fire.plan.order.actor for fire in block.fires)
    return statistics.jain([fires[actor] for actor in range(1, ACTORS + 1)])
