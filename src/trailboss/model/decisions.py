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

APART_MAX: Final = 64
"""Of those, the most for each thing that comes before a turn to fire: into Globalbox, from there to the mailbox,
expired, late, and out of a ranking for want of funds."""

RUNNERS_UP_MAX: Final = 16
"""Timers beyond the last one examined whose ranks are recorded besides: they show who came next, and decide nothing."""


class Stop(StrEnum):
    """Why a block looked at no more due timers."""

    NONE_LEFT = "none_left"
    """There were no others that could have run."""
    LANE_FULL = "lane_full"
    """What was left of the lane was less than the smallest gas limit that waited."""
    CELLS_FULL = "cells_full"
    """What was left of the block's cells for fires was less than one fire may use. Decision: D-80."""
    PASSED_OVER_MAX = "passed_over_max"
    """As many had been passed over for want of room as one block passes over. Decision: D-54."""
    EXAMINED_MAX = "examined_max"
    """As many had been examined as one block examines. Decision: D-39."""


class Order(StrEnum):
    """What a mechanism ranks due timers by."""

    DUE = "due"
    """Height and insertion. Spec: CIP-5 §3.2."""
    PRIORITY = "priority"
    """Tip times W(actor). Spec: CIP-1v3 §3."""
    TIP = "tip"
    """Effective tip, and then its actor's weight. Spec: CIP-1v1 §3."""
    STANDING = "standing"
    """Its fire's standing in Globalbox. Spec: CIP-5old §8.2."""


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
        outcome: A `Verdict` of the mechanism, as ``fire`` or ``defer``; ``cancelled`` if it was to fire and an earlier
            fire of the block has cancelled it.
        reason: Why it waits, a `DeferralReason`; empty unless deferred.
        gas_limit: Cycles the fire may use, after any clamp.
        cycles_used: Cycles the fire used; 0 if it did not fire.
        tip: Its priority per cycle: what it pays the proposer.
        weight: W(actor) in parts of 10⁻⁹; 0 under a mechanism without one.
        max_fee: Cap of lane basefee and tip together, in the auction of cycle basefee and tip; 0 under a mechanism
            without one.
        fee_source: Where its fees come from.
        target: Actor whose handler runs, 20 bytes, if that is another than its owner; else empty.
        standing: Where its fire stands in Globalbox, in units of 2⁻⁹⁶: the greater comes first; None outside of it.
        fire_seq: Which fire of the timer it is, from 0; None but for Globalbox.
        deliver_seq: Number of the fire's entry in the mailbox; None outside of it.
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
    target: bytes = b""
    standing: int | None = None
    fire_seq: int | None = None
    deliver_seq: int | None = None

    @property
    def effective_priority(self) -> int:
        """What the lane orders by: tip times W, in parts of 10⁻⁹ base units per cycle. Spec: CIP-1v3 §3."""
        return self.tip * self.weight


class AgentFailure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Why a gas bidding agent gave no bid: the timer, 32 bytes, and the words of what went wrong."""

    timer_id: bytes
    what: str


class AgentBid(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a gas bidding agent has bid for a timer.

    Attributes:
        timer_id: 32 bytes.
        max_fee: Its cap, base units per cycle.
        max_priority_fee: The cap of its tip, base units per cycle.
        cell_fees: The same two per cell; None if it states none. Decision: D-86.
    """

    timer_id: bytes
    max_fee: Price
    max_priority_fee: Price
    cell_fees: tuple[Price, Price] | None = None


class DecisionRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How one block chose among its due timers. Prices are base units per cycle or cell.

    Attributes:
        mechanism: Which mechanism chose.
        order: What it ranks by.
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
            ``ENTRIES_MAX``, and of each thing that comes before a turn at most ``APART_MAX``. Under
            Globalbox a timer may be among them several times.
        runner_up_count: How many of them are runners-up: the next in rank, about which nothing was decided.
        examined_count: How many were decided in all.
        cut_off: Rank of the last timer that fired; 0 if none did.
        stopped: Why no more were examined.
        smallest_gas: Smallest gas limit among ranked timers that were not examined; 0 if there were none.
        outranked: Ranked timers not examined; none of them could have run before those that did.
        priced_out: Timers not ranked because their max_fee_per_cycle is below the lane basefee, in the auction below
            the cycle basefee, or because the max_fee_per_cell that an agent states is below the cell basefee.
        over_cap: Timers not ranked because their gas limit is above the lane's cap for one fire.
        not_joined: Due timers that have yet to join.
        gaps: Where in the due order those are; empty under a mechanism that is offered all.
        agent_cycles: Cycles that gas bidding agents used.
        agent_failures: What went wrong with those that gave no bid; their number is bounded as the questions are.
        agent_bids: What the others bid, in the order of the questions; at most ``ENTRIES_MAX``.
        queued: Fires that stand in Globalbox after the block.
        in_mailbox: Entries that wait in its mailbox after the block.
        carried: Modified keys of which more watches are to hear in the next block.
    """

    mechanism: str
    order: Order
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
    runner_up_count: int
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
    agent_bids: tuple[AgentBid, ...] = ()
    queued: int = 0
    in_mailbox: int = 0
    carried: int = 0

    @property
    def decided(self) -> tuple[ExaminedTimer, ...]:
        """The timers that it names and that were decided, in that order."""
        return self.examined[: len(self.examined) - self.runner_up_count]

    @property
    def runners_up(self) -> tuple[ExaminedTimer, ...]:
        """The timers that it names besides: the next in rank."""
        return self.examined[len(self.examined) - self.runner_up_count :]

    def has_joined(self, height: int, sequence: int) -> bool:
        """Return whether a timer that is due in this block had joined. Decision: D-51."""
        return not any(gap.holds(height, sequence) for gap in self.gaps)
