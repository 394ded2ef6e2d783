"""Intervals of means by Student's t."""

from collections.abc import Sequence
from functools import cache
from math import cos, fsum, isfinite, nan, pi, sin, sqrt, tan
from typing import Final

from trailboss.simulator.study.base import Interval

COVERAGE: Final = 0.95  # of every interval


def interval_of(values: Sequence[float]) -> Interval:
    """Return the mean of at least two independent values and its 95 % confidence interval; a value nan makes it nan."""
    count = len(values)
    if not all(map(isfinite, values)):
        return Interval(nan, nan, count)
    if min(values) == max(values):
        return Interval(values[0], 0.0, count)
    mean = fsum(values) / count
    variance = fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Interval(mean, student_t(count - 1) * sqrt(variance / count), count)


@cache
def student_t(freedom: int) -> float:
    """Return t such that Student's variable is within ±t with probability .95, for a number of degrees of freedom.

    >>> [round(student_t(freedom), 3) for freedom in (1, 4, 9, 30)]
    [12.706, 2.776, 2.262, 2.042]
    """
    low, high = 0.0, pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _probability(middle, freedom) < COVERAGE else (low, middle)
    return tan(low) * sqrt(freedom)


def _probability(angle: float, freedom: int) -> float:
    """Return the probability within ±tan(angle) √freedom. Source: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    is_odd, cosine = freedom % 2, cos(angle)
    term, total = cosine if is_odd else 1.0, 0.0
    for number in range(1 + is_odd, freedom, 2):
        total += term
        term *= cosine**2 * number / (number + 1)
    return (angle + sin(angle) * total) * 2 / pi if is_odd else sin(angle) * total
