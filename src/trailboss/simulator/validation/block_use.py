"""What blocks use in the long run, whatever the users do."""

from collections.abc import Callable
from math import exp, log
from typing import Final

from trailboss.fees import BasefeeRule, next_basefee
from trailboss.primitives.units import Price
from trailboss.simulator.streams import stream
from trailboss.simulator.validation.fee_market import (
    AS_WRITTEN,
    CHAOTIC,
    EIP_1559,
    ELASTICITY,
    TARGET,
    Demand,
    demand_of,
    population_run,
    rule_of,
)
from trailboss.simulator.validation.laws import Law, Reproduction, equal

BLOCKS: Final = 20_000
FIRST: Final = 10**18  # basefee of the first block, base units a cycle
EDGE: Final = FIRST + 1  # value of all users, where they have the same
Step = Callable[[int, int], int]  # basefee and use of a block to the next basefee


def chord(low: tuple[float, float], high: tuple[float, float], drift: float) -> float:
    """Return the use at which the line through two points, each log of a step and use, has a log of ``drift``."""
    return low[1] + (drift - low[0]) * (high[1] - low[1]) / (high[0] - low[0])


def proportional_bounds(divisor: int, drift: float) -> tuple[float, float]:
    """Return least and most mean use, in targets, under a rule in proportion; ``drift`` is the mean of log(b'/b)."""
    step = 1 / divisor
    empty, full = (log(1 - step), 0.0), (log(1 + step * (ELASTICITY - 1)), float(ELASTICITY))
    return 1 + drift / step, chord(empty, full, drift)


def written_bounds(drift: float) -> tuple[float, float]:
    """Return the same under the lane's rule as written, which moves by the distance and by one eighth at most."""
    step = 1 / AS_WRITTEN.max_change_denominator
    low, high = log(1 - step), log(1 + step)
    return chord((low, 0.0), (high, 1 + step), drift), chord((low, 1 - step), (high, float(ELASTICITY)), drift)


def long_run(step: Step, demand: Demand) -> tuple[float, float]:
    """Return mean use in targets and mean of log(b'/b) of a run."""
    basefee, total = FIRST, 0
    for _ in range(BLOCKS):
        used = demand(basefee)
        total += used
        basefee = step(basefee, used)
    return total / TARGET / BLOCKS, log(basefee / FIRST) / BLOCKS


def chain_step(rule: BasefeeRule) -> Step:
    """Return the step of the chain's rule."""
    return lambda basefee, used: next_basefee(Price(basefee), used, rule)


def exponential_step(basefee: int, used: int) -> int:
    """Return the next basefee of the rule b' = b·exp(d(g − 1)), d = 1/8."""
    return round(basefee * exp((used - TARGET) / TARGET / EIP_1559.alpha))


def restless(seed: int) -> Demand:
    """Return a demand of users who have another common value, and ask for another part of the block, each time."""
    draws = stream(seed, "restless demand")
    values = (FIRST * draws.lognormal(0.0, 0.5, BLOCKS)).tolist()
    parts = draws.integers(0, ELASTICITY * TARGET + 1, BLOCKS).tolist()
    return lambda basefee: parts.pop() if values.pop() >= basefee else 0


def edge(above: int) -> Demand:
    """Return a demand that fills the block up to a price, and uses so much above it."""
    return lambda basefee: ELASTICITY * TARGET if basefee < EDGE else above


def block_use() -> Law:
    """Return the bounds of the mean use, and what comes near them."""
    return Law(
        name="What blocks use in the long run",
        source='Leonardos, Reijsbergen, Monnot and Piliouras, "Optimality Despite Chaos in Fee Markets", Financial '
        "Cryptography 2023",
        known=BLOCK_USE,
        readings=(
            *(_proportional(divisor) for divisor in (2, 8)),
            _restless("EIP-1559's rule", chain_step(EIP_1559), lambda drift: proportional_bounds(8, drift)),
            _in_the_lane(),
            equal(
                "EIP-1559's rule, users who have one value: the upper bound itself",
                proportional_bounds(8, 0.0)[1],
                long_run(chain_step(EIP_1559), edge(0))[0],
                0.001,
            ),
            equal("the exponential rule, the same users", 1, long_run(exponential_step, edge(0))[0], 0.001),
            _exponential(),
            _restless("the lane's rule as written", chain_step(AS_WRITTEN), written_bounds),
            equal(
                "the lane's rule as written, a block that is full up to a price and uses 7/8 above it: its upper bound",
                written_bounds(0.0)[1],
                long_run(chain_step(AS_WRITTEN), edge(TARGET - TARGET // 8))[0],
                0.001,
            ),
        ),
    )


def _proportional(divisor: int) -> Reproduction:
    demand = demand_of(CHAOTIC * divisor)
    found, drift = long_run(chain_step(rule_of(divisor)), demand)
    return Reproduction(
        f"d = 1/{divisor}, a chaotic path, d·s = 4", *proportional_bounds(divisor, drift), found, ROUNDING
    )


def _restless(name: str, step: Step, bounds: Callable[[float], tuple[float, float]]) -> Reproduction:
    found, drift = long_run(step, restless(1))
    return Reproduction(f"{name}, users who are others in every block", *bounds(drift), found, ROUNDING)


def _in_the_lane() -> Reproduction:
    results, _ = population_run(EIP_1559.alpha, CHAOTIC * EIP_1559.alpha)
    lane_target = results[0].view.lane_cycles_max / ELASTICITY
    prices = [result.view.lane_basefee for result in results]
    used = [result.timer_cycles / lane_target for result in results[:-1]]
    drift = log(prices[-1] / prices[0]) / len(used)
    name = f"the lane with a population, d·s = 4, {len(used)} blocks from the floor on"
    return Reproduction(name, *proportional_bounds(8, drift), sum(used) / len(used), ROUNDING)


def _exponential() -> Reproduction:
    found, drift = long_run(exponential_step, restless(1))
    expected = 1 + drift * EIP_1559.alpha
    return equal("the exponential rule, users who are others in every block", expected, found, ROUNDING)


ROUNDING: Final = 10**-6  # in targets: prices are integers
EXCESS: Final = proportional_bounds(EIP_1559.alpha, 0.0)[1] - 1
WRITTEN: Final = written_bounds(0.0)
BLOCK_USE: Final = f"""
Let r be the mean of log(b'/b) over a run, which goes to 0 as long as prices stay within bounds, and x = g − 1 the use
of a block, in targets beyond the target, between −1 and 1. Under a rule in proportion r is the mean of log(1 + d·x).
The logarithm lies below its tangent at 0 and above its chord from −1 to 1, so

1 + r/d ≤ mean use ≤ 2(r − log(1 − d)) / (log(1 + d) − log(1 − d)),

with r = 0 and d = 1/8: between the target and {EXCESS:.2%} more. Under the exponential rule b' = b·exp(d·x) the mean
use is 1 + r/d exactly.

The lane's rule as written moves by log(1 + x), x clipped to ±1/8. The same argument with the corners of that curve
gives it much wider bounds, the chords from (log(7/8), 0) to (log(9/8), 9/8) and from (log(7/8), 7/8) to (log(9/8), 2):
with r = 0 from {WRITTEN[0]:.3f} to {WRITTEN[1]:.3f} targets. A demand that fills a block up to some price and uses 7/8
of the target above it comes to the upper one.
"""
