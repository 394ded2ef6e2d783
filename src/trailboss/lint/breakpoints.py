"""The rule about breakpoints."""

import ast
from collections.abc import Iterator

from trailboss.lint.actor_source import ActorSource
from trailboss.lint.catalogue import BREAKPOINT
from trailboss.lint.places import finding_at
from trailboss.lint.records import LintFinding
from trailboss.vm.rules import breakpoint_name


def left_breakpoints(source: ActorSource) -> Iterator[LintFinding]:
    """Yield every statement ``breakpoint()``. Decision: D-118."""
    for node in ast.walk(source.tree):
        name = breakpoint_name(node)
        if name is not None:
            what = "only a development chain with the native engine takes a source with breakpoint(). Remove it before "
            what += "you deploy elsewhere"
            yield finding_at(BREAKPOINT, name, source.lines, what)
