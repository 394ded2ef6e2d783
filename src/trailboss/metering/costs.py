"""What source code costs: static prices of expressions and statement headers, from the cost table.

A cost depends on the program's text alone, so it is the same on every interpreter and version. Code that runs later or
repeatedly (a function's or lambda's body, a comprehension's items) is priced where it runs. Decision: D-21, D-32.
"""

import ast
from collections.abc import Iterable
from typing import Final

from trailboss.params import SourceCostParams

_FIELDS: Final = """Name=name Constant=constant Attribute=attribute Subscript=subscript Call=call keyword=keyword
    BinOp=binary_operation UnaryOp=unary_operation IfExp=conditional List=list_display Tuple=tuple_display
    Set=set_display Dict=dict_display ListComp=list_comprehension SetComp=set_comprehension
    DictComp=dict_comprehension GeneratorExp=generator Lambda=lambda_ Starred=starred Slice=slice
    NamedExpr=named_expression Yield=yield_ YieldFrom=yield_ Await=await_ AugAssign=augmented_assignment
    AnnAssign=assignment Return=return_ Delete=delete Raise=raise_ Assert=assert_ If=if_ For=loop AsyncFor=loop
    While=loop Try=try_ TryStar=try_ FunctionDef=function AsyncFunctionDef=function ClassDef=class_ Break=jump
    Continue=jump Match=match"""
"""Kinds of syntax nodes, and the fields of the cost table that price them."""
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class SourcePrices:
    """The cost table by kind of syntax node."""

    __slots__ = ("_by_kind", "params")

    def __init__(self, params: SourceCostParams) -> None:
        self.params = params
        pairs = (pair.split("=") for pair in _FIELDS.split())
        self._by_kind: dict[type[ast.AST], int] = {getattr(ast, kind): getattr(params, field) for kind, field in pairs}

    def expression(self, node: ast.AST | None) -> int:
        """Return the cycles of one expression, without its deferred parts."""
        if node is None:
            return 0
        match node:
            case ast.Name() | ast.Constant():
                return self._by_kind[type(node)]
            case ast.BoolOp(values=values):
                return self.params.boolean_operation * (len(values) - 1) + self.expressions(values)
            case ast.Compare(left=left, comparators=others):
                return self.params.comparison * len(others) + self.expression(left) + self.expressions(others)
            case ast.JoinedStr():
                return self.params.formatted_string + self._formatted(node)
            case ast.Lambda(args=arguments):
                return self.params.lambda_ + self._defaults(arguments)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._by_kind[type(node)] + self.expression(node.generators[0].iter)
        children = (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr | ast.keyword))
        return self._by_kind.get(type(node), 0) + self.expressions(children)

    def expressions(self, nodes: Iterable[ast.AST | None]) -> int:
        """Return the cycles of several expressions together."""
        return sum(self.expression(node) for node in nodes)

    def header(self, statement: ast.stmt) -> int:
        """Return the cycles of a simple statement, or of what a compound one evaluates before its blocks."""
        base = self._by_kind.get(type(statement), 0)
        match statement:
            case ast.Assign(targets=targets, value=value):
                return self.params.assignment * len(targets) + self.expressions(targets) + self.expression(value)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                return self.params.import_ * len(names)
            case ast.If(test=test) | ast.While(test=test):
                return base + self.expression(test)
            case ast.For(iter=source) | ast.AsyncFor(iter=source):
                return base + self.expression(source)
            case ast.With(items=items) | ast.AsyncWith(items=items):
                parts = (part for item in items for part in (item.context_expr, item.optional_vars))
                return self.params.with_ * len(items) + self.expressions(parts)
            case ast.Try() | ast.TryStar():
                return base
            case ast.Match(subject=subject, cases=cases):
                return base + self.expression(subject) + sum(self._case(case) for case in cases)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                annotations = self.expression(statement.returns) + self._defaults(statement.args)
                return base + annotations + self._decorators(statement.decorator_list)
            case ast.ClassDef(bases=bases, keywords=keywords):
                return base + self.expressions([*bases, *keywords]) + self._decorators(statement.decorator_list)
        return base + self.expressions(each for each in ast.iter_child_nodes(statement) if isinstance(each, ast.expr))

    def items(self, node: Comprehension) -> list[int]:
        """Return, for each ``for`` of a comprehension, the cycles of one of its turns."""
        inner = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        following = [[each.iter] for each in node.generators[1:]] + [inner]
        return [
            self.params.loop_turn + self.expression(each.target) + self.expressions([*each.ifs, *after])
            for each, after in zip(node.generators, following, strict=True)
        ]

    def _formatted(self, node: ast.JoinedStr) -> int:
        # How the text between the braces is cut into constants differs between versions, so it costs nothing.
        total = 0
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                total += self.params.formatted_value + self.expression(part.value)
                if isinstance(part.format_spec, ast.JoinedStr):
                    total += self._formatted(part.format_spec)
        return total

    def _defaults(self, arguments: ast.arguments) -> int:
        everyone = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        annotations = (each.annotation for each in everyone if each is not None)
        return self.expressions([*arguments.defaults, *arguments.kw_defaults, *annotations])

    def _decorators(self, decorators: list[ast.expr]) -> int:
        return self.params.call * len(decorators) + self.expressions(decorators)

    def _case(self, case: ast.match_case) -> int:
        nodes = [node for node in ast.walk(case.pattern) if isinstance(node, ast.pattern)]
        values = sum(self.expression(node.value) for node in nodes if isinstance(node, ast.MatchValue))
        return self.params.match_case * len(nodes) + values + self.expression(case.guard)
