"""What an actor's weight becomes, in parts of `SCORE_UNIT`; every quotient is rounded down, and 0 if it has no divisor.

Spec: CIP-1v1 §3
Decision: D-18, D-59
"""

from collections.abc import Iterable
from typing import Final

from trailboss.model.auction import SCORE_UNIT, AuctionActor, AuctionEpoch
from trailboss.model.configs import amount_of
from trailboss.params import AuctionParams
from trailboss.primitives.units import clamp

RESET: Final = 0
"""The factor that resets a weight instead of multiplying it."""


def score_of(actor: AuctionActor, epoch: AuctionEpoch, lateness_scale: int) -> int:
    """Return an actor's score of an epoch: the mean of effective tip, outcome, lateness and sparing use.

    Args:
        actor: Its record; deferrals are counted to the end of the epoch.
        epoch: What all have done, this actor included.
        lateness_scale: Blocks of lateness that score one half.
    """
    tip = _quotient(amount_of(actor.highest_tip), amount_of(epoch.highest_tip))
    outcome = _quotient(actor.fires, actor.fires + actor.deferrals)
    late = actor.deferrals // max(1, actor.fires + actor.waiting)
    lateness = _quotient(late, late + lateness_scale)
    sparing = SCORE_UNIT - _quotient(actor.cycles_used, epoch.cycles_used)
    parts = (tip, outcome, lateness, sparing)
    return sum(parts) // len(parts)


def weight_after(actor: AuctionActor, epoch: AuctionEpoch, auction: AuctionParams) -> int:
    """Return an actor's weight after an epoch in which it took part; deferrals are counted to the end of the epoch.

    It moves towards the score by the share λ, within its bounds; an actor that was starved has the floor at least.
    """
    score = score_of(actor, epoch, auction.lateness_scale)
    moved = ((SCORE_UNIT - auction.decay) * actor.weight + auction.decay * score) // SCORE_UNIT
    weight = clamp(moved, auction.weight_min, auction.weight_max)
    return max(weight, auction.starvation_floor) if actor.longest_wait >= auction.starvation_blocks else weight


def relaxed(weight: int, start: int, epochs: int) -> int:
    """Return a weight after epochs in which its actor took no part: each halves the distance to the start.

    Half of an odd distance is rounded toward zero, so k halvings leave ⌈distance / 2ᵏ⌉, and never nothing.

    >>> relaxed(900, 500, 0), relaxed(900, 500, 1), relaxed(900, 500, 3), relaxed(105, 500, 1), relaxed(505, 500, 99)
    (900, 700, 550, 302, 501)
    """
    if weight >= start:
        return start - ((start - weight) >> epochs)
    return start + ((weight - start) >> epochs)


def rescaled(weight: int, factors: Iterable[int], auction: AuctionParams) -> int:
    """Return a weight after what governance has multiplied all weights by, in parts of `SCORE_UNIT`, in order."""
    for factor in factors:
        product = auction.weight_start if factor == RESET else weight * factor // SCORE_UNIT
        weight = clamp(product, auction.weight_min, auction.weight_max)
    return weight


def _quotient(part: int, whole: int) -> int:
    return SCORE_UNIT * part // whole if whole else 0
