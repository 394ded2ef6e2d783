"""Rules about loops: over storage without a bound, and over other actors without a catch."""

import ast
from collections.abc import Iterator
from typing import Final

from trailboss.lint.actor_source import SELF, ActorSource, Routine, assignments, named_routine, world_call
from trailboss.lint.catalogue import CALLS, LOOP
from trailboss.lint.places import finding_at
from trailboss.lint.records import LintFinding
from trailboss.metering.syntax import nodes_of, parts

READS: Final = ("get_state", "get_raw")
BOUNDS: Final = ("min", "BoundedRange", "islice", "scan_state_prefix")
"""Calls whose result is no larger than one of their arguments says."""
_COSTLY: Final = """call call_actor cancel_timer delete_state emit_event get_raw get_state schedule schedule_after
    schedule_timer schedule_timer_ex scan_state_prefix send send_message set_raw set_state set_timeout
    transfer_balance"""
COSTLY: Final = frozenset(_COSTLY.split())
"""Calls of which a fire can afford only so many."""
ACTOR_CALLS: Final = ("call", "call_actor")
BOUND_BY_HAND: Final = "bounded_loop"
ADVICE: Final = (
    "the loop turns as often as the storage says, and one day a call cannot pay for it. Take at most so many at a "
    "time, as range(min(BATCH, count)) does, and go on in the next fire"
)
PASSES_MAX: Final = 5  # how often values are followed against the order of the source


def unbounded_loops(source: ActorSource) -> Iterator[LintFinding]:
    """Yield the loops with calls of the host whose number of turns stands in the storage."""
    stored = _stored_results(source)
    for routine in source.routines.values():
        if any(BOUND_BY_HAND in ast.unparse(each) for each in routine.node.decorator_list):
            continue
        names = _stored_names(source, routine, stored)
        for node in routine.nodes:
            turn: list[ast.AST]
            match node:
                case ast.For(iter=over, body=body):
                    is_unbounded, turn = _is_stored(source, routine, over, stored, names), [*body]
                case (
                    ast.ListComp(generators=[ast.comprehension(iter=over), *_])
                    | ast.GeneratorExp(generators=[ast.comprehension(iter=over), *_])
                ):
                    is_unbounded, turn = _is_stored(source, routine, over, stored, names), [node.elt]
                case ast.While(test=test, body=body):
                    is_unbounded, turn = _counts_to_nothing(source, routine, node, stored, names), [test, *body]
                case _:
                    continue
            if is_unbounded and any(_is_costly(source, each) for part in turn for each in nodes_of(part)):
                yield finding_at(LOOP, node, source.lines, ADVICE)


def _is_costly(source: ActorSource, node: ast.AST) -> bool:
    return world_call(source, node) in COSTLY or _is_storage(node)


def _is_storage(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="storage")):
            return name == SELF
        case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr="storage"))):
            return name == SELF
    return False


def _counts_to_nothing(
    source: ActorSource, routine: Routine, node: ast.While, stored: set[Routine], names: set[str]
) -> bool:
    """Return whether a ``while`` ends by what it finds in the storage alone: it asks that, or has no condition."""
    if isinstance(node.test, ast.Constant):
        ifs = (each for each in nodes_of(node) if isinstance(each, ast.If))
        ends = [each.test for each in ifs if isinstance(each.body[-1], ast.Break | ast.Return)]
        return bool(ends) and all(_is_stored(source, routine, each, stored, names) for each in ends)
    changed = {each.id for each in nodes_of(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    match node.test:
        case ast.Compare(left=ast.Name(id=counter), comparators=[bound]) if counter in changed:
            # A counter that grows ends at its bound; one that falls to a constant began at its own value.
            deciding = node.test.left if isinstance(bound, ast.Constant) else bound
            return _is_stored(source, routine, deciding, stored, names)
    return _is_stored(source, routine, node.test, stored, names)


def _is_stored(source: ActorSource, routine: Routine, node: ast.expr, stored: set[Routine], names: set[str]) -> bool:
    """Return whether a value comes from the storage, other than through what bounds it."""
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    name = world_call(source, node) or called
    if name in BOUNDS or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.upper):
        return False
    if name in READS or _is_storage(node):
        return True
    match node:
        case ast.Name(id=local):
            return local in names
        # What is taken away, and where a range begins, make it no longer.
        case ast.BinOp(left=first, op=ast.Sub()):
            return _is_stored(source, routine, first, stored, names)
        case ast.Call(func=ast.Name(id="range"), args=[_, end, *_]):
            return _is_stored(source, routine, end, stored, names)
    if isinstance(node, ast.Call) and named_routine(source, routine, node.func) in stored:
        return True
    return any(_is_stored(source, routine, each, stored, names) for each in parts(node) if isinstance(each, ast.expr))


def _stored_names(source: ActorSource, routine: Routine, stored: set[Routine]) -> set[str]:
    """Return the local names whose values come from the storage."""
    names: set[str] = set()
    given = [pair for node in routine.nodes for pair in assignments(node)]
    for _ in range(PASSES_MAX):
        before = len(names)
        for pair in given:
            names.update(_named(source, routine, pair, stored, names))
        if len(names) == before:
            break
    return names


def _named(
    source: ActorSource, routine: Routine, pair: tuple[ast.expr, ast.expr], stored: set[Routine], names: set[str]
) -> Iterator[str]:
    (target, value), pairs = pair, [pair]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(target.elts, value.elts, strict=False))
    for each, part in pairs:
        if _is_stored(source, routine, part, stored, names):
            yield from (name.id for name in nodes_of(each) if isinstance(name, ast.Name) and name.id != SELF)


def _stored_results(source: ActorSource) -> set[Routine]:
    """Return the functions that return what the storage holds."""
    found: set[Routine] = set()
    for _ in range(PASSES_MAX):
        before = len(found)
        for each in source.routines.values():
            if each not in found and _returns_stored(source, each, found):
                found.add(each)
        if len(found) == before:
            break
    return found


def _returns_stored(source: ActorSource, routine: Routine, stored: set[Routine]) -> bool:
    names = _stored_names(source, routine, stored)
    returned = (node.value for node in routine.nodes if isinstance(node, ast.Return) and node.value is not None)
    return any(_is_stored(source, routine, each, stored, names) for each in returned)


def uncaught_calls(source: ActorSource) -> Iterator[LintFinding]:
    """Yield the calls of other actors in a loop that are not caught within it."""
    for routine in source.routines.values():
        for node in routine.nodes:
            if world_call(source, node) in ACTOR_CALLS and isinstance(node, ast.Call) and _ends_loop(source, node):
                what = "an actor that fails here takes back what the loop has done for the others. Catch HostError, or "
                what += "the SDK's ActorCallError, within the loop"
                yield finding_at(CALLS, node, source.lines, what)


def _ends_loop(source: ActorSource, node: ast.AST) -> bool:
    """Return whether what a call raises leaves a loop: no ``try`` with handlers stands between them."""
    while node in source.parents:
        inner, node = node, source.parents[node]
        match node:
            case ast.Try(handlers=[_, *_], body=body) if inner in body:
                return False
            case ast.For() | ast.While() | ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
                return not (isinstance(node, ast.For) and inner is node.iter)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                return False
    return False
