"""Charts: options for ECharts from plain series. Colours and fonts come from the page."""

from collections.abc import Sequence
from typing import Any, Final

from trailboss.explorer.documents import Chart

Series = tuple[str, Sequence[int | float | None]]
GRID = {"left": 12, "right": 16, "top": 34, "bottom": 6, "containLabel": True}
EXACT_MAX: Final = 2**53
BAR_MAX: Final = 48
"""Pixels."""
BARE_GRID = {"left": 12, "right": 14, "top": 12, "bottom": 6, "containLabel": True}


def drawable(value: int | float | None) -> int | float | None:
    """Return a value as a browser can hold it: prices have up to 128 bits, its whole numbers 53.

    >>> drawable(7), drawable(None), drawable(2**100)
    (7, None, 1.2676506002282294e+30)
    """
    return float(value) if isinstance(value, int) and value > EXACT_MAX else value


def line_chart(
    key: str,
    title: str,
    heights: Sequence[int | str],
    series: Sequence[Series],
    *,
    label: str,
    unit: str = "",
    note: str = "",
    span: str = "full",
    kind: str = "line",
    step: bool = False,
    stack: bool = False,
    maximum: int | None = None,
) -> Chart:
    """Return a chart of values by height.

    Args:
        key: Of the section.
        title: Of the section.
        heights: Along the horizontal axis.
        series: Names and values, None for a gap.
        label: What it shows, in words.
        unit: Of the values.
        note: Below the title.
        span: Of the grid.
        kind: ``line`` or ``bar``.
        step: Whether a value holds until the next one.
        stack: Whether series stand on one another.
        maximum: Greatest value of the vertical axis; None for what the values need.
    """
    drawn: list[dict[str, Any]] = []
    for name, values in series:
        each: dict[str, Any] = {"name": name, "type": kind, "data": list(map(drawable, values))}
        if kind == "bar":
            each["barMaxWidth"] = BAR_MAX
        if kind == "line":
            each |= {"showSymbol": len(values) == 1, "sampling": "lttb"}
        if step:
            each["step"] = "end"
        if stack:
            each |= {"stack": "all"}
        drawn.append(each)
    vertical: dict[str, Any] = {"type": "value", "name": unit, "scale": kind == "line" and maximum is None}
    if maximum is not None:
        vertical |= {"max": maximum, "min": 0}
    options: dict[str, Any] = {
        "grid": GRID if len(series) > 1 or unit else BARE_GRID,
        "xAxis": {"type": "category", "data": [str(each) for each in heights], "boundaryGap": kind == "bar"},
        "yAxis": vertical,
        "series": drawn,
    }
    if len(series) > 1:
        options["legend"] = {"top": 2, "right": 8, "itemWidth": 14, "itemHeight": 8}
    return Chart(key, title, label, options, note=note, span=span)
