"""The program as a person types it, in a folder of its own."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
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


@contextmanager
def program(*arguments: object, **settings: Any) -> Iterator[subprocess.Popen[str]]:
    """Run the program in a process of its own, which is killed at the end of the block if it has not ended by then.

    It ends at Ctrl-C even where this process has been told to ignore that, as in the background of a script.
    """
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [sys.executable, "-m", "trailboss", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, preexec_fn=listen, **{**pipes, **settings}) as process:  # noqa: PLW1509  # no locks
        try:
            yield process
        finally:
            process.kill()
