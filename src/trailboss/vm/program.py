"""A compiled actor: its instrumented code, and its handlers."""

import ast
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Final

from msgspec import Struct, field

from trailboss.metering.costs import FunctionNode
from trailboss.metering.instrument import instrument
from trailboss.metering.syntax import nodes_of
from trailboss.params import SourceCostParams
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.vm.rules import BREAKPOINT, breakpoint_name, is_continuation, is_sdk, parse, refusing

RESUME_SUFFIX: Final = "__resume"  # what the SDK appends to the name of a continuation for the handler that resumes it


class EntryPoint(Struct, frozen=True):
    """Where a frame begins."""

    class_name: str | None  # class of the method; None for a module-level function
    takes_payload: bool  # whether it takes an argument


class ClassPlan(Struct, frozen=True):
    """A class at module level, the names of its bases, and its callable methods with whether each takes a payload."""

    name: str
    bases: tuple[str, ...]
    methods: dict[str, bool]


class Program(Struct, frozen=True):
    """An actor's source, ready to run."""

    code: CodeType  # instrumented code of the module
    filename: str  # file name in that code and in tracebacks
    lines: tuple[str, ...]  # lines of the source
    spans: dict[int, int]  # last line of each function, by its first
    functions: dict[str, bool]  # callable module-level functions, and whether each takes a payload
    classes: tuple[ClassPlan, ...]  # classes at module level
    uses_sdk: bool  # whether it imports the SDK, the public one or our own
    has_breakpoint: bool = False  # whether it has the statement ``breakpoint()``
    entries: dict[str, EntryPoint] = field(default_factory=dict)  # found so far, by handler

    def handlers(self) -> frozenset[str]:
        """Return every name that can be called."""
        return frozenset(self.functions).union(*(each.methods for each in self.classes))

    def entry(self, handler: str) -> EntryPoint:
        """Return where a call of ``handler`` begins: a module-level function, else the method of the one class.

        Raises:
            Rejection: ``HANDLER_NOT_FOUND`` if there is none, or if several classes have such a method.
        """
        found = self.entries.get(handler)
        if found is None:
            found = self.entries[handler] = self._find_entry(handler)
        return found

    def _find_entry(self, handler: str) -> EntryPoint:
        if handler in self.functions:
            return EntryPoint(None, self.functions[handler])
        by_name = {each.name: each for each in self.classes}
        owners = {name: found for name in by_name if (found := _find_method(by_name, name, handler)) is not None}
        # A class that others extend is not the actor.
        extended = {base for name in owners for base in by_name[name].bases}
        owners = {name: takes for name, takes in owners.items() if name not in extended}
        if len(owners) == 1:
            ((name, takes),) = owners.items()
            return EntryPoint(name, takes)
        known = ", ".join(sorted(self.handlers())) or "none"
        what = f"handler {handler!r:.80} is not defined; this actor has: {known:.400}"
        if owners:
            what = f"handler {handler!r} is a method of several classes: {', '.join(owners)}; keep one of them"
        raise Rejection(RejectionReason.HANDLER_NOT_FOUND, what, handler=handler)


def compile_program(source: str, filename: str, prices: SourceCostParams, tree: ast.Module | None = None) -> Program:
    """Compile a source that `check_program` has accepted, or its tree, which is used up.

    Raises:
        Rejection: ``INVALID_DATA`` with line and column if it is no Python, or if its instrumented form has more blocks
            within one another than CPython compiles.
    """
    tree = tree or parse(source)
    nodes = nodes_of(tree)
    spans = {_first_line(node): node.end_lineno or node.lineno for node in nodes if isinstance(node, FunctionNode)}
    functions = {name: takes for node in _top_functions(tree.body) for name, takes in _callables(node, bound=False)}
    classes = tuple(_plan(node) for node in tree.body if isinstance(node, ast.ClassDef))
    uses_sdk = any(is_sdk(module) for module in _imported(nodes))
    has_breakpoint = BREAKPOINT in source and any(breakpoint_name(node) is not None for node in nodes)
    del nodes
    with refusing(source):
        code = compile_tree(instrument(tree, prices, guarded=True), filename)
    return Program(code, filename, tuple(source.splitlines()), spans, functions, classes, uses_sdk, has_breakpoint)


def compile_tree(tree: ast.Module, filename: str) -> CodeType:
    """Compile an instrumented tree independently of this interpreter's switches."""
    return compile(tree, filename, "exec", dont_inherit=True, optimize=0)


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield module


def _find_method(classes: dict[str, ClassPlan], name: str, handler: str) -> bool | None:
    waiting = [name]
    seen: list[str] = []
    while waiting:
        plan = classes.get(waiting.pop(0))
        if plan is None or plan.name in seen:
            continue
        if handler in plan.methods:
            return plan.methods[handler]
        seen.append(plan.name)
        waiting += plan.bases
    return None


def _first_line(node: FunctionNode) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _top_functions(body: list[ast.stmt]) -> Iterator[FunctionNode]:
    """Yield the functions at module level, including those in branches of its statements."""
    for statement in body:
        if isinstance(statement, FunctionNode):
            yield statement
        elif not isinstance(statement, ast.ClassDef):
            yield from _top_functions([each for each in ast.iter_child_nodes(statement) if isinstance(each, ast.stmt)])


def _plan(node: ast.ClassDef) -> ClassPlan:
    methods = {
        name: takes
        for each in node.body
        if isinstance(each, FunctionNode)
        for name, takes in _callables(each, bound=not _is_static(each))
    }
    return ClassPlan(node.name, tuple(each.id for each in node.bases if isinstance(each, ast.Name)), methods)


def _callables(node: FunctionNode, *, bound: bool) -> Iterator[tuple[str, bool]]:
    """Yield a definition's callable names, and whether it takes a payload."""
    if node.name.startswith("_"):
        return
    places = len(node.args.posonlyargs) + len(node.args.args) - (1 if bound else 0)
    yield node.name, places > 0 or node.args.vararg is not None
    if any(is_continuation(each) for each in node.decorator_list):
        yield node.name + RESUME_SUFFIX, True


def _is_static(node: FunctionNode) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in node.decorator_list)
