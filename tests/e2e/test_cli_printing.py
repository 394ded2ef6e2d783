"""What actors print, as commands and a node's log show it. Decision: D-89."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Ask, Run
from tests.e2e.test_cli_remote import running_node

TALKER = """
def init(payload):
    print("made with", payload)
    pvm_host.schedule_timer(pvm_host.block_height() + 9, b"tick")


def handle_timer(payload):
    print("the timer says", payload)


def fail(payload):
    print("about to fail")
    raise ValueError("no")


def asked(payload):
    print("only asked")
"""


@pytest.mark.parametrize("kind", ["directory", "node"])
def test_commands_show_what_actors_print(run: Run, ask: Ask, tmp_path: Path, kind: str) -> None:
    """When an actor is deployed, called, asked, and when its timers fire in blocks that pass."""
    (tmp_path / "talker.py").write_text(TALKER)
    if kind == "directory":
        run("init")
        check(run, ask, "chain")
    else:
        with running_node("--pace", "auto") as url:
            check(run, ask, url)


def check(run: Run, ask: Ask, place: str) -> None:
    deployed = run("deploy", "talker.py", "--value", "100cby", "--chain", place, columns=200).stdout
    actor = deployed.split()[1]
    assert f"printed  {actor} init: made with b''" in deployed
    assert f"warning  {actor} init: it schedules a timer without the entitlement timer.schedule" in deployed
    entitled = run("deploy", "talker.py", "--entitlement", "timer.schedule", "--chain", place, columns=200).stdout
    assert "warning" not in entitled
    assert f"{actor} fail: about to fail" in run("call", actor, "fail", "--chain", place, status=1, columns=200).stdout
    receipt = ask("call", actor, "fail", "--chain", place, status=1)
    assert [line["text"] for line in receipt["printed"]] == ["about to fail"]
    assert f"{actor} asked: only asked" in run("call", actor, "asked", "--view", "--chain", place, columns=200).stdout
    mined = run("mine", 9, "--chain", place, columns=200).stdout
    assert f"printed  block 10, {actor} handle_timer: the timer says b'tick'" in mined
    assert ask("mine", 1, "--chain", place)["printed"] == []


def test_json_of_mine_has_what_actors_print(run: Run, tmp_path: Path) -> None:
    """For programs, with actor, handler and block."""
    (tmp_path / "talker.py").write_text(TALKER)
    run("init")
    run("deploy", "talker.py", "--value", "100cby")
    [line] = json.loads(run("mine", 9, "--json").stdout)["printed"]
    assert (line["handler"], line["text"], line["block_height"]) == ("handle_timer", "the timer says b'tick'", 10)
