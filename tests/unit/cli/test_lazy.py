"""The list of commands says what the commands say, and costs none of their imports."""

import subprocess
import sys
from pathlib import Path

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


WEB = (
    "anyio", "fastapi", "h11", "httptools", "httpx", "litestar", "nicegui", "prometheus_client", "pydantic", "pygal",
    "starlette", "structlog", "uvicorn", "uvloop",
)  # fmt: skip


SERVED = ("litestar", "starlette", "structlog", "uvicorn")
"""Some of them, without which no node runs."""


def test_commands_and_the_test_kit_import_nothing_of_the_web() -> None:
    """`pip install trailboss` has no web packages; only `dev` and `node` need them, once they run."""
    places = sorted({f"trailboss.cli.commands.{entry.place.partition(':')[0]}" for entry in COMMANDS})
    modules = [*places, "trailboss.cli.remote.chain", "trailboss.testing.plugin", "trailboss.testing.local_chain"]
    program = (
        "import sys\nfrom importlib import import_module\n"
        f"for name in {modules!r}:\n    import_module(name)\n"
        f"print([name for name in {WEB!r} if name in sys.modules])\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.splitlines()[-1] == "[]"


UNUSED = ("pydantic", "rich", "structlog", "fastapi", "nicegui", "httpx", "hypothesis", "typer.rich_utils")
"""What no answer of the API needs; each takes longer to import than a node takes to open."""


def test_node_without_explorer_loads_no_more_than_its_api_needs(tmp_path: Path) -> None:
    """Its start is its imports: this holds how much of them it was rid of."""
    program = (
        "import sys\nfrom trailboss import server\n"
        "def open_and_end(options, _):\n    server.build_application(server.open_node(options))\n    return 0\n"
        "server.run_node = open_and_end\n"
        "from trailboss.cli.main import app\n"
        "try:\n    app(['dev', '--no-explorer', '--json', '--port', '0', '--block-time', '1s'])\n"
        "except SystemExit:\n    pass\n"
        f"print([name for name in {UNUSED!r} if name in sys.modules])\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert finished.stdout.splitlines()[-1] == "[]"


def test_help_of_each_command_comes_without_what_prints_tables() -> None:
    """Options are read without pydantic; rich and importlib.metadata come when they are used."""
    names = [entry.name for entry in COMMANDS]
    program = (
        "import sys\nfrom trailboss.cli.main import app\n"
        f"for name in {names!r}:\n    try:\n        app([name, '--help'])\n    except SystemExit:\n        pass\n"
        "print([name for name in ('pydantic', 'rich', 'importlib.metadata') if name in sys.modules])\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["dev", "node"])
def test_command_says_what_to_install_when_the_web_packages_are_missing(command: str, tmp_path: Path) -> None:
    """One line says how, and the exit status is 1."""
    program = (
        "import sys\n"
        f"for name in {SERVED!r}:\n    sys.modules[name] = None\n"
        f"from trailboss.cli.main import app\napp([{command!r}])\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert finished.returncode == 1
    assert "pip install 'trailboss[node]'" in finished.stderr
    assert "Traceback" not in finished.stderr


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
