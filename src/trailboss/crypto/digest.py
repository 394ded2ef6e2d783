"""Digests: Keccak-256 where the public protocol names it, SHA-256 for everything of our own."""

from collections.abc import Sequence
from hashlib import sha256 as _sha256
from typing import Final

from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.keccak import keccak256
from trailboss.primitives.octets import ZERO_HASH, Hash32

__all__ = ["domain_digest", "keccak256", "merkle_path", "merkle_root", "root_of_path", "sha256"]

_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"
_IS_LEFT, _IS_RIGHT = b"\x00", b"\x01"
_STEP_WIDTH: Final = len(_IS_LEFT) + Hash32.WIDTH


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
    level = _leaf_digests(leaves)
    while len(level) > 1:
        level = _level_above(level)
    return Hash32(level[0])


def merkle_path(leaves: Sequence[bytes], index: int) -> tuple[bytes, ...]:
    """Return what leads from the leaf at ``index``, counted from 0, to the root of all: its siblings, lowest first.

    Each step is one byte, 0 for a sibling on the left and 1 for one on the right, and the sibling's digest, 32 bytes.
    """
    level, path = _leaf_digests(leaves), []
    while len(level) > 1:
        sibling = index ^ 1
        if sibling < len(level):
            path.append((_IS_LEFT if sibling < index else _IS_RIGHT) + level[sibling])
        level, index = _level_above(level), index >> 1
    return tuple(path)


def root_of_path(leaf: bytes, path: Sequence[bytes]) -> Hash32:
    """Return the root to which a path of `merkle_path` leads from its leaf.

    Raises:
        Rejection: ``INVALID_DATA`` for a step that is not a side, 0 or 1, and 32 bytes.
    """
    digest = _sha256(_LEAF + leaf).digest()
    for step in path:
        side, sibling = step[:1], step[1:]
        if len(step) != _STEP_WIDTH or side not in (_IS_LEFT, _IS_RIGHT):
            what = f"a step of a path is a side, 0 or 1, and 32 bytes; got 0x{step.hex():.80}"
            raise Rejection(RejectionReason.INVALID_DATA, what)
        digest = _sha256(_NODE + (sibling + digest if side == _IS_LEFT else digest + sibling)).digest()
    return Hash32(digest)


def _leaf_digests(leaves: Sequence[bytes]) -> list[bytes]:
    return [_sha256(_LEAF + leaf).digest() for leaf in leaves]


def _level_above(level: list[bytes]) -> list[bytes]:
    pairs = [_sha256(_NODE + level[i] + level[i + 1]).digest() for i in range(0, len(level) - 1, 2)]
    return [*pairs, level[-1]] if len(level) % 2 else pairs
