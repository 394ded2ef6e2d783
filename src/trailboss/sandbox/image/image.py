"""The image: what every frame of the sandbox begins with."""

import hashlib

from msgspec import Struct

from trailboss.params import ChainParams, load_params


class Image(Struct, frozen=True):
    """CPython with the engine in it: a module, and the memory that it begins with."""

    module: bytes | memoryview  # WebAssembly
    memory: bytes | memoryview

    def digest(self) -> bytes:
        """Return the 32 bytes by which a genesis states the image."""
        parts = (hashlib.sha256(part).digest() for part in (self.module, self.memory))
        return hashlib.sha256(b"trailboss image 1" + b"".join(parts)).digest()


def image_params() -> ChainParams:
    """Return the parameters whose prices the image has: those of the default preset."""
    return load_params("mainnet")
