"""An actor's source as the linter reads it: its functions, what they call, what names stand for."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from trailboss.lint.catalogue import DETERMINISM, refusal_id
from trailboss.lint.places import finding_in
from trailboss.lint.records import LintFinding
from trailboss.metering.costs import FunctionNode
from trailboss.metering.syntax import nodes_of, parts
from trailboss.params import ChainParams
from trailboss.primitives.errors import Rejection
from trailboss.vm.program import Program, compile_program
from trailboss.vm.rules import HOST, LANE_SDK, SDK, find_faults

SELF: Final = "self"
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_PLACED: Final = re.compile(r"line (\d+), column (\d+): ")


class Routine(Struct, frozen=True, eq=False):
    """A function at module level, or a method of a class there, with all functions within it."""

    name: str
    owner: str  # the method's class; empty for a function
    node: FunctionNode
    nodes: tuple[ast.AST, ...]  # everything within it
    values: Mapping[str, list[ast.expr]]  # what is assigned to each local name; empty for what is bound in other ways

    @property
    def parameters(self) -> list[str]:
        """Names of its positional parameters, without ``self``."""
        names = [each.arg for each in (*self.node.args.posonlyargs, *self.node.args.args)]
        return names[1:] if self.owner and not _is_static(self.node) else names


class ActorSource(Struct, frozen=True, eq=False):
    """A source that a deployment accepts."""

    lines: tuple[str, ...]
    tree: ast.Module
    program: Program
    names: Mapping[str, str]  # what imported names stand for, as ``cowboy_sdk.runtime``
    routines: Mapping[tuple[str, str], Routine]  # by class, empty for none, and name
    classes: Mapping[str, ast.ClassDef]
    parents: Mapping[ast.AST, ast.AST]  # the node around each node
    # What is assigned to names of the module, under the empty name, and of each class.
    values: Mapping[str, Mapping[str, list[ast.expr]]]


def read_actor(text: str, params: ChainParams) -> ActorSource | list[LintFinding]:
    """Return a source, or why a deployment refuses it."""
    try:
        tree, faults = find_faults(text, params.limits.source_bytes_max, breakpoints=True)
        if faults:
            return [
                finding_in(DETERMINISM, line, column, f"{fault.what}; {fault.fix}" if fault.fix else fault.what)
                for line, column, fault in faults
            ]
        program = compile_program(text, "<actor>", params.source)
    except Rejection as rejection:
        place = _PLACED.search(rejection.what)
        line, column = map(int, place.groups()) if place else (1, 1)
        # What follows in further lines is the program's line itself.
        what = (rejection.what.replace(place[0], "", 1) if place else rejection.what).partition("\n")[0]
        return [finding_in(refusal_id(rejection.reason), line, column, what)]
    parents: dict[ast.AST, ast.AST] = {}
    for node in nodes_of(tree):
        parents.update(dict.fromkeys(parts(node), node))
    classes = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
    routines = {(each.owner, each.name): each for each in _routines(tree, classes)}
    scopes = {"": tree.body} | {name: node.body for name, node in classes.items()}
    values = {name: assigned(_plain_nodes(body)) for name, body in scopes.items()}
    lines = tuple(_LINE_END.split(text))
    return ActorSource(lines, tree, program, dict(_imported(parents)), routines, classes, parents, values)


def _routines(tree: ast.Module, classes: Mapping[str, ast.ClassDef]) -> Iterator[Routine]:
    for statement in _statements(tree.body):
        if isinstance(statement, FunctionNode):
            yield _routine("", statement)
    for name, node in classes.items():
        for each in node.body:
            if isinstance(each, FunctionNode):
                yield _routine(name, each)


def _routine(owner: str, node: FunctionNode) -> Routine:
    nodes = tuple(nodes_of(node))
    return Routine(node.name, owner, node, nodes, assigned(nodes))


def _plain_nodes(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """Yield what stands in a scope itself, and not in functions and classes within it."""
    for statement in _statements(body):
        if not isinstance(statement, FunctionNode | ast.ClassDef) and not hasattr(statement, "body"):
            yield from nodes_of(statement)


def assigned(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    """Return what statements assign to each name; an empty list for a name that is bound in another way as well."""
    found: dict[str, list[ast.expr]] = {}
    bound: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] = bound.get(node.id, 0) + 1
        for target, value in assignments(node):
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(value)
    return {name: found[name] if len(found.get(name, ())) == count else [] for name, count in bound.items()}


def assignments(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """Return each target of a node with the value that it is assigned; none if the node assigns nothing."""
    match node:
        case ast.Assign():
            return [(target, node.value) for target in node.targets]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return [(target, value)]
    return []


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements at module level, those in branches included, and no others."""
    for statement in body:
        yield statement
        if not isinstance(statement, FunctionNode | ast.ClassDef):
            yield from _statements(each for each in ast.iter_child_nodes(statement) if isinstance(each, ast.stmt))


def _imported(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    yield HOST, HOST  # the global; an import gives the same
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (root, root)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _is_static(node: FunctionNode) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in node.decorator_list)


def meaning(source: ActorSource, node: ast.expr) -> str:
    """Return what an expression of names stands for, as ``pvm_host.schedule_timer``; empty if it is none of these.

    The modules of the public SDK are left out, since each name means one thing: ``cowboy_sdk.set_interval``.
    """
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    first = source.names.get(node.id)
    if first is None:
        return ".".join((node.id, *reversed(path))) if node.id == SELF else ""
    whole = ".".join((first, *reversed(path)))
    root, _, rest = whole.partition(".")
    if root != SDK:
        return whole
    if rest.endswith("timer.schedule"):
        return f"{SDK}.schedule"
    return f"{SDK}.{rest.rpartition('.')[2]}" if rest else whole


def called(source: ActorSource, node: ast.AST) -> str:
    """Return what a call calls, by its meaning; empty if it is no call, or of something else."""
    return meaning(source, node.func) if isinstance(node, ast.Call) else ""


def world_call(source: ActorSource, node: ast.AST) -> str:
    """Return the name of a call of host or SDKs, as ``set_state``; empty if it is another one."""
    whole = called(source, node)
    return next((whole[len(root) + 1 :] for root in (HOST, SDK, LANE_SDK) if whole.startswith(f"{root}.")), "")


def method_of(source: ActorSource, owner: str, name: str) -> Routine | None:
    """Return the method that a class has or inherits from another one of the source."""
    waiting, seen = [owner], list[str]()
    while waiting:
        each = waiting.pop(0)
        if each in seen or each not in source.classes:
            continue
        found = source.routines.get((each, name))
        if found is not None:
            return found
        seen.append(each)
        waiting += [base.id for base in source.classes[each].bases if isinstance(base, ast.Name)]
    return None


def handler_of(source: ActorSource, name: str) -> Routine | None:
    """Return the function that a call of a handler runs; None if the call is refused."""
    try:
        entry = source.program.entry(name)
    except Rejection:
        return None
    if entry.class_name is None:
        return source.routines.get(("", name))
    return method_of(source, entry.class_name, name)


def named_routine(source: ActorSource, routine: Routine, node: ast.AST) -> Routine | None:
    """Return the function of the source that a node within another one names, to call it or to pass it on."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            return source.routines.get(("", name))
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if routine.owner:
            return method_of(source, routine.owner, name)
    return None


def referred(source: ActorSource, routine: Routine) -> Iterator[Routine]:
    """Yield the functions of the source that a function names."""
    found = (named_routine(source, routine, node) for node in routine.nodes)
    yield from (each for each in found if each is not None)


def reached(source: ActorSource, routine: Routine) -> list[Routine]:
    """Return a function and all that it can run of the source."""
    found, waiting = [], [routine]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.append(each)
            waiting += referred(source, each)
    return found


def is_sdk_actor(source: ActorSource, name: str) -> bool:
    """Whether a class has the SDK's decorator ``@actor``, which decides who may call its methods."""
    node = source.classes.get(name)
    return node is not None and any(meaning(source, each) == f"{SDK}.actor" for each in node.decorator_list)


def decorators(source: ActorSource, routine: Routine) -> dict[str, ast.expr]:
    """Return the SDK's decorators of a function, by name."""
    found = {}
    for each in routine.node.decorator_list:
        whole = meaning(source, each.func if isinstance(each, ast.Call) else each)
        found[whole.rpartition(".")[2] or ast.unparse(each)] = each
    return found
