"""``trailboss params``: the parameters in force, and who set them."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any, Final

import typer

from trailboss.chain import Chain
from trailboss.cli.failures import Mistake
from trailboss.cli.opening import open_chain
from trailboss.cli.options import DIRECTORY, AsJson, Directory
from trailboss.cli.output import Cell, Column, print_json, print_table
from trailboss.governance.rules import Rules
from trailboss.model.configs import BasefeeConfig, LaneMultipliers, TimerConfig, amount_of
from trailboss.params.loader import SUBJECTS, load_params

MULTIPLIERS = "multipliers"
"""Subject under which the lane fee multipliers are listed: only governance sets them."""
COLUMNS = (Column("parameter"), Column("value", right=True), Column("set by"), Column("preset", right=True))


@dataclass(frozen=True, slots=True)
class Setting:
    """A parameter in force in the next block.

    Attributes:
        path: Dotted path.
        value: In force.
        preset: What the preset says; None for what no preset has.
        set_by: ``preset``, ``genesis`` or ``governance``.
    """

    path: str
    value: int
    preset: int | None
    set_by: str


LONGEST_NUMBER: Final = 15
"""Digits of a number that is still written out, if it is a power of ten."""


def params(
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Only these, as timers or timers.max_ttl_blocks.", show_default=False),
    ] = None,
    directory: Directory = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Tell the parameters in force in the next block, and who set them."""
    with open_chain(directory) as chain:
        settings = list(_settings(chain))
    wanted = [item for item in settings if not path or any(_lies_under(item.path, each) for each in path)]
    for each in path or []:
        if not any(_lies_under(item.path, each) for item in settings):
            subjects = ", ".join((*SUBJECTS, MULTIPLIERS))
            raise Mistake(f"there is no parameter {each!r}", f"give a path, or one of the subjects: {subjects}")
    if as_json:
        print_json({"preset": chain.genesis.preset, "parameters": wanted})
    else:
        print_table(f"Parameters, preset {chain.genesis.preset}", COLUMNS, [_row(item) for item in wanted])


def _lies_under(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix.removesuffix('.')}.")


def _row(setting: Setting) -> tuple[Cell, ...]:
    preset = "" if setting.preset is None or setting.preset == setting.value else _number(setting.preset)
    return setting.path, _number(setting.value), setting.set_by, preset


def _number(value: int) -> str:
    """Return a number as people read it: long round ones as powers, so that the table fits a terminal."""
    digits = str(value)
    is_long_power = len(digits) > LONGEST_NUMBER and digits == "1".ljust(len(digits), "0")
    return f"10^{len(digits) - 1}" if is_long_power else f"{value:,}"


def _settings(chain: Chain) -> Iterator[Setting]:
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


def _governed(rules: Rules) -> dict[str, Any]:
    """Return what the two governed records say, by the path of the parameter whose place they take."""
    values: dict[str, Any] = {f"timers.{name}": getattr(rules.timer, name) for name in TimerConfig.__struct_fields__}
    for name in BasefeeConfig.__struct_fields__:
        value = getattr(rules.basefee, name)
        values[f"fees.{name}"] = amount_of(value) if isinstance(value, bytes) else value
    return values
