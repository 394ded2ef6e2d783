"""Rewrites a syntax tree so that the program pays for itself as it runs.

Each basic block is charged up front; each function counts the depth of calls; each handler and ``finally`` prevents
exhaustion from being caught. The inserted calls go to the running frame's `trailboss.metering.gauge.Gauge`, by names
that actor code cannot use. They have the position of the code that they precede, or none, so that tracebacks,
debuggers and coverage see the program as written. Decision: D-32.
"""

import ast
from collections.abc import Sequence
from inspect import cleandoc
from typing import Final, TypeVar

from trailboss.metering.costs import Comprehension, FunctionNode, SourcePrices
from trailboss.metering.syntax import (
    NOWHERE,
    PREFIX,
    in_place,
    instrument_call,
    position,
    sized,
    sized_statement,
    takes_many,
    value_names,
)
from trailboss.params import SourceCostParams
from trailboss.primitives.errors import InvariantError

HERE: Final = PREFIX + "here"  # the local that holds the depth at which a function was called
SETTERS: Final = ("__setattr__", "__delattr__")
_BRANCHING: Final = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match)
SyntaxNode = TypeVar("SyntaxNode", bound=ast.AST)


def instrument(tree: ast.Module, prices: SourceCostParams, *, guarded: bool, sees_data: bool = True) -> ast.Module:
    """Rewrite a freshly parsed module's tree in place, and return it.

    A module that does not see the data of programs is charged for its text alone, not for sizes.

    In a guarded program, stores into attributes and items are checked, so that it changes its own objects only, never
    shared ones. The SDK itself is not guarded.
    """
    return _Rewriter(SourcePrices(prices), guarded, sees_data).module(tree)


class _Rewriter:
    """One pass over one tree."""

    __slots__ = ("guarded", "placed", "prices", "sees_data", "strings", "values")

    def __init__(self, prices: SourcePrices, guarded: bool, sees_data: bool) -> None:
        self.prices = prices
        self.guarded = guarded
        self.sees_data = sees_data
        # Whether `HERE` is the depth at which the rewritten code runs. False for code that runs elsewhere than it is
        # written: generators, lambdas and generator expressions.
        self.placed = True
        self.values: frozenset[str] = frozenset()  # names that the program can bind to any value, ``str`` among them
        self.strings = False  # whether annotations are kept as text and never run

    def module(self, tree: ast.Module) -> ast.Module:
        self.values = frozenset(value_names(tree))
        self.strings = any(map(_keeps_text, tree.body))
        head = 0
        while head < len(tree.body) and _stays_first(tree.body[head], head):
            head += 1
        _clean_docstring(tree.body)
        tree.body[head:] = self.block(tree.body[head:], 0)
        return tree

    def block(self, statements: list[ast.stmt], extra: int) -> list[ast.stmt]:
        """Rewrite a run of statements; each basic block in it is charged before its first statement."""
        written: list[ast.stmt] = []
        pending: list[ast.stmt] = []
        cycles = extra
        for statement in statements:
            cycles += self.prices.header(statement)
            pending.append(statement)
            if isinstance(statement, _BRANCHING):
                written += self.charged(pending, cycles)
                pending, cycles = [], 0
        return written + self.charged(pending, cycles)

    def charged(self, statements: list[ast.stmt], cycles: int) -> list[ast.stmt]:
        written: list[ast.stmt] = [_statement("charge", [cycles], statements[0])] if cycles else []
        for each in statements:
            rewritten = self.statement(each)
            if self.sees_data:
                sized_statement(rewritten)
                written += in_place(rewritten, guarded=self.guarded)
            else:
                written.append(rewritten)
        return written

    def statement(self, node: ast.stmt) -> ast.stmt:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self.function(node)
            case ast.ClassDef(body=body):
                _clean_docstring(body)
                start = 1 if _is_docstring(body[0]) else 0
                node.body = body[:start] + (self.block(body[start:], 0) if body[start:] else [])
                return self.expressions(node)
            case ast.If(body=body, orelse=orelse):
                node.body, node.orelse = self.block(body, 0), self.optional(orelse)
            case ast.While(body=body, orelse=orelse):
                node.body, node.orelse = self.turn(body, self.prices.expression(node.test)), self.optional(orelse)
            case ast.For(body=body, orelse=orelse):
                node.body, node.orelse = self.turn(body, self.prices.expression(node.target)), self.optional(orelse)
            case ast.Try():
                return self.attempt(node)
            case ast.With(body=body):
                node.body = [_watched(self.block(body, 0), node)]
            case ast.Match(cases=cases):
                for case in cases:
                    case.body = self.block(case.body, 0)
                    case.guard = self.expression(case.guard)
        return self.expressions(node)

    def turn(self, body: list[ast.stmt], cycles: int) -> list[ast.stmt]:
        """Rewrite the body of a loop; every turn is charged."""
        first, rest = self.parted(body, self.prices.params.loop_turn + cycles)
        return [ast.Expr(self.turned(first, body[0]), **position(body[0])), *rest]

    def turned(self, cycles: int, at: ast.AST) -> ast.Call:
        return (
            instrument_call("turn", [cycles, _here()], at) if self.placed else instrument_call("charge", [cycles], at)
        )

    def caught(self, cycles: int, at: ast.AST) -> ast.Expr:
        place = _here() if self.placed else ast.Constant(None, **position(at))
        return _statement("caught", [cycles, place], at)

    def optional(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        return self.block(statements, 0) if statements else []

    def attempt(self, node: ast.Try) -> ast.Try:
        node.body = self.block(node.body, 0)
        for handler in node.handlers:
            cycles = self.prices.params.handler + self.prices.expression(handler.type)
            handler.body = [self.caught(cycles, handler.body[0]), *self.block(handler.body, 0)]
            handler.type = self.expression(handler.type)
        node.orelse = self.optional(node.orelse)
        if node.finalbody:
            caught = self.caught(self.prices.params.handler, node.finalbody[0])
            node.finalbody = [caught, *self.block(node.finalbody, 0)]
        return node

    def function(self, node: FunctionNode) -> FunctionNode:
        """Rewrite a definition: its body is entered, and left however it ends."""
        outer, self.placed = self.placed, not _yields(node)
        enter, leave = ("enter", "leave") if self.placed else ("begin", "end")
        _clean_docstring(node.body)
        start = 1 if _is_docstring(node.body[0]) else 0
        body = node.body[start:] or [ast.Pass(**NOWHERE)]
        first, rest = self.parted(body, self.prices.params.function_entry)
        entered = ast.Assign(
            [ast.Name(HERE, ast.Store(), **NOWHERE)], instrument_call(enter, [first], body[0]), **position(body[0])
        )
        left = _statement(leave, [_here()], None)
        node.body = [*node.body[:start], entered, ast.Try(rest, [], [], [left], **position(body[0]))]
        self.placed = outer
        for decorated in ("decorator_list", "args") if self.strings else ("decorator_list", "args", "returns"):
            setattr(node, decorated, self.rewritten(getattr(node, decorated)))
        return node

    def parted(self, body: list[ast.stmt], extra: int) -> tuple[int, list[ast.stmt]]:
        """Return the price of a body's first basic block plus ``extra``, and the body without that charge."""
        charge, *rest = self.block(body, extra)
        match charge:
            case ast.Expr(value=ast.Call(args=[ast.Constant(value=int(cycles))])):
                return cycles, rest
        raise InvariantError(f"a block of {extra} cycles and more begins without its charge: {ast.dump(charge)}")

    def expressions(self, node: SyntaxNode) -> SyntaxNode:
        """Rewrite the direct expressions of a node; its blocks are done already."""
        for field, value in ast.iter_fields(node):
            if self.strings and field in ("annotation", "returns"):
                continue
            if field not in ("body", "orelse", "cases") or isinstance(node, ast.expr):
                setattr(node, field, self.rewritten(value))
        return node

    def rewritten(self, value: object) -> object:
        if isinstance(value, list):
            return [self.rewritten(each) for each in value]
        if isinstance(value, ast.expr):
            return self.expression(value)
        if isinstance(value, ast.AST):
            return self.expressions(value)
        return value

    def expression(self, node: ast.expr | None) -> ast.expr | None:
        match node:
            case None | ast.Name() | ast.Constant():
                return node
            case ast.Lambda():
                return self.function_expression(node)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self.comprehension(node)
            case ast.Yield(value=value):
                given = self.expression(value) or ast.Constant(None, **position(node))
                node.value = instrument_call("suspend", [_here(), given], node)
                return instrument_call("resume", [_here(), node], node)
            case ast.YieldFrom(value=value):
                node.value = instrument_call("delegate", [_here(), self.kept(value)], node)
                return instrument_call("resume", [_here(), node], node)
        return self.sized(self.expressions(node))

    def sized(self, node: ast.expr) -> ast.expr:
        checked = _guarded(node) if self.guarded else node
        return sized(checked, self.values, guarded=self.guarded) if self.sees_data else checked

    def kept(self, node: ast.expr) -> ast.expr:
        return self.expression(node) or node

    def function_expression(self, node: ast.Lambda) -> ast.Lambda:
        node.args = self.expressions(node.args)
        entry = instrument_call(
            "enter", [self.prices.params.function_entry + self.prices.expression(node.body)], node.body
        )
        outer, self.placed = self.placed, False
        node.body = instrument_call("result", [entry, self.kept(node.body)], node.body)
        self.placed = outer
        return node

    def comprehension(self, node: Comprehension) -> Comprehension:
        """Rewrite a comprehension: a first condition, which always holds, charges each turn of each ``for``."""
        outer, self.placed = self.placed, self.placed and not isinstance(node, ast.GeneratorExp)
        for each, cycles in zip(node.generators, self.prices.items(node), strict=True):
            self.expressions(each)
            if self.sees_data and takes_many(each.target):
                each.iter = instrument_call("each_copied", [each.iter], each.iter)
            each.ifs.insert(0, ast.UnaryOp(ast.Not(), self.turned(cycles, each.target), **position(each.target)))
        if isinstance(node, ast.DictComp):
            node.key, node.value = self.kept(node.key), self.kept(node.value)
            self.sized(node)
        else:
            node.elt = self.kept(node.elt)
        self.placed = outer
        return node


def _guarded(node: ast.expr) -> ast.expr:
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in SETTERS:
            # The method itself is what is guarded, bound or not, so that no spelling of a store goes around.
            return instrument_call("setter", [node], node)
        case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
            node.value = instrument_call("own", [node.value], node)
    return node


def _watched(body: list[ast.stmt], node: ast.With) -> ast.Try:
    # An ``__exit__`` that answers True would swallow exhaustion; the gauge has to see it first.
    nothing = ast.Constant(None, **NOWHERE)
    watch: list[ast.stmt] = [_statement("caught", [0, nothing], None), ast.Raise(**NOWHERE)]
    everything = ast.Name(PREFIX + "everything", ast.Load(), **NOWHERE)
    return ast.Try(body, [ast.ExceptHandler(everything, None, watch, **NOWHERE)], [], [], **position(node))


def _yields(function: FunctionNode) -> bool:
    """Whether the function itself is a generator, nested functions aside."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += node.decorator_list
    return False


def _stays_first(statement: ast.stmt, index: int) -> bool:
    future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
    return future or (index == 0 and _is_docstring(statement))


def _keeps_text(statement: ast.stmt) -> bool:
    match statement:
        case ast.ImportFrom(module="__future__", names=names):
            return any(each.name == "annotations" for each in names)
    return False


def _is_docstring(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _clean_docstring(body: list[ast.stmt]) -> None:
    # Python 3.13 strips a docstring's indentation and earlier ones do not; here all of them do.
    match body:
        case [ast.Expr(value=ast.Constant(value=str(text)) as constant), *_]:
            constant.value = cleandoc(text)


def _here() -> ast.Name:
    return ast.Name(HERE, ast.Load(), **NOWHERE)


def _statement(name: str, arguments: Sequence[ast.expr | int], at: ast.AST | None) -> ast.Expr:
    where = NOWHERE if at is None else position(at)
    return ast.Expr(instrument_call(name, arguments, at), **where)
