"""Claims that an address has signed a digest, for another process to look at, which imports nothing but this.

A claim is ``digest ‖ signature ‖ address``: 32, 65 and 20 bytes. Its verdict is a byte: 1 if it is right, otherwise 0.
"""

from collections.abc import Callable
from typing import Final

from trailboss.crypto.signatures import HASH_WIDTH, SIGNATURE_WIDTH, recover
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address

READY: Final = b"\x01"  # what comes before the verdicts, once claims can be answered

_SIGNED: Final = HASH_WIDTH + SIGNATURE_WIDTH
_CLAIM_WIDTH: Final = _SIGNED + Address.WIDTH
_ANSWERED_AT_ONCE: Final = 32  # claims; a call of the system for each would cost as much as its hash


def answer_claims(read: Callable[[int], bytes], write: Callable[[bytes], object]) -> None:
    """Write `READY`, and then a verdict for each claim that is read, in order, until nothing is left to read."""
    write(READY)
    waiting = b""
    while octets := read(_ANSWERED_AT_ONCE * _CLAIM_WIDTH):
        waiting += octets
        end = len(waiting) - len(waiting) % _CLAIM_WIDTH
        write(bytes(is_right(waiting[at : at + _CLAIM_WIDTH]) for at in range(0, end, _CLAIM_WIDTH)))
        waiting = waiting[end:]


def is_right(claim: bytes) -> bool:
    """Return whether a claim is right."""
    try:
        return recover(claim[:HASH_WIDTH], claim[HASH_WIDTH:_SIGNED]) == claim[_SIGNED:]
    except Rejection:
        return False
