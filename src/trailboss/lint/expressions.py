"""What an expression can be, as far as the source itself says."""

import ast
import operator
from collections.abc import Callable
from typing import Final

from trailboss.lint.actor_source import SELF, ActorSource, Routine, method_of

DEPTH_MAX: Final = 6  # constants that are computed of one another
DIGITS_MAX: Final = 1_000  # bits of a number that is computed
Leaf = tuple[ast.expr, Routine | None]
"""An expression, and the function in which it stands; None for the module or a class."""
_OPERATORS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def leaves(source: ActorSource, node: ast.expr, routine: Routine | None) -> tuple[list[Leaf], bool]:
    """Return the expressions that a name stands for, and whether these are all: assignments, and arguments of calls."""
    found: list[Leaf] = []
    waiting: list[Leaf] = [(node, routine)]
    seen: set[tuple[str, Routine | None]] = set()
    is_whole = True
    while waiting:
        node, routine = waiting.pop()
        if isinstance(node, ast.IfExp):
            waiting += [(node.orelse, routine), (node.body, routine)]
        elif not isinstance(node, ast.Name | ast.Attribute):
            found.append((node, routine))
            is_whole = is_whole and not isinstance(node, ast.Starred)
        elif (name := (ast.unparse(node), routine)) not in seen:
            seen.add(name)
            given, whole = _behind(source, node, routine)
            waiting += reversed(given)
            found += [] if given else [(node, routine)]
            is_whole = is_whole and whole
    return found, is_whole


def _behind(source: ActorSource, node: ast.Name | ast.Attribute, routine: Routine | None) -> tuple[list[Leaf], bool]:
    """Return what was assigned to a name, or passed for it, and whether that is all."""
    if isinstance(node, ast.Attribute):
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        owner = routine.owner if routine and name == SELF else name
        values = source.values.get(owner, {}).get(node.attr, []) if owner else []
        return [(each, None) for each in values], bool(values)
    if routine is not None:
        is_parameter = node.id in (*routine.parameters, *(each.arg for each in routine.node.args.kwonlyargs))
        values = routine.values.get(node.id, [])
        if values or node.id in routine.values:
            return [(each, routine) for each in values], bool(values) and not is_parameter
        if is_parameter:
            return _passed(source, routine, node.id)
    values = source.values[""].get(node.id, [])
    return [(each, None) for each in values], bool(values)


def _passed(source: ActorSource, routine: Routine, name: str) -> tuple[list[Leaf], bool]:
    """Return what the source passes for a parameter; it is all for a private function that is only called."""
    place = routine.parameters.index(name) if name in routine.parameters else None
    found: list[Leaf] = []
    whole = routine.name.startswith("_")
    for caller in source.routines.values():
        for node in caller.nodes:
            if not isinstance(node, ast.Call) or not _calls(source, node, caller, routine):
                continue
            named = [each.value for each in node.keywords if each.arg == name]
            given = (node.args[place : place + 1] if place is not None else []) or named
            whole = whole and not any(isinstance(each, ast.Starred) for each in node.args)
            found += [(each, caller) for each in given or _default(routine, name)]
    return found, whole and bool(found)


def _calls(source: ActorSource, node: ast.Call, caller: Routine, routine: Routine) -> bool:
    match node.func:
        case ast.Name(id=name):
            return source.routines.get(("", name)) is routine
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return method_of(source, caller.owner, name) is routine
    return False


def _default(routine: Routine, name: str) -> list[ast.expr]:
    arguments = routine.node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    by_name = dict(zip(reversed(names), reversed(arguments.defaults), strict=False))
    return [by_name[name]] if name in by_name else []


def constant(source: ActorSource, leaf: Leaf, depth: int = 0) -> object:
    """Return the constant that an expression is; None if it is none, or None itself."""
    node, routine = leaf
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            number = constant(source, (inner, routine), depth)
            return -number if isinstance(number, int) else None
        case ast.Call(func=ast.Attribute(value=inner, attr="encode"), args=[]):
            text = constant(source, (inner, routine), depth)
            return text.encode() if isinstance(text, str) else None
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS and depth < DEPTH_MAX:
            return _computed(op, *(_number(source, each, routine, depth + 1) for each in (left, right)))
    return None


def _number(source: ActorSource, node: ast.expr, routine: Routine | None, depth: int) -> int | None:
    found, whole = leaves(source, node, routine)
    values = [constant(source, each, depth) for each in found]
    return values[0] if whole and len(values) == 1 and type(values[0]) is int else None


def _computed(op: ast.operator, left: int | None, right: int | None) -> int | None:
    if left is None or right is None or left.bit_length() + right.bit_length() > DIGITS_MAX:
        return None
    is_division = isinstance(op, ast.FloorDiv | ast.Mod)
    return None if is_division and right == 0 else _OPERATORS[type(op)](left, right)
