"""Why something failed: the rule, what to do about it, and the actor's own lines on the way to it.

An actor's traceback names lines of the source that ran. The source of now is shown around them only where it still says
the same, as an actor may have been upgraded since.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from trailboss.explorer import cells, links
from trailboss.explorer.documents import Code, Content, Fact, Facts, Notice, Section, Step, Steps
from trailboss.explorer.page_context import Reading
from trailboss.explorer.text import visible
from trailboss.primitives.errors import ErrorObject
from trailboss.views.accounts import source_of

AROUND: Final = 4
"""Lines of source shown before and after those of the traceback."""
EXCERPT_MAX: Final = 60
LINE_MAX: Final = 400
CONTEXT_MAX: Final = 24
TOLD_APART: Final = ("traceback", "exception_type", "exception_message")
_ENDS: Final = re.compile(r"\r\n|\r|\n")
"""Where Python ends a line; `str.splitlines` knows more."""
_PLACE: Final = re.compile(r"line (\d{1,9}), in ([^:]*): (.*)", re.DOTALL)


class Place(Struct, frozen=True):
    """A line of a traceback.

    Attributes:
        line: Its number.
        function: It is in.
        source: The text of it.
    """

    line: int
    function: str
    source: str


def error_sections(error: ErrorObject, reading: Reading, actor: bytes | None) -> Iterator[Section]:
    """Yield what is known of a failure.

    Args:
        error: Of the receipt.
        reading: A look at the node.
        actor: Whose code ran; None if none did.
    """
    yield Notice("error", f"E{error.code} {error.slug}", content=cells.said(error.what, LINE_MAX), tone="bad")
    rows = [Fact("Why", cells.said(error.why)), Fact("What to do", cells.said(error.fix))]
    rows += [
        Fact(name.replace("_", " "), cells.said(str(value)))
        for name, value in list(error.context.items())[:CONTEXT_MAX]
        if name not in TOLD_APART and value is not None
    ]
    yield Facts("error-facts", "Why it failed", tuple(rows))
    yield from _trace(str(error.context.get("traceback") or ""), reading, actor)


def _trace(traceback: str, reading: Reading, actor: bytes | None) -> Iterator[Section]:
    lines = traceback.splitlines()
    if not lines:
        return
    steps = tuple(Step(*_step(line, is_last=at == len(lines) - 1)) for at, line in enumerate(lines))
    yield Steps("traceback", "The actor's own lines, the innermost last", steps)
    places = parse_places(lines)
    source = _source(reading, actor)
    if places and source and all(_still_says(source, place) for place in places):
        yield _excerpt(source, places, actor or b"")


def _step(line: str, *, is_last: bool) -> tuple[Content, Content, str]:
    place = parse_places([line])
    if not place:
        return cells.text("…"), cells.said(line, LINE_MAX), ""
    where = cells.text(f"line {place[0].line}")
    what = (*cells.text(f"in {visible(place[0].function, LINE_MAX)}: "), *_code(place[0].source))
    return where, what, "bad" if is_last else ""


def _code(source: str) -> Content:
    return cells.text(visible(source, LINE_MAX), kind="mono")


def parse_places(lines: Sequence[str]) -> list[Place]:
    """Return the lines of a traceback that name a place in the source.

    >>> parse_places(["(3 outer lines left out)", "line 7, in tick: raise ValueError(x)"])
    [Place(line=7, function='tick', source='raise ValueError(x)')]
    """
    found = (_PLACE.fullmatch(line) for line in lines)
    return [Place(int(match[1]), match[2], match[3]) for match in found if match]


def source_lines(source: bytes) -> list[str]:
    """Return the lines of a source as they can be shown; tabs are four blanks."""
    text = source.decode("utf-8", errors="replace")
    return [visible(line.expandtabs(4), LINE_MAX) for line in _ENDS.split(text)]


def _source(reading: Reading, actor: bytes | None) -> list[str]:
    account = None if actor is None else reading.view.account(actor)
    if account is None or not account.code_hash:
        return []
    return source_lines(source_of(reading.view, account.code_hash) or b"")


def _still_says(source: Sequence[str], place: Place) -> bool:
    if not 1 <= place.line <= len(source):
        return False
    return source[place.line - 1].strip() == visible(place.source, LINE_MAX).strip()


def _excerpt(source: Sequence[str], places: Sequence[Place], actor: bytes) -> Code:
    last = places[-1].line
    near = [place.line for place in places if abs(place.line - last) <= EXCERPT_MAX // 2]
    first = max(1, min(near) - AROUND)
    end = min(len(source), max(near) + AROUND)
    return Code(
        "source",
        "Where in the source",
        tuple(source[first - 1 : end]),
        first=first,
        marked=tuple(sorted(set(near))),
        note=f"lines {first} to {end} of {len(source)}",
        more=cells.link("Whole source", f"{links.actor(actor)}#section-code")[0],
    )
