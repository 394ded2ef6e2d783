"""What a block offers a mechanism: its prices and budgets, and its market.

Numbers are read once a block; callables answer as of now.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from trailboss.model.auction import DelayAction
from trailboss.model.decisions import FeeSource
from trailboss.model.globalbox import CarriedHit, MailboxEntry
from trailboss.model.timers import Timer
from trailboss.primitives.units import U128_MAX, Amount, Cells, Cycles, Height, Price

UNBOUNDED: Final = Cells(U128_MAX)  # cells of a block without a bound: more than its fires ever could use


class Bid(msgspec.Struct, frozen=True, gc=False):
    """What a timer whose agent was asked offers in this block."""

    max_fee: Price  # cap of lane basefee (in the auction cycle basefee) and tip together, base units per cycle
    max_priority_fee: Price  # cap of the tip, base units per cycle
    source: FeeSource
    cycles_used: Cycles = Cycles(0)  # cycles that asking took; they count into its gas if it fires in this block
    # Caps of cell basefee and tip together and of the tip alone, base units per cell; None for the cell basefee and no
    # tip. Spec: CIP-1v3 §7.1. Decision: D-86.
    cell_fees: tuple[Price, Price] | None = None


class Market(Struct, frozen=True, kw_only=True):
    """What a block offers its mechanism beyond prices, budgets and balances; the base itself has nothing to offer."""

    max_cycles_per_fire: Cycles  # cap of one fire
    previous_tip: Price = Price(0)  # median tip of the block before, base units per cycle; 0 outside the lane
    median_fires: int = 0  # network median of fires within the lane's window; 0 outside the lane


MarketT_co = TypeVar("MarketT_co", bound=Market, covariant=True)


class LaneMarket(Market, frozen=True, kw_only=True):
    """The lane's market; timers above the cap are set aside. Spec: CIP-1v3 §5, CIP-1v3 §7, CIP-1v3 §8."""

    basefee: Price  # lane basefee, base units per cycle
    clamps_before: Height  # timers scheduled before this height are held to the cap; 0 for none. Decision: D-13.
    weight_min: int  # least W(actor), in parts of 10⁻⁹, as ``weight_max``
    weight_max: int
    weight_age_blocks: int = 0  # blocks of waiting that add 1 to a weight; 0 for none. Decision: D-106.
    # Actor to the account that its fires count for; None if each counts for itself. Decision: D-106.
    counted_for: Callable[[bytes], bytes] | None = None
    fires_of: Callable[[bytes], int]  # account that fires count for to its fires within the window
    # Asks the agent of a timer whose fees are ``ASK_AGENT``; None once the block's budget is spent.
    ask: Callable[[Timer], Bid | None]
    timer_of: Callable[[int, bytes], Timer]  # height and id of a joined timer to its present record


class AuctionMarket(Market, frozen=True, kw_only=True):
    """The auction in one block. Spec: CIP-1v1 §3, CIP-1v1 §4."""

    epoch: int
    rescales: int  # how often governance has rescaled all weights. Weights fall behind when this or the epoch moves on.
    actors_weighed_max: int  # weights of waiting actors that one block refreshes. Decision: D-59.
    delays_max: int  # blocks after which a timer is late. Decision: D-19.
    delay_action: DelayAction
    default_bid: Bid  # what a timer bids that has no standing bid of its own
    weight_of: Callable[[bytes], int]  # actor to its weight in parts of 10⁻⁹, which only `refresh_weight` moves
    is_behind: Callable[[bytes], bool]  # whether an actor's weight is one of an earlier epoch, or from before a rescale
    refresh_weight: Callable[[bytes], int]  # brings an actor's weight up to date and returns it
    # Asks the agent of a timer, records its bid and returns it; None once the block's budget is spent.
    ask: Callable[[Timer], Bid | None]
    timer_of: Callable[[int, bytes], Timer]  # height and id of a joined timer to its present record


class GlobalboxMarket(Market, frozen=True, kw_only=True):
    """Globalbox in one block. Spec: CIP-5old §8, CIP-5old §13."""

    age_weight: int  # w_age, in units of 2⁻⁹⁶ a block
    bid_weight: int
    clock: int  # the age clock: age that everything in the queue has gained so far, in units of 2⁻⁹⁶. Decision: D-61.
    max_fires: int  # fires materialized in this block
    max_fires_per_target: int
    hits_max: int  # state watches that become candidates in this block. Decision: D-65.
    modified: Sequence[CarriedHit]  # keys that count as modified, ascending: by transactions, or carried over
    timer_of: Callable[[int, bytes], Timer]  # height and id to a timer's present record
    entries: Callable[[], Iterator[MailboxEntry]]  # returns the mailbox as of now, in the order of deliver_seq


class SelectionContext(Struct, Generic[MarketT_co], frozen=True, kw_only=True):
    """What a block offers: numbers as it begins, callables as of now. Spec: CIP-5 §6.3, CIP-5 §6.5."""

    height: Height
    cycle_basefee: Price  # base units per cycle of a fire, its multiplier applied
    cell_basefee: Price  # base units per cell of a fire, its multiplier applied
    max_cells_per_fire: Cells  # cells one fire may use; every timer is pre-charged for them
    lane_cycles_max: Cycles  # cycles of fired handlers in this block
    gc_cycles_max: Cycles  # cycles for the removal of expired and unfunded timers, apart from the lane
    gc_cycles_per_timer: Cycles  # cycles one removal costs
    balance_of: Callable[[bytes], Amount]  # payer to what it can spend now, base units
    lane_cycles_left: Callable[[], int]  # cycles of the lane that no fire has used yet
    market: MarketT_co  # what the mechanism in force is offered beyond that
    lane_cells_max: Cells = UNBOUNDED  # cells of fired handlers in this block. Decision: D-80.
    lane_cells_left: Callable[[], int] = lambda: UNBOUNDED  # cells of those that no fire has used yet
