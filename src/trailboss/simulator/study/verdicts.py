"""What intervals allow to say: whether one alternative has more of a measure than another, in words and as a sign."""

from collections.abc import Callable, Iterable, Sequence
from math import isnan
from typing import Any

from trailboss.simulator.metrics.statistics import Interval
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.text import interval_text

UNSHOWN = "no difference can be shown"


def sign(difference: Interval) -> int:
    """Return 1 if a difference is above 0, -1 if it is below, and 0 if its interval reaches 0.

    >>> sign(Interval(2.0, 1.0, 5)), sign(Interval(-2.0, 1.0, 5)), sign(Interval(-2.0, 3.0, 5))
    (1, -1, 0)
    """
    return (difference.mean - difference.half_width > 0) - (difference.mean + difference.half_width < 0)


def is_shown(difference: Interval) -> bool:
    """Return whether a difference is other than 0 by its interval."""
    return sign(difference) != 0


def difference_text(difference: Interval, more: str = "more", less: str = "less") -> str:
    """Return a difference in words; that none can be shown, if its interval reaches 0.

    >>> difference_text(Interval(-2.0, 1.0, 5)), difference_text(Interval(-2.0, 3.0, 5))
    ('2.0 ± 1.0 less', 'no difference can be shown (-2.0 ± 3.0)')
    """
    way = sign(difference)
    if not way:
        return f"{UNSHOWN} ({interval_text(difference)})"
    size = Interval(abs(difference.mean), difference.half_width, difference.count)
    return f"{interval_text(size)} {more if way > 0 else less}"


def points_with(points: Iterable[Point], **facts: Any) -> list[Point]:
    """Return the points that have all of these facts, in order."""
    return [point for point in points if all(point.facts[name] == value for name, value in facts.items())]


def shown(interval: Interval) -> str:
    """Return an interval as text; a dash for that of a measure which some replication does not have."""
    return "—" if isnan(interval.mean) else interval_text(interval)


def rows_of(results: Results, names: Sequence[str], measures: Iterable[str]) -> list[list[str]]:
    """Return a row of a table for each point: its facts of these names, and its intervals."""
    kept = tuple(measures)
    return [
        [*(f"{point.facts[name]}" for name in names), *(shown(results.interval(point.name, m)) for m in kept)]
        for point in results.points
    ]


def draw_bars(
    axes: Any, results: Results, points: Sequence[Point], measure: str, at: Callable[[Point], float], *, label: str
) -> None:
    """Draw a measure of some points over what ``at`` returns, with its intervals as bars."""
    found = [results.interval(point.name, measure) for point in points]
    heights, halves = [each.mean for each in found], [each.half_width for each in found]
    axes.errorbar([at(point) for point in points], heights, halves, marker="o", markersize=4, capsize=3, label=label)
