"""``trailboss trace``: of a directory and of a node, by height, transaction and timer."""

from pathlib import Path

import pytest

from tests.e2e.conftest import Ask, Run
from tests.e2e.test_cli_remote import running_node

ACTOR = """
import pvm_host

class Bell:
    def init(self, payload):
        pvm_host.schedule_timer(pvm_host.block_height() + 2, b"")
        pvm_host.schedule_timer(pvm_host.block_height() + 900, b"")

    def handle_timer(self, payload):
        print("ding")
        pvm_host.set_state(b"rung", b"1")
        raise ValueError("cracked")
"""


@pytest.fixture
def bell(run: Run, ask: Ask, tmp_path: Path) -> tuple[str, str]:
    """Return the ids of a timer that has fired and of one that waits, on a chain of the native engine."""
    (tmp_path / "bell.py").write_text(ACTOR)
    run("init", "chain", "--vm", "native")
    run("deploy", "bell.py", "--value", "100cby")
    run("mine", 4)
    [waiting] = ask("timers")["timers"]
    [fired] = ask("timers", "--state", "fired")["timers"]
    return fired["timer_id"], waiting["timer_id"]


def test_trace_shows_fires_transactions_and_blocks(run: Run, ask: Ask, bell: tuple[str, str]) -> None:
    """The first digits are enough; ``--lines`` shows the source, ``--no-calls`` the frames alone."""
    fired, _ = bell
    shown = run("trace", fired[:10], columns=200).stdout
    assert "reverted: E1210 pvm_error: ValueError: cracked, line 12, in handle_timer" in shown.splitlines()[0]
    assert "print: ding" in shown
    assert "line 11: set_state(key rung, value 1): 200 cycles, 5 cells" in shown
    lines = run("trace", fired, "--lines", "--no-calls", columns=200).stdout
    assert "set_state(key" not in lines
    assert 'line 12  raise ValueError("cracked")' in lines
    document = ask("trace", fired)
    [trace] = document["traces"]
    assert (document["is_whole"], trace["frame"]["label"]) == (False, "Bell")
    height = document["block_height"]
    assert ask("trace", height)["traces"] == [trace]
    [deployed, *_] = ask("block", 1)["transactions"]
    assert ask("trace", deployed["hash"][2:12])["traces"][0]["instruction"] == "DeployActor"


def test_trace_says_what_is_wrong_when_there_is_none(run: Run, bell: tuple[str, str]) -> None:
    """A timer that waits, a block that is not there, an id that nothing has, and no id at all."""
    _, waiting = bell
    assert "has not fired: it is due at" in run("trace", waiting, status=1).stderr
    for subject, status, why in (
        ("77", 1, "there is no block 77"),
        ("0xabab", 1, "begins with 0xabab"),
        ("z", 2, "neither a height nor"),
    ):
        assert why in run("trace", subject, status=status).stderr


@pytest.mark.slow
def test_node_shows_the_same_trace_as_the_directory(run: Run, ask: Ask, bell: tuple[str, str]) -> None:
    """Text and JSON, by the same digits."""
    fired, waiting = bell
    commands = (("trace", fired[:12]), ("trace", fired, "--lines"), ("trace", 1), ("trace", 3, "--json"))
    here = [run(*command).stdout for command in commands]
    with running_node("--pace", "manual", "--chain", "chain") as url:
        assert [run(*command, "--url", url).stdout for command in commands] == here
        assert "has not fired" in run("trace", waiting, "--url", url, status=1).stderr
