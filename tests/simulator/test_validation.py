"""The simulator reproduces what is known, and the page of it says what the program computes."""

import re
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest

from trailboss.simulator.validation import __main__ as program
from trailboss.simulator.validation.fee_market import demand_of, path, rule_of
from trailboss.simulator.validation.laws import Law, Reproduction, allowed, equal
from trailboss.simulator.validation.page import LAWS, page
from trailboss.simulator.validation.queues import MECHANISMS, flow, mean_backlog

PAGE = Path(__file__).resolve().parents[2] / "docs/concepts/simulator-validation.md"
FRACTION = re.compile(r"-?\b\d+(?:\.\d+(?:e-\d+)?|e-\d+)")
DIGITS = 2e-3  # the page has four digits of what is no integer


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(LAWS)), ids=lambda place: LAWS[place].__name__)
def test_simulator_reproduces_a_law_and_its_page_says_so(place: int) -> None:
    """Each number is within what the law allows; the page has words and integers, and other numbers to its digits."""
    law = LAWS[place]()
    assert law.readings
    assert [reading for reading in law.readings if not reading.holds] == []
    said, expected = PAGE.read_text(encoding="utf-8").split("\n## ")[place + 1], page([law]).split("\n## ")[1]
    assert FRACTION.sub("#", said).rstrip() == FRACTION.sub("#", expected).rstrip()
    assert fractions(said) == pytest.approx(fractions(expected), rel=DIGITS, abs=0)


def test_page_has_every_law_and_nothing_else() -> None:
    """It begins as the program writes it."""
    intro, *sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    assert intro.rstrip() == page([]).rstrip()
    assert len(sections) == len(LAWS)


def fractions(text: str) -> list[float]:
    """Return the numbers of a text that are no integers."""
    return [float(found) for found in FRACTION.findall(text)]


@pytest.mark.parametrize(
    ("reading", "holds", "words"),
    [
        (equal("", 17, 17.4, 0.5), True, "17 ± 0.5"),
        (equal("", 17, 17.6, 0.5), False, "17 ± 0.5"),
        (Reproduction("", 1, 1.0627, 0.99), False, "1 to 1.063"),
        (Reproduction("", 0.05, inf, 0.04), False, "at least 0.05"),
        (Reproduction("", -inf, 3, 3), True, "at most 3"),
        (Reproduction("", 0, 3, float("nan")), False, "0 to 3"),
    ],
)
def test_reading_holds_within_its_bounds_alone(reading: Reproduction, holds: bool, words: str) -> None:
    """What lies outside, or is no number, does not hold."""
    assert (reading.holds, allowed(reading)) == (holds, words)


@pytest.mark.parametrize("load", [0.2, 0.5, 0.9])
def test_bulk_service_of_one_is_a_single_server(load: float) -> None:
    """The formula gives M/D/1's mean queue, ρ²/(2(1 − ρ)), without roots."""
    assert mean_backlog(load, 1) == pytest.approx(load**2 / (2 * (1 - load)))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_backlog_after_a_block_goes_with_the_lateness_of_fires(mechanism: str) -> None:
    """Lateness counted from one would be off by the number of fires: only one of the two conventions holds."""
    found = flow(mechanism)
    assert found.backlog[0] == found.backlog[-1] == 0
    assert sum(found.backlog) == sum(found.delays()) != sum(late + 1 for late in found.delays())


@pytest.mark.parametrize(("divisor", "product"), [(2, 1.9), (8, 1.9), (8, 2.1)])
def test_basefee_nears_rest_only_below_the_threshold(divisor: int, product: float) -> None:
    """Far from rest, too, a path ends there if d·s < 2, and nowhere near it if not."""
    demand = demand_of(product * divisor)
    prices = path(rule_of(divisor), demand, demand.lowest)
    last = [next(prices)[0] for _ in range(2_000)][-20:]
    assert (max(abs(price - demand.resting) for price in last) < demand.width // 1_000) == (product < 2)


def one_law(found: int) -> Callable[[], Law]:
    """Return a law that states 1."""
    return lambda: Law("Ones", "a book", "one is one", (equal("one", 1, found),))


def test_program_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that holds is a row of the page."""
    monkeypatch.setattr(program, "LAWS", (one_law(1),))
    monkeypatch.setattr("sys.argv", ["validation", "--page", str(tmp_path / "page.md")])
    assert program.main() == 0
    assert "| one | 1 | 1 |\n" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_program_fails_where_a_law_does(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The page marks the row, and the program names it."""
    monkeypatch.setattr(program, "LAWS", (one_law(2),))
    monkeypatch.setattr("sys.argv", ["validation"])
    assert program.main() == 1
    printed = capsys.readouterr()
    assert "| one | 1 | 2 **differs** |\n" in printed.out
    assert printed.err == "Ones: one\n"


def test_program_names_a_file_that_it_cannot_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder is missing."""
    monkeypatch.setattr(program, "LAWS", (one_law(1),))
    monkeypatch.setattr("sys.argv", ["validation", "--page", str(tmp_path / "none/page.md")])
    assert program.main() == 2
    assert capsys.readouterr().err == f"cannot write the page {tmp_path / 'none/page.md'}: No such file or directory\n"
