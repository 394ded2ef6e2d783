"""The image and its machine code on this machine: built once, kept in a private directory, checked before each use.

Machine code runs as it is, so it is taken only from a directory and a file that nobody else can write, and only if its
digest is that of its first 32 bytes. Anything else is compiled again. The image is checked by its own digest.
"""

import hashlib
import lzma
import os
import platform
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from msgspec import Struct

from trailboss.primitives.errors import ConfigurationError, StorageError
from trailboss.sandbox.image.image import Image
from trailboss.sandbox.runtime import Runtime
from trailboss.sandbox.stage import WASM_STACK_BYTES, on_stage
from trailboss.sandbox.wasmtime_library import VERSION, Compiler, WasmtimeError

OPTIMIZATION: Final = "speed"
_MAGIC: Final = b"TBIMAGE1"
_HEAD: Final = struct.Struct("<8sQQ")  # magic, bytes of the module, bytes of the memory
_DIGEST_BYTES: Final = 32
_PRIVATE: Final = 0o700
_OWN: Final = 0o600
_COMPRESSION: Final = 6
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
Report = Callable[[str], None]


def silent(_: str) -> None:
    """Report nothing."""


class SandboxStatus(Struct, frozen=True):
    """What of the sandbox is there."""

    digest: str  # of the image that this version of Trailboss runs, in hexadecimal
    directory: str  # where image and machine code are kept
    has_image: bool
    has_code: bool  # machine code for this wasmtime and this processor


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
    has_image, has_code = _image_path(digest).exists(), _code_path(digest).exists()
    return SandboxStatus(digest.hex(), str(cache_directory()), has_image, has_code)


def is_built() -> bool:
    """Return whether a chain can start with the sandbox now."""
    return _image_path(released_digest()).exists()


def build(report: Report = silent) -> bytes:
    """Build the image, keep it with its machine code, and return its digest.

    Raises:
        ConfigurationError: If a part is missing, or the image is not the one of this version.
    """
    from trailboss.sandbox.image.builder import build_image  # noqa: PLC0415  # needs what only a build needs

    image = on_stage(lambda: build_image(report=report))
    if image.digest() != released_digest():
        raise ConfigurationError(
            f"the image that was built is {image.digest().hex()}, and this version's is {released_digest().hex()}: if "
            "you changed the engine, run: make reference; else import the image: trailboss sandbox import FILE"
        )
    keep(image)
    report("compiling for this processor")
    machine_code(image, Compiler(WASM_STACK_BYTES, OPTIMIZATION))
    return image.digest()


def keep(image: Image) -> None:
    """Keep an image in the cache."""
    _write(
        _image_path(image.digest()),
        _HEAD.pack(_MAGIC, len(image.module), len(image.memory)),
        image.module,
        image.memory,
    )


def check_image(digest: bytes) -> None:
    """Refuse an image that is not on this machine with `ConfigurationError`."""
    if not _image_path(digest).exists():
        raise ConfigurationError(_missing(digest))


@lru_cache(maxsize=1)
def load_runtime(digest: bytes) -> Runtime:
    """Return the loaded image of a digest; the process keeps one.

    Raises:
        ConfigurationError: If it is not here, or the machine cannot run it.
    """
    path = _image_path(digest)
    try:
        image = _decoded(path.read_bytes())
    except FileNotFoundError:
        raise ConfigurationError(_missing(digest)) from None
    if image is None or image.digest() != digest:
        with suppress(FileNotFoundError):
            path.unlink()
        raise ConfigurationError(f"{path} is damaged and has been removed; build it again: trailboss sandbox build")
    compiler = Compiler(WASM_STACK_BYTES, OPTIMIZATION)
    return Runtime(image, compiler, machine_code(image, compiler))


def export_image(path: Path) -> None:
    """Write the image of this version to a file, compressed to some 6 MB."""
    image = _image_path(released_digest())
    if not image.exists():
        raise ConfigurationError(_missing(released_digest()))
    path.write_bytes(lzma.compress(image.read_bytes(), preset=_COMPRESSION))


def import_image(path: Path) -> bytes:
    """Keep the image of a file that `export_image` wrote; return its digest.

    Raises:
        ConfigurationError: If it is not the image of this version.
        StorageError: If the file cannot be read, or is not an image.
    """
    try:
        image = _decoded(lzma.decompress(path.read_bytes()))
    except (OSError, lzma.LZMAError) as error:
        raise StorageError(path, f"cannot be read as an image: {error}", "export it again") from None
    if image is None:
        raise StorageError(path, "is not an image of the sandbox", "write one with: trailboss sandbox export")
    if image.digest() != released_digest():
        what = f"{path} holds the image {image.digest().hex()}"
        raise ConfigurationError(f"{what}, and this version of Trailboss runs {released_digest().hex()}")
    keep(image)
    return image.digest()


def _decoded(octets: bytes) -> Image | None:
    if len(octets) < _HEAD.size:
        return None
    magic, module, memory = _HEAD.unpack_from(octets)
    if magic != _MAGIC or len(octets) != _HEAD.size + module + memory:
        return None
    return Image(octets[_HEAD.size : _HEAD.size + module], octets[_HEAD.size + module :])


def _missing(digest: bytes) -> str:
    if digest == released_digest():
        return "the sandbox is not built on this machine: run: trailboss sandbox build"
    return (
        f"the chain runs the sandbox's image {digest.hex()}, and this version of Trailboss has "
        f"{released_digest().hex()}: use the version that the chain started with"
    )


def _image_path(digest: bytes) -> Path:
    return cache_directory() / f"{digest.hex()}.image"


def _code_path(digest: bytes) -> Path:
    parts = (digest.hex(), VERSION, OPTIMIZATION, str(WASM_STACK_BYTES), platform.machine(), _processor())
    return cache_directory() / f"{hashlib.sha256(' '.join(parts).encode()).hexdigest()}.code"


def _processor() -> str:
    """Return what the processor can do, as far as the system says."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return platform.processor()


def machine_code(image: Image, compiler: Compiler) -> bytes:
    """Return the machine code of an image, compiled unless it is kept and can be trusted."""
    path = _code_path(image.digest())
    octets = _read_private(path)
    if octets is not None and hashlib.sha256(octets[_DIGEST_BYTES:]).digest() == octets[:_DIGEST_BYTES]:
        code = octets[_DIGEST_BYTES:]
        with suppress(WasmtimeError):
            compiler.unload(compiler.load(code))
            return code
    code = compiler.compile(image.module)
    _write(path, hashlib.sha256(code).digest(), code)
    return code


def _read_private(path: Path) -> bytes | None:
    """Return the bytes of a file that only this user can write; None for any other, and for a missing one."""
    try:
        place = path.parent.lstat()
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        own = os.fstat(descriptor)
        if any(each.st_uid != os.geteuid() or each.st_mode & _OTHERS_WRITE for each in (place, own)):
            return None
        return file.read()


def _write(path: Path, *parts: bytes) -> None:
    """Write a file at once: a reader finds the whole file or none."""
    path.parent.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    path.parent.chmod(_PRIVATE)
    unfinished = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _OWN)
    try:
        with open(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
        unfinished.rename(path)
    finally:
        with suppress(FileNotFoundError):
            unfinished.unlink()
