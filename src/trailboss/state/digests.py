"""The inputs of the tree's digests and of the state root: the one definition, for the tree and for proofs.

It imports neither `trailboss.state.tree` nor `trailboss.state.commitment`, so that a verifier of proofs needs no store.
"""

from typing import Final

PAGE_CAPACITY: Final = 32
DIGEST_WIDTH: Final = 32
EMPTY_DIGEST: Final = bytes(DIGEST_WIDTH)
FAN_OUT: Final = 16
PAGE_TAG: Final = b"\x01"
INTERIOR_TAG: Final = b"\x02"
STATE_ROOT_TAG: Final = b"\x03cowboy-state-v1"


def nibble_at(key: bytes, position: int) -> int:
    """Return the nibble of ``key`` at ``position``, counted from 0; the high nibble of a byte comes first."""
    octet = key[position >> 1]
    return octet & 15 if position & 1 else octet >> 4


def prefix_of(key: bytes, length: int) -> bytes:
    """Return the first ``length`` nibbles of ``key``, packed; the low nibble of an odd tail is 0."""
    if length & 1:
        return key[: length >> 1] + bytes((key[length >> 1] & 0xF0,))
    return key[: length >> 1]
