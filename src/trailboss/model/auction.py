"""The GBA auction's records between two blocks: the weights of its actors, and their sources.

Spec: CIP-1v1 §3. Decision: D-18, D-58, D-59.
"""

from enum import IntEnum
from typing import Final

import msgspec

from trailboss.model.configs import AMOUNT_WIDTH

SCORE_UNIT: Final = 1_000_000_000  # the integer that stands for 1 in scores and weights


class DelayAction(IntEnum):
    """What happens to a timer that waits longer than ``MAX_ALLOWED_DELAYS``. Decision: D-19."""

    EVENT = 0  # one event
    FRONT = 1  # one event, and from then on it goes before all timers that are not late, by due order
    CANCEL = 2  # it is cancelled, and its owner pays a penalty


class AuctionState(msgspec.Struct, frozen=True, array_like=True):
    """The state that all actors share."""

    # Factors of all weights by governance, in parts of `SCORE_UNIT`, in order; 0 for a reset.
    rescales: tuple[int, ...] = ()


class AuctionEpoch(msgspec.Struct, frozen=True, array_like=True):
    """One epoch's sums; it is removed when the last actor has drawn its weight from it."""

    highest_tip: bytes = bytes(AMOUNT_WIDTH)  # highest effective tip per cycle of a fire, 16 bytes
    cycles_used: int = 0  # cycles of all fires
    actors: int = 0  # actors that have not drawn their weight from it yet


class AuctionActor(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """An actor's weight, and its activity since the weight was last updated, even if that spans later epochs."""

    weight: int  # in parts of `SCORE_UNIT`
    rescaled: int = 0  # how many of `AuctionState.rescales` it includes
    epoch: int = 0  # epoch of the last update; the remaining fields belong to it
    fires: int = 0  # fires
    deferrals: int = 0  # blocks that its timers waited once due, summed over them, up to ``counted_at``
    waiting: int = 0  # due timers that have joined and wait
    counted_at: int = 0  # block up to which ``deferrals`` is counted
    quiet_since: int = 0  # block of its last fire, or the one before it began to wait if that is later
    longest_wait: int = 0  # most consecutive blocks that it waited without a fire, up to ``counted_at``
    took_part: bool = False  # whether one of its timers joined, fired, or waited, up to ``counted_at``
    highest_tip: bytes = bytes(AMOUNT_WIDTH)  # highest effective tip per cycle of a fire, 16 bytes
    cycles_used: int = 0  # cycles of its fires
