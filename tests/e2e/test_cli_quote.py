"""What a timer would cost and how far a purse reaches, asked on the command line."""

from pathlib import Path

import pytest
from typer.testing import Result

from tests.e2e.conftest import Ask, Run

ROOT = Path(__file__).resolve().parents[2]
HEARTBEAT = str(ROOT / "examples/actors/heartbeat.py")
WIDTH = 80


@pytest.fixture(params=["fifo", "lane"])
def heartbeat(request: pytest.FixtureRequest, run: Run, ask: Ask) -> str:
    """Return the address of a heartbeat that has beaten for a while."""
    run("init", "--mechanism", request.param)
    address: str = ask("deploy", HEARTBEAT, "--value", "20cby")["actor"]
    run("mine", 60)
    return address


def lines(result: Result) -> list[str]:
    """Return what was printed, having checked that it fits the width."""
    found = result.stdout.splitlines()
    assert all(len(line) <= WIDTH for line in found), found
    return found


def test_quote_shows_price_chance_and_backlog_when_it_is_asked_for(run: Run, ask: Ask, heartbeat: str) -> None:
    """Money in CBY and in base units; the JSON has the same numbers."""
    asked = ("quote", "--height", 200, "--gas-limit", 50_000, "--blocks", 40, "--actor")
    told = ask(*asked, heartbeat)
    assert told["max_cost"] == 50_000 * told["per_cycle"] + told["max_cells"] * told["cell_basefee"]
    assert told["chances"][0] == {"within": 1, "runs": 40, "of": 40}
    assert (told["ahead"]["timers"], told["ahead"]["gas"], told["waiting"]["timers"]) == (1, 50_000, 0)
    shown = lines(run(*asked, heartbeat[:10]))
    purse = next(line for line in shown if line.startswith("must be in the balance"))
    assert purse.split()[-2:] == [f"{told['max_cost'] / 10**9:g}", f"{told['max_cost']:,}"]
    assert any(line.split() == ["1", "block", "40", "40"] for line in shown)
    assert "judged by  blocks 22 to 61; it would have run in each" in shown
    assert ("tip" in {line.split()[0] for line in shown if line}) == (told["mechanism"] == "lane")
    assert any("full lanes in a row" in line for line in shown) == (told["mechanism"] == "lane")


def test_quote_is_refused_when_the_timer_could_not_be_scheduled(run: Run, heartbeat: str) -> None:
    """Status 1 with what and why; options of another form are status 2."""
    refused = run("quote", "--height", 5, "--gas-limit", 50_000, status=1)
    assert "height is 5, it must be above 62" in " ".join(refused.stderr.split())
    run("quote", "--height", 200, "--gas-limit", 600_000, status=1)
    run("quote", "--height", 200, "--gas-limit", 50_000, "--tip", 2**127, status=1)
    run("quote", "--height", 200, "--gas-limit", 50_000, "--actor", "0x00000000", status=1)
    run("quote", "--height", 200, status=2)
    run("quote", "--height", 200, "--gas-limit", 50_000, "--tip", -1, status=2)


def test_runway_ends_where_the_heart_stops_when_blocks_are_built(run: Run, ask: Ask, heartbeat: str) -> None:
    """Its block is that of the event; the tables fit, and name the actor."""
    told = ask("runway", heartbeat)
    assert [reach["name"] for reach in told["reaches"]] == ["present", "twice", "p95"]
    dry = told["reaches"][0]["dry_at"]
    shown = lines(run("runway", heartbeat[:10]))
    assert f"payer    {heartbeat}" in shown
    assert any(line.startswith("present ") and line.endswith(f"{dry:,}") for line in shown)
    assert any(line.startswith("95th percentile") for line in shown)
    run("mine", dry - told["height"])
    [ending] = ask("events", "--name", "TimerCancelledInsufficientFunds")["events"]
    assert ending["block_height"] == dry
    after = ask("runway", heartbeat)
    assert (after["timers"], after["reaches"][0]["dry_at"]) == (0, None)
    assert any(line.split()[-1] == "never" for line in lines(run("runway", heartbeat)) if line)


def test_notes_go_to_stderr_when_there_is_something_besides(run: Run, ask: Ask, heartbeat: str) -> None:
    """They are no data; the JSON has them."""
    if ask("status")["genesis"]["mechanism"] == "lane":
        asked, note = ("--tip", 10**9), "is stored as that"
    else:
        run("govern", "set", "lane.activation_height", 100)
        assert "begins at height 100" in run("runway", heartbeat).stderr
        asked, note = (), "begins at height 100"
    quoted = run("quote", "--height", 200, "--gas-limit", 50_000, *asked)
    assert note in quoted.stderr
    assert note not in quoted.stdout
    [told] = ask("quote", "--height", 200, "--gas-limit", 50_000, *asked)["notes"]
    assert note in told


def test_quote_judges_by_nothing_when_the_chain_has_no_block(run: Run) -> None:
    """The price is there all the same."""
    run("init")
    shown = lines(run("quote", "--height", 2, "--gas-limit", 50_000))
    assert any(line.split() == ["1", "block", "0", "0"] for line in shown)
    assert "judged by  no block yet under this mechanism" in shown


@pytest.mark.parametrize("heartbeat", ["lane"], indirect=True)
def test_quote_tells_why_not_when_a_timer_would_not_have_run(run: Run, heartbeat: str) -> None:
    """The first blocks of the lane had a basefee above the cap of now."""
    shown = " ".join(run("quote", "--height", 200, "--gas-limit", 50_000).stdout.split())
    assert "it would not have run in 13: priced out" in shown
