"""``trailboss compare``: tables with intervals, a document with the value of each seed, errors with what to correct."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Ask, Run
from trailboss.mechanisms.registry import MECHANISMS
from trailboss.simulator.metrics.statistics import interval_of

WIDTH = 100
SCENARIO = """
name = "two kinds"
blocks = 30
warm_up = 5

[params]
"auction.budget_cycles" = 2_000_000

[[agents]]
kind = "poisson"
name = "often"
rate = 30
cycles = 60_000
value = 20_000
decay = 100
actors = 3

[[agents]]
kind = "loop"
name = "loops"
count = 2
timers = 3
patience = 4
offer = {kind = "fixed", cap = 9_000, tip = 50}

[[agents]]
kind = "traffic"
name = "users"
"""


@pytest.fixture
def scenario(run: Run) -> str:
    """Return the name of a small scenario's file in the present folder."""
    Path("kinds.toml").write_text(SCENARIO, encoding="utf-8")
    return "kinds.toml"


def test_tables_have_a_column_for_every_mechanism_and_fit(run: Run, scenario: str) -> None:
    """One row a measure; then the rows of each kind of agent that has timers."""
    lines = run("compare", scenario, "--seeds", 3, columns=WIDTH).stdout.splitlines()
    assert all(len(line) <= WIDTH for line in lines), lines
    assert "scenario  two kinds" in lines
    assert "blocks    30, after 5 that no measure sees" in lines
    assert "budget    2,000,000 cycles a block, the same for all" in lines
    assert [line.split() for line in lines].count(list(MECHANISMS)) == 1
    assert [line.split() for line in lines].count(["agents", "measure", *MECHANISMS]) == 1
    assert next(line for line in lines if line.startswith("unfunded")).split() == ["unfunded", "0", "0", "0", "0"]
    assert next(line for line in lines if line.startswith("scheduled")).count("±") == len(MECHANISMS)
    assert [line.split()[:2] for line in lines if line.startswith(("often", "loops", "users"))] == [
        ["often", "refused"],
        ["loops", "refused"],
    ]


def test_document_has_every_measure_with_the_value_of_each_seed(ask: Ask, scenario: str) -> None:
    """The intervals are those of the values; agents add up to the whole."""
    found = ask("compare", scenario, "--seeds", 3, "--blocks", 20)
    assert found["scenario"] == {"name": "two kinds", "blocks": 20, "warm_up": 5}
    assert [result["mechanism"] for result in found["results"]] == list(MECHANISMS)
    for result in found["results"]:
        measures = result["measures"]
        for measure in measures.values():
            interval = interval_of(measure["values"])
            assert [measure["mean"], measure["half_width"]] == [interval.mean, interval.half_width]
        fired = zip(*(measures[name]["values"] for name in ("fired", "often.fired", "loops.fired")), strict=True)
        assert all(of_all == often + loops > 0 for of_all, often, loops in fired)
        assert measures["reverted"]["mean"] == 0
        assert measures["budget"]["values"] == [2_000_000] * 3
    # What arrives does not depend on the mechanism: all draw the same.
    assert len({str(result["measures"]["often.scheduled"]["values"]) for result in found["results"]}) == 1


def test_mechanisms_are_those_named_when_some_are(ask: Ask, run: Run, scenario: str) -> None:
    """In the order given, each once."""
    few = ("compare", scenario, "--seeds", 2, "--blocks", 5)
    found = ask(*few, "--mechanism", "lane", "--mechanism", "fifo", "--mechanism", "lane")
    assert [result["mechanism"] for result in found["results"]] == ["lane", "fifo"]
    refused = run(*few, "--mechanism", "sieve", status=2)
    assert "there is no mechanism 'sieve'" in refused.stderr
    assert "fifo, lane, auction, globalbox" in " ".join(refused.stderr.split())


def test_budgets_stand_apart_when_a_scenario_leaves_them_apart(run: Run, scenario: str) -> None:
    """What is not the same is not called so."""
    Path(scenario).write_text(SCENARIO.replace("2_000_000", "9_000_000"), encoding="utf-8")
    some = ("--mechanism", "fifo", "--mechanism", "auction", "--seeds", 2, "--blocks", 5)
    assert "fifo 2,000,000, auction 9,000,000 cycles a block" in run("compare", scenario, *some).stdout


@pytest.mark.slow
def test_whole_chains_give_the_same_numbers(ask: Ask, scenario: str) -> None:
    """Every measure of every seed, under each mechanism."""
    few = ("compare", scenario, "--seeds", 2, "--blocks", 20)
    alone, whole = ask(*few), ask(*few, "--whole")
    assert (alone.pop("is_whole"), whole.pop("is_whole")) == (False, True)
    assert alone == whole


@pytest.mark.slow
@pytest.mark.determinism
def test_document_is_the_same_under_every_hash_seed(
    scenario: str, output_under_hash_seed: Callable[[str, int], str]
) -> None:
    """Two processes, two hash seeds."""
    program = (
        "from trailboss.cli.main import app\n"
        f"app(['compare', {str(Path(scenario).resolve())!r}, '--seeds', '2', '--json'])"
    )
    first = output_under_hash_seed(program, 1)
    assert first == output_under_hash_seed(program, 2)
    assert json.loads(first)["seeds"] == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("rate = -30", "kinds.toml: agents[0].rate = -30: expected `float` >= 0.0"),
        ("rate = 30\nshare = 0.5", "agents[0].rate = 30.0 and share = 0.5: give one of them, and only one"),
        ("rate = 30\nrates = 3", "agents[0]: object contains unknown field `rates`"),
    ],
)
def test_error_names_file_field_value_and_rule(run: Run, scenario: str, wrong: str, words: str) -> None:
    """Status 2 and no table, as for a missing argument; it says where to look."""
    Path(scenario).write_text(SCENARIO.replace("rate = 30", wrong), encoding="utf-8")
    refused = run("compare", scenario, status=2)
    assert refused.stdout == ""
    assert words in " ".join(refused.stderr.split())
    assert "docs/reference/scenarios.md" in refused.stderr


def test_missing_file_and_a_single_seed_are_refused(run: Run, scenario: str) -> None:
    """One seed has no interval."""
    assert "cannot read the scenario none.toml" in run("compare", "none.toml", status=2).stderr
    assert '{"error": {"what": "cannot read' in run("compare", "none.toml", "--json", status=2).stderr
    assert "1 is too small: give 2 or more" in run("compare", scenario, "--seeds", 1, status=2).stderr
    run("compare", status=2)


def test_lack_of_numpy_is_named_with_what_installs_it(scenario: str) -> None:
    """The extra brings it."""
    program = "import sys; sys.modules['numpy'] = None; from trailboss.cli.main import app; app(sys.argv[1:])"
    command = [sys.executable, "-c", program, "compare", scenario]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "a comparison needs numpy, which is not installed" in refused.stderr
    assert "pip install 'trailboss[study]'" in refused.stderr
