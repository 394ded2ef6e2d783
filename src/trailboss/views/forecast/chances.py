"""How often a timer would have run in the last blocks, worked out from their decision records.

Decision: D-53
"""

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct

from trailboss.execution.decision_recorder import CANCELLED
from trailboss.fees.settlement import offered_tip
from trailboss.mechanisms.base import Verdict
from trailboss.model.decisions import DecisionRecord, Stop
from trailboss.model.timers import DeferralReason
from trailboss.primitives.units import U64_MAX, Price
from trailboss.views.forecast.recent import RecentBlock


class Chance(Struct, frozen=True):
    """How often a timer like this would have run within so many blocks of its due height.

    Attributes:
        within: Blocks, the due one counted.
        runs: Of the recent blocks taken as the due one, those from which on it would have run in time.
        of: How many there are with so many blocks to look at; 0 if the chain is too young to say.
    """

    within: int
    runs: int
    of: int

    @property
    def share(self) -> Fraction | None:
        """The chance, exactly; None without a block to judge by."""
        return Fraction(self.runs, self.of) if self.of else None


class Offer(Struct, frozen=True):
    """A timer that recent blocks are asked about. Prices are base units per cycle.

    Attributes:
        gas_limit: Cycles the fire may use.
        max_fee: Cap of lane basefee and tip together; of no effect under FIFO.
        priority: Cap of the tip; of no effect under FIFO.
        weight: W(actor) in parts of 10⁻⁹.
    """

    gas_limit: int
    max_fee: int
    priority: int
    weight: int


def why_not(recent: RecentBlock, offer: Offer) -> DeferralReason | None:
    """Return why a timer would not have run in a recent block; None if it would have."""
    record, lane_basefee = recent.block.decisions, recent.lane_basefee
    if lane_basefee is None:
        return None if record is None else _why_not_in_order(record, offer)
    if offer.max_fee < lane_basefee:
        return DeferralReason.PRICED_OUT
    if record is None:
        return None
    if not record.has_joined(recent.block.height, U64_MAX):
        return DeferralReason.NOT_JOINED
    tip = offered_tip(offer.max_fee, offer.priority, Price(lane_basefee))
    return DeferralReason.OUTRANKED if _lane_left(record, tip * offer.weight) < offer.gas_limit else None


def chance_within(verdicts: Sequence[DeferralReason | None], within: int) -> Chance:
    """Return how many of the blocks begin a run of so many in which any says yes; see `Chance`.

    Args:
        verdicts: `why_not` of each recent block, oldest first.
        within: Length of the run, at least 1.
    """
    starts = range(max(len(verdicts) - within + 1, 0))
    return Chance(within, sum(None in verdicts[start : start + within] for start in starts), len(starts))


def _why_not_in_order(record: DecisionRecord, offer: Offer) -> DeferralReason | None:
    """Return why a timer would not have run as the last of a FIFO block."""
    if _fifo_left(record) < offer.gas_limit:
        return DeferralReason.LANE_FULL
    waited = any(timer.reason == DeferralReason.CELLS_FULL for timer in record.examined)
    return DeferralReason.CELLS_FULL if waited else None


def _fifo_left(record: DecisionRecord) -> int:
    """Return the cycles that a FIFO block had left, reserved ones taken off; 0 if the record does not name all."""
    if record.examined_count > len(record.examined) or record.stopped is Stop.EXAMINED_MAX:
        return 0
    took = sum(timer.gas_limit for timer in record.examined if timer.outcome in (Verdict.FIRE.value, CANCELLED))
    return record.lane_cycles_max - took


def _lane_left(record: DecisionRecord, effective_priority: int) -> int:
    """Return the cycles that a block of the lane had left for a timer of that effective priority, at its turn."""
    ranked = [timer for timer in record.decided if timer.rank]
    if not any(timer.effective_priority < effective_priority for timer in ranked):
        # Its turn comes after all that are named, and after those that the record has no room for.
        is_cut = record.stopped in (Stop.EXAMINED_MAX, Stop.PASSED_OVER_MAX, Stop.CELLS_FULL)
        return 0 if is_cut else record.lane_cycles_max - record.lane_cycles_used
    before = sum(timer.cycles_used for timer in ranked if timer.effective_priority >= effective_priority)
    return record.lane_cycles_max - before
