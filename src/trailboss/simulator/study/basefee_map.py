"""A market's basefee as a map: the chain's own rule over demand without chance, and what becomes of it.

Demand answers to the whole price of a cycle, the market's basefee and another one below it, with a constant elasticity:
to that of the same block, or to one some blocks before, because owners decide when they schedule.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

from trailboss.fees import BasefeeRule, Course, next_basefee
from trailboss.params import LaneParams
from trailboss.primitives.units import Price

REST: Final = 10**18  # basefee at which demand is the target; large, so that whole units do not matter
TARGET: Final = 10**9  # cycles
NEAR: Final = 10**9  # parts of a basefee by which a neighbour is away
NUDGE: Final = 1_000  # parts of a basefee by which a start is away from rest
CLOSE: Final = 0.1  # of the basefee at rest, within which it has settled
STEPS: Final = 20  # of a bisection
ORBIT: Final = 3_000  # blocks after which a nudge has died out or not
ELASTICITY_MAX: Final = 64.0


class BasefeeMap(Struct, frozen=True, kw_only=True):
    """A rule and the demand that it meets."""

    rule: BasefeeRule
    elasticity: float  # of demand by the whole price
    most: float  # the most that a block uses, in parts of the target
    below: float = 0.0  # the other basefee, in parts of the market's at rest
    lag: int = 0  # blocks before, to whose price demand answers

    def used(self, basefee: int) -> int:
        """Return the cycles of a block whose demand answers to a basefee."""
        price = (basefee / REST + self.below) / (1 + self.below)
        # Below the price at which blocks are full, the exact demand does not matter, and could be beyond a float.
        if price <= 0 or -self.elasticity * math.log(price) >= math.log(self.most):
            return int(TARGET * self.most)
        return int(TARGET * price**-self.elasticity)

    def step(self, state: Sequence[int]) -> tuple[int, ...]:
        """Return the basefees of the next block and of ``lag`` before it, the latest first."""
        return (next_basefee(Price(state[0]), self.used(state[-1]), self.rule), *state[:-1])

    def orbit(self, first: int) -> Iterator[int]:
        """Yield the basefees of blocks without end; those before the first block were the same."""
        state: tuple[int, ...] = (first,) * (self.lag + 1)
        while True:
            yield state[0]
            state = self.step(state)

    def tail(self, first: int, blocks: int, kept: int) -> list[float]:
        """Return the last ``kept`` of so many blocks, in parts of the basefee at rest."""
        orbit = self.orbit(first)
        found = [next(orbit) for _ in range(blocks)]
        return [basefee / REST for basefee in found[-kept:]]

    def settling(self, first: int, blocks: int) -> int:
        """Return the blocks until the basefee stays near rest; all of them if it never does."""
        orbit = self.orbit(first)
        away = [at for at in range(blocks) if abs(next(orbit) / REST - 1) > CLOSE]
        return away[-1] + 1 if away else 0

    def exponent(self, first: int, blocks: int) -> float:
        """Return the largest Lyapunov exponent, a block: how fast neighbours part. Source: Benettin et al. 1980."""
        state: tuple[int, ...] = (first,) * (self.lag + 1)
        beside = tuple(basefee + basefee // NEAR for basefee in state)
        total = 0.0
        for _ in range(blocks):
            state, beside = self.step(state), self.step(beside)
            distance = max(abs(one - two) / one for one, two in zip(beside, state, strict=True)) * NEAR
            total += math.log(max(distance, 1 / NEAR))
            if distance:
                pairs = zip(state, beside, strict=True)
                beside = tuple(one + round((two - one) / distance) for one, two in pairs)
            else:
                beside = tuple(one + one // NEAR for one in state)
        return total / blocks


def rule_of(lane: LaneParams) -> BasefeeRule:
    """Return the rule of the lane with these parameters, over the map's own target and without bounds that bind."""
    return BasefeeRule(
        target=TARGET,
        alpha=lane.alpha,
        max_change_denominator=lane.max_change_denominator,
        minimum=1,
        maximum=REST**2,
        least_rise=1,
        course=Course(lane.basefee_rule),
    )


@cache
def stable_below(rule: BasefeeRule, most: float, lag: int) -> float:
    """Return the elasticity, by the market's basefee, up to which a nudge dies out; at most `ELASTICITY_MAX`."""
    low, high = 0.0, ELASTICITY_MAX
    for _ in range(STEPS):
        middle = (low + high) / 2
        found = BasefeeMap(rule=rule, elasticity=middle, most=most, lag=lag)
        ends = found.tail(REST + REST // NUDGE, ORBIT, ORBIT // 10)
        is_stable = max(abs(value - 1) for value in ends) < 1 / NUDGE
        low, high = (middle, high) if is_stable else (low, middle)
    return low


def linear_threshold(gain: float, lag: int) -> float:
    """Return the elasticity below which the linear map is stable: x' = x − gain · e · x(lag). Source: Levin & May 1976.

    >>> linear_threshold(1, 0), round(linear_threshold(1 / 8, 1), 9)
    (2.0, 8.0)
    """
    return 2 * math.sin(math.pi / (2 * (2 * lag + 1))) / gain
