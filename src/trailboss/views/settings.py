"""The parameters in force in the next block, and who set them."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import fields

from trailboss.chain.reader import ChainReader
from trailboss.governance.rules import Rules
from trailboss.model.configs import BasefeeConfig, LaneMultipliers, TimerConfig, amount_of
from trailboss.params.loader import SUBJECTS, load_params

MULTIPLIERS: Final = "multipliers"
"""Subject under which the lane fee multipliers are listed: only governance sets them."""


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
