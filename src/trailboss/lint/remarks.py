"""Comments that ignore findings: ``# trailboss: ignore[TB005] the reason``, on the line or alone above it."""

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from trailboss.lint.catalogue import IGNORE, RULES
from trailboss.lint.places import finding_in
from trailboss.lint.records import LintFinding

MARKER: Final = "trailboss:"
SHOWN_MAX: Final = 40  # characters of a comment that a message repeats
_REMARK: Final = re.compile(r"#\s*trailboss:\s*ignore\s*\[([^\]]*)\]")
_BEGUN: Final = re.compile(r"#\s*trailboss:")


class Remark(Struct, frozen=True):
    """One comment of this kind."""

    line: int  # where it stands
    column: int
    subject: int  # the line that it is about
    rules: tuple[str, ...]  # ids; empty if the comment cannot be read
    text: str


def remarks(text: str) -> list[Remark]:
    """Return the comments of a source that ignore findings."""
    if MARKER not in text:
        return []
    found: list[Remark] = []
    alone: list[tuple[tokenize.TokenInfo, tuple[str, ...]]] = []
    is_fresh = True  # whether no code has been read on this line
    for each in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
        if each.type == tokenize.COMMENT and _BEGUN.match(each.string):
            match = _REMARK.match(each.string)
            rules = tuple(filter(None, (rule.strip() for rule in match[1].split(",")))) if match else ()
            if is_fresh:
                alone.append((each, rules))
            else:
                found.append(_remark(each, each.start[0], rules))
        elif each.type in (tokenize.NEWLINE, tokenize.NL):
            is_fresh = True
        elif each.type not in (tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
            found += [_remark(comment, each.start[0], rules) for comment, rules in alone]
            alone, is_fresh = [], False
    return found


def _remark(comment: tokenize.TokenInfo, subject: int, rules: tuple[str, ...]) -> Remark:
    return Remark(comment.start[0], comment.start[1] + 1, subject, rules, comment.string)


def without_ignored(
    findings: Iterable[LintFinding], comments: Iterable[Remark], unasked: frozenset[str]
) -> Iterator[LintFinding]:
    """Yield the findings that no comment ignores, then the comments that ignore nothing.

    Args:
        findings: Of one source.
        comments: Of the same.
        unasked: Rules that have not been looked for.
    """
    used: set[tuple[Remark, str]] = set()
    comments = list(comments)
    for each in findings:
        covering = [(remark, each.rule) for remark in comments if _covers(remark, each)]
        used.update(covering)
        if not covering:
            yield each
    for remark in comments:
        if not remark.rules:
            what = f"cannot read {remark.text[:SHOWN_MAX]!r}: write # trailboss: ignore[TB005] and the reason"
            yield finding_in(IGNORE, remark.line, remark.column, what)
        for rule in remark.rules:
            if rule not in RULES or not rule.startswith("TB"):
                what = f"{rule[:SHOWN_MAX]!r} cannot be ignored: name a rule from TB001 on"
                yield finding_in(IGNORE, remark.line, remark.column, what)
            elif (remark, rule) not in used and rule not in unasked:
                what = f"nothing breaks {rule} in line {remark.subject}. Remove the comment"
                yield finding_in(IGNORE, remark.line, remark.column, what)


def _covers(remark: Remark, finding: LintFinding) -> bool:
    return finding.rule in remark.rules and finding.rule.startswith("TB") and remark.subject == finding.line
