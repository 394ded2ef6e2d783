"""The decision record: what became of each due timer that a block looked at, and why the others were not looked at.

It is kept beside the block, outside consensus: no root and no rule depends on it, and replaying the block gives it
again.

Decision: D-53
"""

from enum import StrEnum
from typing import Final

import msgspec

from trailboss.model.configs import JoiningGap
from trailboss.primitives.units import Amount, Price

ENTRIES_MAX: Final = 256
"""Most timers that one record names; of the others it keeps the number."""

RUNNERS_UP_MAX: Final = 16
"""Timers beyond the last one examined whose ranks are recorded besides: they show who came next, and decide nothing."""


class Stop(StrEnum):
    """Why a block looked at no more due timers."""

    NONE_LEFT = "none_left"
    """There were no others that could have run."""
    LANE_FULL = "lane_full"
    """What was left of the lane was less than the smallest gas limit that waited."""
    PASSED_OVER_MAX = "passed_over_max"
    """As many had been passed over for want of room as one block passes over. Decision: D-54."""
    EXAMINED_MAX = "examined_max"
    """As many had been examined as one block examines. Decision: D-39."""


class FeeSource(StrEnum):
    """Where a timer's two fees come from. Decision: D-16, D-17."""

    NONE = "none"
    """The mechanism has no such fees."""
    FROZEN = "frozen"
    """They were fixed when it was scheduled."""
    DEFAULT = "default"
    """The default agent gave them in this block."""
    AGENT = "agent"
    """The actor's own gas bidding agent gave them in this block."""
    FALLBACK = "fallback"
    """The default agent gave them, because the actor's own could not be asked or did not answer."""


class ExaminedTimer(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One due timer in one block. Prices are base units per cycle.

    Attributes:
        timer_id: 32 bytes.
        actor: Its owner, 20 bytes.
        rank: Its place in the order of the mechanism, from 1; 0 if it ended, or was set aside, before any ranking.
        outcome: ``fire``, ``expire``, ``unfund`` or ``defer``.
        reason: Why it waits, a `DeferralReason`; empty unless deferred.
        gas_limit: Cycles the fire may use, after any clamp.
        cycles_used: Cycles the fire used; 0 if it did not fire.
        tip: Its priority per cycle: what it pays the proposer.
        weight: W(actor) in parts of 10⁻⁹; 0 under a mechanism without one.
        max_fee: Cap of lane basefee and tip together; 0 under a mechanism without one.
        fee_source: Where its fees come from.
    """

    timer_id: bytes
    actor: bytes
    rank: int
    outcome: str
    reason: str
    gas_limit: int
    cycles_used: int
    tip: Price
    weight: int
    max_fee: Price
    fee_source: FeeSource

    @property
    def effective_priority(self) -> int:
        """What the lane orders by: tip times W, in parts of 10⁻⁹ base units per cycle. Spec: CIP-1v3 §3."""
        return self.tip * self.weight


class AgentFailure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Why a gas bidding agent gave no bid: the timer, 32 bytes, and the words of what went wrong."""

    timer_id: bytes
    what: str


class DecisionRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How one block chose among its due timers. Prices are base units per cycle or cell.

    Attributes:
        mechanism: Which mechanism chose.
        cycle_basefee: Cycle basefee of a fire in this block.
        cell_basefee: Cell basefee of a fire in this block.
        lane_basefee: Lane basefee in force; before the activation the cycle basefee, charged once only (L-30).
        next_lane_basefee: Lane basefee of the next block.
        previous_tip: Median tip of the block before, as agents see it.
        median_fires: Network median of fires within the fairness window.
        lane_cycles_max: Cycles that the lane offers.
        lane_cycles_used: Cycles that fires used.
        max_cycles_per_fire: Cap of one fire; timers with a higher gas limit are set aside.
        lane_burned: Base units that the lane basefee burned in this block.
        examined: Timers that were examined, in the order in which they were decided, and then runners-up; at most
            ``ENTRIES_MAX``.
        examined_count: How many were decided in all.
        cut_off: Rank of the last timer that fired; 0 if none did.
        stopped: Why no more were examined.
        smallest_gas: Smallest gas limit among ranked timers that were not examined; 0 if there were none.
        outranked: Ranked timers not examined; none of them could have run before those that did.
        priced_out: Timers not ranked because their max_fee_per_cycle is below the lane basefee.
        over_cap: Timers not ranked because their gas limit is above the lane's cap for one fire.
        not_joined: Due timers that have yet to join the lane.
        gaps: Where in the due order those are; empty under a mechanism that is offered all.
        agent_cycles: Cycles that gas bidding agents used.
        agent_failures: What went wrong with those that gave no bid; their number is bounded as the questions are.
    """

    mechanism: str
    cycle_basefee: Price
    cell_basefee: Price
    lane_basefee: Price
    next_lane_basefee: Price
    previous_tip: Price
    median_fires: int
    lane_cycles_max: int
    lane_cycles_used: int
    max_cycles_per_fire: int
    lane_burned: Amount
    examined: tuple[ExaminedTimer, ...]
    examined_count: int
    cut_off: int
    stopped: Stop
    smallest_gas: int
    outranked: int
    priced_out: int
    over_cap: int
    not_joined: int
    gaps: tuple[JoiningGap, ...]
    agent_cycles: int
    agent_failures: tuple[AgentFailure, ...] = ()

    def has_joined(self, height: int, sequence: int) -> bool:
        """Return whether a timer that is due in this block had joined the lane. Decision: D-51."""
        return not any(
            (gap.first_height, gap.first_sequence) <= (height, sequence) and height <= gap.last_height
            for gap in self.gaps
        )
