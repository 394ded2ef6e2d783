"""The image and its machine code on this machine: built once, kept in a private directory, checked before each use.

Machine code runs as it is, so it is taken only from a directory and a file that no other user can write, and only if
its digest is that of the last 32 bytes. Anything else is compiled again. The image is checked by its own digest.
"""

import hashlib
import lzma
import mmap
import os
import platform
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from msgspec import Struct

from trailboss.primitives.errors import ConfigurationError, StorageError
from trailboss.sandbox.forms import CompiledForms
from trailboss.sandbox.image.image import Image
from trailboss.sandbox.private_files import is_abandoned, read_private, write_private
from trailboss.sandbox.runtime import Runtime
from trailboss.sandbox.stage import WASM_STACK_BYTES, on_stage
from trailboss.sandbox.wasmtime_library import VERSION, Compiler, WasmtimeError, installed_wheel

OPTIMIZATION: Final = "speed"
SETTINGS_DIGITS: Final = 16
NOT_BUILT: Final = "the sandbox is not built on this machine: run: trailboss sandbox build"
_MAGIC: Final = b"TBIMAGE1"
_HEAD: Final = struct.Struct("<8sQQ")  # magic, bytes of the module, bytes of the memory
_DIGEST_BYTES: Final = 32
_COMPRESSION: Final = 6
Report = Callable[[str], None]


def silent(_: str) -> None:
    """Report nothing."""


class KeptImage(Struct, frozen=True):
    """An image in the cache."""

    digest: str  # in hexadecimal
    bytes: int  # of the image, of its machine code, and of the actors that are compiled for it
    is_released: bool  # whether this version of Trailboss runs it


class SandboxStatus(Struct, frozen=True):
    """What of the sandbox is there."""

    digest: str  # of the image that this version of Trailboss runs, in hexadecimal
    directory: str  # where image and machine code are kept
    has_image: bool
    has_code: bool  # machine code for this wasmtime and this processor
    images: tuple[KeptImage, ...]  # that are kept, this version's first


def released_digest() -> bytes:
    """Return the digest of the image that belongs to this version of Trailboss, 32 bytes."""
    return bytes.fromhex(files("trailboss.sandbox.image").joinpath("digest.txt").read_text().strip())


def cache_directory() -> Path:
    """Return the directory of images, which need not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "trailboss" / "sandbox"


def status() -> SandboxStatus:
    """Return what is there."""
    digest = released_digest()
    has_image, has_code = _image_path(digest).exists(), _code_path(digest.hex()).exists()
    return SandboxStatus(digest.hex(), str(cache_directory()), has_image, has_code, kept_images())


def kept_images() -> tuple[KeptImage, ...]:
    """Return the images in the cache, this version's first."""
    released = released_digest().hex()
    digests = sorted(
        (path.stem for path in cache_directory().glob("*.image")), key=lambda each: (each != released, each)
    )
    sizes = ((each, sum(path.stat().st_size for path in _files_of(each))) for each in digests)
    return tuple(KeptImage(digest, size, digest == released) for digest, size in sizes)


def remove_image(digest: str) -> int:
    """Remove an image, its machine code and the actors that are compiled for it; return their bytes.

    A node that runs it keeps what it has loaded; a chain that states it needs it again at its next start.
    """
    return _remove(_files_of(digest))


def remove_leftovers() -> int:
    """Remove what nothing uses any more, and return its bytes: never an image.

    That is what a process left that was killed while it wrote, actors compiled for a missing image, and machine code of
    a missing image, of another wasmtime or of other settings.
    """
    directory, digests = cache_directory(), {each.digest for each in kept_images()}
    code = set(directory.glob("*.code")) - {_code_path(each) for each in digests}
    forms = (path for path in directory.glob("*.form") if path.name.partition(".")[0] not in digests)
    return _remove([*code, *forms, *filter(is_abandoned, directory.glob("*.*"))])


def _files_of(digest: str) -> list[Path]:
    return [path for form in ("image", "*.code", "*.form") for path in cache_directory().glob(f"{digest}.{form}")]


def _remove(paths: list[Path]) -> int:
    removed = 0
    for path in paths:
        with suppress(FileNotFoundError):
            size = path.stat().st_size
            path.unlink()
            removed += size
    return removed


def is_built() -> bool:
    """Return whether a chain can start with the sandbox now."""
    try:
        check_image(released_digest())
    except ConfigurationError:
        return False
    return True


def build(report: Report = silent) -> bytes:
    """Build the image unless it is here, keep it with its machine code, and return its digest.

    What other builds have left is removed.

    Raises:
        ConfigurationError: If a part is missing, or the image is not the one of this version.
    """
    remove_leftovers()
    image = _kept_image(released_digest()) or _new_image(report)
    report("compiling for this processor")
    load_module(image, released_digest(), Compiler(WASM_STACK_BYTES, OPTIMIZATION))
    return image.digest()


def _new_image(report: Report) -> Image:
    """Build the image and keep it."""
    from trailboss.sandbox.image.builder import build_image  # noqa: PLC0415  # needs what only a build needs

    image = on_stage(lambda: build_image(report=report))
    if image.digest() != released_digest():
        raise ConfigurationError(
            f"the image that was built is {image.digest().hex()}, and this version's is {released_digest().hex()}: if "
            "you changed the engine, run: make reference; else import the image: trailboss sandbox import FILE"
        )
    keep(image)
    return image


def keep(image: Image) -> None:
    """Keep an image in the cache."""
    write_private(
        _image_path(image.digest()),
        _HEAD.pack(_MAGIC, len(image.module), len(image.memory)),
        image.module,
        image.memory,
    )


def check_version(digest: bytes) -> None:
    """Refuse an image that this version of Trailboss does not run with `ConfigurationError`, even if it is kept.

    What serves a guest's requests is not in the image: an image runs as the chain expects under its own version alone.
    """
    released = released_digest()
    if digest != released:
        raise ConfigurationError(
            f"the chain runs the sandbox's image {digest.hex()}, and this version of Trailboss has {released.hex()}: "
            "use the version that the chain started with"
        )


def check_image(digest: bytes) -> None:
    """Refuse an image that cannot run here with `ConfigurationError`: of another version, not built, no wasmtime."""
    check_version(digest)
    installed_wheel()
    if not _image_path(digest).exists():
        raise ConfigurationError(NOT_BUILT)


@lru_cache(maxsize=1)
def load_runtime(digest: bytes) -> Runtime:
    """Return the loaded image of a digest; the process keeps one.

    Raises:
        ConfigurationError: If it is not here or of another version, or the machine cannot run it.
    """
    check_image(digest)
    image = _kept_image(digest)
    if image is None:
        path = _image_path(digest)
        with suppress(FileNotFoundError):
            path.unlink()
        raise ConfigurationError(f"{path} is damaged and has been removed; build it again: trailboss sandbox build")
    compiler = Compiler(WASM_STACK_BYTES, OPTIMIZATION)
    forms = CompiledForms(cache_directory(), digest)
    return Runtime(image, digest, compiler, load_module(image, digest, compiler), forms)


def export_image(path: Path) -> None:
    """Write the image of this version to a file, compressed to some 6 MB."""
    image = _image_path(released_digest())
    if not image.exists():
        raise ConfigurationError(NOT_BUILT)
    path.write_bytes(lzma.compress(image.read_bytes(), preset=_COMPRESSION))


def import_image(path: Path) -> bytes:
    """Keep the image of a file that `export_image` wrote; return its digest.

    Raises:
        ConfigurationError: If it is not the image of this version.
        StorageError: If the file cannot be read, or is not an image.
    """
    try:
        image = _decoded(memoryview(lzma.decompress(path.read_bytes())))
    except (OSError, lzma.LZMAError) as error:
        raise StorageError(path, f"cannot be read as an image: {error}", "export it again") from None
    if image is None:
        raise StorageError(path, "is not an image of the sandbox", "write one with: trailboss sandbox export")
    if image.digest() != released_digest():
        what = f"{path} holds the image {image.digest().hex()}"
        raise ConfigurationError(f"{what}, and this version of Trailboss runs {released_digest().hex()}")
    keep(image)
    return image.digest()


def _kept_image(digest: bytes) -> Image | None:
    """Return an image from the cache; None if it is missing or damaged."""
    with suppress(FileNotFoundError, ValueError), _image_path(digest).open("rb") as file:  # an empty file is not mapped
        image = _decoded(memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)))
        if image is not None and image.digest() == digest:
            return image
    return None


def _decoded(octets: memoryview) -> Image | None:
    if len(octets) < _HEAD.size:
        return None
    magic, module, memory = _HEAD.unpack_from(octets)
    if magic != _MAGIC or len(octets) != _HEAD.size + module + memory:
        return None
    return Image(octets[_HEAD.size : _HEAD.size + module], octets[_HEAD.size + module :])


def _image_path(digest: bytes) -> Path:
    return cache_directory() / f"{digest.hex()}.image"


def _code_path(digest: str) -> Path:
    parts = ("digest last", VERSION, OPTIMIZATION, str(WASM_STACK_BYTES), platform.machine(), _processor())
    settings = hashlib.sha256(" ".join(parts).encode()).hexdigest()[:SETTINGS_DIGITS]
    return cache_directory() / f"{digest}.{settings}.code"


def _processor() -> str:
    """Return what the processor can do, as far as the system says."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return platform.processor()


def load_module(image: Image, digest: bytes, compiler: Compiler) -> int:
    """Return an image's module, whose machine code is compiled unless it is kept and can be trusted."""
    path = _code_path(digest.hex())
    module = _kept_module(path, compiler)
    if module is None:
        code = compiler.compile(bytes(image.module))
        write_private(path, code, hashlib.sha256(code).digest())
        module = _kept_module(path, compiler) or compiler.load(code)
    return module


def _kept_module(path: Path, compiler: Compiler) -> int | None:
    view = memoryview(read_private(path) or b"")
    code = view[:-_DIGEST_BYTES]
    if hashlib.sha256(code).digest() == view[-_DIGEST_BYTES:]:
        with suppress(WasmtimeError):
            return compiler.load_file(path)
        with suppress(WasmtimeError):  # where the system runs nothing that lies in this directory
            return compiler.load(bytes(code))
    return None
