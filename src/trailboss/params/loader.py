"""Presets and overrides: TOML in, one checked `ChainParams` out."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import fields

from trailboss.params.records import ChainParams, check_relations
from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.units import U64_MAX, Price

PRESETS: Final = ("mainnet", "minimal", "public")
_FOLDER: Final = Path(__file__).with_name("presets")
SUBJECTS: Final[Mapping[str, type[Struct]]] = MappingProxyType(  # the record of each subject, by its name in a path
    {field.name: field.type for field in fields(ChainParams) if field.name != "preset"}
)
PRICE_MAX: Final = 2**127 - 1
"""Highest price, base units a unit, so that sums of two still fit 128 bits; other parameters fit 64 bits."""
_ONE: Final = 1_000_000_000
HIGHEST: Final[Mapping[str, int]] = MappingProxyType({
    "calendar.ring_size": 2**20, "timers.schedule_needs_entitlement": 1, "timers.payer_is_actor": 1,
    "timers.extension_must_fit": 1, "lane.clamps_gas_limit": 1,
    "lane.weight_max": 2**32, "lane.elasticity": 2**16, "lane.basefee_rule": 2, "lane.caps_at_fire": 1,
    "lane.weight_per_deployer": 1, "lane.fires_median_blocks": 2**16,
    "auction.decay": _ONE, "auction.weight_max": _ONE,
    "auction.delay_action": 2, "globalbox.age_weight": 2**63, "globalbox.bid_weight": 2**32,
    "globalbox.bid_min": 2**32 - 1, "globalbox.bid_max": 2**32 - 1, "globalbox.watch_keys_max": 64,
    "globalbox.watch_key_bytes_max": 1_044, "globalbox.client_nonce_bytes_max": 256, "globalbox.shards": 1_024,
})  # fmt: skip
"""Parameters with a bound of their own: the ring has a slot in memory for each of its heights."""
_CAN_BE_OFF: Final = """costs source timers.lane_cells_per_block timers.schedule_needs_entitlement
    limits.deferred_pending_max timers.payer_is_actor timers.extension_must_fit
    lane.activation_height lane.clamps_gas_limit lane.basefee_rule lane.caps_at_fire lane.weight_per_deployer
    lane.weight_age_blocks auction.decay auction.delay_action auction.delay_penalty_cycles
    globalbox.bid_weight globalbox.bid_min"""
MAY_BE_ZERO: Final = frozenset(_CAN_BE_OFF.split())
"""Subjects whose numbers are prices, and the parameters that can be off; every other one is at least one."""


def load_params(preset: str = "mainnet", overrides: Mapping[str, int] | None = None) -> ChainParams:
    """Read a preset, apply overrides and check every relation.

    The preset is ``mainnet`` (the seeds' defaults), ``minimal`` (a ring of 8, epochs of 4: tests wrap and overflow
    within 40 blocks) or ``public`` (mainnet's, and what public chains refuse). An override is a value by dotted path,
    as ``{"timers.max_timers_per_actor": 10_000}``.

    Raises:
        ConfigurationError: For an unknown preset or path, a value that is no integer in range, or a broken relation.
    """
    if preset not in PRESETS:
        raise ConfigurationError(f"unknown preset {preset!r}; there are: {', '.join(PRESETS)}")
    tables = {subject: dict(values) for subject, values in _read("mainnet").items()}
    for subject, values in ({} if preset == "mainnet" else _read(preset)).items():
        tables[subject] = {**tables[subject], **values}
    for path, value in (overrides or {}).items():
        subject, _, name = path.partition(".")
        if name not in tables.get(subject, {}):
            raise ConfigurationError(f"unknown parameter {path!r}{_suggestion(tables, subject)}")
        tables[subject][name] = value
    return _build(preset, tables)


def parameter_bounds(subject: str, name: str) -> tuple[int, int]:
    """Return the least and the greatest value of a parameter, whatever the others are."""
    return _bounds(subject, name, {field.name: field.type for field in fields(SUBJECTS[subject])}[name])


def _bounds(subject: str, name: str, kind: object) -> tuple[int, int]:
    path = f"{subject}.{name}"
    return 0 if MAY_BE_ZERO & {subject, path} else 1, HIGHEST.get(path, PRICE_MAX if kind is Price else U64_MAX)


@cache
def _read(preset: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(_FOLDER.joinpath(f"{preset}.toml").read_text(encoding="utf-8"))


def _suggestion(tables: Mapping[str, Mapping[str, Any]], subject: str) -> str:
    if subject in tables:
        return f"; {subject} has: {', '.join(sorted(tables[subject]))}"
    return f"; a path is subject.name, with subject one of: {', '.join(sorted(tables))}"


def _build(preset: str, tables: Mapping[str, Mapping[str, Any]]) -> ChainParams:
    records: dict[str, Any] = {}
    for subject, record in SUBJECTS.items():
        for field in fields(record):
            path = f"{subject}.{field.name}"
            least, most = _bounds(subject, field.name, field.type)
            value = tables[subject].get(field.name)
            if type(value) is not int or value < least:
                raise ConfigurationError(f"{path} = {value!r} must be an integer of at least {least}")
            if value > most:
                raise ConfigurationError(f"{path} = {value} must be at most {most}")
        records[subject] = record(**tables[subject])
    params = ChainParams(preset=preset, **records)
    check_relations(params)
    return params
