"""The demo as a user runs it: the program, its table, its JSON."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from trailboss import __version__
from trailboss.cli.main import app
from trailboss.testing.sdk_release import MEASURED


@pytest.fixture(scope="module")
def document() -> dict:
    """The demo's JSON over enough blocks for every ending."""
    result = CliRunner().invoke(app, ["demo", "--blocks", "120", "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.mark.spec("F-58", "E-04")
def test_demo_adds_up_when_every_timer_is_counted(document: dict) -> None:
    """Every actor's timers end in exactly one way each, and the money adds up."""
    for actor in document["actors"]:
        ended = sum(actor[field] for field in ("fired", "expired", "unfunded", "cancelled"))
        assert actor["scheduled"] == ended + actor["live"], actor["actor"]
    assert document["balances"] + document["burned"] == document["supply"]


def test_demo_shows_every_ending_when_run_for_120_blocks(document: dict) -> None:
    """Each of the six actors does what it is there to show."""
    actors = {actor["actor"]: actor for actor in document["actors"]}
    assert set(actors) == {"clock", "interval", "heartbeat", "runs_dry", "short_lived", "stumbles"}
    assert all(actor["fired"] > 0 for actor in actors.values())
    assert (actors["runs_dry"]["unfunded"], actors["runs_dry"]["live"]) == (1, 0)
    assert actors["short_lived"]["expired"] > 0
    assert actors["short_lived"]["cancelled"] > 0
    assert actors["stumbles"]["reverted"] == actors["stumbles"]["fired"] // 3
    assert document["story"]["state"] == "unfunded"


@pytest.mark.determinism
@pytest.mark.spec("F-80")
def test_demo_has_the_same_root_when_run_in_another_process(document: dict) -> None:
    """A new process with another hash seed lives through the same blocks."""
    command = [sys.executable, "-m", "trailboss", "demo", "--blocks", "120", "--json"]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"})
    assert json.loads(finished.stdout) == document


def test_demo_prints_its_tables_when_run_in_a_terminal() -> None:
    """The table names every actor, the two sums, the root and one timer's story."""
    result = CliRunner().invoke(app, ["demo", "--blocks", "60"], env={"COLUMNS": "140"})
    assert result.exit_code == 0, result.output
    for text in (
        "heartbeat",
        "set_interval",
        "unfunded",
        "= supply",
        "scheduled",
        "state root  0x",
        "The story of one timer",
    ):
        assert text in result.output


@pytest.mark.parametrize("columns", ["80", "140", None])
def test_demo_says_what_each_actor_is_in_any_width(columns: str | None) -> None:
    """Nothing is left out of the tables in a narrow terminal, nor in a pipe, and no line is wider than a terminal."""
    printed = CliRunner().invoke(app, ["demo", "--blocks", "60"], env={"COLUMNS": columns}).stdout
    for text in ("SDK Clock: @actor, @timer, timer.schedule", "handler reverts every third fire", "cancelled", "live"):
        assert text in printed
    if columns is not None:
        tables, _, _ = printed.partition("money ")
        assert max(map(len, tables.splitlines())) <= int(columns)


@pytest.mark.parametrize("arguments", [["demo", "--blocks", "1"], ["demo", "--blocks", "x"], ["nonsense"]])
def test_program_fails_with_usage_when_the_arguments_are_wrong(arguments: list[str]) -> None:
    """Wrong arguments exit with 2 and name what is wrong."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.output


def test_program_prints_its_version_when_asked() -> None:
    """One line."""
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"trailboss {__version__}, with cowboy-actor-sdk {MEASURED}\n")
