"""A command that asks a node reads what it shows, however long the chain is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from typer.testing import CliRunner

from tests.e2e.conftest import Ask, Run
from tests.e2e.test_cli_remote import running_node
from trailboss.cli.main import app
from trailboss.cli.remote.client import Client

BLOCKS = 1_500
"""With a fire in each, a megabyte of records."""
REQUESTS_MAX = 80
"""The parameters in force alone are 50 keys."""
OCTETS_MAX = 200_000
BEACON = """
import pvm_host

def init(payload):
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 50_000, b"", gas_limit=50_000)
    handle_timer(payload)

def handle_timer(payload):
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 1, b"x" * 300, gas_limit=50_000)
"""
COMMANDS = (
    ("status",),
    ("timers",),
    ("timers", "--state", "fired", "--limit", "3"),
    ("timers", "--state", "all", "--limit", "5"),
    ("timers", "--state", "fired", "--actor", "ACTOR", "--limit", "3"),
    ("timer", "explain", "LIVE"),
    ("timer", "explain", "ENDED"),
    ("block",),
    ("block", "5"),
    ("quote", "--height", "60000", "--gas-limit", "50000", "--blocks", "50"),
    ("runway", "ACTOR", "--blocks", "50"),
    ("balance",),
    ("events", "--limit", "3"),
    ("events", "--name", "timer.fired", "--limit", "3"),
    ("events", "--actor", "ACTOR", "--limit", "3"),
    ("events", "--since", "1400", "--limit", "3"),
    ("params",),
    ("prove", "account", "0"),
    ("prove", "timer", "LIVE"),
    ("send", "1", "1cby"),
    ("call", "ACTOR", "nothing_of_that_name"),
    ("faucet", "0"),
    ("set-balance", "3", "7cby"),
    ("hold", "LIVE"),
    ("snapshot",),
    ("mine", "2"),
)


class LongChain(NamedTuple):
    """A node with a long chain.

    Attributes:
        url: Where it listens.
        names: What stands for what in the commands.
    """

    url: str
    names: dict[str, str]


@pytest.fixture(scope="module", params=["fifo", "lane"])
def long_chain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LongChain]:
    """Run a node whose chain has some events in every block."""
    source = tmp_path_factory.mktemp("actor") / "beacon.py"
    source.write_text(BEACON)
    with running_node("--pace", "auto", "--mechanism", request.param) as url:
        yield _grown(url, source)


def _grown(url: str, source: Path) -> LongChain:
    result = CliRunner().invoke(app, ["deploy", str(source), "--value", "9000cby", "--url", url, "--json"])
    assert result.exit_code == 0, result.output
    httpx.post(f"{url}/dev/advance", json={"height": BLOCKS}, timeout=60).raise_for_status()
    live = httpx.get(f"{url}/timers", params={"from_height": 10_000}).json()["timers"][0]
    ended = httpx.get(f"{url}/timers", params={"state": "fired", "to_height": BLOCKS - 20}).json()["timers"][0]
    return LongChain(url, {"ACTOR": live["actor"], "LIVE": live["timer_id"], "ENDED": ended["timer_id"]})


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the length of each answer of a node."""
    lengths: list[int] = []
    request = Client._request

    def counted(self: Client, *arguments: Any, **named: Any) -> Any:
        response = request(self, *arguments, **named)
        lengths.append(len(response[1]))
        return response

    monkeypatch.setattr(Client, "_request", counted)
    return lengths


@pytest.mark.slow
def test_command_reads_what_it_shows_when_the_chain_is_long(
    run: Run, ask: Ask, long_chain: LongChain, answers: list[int]
) -> None:
    """Some requests, and some kilobytes: nothing is read from genesis on."""
    assert ask("status", "--url", long_chain.url)["height"] >= BLOCKS
    read: dict[tuple[str, ...], tuple[int, int]] = {}
    for command in COMMANDS:
        answers.clear()
        words = [long_chain.names.get(word, word) for word in command]
        run(*words, "--url", long_chain.url, status=1 if command[0] == "call" else 0)
        read[command] = len(answers), sum(answers)
    dear = {each: cost for each, cost in read.items() if cost[0] > REQUESTS_MAX or cost[1] > OCTETS_MAX}
    assert dear == {}
