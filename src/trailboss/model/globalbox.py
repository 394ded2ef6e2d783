"""Globalbox between two blocks, and the mailbox that it feeds. Spec: CIP-5old §5.3, CIP-5old §9."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from trailboss.codec.canonical import pack
from trailboss.model.terms import Trigger
from trailboss.model.timers import Timer
from trailboss.primitives.units import Cells, Height

STANDING_WIDTH: Final = 32
BID_WIDTH: Final = 16
FRACTION_BITS: Final = 96  # Fractional bits of Q32.96, the unit of bids and scores. Spec: CIP-5old §5.1.
SHOWN_DECIMALS: Final = 9  # decimals of a bid that people see
_SHOWN_UNIT: Final = 10**SHOWN_DECIMALS


class GlobalboxState(msgspec.Struct, frozen=True, array_like=True):
    """The queue's running numbers."""

    clock: bytes = bytes(STANDING_WIDTH)  # age gained by ``clock_height``: 32 bytes, in units of 2⁻⁹⁶
    clock_height: int = 0  # block of that count
    age_weight: bytes = bytes(16)  # W_age since then, in units of 2⁻⁹⁶ a block, 16 bytes
    first: int = 0  # deliver_seq of the oldest entry in the mailbox
    next: int = 0  # deliver_seq of the next entry
    queued: int = 0  # fires in Globalbox
    first_ended: int = 0  # number of the oldest ended timer that is still remembered
    next_ended: int = 0  # number of the next one


class CarriedHit(NamedTuple):
    """A key that counts as modified in the next block as well.

    A timer handler or a message modified it after the delivery, or more timers watch it than one block inserts.
    Decision: D-31, D-65.
    """

    key: bytes
    next_sequence: int  # timers from this FIFO sequence on have not been notified yet
    modified_at: int  # block as of which it counts as modified; timers set in that block or later ignore it


class CarriedHits(msgspec.Struct, frozen=True, array_like=True):
    """All carried hits, ascending by key."""

    hits: tuple[CarriedHit, ...] = ()


class MailboxEntry(msgspec.Struct, frozen=True, array_like=True):
    """A materialized fire. Spec: CIP-5old §9.1."""

    deliver_id: bytes  # 32 bytes, of height, parent state root, timer id and fire_seq
    deliver_seq: int  # its place in the order of execution over the whole chain
    timer: Timer  # the timer's record with the snapshots of payload, gas limit and bid, without a queued fire
    fire_seq: int  # number of the timer's fire, from 0
    hit_height: Height  # the due height, or the block of the change that hit it
    matched_keys: tuple[bytes, ...]  # watched keys that were modified, ascending; empty for a height
    materialized_at: Height  # block that created the entry
    reserved: bytes  # base units that its owner paid in advance, 16 bytes
    cycle_basefee: bytes  # base units per cycle then, 16 bytes; it and the bid settle the fire
    cell_basefee: bytes  # base units per cell then, 16 bytes
    cells_limit: Cells  # cells that it can use

    @property
    def is_last(self) -> bool:
        """Whether its timer ends with it: a height timer fires once. Decision: D-31."""
        return self.timer.terms is not None and not self.timer.terms.is_watch


class TimerStatus(StrEnum):
    """Status of a timer of Globalbox. Spec: CIP-5old §5.1."""

    ACTIVE = "ACTIVE"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"


class EndedTimer(msgspec.Struct, frozen=True, array_like=True):
    """An ended timer, remembered until it is collected. Spec: CIP-5old §14. Decision: D-64."""

    timer_id: bytes  # 32 bytes
    owner: bytes  # 20 bytes
    target: bytes  # 20 bytes
    kind: Trigger  # what fired it
    status: TimerStatus  # ``CANCELLED`` or ``COMPLETED``
    fire_seq: int  # fires materialized
    last_fire_height: int  # block of the last of them; 0 for none
    ended_at: int  # block in which it ended


encode_entry: Final[Callable[[MailboxEntry], bytes]] = pack
decode_entry: Final[Callable[[bytes], MailboxEntry]] = msgspec.msgpack.Decoder(MailboxEntry).decode
"""Return the entry that bytes of this chain's own state hold."""


def bid_octets(bid: int) -> bytes:
    """Return a Q32.96 number as records hold it."""
    return bid.to_bytes(BID_WIDTH, "big")


def bid_of(octets: bytes) -> int:
    """Return the Q32.96 number that a record holds, in units of 2⁻⁹⁶."""
    return int.from_bytes(octets, "big")


def format_bid(bid: int) -> str:
    """Return a bid in units of 2⁻⁹⁶ as base units per cycle, with at most nine decimals; an ellipsis marks a cut.

    >>> format_bid(1_250 << 96), format_bid(5 << 95), format_bid((1 << 96) // 3)
    ('1,250', '2.5', '0.333333333…')
    """
    whole, fraction = bid >> FRACTION_BITS, bid & ((1 << FRACTION_BITS) - 1)
    part = fraction * _SHOWN_UNIT
    decimals = f"{part >> FRACTION_BITS:0{SHOWN_DECIMALS}}"
    if part & ((1 << FRACTION_BITS) - 1):
        return f"{whole:,}.{decimals}…"
    return f"{whole:,}.{decimals}".rstrip("0").removesuffix(".") if fraction else f"{whole:,}"


def standing_octets(standing: int) -> bytes:
    """Return a standing, or the age clock, as records hold it."""
    return standing.to_bytes(STANDING_WIDTH, "big", signed=True)


def standing_of(octets: bytes) -> int:
    """Return the standing that a record holds, in units of 2⁻⁹⁶."""
    return int.from_bytes(octets, "big", signed=True)
