"""Traces: what a block, a transaction or a timer's latest fire did. A page is made on request."""

from typing import Final

from trailboss.explorer import cells, links
from trailboss.explorer import documents as parts
from trailboss.explorer.links import Query, parse_id
from trailboss.explorer.page_context import Reading
from trailboss.node.traces import TraceBusyError
from trailboss.primitives.octets import Hash32
from trailboss.views.text import counted

CALLS: Final = "calls"
FRAMES: Final = "frames"
LINES: Final = "lines"
SHOWN: Final = {CALLS: "host calls", FRAMES: "frames alone", LINES: "host calls, and cycles by line"}


def trace(reading: Reading, query: Query, subject: str) -> parts.Document:
    """Return the page of a block by its height, of a transaction by its hash, or of a timer by its id."""
    is_height = subject.isascii() and subject.isdecimal() and len(subject) < 2 * Hash32.WIDTH
    found = int(subject) if is_height else Hash32(parse_id(subject, (Hash32.WIDTH,)))
    shown = query.choice("show", SHOWN, CALLS)
    title = f"Trace of {found if isinstance(found, int) else str(found)[:10]}"
    try:
        traces = reading.node.traces.trace(reading.view, found)
    except TraceBusyError as error:
        again = cells.line(f"{error}. ", cells.link("Try again", links.trace(found)))
        busy = parts.Notice("busy", "This node makes another trace", again, tone="warn")
        return parts.Document(title, "Trace", (busy,), status=503)
    choice = parts.Filter("show", "Show", shown, options=tuple(SHOWN.items()))
    section = parts.CallTree(
        "tree",
        "Frames and host calls",
        traces.tree(calls=shown != FRAMES, lines=shown == LINES),
        filters=(choice,),
        note=f"{counted(len(traces.traces), 'execution')} of block {traces.block_height:,}, built again",
        more=parts.Cell("as JSON", href=f"/trace/{found}"),
    )
    where = cells.line("in block ", cells.block(traces.block_height))
    about = where if isinstance(found, int) else (*cells.root(found), *cells.text(" "), *where)
    return parts.Document(title, "Trace", (section,), subject=about)
