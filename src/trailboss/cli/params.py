"""``trailboss params``: the parameters in force, and who set them."""

from typing import Annotated, Final

import typer

from trailboss.cli.failures import Mistake
from trailboss.cli.opening import open_chain
from trailboss.cli.options import DIRECTORY, AsJson, Place
from trailboss.cli.output import Cell, Column, print_json, print_table
from trailboss.params.loader import SUBJECTS
from trailboss.views.settings import MULTIPLIERS, Setting, lies_under, settings_of

COLUMNS = (Column("parameter"), Column("value", right=True), Column("set by"), Column("preset", right=True))
LONGEST_NUMBER: Final = 15
"""Digits of a number that is still written out, if it is a power of ten."""


def params(
    path: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Only these, as timers or timers.max_ttl_blocks.", show_default=False),
    ] = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Tell the parameters in force in the next block, and who set them."""
    with open_chain(place) as chain:
        settings = list(settings_of(chain))
    wanted = [item for item in settings if not path or any(lies_under(item.path, each) for each in path)]
    for each in path or []:
        if not any(lies_under(item.path, each) for item in settings):
            subjects = ", ".join((*SUBJECTS, MULTIPLIERS))
            raise Mistake(f"there is no parameter {each!r}", f"give a path, or one of the subjects: {subjects}")
    if as_json:
        print_json({"preset": chain.genesis.preset, "parameters": wanted})
    else:
        print_table(f"Parameters, preset {chain.genesis.preset}", COLUMNS, [_row(item) for item in wanted])


def _row(setting: Setting) -> tuple[Cell, ...]:
    preset = "" if setting.preset is None or setting.preset == setting.value else _number(setting.preset)
    return setting.path, _number(setting.value), setting.set_by, preset


def _number(value: int) -> str:
    """Return a number as people read it: long round ones as powers, so that the table fits a terminal."""
    digits = str(value)
    is_long_power = len(digits) > LONGEST_NUMBER and digits == "1".ljust(len(digits), "0")
    return f"10^{len(digits) - 1}" if is_long_power else f"{value:,}"
