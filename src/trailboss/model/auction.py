"""The GBA auction between two blocks: the weights of its actors, and what they follow from.

Spec: CIP-1v1 §3
Decision: D-18, D-58, D-59
"""

from enum import IntEnum
from typing import Final

import msgspec

from trailboss.model.configs import AMOUNT_WIDTH

SCORE_UNIT: Final = 1_000_000_000
"""What 1 is for scores and weights, which are integers."""


class DelayAction(IntEnum):
    """What happens to a timer that waits longer than ``MAX_ALLOWED_DELAYS``. Decision: D-19."""

    EVENT = 0
    """It is told so, once."""
    FRONT = 1
    """It is told so, and from then on goes before all that are not late, by due order."""
    CANCEL = 2
    """It is cancelled, and its owner pays a penalty."""


class AuctionState(msgspec.Struct, frozen=True, array_like=True):
    """What all actors have in common.

    Attributes:
        rescales: What governance has multiplied all weights by, in parts of `SCORE_UNIT`, in order; 0 for a reset.
    """

    rescales: tuple[int, ...] = ()


class AuctionEpoch(msgspec.Struct, frozen=True, array_like=True):
    """One epoch's sums; it goes when the last actor has drawn its weight from it.

    Attributes:
        highest_tip: Highest effective tip per cycle of a fire, 16 bytes.
        cycles_used: Cycles of all fires.
        actors: Actors whose records are about it: they have not drawn their weight from it yet.
    """

    highest_tip: bytes = bytes(AMOUNT_WIDTH)
    cycles_used: int = 0
    actors: int = 0


class AuctionActor(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """An actor's weight, and what it has done in the epoch in which that weight was last brought up to date.

    What it does until it is brought up to date again counts there too, be it in a later epoch.

    Attributes:
        weight: In parts of `SCORE_UNIT`.
        rescaled: How many of `AuctionState.rescales` are in it.
        epoch: The epoch that the rest is about.
        fires: Fires.
        deferrals: Blocks that its timers have waited after they fell due, summed over the timers, up to ``counted_at``.
        waiting: Due timers that have joined and wait.
        counted_at: Block up to which ``deferrals`` is counted.
        quiet_since: Block of its last fire, or the one before it began to wait if that is later.
        longest_wait: Most blocks in a row that it has waited without a fire, at the end of any block up to
            ``counted_at``.
        took_part: Whether one of its timers has joined, fired, or waited at the end of a block up to ``counted_at``.
        highest_tip: Highest effective tip per cycle of a fire, 16 bytes.
        cycles_used: Cycles of its fires.
    """

    weight: int
    rescaled: int = 0
    epoch: int = 0
    fires: int = 0
    deferrals: int = 0
    waiting: int = 0
    counted_at: int = 0
    quiet_since: int = 0
    longest_wait: int = 0
    took_part: bool = False
    highest_tip: bytes = bytes(AMOUNT_WIDTH)
    cycles_used: int = 0
