"""The parts of CPython for WebAssembly: libraries and the standard library, out of the ``componentize-py`` wheel.

The wheel's own program carries them as Zstandard frames, one after another. Nothing of the program itself is used.
"""

import io
import tarfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from msgspec import Struct

from trailboss.primitives.errors import ConfigurationError
from trailboss.sandbox.image.wasm import MAGIC, WASM, DynamicLibrary, read_library

WHEEL: Final = "componentize-py"
WHEEL_VERSION: Final = "0.25.1"
_FRAME: Final = b"\x28\xb5\x2f\xfd"  # what a Zstandard frame begins with
_FRAME_BYTES_MAX: Final = 30_000_000
_FRAME_BYTES_MIN: Final = 300  # what is smaller and begins like a frame is not one
_STANDARD_LIBRARY_BYTES_MIN: Final = 1 << 20
_LIBRARIES: Final = {  # an export by which each library is known
    "python": "PyObject_Call", "c": "closedir", "memory": "munmap", "clocks": "times", "signals": "raise",
}  # fmt: skip
_NOT_OURS: Final = ("PyInit_componentize_py_runtime", "__cxa_throw", "_ZSt9terminatev")
"""Exports of the wheel's libraries that are not needed: its own runtime, and those of C++."""


class Parts(Struct, frozen=True):
    """What the image is built of."""

    libraries: dict[str, DynamicLibrary]  # by the names of `_LIBRARIES`
    sources: dict[str, bytes]  # the standard library's files, by path


def read_parts() -> Parts:
    """Return the parts that the installed wheel carries.

    Raises:
        ConfigurationError: If the wheel is missing, is another version, or does not carry them.
    """
    frames = _frames(_program().read_bytes())
    libraries: dict[str, DynamicLibrary] = {}
    archive = b""
    for octets in frames:
        if octets.startswith(MAGIC) and (library := _library(octets)) is not None:
            libraries.setdefault(library.name, library)
        elif not octets.startswith(WASM) and len(octets) > _STANDARD_LIBRARY_BYTES_MIN:
            archive = octets
    missing = [name for name in _LIBRARIES if name not in libraries]
    if missing or not archive:
        raise ConfigurationError(f"{WHEEL} {WHEEL_VERSION} does not carry {', '.join(missing) or 'a standard library'}")
    return Parts(libraries, _sources(archive))


def _program() -> Path:
    install = f"install it with: pip install 'trailboss[sandbox]', which brings {WHEEL} {WHEEL_VERSION}"
    try:
        wheel = distribution(WHEEL)
    except PackageNotFoundError:
        raise ConfigurationError(f"the sandbox is built from {WHEEL}, which is not installed; {install}") from None
    if wheel.version != WHEEL_VERSION:
        raise ConfigurationError(
            f"the sandbox is built from {WHEEL} {WHEEL_VERSION}, here is {wheel.version}; {install}"
        )
    paths = [Path(str(each.locate())) for each in wheel.files or () if ".abi3." in each.name or each.suffix == ".pyd"]
    if not paths:
        raise ConfigurationError(f"{WHEEL} {wheel.version} has no compiled module; {install}")
    return paths[0]


def _frames(program: bytes) -> list[bytes]:
    """Return what the Zstandard frames in a program hold."""
    from zstandard import ZstdDecompressor, ZstdError  # noqa: PLC0415  # only a build needs it

    found: list[bytes] = []
    at = program.find(_FRAME)
    while at >= 0:
        window = program[at : at + _FRAME_BYTES_MAX]
        reader = ZstdDecompressor().decompressobj()
        try:
            octets = reader.decompress(window)
        except ZstdError:
            octets = b""
        if len(octets) > _FRAME_BYTES_MIN and reader.eof:
            found.append(octets)
            at += len(window) - len(reader.unused_data)
        else:
            at += len(_FRAME)
        at = program.find(_FRAME, at)
    return found


def _library(octets: bytes) -> DynamicLibrary | None:
    try:
        library = read_library("", octets)
    except ConfigurationError:
        return None  # The wheel also carries modules that are not libraries.
    if any(each in library.exports for each in _NOT_OURS):
        return None
    for name, export in _LIBRARIES.items():
        if export in library.exports:
            library.name = name
            return library
    return None


def _sources(archive: bytes) -> dict[str, bytes]:
    sources: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            content = files.extractfile(member) if member.isfile() and member.name.endswith(".py") else None
            if content is not None:
                sources[member.name.removeprefix("./")] = content.read()
    return sources
