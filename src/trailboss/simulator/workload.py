"""Workloads: which actors schedule what, when, and what they pay; the same for every mechanism."""

from collections.abc import Collection, Mapping
from typing import Annotated, Final

from msgspec import Meta, Struct, field

from trailboss.crypto.digest import domain_digest
from trailboss.params import ChainParams, load_params
from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.units import U32_MAX

TIMERS_MAX: Final = 100_000  # timers that all actors together start with
ACTORS_MAX: Final = 10_000
BLOCKS_MAX: Final = 100_000
TRANSACTIONS_MAX: Final = 1_000  # transactions of one row in one block
WORK_MAX: Final = 20_000_000
I64_MAX: Final = 2**63 - 1  # greatest integer of TOML
NAME: Final = "^[A-Za-z0-9][A-Za-z0-9 _-]{0,23}$"
FIRE_ROOM: Final = 30_000
"""Cycles that a gas limit must have above the work: a frame, the next timer, and the auction's question for a bid."""
AUCTION_BUDGET: Final = "auction.budget_cycles"
BUDGETS: Final = ("timers.lane_cycles_per_block", AUCTION_BUDGET)
"""The parameters that say how many cycles the fires of one block may use."""
Natural = Annotated[int, Meta(ge=0, le=I64_MAX)]
Positive = Annotated[int, Meta(ge=1, le=I64_MAX)]
Block = Annotated[int, Meta(ge=1, le=BLOCKS_MAX)]
Blocks = Annotated[int, Meta(ge=0, le=BLOCKS_MAX)]
Timers = Annotated[int, Meta(ge=1, le=TIMERS_MAX)]
Price = Annotated[int, Meta(ge=0, le=U32_MAX)]
Work = Annotated[int, Meta(ge=0, le=WORK_MAX)]


class ActorGroup(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Actors of one kind: each has funds and timers of its own. Prices are base units per cycle."""

    name: Annotated[str, Meta(pattern=NAME)]  # of the group
    count: Annotated[int, Meta(ge=1, le=ACTORS_MAX)] = 1
    funds: Natural  # base units that each starts with; they pay for its fires
    gas_limit: Positive  # cycles one fire may use
    work: Work = 0  # cycles it burns
    timers: Timers = 1  # timers of each actor, each at a height of its own
    burst: Timers = 1  # copies of each of those timers, at one height
    first: Block = 1  # block of the workload in which the first fires are due, from 1
    spread: Blocks = 0  # blocks over which first fires are spread, each by the workload's seed
    period: Blocks = 0  # blocks from a fire to the next one of that timer; 0 for a timer that fires once
    payload_bytes: Annotated[int, Meta(ge=0, le=U32_MAX)] = 0  # bytes of the payload
    tip: Price = 0  # what it offers above all basefees
    max_fee: Natural = 0  # most above the cycle basefee, for the timers' own basefee and the tip; 0 for no limit
    expiry: Blocks = 0  # blocks by which a timer may be late, where timers expire; 0 for the farthest height


class Traffic(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Transactions that have nothing to do with timers."""

    per_block: Annotated[int, Meta(ge=1, le=TRANSACTIONS_MAX)]  # transactions in each block
    first: Block = 1  # first block of the workload that has them
    last: Blocks = 0  # last one; 0 for the workload's last
    work: Work = 0  # cycles that each burns in an actor; 0 for a transfer


class Workload(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One workload, checked."""

    name: Annotated[str, Meta(min_length=1, max_length=80)]  # its title
    seed: Natural  # of everything that is spread
    blocks: Block  # number of its blocks
    actors: tuple[ActorGroup, ...]
    preset: str = "mainnet"  # parameter preset of the chains
    budget_cycles: Positive = 0  # cycles of fires in a block under every mechanism; 0 for those of the parameters
    transactions: tuple[Traffic, ...] = ()  # what else is in the blocks
    params: Mapping[str, int] = field(default_factory=dict)  # parameters that differ from the preset, by dotted path
    params_of: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by mechanism, for it alone

    def overrides(self, mechanism: str) -> dict[str, int]:
        """Return the parameters of the chain of a mechanism that differ from the preset, by dotted path."""
        given = {**self.params, **self.params_of.get(mechanism, {})}
        if self.budget_cycles:
            return dict.fromkeys(BUDGETS, self.budget_cycles) | given
        # By default the auction gets what the others have, so that the four can be compared.
        budget = load_params(self.preset, given).timers.lane_cycles_per_block
        return {AUCTION_BUDGET: budget, **given}


def check_workload(workload: Workload, mechanisms: Collection[str]) -> None:
    """Check the rules between the values of a workload, and between them and the parameters.

    Raises:
        ConfigurationError: Naming key, value and rule.
    """
    for mechanism in workload.params_of:
        if mechanism not in mechanisms:
            raise ConfigurationError(f"params_of names {mechanism!r}; it may name: {', '.join(mechanisms)}")
    stated = {*workload.params, *(path for given in workload.params_of.values() for path in given)}
    for path in BUDGETS:
        if workload.budget_cycles and path in stated:
            raise ConfigurationError(f"budget_cycles and the parameter {path!r} say the same; give one of them")
    if not workload.actors:
        raise ConfigurationError("the workload has no actors: it needs at least one [[actors]]")
    names = [group.name for group in workload.actors]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigurationError(f"actors name {twice[0]!r} stands for more than one group; each has its own")
    for what, number, most in (
        ("actors", sum(group.count for group in workload.actors), ACTORS_MAX),
        ("timers", sum(group.count * group.timers * group.burst for group in workload.actors), TIMERS_MAX),
    ):
        if number > most:
            raise ConfigurationError(f"the workload has {number:,} {what}; it may have {most:,}")
    for mechanism in mechanisms:
        params = load_params(workload.preset, workload.overrides(mechanism))
        for group in workload.actors:
            _check_group(group, workload.blocks, params)
        for row in workload.transactions:
            _check_traffic(row, workload.blocks)


def due_heights(workload: Workload, group: ActorGroup, number: int) -> list[int]:
    """Return the blocks in which the timers of a group's actor, by number from 0, are first due, ascending, from 1."""
    seed = f"{workload.seed} {group.name} {number}".encode()
    heights = []
    for timer in range(group.timers):
        digest = domain_digest(b"trailboss-workload", seed, str(timer).encode())
        height = group.first + int.from_bytes(digest, "big") % (group.spread + 1)
        heights.extend([height] * group.burst)
    return sorted(heights)


def asked_fires(workload: Workload, group: ActorGroup, number: int) -> int:
    """Return how many fires an actor would have by the end if none was late."""
    heights = due_heights(workload, group, number)
    return sum((workload.blocks - height) // group.period + 1 if group.period else 1 for height in heights)


def _check_group(group: ActorGroup, blocks: int, params: ChainParams) -> None:
    timers, lane, box = params.timers, params.lane, params.globalbox
    most = min(timers.max_cycles_per_fire, lane.max_cycles_per_fire)
    least = max(params.costs.frame_base, box.min_gas_limit, group.work + FIRE_ROOM)
    held = group.timers * group.burst
    held_max = min(timers.max_timers_per_actor, box.max_timers_per_owner, box.max_timers_per_target)
    payload_max = min(timers.payload_bytes_max, box.payload_bytes_max)
    last = group.first + group.spread
    rules = (
        (group.gas_limit >= least, f"gas_limit = {group.gas_limit:,} must be at least {least:,}, work + {FIRE_ROOM:,}"),
        (group.gas_limit <= most, f"gas_limit = {group.gas_limit:,} must be at most {most:,}, what one fire may use"),
        (held <= held_max, f"timers × burst = {held:,} must be at most {held_max:,}, what one actor may hold"),
        (
            group.payload_bytes <= payload_max,
            f"payload_bytes = {group.payload_bytes:,} must be at most {payload_max:,}",
        ),
        (last <= blocks, f"first + spread = {last:,} must be at most blocks = {blocks:,}"),
        (
            not group.max_fee or group.tip <= group.max_fee,
            f"tip = {group.tip:,} must be at most max_fee = {group.max_fee:,}, which caps it",
        ),
        (group.tip <= box.bid_max, f"tip = {group.tip:,} must be at most globalbox.bid_max = {box.bid_max:,}"),
        (group.tip >= box.bid_min, f"tip = {group.tip:,} must be at least globalbox.bid_min = {box.bid_min:,}"),
    )
    for holds, complaint in rules:
        if not holds:
            raise ConfigurationError(f"actors {group.name!r}: {complaint}")


def _check_traffic(row: Traffic, blocks: int) -> None:
    last = row.last or blocks
    if not row.first <= last <= blocks:
        found = f"first = {row.first:,} and last = {last:,}"
        raise ConfigurationError(f"transactions: {found} must lie in this order within 1..={blocks:,}")
