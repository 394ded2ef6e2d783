"""Charts as SVG, drawn by pygal. Colours and fonts come from the page's style sheet, and no script is in them."""

from typing import Any, Final

from trailboss.explorer.documents import FULL, Chart

HEIGHT: Final = 190
WIDTHS: Final = {FULL: 1_280}
WIDTH: Final = 640
LABEL_SIZE: Final = 15
"""Room for labels: the style sheet draws them smaller on a wide screen and larger on a narrow one."""
LABELS_MAX: Final = 8
LINES_MAX: Final = 6
UNITS: Final = ((10**12, " T"), (10**9, " G"), (10**6, " M"), (10**3, " k"))
WHOLE_FROM: Final = 10_000
UNWANTED: Final = ("script", "style", "desc")


def chart_svg(chart: Chart) -> str:
    """Return a chart as an ``svg`` element."""
    # Only now: a node starts without it, and only some pages have charts.
    from pygal import Line, StackedBar  # noqa: PLC0415
    from pygal.style import Style  # noqa: PLC0415

    labels = [str(point) for point in chart.points]
    drawing = (StackedBar if chart.bars else Line)(
        style=Style(label_font_size=LABEL_SIZE, major_label_font_size=LABEL_SIZE),
        width=WIDTHS.get(chart.span, WIDTH),
        height=HEIGHT,
        margin=6,
        max_scale=LINES_MAX,
        css=(),
        js=(),
        no_prefix=True,
        disable_xml_declaration=True,
        classes=("plotted",),
        show_legend=False,
        show_dots=len(labels) == 1,
        show_minor_x_labels=False,
        truncate_label=-1,
        x_labels=labels,
        x_labels_major=labels[:: -(-len(labels) // LABELS_MAX) or 1],
        value_formatter=short_words,
    )
    for name, values in chart.series:
        # A bar of no height is left out: most blocks have none.
        drawing.add(name, [value or None for value in values] if chart.bars and any(values) else list(values))
    drawing.add_xml_filter(_without_scripts)
    return str(drawing.render(is_unicode=True))


def _without_scripts(tree: Any) -> Any:
    """Return a drawing without pygal's scripts, styles, comments and the descriptions that its scripts read."""
    tree.attrib.pop("id")
    for parent in list(tree.iter()):
        for part in list(parent):
            if part.tag in UNWANTED or not isinstance(part.tag, str):
                parent.remove(part)
    return tree


def short_words(value: float) -> str:
    """Return a number that is short enough for an axis.

    >>> short_words(2_000), short_words(1_250_000), short_words(0.25), short_words(2.0**127)
    ('2,000', '1.25 M', '0.25', '1.7e+26 T')
    """
    if abs(value) >= WHOLE_FROM:
        size, word = next(unit for unit in UNITS if abs(value) >= unit[0])
        return f"{value / size:.3g}{word}"
    return f"{value:,.0f}" if value == int(value) else f"{value:.3g}"
