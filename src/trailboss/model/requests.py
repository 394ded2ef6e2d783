"""What a frame asks for when it sets a timer of the auction or of Globalbox; None takes the protocol's default."""

import msgspec


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
