"""Cost tables: merging, names, and what is refused."""

from pathlib import Path

import msgspec
import pytest

from trailboss.primitives.errors import InvariantError
from trailboss.testing.costs.table import CostedSource, CostTable, HandlerCosts, RestCosts, file_name


def table_of(cycles: int) -> CostTable:
    costs = HandlerCosts([cycles], base=cycles - 5, cells=2, paid=3, lines={1: 5})
    return CostTable(
        sources={"aa": CostedSource("def tick(): pass\n")},
        handlers={"aa": {"tick": {"test": costs}}},
        rest={"transactions": RestCosts(10, 1, 0)},
        executions=1,
        total=RestCosts(cycles + 10, 3, 3),
    )


def test_merged_tables_add_up() -> None:
    """Workers' tables are one table, also after they were sent as JSON."""
    table = table_of(100)
    table.merge(msgspec.json.decode(msgspec.json.encode(table_of(200)), type=CostTable))
    table.check()
    assert table.handlers["aa"]["tick"]["test"].calls == [100, 200]
    assert (table.executions, table.total) == (2, RestCosts(320, 6, 6))


@pytest.mark.parametrize("field", ["cycles", "cells", "paid"])
def test_table_that_does_not_add_up_is_an_invariant_error(field: str) -> None:
    """One unit is enough."""
    table = table_of(100)
    setattr(table.total, field, getattr(table.total, field) + 1)
    with pytest.raises(InvariantError, match="add up"):
        table.check()


def test_lines_that_do_not_add_up_are_an_invariant_error() -> None:
    """A handler's cycles are its bases and lines."""
    table = table_of(100)
    table.handlers["aa"]["tick"]["test"].lines[1] = 6
    with pytest.raises(InvariantError, match="lines of tick"):
        table.check()


@pytest.mark.parametrize(
    ("text", "file", "name"),
    [
        ("x = 1\n", "actors/clock.py", "actors/clock.py"),
        ("class Terms: pass\nclass Clock: pass\n", "", "class Clock"),
        ("def tick(): pass\ndef tock(): pass\n", "", "tick(…)"),
        ("x = 1\n", "", "a source"),
    ],
)
def test_source_is_named_by_its_file_else_by_what_it_defines(text: str, file: str, name: str) -> None:
    """The name is the same in every run."""
    assert CostedSource(text, file).name == name


def test_file_is_named_from_the_folder_of_the_tests() -> None:
    """A temporary folder is in no name."""
    root = Path("/home/project")
    assert file_name("/home/project/actors/clock.py", root) == "actors/clock.py"
    assert file_name("/tmp/pytest-7/clock.py", root) == "clock.py"
