"""Workload files, in TOML: the fields of `Workload`, groups as ``[[actors]]``, traffic as ``[[transactions]]``.

Funds are base units, or CBY as in ``"100cby"``. ``examples/workloads`` has some.
"""

import re
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from msgspec import ValidationError, convert

from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.units import BASE_UNITS_PER_CBY, CBY_DECIMALS
from trailboss.simulator.workload import Workload, check_workload

AMOUNT: Final = re.compile(r"(?P<whole>[0-9][0-9_]*)(?:\.(?P<part>[0-9]{1,9}))?cby")
STEP: Final = re.compile(r"\.([^.[\]]+)|\[(\d+)\]")  # a step of a path such as ``$.actors[0].funds``


def read_workload(path: Path, mechanisms: Collection[str]) -> Workload:
    """Read a workload from a file, to be run through mechanisms.

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
    """Read a workload from TOML; only mechanisms given can have their own parameters. Raises as `read_workload`."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"the workload is not TOML: {error}") from None
    rows = table.get("actors")
    for index, row in enumerate(rows if isinstance(rows, list) else ()):
        if isinstance(row, dict) and isinstance(row.get("funds"), str):
            row["funds"] = _amount(f"actors[{index}].funds", row["funds"])
    try:
        workload = convert(table, Workload)
    except ValidationError as error:
        raise ConfigurationError(_explained(table, str(error))) from None
    check_workload(workload, mechanisms)
    return workload


def _amount(name: str, text: str) -> int:
    written = AMOUNT.fullmatch(text)
    if written is None:
        raise ConfigurationError(f'{name} = {text!r} must be base units, or CBY as in "1.5cby", nine decimals at most')
    part = (written["part"] or "").ljust(CBY_DECIMALS, "0")
    return int(written["whole"]) * BASE_UNITS_PER_CBY + int(part)


def _explained(table: dict[str, Any], message: str) -> str:
    """Return the refusal of a value with its key and itself: ``seed = -1: expected `int` >= 0``."""
    rule, _, path = message.partition(" - at `$")
    found: Any = table
    for key, index in STEP.findall(path.rstrip("`")):
        found = found[int(index)] if index else found.get(key)
    name = path.rstrip("`").lstrip(".") or "the workload"
    shown = name if isinstance(found, dict) else f"{name} = {found!r}"
    return f"{shown}: {rule[:1].lower()}{rule[1:]}"
