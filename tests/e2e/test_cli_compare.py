"""``trailboss compare``: tables that fit, a document with everything, and errors that say what to mend."""

from pathlib import Path

import pytest

from tests.e2e.conftest import Ask, Run
from trailboss.simulator.run import MECHANISMS

WIDTH = 80
WORKLOAD = """
name = "two clocks"
seed = 1
blocks = 12

[[actors]]
name = "clocks"
count = 2
funds = "50cby"
first = 2
spread = 2
period = 4
gas_limit = 60_000
work = 20_000
tip = 10
"""


@pytest.fixture
def workload(run: Run) -> str:
    """Return the name of a small workload's file in the present folder."""
    Path("clocks.toml").write_text(WORKLOAD, encoding="utf-8")
    return "clocks.toml"


def test_tables_name_every_mechanism_and_fit_when_a_workload_is_compared(run: Run, workload: str) -> None:
    """One column a mechanism, one row a number; then one row a group and mechanism."""
    lines = run("compare", workload).stdout.splitlines()
    assert all(len(line) <= WIDTH for line in lines), lines
    assert "workload  two clocks (seed 1)" in lines
    assert "budget    2,000,000 cycles a block, the same for all" in lines
    assert [line.split() for line in lines].count(list(MECHANISMS)) == 1
    numbers = [line.rsplit(maxsplit=len(MECHANISMS)) for line in lines]
    rows = {row[0].strip(): row[1:] for row in numbers if len(row) > len(MECHANISMS)}
    assert rows["delivered"] == ["6"] * 4
    assert rows["blocks late, max"] == ["0"] * 4
    assert rows["Jain's index"] == ["1.000"] * 4
    assert [line.split()[:2] for line in lines if line.startswith("clocks")] == [["clocks", "fifo"]]
    assert any(line.startswith("conserved") for line in lines)


def test_document_has_groups_actors_and_blocks_when_json_is_asked_for(ask: Ask, workload: str) -> None:
    """Amounts are base units; single fires are left out."""
    told = ask("compare", workload)
    assert told["workload"]["actors"][0]["funds"] == 50 * 10**9
    assert [result["mechanism"] for result in told["results"]] == list(MECHANISMS)
    for result in told["results"]:
        assert "fires" not in result
        assert result["outcome"] == result["groups"][0]["outcome"]
        assert [actor["delivered"] for actor in result["actors"]] == [3, 3]
        assert [line["block"] for line in result["timeline"]] == list(range(1, 13))
        assert result["balances"] + result["burned"] == result["supply"]
    assert ask("compare", workload) == told


def test_mechanisms_are_those_named_when_some_are(ask: Ask, run: Run, workload: str) -> None:
    """In the order given, each once."""
    told = ask("compare", workload, "--mechanism", "lane", "--mechanism", "fifo", "--mechanism", "lane")
    assert [result["mechanism"] for result in told["results"]] == ["lane", "fifo"]
    refused = run("compare", workload, "--mechanism", "sieve", status=2)
    assert "there is no mechanism 'sieve'" in refused.stderr
    assert "fifo, lane, auction, globalbox" in " ".join(refused.stderr.split())


def test_budgets_are_told_apart_when_a_workload_sets_them_apart(run: Run, workload: str) -> None:
    """What is not the same is not called so."""
    own = '[params_of.auction]\n"auction.budget_cycles" = 9_000_000\n\n[[actors]]'
    Path(workload).write_text(WORKLOAD.replace("[[actors]]", own), encoding="utf-8")
    shown = run("compare", workload, "--mechanism", "fifo", "--mechanism", "auction").stdout
    assert "fifo 2,000,000, auction 9,000,000 cycles a block" in shown


def test_error_names_key_value_and_rule_when_a_workload_is_wrong(run: Run, workload: str) -> None:
    """Status 2 and no table, as for a missing argument; it says where to look."""
    Path(workload).write_text(WORKLOAD.replace("spread = 2", "spread = 20"), encoding="utf-8")
    refused = run("compare", workload, status=2)
    assert refused.stdout == ""
    assert "actors 'clocks': first + spread = 22 must be at most blocks = 12" in " ".join(refused.stderr.split())
    assert "cannot read the workload none.toml" in run("compare", "none.toml", status=2).stderr
    assert "correct the workload" in refused.stderr
    assert '{"error": {"what": "cannot read' in run("compare", "none.toml", "--json", status=2).stderr
    run("compare", status=2)
