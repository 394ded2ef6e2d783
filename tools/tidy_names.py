"""House lint, names: of modules, of types, of what is private elsewhere, and of mechanisms outside their rooms."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

SOURCE: Final = "src/trailboss/"
GUEST: Final = ("demo_actors/", "stock_actors/")
NOUNS_IN_ING: Final = frozenset({"ageing", "opening", "ranking", "ring", "testing"})
"""Module names that end like a participle and are nouns."""
PUBLIC_PRIVATES: Final = frozenset({"_asdict", "_fields", "_make", "_replace", "_exit"})
"""Names of the standard library that begin with an underscore and are public: those of a NamedTuple, ``os._exit``."""
MECHANISM_WORDS: Final = frozenset({"fifo", "lane", "fee_lane", "auction", "globalbox"})
MECHANISM_TERMS: Final = frozenset({"AuctionTerms", "GlobalboxTerms"})
MECHANISM_ROOMS: Final = (
    "execution/auction/",
    "execution/globalbox/",
    "execution/lane/",
    "execution/markets.py",
    "governance/markets.py",
    "mechanisms/",
    "model/terms.py",
    "params/",
    "views/mechanism/",
)
"""Where a mechanism is named; everything else finds it through a registry."""


def name_faults(path: str, tree: ast.Module) -> Iterator[tuple[int, str, str, str]]:
    """Yield (line, rule, message, name) for the names of one module of the package.

    Args:
        path: Path relative to the package.
        tree: Its syntax tree.
    """
    stem = path.rsplit("/", 1)[-1].removesuffix(".py")
    if stem.endswith("ing") and stem not in NOUNS_IN_ING:
        yield 1, "participle", f"{stem} says what is done; a module is named by a noun", stem
    yield from private_faults(tree)
    if not path.startswith(MECHANISM_ROOMS):
        for node in ast.walk(tree):
            said = mechanism_said(node)
            if said:
                message = f"{said} asks which mechanism it is; put it into the mechanism's room and find it there"
                yield node.lineno, "mechanism", message, said  # type: ignore[attr-defined]


def private_faults(tree: ast.Module) -> Iterator[tuple[int, str, str, str]]:
    """Yield every private name of another module or of a dependency that a module touches."""
    own = set(own_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.Attribute):
            of_self = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            names = [] if of_self or node.attr in own else [node.attr]
        else:
            continue
        for name in names:
            if name.startswith("_") and not name.startswith("__") and name not in PUBLIC_PRIVATES:
                yield node.lineno, "private", f"{name} is private elsewhere; use what is public there", name


def own_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines itself, attributes of its objects included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


def mechanism_said(node: ast.AST) -> str:
    """Return how a node asks which mechanism a chain has; empty if it does not.

    It does by comparing with a mechanism's name or its kind of market, by testing one mechanism's part for None, and by
    asking whether a timer's terms are one mechanism's.
    """
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for side in sides:
            if isinstance(side, ast.Constant) and side.value in MECHANISM_WORDS:
                return f"== {side.value!r}"
            if isinstance(side, ast.Attribute) and ast.unparse(side.value) == "MarketKind" and side.attr != "NONE":
                return f"is MarketKind.{side.attr}"
        if any(isinstance(side, ast.Constant) and side.value is None for side in sides):
            for side in sides:
                word = side.attr if isinstance(side, ast.Attribute) else side.id if isinstance(side, ast.Name) else ""
                if word in MECHANISM_WORDS:
                    return f"{word} is None"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        return next((f"isinstance {name}" for name in terms_in(node.args[1:])), "")
    if isinstance(node, ast.MatchClass):
        return next((f"case {name}" for name in terms_in([node.cls])), "")
    return ""


def terms_in(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the records of one mechanism's terms that expressions name."""
    for node in nodes:
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and each.id in MECHANISM_TERMS:
                yield each.id


def type_faults(trees: Mapping[str, ast.Module]) -> Iterator[tuple[str, int, str, str]]:
    """Yield (path, line, message, name) for every public class whose name another module's public class has."""
    places: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for path, tree in sorted(trees.items()):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append((path, node.lineno))
    for name, found in sorted(places.items()):
        for path, line in found[1:]:
            yield path, line, f"{name} is a type of {found[0][0]} already; one name, one type", name
