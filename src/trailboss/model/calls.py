"""The host calls about timers, by their forms in the specifications, and the requests of the auction and Globalbox.

A mechanism has some of the calls and refuses the others. In a request None means the protocol's default.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Final

import msgspec

from trailboss.primitives.errors import Rejection, RejectionReason

SCHEDULE: Final = "schedule_timer(height, payload, …)"  # Spec: CIP-5 §4.1, CIP-1v3 §6.
SCHEDULE_EX: Final = "schedule_timer_ex(height, payload, …)"
"""The same call under the public SDK's name; it exists wherever the other one does. Decision: D-03."""
EXTEND: Final = "extend_timer(timer_id, new_expires_at)"  # Spec: CIP-5 §4.1.
CANCEL: Final = "cancel_timer(timer_id)"
"""Spec: CIP-5 §4.1. Available under every mechanism: owners can always cancel their timers."""
SET_AGENT: Final = "set_gas_bidding_agent(agent)"  # Spec: CIP-1v3 §7.
SET_TIMEOUT_AUCTION: Final = "set_timeout(height, payload, gba, gas_limit)"  # Spec: CIP-1v1 §3.
SET_TIMEOUT_GLOBALBOX: Final = "set_timeout(target, due_height, payload, gas_limit, …)"  # Spec: CIP-5old §6.1.
SET_STATE_WATCH: Final = "set_state_watch(target, watch_keys, payload, gas_limit, …)"  # Spec: CIP-5old §6.1.
UPDATE: Final = "update_timer(target, timer_id, …)"  # Spec: CIP-5old §6.2.
CANCEL_GLOBALBOX: Final = "cancel_timer(target, timer_id)"  # Spec: CIP-5old §6.1.
SETTING: Final = frozenset({SET_TIMEOUT_AUCTION, SET_TIMEOUT_GLOBALBOX, SET_STATE_WATCH})
"""Calls of some mechanisms that set a timer, which needs the entitlement."""

_SAME: Final[Mapping[str, str]] = MappingProxyType({SCHEDULE_EX: SCHEDULE})  # second names of a call, and the first


def is_had(form: str, had: AbstractSet[str]) -> bool:
    """Return whether a mechanism that has the forms ``had`` has a call."""
    return _SAME.get(form, form) in had


def name_of(form: str) -> str:
    """Return the name of a call, from its form.

    >>> name_of(SET_AGENT)
    'set_gas_bidding_agent'
    """
    return form.partition("(")[0]


def check_call(form: str, had: AbstractSet[str], mechanism: str) -> None:
    """Refuse a call that a mechanism does not have, with ``UNSUPPORTED`` and the calls that it has. Decision: D-56."""
    if not is_had(form, had):
        what = f"{form} is not a call of mechanism {mechanism}, whose calls are: {', '.join(sorted(had))}"
        raise Rejection(RejectionReason.UNSUPPORTED, what, call=form, mechanism=mechanism)


class AuctionRequest(msgspec.Struct, frozen=True):
    """A timer of the auction. Spec: CIP-1v1 §3."""

    height: int  # block height at which it is due; above the current one
    payload: bytes  # bytes as given, including an envelope
    agent: bytes  # its gas bidding agent, 20 bytes
    gas_limit: int | None = None  # cycles, or None for TimerConfig.max_cycles_per_fire


class GlobalboxRequest(msgspec.Struct, frozen=True):
    """A timer of Globalbox, with either a height or watch keys. Spec: CIP-5old §6.1."""

    target: bytes  # actor whose handler runs, 20 bytes
    payload: bytes  # bytes as given, including an envelope
    due_height: int | None = None  # block height from which it is due; None for a state watch
    watch_keys: tuple[bytes, ...] | None = None  # prefixes of the keys it watches, as given; None for a height timer
    gas_limit: int | None = None  # cycles, or None for TimerConfig.max_cycles_per_fire
    bid: int = 0  # Q32.96, in units of 2⁻⁹⁶ base units per cycle
    expiry_height: int | None = None  # last height at which it can fire; None for the farthest
    client_nonce: bytes = b""  # its owner's name for it; empty for none


class GlobalboxUpdate(msgspec.Struct, frozen=True):
    """Changes to a timer of Globalbox; None keeps a value. Spec: CIP-5old §6.2."""

    target: bytes
    timer_id: bytes
    payload: bytes | None = None
    gas_limit: int | None = None
    bid: int | None = None
