"""The rules in force in a block, read once from the state that its parent left.

Spec: CIP-5 §6.4, CIP-5 §7
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from trailboss.fees.market import Market, next_basefee
from trailboss.model.configs import (
    BasefeeConfig,
    Basefees,
    LaneMultipliers,
    Record,
    TimerConfig,
    amount_octets,
    amount_of,
    decode_record,
)
from trailboss.params import ChainParams, FeeParams, TimerParams
from trailboss.primitives.octets import Address, system_address
from trailboss.primitives.units import Price
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

GOVERNED: Final = MappingProxyType(
    {
        b"system:cip1:lane_timer_cycles": ("timers", "lane_cycles_per_block"),
        b"system:timers:gc_cycles_per_timer": ("timers", "gc_cycles_per_timer"),
        b"system:limits:block_cycles_max": ("limits", "block_cycles_max"),
        b"system:limits:block_cells_max": ("limits", "block_cells_max"),
        b"system:limits:messages_delivered_max": ("limits", "messages_delivered_max"),
    }
)
"""Keys of SetGovParam, and the parameter each one sets; the value is 8 bytes, big-endian. Decision: D-34."""

Read = Callable[[bytes], bytes | None]


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything governed, as it stands for one whole block.

    Attributes:
        params: Parameters with governed values in place.
        timer: TimerConfig.
        basefee: BasefeeConfig.
        multipliers: Lane fee multipliers.
        cycle_basefee: Base units per cycle before any multiplier.
        cell_basefee: Base units per cell before any multiplier.
        deployers: Accounts that may send system instructions.
    """

    params: ChainParams
    timer: TimerConfig
    basefee: BasefeeConfig
    multipliers: LaneMultipliers
    cycle_basefee: Price
    cell_basefee: Price
    deployers: frozenset[bytes]

    def user_basefees(self) -> tuple[Price, Price]:
        """Return the basefees of a user transaction, per cycle and per cell. Decision: D-41 (rounds down)."""
        return self._multiplied(self.multipliers.user)

    def timer_basefees(self) -> tuple[Price, Price]:
        """Return the basefees of a timer's fire, per cycle and per cell. Decision: D-41 (rounds down)."""
        return self._multiplied(self.multipliers.timer)

    def _multiplied(self, multiplier: int) -> tuple[Price, Price]:
        unit = self.params.fees.lane_multiplier_unit
        return Price(self.cycle_basefee * multiplier // unit), Price(self.cell_basefee * multiplier // unit)

    def next_basefees(self, cycles_used: int, cells_used: int) -> tuple[Price, Price]:
        """Return the basefees of the block after one that used so much. Spec: CIP-3 §2."""
        cycle = next_basefee(self.cycle_basefee, cycles_used, self._market(self.basefee.cycles_target))
        cell = next_basefee(self.cell_basefee, cells_used, self._market(self.basefee.cells_target))
        return cycle, cell

    def basefees_rest(self) -> bool:
        """Return whether a block that uses nothing leaves the basefees as they are."""
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
    return storage_key(system_address(params.governance.basefee_actor), name)


def read_rules(params: ChainParams, read: Read) -> Rules:
    """Read the rules that the present state puts in force.

    Args:
        params: The chain's own parameters, the defaults of what governance has not set.
        read: Value of a full state key, or None.
    """
    effective = governed_params(params, read)
    basefees = _stored(read, BASEFEES_KEY, Basefees)
    deployers = read(DEPLOYERS_KEY) or b""
    return Rules(
        params=effective,
        timer=timer_config(params, read),
        basefee=_slot_record(params, read, BASEFEE_CONFIG, BasefeeConfig) or default_basefee_config(params.fees),
        multipliers=_slot_record(params, read, LANE_MULTIPLIERS, LaneMultipliers) or default_multipliers(params.fees),
        cycle_basefee=params.fees.genesis_cycle_basefee if basefees is None else Price(amount_of(basefees.cycle)),
        cell_basefee=params.fees.genesis_cell_basefee if basefees is None else Price(amount_of(basefees.cell)),
        deployers=frozenset(deployers[i : i + Address.WIDTH] for i in range(0, len(deployers), Address.WIDTH)),
    )


def timer_config(params: ChainParams, read: Read) -> TimerConfig:
    """Return the stored TimerConfig, or the defaults. Spec: CIP-5 §6.4."""
    return _slot_record(params, read, TIMER_CONFIG, TimerConfig) or default_timer_config(params.timers)


def governed_params(params: ChainParams, read: Read) -> ChainParams:
    """Return the parameters with every value that SetGovParam has set."""
    for name, (subject, field) in GOVERNED.items():
        slot = read(system_slot_key(params, name))
        if slot is not None:
            params = with_param(params, subject, field, int.from_bytes(decode_slot(slot)[1], "big"))
    return params


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
