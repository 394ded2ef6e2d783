"""The parameters that SetGovParam sets: the key of each, and the values in force at a height.

Spec: CIP-5 §5.4. Decision: D-34, D-66
"""

from collections.abc import Callable
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec.structs import replace

from trailboss.params import ChainParams
from trailboss.primitives.octets import system_address
from trailboss.primitives.units import U64_MAX
from trailboss.state.keys import storage_key
from trailboss.state.slots import decode_slot

Read = Callable[[bytes], bytes | None]  # full state key to its value, or None
SLOT_KEYS_CACHED: Final = 256  # keys of slots that are kept: every block reads some 50, always the same ones
_CHANGE_WIDTH: Final = 8

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

_EPOCHAL_FIELDS: Final = (
    *("max_fires_per_block", "max_fires_per_target", "age_weight", "bid_weight", "min_gas_limit", "payload_bytes_max"),
    *("max_timers_per_owner", "max_timers_per_target", "bid_min", "bid_max", "watch_keys_max"),
)
EPOCHAL: Final = MappingProxyType({f"system:globalbox:{key}".encode(): ("globalbox", key) for key in _EPOCHAL_FIELDS})
"""Those that come into force with the next governance epoch. Spec: CIP-5old §12. Decision: D-31, D-66."""
RESCALE_WEIGHTS: Final = b"system:auction:rescale_weights"
"""Key of SetGovParam that multiplies all weights by its value, in parts of 10⁻⁹; 0 resets them. Spec: CIP-1v1 §3."""


def system_slot_key(params: ChainParams, name: bytes) -> bytes:
    """Return the state key of a slot of the basefee system actor. Spec: CIP-5 §6.4."""
    return _slot_key(params.governance.basefee_actor, name)


@lru_cache(SLOT_KEYS_CACHED)
def _slot_key(actor: int, name: bytes) -> bytes:
    return storage_key(system_address(actor), name)


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


def next_change(params: ChainParams, read: Read, height: int) -> int:
    """Return the first block above a height in which other values come into force by themselves; 2**64 for none."""
    slots = (read(system_slot_key(params, name)) for name in EPOCHAL)
    begins = [decode_change(decode_slot(slot)[1]).height for slot in slots if slot is not None]
    ahead = (each for each in (params.lane.activation_height, *begins) if each > height)
    return min(ahead, default=U64_MAX + 1)


def next_epoch(params: ChainParams, height: int) -> int:
    """Return the first block of the governance epoch after the one of a height. Spec: CIP-5old §12. Decision: D-31."""
    length = params.globalbox.epoch_blocks
    return (height // length + 1) * length


def with_param(params: ChainParams, subject: str, field: str, value: int) -> ChainParams:
    """Return ``params`` with one value replaced; relations are not checked here."""
    return replace(params, **{subject: replace(getattr(params, subject), **{field: value})})


class Change(NamedTuple):
    """A governed value that changes with the epoch that begins at a height. Decision: D-66."""

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
