"""The dynamics of a basefee: where it settles, where it does not, and what blocks use in the long run.

Prices and cycles are integers, so that a chaotic path is the same on every machine; floats are in the measures only.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from math import inf, log
from typing import Final

import numpy as np
from msgspec import Struct

from trailboss.fees import BasefeeRule, next_basefee
from trailboss.primitives.units import Price
from trailboss.simulator.agents.base import Agent
from trailboss.simulator.orders import BlockResult, Order, PlannedTimer, Schedule, View
from trailboss.simulator.scenario import ROOM
from trailboss.simulator.validation.laws import Law, Reproduction, equal
from trailboss.simulator.validation.scripts import ASKING_GAS, GAS, PLENTY, run

TARGET: Final = 10**12  # cycles: coarse enough that rounding does not matter
WIDTH: Final = 10**18  # base units a cycle, of the interval of values
ELASTICITY: Final = 2
USERS: Final = 2  # targets that all users together ask for, λ
EIP_1559: Final = BasefeeRule(TARGET, 8, 8, 1, 10**24, least_rise=1)
AS_WRITTEN: Final = BasefeeRule(TARGET, 1, 8, 1, 10**24, least_rise=1)
DIVISORS: Final = (2, 4, 8, 16)
STABLE, DOUBLED, CHAOTIC = 1.5, 2.1, 4.0  # d·s, which is 2 at the threshold
BLOCKS: Final = 20_000
ATTRACTOR_BLOCKS: Final = 1_000
SETTLING: Final = 2_000  # blocks before those that are looked at
SAME: Final = 10**-6  # of the width: prices nearer than this are one point of an attractor
TRIED: Final = 8_000  # prices to the basefee at rest, at half of which the criterion of Li and Yorke is tried
NEARING, NEARING_SEEN = 400, 20  # blocks before it shows whether a basefee comes nearer, and those that are looked at
SLOPE_MAX, HALVINGS = 100.0, 30  # of the bisection
POPULATION: Final = 100  # timers a block of the population in `Alone`
POPULATION_BLOCKS: Final = 200
UNIT: Final = 10**4  # base units a cycle between the values of two neighbours of the population
SURE: Final = 0.05  # an exponent that is surely positive

Demand = Callable[[int], int]  # basefee to the cycles that a block uses


class UniformDemand(Struct, frozen=True):
    """Users whose values are uniform between ``lowest`` and ``lowest + width``, base units a cycle."""

    lowest: int
    width: int = WIDTH

    def __call__(self, basefee: int) -> int:
        """Return the cycles that a block uses at a basefee: what those with values above it ask for, if it has room."""
        above = min(max(self.lowest + self.width - basefee, 0), self.width)
        return min(USERS * TARGET * above // self.width, ELASTICITY * TARGET)

    @property
    def resting(self) -> int:
        """The basefee at which blocks use the target."""
        return self.lowest + self.width - self.width // USERS

    @property
    def slope(self) -> float:
        """What the use falls by, in targets, when the basefee at rest rises by its own size: s."""
        return USERS * (1 + self.lowest / self.width) - 1

    def derivative(self, basefee: int, step: float) -> float:
        """Return the derivative of the map of the basefee, for a step d."""
        change = 1 + step * (self(basefee) / TARGET - 1)
        inside = self.lowest < basefee < self.lowest + self.width
        return change - (step * USERS * basefee / self.width if inside else 0.0)


def demand_of(slope: float) -> UniformDemand:
    """Return the demand with a slope s, which is at least λ - 1."""
    return UniformDemand(int(((slope + 1) / USERS - 1) * WIDTH))


def rule_of(divisor: int) -> BasefeeRule:
    """Return the chain's rule with a step of d = 1 / divisor, which no clamp touches."""
    return BasefeeRule(TARGET, divisor, divisor, 1, 10**24, least_rise=1)


def path(rule: BasefeeRule, demand: Demand, basefee: int, delay: int = 0) -> Iterator[tuple[int, int]]:
    """Yield basefee and use of block after block; users see the basefee of so many blocks before."""
    seen = [basefee] * delay
    while True:
        seen.append(basefee)
        used = demand(seen.pop(0))
        yield basefee, used
        basefee = next_basefee(Price(basefee), used, rule)


def settles(rule: BasefeeRule, demand: UniformDemand, delay: int) -> bool:
    """Return whether a basefee a millionth of the width away from rest comes nearer to it."""
    away = demand.width // 10**6
    blocks = islice(path(rule, demand, demand.resting + away, delay), NEARING, NEARING + NEARING_SEEN)
    return max(abs(basefee - demand.resting) for basefee, _ in blocks) < away


def critical(rule: BasefeeRule, delay: int = 0) -> float:
    """Return the greatest λ(1 + m/w) at which the basefee settles, by bisection over m."""
    low, high = 0.0, SLOPE_MAX
    for _ in range(HALVINGS):
        slope = (low + high) / 2
        low, high = (slope, high) if settles(rule, demand_of(1 + slope), delay) else (low, slope)
    return 1 + demand_of(1 + low).slope


def exponent(divisor: int, demand: UniformDemand) -> float:
    """Return the Lyapunov exponent of the chain's rule: the mean of log|f'| along its path."""
    blocks = islice(path(rule_of(divisor), demand, demand.lowest), SETTLING, SETTLING + BLOCKS)
    return float(np.mean([log(abs(demand.derivative(basefee, 1 / divisor))) for basefee, _ in blocks]))


def attractor(divisor: int, demand: UniformDemand) -> int:
    """Return how many different prices a path comes to in the long run."""
    blocks = islice(path(rule_of(divisor), demand, demand.lowest), SETTLING, SETTLING + ATTRACTOR_BLOCKS)
    return len({round(basefee / (SAME * demand.width)) for basefee, _ in blocks})


def li_yorke(divisor: int, demand: UniformDemand) -> int:
    """Return at how many of the prices tried g³(a) ≤ a < g(a) < g²(a), or all the other way; g is two blocks."""
    rule, found = rule_of(divisor), 0
    for start in range(demand.resting * 3 // 4, demand.resting * 5 // 4, demand.resting // TRIED):
        a, once, twice, thrice = (basefee for basefee, _ in islice(path(rule, demand, start), 0, 7, 2))
        found += thrice <= a < once < twice or thrice >= a > once > twice
    return found


# The population


class Population(Agent):
    """Users of whom each has a timer in every block, and is asked in that block how much it would pay at most."""

    asked = True

    def __init__(self, lowest: int) -> None:
        """Have values from ``lowest`` on, base units a cycle, `UNIT` apart."""
        super().__init__("population", range(1, 2))
        self.values = [lowest + UNIT * number + UNIT // 2 for number in range(POPULATION)]

    def orders(self, view: View) -> Iterable[Order]:
        """Return a timer of each, for the next block and no other."""
        due = view.height + 1
        for number in range(POPULATION):
            # The question to the agent takes the rest.
            cycles = GAS - ASKING_GAS
            yield Schedule(actor=1, height=due, gas_limit=cycles, cycles=cycles, expires_at=due, tag=number)

    def bid(self, plan: PlannedTimer, view: View) -> tuple[int, int]:
        """Return the user's value as its cap, without a tip."""
        del view
        return self.values[plan.order.tag], 0

    def use(self, basefee: int) -> int:
        """Return the cycles that a block uses at a basefee."""
        return GAS * sum(value >= basefee for value in self.values)


class EarlyPopulation(Population):
    """The same users without agents: each orders a timer for the next block if it would pay the basefee of this one."""

    asked = False

    def orders(self, view: View) -> Iterable[Order]:
        """Return a timer of each whose value is above the basefee in sight, for the next block, at any price."""
        for value in self.values:
            if value >= view.lane_basefee:
                yield Schedule(actor=1, height=view.height + 1, gas_limit=GAS, cycles=GAS, cap=PLENTY, tip=0)


@cache
def population_run(divisor: int, slope: float, delay: int = 0) -> tuple[list[BlockResult], int]:
    """Return a run of the lane with a population, and the blocks whose basefee is not that of the map.

    With a delay of a block the population is an early one.
    """
    lowest = demand_of(slope).lowest * POPULATION * UNIT // WIDTH
    population = EarlyPopulation(lowest) if delay else Population(lowest)
    target = GAS * POPULATION // USERS
    first = population.values[0] // 2
    overrides = {
        **ROOM,
        "lane.activation_height": 1,
        "lane.alpha": divisor,
        "lane.max_change_denominator": divisor,
        "lane.elasticity": ELASTICITY,
        "lane.basefee_min": first,
        "lane.gba_cycles_per_block": 10**12,
        "timers.lane_cycles_per_block": target * ELASTICITY,
    }
    results = run("lane", overrides, population, POPULATION_BLOCKS)
    rule = BasefeeRule(target, divisor, divisor, first, 10**24, least_rise=1)
    # The population orders for the next block, so the first one has no timer, and leaves the basefee at its floor.
    expected = (basefee for basefee, _ in path(rule, population.use, first, delay))
    return results, sum(
        result.view.lane_basefee != basefee for result, basefee in zip(results[1:], expected, strict=False)
    )


def swing(results: list[BlockResult]) -> float:
    """Return the range of the lane basefee over the last quarter of a run, in widths of the values."""
    prices = [result.view.lane_basefee for result in results[-POPULATION_BLOCKS // 4 :]]
    return (max(prices) - min(prices)) / (POPULATION * UNIT)


# The law


def stability() -> Law:
    """Return the threshold of the step, and what the basefee does below and above it."""
    stable, doubled, chaotic = (demand_of(each * EIP_1559.alpha) for each in (STABLE, DOUBLED, CHAOTIC))
    twice = demand_of(DOUBLED * DIVISORS[0])
    thresholds = [
        equal(f"greatest λ(1 + m/w) that settles, d = 1/{divisor}", 1 + 2 * divisor, critical(rule_of(divisor)), 0.01)
        for divisor in DIVISORS
    ]
    late = equal("the same, d = 1/8, when users see the basefee of the block before", 9, critical(EIP_1559, 1), 0.01)
    written = equal("the same for the lane's rule as written", 3, critical(AS_WRITTEN), 0.01)
    return Law(
        name="When a basefee settles",
        source='Leonardos, Monnot, Reijsbergen, Skoulakis and Piliouras, "Dynamical Analysis of the EIP-1559 Ethereum '
        'Fee Market", AFT 2021',
        known=STABILITY,
        readings=(
            *thresholds,
            late,
            written,
            equal(f"Lyapunov exponent at d·s = {STABLE}, d = 1/8", log(STABLE - 1), exponent(8, stable), 0.001),
            equal("prices of the attractor there", 1, attractor(8, stable)),
            equal(f"prices of the attractor at d·s = {DOUBLED}, d = 1/2: the period doubles", 2, attractor(2, twice)),
            Reproduction(f"Lyapunov exponent at d·s = {DOUBLED}, d = 1/8", SURE, inf, exponent(8, doubled)),
            Reproduction(f"Lyapunov exponent at d·s = {CHAOTIC:g}, d = 1/8", SURE, inf, exponent(8, chaotic)),
            Reproduction(
                f"prices of the attractor there, of {ATTRACTOR_BLOCKS:,} blocks", 100, inf, attractor(8, chaotic)
            ),
            Reproduction("prices at which the criterion of Li and Yorke holds there", 1, inf, li_yorke(8, chaotic)),
            equal(f"the same at d·s = {STABLE}", 0, li_yorke(8, stable)),
            *_seen_in_the_lane(),
        ),
    )


def _seen_in_the_lane() -> Iterable[Reproduction]:
    """Yield what the lane itself does with a population of users."""
    settled, swings = (0.0, 1 / POPULATION), (1.0, inf)
    runs = ((STABLE, 0, *settled), (CHAOTIC, 0, *swings), (STABLE / 2, 1, *settled), (STABLE, 1, *swings))
    for product, delay, least, most in runs:
        results, differing = population_run(EIP_1559.alpha, product * EIP_1559.alpha, delay)
        users = "users who order a block before" if delay else "users who are asked in the block"
        where = f"the lane, {POPULATION} {users}, d·s = {product:g}, d = 1/8"
        yield equal(f"{where}: blocks whose basefee is not the map's", 0, differing)
        yield Reproduction(
            f"{where}: range of the basefee at the end, in widths of the values", least, most, swing(results)
        )


STABILITY: Final = """
Users who together ask for λ targets have values that are uniform between m and m + w. At a basefee b a block uses
g(b) = min(λ(1 − F(b)), 2) targets, and the next basefee is f(b) = b(1 + d(g(b) − 1)). At rest b₀ = m + w(1 − 1/λ) and
f'(b₀) = 1 + d·b₀·g'(b₀) = 1 − d·s with s = λ(1 + m/w) − 1. So the basefee settles if d·s < 2, which is
λ(1 + m/w) < 1 + 2/d. Above that the period doubles, and paths become chaotic: their Lyapunov exponent, the mean of
log|f'|, is positive (below, it is log|1 − d·s|), and a price a with g³(a) ≤ a < g(a) < g²(a), g some blocks of the map,
shows the chaos of Li and Yorke (1975).

Two of the thresholds are not in the paper and follow in the same way. Users who see the basefee of the block before
give e' = e − d·s·e₋₁ near rest, whose roots have the size √(d·s): d·s < 1. The lane's rule as written moves the basefee
by the whole distance from the target near rest, d = 1, whatever its clamp.
"""
