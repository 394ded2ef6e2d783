"""Accounts: money, nonce, and for actors the code, the count of timers and the entitlements of their manifest."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from trailboss.codec.canonical import decode_canonical, encode_canonical, pack
from trailboss.model.configs import AMOUNT_WIDTH
from trailboss.primitives.errors import Rejection

RECORD_VERSION: Final = 2


class Account(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An account or actor as the state holds it."""

    version: int = RECORD_VERSION
    balance: bytes = bytes(AMOUNT_WIDTH)  # base units, 16 bytes big-endian: msgpack integers have 64 bits
    nonce: int = 0  # transactions sent
    code_hash: bytes = b""  # Keccak-256 of an actor's source, 32 bytes; empty for a plain account
    owner: bytes = b""  # deployer of an actor, 20 bytes; empty for a plain account
    timer_nonce: int = 0  # accepted schedules of this actor. Decision: D-01.
    timer_count: int = 0  # Live timers of this actor. Spec: CIP-5 §4.2.
    agent: bytes = b""  # gas bidding agent that prices this actor's timers, 20 bytes; empty for none. Decision: D-17.
    recent_fires: int = 0  # Fires of this actor's timers within the fairness window. Spec: CIP-1v3 §8.


encode_account: Final[Callable[[Account], bytes]] = pack
decode_account: Final[Callable[[bytes], Account]] = msgspec.msgpack.Decoder(Account).decode
"""Return the account that bytes of this chain's own state hold."""
TIMER_SCHEDULE: Final = "timer.schedule"  # The entitlement to schedule timers. Source: cowboy-facts §2.4.
SELF_UPGRADE: Final = "sys.upgrade"  # The entitlement of an actor to replace its code. Source: cowboy-facts §2.3.


def encode_manifest(entitlements: Iterable[str]) -> bytes | None:
    """Return a manifest that declares entitlements; None if there are none. Decision: D-91."""
    declared = sorted(entitlements)
    return encode_canonical(declared) if declared else None


def declares(manifest: bytes, entitlement: str) -> bool:
    """Whether a manifest declares an entitlement: its id is one of the texts anywhere in it. Decision: D-91."""
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
