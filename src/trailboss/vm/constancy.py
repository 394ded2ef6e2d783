"""Which programs are constant: no frame changes what their module makes, as far as the source shows. Decision: D-123.

What is not certain is not constant. `trailboss.vm.container_content` compares what the source cannot show.
"""

import ast
from typing import Final

from trailboss.metering.syntax import nodes_of
from trailboss.vm.rules import HOST, is_sdk

_MODULES: Final = "base64 collections collections.abc hashlib hmac itertools json math re string struct typing"
_HARMLESS: Final = frozenset((HOST, *_MODULES.split()))  # they set nothing for a whole frame
_SPECIAL: Final = ("__init__", "__str__", "__repr__", "__eq__", "__name__")  # names that change nothing
_REACH: Final = """* getattr setattr delattr vars globals exec compile breakpoint ast dataclasses decimal functools
    importlib inspect operator sys threading Capture capture carry continuation CowboyModel models _actor_definition"""
_WORDS: Final = frozenset(_REACH.split())
"""Names by which a program, also through a module of the SDK, reaches attributes by text, or what the SDK hides."""
_NEVER: Final = (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFunctionDef, ast.MatchClass)


def is_constant(tree: ast.Module) -> bool:
    """Return whether a program can change what its module makes only where it is seen: in containers."""
    return all(map(_is_harmless, nodes_of(tree)))


def _is_harmless(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=value, attr=name, ctx=context):
            is_own = isinstance(value, ast.Name) and value.id == "self"
            return _is_usual(name) and (is_own or isinstance(context, ast.Load))
        case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return _is_usual(name)
        case ast.Import(names=imports):
            return all(each.name in _HARMLESS or is_sdk(each.name) for each in imports)
        case ast.ImportFrom(module=str(module), names=imports):
            return (module in _HARMLESS or is_sdk(module)) and all(_is_usual(each.name) for each in imports)
    return not isinstance(node, _NEVER)


def _is_usual(name: str) -> bool:
    return name not in _WORDS and (name in _SPECIAL or not name.startswith("__"))
