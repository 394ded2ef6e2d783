"""Statistics that know nothing of timers: intervals, histograms, evenness, survival, chaos."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean, stdev
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.lib.stride_tricks import sliding_window_view

CONFIDENCE: Final = 0.95
HUNDRED: Final = 100
PRECISION: Final = 1e-15
TERMS_MAX: Final = 10_000  # of a continued fraction; it needs about the root of its greater parameter
TINY: Final = 1e-300  # in place of 0 in a denominator
STEPS: Final = 10  # for which neighbours in a series are followed


# Intervals


class Interval(Struct, frozen=True):
    """The mean of a measure over replications, with its 95 % confidence interval (Student's t)."""

    mean: float
    half_width: float  # 0 if all replications agree
    count: int


def interval_of(values: Sequence[float]) -> Interval:
    """Return the mean of two or more independent values and its 95 % confidence interval; a value nan makes it nan."""
    count = len(values)
    if not all(map(math.isfinite, values)):
        return Interval(math.nan, math.nan, count)
    half_width = t_quantile((1 + CONFIDENCE) / 2, count - 1) * stdev(values) / math.sqrt(count)
    return Interval(fmean(values), half_width, count)


@lru_cache
def t_quantile(probability: float, freedom: int) -> float:
    """Return the value below which Student's t lies with a probability, 0.5 to below 1, by bisection.

    Args:
        probability: Of a lower value.
        freedom: Degrees of freedom, from 1.
    """
    low, high = 0.0, 1.0
    while t_probability(high, freedom) < probability:
        high *= 2
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_probability(middle, freedom) < probability else (low, middle)
    return high


def t_probability(value: float, freedom: int) -> float:
    """Return the probability that Student's t is at most a value of 0 or more. Source: DLMF 8.17."""
    return 1 - _beta(freedom / 2, 0.5, freedom / (freedom + value * value)) / 2


def _beta(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function, by the continued fraction DLMF 8.17.22."""
    if x in {0.0, 1.0}:
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    fraction, upper, lower = 1.0, 1.0, 0.0
    for term in range(1, TERMS_MAX):
        half = term // 2
        if term % 2:
            part = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            part = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        upper, lower = (1 + part / upper) or TINY, 1 / ((1 + part * lower) or TINY)
        fraction *= upper * lower
        if abs(upper * lower - 1) < PRECISION:
            break
    return front / fraction


# Histograms and moments


class Histogram:
    """How often each whole number came; its size is that of the different ones."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def add(self, value: int) -> None:
        """Count a value."""
        self.counts[value] = self.counts.get(value, 0) + 1

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts.values())

    def mean(self) -> float:
        """Return the mean; -1 without values."""
        total = sum(value * times for value, times in self.counts.items())
        return total / self.count if self.counts else -1.0

    def percentile(self, percent: int) -> int:
        """Return the nearest-rank percentile, 1 to 100: the least value that so many percent do not exceed; or -1."""
        rank, seen = -(-percent * self.count // HUNDRED), 0
        for value in sorted(self.counts):
            seen += self.counts[value]
            if seen >= rank:
                return value
        return -1

    def share_over(self, bound: int) -> float:
        """Return the share of values above a bound; 0 without values."""
        over = sum(times for value, times in self.counts.items() if value > bound)
        return over / self.count if over else 0.0


class Moments:
    """Count, mean and variance of a stream. Source: Welford 1962."""

    __slots__ = ("_squares", "count", "mean")

    def __init__(self) -> None:
        self.count, self.mean, self._squares = 0, 0.0, 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.count += 1
        distance = value - self.mean
        self.mean += distance / self.count
        self._squares += distance * (value - self.mean)

    @property
    def variance(self) -> float:
        """The sample's variance; 0 for less than two values."""
        return self._squares / (self.count - 1) if self.count > 1 else 0.0


# Evenness


def jain(shares: Sequence[float]) -> float:
    """Return Jain's index, (Σx)² ÷ (n · Σx²): 1 if all are equal, 1 ÷ n if one has all. Source: Jain et al. 1984.

    >>> jain([1, 1, 1, 1]), jain([1, 0, 0, 0]), jain([])
    (1.0, 0.25, 1.0)
    """
    squares = sum(share * share for share in shares)
    return float(sum(shares) ** 2 / (len(shares) * squares)) if squares else 1.0


def gini(shares: Sequence[float]) -> float:
    """Return Gini's coefficient: the mean difference of two, over twice the mean; 0 if all are equal.

    >>> gini([1, 1, 1, 1]), gini([1, 0, 0, 0]), gini([])
    (0.0, 0.75, 0.0)
    """
    count, total = len(shares), sum(shares)
    ranked = sum((2 * rank - count + 1) * share for rank, share in enumerate(sorted(shares)))
    return float(ranked / (count * total)) if total else 0.0


def hhi(amounts: Sequence[float]) -> float:
    """Return the Herfindahl-Hirschman index, the sum of squared shares, from 1 ÷ n to 1; 0 without amounts.

    >>> hhi([1, 1, 1, 1]), hhi([3, 0]), hhi([])
    (0.25, 1.0, 0.0)
    """
    total = sum(amounts)
    return float(sum(amount * amount for amount in amounts) / total**2) if total else 0.0


# Survival


def kaplan_meier(ended: Mapping[int, int], censored: Mapping[int, int]) -> list[tuple[int, float]]:
    """Return the shares of a cohort that outlive each time at which some end, ascending. Source: Kaplan & Meier 1958.

    Args:
        ended: Times to how many ended at them.
        censored: Times to how many were last seen at them; they are at risk at that time.

    >>> kaplan_meier({1: 1, 3: 1}, {2: 1})
    [(1, 0.6666666666666667), (3, 0.0)]
    """
    at_risk = sum(ended.values()) + sum(censored.values())
    left, curve = 1.0, []
    for time in sorted({*ended, *censored}):
        if ended.get(time):
            left *= 1 - ended[time] / at_risk
            curve.append((time, left))
        at_risk -= ended.get(time, 0) + censored.get(time, 0)
    return curve


# Chaos


def attractor(values: Iterable[float], tail: int) -> list[float]:
    """Return the different values of the last ``tail``, ascending: one column of a bifurcation diagram."""
    return sorted(set(list(values)[-tail:]))


def map_lyapunov(derivative: Callable[[float], float], orbit: Sequence[float]) -> float:
    """Return the Lyapunov exponent of a known map of one dimension along an orbit: the mean of ln |f'(x)|, a step."""
    return fmean(math.log(abs(derivative(value)) or TINY) for value in orbit)


def lyapunov(values: Sequence[float], dimension: int = 2) -> float:
    """Return the largest Lyapunov exponent of a series, a step. Source: Rosenstein, Collins & De Luca 1993.

    Each point of ``dimension`` values in a row is paired with its nearest that is more than a mean period away. The
    exponent is the slope of the mean logarithm of their distance, up to half of the way to that of any two points.
    It takes memory of the square of the length. It is 0 for a series that repeats itself or is too short, and cannot
    prove stability: noise reads as chaos, so it means something only where the demand is drawn without chance.
    """
    series = np.asarray(values, dtype=float)
    usable = len(series) - dimension + 1 - STEPS
    if usable <= 2 * STEPS or np.ptp(series) == 0:
        return 0.0
    power = np.abs(np.fft.rfft(series - series.mean())) ** 2
    period = math.ceil(power.sum() / (np.fft.rfftfreq(len(series)) * power).sum())
    points = sliding_window_view(series, dimension)
    distances = _distances(points[:usable, None], points[None, :usable])
    order = np.arange(usable)
    distances[np.abs(order[:, None] - order[None, :]) <= min(period, usable // 4)] = np.inf
    nearest = distances.argmin(axis=1)
    apart = distances[np.isfinite(distances) & (distances > 0)]
    curve = []
    for step in range(STEPS + 1):
        parted = _distances(points[order + step], points[nearest + step])
        parted = parted[parted > 0]
        if 2 * len(parted) < usable:
            return 0.0
        curve.append(float(np.log(parted).mean()))
    half_way = (curve[0] + float(np.log(apart).mean())) / 2
    near = next((step for step, distance in enumerate(curve) if distance > half_way), STEPS)
    used = max(near, 2)
    return float(np.polyfit(np.arange(used), curve[:used], 1)[0])


def _distances(left: Any, right: Any) -> Any:
    return np.sqrt(((left - right) ** 2).sum(axis=-1))
