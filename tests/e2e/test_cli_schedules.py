"""``trailboss schedules``: on a directory and of a node, for people and as JSON."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.conftest import Ask, Run
from tests.e2e.test_cli_remote import running_node

RENT = Path(__file__).parents[2] / "examples" / "actors" / "rent.py"
TERMS = '{"landlord": "0x801592C8A34BcA35E264B0AF40A975Ceeadb5975", "rent": 20000000000, "month": 10}'
DEPLOYMENT = ("deploy", RENT, "--value", "50cby", "--entitlement", "timer.schedule", "--init-payload", TERMS)


def test_schedules_are_listed_with_the_last_runs_of_an_actor(run: Run, ask: Ask) -> None:
    """Two months are paid; the third is tried three times and then owed."""
    run("init")
    run(*DEPLOYMENT)
    address = ask("schedules")["schedules"][0]["actor"]
    run("mine", "40")

    shown = run("schedules", address).stdout

    assert "collect       10    43   2       1       0        0" in shown
    assert "Last runs" in shown
    assert "E1003 insufficient_balance" in shown
    document = ask("schedules", address, "--limit", "2")
    assert [(each["slot"], each["outcome"], each["attempt"]) for each in document["runs"]] == [
        (41, "retried", 1),
        (31, "failed", 3),
    ]
    assert document["more"]
    (found,) = ask("schedules")["schedules"]
    assert (found["actor"], found["name"], found["state"], found["due"]) == (address, "collect", "waiting", 43)


def test_schedules_say_so_when_there_are_none_and_refuse_what_is_no_actor(run: Run) -> None:
    """An unknown actor is an error, no schedule is not."""
    run("init")

    assert "no actor has a recurring timer" in run("schedules").output
    assert "no actor's address begins with 0x1234" in run("schedules", "0x1234", status=1).output


@pytest.mark.slow
def test_schedules_of_a_node_are_those_of_a_directory(run: Run, ask: Ask) -> None:
    """The same document."""
    commands: Sequence[Sequence[object]] = (DEPLOYMENT, ("mine", "25"))
    run("init")
    with running_node("--pace", "auto", "--block-time", "3600s") as url:
        found = []
        for place in ("chain", url):
            for command in commands:
                run(*command, "--chain", place)
            everything = ask("schedules", "--chain", place)
            address = everything["schedules"][0]["actor"]
            found.append((everything["schedules"], ask("schedules", address, "--chain", place)["runs"]))

    assert found[0] == found[1]
