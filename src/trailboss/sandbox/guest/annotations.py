"""Evaluates annotations where they stand, as Python 3.11 does; the guest's Python 3.14 would defer them (PEP 649).

It rewrites the instrumented tree just before the tree is compiled. What an annotation costs is charged already.
"""

import ast
from collections.abc import Callable
from typing import Any, Final

from trailboss.metering.syntax import PREFIX

EVALUATED: Final = PREFIX + "evaluated"
"""The name of `evaluated` in actor code: the innermost decorator of every annotated function."""
_FORMAT_VALUE: Final = 1  # of ``__annotate__``: the values themselves
_NAMES: Final = "__annotations__"
_BLOCKS: Final = ("body", "orelse", "finalbody")
_NOWHERE: Final[dict[str, Any]] = {"lineno": -1, "col_offset": -1, "end_lineno": -1, "end_col_offset": -1}
_POSITION: Final = tuple(_NOWHERE)


def evaluated(function: Any) -> Callable[..., object]:
    """Evaluate a function's annotations now, and return the function."""
    if function.__annotate__ is not None:
        function.__annotations__ = function.__annotate__(_FORMAT_VALUE)
    return function  # type: ignore[no-any-return]  # the decorated function is of any type


def evaluate_annotations(tree: ast.Module) -> ast.Module:
    """Rewrite a module's tree in place, and return it, unless it defers its annotations by itself."""
    if not any(isinstance(each, ast.ImportFrom) and _defers(each) for each in tree.body):
        tree.body = _scope(tree.body, "")
    return tree


def _defers(statement: ast.ImportFrom) -> bool:
    return statement.module == "__future__" and any(each.name == "annotations" for each in statement.names)


def _scope(body: list[ast.stmt], owner: str) -> list[ast.stmt]:
    """Rewrite the body of a module or of the class ``owner``."""
    written = _statements(body, owner)
    if not any(_annotates(each) for each in body):
        return written
    head = 0
    while head < len(written) and _stays_first(written[head], head):
        head += 1
    names = ast.Assign([ast.Name(_NAMES, ast.Store(), **_NOWHERE)], ast.Dict([], [], **_NOWHERE), **_NOWHERE)
    return [*written[:head], names, *written[head:]]


def _statements(body: list[ast.stmt], owner: str | None) -> list[ast.stmt]:
    """Rewrite a run of statements; ``owner`` is the class around it, "" for a module, None within a function."""
    written: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.AnnAssign):
            written += _assignment(statement, owner)
        else:
            _rewrite(statement, owner)
            written.append(statement)
    return written


def _assignment(node: ast.AnnAssign, owner: str | None) -> list[ast.stmt]:
    at = {name: getattr(node, name) for name in _POSITION}
    written: list[ast.stmt] = [] if node.value is None else [ast.Assign([node.target], node.value, **at)]
    if owner is None:
        # Within a function Python evaluates no annotation; the statement makes its name local.
        return written or [node]
    if not isinstance(node.target, ast.Name) or not node.simple:
        return [*written, ast.Expr(node.annotation, **at)]
    name = node.target.id
    if owner and name.startswith("__") and not name.endswith("__"):
        name = f"_{owner.lstrip('_')}{name}"
    names = ast.Name(_NAMES, ast.Load(), **at)
    place = ast.Subscript(names, ast.Constant(name, **at), ast.Store(), **at)
    return [*written, ast.Assign([place], node.annotation, **at)]


def _rewrite(node: ast.stmt, owner: str | None) -> None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            arguments = node.args
            given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            if node.returns is not None or any(each is not None and each.annotation is not None for each in given):
                # Where the function stands, since a function begins in the line of its first decorator.
                at = {name: getattr(node, name) for name in _POSITION}
                node.decorator_list.append(ast.Name(EVALUATED, ast.Load(), **at))
            node.body = _statements(node.body, None)
        case ast.ClassDef():
            node.body = _scope(node.body, node.name)
        case _:
            for block in _blocks(node):
                block[:] = _statements(block, owner)


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """Return the blocks of a compound statement."""
    blocks = [getattr(node, name, None) for name in _BLOCKS]
    parts: list[ast.AST] = [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    return [each for each in blocks if isinstance(each, list)] + [part.body for part in parts]  # type: ignore[attr-defined]  # handlers and cases have a body


def _annotates(node: ast.stmt) -> bool:
    """Whether a statement annotates a name of its own scope."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return isinstance(node, ast.AnnAssign) or any(_annotates(each) for block in _blocks(node) for each in block)


def _stays_first(statement: ast.stmt, index: int) -> bool:
    match statement:
        case ast.ImportFrom(module="__future__"):
            return True
        case ast.Expr(value=ast.Constant(value=str())):
            return index == 0
    return False
