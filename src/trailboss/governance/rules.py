"""The rules in force in a block, read once from the state that its parent left. Spec: CIP-5 §6.4, CIP-5 §7."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.fees import BasefeeRule, next_basefee
from trailboss.governance.markets import MarketTerms, read_market
from trailboss.governance.parameters import Read, governed_params, next_change, system_slot_key
from trailboss.model import configs
from trailboss.model.configs import (
    BasefeeConfig,
    LaneMultipliers,
    Record,
    TimerConfig,
    amount_octets,
    amount_of,
    stored,
)
from trailboss.params import ChainParams, FeeParams
from trailboss.primitives.octets import Address
from trailboss.primitives.units import U128_MAX, Cells, Cycles, Height, Price
from trailboss.state.keys import config_key
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
RUNNER_KEY: Final = config_key(b"development:runner")
JOINING_KEY: Final = config_key(b"system:joining")
MOCKS_KEY: Final = config_key(b"development:mocks")
BARRED_KEY: Final = config_key(b"system:joining:barred")


class Rules(Struct, frozen=True):
    """Everything governed, for one whole block."""

    height: Height
    params: ChainParams  # parameters with governed values in place
    timer: TimerConfig
    basefee: BasefeeConfig
    multipliers: LaneMultipliers
    cycle_basefee: Price  # base units per cycle before any multiplier
    cell_basefee: Price  # base units per cell before any multiplier
    deployers: frozenset[bytes]  # accounts that may send system instructions
    market: MarketTerms
    changes_at: int  # first block above this one with other rules in the same state; 2**64 for none
    gaps: tuple[configs.JoiningGap, ...] | None = None  # due timers yet to join; None before any could. Decision: D-51
    barred: tuple[configs.BarredPayer, ...] = ()  # due timers that wait to join until payers can pay. Decision: D-79

    def timer_cycles_max(self) -> Cycles:
        """Return the cycles that fires may use in the block."""
        return self.market.timer_cycles_max

    def timer_cells_max(self) -> Cells:
        """Return the cells that fires may use in the block; without a bound more than they could. Decision: D-80."""
        return Cells(self.params.timers.lane_cells_per_block or U128_MAX)

    def user_basefees(self) -> tuple[Price, Price]:
        """Return the basefees of a user transaction, per cycle and per cell. Decision: D-41 (rounds down)."""
        unit, lane = self.params.fees.lane_multiplier_unit, self.multipliers.user
        return Price(self.cycle_basefee * lane // unit), Price(self.cell_basefee * lane // unit)

    def timer_basefees(self) -> tuple[Price, Price]:
        """Return the basefees of a timer's fire, per cycle and per cell. Decision: D-41 (rounds down)."""
        unit, lane = self.params.fees.lane_multiplier_unit, self.multipliers.timer
        return Price(self.cycle_basefee * lane // unit), Price(self.cell_basefee * lane // unit)

    def least_timer_basefee(self) -> Price:
        """Return the least that the cycle basefee of timers can fall to, as long as governance changes nothing."""
        least = amount_of(self.basefee.min_basefee)
        return Price(least * self.multipliers.timer // self.params.fees.lane_multiplier_unit)

    def next_basefees(self, cycles_used: int, cells_used: int) -> tuple[Price, Price]:
        """Return the basefees of the block after one that used so much. Spec: CIP-3 §2."""
        config = self.basefee
        cycle = BasefeeRule(
            target=config.cycles_target,
            alpha=config.alpha,
            max_change_denominator=config.max_change_denominator,
            minimum=amount_of(config.min_basefee),
            maximum=amount_of(config.max_basefee),
        )
        cell = replace(cycle, target=config.cells_target)
        return next_basefee(self.cycle_basefee, cycles_used, cycle), next_basefee(self.cell_basefee, cells_used, cell)

    def basefees_rest(self) -> bool:
        """Return whether a block that uses nothing leaves all basefees, and the lane's state, as they are."""
        # Cancelled timers alone may have left gaps: a block that finds none closes them.
        if self.gaps or self.barred or not self.market.rests:
            return False
        return self.next_basefees(0, 0) == (self.cycle_basefee, self.cell_basefee)


def read_rules(params: ChainParams, read: Read, height: int) -> Rules:
    """Read the rules that the present state puts in force; ``params`` are the chain's own, before governance."""
    effective = governed_params(params, read, height)
    gaps = stored(read, JOINING_KEY, configs.JoiningGaps)
    barred = stored(read, BARRED_KEY, configs.BarredPayers)
    basefees = stored(read, BASEFEES_KEY, configs.Basefees)
    deployers, unit = read(DEPLOYERS_KEY) or b"", params.fees.lane_multiplier_unit
    level = LaneMultipliers(unit, unit, unit, unit)
    cycle_basefee = params.fees.genesis_cycle_basefee if basefees is None else Price(amount_of(basefees.cycle))
    return Rules(
        height=Height(height),
        params=effective,
        timer=timer_config(params, read),
        basefee=_slot_record(params, read, BASEFEE_CONFIG, BasefeeConfig) or _default_basefee_config(params.fees),
        multipliers=_slot_record(params, read, LANE_MULTIPLIERS, LaneMultipliers) or level,
        cycle_basefee=cycle_basefee,
        cell_basefee=params.fees.genesis_cell_basefee if basefees is None else Price(amount_of(basefees.cell)),
        deployers=frozenset(deployers[i : i + Address.WIDTH] for i in range(0, len(deployers), Address.WIDTH)),
        market=read_market(effective, read, height, cycle_basefee),
        changes_at=next_change(effective, read, height),
        gaps=None if gaps is None else gaps.gaps,
        barred=() if barred is None else barred.barred,
    )


def timer_config(params: ChainParams, read: Read) -> TimerConfig:
    """Return the stored TimerConfig, or the defaults. Spec: CIP-5 §6.4."""
    default = TimerConfig(*(getattr(params.timers, name) for name in TimerConfig.__struct_fields__))
    return _slot_record(params, read, TIMER_CONFIG, TimerConfig) or default


def _default_basefee_config(fees: FeeParams) -> BasefeeConfig:
    floor, ceiling = amount_octets(fees.min_basefee), amount_octets(fees.max_basefee)
    targets = (fees.cycles_target, fees.cells_target, 0, 0)
    return BasefeeConfig(fees.alpha, fees.max_change_denominator, floor, ceiling, *targets)


def _slot_record(params: ChainParams, read: Read, name: bytes, kind: type[Record]) -> Record | None:
    slot = read(system_slot_key(params, name))
    return None if slot is None else configs.decode_record(decode_slot(slot)[1], kind)
