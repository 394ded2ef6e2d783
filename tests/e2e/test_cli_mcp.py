"""``trailboss mcp``: an agent that has nothing else."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Run
from trailboss.cli.agent_tools import TOOLS

CLOCK = Path(__file__).resolve().parents[2] / "examples/actors/clock.py"


class Agent:
    """Speaks the protocol over the pipes of a process, a JSON document a line."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "trailboss", "mcp", *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process: subprocess.Popen[str] = subprocess.Popen(command, text=True, **pipes)  # type: ignore[call-overload]
        self.asked = 0
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        self.greeting = self.ask("initialize", **client)
        self._send({"method": "notifications/initialized"})

    def ask(self, method: str, **params: Any) -> Any:
        """Return the result of a request."""
        self.asked += 1
        self._send({"id": self.asked, "method": method, "params": params})
        assert self.process.stdout is not None
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.asked
        return answer["result"]

    def use(self, tool: str, **arguments: Any) -> Any:
        """Return what a tool gives: JSON, or text."""
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        text = answer["content"][0]["text"]
        assert not answer.get("isError"), text
        return json.loads(text) if text[0] in "[{" else text

    def error(self, tool: str, **arguments: Any) -> str:
        """Return the error of a tool."""
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        assert answer["isError"], answer
        return str(answer["content"][0]["text"])

    def close(self) -> tuple[int, str]:
        """End its input; return its exit status and what it said to people."""
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()


@pytest.fixture
def agent() -> Iterator[Agent]:
    """An agent on a fresh chain."""
    made = Agent()
    yield made
    made.process.kill()
    made.close()


@pytest.mark.slow
def test_agent_finds_why_the_clock_stopped_and_restarts_it(agent: Agent) -> None:
    """The story of the README, by tools alone."""
    clock = agent.use("deploy", source=str(CLOCK), value="20cby")["actor"]
    assert agent.use("mine", blocks=7)["fires_in_all"] == 1
    agent.use("set_balance", who=clock[:10], amount="1cby")
    assert agent.use("mine", blocks=20)["fires"] == []

    assert agent.use("timers") == []
    [stopped] = agent.use("timers", state="unfunded", actor=clock)
    why = agent.use("explain", timer=stopped["timer_id"][:10])
    assert f"a fire costs up to 6.5 CBY and its payer {clock} held 1 CBY" in why

    agent.use("send_money", to=clock, amount="200cby")
    refused = agent.use("simulate", actor=clock, handler="on_tick")
    assert "on_tick" in refused["error"]["what"], "a handler for timers, which only the actor may call"
    foreseen = agent.use("simulate", actor=clock, handler="on_tick", sender=clock)
    receipt = agent.use("call", actor=clock, handler="on_tick", sender=clock)
    assert (receipt["status"], receipt["cycles_used"]) == ("ok", foreseen["cycles_used"])
    assert agent.use("next_fire", actor=clock)["fires"][0]["status"] == "ok"
    assert "schedule_timer_ex" in agent.use("trace", execution=str(agent.use("status")["height"]))
    assert agent.use("storage", actor=clock)
    assert agent.use("events", name="timer.fired", limit=1)[0]["data"]["reverted"] is False
    assert len(agent.use("receipts", actor=clock, limit=2)) == 2


@pytest.mark.slow
def test_tools_state_their_arguments_and_name_what_was_wrong(agent: Agent) -> None:
    """Schemas for the arguments, errors of the tool with value and rule, and nothing changes."""
    assert agent.greeting["serverInfo"]["name"] == "trailboss"
    tools = {each["name"]: each for each in agent.ask("tools/list")["tools"]}
    assert tuple(tools) == TOOLS
    assert all(each["description"] and each["inputSchema"]["type"] == "object" for each in tools.values())
    assert tools["call"]["inputSchema"]["required"] == ["actor", "handler"]

    assert "no actor's address begins with 0x99999" in agent.error("call", actor="0x99999", handler="tick")
    assert "blocks 0 is out of range" in agent.error("mine", blocks=0)
    assert "'1 apple' is not an amount" in agent.error("set_balance", who="0", amount="1 apple")
    assert "'slow' is no state of a timer" in agent.error("timers", state="slow")
    assert "limit -1 is out of range" in agent.error("events", limit=-1)
    assert "no longer" not in agent.error("explain", timer="0x1234")
    assert "there is no page 'none.md'" in agent.error("read_doc", page="none.md")
    assert "set is not available" in agent.error("deploy", source="x = set()\n")
    assert "height 0 is not ahead" in agent.error("advance_to", height=0)
    assert "valid integer" in agent.error("mine", blocks="many")
    assert agent.use("status")["height"] <= 1
    assert agent.ask("ping") == {}


@pytest.mark.slow
def test_agent_reads_the_documentation(agent: Agent) -> None:
    """By search, by name, and as resources."""
    found = agent.use("search_docs", query="recurring timer every N blocks")
    assert "how-to/recurring-timers.md" in [each["page"] for each in found]
    page = agent.use("read_doc", page="how-to/recurring-timers.md")
    assert page.startswith("# ")
    assert "(how-to/recurring-timers.md)" in agent.use("read_doc")
    [resource] = [
        each for each in agent.ask("resources/list")["resources"] if each["name"] == "how-to/recurring-timers.md"
    ]
    assert agent.ask("resources/read", uri=resource["uri"])["contents"][0]["text"] == page
    [finding] = agent.use("check", source="x = {1}\n")
    assert (finding["rule"], finding["line"]) == ("E1101", 1)


@pytest.mark.slow
def test_agent_works_on_a_directory_and_prints_nothing_into_the_protocol(run: Run, tmp_path: Path) -> None:
    """What actors print goes to people; what is built stays."""
    run("init", "chain")
    agent = Agent("--chain", str(tmp_path / "chain"))
    source = "def hello(payload):\n    print('hello')\n    return 1\n"
    actor = agent.use("deploy", source=source)["actor"]
    assert agent.use("call", actor=actor, handler="hello")["printed"][0]["text"] == "hello"
    assert agent.close()[0] == 0
    assert "height      2\n" in run("status", "--chain", "chain").stdout
