"""Workloads as files, in TOML.

```toml
name = "a small example"
seed = 1                  # of everything that is spread
blocks = 60
budget_cycles = 2_000_000 # of fires in one block, under every mechanism

[[actors]]
name = "clocks"
count = 10
funds = "100cby"          # each; or base units
timers = 2                # each, at heights of their own
first = 5                 # block in which the first fire is due
spread = 9                # and up to so many blocks later
period = 10               # blocks from a fire to the next; 0 fires once
gas_limit = 100_000
work = 60_000             # cycles that a fire burns
tip = 500                 # base units per cycle that it offers above all basefees

[[transactions]]
per_block = 3
work = 1_000_000          # cycles that each burns; 0 is a transfer
```
"""

import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec.structs import fields

from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.units import BASE_UNITS_PER_CBY, CBY_DECIMALS, U32_MAX, U64_MAX
from trailboss.simulator.workload import ACTORS_MAX, TIMERS_MAX, ActorGroup, Traffic, Workload, check_workload

BLOCKS_MAX: Final = 100_000
FUNDS_MAX: Final = U64_MAX
"""Base units that one actor starts with."""
TRANSACTIONS_MAX: Final = 1_000
"""Transactions of one row in one block."""
WORK_MAX: Final = 20_000_000
AMOUNT: Final = re.compile(r"(?P<whole>[0-9][0-9_]*)(?:\.(?P<part>[0-9]{1,9}))?cby")
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]{0,23}")
TITLE_CHARACTERS_MAX: Final = 80


class Range(NamedTuple):
    """What an integer of a workload may be, both ends included."""

    least: int
    most: int


GROUP_RANGES: Final[Mapping[str, Range]] = MappingProxyType(
    {
        "count": Range(1, ACTORS_MAX),
        "funds": Range(0, FUNDS_MAX),
        "gas_limit": Range(1, U64_MAX),
        "work": Range(0, WORK_MAX),
        "timers": Range(1, TIMERS_MAX),
        "burst": Range(1, TIMERS_MAX),
        "first": Range(1, BLOCKS_MAX),
        "spread": Range(0, BLOCKS_MAX),
        "period": Range(0, BLOCKS_MAX),
        "payload_bytes": Range(0, U32_MAX),
        "tip": Range(0, U32_MAX),
        "max_fee": Range(0, U64_MAX),
        "expiry": Range(0, BLOCKS_MAX),
    }
)
TRAFFIC_RANGES: Final[Mapping[str, Range]] = MappingProxyType(
    {
        "per_block": Range(1, TRANSACTIONS_MAX),
        "first": Range(1, BLOCKS_MAX),
        "last": Range(0, BLOCKS_MAX),
        "work": Range(0, WORK_MAX),
    }
)
SEED_RANGE: Final = Range(0, U64_MAX)
BLOCKS_RANGE: Final = Range(1, BLOCKS_MAX)
BUDGET_RANGE: Final = Range(1, U64_MAX)


def read_workload(path: Path, mechanisms: Collection[str]) -> Workload:
    """Read a workload from a file.

    Args:
        path: A TOML file.
        mechanisms: Through which it is to be run.

    Raises:
        ConfigurationError: Naming what cannot be read, or key, value and rule.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot read the workload {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the workload {path} is not UTF-8: {error.reason} at byte {error.start}") from None
    return parse_workload(text, mechanisms)


def parse_workload(text: str, mechanisms: Collection[str]) -> Workload:
    """Read a workload from TOML.

    Args:
        text: TOML.
        mechanisms: Through which it is to be run; only they can have parameters of their own.

    Raises:
        ConfigurationError: Naming key, value and rule.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"the workload is not TOML: {error}") from None
    _check_keys("the workload", table, Workload)
    name = _text("name", table["name"])
    if not 1 <= len(name) <= TITLE_CHARACTERS_MAX:
        raise ConfigurationError(f"name = {name!r} must have 1 to {TITLE_CHARACTERS_MAX} characters")
    workload = Workload(
        name=name,
        seed=_integer("seed", table["seed"], SEED_RANGE),
        blocks=_integer("blocks", table["blocks"], BLOCKS_RANGE),
        actors=tuple(_group(f"actors[{index}]", row) for index, row in enumerate(_rows("actors", table))),
        preset=_text("preset", table.get("preset", "mainnet")),
        budget_cycles=_integer("budget_cycles", table["budget_cycles"], BUDGET_RANGE)
        if "budget_cycles" in table
        else 0,
        transactions=tuple(
            _traffic(f"transactions[{index}]", row) for index, row in enumerate(_rows("transactions", table))
        ),
        params=_table("params", table.get("params", {})),
        params_of={
            mechanism: _table(f"params_of.{mechanism}", given)
            for mechanism, given in _table("params_of", table.get("params_of", {})).items()
        },
    )
    check_workload(workload, mechanisms)
    return workload


def _group(where: str, row: object) -> ActorGroup:
    table = _table(where, row)
    _check_keys(where, table, ActorGroup)
    name = _text(f"{where}.name", table["name"])
    if NAME.fullmatch(name) is None:
        raise ConfigurationError(
            f"{where}.name = {name!r} must have 1 to 24 letters, digits, blanks and hyphens, the first no blank"
        )
    given = {key: value for key, value in table.items() if key != "name"}
    given["funds"] = _amount(f"{where}.funds", given["funds"])
    return ActorGroup(
        name=name, **{key: _integer(f"{where}.{key}", value, GROUP_RANGES[key]) for key, value in given.items()}
    )


def _traffic(where: str, row: object) -> Traffic:
    table = _table(where, row)
    _check_keys(where, table, Traffic)
    return Traffic(**{key: _integer(f"{where}.{key}", value, TRAFFIC_RANGES[key]) for key, value in table.items()})


def _check_keys(where: str, table: Mapping[str, Any], record: type) -> None:
    known = [each.name for each in fields(record)]
    for key in table:
        if key not in known:
            raise ConfigurationError(f"unknown key {key!r} in {where}; there are: {', '.join(known)}")
    for each in fields(record):
        if each.required and each.name not in table:
            raise ConfigurationError(f"{where} lacks {each.name}")


def _rows(name: str, table: Mapping[str, Any]) -> list[object]:
    rows = table.get(name, [])
    if not isinstance(rows, list):
        raise ConfigurationError(f"{name} = {rows!r} must be tables: [[{name}]]")
    return rows


def _table(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{name} = {value!r} must be a table")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} = {value!r} must be text")
    return value


def _integer(name: str, value: object, within: Range) -> int:
    if type(value) is not int or not within.least <= value <= within.most:
        raise ConfigurationError(f"{name} = {value!r} must be an integer within {within.least}..={within.most}")
    return value


def _amount(name: str, value: object) -> object:
    """Return an amount in base units; what is not written in CBY is left to be checked as an integer."""
    if not isinstance(value, str):
        return value
    written = AMOUNT.fullmatch(value)
    if written is None:
        raise ConfigurationError(f'{name} = {value!r} must be base units, or CBY as in "1.5cby", nine decimals at most')
    part = (written["part"] or "").ljust(CBY_DECIMALS, "0")
    return int(written["whole"]) * BASE_UNITS_PER_CBY + int(part)
