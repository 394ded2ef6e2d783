"""The public SDK's source, found in the installed distribution without importing it, and instrumented.

The SDK of a guest is not the SDK of this process: nothing of it runs here but for a frame. Both functions depend on the
installed distribution alone and keep their answers, because instrumenting takes a second and many chains share it.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.abc import SourceLoader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pkgutil import iter_modules
from types import CodeType
from typing import Final

from trailboss.params import SourceCostParams
from trailboss.primitives.errors import ConfigurationError
from trailboss.vm.instrument import instrument
from trailboss.vm.program import compile_tree
from trailboss.vm.rules import GRAMMAR, SDK

DEVELOPMENT_ONLY: Final = ("_signature_mock", "delegation", "mock_host", "recipes", "testing")
"""Modules of the SDK for a developer's machine: they read files, or stand for the host."""
DOCUMENTED_NAMES: Final = {
    "cowboy_sdk": {"current_block": "runtime.get_block_height"},
    "cowboy_sdk.runtime": {"current_block": "get_block_height"},
}
"""Names that the SDK's own documentation uses and its modules lack, with what they mean, by module."""
MODULES_KEPT: Final = 256
"""Enough for the SDK under a handful of cost tables."""


@dataclass(frozen=True, slots=True)
class SdkModule:
    """One module of the SDK.

    Attributes:
        code: Its instrumented code.
        rebound: Names that its own functions assign to, in alphabetical order.
    """

    code: CodeType
    rebound: tuple[str, ...]


@lru_cache(maxsize=1)
def sdk_module_names() -> tuple[str, ...]:
    """Return the full names of the modules that guests may import, the package itself first.

    Raises:
        ConfigurationError: If the SDK is not installed.
    """
    names = sorted(each.name for each in iter_modules(_package().submodule_search_locations))
    return (SDK, *(f"{SDK}.{name}" for name in names if name not in DEVELOPMENT_ONLY))


@lru_cache(maxsize=MODULES_KEPT)
def load_sdk_module(name: str, prices: SourceCostParams) -> SdkModule:
    """Return a module of the SDK, instrumented at these prices.

    Args:
        name: Full name, one of `sdk_module_names`.
        prices: The cost table.

    Raises:
        ConfigurationError: If its source is not there.
    """
    spec = _package()
    if name != SDK:
        found = PathFinder.find_spec(name, spec.submodule_search_locations)
        if found is None:
            raise ConfigurationError(f"{name} is not part of the installed cowboy-actor-sdk")
        spec = found
    source = spec.loader.get_source(name) if isinstance(spec.loader, SourceLoader) else None
    if source is None:
        raise ConfigurationError(f"{name} has no source in the installed cowboy-actor-sdk")
    tree = ast.parse(source, feature_version=GRAMMAR)
    rebound = tuple(sorted(dict.fromkeys(_globals(tree))))
    return SdkModule(compile_tree(instrument(tree, prices, guarded=False), name), rebound)


def _package() -> ModuleSpec:
    spec = find_spec(SDK)
    if spec is None or spec.submodule_search_locations is None:
        raise ConfigurationError(f"{SDK} is not installed; install cowboy-actor-sdk")
    return spec


def _globals(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names
