"""Where a chain stands: height, roots, money, timers, and what its mechanism keeps."""

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.primitives.octets import Hash32
from trailboss.views.mechanism.auction_records import AuctionStatus, auction_status
from trailboss.views.mechanism.base import Fact
from trailboss.views.mechanism.globalbox_records import GlobalboxStatus, globalbox_status
from trailboss.views.mechanism.lane_records import LaneStatus, lane_status
from trailboss.views.mechanism.registry import views_of


class GenesisFacts(Struct, frozen=True, kw_only=True):
    """What a chain started from.

    Attributes:
        chain_id: Transactions are signed for it.
        preset: Parameter preset.
        mechanism: Scheduling mechanism of the first block.
        instance_id: Digest of all of the genesis.
        block_hash: Hash of block 0.
    """

    chain_id: int
    preset: str
    mechanism: str
    instance_id: Hash32
    block_hash: Hash32


class UserBasefees(Struct, frozen=True, kw_only=True):
    """The basefees of transactions in the next block, base units.

    Attributes:
        cycle: A cycle.
        cell: A cell.
    """

    cycle: int
    cell: int


class TimerCounts(Struct, frozen=True, kw_only=True):
    """Counts of timers.

    Attributes:
        live: Live now.
        fires: Fires that have run, those of state watches included, which end no timer.
        scheduled: Ever scheduled.
        fired: Ended by a fire.
        unfunded: Ended because the payer could not pay.
        expired: Ended by their expiry.
        cancelled: Cancelled.
    """

    live: int
    fires: int
    scheduled: int
    fired: int
    unfunded: int
    expired: int
    cancelled: int


class ChainStatus(Struct, frozen=True, kw_only=True):
    """A chain after a block. Money is base units.

    Attributes:
        height: The block's.
        block_hash: The block's.
        state_root: Root of the state after it.
        timestamp_ms: The block's, milliseconds since 1970.
        genesis: What the chain started from.
        mechanism: What selects the due timers of the next block.
        basefees: Of transactions in the next block.
        lane: The timer lane.
        auction: The auction; None under another mechanism.
        globalbox: Globalbox; None under another mechanism.
        supply: Base units there are by genesis.
        burned: Base units burned since.
        timers: Counts of timers.
    """

    height: int
    block_hash: Hash32
    state_root: Hash32
    timestamp_ms: int
    genesis: GenesisFacts
    mechanism: str
    basefees: UserBasefees
    lane: LaneStatus
    auction: AuctionStatus | None
    globalbox: GlobalboxStatus | None
    supply: int
    burned: int
    timers: TimerCounts


def status_of(chain: ChainReader) -> ChainStatus:
    """Return where a chain stands.

    Complexity: O(accounts) under the auction, else O(1).
    """
    genesis, rules, totals = chain.genesis, chain.rules(), chain.totals()
    cycle, cell = rules.user_basefees()
    supply, burned = chain.economy()
    return ChainStatus(
        height=chain.height,
        block_hash=chain.head.hash,
        state_root=chain.state_root,
        timestamp_ms=chain.head.header.timestamp_ms,
        genesis=GenesisFacts(
            chain_id=genesis.chain_id,
            preset=genesis.preset,
            mechanism=genesis.mechanism,
            instance_id=Hash32(genesis.instance_id()),
            block_hash=chain.blocks[0].hash,
        ),
        mechanism=chain.mechanism.name,
        basefees=UserBasefees(cycle=cycle, cell=cell),
        lane=lane_status(rules),
        auction=auction_status(chain),
        globalbox=globalbox_status(rules),
        supply=supply,
        burned=burned,
        timers=TimerCounts(
            live=chain.timer_count(),
            fires=chain.fire_count(),
            scheduled=totals.scheduled,
            fired=totals.fired,
            unfunded=totals.unfunded,
            expired=totals.expired,
            cancelled=totals.cancelled,
        ),
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


def status_facts(found: ChainStatus | MechanismView) -> tuple[Fact, ...]:
    """Return what a chain's mechanism has to say about where it stands."""
    views = views_of(found.mechanism)
    return tuple(views.status_facts(getattr(found, views.status_field)))
