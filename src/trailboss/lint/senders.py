"""Whether a function looks at who calls it."""

import ast
from typing import Final

from trailboss.lint.actor_source import SELF, ActorSource, Routine, assignments, world_call
from trailboss.metering.syntax import nodes_of

KEYS: Final = ("sender", "deliver_id")
"""Facts of the context that only some callers have."""
READINGS: Final = ("get_sender", "sender", "current_delivery")
KEEPERS: Final = ("set_state", "set_raw", "emit_event", "encode", "dumps")
"""Calls that only keep or show what they are given."""
_TESTS: Final = (ast.Compare, ast.If, ast.IfExp, ast.Assert, ast.While, ast.Match)


def checks_sender(source: ActorSource, routine: Routine) -> bool:
    """Return whether something in a function depends on its caller: a comparison, a test, a call with it."""
    asked = [node for node in routine.nodes if _reads_sender(source, node)]
    kept = {name for node in asked for name in _kept_in(source, node)}
    asked += [
        node
        for node in routine.nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in kept
    ]
    return any(_decides(source, node) for node in asked)


def _reads_sender(source: ActorSource, node: ast.AST) -> bool:
    match node:
        case ast.Subscript(slice=ast.Constant(value=key), ctx=ast.Load()):
            return key in KEYS
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=key), *_]):
            return key in KEYS
        case ast.Attribute(value=ast.Name(id=name), attr="sender", ctx=ast.Load()):
            return name == SELF
    return world_call(source, node) in READINGS


def _kept_in(source: ActorSource, node: ast.AST) -> list[str]:
    """Return the local names that are assigned from a node."""
    while not isinstance(node, ast.stmt):
        node = source.parents[node]
    return [each.id for target, _ in assignments(node) for each in nodes_of(target) if isinstance(each, ast.Name)]


def _decides(source: ActorSource, node: ast.AST) -> bool:
    while not isinstance(node, ast.stmt):
        node = source.parents[node]
        if isinstance(node, _TESTS):
            return True
        if isinstance(node, ast.Call) and _is_helper(source, node):
            return True
    return False


def _is_helper(source: ActorSource, node: ast.Call) -> bool:
    """Return whether a call may look at what it is given."""
    if world_call(source, node):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name not in KEEPERS and name != "get"
