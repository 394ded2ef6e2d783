"""Baselines of costs: what is kept, and what counts as growth."""

from fractions import Fraction
from pathlib import Path

import pytest
from msgspec.structs import replace

from trailboss.primitives.errors import ConfigurationError
from trailboss.testing.costs.baseline import baseline_of, compare, other_prices, read_baseline, write_baseline
from trailboss.testing.costs.table import CostedSource, CostTable, HandlerCosts

SOURCE = "class Clock:\n    def tick(self, payload):\n        total = 1\n        total = 1\n"
NONE: frozenset[str] = frozenset()
EXACT = Fraction(0)


def table_of(**tests: dict[int, int]) -> CostTable:
    """Return a table of one handler: one call for each test, with cycles by line."""
    rows = {test: HandlerCosts([sum(lines.values())], lines=dict(lines)) for test, lines in tests.items()}
    return CostTable({"aa" * 32: CostedSource(SOURCE, "clock.py")}, {"aa" * 32: {"tick": rows}})


def test_nothing_has_changed_when_the_same_tests_cost_the_same() -> None:
    """A baseline is equal to itself, through its file."""
    table = table_of(first={3: 100}, second={3: 300})
    found = compare(table, baseline_of(table), EXACT, NONE)
    assert (found.grown, found.shrunk, found.new, found.unrun, found.tests_unrun) == ([], [], [], [], 0)


def test_file_has_a_line_for_each_test_and_source_line_and_reads_back(tmp_path: Path) -> None:
    """Small diffs: equal tables give equal files, whatever the order of their tests."""
    path, again = tmp_path / "costs.json", tmp_path / "again.json"
    baseline = baseline_of(table_of(second={3: 300}, first={3: 100, 4: 7}))
    write_baseline(path, baseline)
    write_baseline(again, baseline_of(table_of(first={3: 100, 4: 7}, second={3: 300})))
    text = path.read_text(encoding="utf-8")
    assert text == again.read_text(encoding="utf-8")
    assert '     "first": [1, 107],\n     "second": [1, 300]\n' in text
    assert '     "total = 1": 200,\n     "total = 1 (2)": 3\n' in text
    assert read_baseline(path) == baseline


def test_new_test_changes_nothing_however_dear_it_is() -> None:
    """A test is compared with itself alone."""
    before = baseline_of(table_of(first={3: 100}))
    found = compare(table_of(first={3: 100}, second={3: 9_000}), before, EXACT, NONE)
    assert (found.grown, found.shrunk) == ([], [])


def test_one_test_that_grew_is_growth_when_others_shrank() -> None:
    """The report names the test in which the handler grew most."""
    before = baseline_of(table_of(first={3: 100}, second={3: 1_000}))
    [grown] = compare(table_of(first={3: 103}, second={3: 500}), before, Fraction(2, 100), NONE).grown
    assert (grown.handler, grown.test, grown.before, grown.now) == ("tick", "first", (1, 100), (1, 103))


@pytest.mark.parametrize(("cycles", "grew"), [(102, False), (103, True)])
def test_growth_up_to_the_tolerance_is_none(cycles: int, grew: bool) -> None:
    """Two percent are still within 2%."""
    before = baseline_of(table_of(first={3: 100}))
    found = compare(table_of(first={3: cycles}), before, Fraction(2, 100), NONE)
    assert bool(found.grown) is grew


def test_lines_that_grew_are_found_again_when_they_have_moved() -> None:
    """Lines go by their text; those that did not grow are left out."""
    before = baseline_of(table_of(first={2: 10, 3: 100}))
    moved = table_of(first={3: 10, 4: 300})
    moved.sources["aa" * 32].text = "\n" + SOURCE
    found = compare(moved, before, EXACT, NONE)
    assert found.lines == {("clock.py", "tick"): {"total = 1": (100, 300)}}


def test_lines_are_not_compared_when_other_tests_ran() -> None:
    """Sums over other calls would name lines that did not grow."""
    before = baseline_of(table_of(first={3: 100}, second={3: 100}))
    found = compare(table_of(first={3: 200}), before, EXACT, NONE)
    assert found.lines == {("clock.py", "tick"): None}
    assert found.tests_unrun == 1


def test_handlers_that_ran_on_one_side_are_named() -> None:
    """What is new, and what no test runs any more."""
    table = table_of(first={3: 100})
    other = CostTable(table.sources, {"aa" * 32: {"tock": table.handlers["aa" * 32]["tick"]}})
    found = compare(other, baseline_of(table), EXACT, NONE)
    assert (found.new, found.unrun) == ([("clock.py", "tock")], [("clock.py", "tick")])


def test_tests_whose_inputs_vary_are_left_out() -> None:
    """A handler that only they call is in no baseline."""
    assert baseline_of(table_of(first={3: 100}), frozenset(["first"])).sources == {}


@pytest.mark.parametrize(("field", "value"), [("prices", "0" * 16), ("sdk", "0.0.1"), ("layout", 2)])
def test_baseline_of_other_prices_says_what_differs(field: str, value: object) -> None:
    """Both values are in the sentence."""
    baseline = baseline_of(CostTable())
    assert other_prices(baseline) == ""
    message = other_prices(replace(baseline, **{field: value}))
    assert str(value) in message
    assert str(getattr(baseline, field)) in message


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"layout": 1, "prices": "", "sdk": "", "sources": {}, "more": 1}'])
def test_file_that_is_no_baseline_is_refused(text: str, tmp_path: Path) -> None:
    """The message names the file, and how to write one."""
    path = tmp_path / "costs.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"costs.json is no baseline of costs(.|\n)*--trailboss-costs-save"):
        read_baseline(path)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    """No baseline is an error."""
    with pytest.raises(ConfigurationError, match=r"there is no baseline of costs in .*costs.json"):
        read_baseline(tmp_path / "costs.json")
