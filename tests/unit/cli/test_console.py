"""The console's own statements: what it does when its chain fails it."""

from types import SimpleNamespace
from typing import NoReturn

import pytest

from trailboss.cli.commands.console import Prompt
from trailboss.cli.errors import NotFound


def test_statement_runs_when_the_node_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    """The error is a message, and what was typed before stays at hand."""

    def refresh() -> NoReturn:
        raise NotFound("there is no node at http://localhost:4000", "start one with `trailboss dev`")

    prompt = Prompt({"chain": SimpleNamespace(refresh=refresh), "held": 2})
    assert not prompt.runsource("held += 3")
    assert capsys.readouterr().err == (
        "NotFound: there is no node at http://localhost:4000 (start one with `trailboss dev`)\n"
    )
    assert dict(prompt.locals)["held"] == 5
