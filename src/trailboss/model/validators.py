"""Validators: who votes on the blocks of a network, with how much power, and which account gets a proposer's tips.

Decision: D-103
"""

from typing import Final

from msgspec import Struct

from trailboss.crypto.digest import sha256
from trailboss.primitives.octets import Address

PUBLIC_KEY_BYTES: Final = 32
IDENTITY_BYTES: Final = 20
POWER_MAX: Final = 2**60 - 1
"""Most that all validators have together. Source: CometBFT, whose bound is an eighth of the largest 64-bit integer."""


class Validator(Struct, frozen=True):
    """One validator of a network, as genesis states it."""

    public_key: bytes  # Ed25519, 32 bytes
    power: int  # votes that it has, 1..=POWER_MAX
    fee_account: Address  # who gets the tips of the blocks that it proposes

    @property
    def identity(self) -> bytes:
        """How the engine names it, 20 bytes."""
        return identity_of(self.public_key)


def identity_of(public_key: bytes) -> bytes:
    """Return how the engine names the owner of a public key: the first 20 bytes of the key's SHA-256."""
    return sha256(public_key)[:IDENTITY_BYTES]
