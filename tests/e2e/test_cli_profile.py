"""``trailboss profile``: what lines cost, of a source and of blocks that a chain has built."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Ask, Run
from tests.golden.lives import ACTORS
from tests.unit.testing.costs.test_flame import check_document

CLOCK = ACTORS / "clock.py"


def test_source_is_profiled_by_line(run: Run, ask: Ask, tmp_path: Path) -> None:
    """The creation call, the call, and the timers that the blocks after it run; no chain is needed."""
    shown = run("profile", CLOCK, "ticks", "--blocks", 12).stdout
    assert max(map(len, shown.splitlines())) <= 80
    for part in ("on_tick", "ticks", "init", "def _schedule_next(self):", "all of it, as in 5 receipts"):
        assert part in shown
    document = ask("profile", CLOCK, "ticks", "--blocks", 12)
    [source] = document["sources"]
    rows = sum(each["base"] + each["outside"] + sum(each["lines"].values()) for each in source["handlers"])
    assert rows + document["rest"]["transactions"]["cycles"] == document["total"]["cycles"]
    assert list(tmp_path.iterdir()) == []


def test_flame_graph_is_written(run: Run, tmp_path: Path) -> None:
    """For speedscope."""
    run("profile", CLOCK, "--blocks", 6, "--speedscope", "clock.json")
    check_document(json.loads((tmp_path / "clock.json").read_text(encoding="utf-8")))


def test_reverted_call_is_profiled_and_reported(run: Run, tmp_path: Path) -> None:
    """What it used is in the table; the exit status is 1."""
    (tmp_path / "fails.py").write_text("def fail(payload):\n    raise ValueError('no')\n")
    ended = run("profile", "fails.py", "fail", status=1)
    assert "raise ValueError('no')" in ended.stdout
    assert "ValueError: no" in ended.stderr


def test_blocks_and_timers_of_a_directory_are_profiled(run: Run, ask: Ask) -> None:
    """A height, some heights, and the fires of one timer; the chain stays as it is."""
    run("init")
    run("deploy", CLOCK, "--value", "20cby")
    run("mine", 20)
    whole = ask("profile", "1..21")
    assert whole["total"]["cycles"] == sum(
        receipt["cycles_used"] for height in range(1, 22) for receipt in ask("block", height)["receipts"]
    )
    assert ask("profile", "6")["executions"] == 1
    timer_id = ask("timers", "--state", "fired")["timers"][0]["timer_id"]
    fired = ask("profile", timer_id[:12])
    [source] = fired["sources"]
    assert [(each["handler"], each["calls"]) for each in source["handlers"]] == [("on_tick", 1)]


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["9..3"], "the chain has blocks 1 to 2", 1),
        (["0"], "the chain has blocks 1 to 2", 1),
        (["2"], "nothing ran in 2", 1),
        (["soon"], "'soon' is no timer id", 2),
        (["1", "tick"], "1 is no source", 2),
        (["1", "--preset", "mainnet"], "1 is no source", 2),
        (["1", "--value", "0"], "1 is no source", 2),
        ([CLOCK, "--payload", "x"], "--payload x: no handler is named", 2),
        (["gone.py"], "cannot read actor source gone.py", 1),
        ([CLOCK, "--blocks", "-1"], "-1 is too small", 2),
    ],
)
def test_what_cannot_be_profiled_is_refused(run: Run, arguments: list[object], message: str, status: int) -> None:
    """With what there is, or what to give."""
    run("init")
    run("mine", 2)
    assert message in " ".join(run("profile", *arguments, status=status).stderr.split())
