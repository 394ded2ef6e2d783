"""The decision record: what became of each due timer that a block examined, and why it examined no others.

It is kept beside the block, outside consensus: no root and no rule depends on it, and replaying the block restores it.
Decision: D-53.
"""

from enum import StrEnum
from typing import Final

import msgspec

from trailboss.model.configs import JoiningGap
from trailboss.primitives.units import Amount, Price

ENTRIES_MAX: Final = 256  # most timers that one record names; it counts the others

APART_MAX: Final = 64
"""Most entries for each outcome before a turn to fire: into Globalbox, into the mailbox, expired, late, or unranked for
want of funds.
"""

RUNNERS_UP_MAX: Final = 16
"""Recorded timers that rank after the last one examined; they show who came next, and decide nothing."""


class Stop(StrEnum):
    """Why a block examined no more due timers."""

    NONE_LEFT = "none_left"  # no others could have run
    LANE_FULL = "lane_full"  # the lane had less left than the smallest gas limit that waited
    CELLS_FULL = "cells_full"  # the block's cells for fires had less left than one fire can use. Decision: D-80.
    PASSED_OVER_MAX = "passed_over_max"
    """The block had passed over as many for want of room as one block does. Decision: D-54."""
    EXAMINED_MAX = "examined_max"  # the block had examined as many as one block does. Decision: D-39.


class Order(StrEnum):
    """What a mechanism ranks due timers by."""

    DUE = "due"  # Height and insertion. Spec: CIP-5 §3.2.
    PRIORITY = "priority"  # Tip times W(actor). Spec: CIP-1v3 §3.
    TIP = "tip"  # Effective tip, and then its actor's weight. Spec: CIP-1v1 §3.
    STANDING = "standing"  # Its fire's standing in Globalbox. Spec: CIP-5old §8.2.


class FeeSource(StrEnum):
    """Where a timer's two fees come from. Decision: D-16, D-17."""

    NONE = "none"  # the mechanism has no such fees
    FROZEN = "frozen"  # they were fixed when it was scheduled
    DEFAULT = "default"  # the default agent gave them in this block
    AGENT = "agent"  # the actor's own gas bidding agent gave them in this block
    FALLBACK = "fallback"  # the default agent gave them, because the actor's own failed or could not be queried


class ExaminedTimer(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One due timer in one block. Prices are base units per cycle."""

    timer_id: bytes  # 32 bytes
    actor: bytes  # its owner, 20 bytes
    rank: int  # its place in the order of the mechanism, from 1; 0 if it ended, or was set aside, before any ranking
    # A `Verdict` of the mechanism, such as ``fire`` or ``defer``; ``cancelled`` if an earlier fire of the block
    # cancelled it before its turn.
    outcome: str
    reason: str  # why it waits, a `DeferralReason`; empty unless deferred
    gas_limit: int  # cycles the fire can use, after any clamp
    cycles_used: int  # cycles the fire used; 0 if it did not fire
    tip: Price  # its priority per cycle: what it pays the proposer
    weight: int  # W(actor) in parts of 10⁻⁹; 0 under a mechanism without one
    max_fee: Price  # cap of lane basefee (in the auction cycle basefee) and tip; 0 without a market
    fee_source: FeeSource  # where its fees come from
    target: bytes = b""  # actor whose handler runs, 20 bytes, if it is not its owner; else empty
    standing: int | None = None  # its fire's standing in Globalbox, in units of 2⁻⁹⁶, the greater first
    fire_seq: int | None = None  # number of the timer's fire, from 0; None but for Globalbox
    deliver_seq: int | None = None  # number of the fire's entry in the mailbox; None outside of it

    @property
    def effective_priority(self) -> int:
        """The lane's order: tip times W, in parts of 10⁻⁹ base units per cycle. Spec: CIP-1v3 §3."""
        return self.tip * self.weight


class AgentFailure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Why a gas bidding agent gave no bid for a timer, 32 bytes."""

    timer_id: bytes
    what: str


class AgentBid(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A gas bidding agent's bid for a timer, base units."""

    timer_id: bytes  # 32 bytes
    max_fee: Price  # its cap per cycle
    max_priority_fee: Price  # the cap of its tip per cycle
    cell_fees: tuple[Price, Price] | None = None  # the same two per cell; None if it states none. Decision: D-86.


class DecisionRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """How one block chose among its due timers. Prices are base units per cycle or cell."""

    mechanism: str  # which mechanism chose
    order: Order  # what it ranks by
    cycle_basefee: Price  # cycle basefee of a fire in this block
    cell_basefee: Price  # cell basefee of a fire in this block
    lane_basefee: Price  # lane basefee in force; before the activation the cycle basefee, charged once only (L-30)
    next_lane_basefee: Price  # lane basefee of the next block
    previous_tip: Price  # median tip of the block before, as agents see it
    median_fires: int  # network median of fires within the fairness window
    lane_cycles_max: int  # cycles that the lane offers
    lane_cycles_used: int  # cycles that fires used
    max_cycles_per_fire: int  # cap of one fire; timers with a higher gas limit are set aside
    lane_burned: Amount  # base units of lane basefee burned in this block
    # Examined timers in the order of their decisions, then runners-up; at most ``ENTRIES_MAX``, and at most
    # ``APART_MAX`` for each outcome before a turn. Globalbox can list a timer several times.
    examined: tuple[ExaminedTimer, ...]
    runner_up_count: int  # runners-up among them: the next in rank, about which nothing was decided
    examined_count: int  # decisions in all
    cut_off: int  # rank of the last timer that fired; 0 if none did
    stopped: Stop  # why no more were examined
    smallest_gas: int  # smallest gas limit among ranked timers that were not examined; 0 if there were none
    outranked: int  # ranked timers not examined; none of them could have run before those that did
    # Timers not ranked because their max_fee_per_cycle is below the lane basefee, in the auction below the cycle
    # basefee, or because an agent's max_fee_per_cell is below the cell basefee.
    priced_out: int
    over_cap: int  # timers not ranked because their gas limit is above the lane's cap for one fire
    not_joined: int  # due timers that have not joined yet
    gaps: tuple[JoiningGap, ...]  # their places in the due order; empty under a mechanism that is offered all
    agent_cycles: int  # cycles that gas bidding agents used
    agent_failures: tuple[AgentFailure, ...] = ()  # of agents that gave no bid; the limit of queries bounds them
    agent_bids: tuple[AgentBid, ...] = ()  # of the other agents, in the order of queries; at most ``ENTRIES_MAX``
    queued: int = 0  # fires in Globalbox after the block
    in_mailbox: int = 0  # entries that wait in its mailbox after the block
    carried: int = 0  # modified keys that more watches will match in the next block

    @property
    def decided(self) -> tuple[ExaminedTimer, ...]:
        """The decided timers that it names, in that order."""
        return self.examined[: len(self.examined) - self.runner_up_count]

    @property
    def runners_up(self) -> tuple[ExaminedTimer, ...]:
        """The runners-up that it names."""
        return self.examined[len(self.examined) - self.runner_up_count :]

    def has_joined(self, height: int, sequence: int) -> bool:
        """Return whether a timer that is due in this block had joined. Decision: D-51."""
        return not any(gap.holds(height, sequence) for gap in self.gaps)
