"""Which files of a folder are actors."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trailboss.vm.rules import HOST, LANE_PACKAGE, LANE_SDK, SDK

SUFFIX: Final = ".py"
TEST_SDK: Final = f"{SDK}.testing"
TESTS: Final = ("pytest", "unittest", TEST_SDK)
_TEST_NAME: Final = re.compile(r"test_.*|.*_test|conftest|__init__")
_SKIPPED: Final = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"})
_MENTION: Final = re.compile(rb"\b(?:pvm_host|cowboy_sdk|trailboss\.sdk)\b")


def actor_files(folder: Path) -> list[Path]:
    """Return the files of a folder and its folders that are actors, in order of their paths.

    An actor imports ``pvm_host``, ``cowboy_sdk`` or ``trailboss.sdk``, or uses the global ``pvm_host``. A test is none,
    by its name or by what it imports, nor is a program that imports more of this package, or an ``__init__.py``.
    Folders whose names begin with a dot are left out, and so are those of installed packages.
    """
    return sorted(path for path in _sources(folder) if _is_actor(path.read_bytes()))


def _sources(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in _SKIPPED:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _sources(path)
        elif path.suffix == SUFFIX and not _TEST_NAME.fullmatch(path.stem):
            yield path


def _is_actor(content: bytes) -> bool:
    if not _MENTION.search(content):
        return False
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True  # it mentions what actors use, and a deployment would refuse it
    names = set(_imported(tree))
    is_program = any(name.split(".")[0] == LANE_PACKAGE and name != LANE_SDK for name in names)
    if is_program or names.intersection(TESTS):
        return False
    uses = (isinstance(node, ast.Name) and node.id == HOST for node in ast.walk(tree))
    return any(name.split(".")[0] in (HOST, SDK) or name == LANE_SDK for name in names) or any(uses)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == SDK)
