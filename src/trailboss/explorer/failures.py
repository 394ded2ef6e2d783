"""What to do about what is not there or failed: pages, commands to type, and the sections of a failed execution.

An actor's traceback names lines of the source that ran. The present source is shown around them only where it still has
these lines, as an actor may have been upgraded since.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

from trailboss.explorer import cells, links
from trailboss.explorer.cells import link, text
from trailboss.explorer.documents import Code, Content, Document, Notice, Section, Step, Steps
from trailboss.explorer.page_context import Reading
from trailboss.explorer.text import visible
from trailboss.node.options import HOST
from trailboss.primitives.errors import ErrorObject, Rejection, ViewGoneError
from trailboss.views.accounts import source_of
from trailboss.views.text import parser_lines

NOT_FOUND: Final = 404
BAD_REQUEST: Final = 400
GONE: Final = 503
DEFECT: Final = 500
WHERE_TO: Final = cells.line(
    *("Go on to the ", link("overview", links.OVERVIEW), ", the ", link("blocks", links.BLOCKS), " or the "),
    *(link("timers", links.TIMERS), ", or search above for a height, a hash, a timer or an address."),
)
AROUND: Final = 4  # lines of source shown before and after those of the traceback
EXCERPT_MAX: Final = 60
LINE_MAX: Final = 400
CONTEXT_MAX: Final = 24
BLOCKS_AHEAD: Final = 60  # blocks ahead for which a timer is suggested: time enough to type the command
SHOWN_APART: Final = ("traceback", "exception_type", "exception_message")
_LINE: Final = re.compile(r"line (\d{1,9}), in ([^:]*): (.*)", re.DOTALL)


def missing_document(what: str, fix: str = "") -> Document:
    """Return the page for something that does not exist, with what may help."""
    content = cells.line(f"{fix} ", WHERE_TO)
    notice = Notice("missing", visible(what), content, tone="warn")
    return Document("Not found", "Not found", (notice,), status=NOT_FOUND)


def rejection_document(rejection: Rejection) -> Document:
    """Return the page for a subject that cannot be."""
    error = rejection.error()
    content = cells.line(f"{error.why}; {error.fix}. ", WHERE_TO)
    notice = Notice("refused", visible(error.what), content, tone="warn")
    return Document("Not a page", "This cannot be shown", (notice,), status=BAD_REQUEST)


def gone_document(error: ViewGoneError) -> Document:
    """Return the page for a chain that goes back faster than it can be read."""
    content = text(f"{error}. Load the page again.")
    notice = Notice("gone", "The chain has gone back while this page was read", content, tone="warn")
    return Document("Gone", "The chain has gone back", (notice,), status=GONE)


def failure_document(error: Exception) -> Document:
    """Return the page for a defect: what is known of it, and that the node goes on."""
    content = text(
        f"{type(error).__name__}: {visible(str(error))}. The node goes on; its log has the traceback. "
        "Please report it with the address of this page."
    )
    notice = Notice("defect", "This page has a defect", content, tone="bad")
    return Document("Defect", "This page could not be built", (notice,), status=DEFECT)


class TracebackLine(Struct, frozen=True):
    """A line of a traceback: its number, its function and its source."""

    line: int
    function: str
    source: str


def error_sections(error: ErrorObject, reading: Reading, actor: bytes | None) -> Iterator[Section]:
    """Yield what is known of a failure, with the code of the actor that ran, if one did."""
    yield Notice("error", f"E{error.code} {error.slug}", cells.said(error.what, LINE_MAX), tone="bad")
    context = (item for item in list(error.context.items())[:CONTEXT_MAX] if item[0] not in SHOWN_APART)
    rows = {name.replace("_", " "): None if value is None else cells.said(str(value)) for name, value in context}
    rows = {"Why": cells.said(error.why), "What to do": cells.said(error.fix), **rows}
    yield cells.facts("error-facts", "Why it failed", rows)
    yield from _trace(str(error.context.get("traceback") or ""), reading, actor)


def _trace(traceback: str, reading: Reading, actor: bytes | None) -> Iterator[Section]:
    lines = traceback.splitlines()
    if not lines:
        return
    steps = tuple(Step(*_step(line, is_last=at == len(lines) - 1)) for at, line in enumerate(lines))
    yield Steps("traceback", "The actor's own lines, the innermost last", steps)
    marked = traceback_lines(lines)
    account = None if actor is None else reading.view.account(actor)
    if actor is None or account is None or not account.code_hash:
        return
    source = source_lines(source_of(reading.view, account.code_hash) or b"")
    present = {number: line.strip() for number, line in enumerate(source, 1)}
    if marked and all(present.get(each.line) == visible(each.source, LINE_MAX).strip() for each in marked):
        yield _excerpt(source, marked, actor)


def _step(line: str, *, is_last: bool) -> tuple[Content, Content, str]:
    found = traceback_lines([line])
    if not found:
        return text("…"), cells.said(line, LINE_MAX), ""
    source = text(visible(found[0].source, LINE_MAX), kind="mono")
    what = cells.line(f"in {visible(found[0].function, LINE_MAX)}: ", source)
    return text(f"line {found[0].line}"), what, "bad" if is_last else ""


def traceback_lines(lines: Sequence[str]) -> list[TracebackLine]:
    """Return the lines of a traceback that name a line of the source.

    >>> traceback_lines(["(3 outer lines left out)", "line 7, in tick: raise ValueError(x)"])
    [TracebackLine(line=7, function='tick', source='raise ValueError(x)')]
    """
    found = (_LINE.fullmatch(line) for line in lines)
    return [TracebackLine(int(match[1]), match[2], match[3]) for match in found if match]


def source_lines(source: bytes) -> list[str]:
    """Return the lines of a source as they can be shown; tabs are four blanks."""
    found = source.decode("utf-8", errors="replace")
    return [visible(line.expandtabs(4), LINE_MAX) for line in parser_lines(found)]


def _excerpt(source: Sequence[str], marked: Sequence[TracebackLine], actor: bytes) -> Code:
    last = marked[-1].line
    near = sorted({each.line for each in marked if abs(each.line - last) <= EXCERPT_MAX // 2})
    first, end = max(1, near[0] - AROUND), min(len(source), near[-1] + AROUND)
    note = f"lines {first} to {end} of {len(source)}"
    more = link("Whole source", f"{links.actor(actor)}#section-code")[0]
    lines = tuple(source[first - 1 : end])
    return Code("source", "Where in the source", lines, first=first, marked=tuple(near), note=note, more=more)


def node_url(reading: Reading) -> str:
    """Return the address by which this machine reaches the node."""
    options = reading.node.options
    host = options.host
    with suppress(ValueError):
        found = ip_address(host)
        host = HOST if found.is_unspecified else host
        host = f"[{host}]" if ":" in host else host
    return f"http://{host}:{options.port}" if options.port else "URL"


def schedule_command(reading: Reading) -> str:
    """Return the command that schedules a timer without an actor of one's own, under any mechanism."""
    height = reading.height + BLOCKS_AHEAD
    return f"trailboss schedule --height {height} --payload hello --url {node_url(reading)}"
