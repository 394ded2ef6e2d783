"""Entitlements: what an actor may do, declared in the manifest that comes with its code. Decision: D-91."""

from collections.abc import Iterable
from typing import Any, Final

from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.primitives.errors import Rejection

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
