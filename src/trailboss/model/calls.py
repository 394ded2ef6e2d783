"""The host calls about timers, by the forms that the specifications give them: what a mechanism has, others refuse."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Final

import msgspec

from trailboss.primitives.errors import Rejection, RejectionReason

SCHEDULE: Final = "schedule_timer(height, payload, …)"
"""Spec: CIP-5 §4.1, CIP-1v3 §6."""
SCHEDULE_EX: Final = "schedule_timer_ex(height, payload, …)"
"""The same call by the name that the public SDK has for it: there wherever the other one is. Decision: D-03."""
EXTEND: Final = "extend_timer(timer_id, new_expires_at)"
"""Spec: CIP-5 §4.1."""
CANCEL: Final = "cancel_timer(timer_id)"
"""Spec: CIP-5 §4.1. Under every mechanism: whose owner may not leave has no promise worth making."""
SET_AGENT: Final = "set_gas_bidding_agent(agent)"
"""Spec: CIP-1v3 §7."""
SET_TIMEOUT_AUCTION: Final = "set_timeout(height, payload, gba, gas_limit)"
"""Spec: CIP-1v1 §3."""
SET_TIMEOUT_GLOBALBOX: Final = "set_timeout(target, due_height, payload, gas_limit, …)"
"""Spec: CIP-5old §6.1."""
SET_STATE_WATCH: Final = "set_state_watch(target, watch_keys, payload, gas_limit, …)"
"""Spec: CIP-5old §6.1."""
UPDATE: Final = "update_timer(target, timer_id, …)"
"""Spec: CIP-5old §6.2."""
CANCEL_GLOBALBOX: Final = "cancel_timer(target, timer_id)"
"""Spec: CIP-5old §6.1."""


_SAME: Final[Mapping[str, str]] = MappingProxyType({SCHEDULE_EX: SCHEDULE})
"""Second names of a call, and the first."""


def is_had(form: str, had: AbstractSet[str]) -> bool:
    """Return whether a call is among those that a mechanism has, by its form."""
    return _SAME.get(form, form) in had


def name_of(form: str) -> str:
    """Return the name of a call, from its form.

    >>> name_of(SET_AGENT)
    'set_gas_bidding_agent'
    """
    return form.partition("(")[0]


def check_call(form: str, had: AbstractSet[str], mechanism: str) -> None:
    """Refuse a call that a mechanism does not have. Decision: D-56.

    Args:
        form: The call, one of the forms above.
        had: The forms that the mechanism has.
        mechanism: Its name.

    Raises:
        Rejection: ``UNSUPPORTED``, with the name of the mechanism and its calls.
    """
    if not is_had(form, had):
        raise Rejection(
            RejectionReason.UNSUPPORTED,
            f"{form} is not a call of mechanism {mechanism}, whose calls are: {', '.join(sorted(had))}",
            call=form,
            mechanism=mechanism,
        )


class AuctionRequest(msgspec.Struct, frozen=True):
    """A timer of the auction. Spec: CIP-1v1 §3.

    Attributes:
        height: Block height at which it is due; above the present one.
        payload: Bytes as given, an envelope still on.
        agent: Its gas bidding agent, 20 bytes.
        gas_limit: Cycles, or None for TimerConfig.max_cycles_per_fire.
    """

    height: int
    payload: bytes
    agent: bytes
    gas_limit: int | None = None


class GlobalboxRequest(msgspec.Struct, frozen=True):
    """A timer of Globalbox. Exactly one of height and keys is given. Spec: CIP-5old §6.1.

    Attributes:
        target: Actor whose handler is to run, 20 bytes.
        payload: Bytes as given, an envelope still on.
        due_height: Block height from which it is due; None for a state watch.
        watch_keys: Prefixes of the keys it watches, as given; None for a height timer.
        gas_limit: Cycles, or None for TimerConfig.max_cycles_per_fire.
        bid: Q32.96, in units of 2⁻⁹⁶ base units per cycle.
        expiry_height: Last height at which it may fire; None for the farthest one.
        client_nonce: What its owner names it with; empty for nothing.
    """

    target: bytes
    payload: bytes
    due_height: int | None = None
    watch_keys: tuple[bytes, ...] | None = None
    gas_limit: int | None = None
    bid: int = 0
    expiry_height: int | None = None
    client_nonce: bytes = b""


class GlobalboxUpdate(msgspec.Struct, frozen=True):
    """What is to change of a timer of Globalbox; None stays as it is. Spec: CIP-5old §6.2.

    Attributes:
        target: Its target, 20 bytes.
        timer_id: Its id.
        payload: Bytes as given, an envelope still on.
        gas_limit: Cycles.
        bid: Q32.96.
    """

    target: bytes
    timer_id: bytes
    payload: bytes | None = None
    gas_limit: int | None = None
    bid: int | None = None
