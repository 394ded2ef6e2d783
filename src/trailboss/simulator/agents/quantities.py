"""Quantities of a scenario: a number, or a distribution from which whole numbers are drawn, held within a range."""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, repeat
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta, Struct

from trailboss.simulator.agents.base import AMOUNT_MAX, Draws, Natural, Positive

DRAWN_MAX: Final = 2**62  # greatest number that is drawn; a float just below `AMOUNT_MAX` would not fit 64 bits
CHUNK: Final = 256  # numbers that are drawn at once
STEPS: Final = 4_096  # of the integral that is a mean


class Distribution(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What numbers are drawn from."""

    def draws(self, generator: np.random.Generator, count: int) -> Any:
        """Return so many draws, as an array of numbers."""
        raise NotImplementedError

    def survival(self, number: float) -> float:
        """Return the probability that a draw is greater than a number."""
        raise NotImplementedError


class Uniform(Distribution, frozen=True, kw_only=True, tag="uniform"):
    """Every whole number from the least to the most is as likely."""

    least: Natural
    most: Natural

    def __post_init__(self) -> None:
        """Refuse a range without a number; `ValueError`."""
        if self.least > self.most:
            raise ValueError(f"least = {self.least:,} must be at most most, {self.most:,}")

    def draws(self, generator: np.random.Generator, count: int) -> Any:
        """Return so many draws."""
        return generator.integers(self.least, min(self.most, DRAWN_MAX), count, endpoint=True)

    def survival(self, number: float) -> float:
        """Return the probability that a draw is greater than a number."""
        if self.most == self.least:
            return float(number < self.least)
        return min(max((self.most - number) / (self.most - self.least), 0.0), 1.0)


class Exponential(Distribution, frozen=True, kw_only=True, tag="exponential"):
    """Gaps between events that come at random."""

    mean: Positive

    def draws(self, generator: np.random.Generator, count: int) -> Any:
        """Return so many draws, as floats."""
        return generator.exponential(self.mean, count)

    def survival(self, number: float) -> float:
        """Return the probability that a draw is greater than a number."""
        return math.exp(-max(number, 0.0) / self.mean)


class Lognormal(Distribution, frozen=True, kw_only=True, tag="lognormal"):
    """The logarithm is normal: most are near the median, few are many times as much."""

    median: Positive
    sigma: Annotated[float, Meta(gt=0.0, le=10.0)]  # standard deviation of the logarithm

    def draws(self, generator: np.random.Generator, count: int) -> Any:
        """Return so many draws, as floats."""
        return generator.lognormal(math.log(self.median), self.sigma, count)

    def survival(self, number: float) -> float:
        """Return the probability that a draw is greater than a number."""
        if number <= 0:
            return 1.0
        return math.erfc(math.log(number / self.median) / (self.sigma * math.sqrt(2))) / 2


class Pareto(Distribution, frozen=True, kw_only=True, tag="pareto"):
    """Heavy-tailed: the probability of more than a number falls as that number to the power of -shape."""

    least: Positive
    shape: Annotated[float, Meta(gt=0.0, le=100.0)]  # below 2 without a variance, up to 1 without a mean

    def draws(self, generator: np.random.Generator, count: int) -> Any:
        """Return so many draws, as floats."""
        return self.least * (1.0 + generator.pareto(self.shape, count))

    def survival(self, number: float) -> float:
        """Return the probability that a draw is greater than a number."""
        return float((self.least / max(number, self.least)) ** self.shape)


Quantity = Natural | Uniform | Exponential | Lognormal | Pareto
"""A constant, or what numbers are drawn from."""


def drawn(quantity: Quantity, draws: Draws, name: str, least: int = 0, most: int = AMOUNT_MAX) -> Iterator[int]:
    """Return an endless iterator over draws of a quantity, rounded, from ``least`` to ``most``; ``name`` its stream."""
    if isinstance(quantity, int):
        return repeat(min(max(quantity, least), most))
    generator = draws(name)
    return chain.from_iterable(_chunk(quantity, generator, least, min(most, DRAWN_MAX)) for _ in repeat(None))


def _chunk(quantity: Distribution, generator: np.random.Generator, least: int, most: int) -> list[int]:
    numbers: list[int] = np.rint(quantity.draws(generator, CHUNK).clip(least, most)).astype(np.int64).tolist()
    return numbers


@lru_cache(maxsize=1_024)
def mean_of(quantity: Quantity, least: int, most: int) -> float:
    """Return the mean of what `drawn` draws: the least, at least 1, and the integral of the survival function above."""
    if isinstance(quantity, int):
        return float(min(max(quantity, least), most))
    numbers = np.geomspace(least, most, STEPS + 1)
    return least + float(np.trapezoid([quantity.survival(number) for number in numbers.tolist()], numbers))
