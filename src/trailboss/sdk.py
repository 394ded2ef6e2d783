"""What actors import for timers, beside the public SDK: the calls of each mechanism, and what they are priced with.

An actor writes ``from trailboss.sdk import PriorityTier, schedule_timer``. Everywhere else the module can be imported
too, for editors and type checks; what asks the chain works in a frame alone. A call that the mechanism of the chain
does not have is refused with ``pvm_host.HostError``, name ``unsupported``.

Spec: CIP-1v3 §6, CIP-1v3 §7, CIP-1v1 §3, CIP-5old §6
"""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, overload

ADDRESS_WIDTH = 20
FRACTION_BITS = 96
"""Fractional bits of Q32.96, in which Globalbox counts bids. Spec: CIP-5old §5.1."""
BID_BITS = 128


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
    gas_bidding_agent: bytes | None = None,
) -> bytes:
    """Schedule a timer of the running actor and return its id, 32 bytes.

    While the timer lane is not active there are no tips. An actor has to run before and after the activation, so that
    is the one case in which a hint has no effect; a fee is refused.

    Spec: CIP-1v3 §6, CIP-1v3 §7, CIP-1v3 §7.3

    Args:
        height: Block height at which it fires.
        payload: Bytes for its handler.
        fee_payer: Account that pays for the fire, 20 bytes; None for the actor itself.
        gas_limit: Cycles that the fire may use; None for the most that it may have.
        expires_at: Last height at which it may fire; None for the farthest one.
        max_fee_per_cycle: Cap of lane basefee and tip together, base units; None for twice the lane basefee.
        max_priority_fee_per_cycle: Tip, base units; None for the median tip of the block before.
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


def cell_fees(max_fee_per_cell: int, max_priority_fee_per_cell: int = 0) -> dict[str, int]:
    """Return the two fields of a bid about cells, to be joined to those of ``gas_bid`` with ``|``.

    A bid without them pays the cell basefee of the block and no tip.

    Spec: CIP-1v3 §7.1
    Decision: D-86

    Args:
        max_fee_per_cell: Cap of cell basefee and tip together, base units; below the basefee the timer waits.
        max_priority_fee_per_cell: Tip, base units; what exceeds the cap less the cell basefee is not paid.

    Raises:
        ValueError: If the tip is above the cap, which would be no bid.
    """
    if max_priority_fee_per_cell > max_fee_per_cell:
        raise ValueError(
            f"max_priority_fee_per_cell is {max_priority_fee_per_cell}, above max_fee_per_cell, "
            f"{max_fee_per_cell}, which caps it"
        )
    return {"max_fee_per_cell": max_fee_per_cell, "max_priority_fee_per_cell": max_priority_fee_per_cell}


def default_gas_bid(context: GasBidContext) -> dict[str, int]:
    """Return what the default agent offers: room for the lane basefee to double, and the median tip within it.

    Spec: CIP-1v3 §7.1
    """
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
    """Set a timer at a height, and return its id, 32 bytes: in the auction or in Globalbox, which differ in the form.

    Spec: CIP-1v1 §3, CIP-5old §6.1

    Args:
        positional: Under the auction ``height, payload, gba, gas_limit``: the block at which it is due, bytes for the
            handler ``handle_timer`` of this actor, the agent that is asked for its bid, and cycles. Under Globalbox
            ``target, due_height, payload, gas_limit, bid_fp, expiry_height, client_nonce``: the actor whose handler is
            to run, the block from which it is due, bytes for the handler, cycles, a `bid`, the last block in which it
            may be queued, and a name: the same one again returns the id of the timer that has it. No gas limit, or
            None, is the most that a fire may have.
        named: The same by name.
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
    """Set a timer of Globalbox that fires whenever one of the keys has changed, and return its id, 32 bytes.

    Spec: CIP-5old §6.1

    Args:
        target: Actor whose handler is to run, 20 bytes.
        watch_keys: What it watches, each a `watch_key`.
        payload: Bytes for the handler.
        gas_limit: Cycles that a fire may use; None for the most that it may have.
        bid_fp: What a fire bids, a `bid`.
        expiry_height: Last block in which it may fire; None for the farthest one.
        client_nonce: A name: the same one again returns the id of the timer that has it.
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
    """Change a timer of Globalbox for its later fires, and return whether there will be one; None stays as it is.

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

    Spec: CIP-5 §4.1, CIP-5old §6.1

    Args:
        positional: ``timer_id`` under every mechanism; one that is gone is no error. Under Globalbox also ``target,
            timer_id``, which returns whether it was there to cancel, and refuses what never was.
        named: The same by name.
    """
    import pvm_host

    is_cancelled: bool | None = pvm_host.cancel_timer(*positional, **named)
    return is_cancelled


@dataclass(frozen=True)
class Delivery:
    """What a fire of Globalbox knows of itself. Spec: CIP-5old §9.1.

    Attributes:
        deliver_id: 32 bytes that no other delivery has: an actor that must not do a thing twice remembers them.
        kind: ``HEIGHT`` or ``STATE_WATCH``.
        due_height: At which it was due; None for a state watch.
        matched_keys: Watched keys that were modified, ascending, at most 16; empty for a height.
    """

    deliver_id: bytes
    kind: str
    due_height: int | None
    matched_keys: list[bytes]


def current_delivery() -> Delivery | None:
    """Return what the running fire knows of itself; None outside of Globalbox's fires.

    Spec: CIP-5old §9.1, CIP-5old §14
    Decision: D-83
    """
    import pvm_host

    facts = pvm_host.context()
    return Delivery(facts["deliver_id"], **facts["trigger_ctx"]) if "deliver_id" in facts else None


def watch_key(actor: bytes, slot_prefix: bytes = b"") -> bytes:
    """Return the key that watches the slots of an actor whose names begin so; all of them if nothing is given.

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
    """What a gas bidding agent of the auction is told. Prices are base units per cycle or cell. Spec: CIP-1v1 §3.

    Attributes:
        trigger_block_height: Height for which the timer was set.
        current_block_height: Present height; the difference is how late the timer is.
        basefee_cycle: Cycle basefee of a fire.
        basefee_cell: Cell basefee of a fire.
        last_block_cycle_usage: Cycles that the block before has used.
        owner_actor_balance: What the timer's actor holds, base units.
    """

    trigger_block_height: int
    current_block_height: int
    basefee_cycle: int
    basefee_cell: int
    last_block_cycle_usage: int
    owner_actor_balance: int

    @classmethod
    def decode(cls, payload: bytes) -> "AuctionBidContext":
        """Return the context that the payload of ``get_gas_bid`` holds; as `GasBidContext.decode`.

        Raises:
            cowboy_sdk.codec.CodecError: If the payload is not canonical CBOR.
            TypeError: If it has other fields.
        """
        from cowboy_sdk import codec

        fields: dict[str, Any] = codec.decode(payload)
        return cls(**fields)


def auction_bid(max_fee_per_cycle: int, tip_per_cycle: int) -> dict[str, int]:
    """Return what a handler ``get_gas_bid`` returns in the auction.

    Spec: CIP-1v1 §3

    Args:
        max_fee_per_cycle: Cap of cycle basefee and tip together, base units.
        tip_per_cycle: Tip, base units; what exceeds the cap less the cycle basefee is not paid.

    Raises:
        ValueError: If the tip is above the cap, which would be no bid.
    """
    if tip_per_cycle > max_fee_per_cycle:
        raise ValueError(
            f"tip_per_cycle is {tip_per_cycle}, above max_fee_per_cycle, {max_fee_per_cycle}, which caps it"
        )
    return {"max_fee_per_cycle": max_fee_per_cycle, "tip_per_cycle": tip_per_cycle}


def default_auction_bid(context: AuctionBidContext) -> dict[str, int]:
    """Return what is bid for a timer without an answer: room for the cycle basefee to double, and no tip.

    Decision: D-57
    """
    return auction_bid(2 * context.basefee_cycle, 0)
