"""Accounts: money, nonce, and for actors the code and the count of timers."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from trailboss.codec.canonical import decode_canonical, encode_canonical, pack
from trailboss.model.configs import AMOUNT_WIDTH
from trailboss.primitives.errors import Rejection

RECORD_VERSION: Final = 2


class Account(msgspec.Struct, array_like=True, gc=False):
    """An account or actor as the state holds it.

    Attributes:
        version: Codec version.
        balance: Base units, 16 bytes big-endian (an amount has 128 bits, msgpack integers 64).
        nonce: Transactions this account has sent.
        code_hash: Keccak-256 of an actor's source, 32 bytes; empty for a plain account.
        owner: Deployer of an actor, 20 bytes; empty for a plain account.
        timer_nonce: Accepted schedules of this actor. Decision: D-01.
        timer_count: Live timers of this actor. Spec: CIP-5 §4.2.
        agent: Actor that prices this actor's timers, its gas bidding agent, 20 bytes; empty for none. Decision: D-17.
        recent_fires: Fires of this actor's timers within the fairness window. Spec: CIP-1v3 §8.
    """

    version: int = RECORD_VERSION
    balance: bytes = bytes(AMOUNT_WIDTH)
    nonce: int = 0
    code_hash: bytes = b""
    owner: bytes = b""
    timer_nonce: int = 0
    timer_count: int = 0
    agent: bytes = b""
    recent_fires: int = 0


_decoder: Final = msgspec.msgpack.Decoder(Account)


def encode_account(account: Account) -> bytes:
    """Return the record's bytes."""
    return pack(account)


def decode_account(octets: bytes) -> Account:
    """Return the record that the bytes hold; the bytes come from this chain's own state."""
    return _decoder.decode(octets)


TIMER_SCHEDULE: Final = "timer.schedule"
"""The entitlement to schedule timers. Source: cowboy-facts §2.4."""


def encode_manifest(entitlements: Iterable[str]) -> bytes | None:
    """Return a manifest that declares entitlements; None for one that would declare nothing."""
    declared = sorted(entitlements)
    return encode_canonical(declared) if declared else None


def declares(manifest: bytes, entitlement: str) -> bool:
    """Whether a manifest declares an entitlement: its id is one of the texts in it, at whatever place."""
    try:
        waiting: list[Any] = [decode_canonical(manifest)]
    except Rejection:
        return False
    while waiting:
        part = waiting.pop()
        if part == entitlement:
            return True
        if isinstance(part, dict):
            waiting += (*part.keys(), *part.values())
        elif isinstance(part, list):
            waiting += part
    return False
