"""Every sentence that a program shows to people, from the modules that hold them, as one text to review.

``python -m tools.reference`` writes it to ``tests/golden/wording.txt``; a test holds the two equal. Other tests pin
slugs and facts.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

WORDING: Final = "tests/golden/wording.txt"
CATALOGUES: Final = (
    "api/errors.py",
    "cli/**/*.py",
    "explorer/**/*.py",
    "lint/*.py",
    "primitives/errors.py",
    "mempool/records.py",
    "node/*.py",
    "rehearsal/*.py",
    "views/**/*.py",
)
"""Modules of the package with texts for people, as patterns."""
WORDS_MIN: Final = 3


def wording(package: Path) -> str:
    """Return the sentences of each catalogue, one a line, in the order of the source.

    Args:
        package: Folder of the package.
    """
    lines: list[str] = []
    for path in sorted({path for pattern in CATALOGUES for path in package.glob(pattern)}):
        found = list(sentences(ast.parse(path.read_text(encoding="utf-8"))))
        if found:
            lines += [f"# {path.relative_to(package).as_posix()}", *found, ""]
    return "\n".join(lines)


def sentences(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of at least three words that are not docstrings; what a text inserts stands in braces."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            inside.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            inside.update(id(each) for each in node.values)
    for node in sorted(filter(is_text, ast.walk(tree)), key=place):
        if id(node) in inside:
            continue
        text = node.value if isinstance(node, ast.Constant) else joined(node)  # type: ignore[arg-type]
        if len(str(text).split()) >= WORDS_MIN:
            yield " ".join(str(text).split())


def is_text(node: ast.AST) -> bool:
    """Return whether a node is a text, with insertions or without."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def place(node: ast.AST) -> tuple[int, int]:
    """Return line and column of a node."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def joined(node: ast.JoinedStr) -> str:
    """Return an f-string with its insertions in braces."""
    parts = (
        str(each.value) if isinstance(each, ast.Constant) else "{" + ast.unparse(each.value) + "}"  # type: ignore[attr-defined]
        for each in node.values
    )
    return "".join(parts)
