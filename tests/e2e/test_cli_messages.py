"""What the last line on the screen leads to: reasons that are causes, warnings in time, help in one style."""

from pathlib import Path

import pytest

from tests.e2e.conftest import Ask, Run
from trailboss.cli.lazy import Entry
from trailboss.cli.main import COMMANDS

ACTOR = """
import pvm_host

def init(payload):
    pvm_host.schedule_timer(6, payload, gas_limit=50_000)

def handle_timer(payload):
    raise ValueError("never today")
"""


@pytest.fixture(autouse=True)
def sources(tmp_path: Path, run: Run) -> None:
    """Have three actors lie where the commands run, beside a chain."""
    (tmp_path / "later.py").write_text(ACTOR)
    (tmp_path / "broken.py").write_text('def init(payload):\n    raise ValueError("no")\n')
    (tmp_path / "refused.py").write_text("import random\n")
    run("init")


@pytest.mark.parametrize(("source", "slug"), [("broken.py", "pvm_error"), ("refused.py", "non_deterministic_code")])
def test_failed_deployment_has_one_reason(run: Run, source: str, slug: str) -> None:
    """That the actor could not be funded either follows from it: it is told, and costs nobody a search."""
    result = run("deploy", source, "--value", "5cby", status=1)
    assert slug in result.stderr
    assert "deploy it first" not in result.output
    assert result.stderr.count("  what") == 1
    assert "funding  none, for the first failed: reverted, for a fee of 0.105 CBY" in result.stdout


def test_deployment_warns_of_a_timer_that_nobody_can_pay(run: Run) -> None:
    """The creation call has scheduled it, and the actor has no money: a warning names what it costs and the cure."""
    result = run("deploy", "later.py")
    said = " ".join(result.stderr.split())
    assert said.startswith("warning what timer 0x")
    assert "cannot be paid as things stand: a fire costs up to 6 CBY, 0x" in said
    assert "fix give it money before block 6: `trailboss send 0x" in said
    assert run("deploy", "later.py", "--value", "20cby", "--init-payload", "x").stderr == ""


def test_timer_that_always_raises_is_told_before_and_after_its_fire(run: Run, ask: Ask) -> None:
    """Error, line and handler in the outlook and in the story, `reverted` in the list, the same in JSON."""
    run("deploy", "later.py", "--value", "20cby")
    [timer] = ask("timers")["timers"]
    line = "E1210 pvm_error: ValueError: never today, line 8, in handle_timer"
    told = " ".join(run("timer", "explain", timer["timer_id"]).stdout.split())
    assert "next fires and reverts at height 6 as things stand" in told
    assert told.endswith(f"run as things stand, its handler reverts: {line}")
    assert ask("timer", "explain", timer["timer_id"])["failure"]["slug"] == "pvm_error"
    run("mine", "10")
    told = " ".join(run("timer", "explain", timer["timer_id"]).stdout.split())
    assert told.startswith(f"timer {timer['timer_id']}: fired and reverted")
    assert f"fired and reverted ({line})" in told
    assert "reverted in 6" in run("timers", "--state", "fired").stdout
    [ended] = ask("timers", "--state", "fired")["timers"]
    assert (ended["state"], ended["reverted"]) == ("fired", True)


def test_money_is_sent_to_an_actor_by_its_first_digits(run: Run, ask: Ask) -> None:
    """As every other command takes them."""
    actor = ask("deploy", "later.py")["actor"]
    assert actor in run("send", actor[:12], "1cby").stdout


FLAGS = ("own timer", "one a sender", "one an offer", "so often", "What its event tells", "<bool>")


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_help_is_plain(run: Run, entry: Entry) -> None:
    """No phrase that has to be read twice, and no type of Python's beside an option."""
    said = run(entry.name, "--help", columns=200).output
    assert not [phrase for phrase in FLAGS if phrase in said]


@pytest.mark.parametrize("name", ["init", "deploy", "call", "send", "schedule", "watch", "update", "cancel", "quote"])
def test_help_has_an_example(run: Run, name: str) -> None:
    """Commands that take more than a word show a whole line of it."""
    assert f"Example: trailboss {name} " in run(name, "--help", columns=200).output
    assert "-h" in run(name, "-h", columns=200).output
