"""`trailboss check` on the command line, and the warning of an upgrade."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Ask, Run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OPEN = "import pvm_host\n\n\ndef handle_timer(payload):\n    pvm_host.set_state(b'n', payload)\n"
REFUSED = "import random\nimport pvm_host\n"
TICKER = """
import json
import pvm_host

def init(payload):
    for handler in ("tick", "tick", "tock"):
        envelope = json.dumps({"_handler": handler, "_payload": ""}).encode()
        pvm_host.schedule_timer_ex(pvm_host.block_height() + 50, envelope, gas_limit=50_000)

def tick(payload):
    return b""

def tock(payload):
    return b""
"""


def test_examples_have_no_findings(run: Run) -> None:
    """Warnings count; notes are counted and not shown."""
    result = run("check", EXAMPLES, "--strict")
    assert result.stdout == ""
    assert result.stderr == "14 sources: no findings; --select TB shows 9 notes too\n"


def test_findings_are_printed_with_their_places_and_errors_fail(run: Run) -> None:
    """A warning fails with --strict alone."""
    Path("open.py").write_text(OPEN, encoding="utf-8")
    assert run("check", "open.py").stdout.startswith("open.py:4:1: warning TB005: anyone can call handle_timer")
    run("check", "open.py", "--strict", status=1)
    Path("refused.py").write_text(REFUSED, encoding="utf-8")
    Path("none.py").write_text("import pvm_host\ndef tick(payload)\n", encoding="utf-8")
    assert run("check", "none.py", status=1).stdout == "none.py:2:18: error E1213: not Python 3.11: expected ':'.\n"
    result = run("check", "refused.py", "open.py", status=1)
    assert [line.split(": ")[:2] for line in result.stdout.splitlines()] == [
        ["refused.py:1:1", "error E1101"], ["open.py:4:1", "warning TB005"],
    ]  # fmt: skip
    assert result.stderr == "2 sources: 1 error, 1 warning\n"


def test_rules_are_chosen_by_id_and_by_prefix(ask: Ask) -> None:
    """A selection shows notes, and leaves the rest out."""
    source = OPEN + "    pvm_host.schedule_timer(9, b'')\n"
    Path("open.py").write_text(source, encoding="utf-8")

    def rules(*options: str) -> list[str]:
        return [each["rule"] for each in ask("check", "open.py", *options)["findings"]]

    assert rules() == ["TB005"]
    assert ask("check", "open.py")["notes"] == 1
    assert rules("--select", "tb") == ["TB005", "TB003"]
    assert rules("--select", "TB", "--ignore", "TB005") == ["TB003"]
    assert rules("--ignore", "TB0") == []


def test_json_and_sarif_say_the_same(run: Run, ask: Ask) -> None:
    """Path, place, rule and message of each finding."""
    Path("open.py").write_text(OPEN, encoding="utf-8")
    [found] = ask("check", "open.py")["findings"]
    assert json.loads(run("check", "open.py", "--format", "json").stdout)["findings"] == [found]
    [log] = json.loads(run("check", "open.py", "--format", "sarif").stdout)["runs"]
    [result] = log["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert (result["ruleId"], result["message"]["text"]) == (found["rule"], found["message"])
    assert (region["startLine"], region["startColumn"]) == (found["line"], found["column"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.py"], "there is no file or folder nowhere.py"),
        (["empty"], "there is no actor in empty"),
        (["open.py", "--select", "TB9"], "there is no rule 'TB9'"),
        (["open.py", "--ignore", ""], "there is no rule ''"),
        (["open.py", "--preset", "moon"], "'moon' is none of mainnet"),
        (["open.py", "--format", "xml"], "xml"),
        (["open.py", "--format", "sarif", "--json"], "both --json and --format sarif"),
        (["open.py", "open2.py", "--against", "open.py"], "2 sources would replace open.py"),
        (["open.py", "--against", "gone.py"], "there is no file gone.py"),
        (["open.py", "--against", "refused.py"], "a deployment refuses refused.py: line 1, column 1: import of random"),
    ],
)
def test_command_that_makes_no_sense_is_refused_by_name(run: Run, arguments: list[str], words: str) -> None:
    """Status 2, and nothing is checked."""
    for name, text in (("open.py", OPEN), ("open2.py", OPEN), ("refused.py", REFUSED)):
        Path(name).write_text(text, encoding="utf-8")
    Path("empty").mkdir()
    result = run("check", *arguments, status=2)
    assert words in " ".join(result.output.split())


def test_lost_handlers_are_found_against_an_older_source(run: Run) -> None:
    """By what its timers call; by all its handlers if that is unknown."""
    Path("old.py").write_text(TICKER, encoding="utf-8")
    Path("new.py").write_text("def tick(payload):\n    return b''\n", encoding="utf-8")
    result = run("check", "new.py", "--against", "old.py", status=1)
    assert "error TB009: timers of the old one may call tock, which this source no longer has" in result.stdout
    assert "tick, which" not in result.stdout
    run("check", "old.py", "--against", "old.py")


def test_lost_handlers_are_found_against_live_timers_and_the_upgrade_warns(run: Run) -> None:
    """With how many timers call them, and when the next one does."""
    Path("old.py").write_text(TICKER, encoding="utf-8")
    Path("new.py").write_text("def tock(payload):\n    return b''\n", encoding="utf-8")
    run("init")
    deployed = json.loads(run("deploy", "old.py", "--value", "100cby", "--json").stdout)
    actor = deployed["actor"]
    words = "2 live timers, the next in block 51, call tick, which this source no longer has"
    assert words in run("check", "new.py", "--actor", actor, status=1).stdout
    run("check", "old.py", "--actor", actor[:10])
    assert f"warning: {words}" in run("govern", "upgrade", actor, "new.py").stderr
    assert "warning" not in run("govern", "upgrade", actor, "old.py").stderr
