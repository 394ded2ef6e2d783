"""``trailboss console``: in a terminal, with ``-c``, with a script, on a directory, on a node."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Run
from tests.e2e.test_cli_remote import running_node
from tests.terminals import converse

CLOCK = Path(__file__).resolve().parents[2] / "examples/actors/clock.py"
PROGRAM = [sys.executable, "-m", "trailboss", "console"]


@pytest.mark.slow
def test_console_answers_what_is_typed(tmp_path: Path) -> None:
    """Tables for lists, sentences for a timer, a message for an error of ours, the line for an error of Python."""
    lines = [
        f"clock = deploy({str(CLOCK)!r}, value=20 * CBY)", "clock", "mine(12)", "timers()", "explain(timers()[0])",
        "_.timer_id == timers()[0].timer_id", "chain.mine(0)", "1 / 0", "call(clock, 'ticks').cycles_used > 0",
        "exit()",
    ]  # fmt: skip
    settings = {"HOME": str(tmp_path), "COLUMNS": "100", "PYTHONPATH": os.pathsep.join(sys.path)}
    shown = converse(PROGRAM, lines, ">>> ", **settings)
    assert "a fresh chain, fifo, native engine, height 0, 10 accounts" in shown
    assert "warning: init: it schedules a timer without the entitlement" in shown
    assert "clock\n<Actor 0x" in shown
    assert "height   handler   actor" in shown
    assert "next: fires at height 16 as things stand" in shown
    assert "timer_id == timers()[0].timer_id\nTrue\n" in shown
    assert "Rejection: E1213 invalid_data: mine(0): at least one block" in shown
    assert 'File "<console>", line 1, in <module>\nZeroDivisionError' in shown
    assert shown.count("True\n") == 2
    assert "1 / 0" in (tmp_path / ".trailboss_history").read_text()


def test_statements_run_on_a_fresh_chain(run: Run) -> None:
    """With ``-c``; without a terminal from the standard input."""
    assert run("console", "-c", "mine(3); print(chain.height)").stdout == "3\n"
    assert run("console", "--mechanism", "lane", "-c", "print(chain)").stdout == "<LocalChain lane, height 0>\n"
    wrong = subprocess.run([*PROGRAM, "-c", "1 / 0"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stderr.splitlines()[1]) == (1, '  File "<-c>", line 1, in <module>')
    piped = subprocess.run(PROGRAM, input="print(chain.height)", capture_output=True, text=True, check=True)
    assert piped.stdout == "0\n"


def test_script_works_on_the_chain_of_a_directory(run: Run, tmp_path: Path) -> None:
    """What it builds stays there."""
    run("init", "chain", "--mechanism", "lane", "--param", "limits.call_depth_max=7")
    (tmp_path / "script.py").write_text("mine(4)\nprint(chain.height)\n")
    assert run("console", "script.py", "--chain", "chain").stdout == "4\n"
    assert "height              4\n" in run("status", "--chain", "chain").stdout


def test_console_shows_the_labels_of_its_chain(run: Run) -> None:
    """Those of the directory's file, beside the names of the accounts; on a node those of a file of one's own."""
    run("init", "chain")
    run("label", "1", "oracle")
    assert run("console", "--chain", "chain", "-c", "print(*accounts[:2])").stdout == (
        "<TestAccount account 0 (0x044D388b…)> <TestAccount oracle (0x801592C8…)>\n"
    )
    statements = "print(accounts[1]); print(chain.label(accounts[2], 'payer'))"
    with running_node("--vm", "native") as url:
        shown = run("console", "--url", url, "-c", statements, TRAILBOSS_LABELS="chain/labels.json").stdout
    assert shown == "<TestAccount oracle (0x801592C8…)>\n<TestAccount payer (0x69352469…)>\n"


def test_console_refuses_a_directory_whose_chain_is_for_no_development(run: Run) -> None:
    """It would have no accounts to send from."""
    Path("genesis.toml").write_text(f'chain_id = 7\npreset = "mainnet"\nproposer = "0x{"11" * 20}"\n')
    run("init", "plain", "--genesis", "genesis.toml")
    assert "plain holds no development chain" in run("console", "--chain", "plain", "-c", "1", status=2).stderr
    assert run("status", "--chain", "plain").exit_code == 0


def test_script_that_fails_names_its_line(run: Run) -> None:
    """For an error of ours, and for a file that is no Python."""
    Path("script.py").write_text("def build():\n    mine(0)\n\nbuild()\n")
    assert run("console", "script.py", status=1).stderr.startswith("script.py, line 2:\nerror E1213")
    Path("script.py").write_bytes(b"\xff = 1\n")
    assert "SyntaxError: (unicode error)" in run("console", "script.py", status=1).stderr


def test_console_works_on_a_node(run: Run) -> None:
    """It deploys, calls, reads, simulates, mines and goes back there, and has the node's words for what cannot be."""
    statements = f"""
clock = deploy({str(CLOCK)!r}, value=20 * CBY)
mark = chain.snapshot()
mine(12)
[timer] = timers()
print(timer.handler, chain.forecast(5).timers[0].outcome, chain.explain(timer.timer_id).timer_id == timer.timer_id)
simulated = clock.simulate("ticks", sender=accounts[0])
tipped, capped = (
    clock.simulate("ticks", sender=accounts[0], **terms)
    for terms in (dict(max_priority_fee_per_cycle=3), dict(max_fee_per_cycle=1))
)
print(tipped.tip - simulated.tip == 3 * tipped.cycles_used, capped.status)
print(clock.view("ticks").ok, simulated.cycles_used > 0, chain.simulate_fire(timer.timer_id).ok)
print(chain.balance(clock) < 20 * CBY, call(clock, "ticks").ok)
chain.set_balance(clock, 5)
print(chain.balance(clock))
chain.revert(mark)
print(chain.height, chain.balance(clock) > 5)
try:
    chain.congest()
except AttributeError as error:
    print(error)
"""
    Path("script.py").write_text(statements)
    with running_node("--pace", "auto", "--block-time", "3600s") as url:
        shown = run("console", "script.py", "--url", url)
    *values, last = shown.stdout.splitlines()
    assert values == ["on_tick fires True", "True refused", "True True True", "True True", "5", "1 True"]
    assert last == "the chain of a node has no congest: only that of a directory or a fresh one has"


@pytest.mark.parametrize(
    ("arguments", "words", "status"),
    [
        (["-c", "chain.mine(0)"], "mine(0): at least one block", 1),
        (["-c", "1", "script.py"], "both script.py and -c are given", 2),
        (["--chain", "nowhere", "-c", "1"], "there is no chain at nowhere", 1),
        (["--url", "localhost:1", "-c", "1"], "there is no node at http://localhost:1", 1),
        (["--url", "localhost:1", "--preset", "public", "-c", "1"], "--url and --preset are given", 2),
        (["--chain", "chain", "--preset", "public", "-c", "1"], "--chain and --preset are given", 2),
        (["none.py"], "cannot read the script none.py", 2),
    ],
)
def test_console_refuses_what_makes_no_sense(run: Run, arguments: list[str], words: str, status: int) -> None:
    """With what it was given and what to give."""
    assert words in run("console", *arguments, status=status).stderr
