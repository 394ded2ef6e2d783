"""What actors import for the timer lane, beside the public SDK: how urgent a timer is, and who prices it.

An actor writes ``from trailboss.sdk import PriorityTier, schedule_timer``. Everywhere else the module can be imported
too, for editors and type checks; what asks the chain works in a frame alone.

Spec: CIP-1v3 §6, CIP-1v3 §7
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any


class PriorityTier(Enum):
    """How urgent a timer is, as a part of what the fires of the block before paid. Spec: CIP-1v3 §7.3.

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
) -> bytes:
    """Schedule a timer of the running actor and return its id, 32 bytes.

    While the timer lane is not active there are no tips. An actor has to run before and after the activation, so that
    is the one case in which a hint has no effect; a fee is refused.

    Spec: CIP-1v3 §6, CIP-1v3 §7.3

    Args:
        height: Block height at which it fires.
        payload: Bytes for its handler.
        fee_payer: Account that pays for the fire, 20 bytes; None for the actor itself.
        gas_limit: Cycles that the fire may use; None for the most that it may have.
        expires_at: Last height at which it may fire; None for the farthest one.
        max_fee_per_cycle: Cap of lane basefee and tip together, base units; None for twice the lane basefee.
        max_priority_fee_per_cycle: Tip, base units; None for the median tip of the block before.
        priority_tier_hint: Tip as a multiple of that median, in place of ``max_priority_fee_per_cycle``.

    Raises:
        ValueError: If both the tip and the hint are given.
        TypeError: If the hint is not a `PriorityTier`.
    """
    import pvm_host

    tip = max_priority_fee_per_cycle
    if priority_tier_hint is not None:
        if tip is not None:
            raise ValueError(
                f"max_priority_fee_per_cycle is {tip} and priority_tier_hint is {priority_tier_hint}; give one of them"
            )
        tip = tier_tip(priority_tier_hint)
    identity: bytes = pvm_host.schedule_timer(height, payload, fee_payer, gas_limit, expires_at, max_fee_per_cycle, tip)
    return identity


def tier_tip(tier: PriorityTier) -> int | None:
    """Return the tip that a tier stands for in this block, base units per cycle; None while the lane is not active.

    Spec: CIP-1v3 §7.3

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
    """Have another actor, or this one itself, price the running actor's timers that are scheduled from now on.

    It is asked when a timer is due, by a read-only call of its handler ``get_gas_bid``. Timers that state a fee of
    their own, and those scheduled before, keep what they have.

    Spec: CIP-1v3 §7
    Decision: D-17

    Args:
        agent: Address of the gas bidding agent, 20 bytes; None for the default one.
    """
    import pvm_host

    pvm_host.set_gas_bidding_agent(agent)


@dataclass(frozen=True)
class GasBidContext:
    """What a gas bidding agent is told. Prices are base units per cycle or cell. Spec: CIP-1v3 §7.2.

    Attributes:
        trigger_block_height: Height for which the timer was scheduled.
        current_block_height: Present height; the difference is how late the timer is.
        basefee_cycle: Cycle basefee of a fire.
        basefee_cell: Cell basefee of a fire.
        basefee_lane_timer: Lane basefee, on top of the cycle basefee.
        last_block_cycle_usage: Cycles that the block before has used.
        previous_block_p50_priority_tip_per_cycle: Median tip of the fires of the block before; 0 if there were none.
        owner_actor_balance: What the timer's actor holds, base units.
    """

    trigger_block_height: int
    current_block_height: int
    basefee_cycle: int
    basefee_cell: int
    basefee_lane_timer: int
    last_block_cycle_usage: int
    previous_block_p50_priority_tip_per_cycle: int
    owner_actor_balance: int

    @classmethod
    def decode(cls, payload: bytes) -> "GasBidContext":
        """Return the context that the payload of ``get_gas_bid`` holds.

        In a class of the public SDK's ``@actor`` the handler gets these bytes if it is ``@public(decode="raw")``.

        Raises:
            cowboy_sdk.codec.CodecError: If the payload is not canonical CBOR.
            TypeError: If it has other fields.
        """
        from cowboy_sdk import codec

        fields: dict[str, Any] = codec.decode(payload)
        return cls(**fields)


def gas_bid(max_fee_per_cycle: int, max_priority_fee_per_cycle: int) -> dict[str, int]:
    """Return what a handler ``get_gas_bid`` returns.

    Spec: CIP-1v3 §7.2

    Args:
        max_fee_per_cycle: Cap of lane basefee and tip together, base units.
        max_priority_fee_per_cycle: Tip, base units; what exceeds the cap less the lane basefee is not paid.

    Raises:
        ValueError: If the tip is above the cap, which would be no bid.
    """
    if max_priority_fee_per_cycle > max_fee_per_cycle:
        raise ValueError(
            f"max_priority_fee_per_cycle is {max_priority_fee_per_cycle}, above max_fee_per_cycle, "
            f"{max_fee_per_cycle}, which caps it"
        )
    return {"max_fee_per_cycle": max_fee_per_cycle, "max_priority_fee_per_cycle": max_priority_fee_per_cycle}


def default_gas_bid(context: GasBidContext) -> dict[str, int]:
    """Return what the default agent offers: room for the lane basefee to double, and the median tip within it.

    Spec: CIP-1v3 §7.1
    """
    basefee = context.basefee_lane_timer
    return gas_bid(2 * basefee, min(context.previous_block_p50_priority_tip_per_cycle, basefee))
