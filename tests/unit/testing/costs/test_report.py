"""Cost tables and comparisons as text."""

from fractions import Fraction

import pytest

from tests.golden.lives import ACTORS, run_life
from trailboss.testing.costs.baseline import Comparison, CostChange
from trailboss.testing.costs.recorder import CostRecorder
from trailboss.testing.costs.report import comparison_text, grid, table_text
from trailboss.testing.costs.table import CostedSource, CostTable, HandlerCosts, line_text
from trailboss.vm.trace import NO_LINE

HANDLER = "a_handler_with_a_name_that_is_longer_than_many"
CHANGE = CostChange(
    "folder/of/actors/clock.py", HANDLER, f"tests/test_clock.py::test_{HANDLER}", (2, 8_000), (1, 5_000)
)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_table_fits_and_shows_every_line_that_costs(width: int) -> None:
    """Each row of lines has its number, its cycles and its text."""
    recorder = CostRecorder(ACTORS)
    run_life("liquidation_watch", recorder)
    shown = list(table_text(recorder.table, width, with_lines=True))
    assert max(map(len, shown)) <= width
    assert any(line.startswith("oracle.py (") for line in shown)
    for code_hash, _, _, costs in recorder.table.rows():
        text = recorder.table.sources[code_hash].text.splitlines()
        for line in costs.lines:
            assert line == NO_LINE or any(f" {line}  " in row and text[line - 1].strip()[:10] in row for row in shown)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_comparison_fits_and_names_what_grew(width: int) -> None:
    """Cycles of a call before and now, by how much, in which test, and in which lines."""
    lines = {(CHANGE.source, HANDLER): {"total += each": (10, 1_010)}}
    found = Comparison([CHANGE], [CHANGE], [("new.py", "more")], [("old.py", "less")], 3, lines)
    shown = list(comparison_text(found, width, Fraction(2, 100)))
    assert max(map(len, shown)) <= width
    text = "\n".join(shown)
    assert "grew by more than 2 %" in text
    for part in ("4,000", "5,000", "+25.0 %", "most in ", CHANGE.test[-40:], "+1,000  total += each", "3 tests"):
        assert part in text
    assert text.index("Shrunk") < text.index("new.py more") < text.index("old.py less")


def test_report_names_lines_that_were_not_compared() -> None:
    """The reason is in the report."""
    found = Comparison([CHANGE], lines={(CHANGE.source, HANDLER): None})
    assert "where other tests called" in "\n".join(comparison_text(found, 80, Fraction(0)))


def test_columns_are_left_out_before_names_are_cut() -> None:
    """The optional ones go first, in their order."""
    rows = [("a_long_handler_name", "111", "222", "333")]
    [heads, row] = grid(("handler", "min", "max", "nested"), rows, 36, ("nested", "min"))
    assert heads.split() == ["handler", "min", "max"]
    [heads, row] = grid(("handler", "min", "max", "nested"), rows, 20, ("nested", "min"))
    assert heads.split() == ["handler", "max"]
    assert row.split() == ["…handler_name", "222"]


def test_lines_of_a_source_are_those_of_the_parser_and_nothing_in_them_is_obeyed() -> None:
    """A form feed ends no line, and an actor's escapes are text; so is a handler's name, which a caller chooses."""
    source = CostedSource("X = '\x1b[31m\x0c\u2028'\r\ndef go():\r\n\treturn b''\r\n", "go.py")
    costs = HandlerCosts([40], lines={1: 10, 2: 10, 3: 20})
    table = CostTable({"aa": source}, {"aa": {"go\x1b[2J": {"": costs}}})
    shown = list(table_text(table, 100, with_lines=True))
    assert all(map(str.isprintable, shown))
    assert [row.split("%")[1].strip() for row in shown if "%" in row][:3] == [
        r"X = '\x1b[31m\x0c\u2028'", "def go():", "return b''",
    ]  # fmt: skip
    assert line_text(source, 3) == "return b''"
