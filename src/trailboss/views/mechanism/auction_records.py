"""What people look at under the GBA auction: its timers, and the weights of its actors."""

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.execution.auction.standings import counted, find_actors, read_epoch
from trailboss.model.auction import AuctionState
from trailboss.model.configs import MarketKind, amount_of
from trailboss.model.terms import AuctionTerms
from trailboss.model.timers import Timer
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.views.shared_fields import extended


class AuctionTimer(Struct, frozen=True, kw_only=True):
    """What the auction keeps with a live timer. Spec: CIP-1v1 §3, overview."""

    agent: Address  # its gas bidding agent
    bid_max_fee: int | None  # cap per cycle of its standing bid, base units; None before its agent was first asked
    bid_tip: int | None  # cap of the tip of that bid, base units per cycle; None likewise
    asked_at: int | None  # block in which its agent was last asked; None if never
    delay_count: int  # blocks since it was due in which it did not run
    # Whether an event has said that it waits for longer than ``auction.delays_max`` blocks. Decision: D-19.
    is_late: bool


class ActorStanding(Struct, frozen=True, kw_only=True):
    """An actor's weight, and what its next one will follow from. Spec: CIP-1v1 §3. Decision: D-18, D-58."""

    actor: Address  # its address
    weight: int  # in parts of 10⁻⁹
    is_behind: bool  # whether that is a weight from before the present epoch, or before a rescale
    epoch: int  # the epoch in which it was last brought up to date, which the rest is about
    waiting: int  # its due timers that have joined and wait
    fires: int  # fires
    deferrals: int  # blocks that its timers have waited after they fell due, summed over the timers
    longest_wait: int  # most blocks in a row that it has waited without a fire
    highest_tip: int  # highest effective tip of a fire, base units per cycle
    cycles_used: int  # cycles of its fires


class AuctionView(Struct, frozen=True, kw_only=True):
    """The auction after a block. Spec: CIP-1v1 §3."""

    height: int  # the block's
    epoch: int  # number of the next block's epoch
    first_block: int  # first block of it
    next_epoch_at: int  # first block of the next one
    highest_tip: int  # highest effective tip of a fire in the epoch so far, base units per cycle
    cycles_used: int  # cycles of the epoch's fires so far
    waiting: int  # due timers that have joined and wait, of all actors
    # What governance has multiplied all weights by, in parts of 10⁻⁹, in order; 0 for a reset.
    rescales: tuple[int, ...]
    actors: tuple[ActorStanding, ...]  # those that have taken part, ascending by address


def auction_timer(timer: Timer, terms: AuctionTerms, now: int) -> AuctionTimer:
    """Return what the auction keeps with a live timer, as people see it after a block."""
    max_fee, tip = timer.frozen_fees() or (None, None)
    return AuctionTimer(
        agent=Address(terms.agent),
        bid_max_fee=max_fee,
        bid_tip=tip,
        asked_at=terms.asked_at or None,
        delay_count=max(0, now - timer.height + 1),
        is_late=terms.is_late,
    )


class AuctionStatus(Struct, frozen=True, kw_only=True):
    """The auction after a block. Spec: CIP-1v1 §3."""

    epoch: int  # number of the next block's epoch
    next_epoch_at: int  # first block of the epoch after it
    waiting: int  # due timers that have joined and wait
    actors: int  # actors that have a weight
    budget_cycles: int  # cycles that a block sells


def auction_of(chain: ChainReader) -> AuctionView:
    """Return the auction's epoch and weights; `Rejection` ``NOT_FOUND`` without one. O(accounts). Spec: CIP-1v1 §3."""
    rules = chain.rules()
    if rules.market.kind is not MarketKind.AUCTION:
        raise Rejection(RejectionReason.NOT_FOUND, "this chain has no auction: another mechanism was chosen for it")
    now, length, rescales = chain.height, rules.params.calendar.epoch_length, rules.market.kept(AuctionState).rescales
    epoch = rules.height // length
    standings = [
        extended(
            ActorStanding,
            record,
            actor=Address(address),
            is_behind=record.epoch < epoch or record.rescaled < len(rescales),
            highest_tip=amount_of(record.highest_tip),
        )
        for address, record in ((address, counted(record, now)) for address, record in find_actors(chain))
    ]
    sums = read_epoch(chain.store.read, epoch)
    return AuctionView(
        height=now,
        epoch=epoch,
        first_block=epoch * length,
        next_epoch_at=(epoch + 1) * length,
        highest_tip=amount_of(sums.highest_tip),
        cycles_used=sums.cycles_used,
        waiting=sum(standing.waiting for standing in standings),
        rescales=rescales,
        actors=tuple(sorted(standings, key=lambda standing: standing.actor)),
    )


def auction_status(chain: ChainReader) -> AuctionStatus | None:
    """Return the status of the auction, or None. Complexity: O(accounts)."""
    if chain.rules().market.kind is not MarketKind.AUCTION:
        return None
    found = auction_of(chain)
    budget_cycles = chain.rules().params.auction.budget_cycles
    return extended(AuctionStatus, found, actors=len(found.actors), budget_cycles=budget_cycles)
