"""Cost tables and comparisons as text that fits a terminal."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from statistics import median_low
from typing import Final

from msgspec.structs import asdict

from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.testing.costs.baseline import Comparison, CostChange
from trailboss.testing.costs.table import SHOWN_HASH, CostTable, HandlerCosts, RestCosts, merged
from trailboss.views.text import clipped, counted, parser_lines, visible
from trailboss.vm.trace import NO_LINE

GAP: Final = "  "
NAME_MIN: Final = 12  # least columns of a name
HEADS: Final = ("handler", "calls", "min", "median", "max", "total", "nested", "cells", "CBY")
OPTIONAL: Final = ("nested", "min")  # columns that are left out where there is no room, in this order
DECIMALS: Final = 3
TAB: Final = 4
PERCENT: Final = 100


def table_text(table: CostTable, width: int, *, with_lines: bool) -> Iterator[str]:
    """Yield the lines of a table by handler, and of one by line for each source; none is wider than ``width``."""
    yield "Cycles of a call, and of all calls, without the frames that they called:"
    for name, code_hash in table.by_name():
        yield ""
        yield clipped(f"{name} ({code_hash[:SHOWN_HASH]})", width)
        costs = table.of_handlers(code_hash)
        yield from grid(HEADS, [_handler_row(handler, each) for handler, each in costs.items()], width, OPTIONAL)
        if with_lines:
            yield from _source_lines(table, code_hash, merged(costs.values()), width)
    yield ""
    rows = [(name, *_amounts(rest)) for name, rest in sorted(table.rest.items())]
    rows.append(("all of it, as in " + counted(table.executions, "receipt"), *_amounts(table.total)))
    yield from grid(("without a handler", "cycles", "cells", "CBY"), rows, width)


def _handler_row(handler: str, costs: HandlerCosts) -> tuple[str, ...]:
    numbers = (min(costs.calls), median_low(costs.calls), max(costs.calls), costs.cycles, costs.nested, costs.cells)
    return visible(handler), f"{len(costs.calls):,}", *(f"{number:,}" for number in numbers), short_cby(costs.paid)


def _amounts(costs: RestCosts) -> tuple[str, ...]:
    return f"{costs.cycles:,}", f"{costs.cells:,}", short_cby(costs.paid)


def _source_lines(table: CostTable, code_hash: str, costs: HandlerCosts, width: int) -> Iterator[str]:
    source = table.sources[code_hash]
    texts = [visible(line.expandtabs(TAB)) for line in parser_lines(source.text)]

    def row(line: str, hits: int, cycles: int, text: str) -> tuple[str, ...]:
        return line, f"{hits:,}" if hits else "", f"{cycles:,}", share(cycles, costs.cycles), text

    rows = [
        row(str(line), costs.hits.get(line, 0), cycles, texts[line - 1])
        for line, cycles in sorted(costs.lines.items())
        if line != NO_LINE
    ]
    rows.append(row("", len(costs.calls), costs.base, "(the base price of its frames)"))
    if NO_LINE in costs.lines:
        rows.append(row("", 0, costs.lines[NO_LINE], "(outside its lines: SDK around it, answers)"))
    yield ""
    heads = ("line", "hits", "cycles", "share")
    sizes = [max(len(head), *(len(row[at]) for row in rows)) for at, head in enumerate(heads)]
    for cells in ((*heads, ""), *rows):
        numbers = GAP.join(f"{number:>{size}}" for number, size in zip(cells, sizes, strict=False))
        yield clipped(f"{GAP}{numbers}{GAP}{cells[-1]}", width).rstrip()


def table_document(table: CostTable) -> dict[str, object]:
    """Return a table by source and handler for JSON; lines by their number, money in base units."""
    sources = [
        {
            "source": name,
            "code_hash": bytes.fromhex(code_hash),
            "handlers": [_document(handler, costs) for handler, costs in table.of_handlers(code_hash).items()],
        }
        for name, code_hash in table.by_name()
    ]
    rest = {name: asdict(costs) for name, costs in sorted(table.rest.items())}
    return {"sources": sources, "rest": rest, "executions": table.executions, "total": asdict(table.total)}


def _document(handler: str, costs: HandlerCosts) -> dict[str, object]:
    return {
        "handler": handler,
        "calls": len(costs.calls),
        "min": min(costs.calls),
        "median": median_low(costs.calls),
        "max": max(costs.calls),
        "cycles": costs.cycles,
        "base": costs.base,
        "nested": costs.nested,
        "cells": costs.cells,
        "paid": costs.paid,
        "lines": {str(line): cycles for line, cycles in sorted(costs.lines.items()) if line != NO_LINE},
        "hits": {str(line): count for line, count in sorted(costs.hits.items())},
        "outside": costs.lines.get(NO_LINE, 0),
    }


def comparison_text(found: Comparison, width: int, tolerance: Fraction) -> Iterator[str]:
    """Yield what has changed since a baseline: what grew, with its lines, what shrank, what is new or did not run."""
    if found.grown:
        yield f"Cycles of a call grew by more than {percent(tolerance)}:"
        yield from _changes(found.grown, width)
        for (source, handler), lines in found.lines.items():
            yield ""
            yield from _grown_lines(source, handler, lines, width)
    else:
        yield f"No handler grew by more than {percent(tolerance)}."
    if found.shrunk:
        yield ""
        yield "Shrunk; to keep it so, save the baseline again:"
        yield from _changes(found.shrunk, width)
    for title, names in (("New, not in the baseline:", found.new), ("In the baseline, and not run:", found.unrun)):
        if names:
            yield ""
            yield title
            yield from (GAP + last_part(f"{source} {handler}", width - len(GAP)) for source, handler in names)
    if found.tests_unrun:
        yield ""
        yield f"{counted(found.tests_unrun, 'test')} of the baseline did not run, and nothing is compared with them."


def _changes(changes: Sequence[CostChange], width: int) -> Iterator[str]:
    rows = []
    for change in changes:
        (calls, cycles), (calls_now, cycles_now) = change.before, change.now
        numbers = (cycles // calls, cycles_now // calls_now)
        rows.append((f"{change.source} {change.handler}", *(f"{each:,}" for each in numbers), signed(change.ratio)))
    table = list(grid(("handler", "before", "now", "change"), rows, width))
    yield table[0]
    for line, change in zip(table[1:], changes, strict=True):
        yield line
        lead = f"{GAP * 2}most in "
        yield lead + last_part(change.test, width - len(lead))


def _grown_lines(source: str, handler: str, lines: dict[str, tuple[int, int]] | None, width: int) -> Iterator[str]:
    if lines is None:
        yield "Lines are not compared where other tests called than those of the baseline:"
        yield GAP + last_part(f"{source} {handler}", width - len(GAP))
        return
    yield "Lines that grew, in cycles of a call, of"
    yield GAP + last_part(f"{source} {handler}:", width - len(GAP))
    rows = [(f"{before:,}", f"{now:,}", f"+{now - before:,}") for before, now in lines.values()]
    sizes = [max(len(head), *(len(row[at]) for row in rows)) for at, head in enumerate(("before", "now", "more"))]
    heads = (f"{head:>{size}}" for head, size in zip(("before", "now", "more"), sizes, strict=True))
    yield GAP + GAP.join(heads)
    for text, row in zip(lines, rows, strict=True):
        numbers = GAP.join(f"{number:>{size}}" for number, size in zip(row, sizes, strict=True))
        yield clipped(f"{GAP}{numbers}{GAP}{text}", width)


def grid(
    heads: Sequence[str], rows: Sequence[Sequence[str]], width: int, optional: Sequence[str] = ()
) -> Iterator[str]:
    """Yield a table whose first column is a name, aligned to the left, and whose others are numbers.

    Columns that are ``optional`` are left out, in their order, and then names are cut, until it fits.
    """
    shown = list(range(len(heads)))
    sizes = [max(len(row[at]) for row in (heads, *rows)) for at in shown]

    def room() -> int:
        return width - sum(len(GAP) + sizes[at] for at in shown[1:]) - len(GAP)

    for each in optional:
        if room() < sizes[0]:
            shown.remove(heads.index(each))
    name = max(NAME_MIN, min(sizes[0], room()))
    for row in (heads, *rows):
        numbers = (f"{row[at]:>{sizes[at]}}" for at in shown[1:])
        yield GAP + GAP.join((f"{last_part(row[0], name):<{name}}", *numbers))


def last_part(text: str, width: int) -> str:
    """Return a name cut at its beginning: the end of a path and of a test's id says more.

    >>> last_part("tests/test_clock.py::test_ticks", 20)
    '…lock.py::test_ticks'
    """
    return text if len(text) <= width else f"…{text[len(text) - width + 1 :]}"


def share(part: int, whole: int) -> str:
    """Return a part of a whole in percent.

    >>> share(1, 3), share(0, 0)
    ('33.3 %', '0.0 %')
    """
    return f"{PERCENT * part / whole if whole else 0:.1f} %"


def percent(part: Fraction) -> str:
    """Return a ratio in percent.

    >>> percent(Fraction(2, 100)), percent(Fraction(1, 200))
    ('2 %', '0.5 %')
    """
    return f"{float(part * PERCENT):g} %"


def signed(ratio: Fraction) -> str:
    """Return how much a ratio is above or below one.

    >>> signed(Fraction(5, 4)), signed(Fraction(99, 100))
    ('+25.0 %', '-1.0 %')
    """
    return f"{float((ratio - 1) * PERCENT):+.1f} %"


def short_cby(amount: int) -> str:
    """Return base units as CBY with three decimals, rounded.

    >>> short_cby(4_453_140_000)
    '4.453'
    """
    return f"{float(Fraction(amount, BASE_UNITS_PER_CBY)):,.{DECIMALS}f}"
