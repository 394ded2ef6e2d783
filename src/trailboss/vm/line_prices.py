"""How the cycles of a program's basic blocks are split among the lines of their statements.

Source: `trailboss.metering.instrument`, which charges a block in one sum before its first statement.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import dropwhile

from trailboss.metering.costs import SourcePrices
from trailboss.metering.syntax import nodes_of
from trailboss.params import SourceCostParams
from trailboss.vm.rules import parse

Split = tuple[tuple[int, int], ...]
"""The lines of a block, ascending, and the cycles of each."""
PROGRAMS_KEPT = 128
_BRANCHING = (ast.If, ast.For, ast.While, ast.Try, ast.With, ast.Match)


@lru_cache(maxsize=PROGRAMS_KEPT)
def line_prices(source: str, prices: SourceCostParams) -> Mapping[tuple[int, int], Split]:
    """Return the split of each block of several lines, by its first line and its cycles."""
    table = SourcePrices(prices)
    found: dict[tuple[int, int], Split] = {}
    for node in nodes_of(parse(source)):
        for statements, extra in _bodies(node, table):
            for block, first in _blocks(statements, extra):
                cycles = [(statement.lineno, table.header(statement)) for statement in block]
                if first:
                    # To enter a function or a turn of a loop is noted for its own line, not for its first statement's.
                    cycles.insert(0, (getattr(node, "lineno", 0), first))
                found[block[0].lineno, sum(each for _, each in cycles)] = tuple(cycles)
    return found


def _bodies(node: ast.AST, table: SourcePrices) -> Iterator[tuple[list[ast.stmt], int]]:
    """Yield the runs of statements in a node, and what entering each costs in addition."""
    extra = 0
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            extra = table.params.function_entry
        case ast.While(test=test):
            extra = table.params.loop_turn + table.expression(test)
        case ast.For(target=target):
            extra = table.params.loop_turn + table.expression(target)
    for name in ("body", "orelse", "finalbody"):
        statements = getattr(node, name, None)
        if isinstance(statements, list) and statements:
            yield _charged(node, statements), extra if name == "body" else 0


def _charged(node: ast.AST, statements: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements that are charged: no docstring, and of a module no import of the future's features."""
    has_docstring = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module)
    match statements:
        case [ast.Expr(value=ast.Constant(value=str())), *rest] if has_docstring:
            statements = rest
    return list(dropwhile(_is_future, statements))


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _blocks(statements: list[ast.stmt], extra: int) -> Iterator[tuple[list[ast.stmt], int]]:
    """Yield the basic blocks of a run of statements, and what the first costs in addition."""
    block: list[ast.stmt] = []
    for statement in statements:
        block.append(statement)
        if isinstance(statement, _BRANCHING):
            yield block, extra
            block, extra = [], 0
    if block:
        yield block, extra
