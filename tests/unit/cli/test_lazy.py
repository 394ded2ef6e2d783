"""The list of commands says what the commands say, and costs none of their imports."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from trailboss.cli.lazy import LazyCommand
from trailboss.cli.main import COMMANDS, app

HEAVY = ("trailboss.chain", "trailboss.execution", "trailboss.vm", "lmdb", "coincurve", "cowboy_sdk")


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_summary_is_the_first_sentence_of_the_command_when_listed(entry: object) -> None:
    """What ``trailboss --help`` lists is what ``trailboss NAME --help`` begins with."""
    stand_in = next(LazyCommand(each) for each in COMMANDS if each is entry)
    command = stand_in.load()
    assert command.name == stand_in.name
    assert (command.help or "").split("\n\n")[0].replace("\n", " ") == stand_in.help


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["nonsense"]])
def test_program_imports_no_chain_when_it_only_says_what_it_can_do(arguments: list[str]) -> None:
    """Help must come at once."""
    program = (
        "import sys\nfrom trailboss.cli.main import app\n"
        f"try:\n    app({arguments!r})\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_command_tells_its_options_when_asked(entry: object) -> None:
    """Every command and every command below it has help that comes without a chain."""
    name = next(each.name for each in COMMANDS if each is entry)
    runner = CliRunner()
    result = runner.invoke(app, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert f"Usage: trailboss {name}" in result.output.replace("root", "trailboss")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("trailboss ver", {"verify", "verify-proof"}), ("trailboss prove ti", {"timer", "timers"})],
)
def test_completion_offers_what_begins_so(typed: str, offered: set[str]) -> None:
    """The shell asks the program itself."""
    environment = {
        "_TRAILBOSS_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    command = [sys.executable, "-m", "trailboss"]
    finished = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert set(finished.stdout.split()) == offered
