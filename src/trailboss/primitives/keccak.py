"""Keccak-256, from whichever wheel is installed.

It is at the bottom because an address's text form (EIP-55) needs it. ``tiny-keccak`` is a dependency and the fastest
per call; ``safe-pysha3`` serves platforms that it has no wheel for. A known answer is checked at import, because a
silently different hash (SHA3-256 has another padding) would fork the chain.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Final

KNOWN_ANSWER: Final = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
"""Keccak-256 of the empty string."""


def _tiny_keccak() -> Callable[[bytes], bytes]:
    function: Callable[[bytes], bytes] = import_module("tiny_keccak").keccak256
    return function


def _pysha3() -> Callable[[bytes], bytes]:
    new = import_module("sha3").keccak_256
    return lambda message: bytes(new(message).digest())


def _provider() -> Callable[[bytes], bytes]:
    for load in (_tiny_keccak, _pysha3):
        try:
            function = load()
        except ImportError:
            continue
        if bytes(function(b"")).hex() == KNOWN_ANSWER:
            return function
    raise ImportError("no working Keccak-256: install tiny-keccak, or safe-pysha3 where it has no wheel")


keccak256: Final[Callable[[bytes], bytes]] = _provider()  # Keccak-256 of a byte string: 32 bytes. Not SHA3-256.
