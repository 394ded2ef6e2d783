"""The source of the public SDK and of our own, found where it is installed without importing it, and instrumented.

A guest's SDK is not this process's SDK: its code runs only in frames. All functions depend on the installation alone
and cache their answers, because instrumenting takes a second and many chains share it.
"""

import ast
from collections.abc import Iterator
from functools import lru_cache
from importlib.abc import SourceLoader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pkgutil import iter_modules
from types import CodeType
from typing import Final

from msgspec import Struct

from trailboss.metering.instrument import instrument
from trailboss.params import SourceCostParams
from trailboss.primitives.errors import ConfigurationError
from trailboss.vm.program import compile_tree
from trailboss.vm.rules import GRAMMAR, LANE_MODULES, LANE_PACKAGE, SDK

DEVELOPMENT_ONLY: Final = ("_signature_mock", "delegation", "mock_host", "recipes", "testing")
"""Modules of the SDK for a developer's machine: they read files, or replace the host."""
WITHOUT_DATA: Final = tuple(f"cowboy_sdk.{name}" for name in ("actor", "handler_mode", "permissions", "timer"))
"""Modules of the SDK that see classes, names and heights, and leave the data of an actor to others. Decision: D-101."""
DOCUMENTED_NAMES: Final = {  # names that the SDK documents and its modules lack, with their meaning, by module
    "cowboy_sdk": {"current_block": "runtime.get_block_height"},
    "cowboy_sdk.runtime": {"current_block": "get_block_height"},
}
MODULES_KEPT: Final = 256  # enough for the SDK under a handful of cost tables


class SdkModule(Struct, frozen=True):
    """Instrumented code of one module of the SDK, and the names that its own functions rebind, in order."""

    code: CodeType
    rebound: tuple[str, ...]


@lru_cache(maxsize=1)
def sdk_module_names() -> tuple[str, ...]:
    """Return the full names of the modules that guests can import, a package before its modules.

    Raises:
        ConfigurationError: If the public SDK is not installed.
    """
    names = sorted(each.name for each in iter_modules(_package(SDK).submodule_search_locations))
    public = (f"{SDK}.{name}" for name in names if name not in DEVELOPMENT_ONLY)
    return (SDK, *public, *LANE_MODULES)


@lru_cache(maxsize=MODULES_KEPT)
def load_sdk_module(name: str, prices: SourceCostParams) -> SdkModule:
    """Return a module of the SDK, one of `sdk_module_names`, instrumented at these prices.

    Raises:
        ConfigurationError: If its source is missing.
    """
    text = sdk_text(name)
    tree = ast.parse(text, feature_version=GRAMMAR)
    # Most modules say ``global`` nowhere, and a search through the tree takes a sixth of the time.
    rebound = tuple(sorted(dict.fromkeys(_globals(tree)))) if "global" in text else ()
    return SdkModule(
        compile_tree(instrument(tree, prices, guarded=False, sees_data=name not in WITHOUT_DATA), name), rebound
    )


def sdk_text(name: str) -> str:
    """Return the source of a module of the SDK, one of `sdk_module_names`."""
    if name == LANE_PACKAGE:
        return ""  # The package around our own module is empty to guests: the one of this process is not theirs.
    package = _package(LANE_PACKAGE if name in LANE_MODULES else SDK)
    # By the path alone: what has imported a module into this process can show no source of it.
    spec = package if name == SDK else PathFinder.find_spec(name, package.submodule_search_locations)
    source = spec.loader.get_source(name) if spec is not None and isinstance(spec.loader, SourceLoader) else None
    if source is None:
        raise ConfigurationError(f"there is no source of {name} where {package.name} is installed")
    return source


def _package(name: str) -> ModuleSpec:
    spec = find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        raise ConfigurationError(f"{name} is not installed as a package; installing trailboss brings it")
    return spec


def _globals(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names
