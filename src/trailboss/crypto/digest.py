"""Digests: Keccak-256 where the public protocol names it, SHA-256 for everything of our own."""

from collections.abc import Sequence
from hashlib import sha256 as _sha256
from typing import Final

from trailboss.primitives.keccak import keccak256
from trailboss.primitives.octets import ZERO_HASH, Hash32

__all__ = ["domain_digest", "keccak256", "merkle_root", "sha256"]

_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"


def sha256(message: bytes) -> bytes:
    """Return the SHA-256 digest of ``message``: 32 bytes."""
    return _sha256(message).digest()


def domain_digest(domain: bytes, *parts: bytes) -> bytes:
    """Return the SHA-256 digest of ``parts`` in a domain, which names what is hashed: 32 bytes.

    Every item is preceded by its length in eight bytes, so different parts or domains never hash the same bytes.
    """
    digest = _sha256(len(domain).to_bytes(8, "big") + domain)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def merkle_root(leaves: Sequence[bytes]) -> Hash32:
    """Return the root of a binary hash tree over ``leaves``, in order; 32 zero bytes when there are none.

    Leaves and inner nodes are hashed with different prefixes, so an inner node cannot pass for a leaf. The last node of
    an odd level moves up unchanged: duplicating it would give two lists of leaves the same root.
    """
    if not leaves:
        return ZERO_HASH
    level = [_sha256(_LEAF + leaf).digest() for leaf in leaves]
    while len(level) > 1:
        pairs = [_sha256(_NODE + level[i] + level[i + 1]).digest() for i in range(0, len(level) - 1, 2)]
        level = [*pairs, level[-1]] if len(level) % 2 else pairs
    return Hash32(level[0])
