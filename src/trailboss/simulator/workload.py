"""Workloads: who schedules what, when, and what they are willing to pay; the same for every mechanism."""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct, field

from trailboss.crypto.digest import domain_digest
from trailboss.params import ChainParams, load_params
from trailboss.primitives.errors import ConfigurationError

TIMERS_MAX: Final = 100_000
"""Timers that all actors together start with."""
ACTORS_MAX: Final = 10_000
FIRE_ROOM: Final = 30_000
"""Cycles that a gas limit must have above the work: a frame, the next timer, and the auction's question for a bid."""
AUCTION_BUDGET: Final = "auction.budget_cycles"
BUDGETS: Final = ("timers.lane_cycles_per_block", AUCTION_BUDGET)
"""The parameters that say how many cycles the fires of one block may use."""


class ActorGroup(Struct, frozen=True, kw_only=True):
    """Actors of one kind: each has funds and timers of its own. Prices are base units per cycle.

    Attributes:
        name: Of the group.
        count: Actors.
        funds: Base units that each starts with; they pay for its fires.
        gas_limit: Cycles one fire may use.
        work: Cycles it burns.
        timers: Timers of each actor, each at a height of its own.
        burst: Times that each of those is there, at one height.
        first: Block of the workload in which the first fires are due, from 1.
        spread: Blocks over which first fires are spread, each by the workload's seed.
        period: Blocks from a fire to the next one of that timer; 0 for a timer that fires once.
        payload_bytes: Bytes of the payload.
        tip: What it offers above all basefees.
        max_fee: Most that it pays above the cycle basefee: a basefee of the timers' own, and the tip; 0 for no limit.
        expiry: Blocks that a timer may be late before it expires, where timers can expire; 0 for the farthest height.
    """

    name: str
    count: int = 1
    funds: int
    gas_limit: int
    work: int = 0
    timers: int = 1
    burst: int = 1
    first: int = 1
    spread: int = 0
    period: int = 0
    payload_bytes: int = 0
    tip: int = 0
    max_fee: int = 0
    expiry: int = 0


class Traffic(Struct, frozen=True, kw_only=True):
    """Transactions that have nothing to do with timers.

    Attributes:
        per_block: So many in each block.
        first: First block of the workload that has them.
        last: Last one; 0 for the workload's last.
        work: Cycles that each burns in an actor; 0 for a transfer.
    """

    per_block: int
    first: int = 1
    last: int = 0
    work: int = 0


class Workload(Struct, frozen=True, kw_only=True):
    """One workload, checked.

    Attributes:
        name: Its title.
        seed: Of everything that is spread.
        blocks: Blocks that it runs for.
        actors: Groups of actors.
        preset: Parameter preset of the chains.
        budget_cycles: Cycles of fires in one block under every mechanism; 0 for that of the parameters.
        transactions: What else is in the blocks.
        params: Parameters that differ from the preset, by dotted path.
        params_of: Mechanism to parameters that differ under it alone.
    """

    name: str
    seed: int
    blocks: int
    actors: tuple[ActorGroup, ...]
    preset: str = "mainnet"
    budget_cycles: int = 0
    transactions: tuple[Traffic, ...] = ()
    params: Mapping[str, int] = field(default_factory=dict)
    params_of: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def overrides(self, mechanism: str) -> dict[str, int]:
        """Return the parameters of the chain of a mechanism that differ from the preset, by dotted path."""
        given = {**self.params, **self.params_of.get(mechanism, {})}
        if self.budget_cycles:
            return dict.fromkeys(BUDGETS, self.budget_cycles) | given
        # Without a word about it the auction gets what the others have, so that the four can be compared.
        budget = load_params(self.preset, given).timers.lane_cycles_per_block
        return {AUCTION_BUDGET: budget, **given}


def check_workload(workload: Workload, mechanisms: Collection[str]) -> None:
    """Check what must hold between the values of a workload, and between them and the parameters.

    Args:
        workload: Each value of which is within its own range.
        mechanisms: Through which it is to be run.

    Raises:
        ConfigurationError: Naming key, value and rule.
    """
    _check_overrides(workload, mechanisms)
    if not workload.actors:
        raise ConfigurationError("the workload has no actors: it needs at least one [[actors]]")
    names = [group.name for group in workload.actors]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"actors name {name!r} stands for more than one group; each has its own")
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
    """Return the blocks of the workload in which an actor's timers are first due, ascending, from 1.

    Args:
        workload: Whose seed spreads them.
        group: Its group.
        number: Which of the group it is, from 0.
    """
    seed = f"{workload.seed} {group.name} {number}".encode()
    heights = []
    for timer in range(group.timers):
        digest = domain_digest(b"trailboss-workload", seed, str(timer).encode())
        height = group.first + int.from_bytes(digest, "big") % (group.spread + 1)
        heights.extend([height] * group.burst)
    return sorted(heights)


def asked_fires(workload: Workload, group: ActorGroup, number: int) -> int:
    """Return how many fires an actor would have by the end if each of them ran in the block in which it is due."""
    heights = due_heights(workload, group, number)
    if not group.period:
        return len(heights)
    return sum((workload.blocks - height) // group.period + 1 for height in heights)


def _check_overrides(workload: Workload, mechanisms: Collection[str]) -> None:
    for mechanism in workload.params_of:
        if mechanism not in mechanisms:
            raise ConfigurationError(f"params_of names {mechanism!r}; it may name: {', '.join(mechanisms)}")
    if workload.budget_cycles:
        stated = {*workload.params, *(path for given in workload.params_of.values() for path in given)}
        for path in BUDGETS:
            if path in stated:
                raise ConfigurationError(f"budget_cycles and the parameter {path!r} say the same; give one of them")


def _check_group(group: ActorGroup, blocks: int, params: ChainParams) -> None:
    where = f"actors {group.name!r}"
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
            raise ConfigurationError(f"{where}: {complaint}")


def _check_traffic(row: Traffic, blocks: int) -> None:
    last = row.last or blocks
    if not row.first <= last <= blocks:
        raise ConfigurationError(
            f"transactions: first = {row.first:,} and last = {last:,} must lie in this order within 1..={blocks:,}"
        )
