"""`trailboss watch` as people use it: on a directory from cron, on a node for good."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.e2e.conftest import Ask, Run
from tests.e2e.test_cli_remote import running_node
from tests.unit.forecast.test_runway import PULSE

LOOP = "2,100000"
GUARD_SECONDS = 60
"""After which a watch that says nothing is ended, and the test with it."""


@pytest.fixture
def poor(run: Run, ask: Ask) -> str:
    """Return the address of an actor that pays for a few more fires, on a chain in the present folder."""
    run("init")
    Path("pulse.py").write_text(PULSE, encoding="utf-8")
    actor: str = ask("deploy", "pulse.py", "--value", "7cby")["actor"]
    run("call", actor, "start", LOOP)
    # An actor of which no fire has been seen is not expected to go on.
    run("mine", "4")
    return actor


def pager(name: str) -> str:
    """Return a command that adds what it gets to a file, and then says so."""
    return f"""sh -c 'cat >> "{name}"; echo >> "{name}"; echo paged for $TRAILBOSS_PAYER'"""


def paged(name: str) -> list[Any]:
    """Return what a pager has got."""
    path = Path(name)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_directory_is_looked_at_once_and_the_status_tells(run: Run, poor: str) -> None:
    """3 if a purse runs dry soon; 0 if none does within so many fires, or nobody wants to know of it."""
    said = " ".join(run("watch", status=3).stdout.split())
    assert f"{poor[:10]}… " in said
    assert "after block 6" in said
    run("watch", "--within", "1", status=0)
    run("watch", "--payer", "1", status=0)
    run("watch", "--payer", poor, status=3)


def test_command_is_called_on_a_directory_for_each_that_runs_dry(run: Run, poor: str, tmp_path: Path) -> None:
    """With what it needs to know; for one that has run dry, too."""
    log = str(tmp_path / "log")
    run("watch", "--alert", pager(log), status=3)
    [told] = paged(log)
    assert (told["alert"], told["payer"], told["height"]) == ("near", poor, 6)
    run("mine", "--to", told["dry_at"])
    run("watch", "--alert", pager(log), status=3)
    [_, dry] = paged(log)
    assert (dry["alert"], dry["payer"], dry["fires_left"]) == ("dry", poor, 0)
    failed = run("watch", "--alert", "false", status=3)
    assert "the alert failed: false ended with status 1" in failed.stderr


@pytest.mark.parametrize("columns", [80, 120])
def test_table_fits_the_terminal(run: Run, poor: str, columns: int) -> None:
    """Whatever its width, with each kind of failure; the wider one says more."""
    run("send", poor, "1000cby")
    said = run("watch", columns=columns).stdout
    lines = said.splitlines()
    assert max(map(len, lines)) <= columns
    for heading in ("fires left", "dry at", "unfunded", "expired", "reverted"):
        assert heading in said
    assert ("blocks left" in said) == (columns == 120)


def test_json_is_the_watch_of_the_node(run: Run, ask: Ask, poor: str) -> None:
    """One document, as /watchtower answers it."""
    found = ask("watch", status=3)
    assert found["payers"][0]["payer"] == poor
    assert {"cycle_basefee", "cell_basefee", "lane_basefee", "burned", "known", "height"} <= found.keys()
    assert len(ask("watch", "--limit", "1", status=3)["payers"]) == 1
    run("watch", "--within", "256", status=2)


def test_rules_are_printed_as_they_are_shipped(run: Run) -> None:
    """No chain is needed."""
    shipped = resources.files("trailboss.node").joinpath("alerts.yml").read_text(encoding="utf-8")
    assert run("watch", "--rules").stdout == shipped


def test_former_spelling_sets_a_timer_still(run: Run, ask: Ask) -> None:
    """`watch ACTOR` is `schedule --watch ACTOR`; what does not belong together is refused by name."""
    run("init", "--mechanism", "globalbox")
    Path("pulse.py").write_text(PULSE, encoding="utf-8")
    actor = ask("deploy", "pulse.py")["actor"]
    for words in (("watch", actor), ("schedule", "--watch", actor)):
        run(*words, "--slot", "price", "--payload", "new")
    assert [timer["state"] for timer in ask("timers")["timers"]] == ["live", "live"]
    for words in (("--slot", "x"), ("--height", "9", "--slot", "x"), ("--watch", actor, "--height", "9"), ()):
        run("schedule", *words, status=2)
    assert "--tip and --watch" in run("schedule", "--watch", actor, "--tip", "1", status=2).stderr


# A node


@pytest.fixture
def node() -> Iterator[str]:
    with running_node("--pace", "auto") as url:
        yield url


def test_node_is_watched_and_somebody_is_called_once_a_dry_spell(
    run: Run, ask: Ask, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is seen near, and not again as it runs dry; and one that runs dry before it is seen near."""
    monkeypatch.setenv("COWBOY_RPC_URL", node)
    Path("pulse.py").write_text(PULSE, encoding="utf-8")
    log = str(tmp_path / "log")
    command = [sys.executable, "-m", "trailboss", "watch", "--url", node, "--within", "3", "--alert", pager(log)]
    environment = {**os.environ, "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True) as watch:
        guard = Timer(GUARD_SECONDS, watch.kill)
        guard.start()

        def said(words: str) -> None:
            """Wait until the watch says something."""
            assert watch.stderr is not None
            assert any(words in line for line in iter(watch.stderr.readline, "")), words

        try:
            actor = ask("deploy", "pulse.py", "--value", "7cby")["actor"]
            run("call", actor, "start", LOOP)
            run("mine", "4")
            found = ask("watch", "--once", "--within", "255", status=3)
            [dry_at] = [each["dry_at"] for each in found["payers"] if each["payer"] == actor]
            run("mine", "--to", dry_at - 2)
            said(f"paged for {actor}")
            run("mine", "--to", dry_at)
            # Too much at once to be seen near: the timer is due in the next block, and there is nothing to pay it.
            late = ask("deploy", "pulse.py", "--value", "1cby")["actor"]
            run("call", late, "start", "1,100000")
            run("mine", "1")
            said(f"paged for {late}")
        finally:
            watch.terminate()
            watch.communicate()
            guard.cancel()
    told = paged(log)
    assert [each["payer"] for each in told] == [actor, late]
    assert told[0]["alert"] == "near"
    assert told[0]["fires_left"] <= 3
