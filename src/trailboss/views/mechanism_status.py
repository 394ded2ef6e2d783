"""How a chain chooses among its due timers, as people look at it."""

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.views.status import (
    AuctionStatus,
    GlobalboxStatus,
    LaneStatus,
    auction_status,
    globalbox_status,
    lane_status,
)


class CalendarView(Struct, frozen=True, kw_only=True):
    """The tiers in which timers wait for their heights. Spec: CIP-1 §2.

    Attributes:
        ring_size: Heights ahead that have a bucket each.
        epoch_length: Blocks of an epoch.
        epoch_count: Epochs ahead that have a bucket each; beyond lies the overflow.
    """

    ring_size: int
    epoch_length: int
    epoch_count: int


class MechanismView(Struct, frozen=True, kw_only=True):
    """What selects the due timers of the next block.

    Attributes:
        height: Of the last block.
        mechanism: Its name.
        first: Name of the mechanism that the chain began with.
        delivers: Where in a block timers run: ``after_transactions`` or ``before_transactions``.
        charges: When payers are charged: ``all_first`` before any runs, or ``in_turn``.
        examined_max: Due timers that one block examines.
        joined_max: Due timers that join in one block; 0 where all of them are looked at.
        calls: Host calls about timers that actors have.
        calendar: Where timers wait.
        lane: The timer lane.
        auction: The auction; None under another mechanism.
        globalbox: Globalbox; None under another mechanism.
    """

    height: int
    mechanism: str
    first: str
    delivers: str
    charges: str
    examined_max: int
    joined_max: int
    calls: tuple[str, ...]
    calendar: CalendarView
    lane: LaneStatus
    auction: AuctionStatus | None
    globalbox: GlobalboxStatus | None


def mechanism_view(chain: ChainReader) -> MechanismView:
    """Return how the next block chooses among its due timers.

    Complexity: O(accounts) under the auction, else O(1).
    """
    mechanism, calendar, rules = chain.mechanism, chain.params.calendar, chain.rules()
    policy = mechanism.policy
    return MechanismView(
        height=chain.height,
        mechanism=mechanism.name,
        first=chain.genesis.mechanism,
        delivers=policy.phase.value,
        charges=policy.charging.value,
        examined_max=policy.examined_max,
        joined_max=policy.joined_max,
        calls=tuple(sorted(policy.calls)),
        calendar=CalendarView(
            ring_size=calendar.ring_size, epoch_length=calendar.epoch_length, epoch_count=calendar.epoch_count
        ),
        lane=lane_status(rules),
        auction=auction_status(chain),
        globalbox=globalbox_status(rules),
    )
