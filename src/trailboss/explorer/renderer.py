"""Documents as HTML. Every text and every attribute is escaped here, and nowhere else is HTML made.

Charts are drawn by pygal as SVG without scripts; colours and fonts come from the page's style sheet.
"""

from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, Final

from trailboss.explorer import documents as parts
from trailboss.explorer import links
from trailboss.explorer.cells import NOTHING
from trailboss.explorer.page_context import Page, Reading
from trailboss.explorer.pages import PAGES
from trailboss.node.options import Rhythm
from trailboss.views.text import counted, time_words
from trailboss.views.trace.tree import TreeNode

NAME: Final = "Trailboss"
MARK: Final = "M9 1.5a7.5 7.5 0 1 0 0 15 7.5 7.5 0 0 0 0-15zM9 5v4.3l3 2"
FAVICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 18 18"><path fill="none" stroke="#b4530a" '
    f'stroke-width="2.2" d="{MARK}"/></svg>'
)
COPIED_WORDS_MAX: Final = 80  # characters of a copied text that the button's name repeats
QUIET_BLOCKS: Final = 3
QUIET_SECONDS: Final = 3  # a node that has built no block for three block times and three seconds is shown as quiet
MILLISECONDS: Final = 1_000
RHYTHMS: Final = {
    Rhythm.AUTO: "a block for each transaction, and every {time:,} ms while a timer is pending",
    Rhythm.DUE: "a block for each transaction, and all up to the next timer at once",
    Rhythm.MANUAL: "blocks on request",
    Rhythm.INTERVAL: "a block every {time:,} ms",
    Rhythm.NETWORK: "blocks of a network",
}
DIGEST_DIGITS: Final = 16
CHART_HEIGHT: Final = 190
CHART_WIDTHS: Final = {parts.FULL: 1_280}
CHART_WIDTH: Final = 640
LABEL_SIZE: Final = 15
"""Room for labels: the style sheet draws them smaller on a wide screen and larger on a narrow one."""
LABELS_MAX: Final = 8
LINES_MAX: Final = 6
UNITS: Final = ((10**12, " T"), (10**9, " G"), (10**6, " M"), (10**3, " k"))
WHOLE_FROM: Final = 10_000
UNWANTED: Final = ("script", "style", "desc")
PAGER_LINKS: Final = (("First", "first"), ("Previous", "previous"), ("Next", "following"), ("Last", "last"))


@cache
def assets() -> dict[str, tuple[str, bytes, str]]:
    """Return path, content and media type of each asset, by its name. A path changes with the content."""
    found = {}
    for name, media_type in (("explorer.css", "text/css"), ("explorer.js", "text/javascript")):
        content = (Path(__file__).parent / "assets" / name).read_bytes()
        digest = sha256(content).hexdigest()[:DIGEST_DIGITS]
        found[name] = (f"{links.ASSETS}/{digest}-{name}", content, media_type)
    return found


def page_html(document: parts.Document, page: Page, reading: Reading, mark: str, searched: str = "") -> str:
    """Return a page, with a mark that is another one whenever a live page may show something else."""
    subject = f'<div class="subject">{_content(document.subject)}</div>' if document.subject else ""
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(document.title)} · {NAME}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">'
        f'<link rel="icon" href="{links.FAVICON}"><link rel="stylesheet" href="{assets()["explorer.css"][0]}">'
        f'<script src="{assets()["explorer.js"][0]}"></script></head><body data-mark="{escape(mark)}" '
        f'data-stream="{links.STREAM}">{_header(page, reading, searched)}'
        f'<main id="main" class="page" tabindex="-1"{"" if page.is_live else " data-still"}>'
        f'<div class="head"><h1>{escape(document.heading)}</h1>{subject}</div>'
        f'<div class="grid">{"".join(map(section_html, document.sections))}</div></main>{_footer(reading)}'
        "</body></html>"
    )


def _header(page: Page, reading: Reading, searched: str) -> str:
    view, pace, health = reading.view, reading.node.pace, reading.node.health
    is_network = reading.node.network is not None
    navigation = ((page.title, page.path) for page in PAGES if page.title and (is_network or not page.is_of_network))
    places = "".join(
        f'<a href="{href}"{" aria-current=page" if href == page.section else ""}>{escape(name)}</a>'
        for name, href in (*navigation, (reading.mechanism.title, links.MECHANISM))
    )
    failure = "" if health.status == "running" else health.reason or health.status
    state, words = ("failed", escape(failure)) if failure else ("live", "blocks are coming in")
    # Without an interval no block is due at any time.
    quiet = ""
    if pace.rhythm is Rhythm.INTERVAL:
        quiet = f' data-quiet="{QUIET_BLOCKS * pace.block_time_ms // MILLISECONDS + QUIET_SECONDS}"'
    time = time_words(view.head.header.timestamp_ms)
    pulse = (
        ("Block", "height", str(view.height)),
        ("at", "time", time),
        ("Mechanism", "mechanism", view.mechanism.name),
    )
    facts = "".join(
        f'<div class="{name}"><dt>{label}</dt><dd data-live="{name}">{escape(value)}</dd></div>'
        for label, name, value in pulse
    )
    return (
        '<a class="skip" href="#main">Skip to the content</a><header class="bar"><div class="top">'
        '<a class="brand" href="/"><svg viewBox="0 0 18 18" aria-hidden="true"><path fill="none" '
        f'stroke="currentColor" stroke-width="2" d="{MARK}"/></svg> {NAME}</a><dl class="pulse"><div>'
        f'<dt class="hidden">State</dt><dd><span class="beat" data-state="{state}" role="img" aria-label="{words}" '
        f'title="{words}"{quiet}></span></dd></div>{facts}</dl>'
        f'<form class="find" role="search" action="{links.SEARCH}" method="get"><input id="search" name="q" '
        f'type="search" value="{escape(searched)}" maxlength="200" autocomplete="off" spellcheck="false" '
        'placeholder="Height, hash, timer or address" aria-label="Search for a height, a hash, a timer or an address">'
        '<kbd aria-hidden="true">/</kbd></form><label class="theme"><span class="hidden">Colours</span>'
        '<select id="theme"><option value="system">System colours</option><option value="light">Light</option>'
        '<option value="dark">Dark</option></select></label></div>'
        f'<nav class="nav" aria-label="Pages">{places}</nav></header>'
    )


def _footer(reading: Reading) -> str:
    genesis, pace = reading.view.genesis, reading.node.pace
    rhythm = RHYTHMS[pace.rhythm].format(time=pace.block_time_ms)
    return (
        '<footer><div class="foot"><span>State root <span class="mono id" data-live="state-root">'
        f"{reading.view.state_root}</span></span><span>Chain id {genesis.chain_id}, preset {escape(genesis.preset)}, "
        f"{'sandbox' if genesis.image else 'native engine'}, {rhythm}</span></div></footer>"
    )


def section_html(section: parts.Section) -> str:
    """Return a part of a page."""
    key, title = f"section-{escape(section.key)}", escape(section.title)
    if isinstance(section, parts.Notice):
        alert = ' role="alert"' if section.tone == "bad" else ""
        heading = f"<h2>{title}</h2>" if title else ""
        words = f'<p class="inline">{_content(section.content)}</p>' if section.content else ""
        kind = f"section notice {section.tone} {section.span}"
        return f'<section class="{kind}" data-key="{key}"{alert}>{heading}{words}</section>'
    labelled, heading = "", ""
    if title:
        labelled = f' aria-labelledby="{key}"'
        note = f'<span class="note">{escape(section.note)}</span>' if section.note else ""
        more = f'<span class="more">{_cell(section.more)}</span>' if section.more else ""
        heading = f'<div class="title"><h2 id="{key}">{title}</h2>{note}{_copy(section.copy)}{more}</div>'
    body = BODIES[type(section)](section)
    return f'<section class="section {section.span}" data-key="{key}"{labelled}>{heading}{body}</section>'


def _content(content: Iterable[parts.Cell]) -> str:
    return "".join(map(_cell, content))


def _cell(cell: parts.Cell) -> str:
    title = f' title="{escape(cell.note)}"' if cell.note else ""
    kind = " ".join(filter(None, ("cell", cell.copy and "pair", escape(cell.kind))))
    if not cell.href and not cell.copy:
        return f'<span class="{kind}"{title}>{escape(cell.text)}</span>'
    tag, href = ("a", f' href="{escape(cell.href)}"') if cell.href else ("span", "")
    return f'<span class="{kind}"><{tag}{href}{title}>{escape(cell.text)}</{tag}>{_copy(cell.copy)}</span>'


def _copy(text: str) -> str:
    if not text:
        return ""
    name = "it" if len(text) > COPIED_WORDS_MAX else escape(text)
    return (
        f'<button type="button" class="copy" title="Copy" aria-label="Copy {name}" data-copy="{escape(text)}"></button>'
    )


def _facts(section: parts.Facts) -> str:
    rows = "".join(f"<div><dt>{escape(row.label)}</dt><dd>{_content(row.content)}</dd></div>" for row in section.rows)
    return f'<dl class="facts">{rows}</dl>'


def _stats(section: parts.Stats) -> str:
    drawn = []
    for item in section.items:
        share = "" if item.share is None else f"<i style='width:{min(item.share, 100)}%'></i>"
        meter = f'<dd class="meter" aria-hidden="true">{share}</dd>' if share else ""
        hint = f'<dd class="hint inline">{_content(item.hint)}</dd>' if item.hint else ""
        value = f'<dd class="value">{_content(item.content)}</dd>'
        drawn.append(f"<div><dt>{escape(item.label)}</dt>{value}{meter}{hint}</div>")
    return f'<dl class="stats">{"".join(drawn)}</dl>'


def _steps(section: parts.Steps) -> str:
    drawn = "".join(
        f'<li class="{step.tone}"><span class="when">{_content(step.when)}</span>'
        f'<span class="what inline">{_content(step.content)}</span></li>'
        for step in section.steps
    )
    return f'<ol class="steps">{drawn}</ol>{_pager(section.pager, section.title)}'


def _code(section: parts.Code) -> str:
    marked = set(section.marked)
    drawn = "".join(
        f'<li{" class=marked" if number in marked else ""}><span class="line">{number}</span>'
        f'<span class="text">{escape(line)}</span></li>'
        for number, line in enumerate(section.lines, section.first)
    )
    return f'<div class="code" tabindex="0" role="region" aria-label="{escape(section.title)}"><ol>{drawn}</ol></div>'


def _call_tree(section: parts.CallTree) -> str:
    drawn = _tree_node(section.root, is_open=True)
    return f'{_form(section.filters, section.title)}<div class="tree">{drawn}</div>'


def _tree_node(node: TreeNode, *, is_open: bool = False) -> str:
    words = "".join(f'<span class="cell {escape(each.style)}">{escape(each.text)}</span>' for each in node.pieces)
    if not node.children:
        return f'<div class="leaf">{words}</div>'
    below = "".join(map(_tree_node, node.children))
    return f"<details{' open' if is_open else ''}><summary>{words}</summary>{below}</details>"


def _table(section: parts.PageTable) -> str:
    found = _form(section.filters, section.title)
    if section.rows:
        columns = "".join(
            f'<th scope="col"{" class=right" if column.right else ""}>{escape(column.label)}</th>'
            for column in section.columns
        )
        kinds = [
            (
                "" if column.bare else f' data-label="{escape(column.label)}"',
                "right" * column.right,
                "wide" * column.wide,
            )
            for column in section.columns
        ]
        rows = "".join(
            f'<tr class="{row.tone}" data-key="{escape(row.key)}">'
            + "".join(
                f'<td{label} class="{right} {wide}{" void" if content == NOTHING else ""}">{_content(content)}</td>'
                for (label, right, wide), content in zip(kinds, row.cells, strict=True)
            )
            + "</tr>"
            for row in section.rows
        )
        kind = "" if section.scrolls else ' class="stack"'
        found += (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(section.title)}"><table{kind}>'
            f"<thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div>"
        )
    elif section.empty:
        command = f'<span class="command"><code>{escape(section.command)}</code>{_copy(section.command)}</span>'
        found += f'<p class="empty">{escape(section.empty)}{command if section.command else ""}</p>'
    return found + _pager(section.pager, section.title)


def _form(filters: tuple[parts.Filter, ...], title: str) -> str:
    if not filters:
        return ""
    fields = "".join(f"<label>{escape(each.label)} {_field(each)}</label>" for each in filters)
    label = escape(f"Choose among {title}")
    button = '<button class="button" type="submit">Show</button>'
    return f'<form class="filters" method="get" data-here aria-label="{label}">{fields}{button}</form>'


def _field(each: parts.Filter) -> str:
    if each.options:
        options = "".join(
            f'<option value="{escape(value)}"{" selected" if value == each.value else ""}>{escape(words)}</option>'
            for value, words in each.options
        )
        return f'<select name="{escape(each.name)}" data-submits>{options}</select>'
    numeric = ' inputmode="numeric" class="numeric"' if each.numeric else ""
    return (
        f'<input name="{escape(each.name)}" value="{escape(each.value)}" placeholder="{escape(each.hint)}" '
        f'autocomplete="off" spellcheck="false"{numeric}>'
    )


def _pager(pager: parts.Pager | None, title: str) -> str:
    if pager is None:
        return ""
    targets = [(words, getattr(pager, name)) for words, name in PAGER_LINKS]
    shown = "".join(
        f'<a href="{escape(href)}" data-here>{words}</a>'
        if href
        else f'<span class="off" aria-disabled="true">{words}</span>'
        for words, href in targets
    )
    label, words = escape(f"Pages of {title}"), f'<span class="words" aria-live="polite">{escape(pager.words)}</span>'
    return f'<nav class="pager" aria-label="{label}">{words}{shown if any(href for _, href in targets) else ""}</nav>'


def _chart(section: parts.Chart) -> str:
    """Return a drawing, and its values as a table: for screen readers, and for what the script shows on hover."""
    names = "".join(
        f'<span><i class="series-{at}"></i>{escape(name)}</span>' for at, (name, _) in enumerate(section.series)
    )
    legend = f'<div class="names" aria-hidden="true">{names}</div>' if len(section.series) > 1 else ""
    heads = "".join(f"<th scope=col>{escape(name)}</th>" for name, _ in section.series)
    rows = "".join(
        f"<tr><th scope=row>{escape(str(point))}</th>"
        + "".join(f"<td>{'·' if values[at] is None else f'{values[at]:,}'}</td>" for _, values in section.series)
        + "</tr>"
        for at, point in enumerate(section.points)
    )
    return (
        f'{legend}<div class="chart" data-bars="{int(section.bars)}" tabindex="0" role="img" '
        f'aria-label="{escape(section.label)}">{chart_svg(section)}</div><div class="hidden"><table><caption>'
        f"{escape(section.label)}</caption><thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def chart_svg(chart: parts.Chart) -> str:
    """Return a chart as an ``svg`` element."""
    # Only now: a node starts without it, and only some pages have charts.
    from pygal import Line, StackedBar  # noqa: PLC0415
    from pygal.style import Style  # noqa: PLC0415

    labels = [str(point) for point in chart.points]
    drawing = (StackedBar if chart.bars else Line)(
        style=Style(label_font_size=LABEL_SIZE, major_label_font_size=LABEL_SIZE),
        width=CHART_WIDTHS.get(chart.span, CHART_WIDTH),
        height=CHART_HEIGHT,
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


def _heat_map(section: parts.HeatMap) -> str:
    marked = next((at for at, cell in enumerate(section.cells) if cell.first <= section.now <= cell.last), None)
    tiles = [
        f'<a class="tile level-{cell.level}{" now" if at == marked else ""}" href="{links.TIMERS}?from={cell.first}'
        f'&amp;to={cell.last}" aria-label="{heights}: {counted(cell.count, "timer")}" '
        f'tabindex="{0 if at == (marked or 0) else -1}"></a>'
        for at, cell in enumerate(section.cells)
        for heights in (f"height {cell.first}" if cell.first == cell.last else f"heights {cell.first} to {cell.last}",)
    ]
    rows = "".join(
        f'<div class="row"><span class="label">{section.cells[start].first}</span>'
        f"{''.join(tiles[start : start + section.columns])}</div>"
        for start in range(0, len(tiles), section.columns)
    )
    scale = "".join(f'<span><i class="level-{level}"></i>{escape(words)}</span>' for level, words in section.scale)
    label = escape(f"{section.title}. Arrow keys move, Enter opens the timers of the heights.")
    return (
        f'<div class="heat" style="--columns:{section.columns}"><div class="rows" role="group" aria-label="{label}">'
        f'{rows}</div></div><div class="tip" aria-hidden="true"></div>'
        f'<div class="legend" aria-hidden="true">{scale}</div>'
    )


BODIES: Final[dict[type[parts.Section], Callable[[Any], str]]] = {
    parts.CallTree: _call_tree,
    parts.Chart: _chart,
    parts.Code: _code,
    parts.Facts: _facts,
    parts.HeatMap: _heat_map,
    parts.Stats: _stats,
    parts.Steps: _steps,
    parts.PageTable: _table,
}
"""What draws a section, by its type."""
