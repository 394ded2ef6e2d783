"""Where a height belongs: pure arithmetic of the three tiers.

A height lies in the ring when its epoch has begun, in the epoch queue when its epoch is one of the next
``epoch_count``, and in the overflow set beyond. So a height changes tier at the first block of an epoch and at no
other time, and it never belongs to two tiers.

The overview's examples, with the geometry that they assume:

>>> calendar = CalendarParams(ring_size=256, epoch_length=360, epoch_count=13)
>>> tier_of(1050, 1000, calendar).value
'ring'
>>> tier_of(1500, 1000, calendar).value, epoch_of(1500, calendar), epoch_start(4, calendar)
('epoch', 4, 1440)
>>> tier_of(1500, 1439, calendar).value, tier_of(1500, 1440, calendar).value
('epoch', 'ring')
>>> tier_of(50_000, 1000, calendar).value, tier_of(50_000, 45_000, calendar).value
('overflow', 'epoch')

Decision: D-10
"""

from enum import StrEnum

from trailboss.params import CalendarParams
from trailboss.primitives.errors import ConfigurationError


class Tier(StrEnum):
    """The part of the queue that a height belongs to. Spec: CIP-1v3 §2."""

    RING = "ring"  # its epoch has begun, or is over and it still waits. Spec: CIP-1v3 §2.1.
    EPOCH = "epoch"  # its epoch is one of the next ``epoch_count``. Spec: CIP-1v3 §2.2.
    OVERFLOW = "overflow"  # its epoch lies beyond those. Spec: CIP-1v3 §2.3.


def check_calendar(calendar: CalendarParams) -> None:
    """Refuse a ring in which a whole epoch and the block before it have no slots of their own.

    Spec: CIP-1v3 §2.1. Decision: D-10
    """
    if calendar.ring_size <= calendar.epoch_length:
        raise ConfigurationError(
            f"calendar.ring_size = {calendar.ring_size} is too small: "
            f"it must be at least calendar.epoch_length + 1 = {calendar.epoch_length + 1}"
        )


def epoch_of(height: int, calendar: CalendarParams) -> int:
    """Return the epoch of a height; epoch 0 begins at genesis. Rounds down."""
    return height // calendar.epoch_length


def epoch_start(epoch: int, calendar: CalendarParams) -> int:
    """Return the first height of an epoch."""
    return epoch * calendar.epoch_length


def tier_of(height: int, now: int, calendar: CalendarParams) -> Tier:
    """Return the tier of a height, which lies before ``now`` if it still waits. Spec: CIP-1v3 §2. Decision: D-10."""
    epochs_ahead = height // calendar.epoch_length - now // calendar.epoch_length
    if epochs_ahead <= 0:
        return Tier.RING
    return Tier.EPOCH if epochs_ahead <= calendar.epoch_count else Tier.OVERFLOW
