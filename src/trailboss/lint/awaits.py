"""The rule about continuations: what an await loses. The SDK runs what follows an await in another transaction.

Source: cowboy-facts §3. The SDK splits a continuation at the awaits that are statements of their own. What comes after
one runs as another function, with ``self``, the variable ``ctx`` and the reply, called ``msg``, and nothing else.
"""

import ast
from collections.abc import Iterable, Iterator
from typing import Final

from trailboss.lint.actor_source import SELF, ActorSource, Routine
from trailboss.lint.catalogue import AWAIT
from trailboss.lint.places import finding_at
from trailboss.lint.records import LintFinding
from trailboss.metering.syntax import nodes_of
from trailboss.vm.rules import is_continuation

AWAITS_MAX: Final = 8  # in one continuation. Source: cowboy-facts §3
CONTEXT: Final = "ctx"
REPLY: Final = "msg"
Segment = list[ast.AST]
"""What runs in one transaction, in order."""


def lost_state(source: ActorSource) -> Iterator[LintFinding]:
    """Yield what continuations use after an await and had only before, and the awaits that the SDK does not split."""
    for routine in source.routines.values():
        if any(is_continuation(each) for each in routine.node.decorator_list):
            yield from _lost(source, routine)


def _lost(source: ActorSource, routine: Routine) -> Iterator[LintFinding]:
    segments, awaits = _segments(routine.node.body)
    for node in routine.nodes:
        if isinstance(node, ast.Await) and node not in awaits:
            what = "the SDK does not go on after this await. Make it a statement of its own at the top of the "
            what += "function, ctx.answer = await …"
            yield finding_at(AWAIT, node, source.lines, what)
    if len(awaits) > AWAITS_MAX:
        what = f"{routine.name} has {len(awaits)} awaits, and the SDK allows {AWAITS_MAX}. Make two continuations of it"
        yield finding_at(AWAIT, routine.node, source.lines, what)
    if not awaits:
        return
    known = {*routine.parameters, *_bound(segments[0])}
    attributes = set(_attributes(segments[0]))
    for segment in segments[1:]:
        here, own = set(_bound(segment)), set(_attributes(segment))
        yield from _uses(source, segment, known - here, attributes - own)
        known |= here
        attributes |= own


def _segments(body: list[ast.stmt]) -> tuple[list[Segment], list[ast.Await]]:
    """Return what runs in each transaction, and the awaits between them.

    The arguments of an await belong to what comes before it, and its target to what comes after it.
    """
    segments: list[Segment] = [[]]
    awaits = []
    for statement in body:
        match statement:
            case ast.Assign(targets=[target], value=ast.Await() as found):
                awaits.append(found)
                segments[-1] += nodes_of(found)
                segments.append(list(nodes_of(target)))
            case ast.Expr(value=ast.Await() as found):
                awaits.append(found)
                segments[-1] += nodes_of(found)
                segments.append([])
            case _:
                segments[-1] += nodes_of(statement)
    return segments, awaits


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.alias(name=name, asname=None) | ast.alias(asname=str(name)):
                yield name
            case ast.arg(arg=name):
                yield name


def _attributes(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def _uses(source: ActorSource, segment: Segment, names: set[str], attributes: set[str]) -> Iterator[LintFinding]:
    """Yield the first use of each name and attribute that an earlier transaction had."""
    gone = names - {SELF, CONTEXT}
    left = set(attributes)
    for node in segment:
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in gone:
                gone.discard(name)
                what = f"{name} is gone after the await: this runs in another transaction. Keep it, ctx.{name} = {name}"
                if name == REPLY:
                    what = f"after the await {REPLY} is the reply, not what the function was called with. Keep what "
                    what += f"you need of it in {CONTEXT}"
                yield finding_at(AWAIT, node, source.lines, what)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()) if name in left:
                left.discard(name)
                what = f"self.{name} is gone after the await: each transaction makes the actor afresh. Keep it in "
                what += f"{CONTEXT}.{name}, or in the storage"
                yield finding_at(AWAIT, node, source.lines, what)
