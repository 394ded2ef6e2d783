"""The seam: what a mechanism is given, what it answers, and what may differ between mechanisms beyond order.

A mechanism is a pure function from due timers and a block's prices, budgets and balances to one decision a timer.
Delivery carries the decisions out; whatever else sets mechanisms apart it reads from the `LanePolicy`, never from a
mechanism's name.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Protocol

import msgspec

from trailboss.model.timers import DeferralReason, Timer
from trailboss.primitives.units import Amount, Cells, Cycles, Height, Price


class Phase(Enum):
    """Where in a block timers are delivered."""

    AFTER_TRANSACTIONS = "after_transactions"
    """Spec: CIP-5 §5.1."""
    BEFORE_TRANSACTIONS = "before_transactions"
    """Spec: CIP-1v1 §3."""


class Unfunded(Enum):
    """What becomes of a timer whose payer cannot pay when its turn comes."""

    REMOVE = "remove"
    """It ends without running. Spec: CIP-5 §5.4."""
    DEFER = "defer"
    """It waits for a block in which its payer can pay. Spec: CIP-1v1 §4.1."""


class Charging(Enum):
    """When payers are charged, and so what gates the next timer."""

    ALL_FIRST = "all_first"
    """All are classified and pre-charged, then all run; the lane is filled by gas limits. Spec: CIP-5 §5.1."""
    IN_TURN = "in_turn"
    """Each is charged, run and settled before the next is held to what is left of the lane. Spec: CIP-1v3 §3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePolicy:
    """What differs between mechanisms beyond order.

    Attributes:
        phase: Where in a block timers are delivered.
        unfunded: What becomes of a timer whose payer cannot pay.
        charging: When payers are charged.
        examined_max: Due timers that one block examines; the rest stay due, in order. Decision: D-39.
    """

    phase: Phase
    unfunded: Unfunded
    charging: Charging
    examined_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneContext:
    """What one block's delivery offers. Every number is read once a block.

    Spec: CIP-5 §6.3, CIP-5 §6.5

    Attributes:
        height: The block's height.
        cycle_basefee: Base units per cycle in the timer lane, its multiplier applied.
        cell_basefee: Base units per cell in the timer lane, its multiplier applied.
        max_cells_per_fire: Cells one fire may use; every timer is pre-charged for them.
        lane_cycles_max: Cycles of fired handlers in this block.
        gc_cycles_max: Cycles for the removal of expired and unfunded timers, apart from the lane.
        gc_cycles_per_timer: Cycles one removal costs.
        balance_of: Payer to what it can spend as delivery begins, base units.
    """

    height: Height
    cycle_basefee: Price
    cell_basefee: Price
    max_cells_per_fire: Cells
    lane_cycles_max: Cycles
    gc_cycles_max: Cycles
    gc_cycles_per_timer: Cycles
    balance_of: Callable[[bytes], Amount]


class Verdict(StrEnum):
    """What becomes of a due timer in this block. Spec: CIP-5 §5.4."""

    FIRE = "fire"
    """It runs."""
    EXPIRE = "expire"
    """Its last height has passed: it ends without running."""
    UNFUND = "unfund"
    """Its payer cannot pay: it ends without running."""
    DEFER = "defer"
    """It stays due; the decision says why."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """One due timer's fate in one block, with the numbers that led to it.

    Attributes:
        timer: The timer.
        verdict: What becomes of it.
        max_cost: Worst-case cost of the fire at this block's prices, base units: the pre-charge of a timer that
            fires, what an unfunded one would have needed. 0 if expiry was decided before any price.
        available: What the payer could spend when its turn came, earlier pre-charges taken off, base units. 0 if
            expiry was decided before.
        reason: Why it waits; None unless deferred.
        cycle_price: Base units per cycle at which it is pre-charged and settled.
        cell_price: Base units per cell at which it is pre-charged and settled.
    """

    timer: Timer
    verdict: Verdict
    max_cost: Amount
    available: Amount
    reason: DeferralReason | None
    cycle_price: Price
    cell_price: Price


@dataclass(frozen=True, slots=True)
class Selection:
    """What a mechanism answers.

    Attributes:
        decisions: One for each examined timer, in the order in which they apply.
        exhausted: Whether due timers remain that were not looked at, for `LanePolicy.examined_max`.
    """

    decisions: tuple[Decision, ...]
    exhausted: bool


class Mechanism(Protocol):
    """Decides which due timers run in a block, and in which order."""

    @property
    def name(self) -> str:
        """The name by which genesis and the command line know it."""

    @property
    def policy(self) -> LanePolicy:
        """What delivery must do differently for it."""

    def select(self, due: Iterable[Timer], context: LaneContext) -> Selection:
        """Decide about due timers. Changes nothing, and depends on nothing but its arguments and the policy.

        Args:
            due: The due timers, older heights first, FIFO within a height. It may be long and is read lazily: at most
                one timer more than ``policy.examined_max``.
            context: The block's prices, budgets and balances.
        """
