"""The engine of a chain: the native one, or the sandbox with the image that the chain's genesis states."""

from enum import StrEnum
from functools import partial

from trailboss.params import ChainParams
from trailboss.primitives.errors import ConfigurationError
from trailboss.vm.engine import Engine
from trailboss.vm.native import NativeEngine


class EngineName(StrEnum):
    """The engines by name."""

    NATIVE = "native"  # in this process: for your own code
    SANDBOX = "sandbox"  # in WebAssembly: for code that others send


def new_engine(params: ChainParams, image: bytes) -> Engine:
    """Return the engine of a chain; ``image`` is the digest of the sandbox's image, empty for the native engine.

    Raises:
        ConfigurationError: If the sandbox or its image is not here, or the chain's prices are not the image's.
    """
    if not image:
        return NativeEngine(params)
    from trailboss.sandbox.cache import check_image, load_runtime
    from trailboss.sandbox.engine import SandboxEngine

    check_image(image)
    return SandboxEngine(params, partial(load_runtime, image))


def default_engine() -> EngineName:
    """Return the engine of a new chain on this machine: the sandbox where it is built."""
    from trailboss.sandbox.cache import is_built

    return EngineName.SANDBOX if is_built() else EngineName.NATIVE


def engine_name(image: bytes) -> EngineName:
    """Return the name of a chain's engine."""
    return EngineName.SANDBOX if image else EngineName.NATIVE


def image_of(name: str) -> bytes:
    """Return what a genesis states for an engine, by its name.

    Raises:
        ConfigurationError: If there is no such engine.
    """
    if name not in list(EngineName):
        raise ConfigurationError(f"unknown vm {name!r}; there are: {', '.join(EngineName)}")
    if name == EngineName.NATIVE:
        return b""
    from trailboss.sandbox.cache import released_digest

    return released_digest()
