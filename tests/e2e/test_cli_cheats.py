"""``set-storage``, ``set-code``, ``mock`` and ``label``."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Ask, Run

ORACLE = "0x" + "77" * 20
ASKS = """
import pvm_host

def init(payload):
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 9, b"", gas_limit=50_000)

def ask(payload):
    return pvm_host.call_actor(payload, "price", b"", 50_000)

def handle_timer(payload):
    pass
"""


@pytest.fixture
def asker(run: Run, ask: Ask) -> str:
    """Return the address of an actor of a new chain that asks an oracle."""
    run("init")
    Path("asks.py").write_text(ASKS)
    return str(ask("deploy", "asks.py", "--value", "50cby")["actor"])


def test_mocks_answer_are_listed_and_cleared(run: Run, ask: Ask, asker: str) -> None:
    """An answer in JSON, a failure, so many times."""
    assert "no call is mocked" in run("mock").stderr
    run("mock", ORACLE, "price", "--returns", '{"eur": 5}', "--cbor", "--times", "1")
    run("mock", ORACLE, "price", "--payload", "x", "--reverts", "no price")
    listed = run("mock").stdout
    assert "returns 0xa16365757205" in listed
    assert "fails: no price" in listed
    shown = run("call", asker, "ask", ORACLE).stdout
    assert "0xa16365757205" in shown
    assert "call of price of 0x77777777… is mocked" in shown
    assert [(each["payload"], each["reverts"]) for each in ask("mock")] == [("0x78", "no price")]
    run("mock", "--clear")
    assert ask("mock") == []
    run("verify")


def test_storage_and_code_are_set(run: Run, ask: Ask, asker: str) -> None:
    """Of an actor, and of an address that is none yet."""
    run("set-storage", asker[:10], "k", "v")
    Path("new.py").write_text("def k(payload):\n    return pvm_host.get_state(b'k')\n")
    run("set-code", asker, "new.py")
    assert "returned  v" in run("call", asker, "k", "--view").stdout
    run("set-storage", asker, "k")
    run("set-code", ORACLE, "new.py", "--entitlement", "timer.schedule")
    assert "there is no actor" in run("set-storage", "5", "k", "v", status=1).stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((ORACLE,), "without HANDLER"),
        ((ORACLE, "price"), "a mock either returns or reverts"),
        ((ORACLE, "price", "--returns", "1", "--reverts", "no"), "a mock either returns or reverts"),
        ((ORACLE, "--clear"), "both TARGET and --clear"),
        ((ORACLE, "price", "--returns", "1", "--times", "0"), "0 is too small"),
    ],
)
def test_mock_is_refused_when_it_cannot_be_understood(run: Run, arguments: tuple[str, ...], what: str) -> None:
    """With status 2, and nothing is sent."""
    run("init")
    assert what in " ".join(run("mock", *arguments, status=2).stderr.split())


def test_labels_are_given_shown_taken_and_removed(run: Run, ask: Ask, asker: str) -> None:
    """They stand beside the chain, in a file that people can read."""
    assert "there are no labels" in run("label").stderr
    run("label", asker[:10], "asker")
    run("label", "3", "carol")
    timer = ask("timers")["timers"][0]["timer_id"]
    run("label", timer[:10], "beat", "--timer")
    assert json.loads(Path("chain/labels.json").read_text()) == ask("label")
    assert set(ask("label")) == {"asker", "carol", "beat"}
    assert f"asker ({asker[:10]}…)" in run("balance").stdout
    assert f"beat ({timer[:10]}…)" in run("timers", columns=120).stdout
    assert run("timer", "explain", "beat").stdout.startswith(f"timer beat ({timer[:10]}…): live")
    assert ask("send", "asker", "1cby", "--from", "carol")["status"] == "ok"
    assert ask("timer", "explain", "beat")["timer_id"] == timer
    run("label", "carol", "--remove")
    assert "carol" not in run("label").stdout
    assert "has no label" in run("label", "3", "--remove", status=1).stderr
    run("verify")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("3", "deployer"), "'deployer' is the name of a development account"),
        (("3", "7"), "'7' is the name of a development account"),
        (("3", "0x7"), "must have 1 to 40 printable characters"),
        (("3",), "a label is either given or removed"),
        (("3", "carol", "--remove"), "a label is either given or removed"),
    ],
)
def test_label_is_refused_when_it_would_mislead(run: Run, arguments: tuple[str, ...], what: str) -> None:
    """No file is written."""
    run("init")
    assert what in " ".join(run("label", *arguments, status=2).stderr.split())
    assert not Path("chain/labels.json").exists()


def test_labels_are_in_the_file_that_the_environment_names(run: Run) -> None:
    """A damaged one is refused with its path."""
    run("init")
    run("label", "3", "carol", TRAILBOSS_LABELS="mine.json")
    assert "carol" in run("balance", "3", TRAILBOSS_LABELS="mine.json").stdout
    assert "carol" not in run("balance", "3").stdout
    Path("mine.json").write_text('{"carol": 5}')
    said = run("balance", "3", status=1, TRAILBOSS_LABELS="mine.json").stderr
    assert "mine.json: the label 'carol' is none: 5 is no text of an address or id" in " ".join(said.split())
