"""The rules in force in a block, read once from the state that its parent left.

Spec: CIP-5 §6.4, CIP-5 §7
"""

from collections.abc import Callable
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from trailboss.fees.market import Market, next_basefee
from trailboss.model.auction import AuctionState
from trailboss.model.configs import (
    BarredPayer,
    BarredPayers,
    BasefeeConfig,
    Basefees,
    JoiningGap,
    JoiningGaps,
    LaneMultipliers,
    LaneState,
    Record,
    TimerConfig,
    amount_octets,
    amount_of,
    decode_record,
)
from trailboss.model.globalbox import GlobalboxState
from trailboss.params import ChainParams, FeeParams, TimerParams
from trailboss.primitives.octets import Address, system_address
from trailboss.primitives.units import U128_MAX, Cells, Cycles, Height, Price, clamp
from trailboss.state.keys import config_key, storage_key
from trailboss.state.slots import decode_slot

TIMER_CONFIG: Final = b"system:timer_config"
BASEFEE_CONFIG: Final = b"system:basefee_config"
LANE_MULTIPLIERS: Final = b"system:lane_fee_multipliers"
DEPLOYERS_KEY: Final = config_key(b"system:deployers")
BASEFEES_KEY: Final = config_key(b"system:basefees")
ECONOMY_KEY: Final = config_key(b"system:economy")
SCHEDULER_KEY: Final = config_key(b"system:scheduler")
MAILBOX_KEY: Final = config_key(b"system:mailbox")
DEFERRED_KEY: Final = config_key(b"system:deferred")
LANE_KEY: Final = config_key(b"system:lane")
FAIRNESS_KEY: Final = config_key(b"system:lane:fairness")
JOINING_KEY: Final = config_key(b"system:joining")
BARRED_KEY: Final = config_key(b"system:joining:barred")
AUCTION_KEY: Final = config_key(b"system:auction")
GLOBALBOX_KEY: Final = config_key(b"system:globalbox")
CARRIED_HITS_KEY: Final = config_key(b"system:globalbox:carried_hits")

ACTIVATION: Final = b"system:cip1:activation_height"

GOVERNED: Final = MappingProxyType(
    {
        b"system:cip1:lane_timer_cycles": ("timers", "lane_cycles_per_block"),
        ACTIVATION: ("lane", "activation_height"),
        b"system:cip1:activation_clamps_gas_limit": ("lane", "clamps_gas_limit"),
        b"system:cip1:max_cycles_per_fire_auction_phase": ("lane", "max_cycles_per_fire"),
        b"system:cip1:lane_basefee_alpha": ("lane", "alpha"),
        b"system:cip1:lane_basefee_min": ("lane", "basefee_min"),
        b"system:cip1:gba_max_cycles": ("lane", "gba_cycles_max"),
        b"system:cip1:gba_cycles_per_block": ("lane", "gba_cycles_per_block"),
        b"system:cip1:fairness_window_blocks": ("lane", "fairness_window_blocks"),
        b"system:cip1:weight_min": ("lane", "weight_min"),
        b"system:cip1:weight_max": ("lane", "weight_max"),
        b"system:cip1:priority_tier_multipliers.economy": ("lane", "tier_economy"),
        b"system:cip1:priority_tier_multipliers.standard": ("lane", "tier_standard"),
        b"system:cip1:priority_tier_multipliers.fast": ("lane", "tier_fast"),
        b"system:cip1:priority_tier_multipliers.urgent": ("lane", "tier_urgent"),
        b"system:auction:budget_cycles": ("auction", "budget_cycles"),
        b"system:auction:gba_max_cycles": ("auction", "gba_cycles_max"),
        b"system:auction:gba_cycles_per_block": ("auction", "gba_cycles_per_block"),
        b"system:auction:decay": ("auction", "decay"),
        b"system:auction:weight_min": ("auction", "weight_min"),
        b"system:auction:weight_max": ("auction", "weight_max"),
        b"system:auction:starvation_blocks": ("auction", "starvation_blocks"),
        b"system:auction:starvation_floor": ("auction", "starvation_floor"),
        b"system:auction:delays_max": ("auction", "delays_max"),
        b"system:auction:delay_action": ("auction", "delay_action"),
        b"system:auction:delay_penalty_cycles": ("auction", "delay_penalty_cycles"),
        b"system:timers:gc_cycles_per_timer": ("timers", "gc_cycles_per_timer"),
        b"system:timers:lane_cells_per_block": ("timers", "lane_cells_per_block"),
        b"system:limits:block_cycles_max": ("limits", "block_cycles_max"),
        b"system:limits:block_cells_max": ("limits", "block_cells_max"),
        b"system:limits:messages_delivered_max": ("limits", "messages_delivered_max"),
    }
)
"""Keys of SetGovParam, and the parameter each one sets; the value is 8 bytes, big-endian. Decision: D-34."""

EPOCHAL: Final = MappingProxyType(
    {
        f"system:globalbox:{field}".encode(): ("globalbox", field)
        for field in (
            "max_fires_per_block",
            "max_fires_per_target",
            "age_weight",
            "bid_weight",
            "min_gas_limit",
            "payload_bytes_max",
            "max_timers_per_owner",
            "max_timers_per_target",
            "bid_min",
            "bid_max",
            "watch_keys_max",
        )
    }
)
"""Those that come into force with the next governance epoch. Spec: CIP-5old §12. Decision: D-31, D-66."""
RESCALE_WEIGHTS: Final = b"system:auction:rescale_weights"
"""Key of SetGovParam that multiplies all weights by its value, in parts of 10⁻⁹; 0 resets them. Spec: CIP-1v1 §3."""

Read = Callable[[bytes], bytes | None]
SLOT_KEYS_CACHED: Final = 256
"""Keys of slots that are kept: every block reads some 50, always the same ones."""
_CHANGE_WIDTH: Final = 8


class LaneTerms(Struct, frozen=True, kw_only=True):
    """The timer lane as a block finds it. Spec: CIP-1v3 §5.

    Attributes:
        basefee: Lane basefee, base units per cycle.
        previous_tip: Median tip per cycle of the fires of the block before, base units.
        max_cycles_per_fire: Cap of one fire, within what the lane offers.
        state: The record that the block before has left.
        is_new: Whether this is the block of the activation.
    """

    basefee: Price
    previous_tip: Price
    max_cycles_per_fire: Cycles
    state: LaneState
    is_new: bool


class Rules(Struct, frozen=True):
    """Everything governed, as it stands for one whole block.

    Attributes:
        height: The block's.
        params: Parameters with governed values in place.
        timer: TimerConfig.
        basefee: BasefeeConfig.
        multipliers: Lane fee multipliers.
        cycle_basefee: Base units per cycle before any multiplier.
        cell_basefee: Base units per cell before any multiplier.
        deployers: Accounts that may send system instructions.
        lane: The timer lane; None until it is active. Spec: CIP-1v3 §13.2.
        auction: The auction; None on a chain that has none. Spec: CIP-1v1 §3.
        globalbox: Globalbox; None on a chain that has none. Spec: CIP-5old §5.3.
        gaps: Which due timers have yet to join; None before the first block in which any could. Decision: D-51.
        barred: Which due timers have not joined because their payers cannot pay. Decision: D-79.
    """

    height: Height
    params: ChainParams
    timer: TimerConfig
    basefee: BasefeeConfig
    multipliers: LaneMultipliers
    cycle_basefee: Price
    cell_basefee: Price
    deployers: frozenset[bytes]
    lane: LaneTerms | None = None
    auction: AuctionState | None = None
    globalbox: GlobalboxState | None = None
    gaps: tuple[JoiningGap, ...] | None = None
    barred: tuple[BarredPayer, ...] = ()

    def timer_cycles_max(self) -> Cycles:
        """Return the cycles that fires may use in the block. Spec: CIP-5 §6.5, CIP-1v1 §5, CIP-1v3 §9."""
        if self.auction is not None:
            return self.params.auction.budget_cycles
        return self.params.timers.lane_cycles_per_block

    def timer_cells_max(self) -> Cells:
        """Return the cells that fires may use in the block; more than they ever could if there is no bound.

        Decision: D-80
        """
        return Cells(self.params.timers.lane_cells_per_block or U128_MAX)

    def user_basefees(self) -> tuple[Price, Price]:
        """Return the basefees of a user transaction, per cycle and per cell. Decision: D-41 (rounds down)."""
        return self._multiplied(self.multipliers.user)

    def timer_basefees(self) -> tuple[Price, Price]:
        """Return the basefees of a timer's fire, per cycle and per cell. Decision: D-41 (rounds down)."""
        return self._multiplied(self.multipliers.timer)

    def least_timer_basefee(self) -> Price:
        """Return the least that the cycle basefee of timers can fall to, as long as governance changes nothing."""
        least = amount_of(self.basefee.min_basefee)
        return Price(least * self.multipliers.timer // self.params.fees.lane_multiplier_unit)

    def _multiplied(self, multiplier: int) -> tuple[Price, Price]:
        unit = self.params.fees.lane_multiplier_unit
        return Price(self.cycle_basefee * multiplier // unit), Price(self.cell_basefee * multiplier // unit)

    def next_basefees(self, cycles_used: int, cells_used: int) -> tuple[Price, Price]:
        """Return the basefees of the block after one that used so much. Spec: CIP-3 §2."""
        cycle = next_basefee(self.cycle_basefee, cycles_used, self._market(self.basefee.cycles_target))
        cell = next_basefee(self.cell_basefee, cells_used, self._market(self.basefee.cells_target))
        return cycle, cell

    def lane_basefee(self) -> Price:
        """Return the lane basefee, which before the activation equals the cycle basefee. Spec: CIP-1v3 §13.2."""
        return self.cycle_basefee if self.lane is None else self.lane.basefee

    def next_lane_basefee(self, cycles_used: int) -> Price:
        """Return the lane basefee of the block after one whose fires used so much.

        Spec: CIP-1v3 §5
        Decision: D-15
        """
        lane = self.params.lane
        market = Market(
            target=self.params.timers.lane_cycles_per_block // lane.elasticity,
            alpha=lane.alpha,
            max_change_denominator=lane.max_change_denominator,
            minimum=lane.basefee_min,
            maximum=lane.basefee_max,
            least_rise=1,
        )
        return next_basefee(self.lane_basefee(), cycles_used, market)

    def basefees_rest(self) -> bool:
        """Return whether a block that uses nothing leaves all basefees, and the lane's state, as they are."""
        if self.gaps or self.barred:  # Maybe left by cancelled timers alone: a block that finds none closes them.
            return False
        if self.lane is not None and (
            self.lane.is_new or self.lane.previous_tip or self.next_lane_basefee(0) != self.lane.basefee
        ):
            return False
        return self.next_basefees(0, 0) == (self.cycle_basefee, self.cell_basefee)

    def _market(self, target: int) -> Market:
        config = self.basefee
        return Market(
            target=target,
            alpha=config.alpha,
            max_change_denominator=config.max_change_denominator,
            minimum=amount_of(config.min_basefee),
            maximum=amount_of(config.max_basefee),
        )


def system_slot_key(params: ChainParams, name: bytes) -> bytes:
    """Return the state key of a slot of the basefee system actor. Spec: CIP-5 §6.4."""
    return _slot_key(params.governance.basefee_actor, name)


@lru_cache(SLOT_KEYS_CACHED)
def _slot_key(actor: int, name: bytes) -> bytes:
    return storage_key(system_address(actor), name)


def is_active(params: ChainParams, height: int) -> bool:
    """Return whether the timer lane is active in the block of a height. Spec: CIP-1v3 §13.2."""
    return 1 <= params.lane.activation_height <= height


def read_rules(params: ChainParams, read: Read, height: int) -> Rules:
    """Read the rules that the present state puts in force.

    Args:
        params: The chain's own parameters, the defaults of what governance has not set.
        read: Value of a full state key, or None.
        height: Of the block that they are for.
    """
    effective = governed_params(params, read, height)
    gaps = _stored(read, JOINING_KEY, JoiningGaps)
    barred = _stored(read, BARRED_KEY, BarredPayers)
    basefees = _stored(read, BASEFEES_KEY, Basefees)
    deployers = read(DEPLOYERS_KEY) or b""
    cycle_basefee = params.fees.genesis_cycle_basefee if basefees is None else Price(amount_of(basefees.cycle))
    return Rules(
        height=Height(height),
        params=effective,
        timer=timer_config(params, read),
        basefee=_slot_record(params, read, BASEFEE_CONFIG, BasefeeConfig) or default_basefee_config(params.fees),
        multipliers=_slot_record(params, read, LANE_MULTIPLIERS, LaneMultipliers) or default_multipliers(params.fees),
        cycle_basefee=cycle_basefee,
        cell_basefee=params.fees.genesis_cell_basefee if basefees is None else Price(amount_of(basefees.cell)),
        deployers=frozenset(deployers[i : i + Address.WIDTH] for i in range(0, len(deployers), Address.WIDTH)),
        lane=_lane_terms(effective, read, cycle_basefee) if is_active(effective, height) else None,
        auction=_stored(read, AUCTION_KEY, AuctionState),
        globalbox=_stored(read, GLOBALBOX_KEY, GlobalboxState),
        gaps=None if gaps is None else gaps.gaps,
        barred=() if barred is None else barred.barred,
    )


def _lane_terms(params: ChainParams, read: Read, cycle_basefee: Price) -> LaneTerms:
    """Return the lane's terms; in the block of the activation it starts at the cycle basefee. Decision: D-15."""
    lane = params.lane
    stored = _stored(read, LANE_KEY, LaneState)
    start = clamp(cycle_basefee, lane.basefee_min, lane.basefee_max)
    state = LaneState(amount_octets(start)) if stored is None else stored
    return LaneTerms(
        basefee=Price(amount_of(state.basefee)),
        previous_tip=Price(amount_of(state.previous_tip)),
        max_cycles_per_fire=Cycles(min(lane.max_cycles_per_fire, params.timers.lane_cycles_per_block)),
        state=state,
        is_new=stored is None,
    )


def timer_config(params: ChainParams, read: Read) -> TimerConfig:
    """Return the stored TimerConfig, or the defaults. Spec: CIP-5 §6.4."""
    return _slot_record(params, read, TIMER_CONFIG, TimerConfig) or default_timer_config(params.timers)


def governed_params(params: ChainParams, read: Read, height: int) -> ChainParams:
    """Return the parameters with every value that SetGovParam has set, as they are in the block of a height."""
    for name, (subject, field) in GOVERNED.items():
        slot = read(system_slot_key(params, name))
        if slot is not None:
            params = with_param(params, subject, field, int.from_bytes(decode_slot(slot)[1], "big"))
    for name, (subject, field) in EPOCHAL.items():
        slot = read(system_slot_key(params, name))
        if slot is not None:
            params = with_param(params, subject, field, decode_change(decode_slot(slot)[1]).at(height))
    return params


class Change(NamedTuple):
    """A governed value that changes with an epoch. Decision: D-66.

    Attributes:
        before: The value until then.
        after: The value from then on.
        height: First block of that epoch.
    """

    before: int
    after: int
    height: int

    def at(self, height: int) -> int:
        """Return the value in the block of a height."""
        return self.after if height >= self.height else self.before


def encode_change(change: Change) -> bytes:
    """Return a change as its slot holds it: three unsigned 64-bit integers, big-endian."""
    return b"".join(value.to_bytes(_CHANGE_WIDTH, "big") for value in change)


def decode_change(octets: bytes) -> Change:
    """Return the change that a slot holds."""
    return Change(*(int.from_bytes(octets[i : i + _CHANGE_WIDTH], "big") for i in range(0, len(octets), _CHANGE_WIDTH)))


def next_change(params: ChainParams, read: Read, height: int) -> int | None:
    """Return the first block, above a height, in which a value that is set already comes into force; None if none."""
    slots = (read(system_slot_key(params, name)) for name in EPOCHAL)
    heights = [decode_change(decode_slot(slot)[1]).height for slot in slots if slot is not None]
    return min((each for each in heights if each > height), default=None)


def with_param(params: ChainParams, subject: str, field: str, value: int) -> ChainParams:
    """Return ``params`` with one value replaced; relations are not checked here."""
    changed = replace(getattr(params, subject), **{field: value})
    return replace(params, **{subject: changed})


def default_timer_config(timers: TimerParams) -> TimerConfig:
    """Return the TimerConfig in force while none is stored. Spec: CIP-5 §6.4."""
    return TimerConfig(
        timers.max_ttl_blocks,
        timers.max_cycles_per_fire,
        timers.max_cells_per_fire,
        timers.max_timers_per_actor,
        timers.gc_cycles_per_block,
    )


def default_basefee_config(fees: FeeParams) -> BasefeeConfig:
    """Return the BasefeeConfig in force while none is stored."""
    return BasefeeConfig(
        fees.alpha,
        fees.max_change_denominator,
        amount_octets(fees.min_basefee),
        amount_octets(fees.max_basefee),
        fees.cycles_target,
        fees.cells_target,
        0,
        0,
    )


def default_multipliers(fees: FeeParams) -> LaneMultipliers:
    """Return the lane fee multipliers in force while none are stored: 1.0 each."""
    unit = fees.lane_multiplier_unit
    return LaneMultipliers(unit, unit, unit, unit)


def _slot_record(params: ChainParams, read: Read, name: bytes, kind: type[Record]) -> Record | None:
    slot = read(system_slot_key(params, name))
    return None if slot is None else decode_record(decode_slot(slot)[1], kind)


def _stored(read: Read, key: bytes, kind: type[Record]) -> Record | None:
    octets = read(key)
    return None if octets is None else decode_record(octets, kind)
