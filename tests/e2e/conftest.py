"""The program as a person types it, in a folder of its own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from trailboss.cli.main import app

Run = Callable[..., Result]
Ask = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command in a folder of its own, 80 columns wide, and expects an exit status."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRAILBOSS_CHAIN", raising=False)
    monkeypatch.delenv("COWBOY_PRIVATE_KEY", raising=False)

    def run_command(*arguments: object, status: int = 0, columns: int = 80, **environment: str) -> Result:
        settings = {"COLUMNS": str(columns), **environment}
        result = CliRunner().invoke(app, [str(each) for each in arguments], env=settings)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == status, result.output
        assert "Traceback" not in result.output
        return result

    return run_command


@pytest.fixture
def ask(run: Run) -> Ask:
    """Return a function that runs a command with ``--json`` and returns the document on stdout."""

    def ask_command(*arguments: object, status: int = 0) -> Any:
        return json.loads(run(*arguments, "--json", status=status).stdout)

    return ask_command
