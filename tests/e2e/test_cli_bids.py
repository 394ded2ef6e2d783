"""Agents tried on a chain's history, as a person types it."""

from pathlib import Path

from tests.e2e.conftest import Ask, Run

AGENT = """
from trailboss.sdk import AuctionBidContext, auction_bid

def get_gas_bid(payload):
    return auction_bid(2 * AuctionBidContext.decode(payload).basefee_cycle + 5, 5)
"""


def test_agent_is_compared_with_what_happened(run: Run, ask: Ask) -> None:
    """A tip of 5 a cycle, where the stock agent offers none."""
    Path("agent.py").write_text(AGENT)
    run("init", "--mechanism", "auction", "--vm", "native")
    run("schedule", "--height", "20")
    run("mine", "--to", "30")
    table = run("bid", "backtest", "agent.py").stdout.splitlines()
    assert table[0].split() == ["what", "became", "of", "them", "recorded", "default", "bid", "agent.py"]
    assert table[1].split() == ["fires", "1", "1", "1"]
    document = ask("bid", "backtest", "agent.py")
    assert (document["recorded"]["tips"], document["default"]["failures"]) == (0, 1)
    fee = ask("events", "--name", "timer.fired")["events"][0]["data"]["cycles_used"] * 5
    assert document["agent"]["tips"] > 0.9 * fee


def test_backtest_is_refused_when_the_file_is_no_agent(run: Run) -> None:
    """It names the file, or the handler."""
    run("init", "--mechanism", "auction", "--vm", "native")
    run("mine", 2)
    assert "cannot read the agent missing.py" in run("bid", "backtest", "missing.py", status=2).stderr
    Path("other.py").write_text("def other(payload):\n    pass\n")
    assert "no handler get_gas_bid" in run("bid", "backtest", "other.py", status=1).stderr
