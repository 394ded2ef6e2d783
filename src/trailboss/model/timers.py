"""The timer record, requests for timers, and the ways in which one ends."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from trailboss.codec.canonical import pack
from trailboss.crypto.digest import keccak256
from trailboss.model.configs import AMOUNT_WIDTH, amount_octets
from trailboss.model.terms import AuctionTerms, GlobalboxTerms, Terms
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.primitives.units import Cycles, Height

RECORD_VERSION: Final = 3
DEFAULT_HANDLER: Final = "handle_timer"
NO_FEES: Final = b""  # offers what the default agent offers when the timer is due. Decision: D-16.
ASK_AGENT: Final = b"\x01"
"""Offers what its actor's gas bidding agent answers; an agent of its own can follow. Decision: D-16, D-86."""
FEES_WIDTH: Final = 2 * AMOUNT_WIDTH
BID_WIDTH: Final = 4 * AMOUNT_WIDTH  # bytes of a standing bid that states its fees per cell. Decision: D-86.
_ASKING_WIDTHS: Final = (len(ASK_AGENT), len(ASK_AGENT) + Address.WIDTH)


class Timer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A timer as the state holds it: a positional msgpack array, its version first.

    Spec: CIP-5 §3.1. Decision: D-01 (timer_id), D-02 (sequence), D-03 (access_limit), D-30 (schedule_block).
    """

    version: int  # codec version; another one is refused
    actor: bytes  # owner and execution identity, 20 bytes
    height: Height  # block height at which it is due
    timer_id: bytes  # 32 bytes
    sequence: int  # place in the order of insertion over the whole chain; FIFO within a height
    handler: str  # name of the function or method that it calls
    payload: bytes  # the handler's argument, without an envelope
    fee_payer: bytes  # account debited at the fire, 20 bytes
    gas_limit: Cycles  # cycles the fire can use
    access_limit: int  # stored and shown; the specifications have no price for it. 0 if not given.
    expires_at: Height  # last height at which it can fire
    schedule_block: Height  # height of the block that scheduled it
    deferred_for: str = ""  # its last reported `DeferralReason`; empty while nothing has deferred it
    # Its offer in the timer lane: `NO_FEES`, `ASK_AGENT`, that and the 20 bytes of an agent of its own, or its two
    # frozen fees (`freeze_fees`). In the auction its standing bid, or `ASK_AGENT` before the first.
    fees: bytes = b""
    terms: Terms | None = None  # what the auction or Globalbox keeps with it; None under the other mechanisms

    @property
    def target(self) -> bytes:
        """The actor whose handler it calls, 20 bytes: its owner, unless Globalbox calls another."""
        return self.actor if self.terms is None else self.terms.target_of(self.actor)

    @property
    def waits_to_expire(self) -> bool:
        """Whether its height never comes, so that the calendar holds only its end; Globalbox extends nothing.

        True for every state watch, and for a height timer whose expiry lies before its height. Decision: D-84.
        """
        return self.terms is not None and self.terms.ends_apart and self.expires_at < self.height

    @property
    def own_agent(self) -> bytes:
        """The gas bidding agent of this timer alone, 20 bytes; empty if it has none."""
        return own_agent(self.fees) if self.terms is None else self.terms.own_agent

    def frozen_fees(self) -> tuple[int, int] | None:
        """Return max_fee_per_cycle and max_priority_fee_per_cycle; None if they are settled only at the fire."""
        return stated_fees(self.fees) if is_stated(self.fees) else None

    def cell_fees(self) -> tuple[int, int] | None:
        """Return max_fee_per_cell and max_priority_fee_per_cell of a standing bid that states them, else None."""
        return cell_fees(self.fees)


TermsT = TypeVar("TermsT", AuctionTerms, GlobalboxTerms)


def terms_of(timer: Timer, kind: type[TermsT]) -> TermsT:
    """Return what a mechanism keeps with a timer; `InvariantError` if the timer is another mechanism's."""
    if not isinstance(timer.terms, kind):
        raise InvariantError(f"timer {timer.timer_id.hex()} has no {kind.__name__}")
    return timer.terms


class TimerEnd(StrEnum):
    """The ways in which a timer leaves; exactly one applies. Spec: CIP-5 §5.4."""

    FIRED = "fired"
    UNFUNDED = "unfunded"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class DeferralReason(StrEnum):
    """Why a due timer still waits."""

    LANE_FULL = "lane_full"  # Its gas limit exceeds what is left of the lane. Spec: CIP-5 §6.5.
    CELLS_FULL = "cells_full"
    """What one fire may use exceeds what is left of the block's cells for fires. Decision: D-80."""
    GC_EXHAUSTED = "gc_exhausted"  # It is to be removed, but the block's clean-up budget is spent. Spec: CIP-5 §8.
    UNFUNDED = "unfunded"  # Its payer cannot pay now, under a mechanism that waits for money. Spec: CIP-1 §4.
    OVER_CAP = "over_cap"
    """Its gas limit is above what one fire may use in the lane. Spec: CIP-1v3 §10. Decision: D-13."""
    PRICED_OUT = "priced_out"  # its max_fee_per_cycle is below the lane basefee. Decision: D-14.
    OUTRANKED = "outranked"  # Others offered more, and the lane was full before its turn. Spec: CIP-1v3 §3.
    NOT_JOINED = "not_joined"  # more timers fell due than join the lane in one block. Decision: D-51.


class TimerRequest(msgspec.Struct, frozen=True):
    """What a frame asks for when it schedules; None takes the protocol's default. Spec: CIP-5 §4.1."""

    height: int  # block height at which it is to fire; above the current one
    payload: bytes  # bytes as given, including an envelope
    fee_payer: bytes | None = None  # 20 bytes, or None for the actor itself
    gas_limit: int | None = None  # cycles, or None for TimerConfig.max_cycles_per_fire
    access_limit: int | None = None  # not below 0, or None
    expires_at: int | None = None  # block height, or None for the current height plus max_ttl_blocks
    max_fee_per_cycle: int | None = None
    """Base units, lane basefee and tip together; None for the default. Spec: CIP-1v3 §6."""
    max_priority_fee_per_cycle: int | None = None  # Base units; None for the default. Spec: CIP-1v3 §6.
    gas_bidding_agent: bytes | None = None
    """20 bytes of the agent that prices this timer, or None for its actor's. Spec: CIP-1v3 §7."""
    has_bid: bool = False  # Whether the withdrawn argument ``bid`` was given. Spec: CIP-1v3 §6.


encode_timer: Final[Callable[[Timer], bytes]] = pack
_decoder: Final = msgspec.msgpack.Decoder(Timer)
_version: Final = msgspec.msgpack.Decoder(list[object])


def freeze_fees(max_fee: int, max_priority_fee: int, cell_fees: tuple[int, int] | None = None) -> bytes:
    """Return `Timer.fees` for fees per cycle and, if stated, per cell, each below 2**128. Decision: D-16, D-86."""
    return b"".join(map(amount_octets, (max_fee, max_priority_fee, *(cell_fees or ()))))


def is_stated(fees: bytes) -> bool:
    """Return whether `Timer.fees` holds fees, frozen or of a standing bid."""
    return len(fees) in (FEES_WIDTH, BID_WIDTH)


def stated_fees(fees: bytes) -> tuple[int, int]:
    """Return the first two of the fees that `Timer.fees` holds, base units."""
    return int.from_bytes(fees[:AMOUNT_WIDTH], "big"), int.from_bytes(fees[AMOUNT_WIDTH:FEES_WIDTH], "big")


def cell_fees(fees: bytes) -> tuple[int, int] | None:
    """Return the fees per cell that `Timer.fees` holds, base units; None if it states none."""
    return stated_fees(fees[FEES_WIDTH:]) if len(fees) == BID_WIDTH else None


def asks_agent(fees: bytes) -> bool:
    """Return whether `Timer.fees` leaves them to a gas bidding agent, the actor's or one of the timer's own."""
    return len(fees) in _ASKING_WIDTHS


def own_agent(fees: bytes) -> bytes:
    """Return the agent that `Timer.fees` names, 20 bytes, or nothing."""
    return fees[len(ASK_AGENT) :] if asks_agent(fees) else b""


def decode_timer(octets: bytes) -> Timer:
    """Return the timer that bytes hold; `Rejection` ``INVALID_DATA`` if none of this version. Spec: CIP-5 §3.1."""
    try:
        timer = _decoder.decode(octets)
    except msgspec.DecodeError as error:
        raise Rejection(RejectionReason.INVALID_DATA, _complaint(octets, error), field="timer") from None
    if timer.version != RECORD_VERSION:
        raise Rejection(RejectionReason.INVALID_DATA, _complaint(octets, None), field="timer")
    return timer


def _complaint(octets: bytes, error: Exception | None) -> str:
    # The version comes first, so that it can be read from a record of any shape.
    try:
        version = _version.decode(octets)[0]
    except (msgspec.DecodeError, IndexError):
        version = None
    if version is not None and version != RECORD_VERSION:
        return f"timer record has codec version {version!r}; this chain reads version {RECORD_VERSION}"
    return f"bytes are no timer record of version {RECORD_VERSION}: {error}"


def timer_id(actor: bytes, height: int, payload: bytes, nonce: int) -> bytes:
    """Derive a timer's id: keccak256(actor ‖ height, 8 bytes ‖ payload ‖ nonce, 8 bytes), big-endian.

    ``payload`` includes an envelope; ``nonce`` is the actor's count of accepted schedules so far. Spec: CIP-5 §3.3.
    Decision: D-01.
    """
    return keccak256(actor + height.to_bytes(8, "big") + payload + nonce.to_bytes(8, "big"))
