"""The terms of a chain's market in a block: what its state holds for its mechanism, and what follows for every fire.

A market has one row in `_READERS`, and one in `GENESIS_RECORDS` if its record is there from genesis on.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from trailboss.fees import BasefeeRule, Course, next_basefee
from trailboss.governance.parameters import Read
from trailboss.model.auction import AuctionState
from trailboss.model.configs import LaneState, MarketKind, amount_octets, amount_of, encode_record, stored
from trailboss.model.globalbox import GlobalboxState
from trailboss.params import ChainParams
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.units import U64_MAX, Cycles, Price, clamp
from trailboss.state.keys import config_key

LANE_KEY: Final = config_key(b"system:lane")
FAIRNESS_KEY: Final = config_key(b"system:lane:fairness")
SMOOTHED_KEY: Final = config_key(b"system:lane:smoothed")
AUCTION_KEY: Final = config_key(b"system:auction")
GLOBALBOX_KEY: Final = config_key(b"system:globalbox")
CARRIED_HITS_KEY: Final = config_key(b"system:globalbox:carried_hits")

Kept = TypeVar("Kept", LaneState, AuctionState, GlobalboxState)


class MarketTerms(Struct, frozen=True, kw_only=True):
    """What a chain's market sets for the fires of a block; the defaults are those of a chain without a market."""

    kind: MarketKind = MarketKind.NONE
    record: LaneState | AuctionState | GlobalboxState | None = None  # what the block before left in the state
    timer_cycles_max: Cycles  # cycles that fires may use in the block. Spec: CIP-5 §6.5, CIP-1v1 §5, CIP-1v3 §9.
    basefee: Price  # its own basefee, base units per cycle; without one the cycle basefee. Spec: CIP-1v3 §13.2.
    surcharge: Price = Price(0)  # what a fire pays per cycle on top of the cycle basefee, base units
    rule: BasefeeRule | None = None  # how the basefee moves; None if it does not
    previous_tip: Price = Price(0)  # median tip per cycle of the fires of the block before, base units
    gas_limit_min: Cycles = Cycles(1)  # least gas limit of a timer scheduled in this block. Decision: D-29.
    max_cycles_per_fire: Cycles = Cycles(U64_MAX)  # cap of one fire beside that of TimerConfig
    is_new: bool = False  # whether the market begins with this block
    rests: bool = True  # whether a block without fires leaves the terms as they are

    @property
    def lane_basefee(self) -> Price | None:
        """The lane basefee, base units per cycle; None without an active lane."""
        return self.basefee if self.kind is MarketKind.LANE else None

    def kept(self, kind: type[Kept]) -> Kept:
        """Return the record, which is of that type; `InvariantError` if the chain has another market."""
        if not isinstance(self.record, kind):
            raise InvariantError(f"the market {self.kind.value} keeps no {kind.__name__}")
        return self.record

    def next_basefee(self, cycles_used: int) -> Price:
        """Return the market's basefee in the block after one whose fires used so much. Decision: D-15."""
        return self.basefee if self.rule is None else next_basefee(self.basefee, cycles_used, self.rule)


def read_market(params: ChainParams, read: Read, height: int, cycle_basefee: Price) -> MarketTerms:
    """Return the terms of the one market that a chain has in the block of a height."""
    none = MarketTerms(timer_cycles_max=params.timers.lane_cycles_per_block, basefee=cycle_basefee)
    found = (reader(params, read, height, none) for reader in _READERS)
    return next((terms for terms in found if terms is not None), none)


def basefee_record(terms: MarketTerms, basefee: int) -> tuple[bytes, bytes] | None:
    """Return state key and record of a market with another basefee of its own; None if the state has none."""
    if not isinstance(terms.record, LaneState):
        return None
    return LANE_KEY, encode_record(replace(terms.record, basefee=amount_octets(basefee)))


def is_active(params: ChainParams, height: int) -> bool:
    """Return whether the timer lane is active in the block of a height. Spec: CIP-1v3 §13.2."""
    return 1 <= params.lane.activation_height <= height


def _lane(params: ChainParams, read: Read, height: int, none: MarketTerms) -> MarketTerms | None:
    """Return the lane's terms; at its activation it starts at the cycle basefee. Decision: D-13, D-15."""
    if not is_active(params, height):
        return None
    lane, cycles_max = params.lane, none.timer_cycles_max
    left = stored(read, LANE_KEY, LaneState)
    state = left or LaneState(amount_octets(clamp(none.basefee, lane.basefee_min, lane.basefee_max)))
    basefee, previous_tip = Price(amount_of(state.basefee)), Price(amount_of(state.previous_tip))
    rule = BasefeeRule(
        target=cycles_max // lane.elasticity,
        alpha=lane.alpha,
        max_change_denominator=lane.max_change_denominator,
        minimum=lane.basefee_min,
        maximum=lane.basefee_max,
        least_rise=1,
        course=Course(lane.basefee_rule),
    )
    return replace(
        none,
        kind=MarketKind.LANE,
        record=state,
        basefee=basefee,
        surcharge=basefee,
        rule=rule,
        previous_tip=previous_tip,
        gas_limit_min=Cycles(max(1, params.costs.frame_base)),
        max_cycles_per_fire=Cycles(min(lane.max_cycles_per_fire, cycles_max)),
        is_new=left is None,
        rests=left is not None and not previous_tip and next_basefee(basefee, 0, rule) == basefee,
    )


def _auction(params: ChainParams, read: Read, _: int, none: MarketTerms) -> MarketTerms | None:
    """Return the auction's terms. Spec: CIP-1v1 §3."""
    state = stored(read, AUCTION_KEY, AuctionState)
    budget, least = params.auction.budget_cycles, Cycles(max(1, params.costs.frame_base))
    terms = replace(none, kind=MarketKind.AUCTION, record=state, timer_cycles_max=budget, gas_limit_min=least)
    return None if state is None else terms


def _globalbox(_: ChainParams, read: Read, __: int, none: MarketTerms) -> MarketTerms | None:
    """Return the terms of Globalbox. Spec: CIP-5old §5.3."""
    state = stored(read, GLOBALBOX_KEY, GlobalboxState)
    return None if state is None else replace(none, kind=MarketKind.GLOBALBOX, record=state)


_READERS: Final = (_lane, _auction, _globalbox)
GENESIS_RECORDS: Final[Mapping[MarketKind, tuple[bytes, AuctionState | GlobalboxState]]] = MappingProxyType(
    {MarketKind.AUCTION: (AUCTION_KEY, AuctionState()), MarketKind.GLOBALBOX: (GLOBALBOX_KEY, GlobalboxState())}
)
"""State key and first record of what a chain keeps from genesis on."""
SUBJECTS: Final = MappingProxyType(
    {"auction": (MarketKind.AUCTION, "auction"), "globalbox": (MarketKind.GLOBALBOX, "Globalbox")}
)
"""Subjects of parameters that only one market has, and that market's name in messages."""
