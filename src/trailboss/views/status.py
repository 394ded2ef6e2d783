"""Where a chain stands: height, roots, money, timers, and what its mechanism keeps."""

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.governance.rules import Rules
from trailboss.model.configs import amount_of
from trailboss.primitives.octets import Hash32


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


class LaneStatus(Struct, frozen=True, kw_only=True):
    """The timer lane after a block. Spec: CIP-1v3 §5.

    Attributes:
        active: Whether the next block is under its rules.
        activation_height: First block under them; None if none is set.
        basefee: Lane basefee of the next block, base units per cycle; None before the activation.
        previous_tip: Median tip of the last block, base units per cycle; None before the activation.
        burned: Base units that it has burned.
    """

    active: bool
    activation_height: int | None
    basefee: int | None
    previous_tip: int | None
    burned: int


class AuctionStatus(Struct, frozen=True, kw_only=True):
    """The auction after a block. Spec: CIP-1v1 §3.

    Attributes:
        epoch: Number of the next block's epoch.
        next_epoch_at: First block of the epoch after it.
        waiting: Due timers that have joined and wait.
        actors: Actors that have a weight.
        budget_cycles: Cycles that a block sells.
    """

    epoch: int
    next_epoch_at: int
    waiting: int
    actors: int
    budget_cycles: int


class GlobalboxStatus(Struct, frozen=True, kw_only=True):
    """Globalbox after a block. Spec: CIP-5old §8.

    Attributes:
        queued: Fires that stand in it.
        mailbox: Entries that wait in the mailbox.
        next_deliver_seq: Number that the next entry of the mailbox gets.
        ended_remembered: Ended timers that are remembered.
        governance_epoch: Number of the next block's governance epoch.
        next_governance_epoch_at: First block of the one after it.
    """

    queued: int
    mailbox: int
    next_deliver_seq: int
    ended_remembered: int
    governance_epoch: int
    next_governance_epoch_at: int


class TimerCounts(Struct, frozen=True, kw_only=True):
    """Counts of timers.

    Attributes:
        live: Live now.
        fires: Fires that have run, those of state watches included, which end no timer.
        scheduled: Ever scheduled.
        fired: Ended by a fire.
        unfunded: Ended because nobody could pay.
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


def lane_status(rules: Rules) -> LaneStatus:
    """Return where the timer lane stands, by the rules of the next block."""
    lane = rules.lane
    return LaneStatus(
        active=lane is not None,
        activation_height=rules.params.lane.activation_height or None,
        basefee=None if lane is None else lane.basefee,
        previous_tip=None if lane is None else lane.previous_tip,
        burned=0 if lane is None else amount_of(lane.state.burned),
    )


def auction_status(chain: ChainReader) -> AuctionStatus | None:
    """Return where the auction stands, or None. Complexity: O(accounts)."""
    if chain.rules().auction is None:
        return None
    found = chain.auction()
    return AuctionStatus(
        epoch=found.epoch,
        next_epoch_at=found.next_epoch_at,
        waiting=found.waiting,
        actors=len(found.actors),
        budget_cycles=chain.rules().params.auction.budget_cycles,
    )


def globalbox_status(rules: Rules) -> GlobalboxStatus | None:
    """Return where Globalbox stands, by the rules of the next block, or None."""
    state = rules.globalbox
    if state is None:
        return None
    length = rules.params.globalbox.epoch_blocks
    return GlobalboxStatus(
        queued=state.queued,
        mailbox=state.next - state.first,
        next_deliver_seq=state.next,
        ended_remembered=state.next_ended - state.first_ended,
        governance_epoch=rules.height // length,
        next_governance_epoch_at=(rules.height // length + 1) * length,
    )
