"""Where a chain stands: height, roots, money, timers, what its mechanism keeps, and the parameters in force."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import fields

from trailboss.chain.reader import ChainReader
from trailboss.governance.rules import Rules
from trailboss.model.configs import BasefeeConfig, LaneMultipliers, TimerConfig, amount_of
from trailboss.params.loader import SUBJECTS, load_params
from trailboss.primitives.octets import Hash32
from trailboss.sandbox.engines import EngineName, engine_name
from trailboss.views.mechanism.auction_records import AuctionStatus, auction_status
from trailboss.views.mechanism.base import Fact
from trailboss.views.mechanism.globalbox_records import GlobalboxStatus, globalbox_status
from trailboss.views.mechanism.lane_records import LaneStatus, lane_status
from trailboss.views.mechanism.registry import views_of
from trailboss.views.shared_fields import extended


class GenesisFacts(Struct, frozen=True, kw_only=True):
    """What a chain started from."""

    chain_id: int  # transactions are signed for it
    preset: str  # parameter preset
    mechanism: str  # scheduling mechanism of the first block
    vm: EngineName  # engine that runs actors: native or sandbox
    instance_id: Hash32  # digest of all of the genesis
    block_hash: Hash32 | None  # hash of block 0; None if this node does not have it


class UserBasefees(Struct, frozen=True, kw_only=True):
    """The basefees of transactions in the next block, base units."""

    cycle: int  # a cycle
    cell: int  # a cell


class TimerCounts(Struct, frozen=True, kw_only=True):
    """Counts of timers."""

    live: int  # live now
    fires: int  # fires that have run, those of state watches included, which end no timer
    scheduled: int  # ever scheduled
    fired: int  # ended by a fire
    unfunded: int  # ended because the payer could not pay
    expired: int  # ended by their expiry
    cancelled: int  # cancelled


class ChainStatus(Struct, frozen=True, kw_only=True):
    """A chain after a block. Money is base units."""

    height: int  # the block's
    first_block: int  # height of the first block that this node has; 0 unless it joined a network by a snapshot
    block_hash: Hash32  # the block's
    state_root: Hash32  # root of the state after it
    timestamp_ms: int  # the block's, milliseconds since 1970
    genesis: GenesisFacts  # what the chain started from
    mechanism: str  # what selects the due timers of the next block
    basefees: UserBasefees  # of transactions in the next block
    lane: LaneStatus  # the timer lane
    auction: AuctionStatus | None  # the auction; None under another mechanism
    globalbox: GlobalboxStatus | None  # Globalbox; None under another mechanism
    supply: int  # base units there are by genesis
    burned: int  # base units burned since
    timers: TimerCounts  # counts of timers


def status_of(chain: ChainReader) -> ChainStatus:
    """Return where a chain stands. Complexity: O(accounts) under the auction, else O(1)."""
    genesis, rules = chain.genesis, chain.rules()
    cycle, cell = rules.user_basefees()
    supply, burned = chain.economy()
    return ChainStatus(
        height=chain.height,
        first_block=chain.blocks.base,
        block_hash=chain.head.hash,
        state_root=chain.state_root,
        timestamp_ms=chain.head.header.timestamp_ms,
        genesis=extended(
            GenesisFacts,
            genesis,
            vm=engine_name(genesis.image),
            instance_id=Hash32(genesis.instance_id()),
            block_hash=None if chain.blocks.base else chain.blocks[0].hash,
        ),
        mechanism=chain.mechanism.name,
        basefees=UserBasefees(cycle=cycle, cell=cell),
        lane=lane_status(rules),
        auction=auction_status(chain),
        globalbox=globalbox_status(rules),
        supply=supply,
        burned=burned,
        timers=extended(TimerCounts, chain.totals(), live=chain.timer_count(), fires=chain.fire_count()),
    )


class CalendarView(Struct, frozen=True, kw_only=True):
    """The tiers in which timers wait for their heights. Spec: CIP-1 §2."""

    ring_size: int  # heights ahead that have a bucket each
    epoch_length: int  # blocks of an epoch
    epoch_count: int  # epochs ahead that have a bucket each; beyond lies the overflow


class MechanismView(Struct, frozen=True, kw_only=True):
    """What selects the due timers of the next block."""

    height: int  # of the last block
    mechanism: str  # its name
    first: str  # name of the mechanism that the chain began with
    delivers: str  # where in a block timers run: ``after_transactions`` or ``before_transactions``
    charges: str  # when payers are charged: ``all_first`` before any runs, or ``in_turn``
    examined_max: int  # due timers that one block examines
    joined_max: int  # due timers that join in one block; 0 where all of them are looked at
    calls: tuple[str, ...]  # host calls about timers that actors have
    calendar: CalendarView  # where timers wait
    lane: LaneStatus  # the timer lane
    auction: AuctionStatus | None  # the auction; None under another mechanism
    globalbox: GlobalboxStatus | None  # Globalbox; None under another mechanism


def mechanism_view(chain: ChainReader) -> MechanismView:
    """Return how the next block chooses among its due timers. Complexity: O(accounts) under the auction, else O(1)."""
    mechanism, policy, rules = chain.mechanism, chain.mechanism.policy, chain.rules()
    return extended(
        MechanismView,
        policy,
        height=chain.height,
        mechanism=mechanism.name,
        first=chain.genesis.mechanism,
        delivers=policy.phase.value,
        charges=policy.charging.value,
        calls=tuple(sorted(policy.calls)),
        calendar=extended(CalendarView, chain.params.calendar),
        lane=lane_status(rules),
        auction=auction_status(chain),
        globalbox=globalbox_status(rules),
    )


def status_facts(found: ChainStatus | MechanismView) -> tuple[Fact, ...]:
    """Return what a chain's mechanism has to say about where it stands."""
    views = views_of(found.mechanism)
    return tuple(views.status_facts(getattr(found, views.status_field)))


MULTIPLIERS: Final = "multipliers"  # subject under which the lane fee multipliers are listed: only governance sets them


class Setting(Struct, frozen=True):
    """A parameter in force in the next block."""

    path: str  # dotted path
    value: int  # in force
    preset: int | None  # what the preset says; None for what no preset has
    set_by: str  # ``preset``, ``genesis`` or ``governance``


def settings_of(chain: ChainReader) -> Iterator[Setting]:
    """Yield every parameter in force in the next block, by subject."""
    preset, rules = load_params(chain.genesis.preset), chain.rules()
    governed = _governed(rules)
    for subject, record in SUBJECTS.items():
        for field in fields(record):
            path = f"{subject}.{field.name}"
            before = getattr(getattr(chain.params, subject), field.name)
            value = governed.get(path, getattr(getattr(rules.params, subject), field.name))
            default = getattr(getattr(preset, subject), field.name)
            origin = "genesis" if path in chain.genesis.overrides or before != default else "preset"
            set_by = origin if value == before else "governance"
            yield Setting(path, value, default, set_by)
    unit = chain.params.fees.lane_multiplier_unit
    for name in LaneMultipliers.__struct_fields__:
        value = getattr(rules.multipliers, name)
        yield Setting(f"{MULTIPLIERS}.{name}", value, unit, "preset" if value == unit else "governance")


def lies_under(path: str, prefix: str) -> bool:
    """Return whether a dotted path is a prefix, or goes on from it.

    >>> lies_under("timers.max_ttl_blocks", "timers"), lies_under("timers.max_ttl_blocks", "time")
    (True, False)
    """
    return path == prefix or path.startswith(f"{prefix.removesuffix('.')}.")


def _governed(rules: Rules) -> dict[str, Any]:
    """Return what the two governed records say, by the path of the parameter whose place they take."""
    values: dict[str, Any] = {f"timers.{name}": getattr(rules.timer, name) for name in TimerConfig.__struct_fields__}
    for name in BasefeeConfig.__struct_fields__:
        value = getattr(rules.basefee, name)
        values[f"fees.{name}"] = amount_of(value) if isinstance(value, bytes) else value
    return values
