"""Scheduling, rehearsing, voting and watching, as a person types it."""

import pytest
from typer.testing import Result

from tests.e2e.conftest import Ask, Run


def words(result: Result) -> str:
    """Return what a command has printed, however it is set."""
    return " ".join(result.stdout.split())


def test_activation_is_rehearsed_voted_and_watched(run: Run, ask: Ask) -> None:
    """The rehearsal changes nothing; the vote does; afterwards the lane burns what the rehearsal has said."""
    run("init")
    stranded = ask("schedule", "--height", 20, "--payload", "stays")["return_value"]
    fired = ask("schedule", "--height", 21, "--gas-limit", 100_000)["return_value"]
    ask("schedule", "--height", 900)
    root = ask("status")["state_root"]

    rehearsal = ask("activation", "rehearse", "--height", 12, "--blocks", 20)
    assert [(timer["timer_id"], timer["lane"]["outcome"]) for timer in rehearsal["timers"]] == [
        (stranded, "stranded"),
        (fired, "fired"),
    ]
    assert (rehearsal["lane"]["stranded"], rehearsal["fifo"]["stranded"], rehearsal["stranded_later"]) == (1, 0, 1)
    assert rehearsal["more"] is False
    assert ask("status")["state_root"] == root
    assert ask("activation", "status")["activation_height"] is None

    vote = ask("activation", "propose", "--height", 12, "--blocks", 20)
    assert vote["vote"]["status"] == "ok"
    assert vote["rehearsal"] == {name: value for name, value in rehearsal.items() if name not in ("timers", "more")}
    status = ask("activation", "status")
    assert (status["active"], status["activation_height"], status["timers"]["over_cap"]) == (False, 12, 2)
    run("mine", "--to", 32)
    status = ask("activation", "status")
    assert (status["active"], status["lane_burned"]) == (True, rehearsal["lane"]["lane_burned"])
    assert status["timers"] == {"live": 2, "due": 1, "over_cap": 2}


@pytest.mark.parametrize("columns", [80, 140])
def test_rehearsal_fits_the_terminal_and_shows_the_difference(run: Run, columns: int) -> None:
    """Summary, table, advice; no line is longer than the terminal is wide."""
    run("init", "--param", "timers.lane_cycles_per_block=550000")
    for _ in range(4):
        run("schedule", "--height", 20, "--gas-limit", 250_000)
    run("schedule", "--height", 20)
    result = run("activation", "rehearse", "--height", 12, "--blocks", 20, "--limit", 2, columns=columns)
    assert all(len(line) <= columns for line in result.stdout.splitlines())
    shown = words(result)
    assert "stranded over the cap 1 0" in shown
    assert "its basefee 10,000 at 12, 1,000 from 30 on" in shown
    assert "stranded until 2592005" in shown
    assert "advice 1 timer carries 550,000 cycles" in shown
    assert result.stderr == "these are the first 2 of 5; --limit 0 shows all\n"
    assert ("lane burn" in result.stdout) == (columns == 140)


def test_proposal_fails_when_the_chain_refuses_the_vote(run: Run, ask: Ask) -> None:
    """A height that comes too soon, and a sender that may not govern; nothing is voted."""
    run("init")
    assert "must be at least 3, 2 blocks ahead" in run("activation", "propose", "--height", 2, status=1).stderr
    assert ask("activation", "propose", "--height", 9, "--from", 3, status=1)["vote"]["status"] != "ok"
    assert "unauthorized" in run("activation", "propose", "--height", 9, "--from", 3, status=1).stderr
    assert ask("activation", "status")["activation_height"] is None


def test_timer_is_scheduled_with_fees_when_the_lane_is_active(run: Run, ask: Ask) -> None:
    """Tip, tier, cap and payer; a refusal has the chain's reason."""
    run("init", "--mechanism", "lane")
    timer = ask("schedule", "--height", 9, "--max-fee", "20_000", "--tip", 500, "--payer", 0)
    facts = timer["events"][0]["data"]
    assert (facts["max_fee_per_cycle"], facts["max_priority_fee_per_cycle"]) == (20_000, 500)
    shown = words(run("schedule", "--height", 9, "--tier", "urgent", "--payload", "0x00ff", "--expires-at", 50))
    assert "timer 0x" in shown
    assert "holds 100 CBY" in shown
    refused = run("schedule", "--height", 9, "--max-fee", 5, status=1)
    assert "E1504" in refused.stderr
    assert "give one of the two" in run("schedule", "--height", 9, "--tip", 5, "--tier", "fast", status=2).stderr
    run("mine", 9)
    assert [event["raw"] for event in ask("events", "--name", "timer.payload")["events"]] == ["0x", "0x00ff"]
