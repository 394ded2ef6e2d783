"""What actors import for timers, beside the public SDK: the calls of each mechanism, helpers, recurring timers.

An actor writes ``from trailboss.sdk import PriorityTier, schedule_timer``. Editors and type checks can import the
module too, but functions that ask the chain work only in a frame. A call that the chain's mechanism lacks is refused
with ``pvm_host.HostError``, name ``unsupported``. Spec: CIP-1v3 §6, CIP-1v3 §7, CIP-1v1 §3, CIP-5old §6.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, overload

from trailboss.recurrence import (
    RecurringTimer,
    ScheduledRun,
    dispatch,
    every,
    pause,
    recurring_timer,
    resume,
    retry,
    stop,
)

__all__ = [
    "ADDRESS_WIDTH", "BID_BITS", "FRACTION_BITS", "AuctionBidContext", "Delivery", "GasBidContext", "PriorityTier",
    "RecurringTimer", "ScheduledRun", "auction_bid", "bid", "cancel_timer", "cell_fees", "current_delivery",
    "default_auction_bid", "default_gas_bid", "dispatch", "every", "gas_bid", "pause", "recurring_timer",
    "reschedule", "resume", "retry", "schedule_timer", "set_gas_bidding_agent", "set_state_watch", "set_timeout",
    "stop", "tier_tip", "update_timer", "watch_key",
]  # fmt: skip

ADDRESS_WIDTH = 20
FRACTION_BITS = 96
"""Fractional bits of Q32.96, the unit of Globalbox bids. Spec: CIP-5old §5.1."""
BID_BITS = 128


class PriorityTier(Enum):
    """How urgent a timer is, as a multiple of the tips that the previous block's fires paid. Spec: CIP-1v3 §7.3.

    The multipliers are governed; their defaults are 0.8, 1.0, 1.5 and 2.5.
    """

    ECONOMY = "economy"
    STANDARD = "standard"
    FAST = "fast"
    URGENT = "urgent"


def schedule_timer(
    height: int,
    payload: bytes,
    *,
    fee_payer: bytes | None = None,
    gas_limit: int | None = None,
    expires_at: int | None = None,
    max_fee_per_cycle: int | None = None,
    max_priority_fee_per_cycle: int | None = None,
    priority_tier_hint: PriorityTier | None = None,
    gas_bidding_agent: bytes | None = None,
) -> bytes:
    """Schedule a timer of the running actor and return its id, 32 bytes.

    While the timer lane is not active there are no tips: a hint has no effect, so that an actor runs before and after
    the activation, and a fee is refused. Spec: CIP-1v3 §6, CIP-1v3 §7, CIP-1v3 §7.3.

    Args:
        height: Block height at which it fires.
        payload: Bytes for its handler.
        fee_payer: Account that pays for the fire, 20 bytes; None for the actor itself.
        gas_limit: Cycles that the fire can use; None for the most that is allowed.
        expires_at: Last height at which it can fire; None for the farthest.
        max_fee_per_cycle: Cap of lane basefee and tip together, base units; None for twice the lane basefee.
        max_priority_fee_per_cycle: Tip, base units; None for the previous block's median tip.
        priority_tier_hint: Tip as a multiple of that median, in place of ``max_priority_fee_per_cycle``.
        gas_bidding_agent: Agent that prices this timer, 20 bytes, in place of fees; None for the actor's, if any.

    Raises:
        ValueError: If both the tip and the hint are given.
        TypeError: If the hint is not a `PriorityTier`.
    """
    import pvm_host

    if priority_tier_hint is not None:
        if max_priority_fee_per_cycle is not None:
            raise ValueError(
                f"max_priority_fee_per_cycle is {max_priority_fee_per_cycle} and priority_tier_hint is "
                f"{priority_tier_hint}; give one of them"
            )
        max_priority_fee_per_cycle = tier_tip(priority_tier_hint)
    identity: bytes = pvm_host.schedule_timer(
        height,
        payload,
        fee_payer,
        gas_limit,
        expires_at,
        max_fee_per_cycle,
        max_priority_fee_per_cycle=max_priority_fee_per_cycle,
        gas_bidding_agent=gas_bidding_agent,
    )
    return identity


def reschedule(timer_id: bytes, height: int, payload: bytes, **terms: Any) -> bytes:
    """Cancel a timer of the running actor and schedule it at another height; return the new id, 32 bytes.

    An actor cannot read its timers, so it gives the payload, and the terms of `schedule_timer` beside the defaults,
    again. A timer that has fired already is scheduled once more.
    """
    cancel_timer(timer_id)
    return schedule_timer(height, payload, **terms)


def tier_tip(tier: PriorityTier) -> int | None:
    """Return a tier's tip in this block, base units per cycle; None while the lane is not active. Spec: CIP-1v3 §7.3.

    Raises:
        TypeError: If it is not a `PriorityTier`.
    """
    import pvm_host

    if not isinstance(tier, PriorityTier):
        raise TypeError(f"priority_tier_hint must be a PriorityTier, got {tier!r}")
    lane = pvm_host.timer_lane()
    if not lane["active"]:
        return None
    median: int = lane["previous_block_p50_priority_tip_per_cycle"]
    multiplier: int = lane["priority_tier_multipliers"][tier.value]
    unit: int = lane["priority_tier_unit"]
    return multiplier * median // unit


def set_gas_bidding_agent(agent: bytes | None) -> None:
    """Let an actor, 20 bytes, price the running actor's timers scheduled from now on; None for the default agent.

    When such a timer is due, a read-only call of the agent's handler ``get_gas_bid`` asks for its bid. Timers with fees
    of their own, and earlier ones, keep their prices. Spec: CIP-1v3 §7. Decision: D-17.
    """
    import pvm_host

    pvm_host.set_gas_bidding_agent(agent)


@dataclass(frozen=True)
class GasBidContext:
    """The facts given to a gas bidding agent. Prices are base units per cycle or cell. Spec: CIP-1v3 §7.2."""

    trigger_block_height: int  # height of the timer
    current_block_height: int  # the difference is how late the timer is
    basefee_cycle: int  # of a fire
    basefee_cell: int  # of a fire
    basefee_lane_timer: int  # on top of the cycle basefee
    last_block_cycle_usage: int  # cycles of the previous block
    previous_block_p50_priority_tip_per_cycle: int  # median tip of the previous block's fires; 0 if there were none
    owner_actor_balance: int  # base units of the timer's actor

    @classmethod
    def decode(cls, payload: bytes) -> "GasBidContext":
        """Return the context from the payload of ``get_gas_bid``.

        In a class of the public SDK's ``@actor`` the handler gets these bytes if it is ``@public(decode="raw")``.

        Raises:
            cowboy_sdk.codec.CodecError: If the payload is not canonical CBOR.
            TypeError: If it has other fields.
        """
        from cowboy_sdk import codec

        fields: dict[str, Any] = codec.decode(payload)
        return cls(**fields)


def gas_bid(max_fee_per_cycle: int, max_priority_fee_per_cycle: int) -> dict[str, int]:
    """Return the answer of a handler ``get_gas_bid``. Spec: CIP-1v3 §7.2.

    Args:
        max_fee_per_cycle: Cap of lane basefee and tip together, base units.
        max_priority_fee_per_cycle: Tip, base units; the part above the cap less the lane basefee is not paid.

    Raises:
        ValueError: If the tip is above the cap.
    """
    if max_priority_fee_per_cycle > max_fee_per_cycle:
        raise ValueError(
            f"max_priority_fee_per_cycle is {max_priority_fee_per_cycle}, above max_fee_per_cycle, "
            f"{max_fee_per_cycle}, which caps it"
        )
    return {"max_fee_per_cycle": max_fee_per_cycle, "max_priority_fee_per_cycle": max_priority_fee_per_cycle}


def cell_fees(max_fee_per_cell: int, max_priority_fee_per_cell: int = 0) -> dict[str, int]:
    """Return the two cell fields of a bid; join them to those of ``gas_bid`` with ``|``.

    A bid without them pays the cell basefee of the block and no tip. Spec: CIP-1v3 §7.1. Decision: D-86.

    Args:
        max_fee_per_cell: Cap of cell basefee and tip together, base units; below the basefee the timer waits.
        max_priority_fee_per_cell: Tip, base units; the part above the cap less the cell basefee is not paid.

    Raises:
        ValueError: If the tip is above the cap.
    """
    if max_priority_fee_per_cell > max_fee_per_cell:
        raise ValueError(
            f"max_priority_fee_per_cell is {max_priority_fee_per_cell}, above max_fee_per_cell, "
            f"{max_fee_per_cell}, which caps it"
        )
    return {"max_fee_per_cell": max_fee_per_cell, "max_priority_fee_per_cell": max_priority_fee_per_cell}


def default_gas_bid(context: GasBidContext) -> dict[str, int]:
    """Return the default agent's bid: twice the lane basefee, and the median tip within it. Spec: CIP-1v3 §7.1."""
    basefee = context.basefee_lane_timer
    return gas_bid(2 * basefee, min(context.previous_block_p50_priority_tip_per_cycle, basefee))


if TYPE_CHECKING:

    @overload
    def set_timeout(height: int, payload: bytes, gba: bytes, gas_limit: int | None = None) -> bytes: ...

    @overload
    def set_timeout(
        target: bytes,
        due_height: int,
        payload: bytes,
        gas_limit: int | None = None,
        bid_fp: int = 0,
        expiry_height: int | None = None,
        client_nonce: bytes = b"",
    ) -> bytes: ...


def set_timeout(*positional: Any, **named: Any) -> bytes:
    """Set a timer in the auction or in Globalbox, and return its id, 32 bytes.

    The auction takes ``height, payload, gba, gas_limit``: the due block, bytes for this actor's ``handle_timer``, the
    agent that bids, and cycles. Globalbox takes ``target, due_height, payload, gas_limit, bid_fp, expiry_height,
    client_nonce``: the actor whose handler runs, the first block in which it is due, bytes for the handler, cycles, a
    `bid`, the last block in which it can be queued, and a name; a name in use returns the id of its timer. Without a
    gas limit a fire can use the most that is allowed. Spec: CIP-1v1 §3, CIP-5old §6.1.
    """
    import pvm_host

    identity: bytes = pvm_host.set_timeout(*positional, **named)
    return identity


def set_state_watch(  # noqa: PLR0917 - the form that the host call has
    target: bytes,
    watch_keys: list[bytes],
    payload: bytes,
    gas_limit: int | None = None,
    bid_fp: int = 0,
    expiry_height: int | None = None,
    client_nonce: bytes = b"",
) -> bytes:
    """Set a timer of Globalbox that fires whenever one of the keys changes, and return its id, 32 bytes.

    Spec: CIP-5old §6.1

    Args:
        target: Actor whose handler runs, 20 bytes.
        watch_keys: Watched keys, each a `watch_key`.
        payload: Bytes for the handler.
        gas_limit: Cycles that a fire can use; None for the most that is allowed.
        bid_fp: Bid of a fire, a `bid`.
        expiry_height: Last block in which it can fire; None for the farthest.
        client_nonce: A name; a name in use returns the id of its timer.
    """
    import pvm_host

    identity: bytes = pvm_host.set_state_watch(
        target, watch_keys, payload, gas_limit, bid_fp, expiry_height, client_nonce
    )
    return identity


def update_timer(
    target: bytes,
    timer_id: bytes,
    payload: bytes | None = None,
    gas_limit: int | None = None,
    bid_fp: int | None = None,
) -> bool:
    """Change a Globalbox timer's later fires and return whether there will be one; None keeps a value.

    Spec: CIP-5old §6.2
    """
    import pvm_host

    is_changed: bool = pvm_host.update_timer(target, timer_id, payload, gas_limit, bid_fp)
    return is_changed


if TYPE_CHECKING:

    @overload
    def cancel_timer(timer_id: bytes) -> None: ...

    @overload
    def cancel_timer(target: bytes, timer_id: bytes) -> bool: ...


def cancel_timer(*positional: Any, **named: Any) -> bool | None:
    """Cancel a timer of the running actor.

    ``timer_id`` alone works under every mechanism; a timer that no longer exists is no error. Globalbox also takes
    ``target, timer_id``; it returns whether the timer existed, and refuses one that never did.

    Spec: CIP-5 §4.1, CIP-5old §6.1
    """
    import pvm_host

    is_cancelled: bool | None = pvm_host.cancel_timer(*positional, **named)
    return is_cancelled


@dataclass(frozen=True)
class Delivery:
    """The running fire of Globalbox. Spec: CIP-5old §9.1."""

    deliver_id: bytes  # 32 bytes, unique per delivery, to recognize a repeated one
    kind: str  # ``HEIGHT`` or ``STATE_WATCH``
    due_height: int | None  # None for a state watch
    matched_keys: list[bytes]  # watched keys that were modified, ascending, at most 16; empty for a height


def current_delivery() -> Delivery | None:
    """Return the running fire of Globalbox; None in other executions.

    Spec: CIP-5old §9.1, CIP-5old §14. Decision: D-83.
    """
    import pvm_host

    facts = pvm_host.context()
    return Delivery(facts["deliver_id"], **facts["trigger_ctx"]) if "deliver_id" in facts else None


def watch_key(actor: bytes, slot_prefix: bytes = b"") -> bytes:
    """Return the key that watches an actor's slots whose names begin with a prefix.

    Raises:
        ValueError: If the address is not 20 bytes.
    """
    if len(actor) != ADDRESS_WIDTH:
        raise ValueError(f"an actor's address is {ADDRESS_WIDTH} bytes, got {len(actor)}")
    return actor + slot_prefix


def bid(whole: int, numerator: int = 0, denominator: int = 1) -> int:
    """Return a bid of Globalbox, Q32.96: ``whole + numerator / denominator`` base units per cycle, rounded down.

    Spec: CIP-5old §5.1

    Raises:
        ValueError: If it is below 0, or is 2**32 or more.
    """
    parts = (whole << FRACTION_BITS) + (numerator << FRACTION_BITS) // denominator
    if not 0 <= parts < 1 << BID_BITS:
        raise ValueError(
            f"a bid is from 0 to below 2**32 base units per cycle, got {whole} + {numerator}/{denominator}"
        )
    return parts


@dataclass(frozen=True)
class AuctionBidContext:
    """The facts given to an agent of the auction. Prices are base units per cycle or cell. Spec: CIP-1v1 §3."""

    trigger_block_height: int  # height of the timer
    current_block_height: int  # the difference is how late the timer is
    basefee_cycle: int  # of a fire
    basefee_cell: int  # of a fire
    last_block_cycle_usage: int  # cycles of the previous block
    owner_actor_balance: int  # base units of the timer's actor

    @classmethod
    def decode(cls, payload: bytes) -> "AuctionBidContext":
        """Return the context from the payload of ``get_gas_bid``; as `GasBidContext.decode`."""
        from cowboy_sdk import codec

        fields: dict[str, Any] = codec.decode(payload)
        return cls(**fields)


def auction_bid(max_fee_per_cycle: int, tip_per_cycle: int) -> dict[str, int]:
    """Return the answer of a handler ``get_gas_bid`` in the auction. Spec: CIP-1v1 §3.

    Args:
        max_fee_per_cycle: Cap of cycle basefee and tip together, base units.
        tip_per_cycle: Tip, base units; the part above the cap less the cycle basefee is not paid.

    Raises:
        ValueError: If the tip is above the cap.
    """
    if tip_per_cycle > max_fee_per_cycle:
        raise ValueError(
            f"tip_per_cycle is {tip_per_cycle}, above max_fee_per_cycle, {max_fee_per_cycle}, which caps it"
        )
    return {"max_fee_per_cycle": max_fee_per_cycle, "tip_per_cycle": tip_per_cycle}


def default_auction_bid(context: AuctionBidContext) -> dict[str, int]:
    """Return the default bid: twice the cycle basefee, and no tip. Decision: D-57."""
    return auction_bid(2 * context.basefee_cycle, 0)
