"""Intervals and tables as text, for the terminal and for pages."""

from collections.abc import Iterable
from math import floor, isfinite, log10
from typing import Final

from trailboss.simulator.metrics.statistics import Interval

DECIMALS_MAX: Final = 9  # that a mean is shown with


def interval_text(interval: Interval) -> str:
    """Return an interval as text: two digits of its half width, and the mean to the same decimals.

    >>> from math import nan
    >>> interval_text(Interval(12.3456, 0.1234, 5)), interval_text(Interval(12345.6, 789.1, 5))
    ('12.35 ± 0.12', '12,346 ± 789')
    >>> interval_text(Interval(0.25, 0.0, 5)), interval_text(Interval(nan, nan, 5))
    ('0.25', 'nan')
    """
    if not isfinite(interval.half_width):
        return f"{interval.mean:,}"
    if interval.half_width == 0.0:
        return f"{interval.mean:,.9g}"
    decimals = min(max(1 - floor(log10(interval.half_width)), 0), DECIMALS_MAX)
    return f"{interval.mean:,.{decimals}f} ± {interval.half_width:,.{decimals}f}"


def markdown_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of Markdown; columns after the first are numbers.

    >>> print(markdown_table(("load", "late"), [("a", "1")]))
    | load | late |
    | --- | ---: |
    | a | 1 |
    """
    titles = list(head)
    marks = ["---", *("---:" for _ in titles[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (titles, marks, *rows))
