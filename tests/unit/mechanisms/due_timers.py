"""Due timers as a block gives them to a mechanism: the living in due order, the expired apart."""

from collections.abc import Sequence

from trailboss.mechanisms.base import DueTimers, LeftOut
from trailboss.model.timers import Timer


def due_order(timer: Timer) -> tuple[int, int]:
    """Older heights first, and within a height who was scheduled first."""
    return timer.height, timer.sequence


def expiry_order(timer: Timer) -> tuple[int, int, int]:
    """The first to expire first, and then in due order."""
    return timer.expires_at, timer.height, timer.sequence


def due_apart(timers: Sequence[Timer], height: int) -> DueTimers:
    """Return due timers as for a mechanism without an index: a payer that is out is left out from then on."""
    out = LeftOut()
    alive = [timer for timer in timers if timer.expires_at >= height]
    expired = sorted((timer for timer in timers if timer.expires_at < height), key=expiry_order)
    return DueTimers((timer for timer in alive if timer.fee_payer not in out), expired=iter(expired), out=out)
