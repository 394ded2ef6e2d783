"""What agents ask for, and what they see: orders, plans of timers, fires, ends, and a block's prices.

Heights are block heights of the chain, prices base units a cycle, amounts base units. Nothing here knows whether a
mechanism runs alone or within a chain.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from trailboss.model.timers import TimerEnd


class Schedule(Struct, frozen=True, gc=False, kw_only=True):
    """A timer that an agent wants, and what its fire does: no program runs."""

    actor: int  # number of the actor that owns it
    height: int  # block height at which it is due
    gas_limit: int  # cycles that its fire may use, without those of asking its agent
    cycles: int  # cycles that its fire uses, without those of asking its agent
    cells: int = 0  # cells that its fire uses
    fails: bool = False  # whether its fire reverts
    cap: int | None = None  # max_fee_per_cycle in the lane; None for the default
    tip: int | None = None  # max_priority_fee_per_cycle in the lane, the bid in Globalbox; None for the default
    expires_at: int = 0  # last height at which it can fire; 0 for the farthest
    target: int | None = None  # number of the actor that is called, in Globalbox; None for its owner
    watches: int | None = None  # number of the actor whose slot it waits for, in Globalbox, in place of its height
    value: int = 0  # what its fire is worth to its owner if it is not late
    decay: int = 0  # what it is worth less for each block by which it is late
    tag: int = 0  # the agent's own

    @property
    def called(self) -> int:
        """Number of the actor that its fire calls."""
        return self.actor if self.target is None else self.target


class Cancel(Struct, frozen=True, gc=False):
    """The end of a timer of one's own."""

    plan: "PlannedTimer"


class Fund(Struct, frozen=True, gc=False):
    """Money for an actor, from outside."""

    actor: int
    amount: int


class Work(Struct, frozen=True, gc=False):
    """A transaction that has nothing to do with timers."""

    cycles: int
    cells: int


class Touch(Struct, frozen=True, gc=False):
    """A change of an actor's slot, for the timers that watch it."""

    actor: int


Order = Schedule | Cancel | Fund | Work | Touch


class PlannedTimer(Struct, gc=False, eq=False):
    """A timer that has been accepted."""

    order: Schedule
    agent: int  # number of the agent that it belongs to
    timer_id: bytes
    scheduled_at: int  # height of the block that accepted it


class Fire(NamedTuple):
    """One fire."""

    plan: PlannedTimer
    height: int
    due: int  # height from which it counts as late
    is_ok: bool  # whether it did not revert
    cycles_used: int
    burned: int  # base units
    tip: int  # base units, to the proposer

    @property
    def late(self) -> int:
        """Blocks by which it came after its height."""
        return self.height - self.due

    @property
    def paid(self) -> int:
        """Base units that it cost its payer."""
        return self.burned + self.tip


class UnfiredTimer(NamedTuple):
    """The end of a timer that did not fire."""

    plan: PlannedTimer
    height: int
    end: TimerEnd


class View(Struct, frozen=True, gc=False, kw_only=True):
    """What an agent sees when a block is about to be built."""

    height: int  # of that block
    user_basefee: int  # of a transaction, base units a cycle
    timer_basefee: int  # of a fire, base units a cycle, without the lane's
    cell_basefee: int  # of a fire, base units a cell
    lane_basefee: int  # of the lane; 0 without one
    previous_tip: int  # median tip of the block before; 0 outside the lane
    marginal_tip: int  # least tip of the fires of the block before, base units a cycle; 0 if no due timer waited
    lane_cycles_max: int  # cycles that the fires of one block may use
    has_mailbox: bool  # whether a fire can call another actor than its owner, and wait for a slot: in Globalbox
    balance_of: Callable[[int], int]  # number of an actor to what it holds now
    addresses: Sequence[bytes]  # of all actors, by number


class BlockResult(Struct, frozen=True, gc=False, kw_only=True):
    """What a block came to."""

    view: View  # the prices that were in force in it
    accepted: list[PlannedTimer]  # timers that were scheduled
    fires: list[Fire]  # in order
    endings: list[UnfiredTimer]
    waiting: int  # due timers that wait after it
    timer_cycles: int  # cycles of its fires
    cycles: int  # cycles of everything
    burned: int  # base units, by everything
    tips: int  # base units, to the proposer
    refused: list[tuple[int, Order]]  # orders that found no room, or that a rule refused, with their agents' numbers

    @property
    def marginal_tip(self) -> int:
        """Least tip of its fires, base units a cycle; 0 if no due timer waits, so that any tip would have done."""
        return min((fire.tip // fire.cycles_used for fire in self.fires), default=0) if self.waiting else 0
