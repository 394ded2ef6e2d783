"""The commands of a network, as far as they go without an engine."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from trailboss.network.home import Home
from trailboss.network.testnet import read_testnet

Run = Callable[..., Result]
Ask = Callable[..., Any]
HOLD = "import sys, time; from trailboss.state.disk.files import DirectoryLock as L; from pathlib import Path; "
HOLD += "lock = L(Path(sys.argv[1])); print('held', flush=True); time.sleep(600)"


def test_init_says_what_it_made(run: Run, ask: Ask) -> None:
    """The homes, the accounts and that their keys are public; the document has every address."""
    said = run("testnet", "init", "net", "--vm", "native", columns=200).stdout
    assert "0 to 9 and deployer, 1,000,000 CBY each; their keys are public" in said
    assert "trailboss testnet start net" in said
    document = ask(
        *(
            "testnet",
            "init",
            "other",
            "--validators",
            2,
            "--vm",
            "native",
            "--mechanism",
            "lane",
            "--preset",
            "minimal",
        ),
        *("--param", "timers.max_timers_per_actor=9", "--block-time", "250ms", "--host", "127.9.9.9", "--port", 5000),
        *("--engine-port", 6000, "--seed", "s", "--accounts", 3),
    )
    assert (document["mechanism"], document["preset"], document["block_time_ms"]) == ("lane", "minimal", 250)
    assert [node["api_url"] for node in document["nodes"]] == ["http://127.9.9.9:5000", "http://127.9.9.9:5001"]
    assert [node["p2p"] for node in document["nodes"]] == ["127.9.9.9:6000", "127.9.9.9:6002"]
    genesis = read_testnet(Path("other"))[0].genesis
    assert genesis.overrides["timers.max_timers_per_actor"] == 9
    assert len(genesis.accounts) == 4
    assert document["nodes"][0]["validator"] == f"0x{genesis.validators[0].public_key.hex()}"


def test_network_runs_the_sandbox_unless_it_is_told_otherwise(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is built on this machine; the native engine only where no other machine sends actors."""
    monkeypatch.delenv("TRAILBOSS_VM")
    assert ask("testnet", "init", "net")["vm"] == "sandbox"
    assert Home.read(Path("net/node0")).genesis.image


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("init", "net", "--vm", "native", "--host", "10.1.2.3"), 1, "states no image of the sandbox"),
        (("init", "net", "--host", "a", "--host", "b"), 1, "2 addresses for 4 validators"),
        (("init", "net", "--block-time", "10ms"), 1, "block_time_ms = 10 must be 100 to"),
        (("init", "net", "--block-time", "1"), 2, "is not a time"),
        (("init", "net", "--vm", "other"), 1, "unknown vm 'other'"),
        (("init", "net", "--validators", 0), 2, "too small"),
        (("init", "."), 1, "something is there already"),
        (("start", "none"), 1, "trailboss testnet init none"),
        (("status", "none"), 1, "there is no testnet here"),
        (("stop", "none"), 1, "there is no testnet here"),
        (("add-node", "none"), 1, "there is no testnet here"),
    ],
)
def test_what_cannot_be_is_refused(run: Run, arguments: tuple[object, ...], status: int, words: str) -> None:
    """With the rule, and nothing is made."""
    Path("kept").write_text("")
    assert words in " ".join(run("testnet", *arguments, status=status, columns=200).output.split())
    assert os.listdir() == ["kept"]


def test_network_that_does_not_run(run: Run, ask: Ask) -> None:
    """Its status says so; there is nothing to end, and no block to trust."""
    ask("testnet", "init", "net", "--vm", "native", "--host", "127.9.9.9")
    said = run("testnet", "status", "net", status=1, columns=200)
    assert said.stdout.count("does not answer") == 4
    assert "no node answers" in said.stderr
    document = ask("testnet", "status", "net", status=1)
    assert (document["height"], document["agree"], len(document["nodes"])) == (None, False, 4)
    assert ask("testnet", "stop", "net") == {"supervisor": None, "nodes": []}
    assert "no node of the network answers" in run("testnet", "add-node", "net", "--state-sync", status=1).stderr
    assert not Path("net/node4").exists()
    assert ask("testnet", "add-node", "net")["validator"] is None
    assert Home.read(Path("net/node4")).name == "node4"


def test_stop_ends_what_runs(ask: Ask, run: Run) -> None:
    """The process that holds a node's chain, and the one that supervises all; nobody starts a second one."""
    ask("testnet", "init", "net", "--vm", "native")
    chain = Path("net/node2/chain")
    chain.mkdir()
    held = []
    for place in (Path("net"), chain):
        held.append(subprocess.Popen([sys.executable, "-c", HOLD, place], stdout=subprocess.PIPE))
        output = held[-1].stdout
        assert output is not None
        assert output.readline() == b"held\n"
        output.close()
    engine = Path("engine")
    engine.write_text("#!/bin/sh\necho 0.38.0\n")
    engine.chmod(0o700)
    refused = run("testnet", "start", "net", status=1, columns=200, TRAILBOSS_ENGINE=str(engine.absolute()))
    assert f"process {held[0].pid} runs this network already" in refused.stderr
    assert ask("testnet", "stop", "net") == {"supervisor": held[0].pid, "nodes": [held[1].pid]}
    assert [process.wait() for process in held] == [-signal.SIGTERM] * 2
    assert ask("testnet", "stop", "net") == {"supervisor": None, "nodes": []}


@pytest.mark.parametrize(
    "given", [("--pace", "auto"), ("--block-time", "1s"), ("--chain", "x"), ("--port", 1), ("--clock", "wall")]
)
def test_node_of_a_network_takes_no_pace_and_no_place(run: Run, ask: Ask, given: tuple[object, ...]) -> None:
    """Its home and its network decide on them."""
    ask("testnet", "init", "net", "--vm", "native")
    said = run("node", "--network", "net/node0", *given, status=2, columns=200).stderr
    assert f"{given[0]} is given beside --network" in said


def test_node_needs_its_engine(run: Run, ask: Ask) -> None:
    """Without one it says how to get one, before anything is made."""
    ask("testnet", "init", "net", "--vm", "native")
    for command in (("testnet", "start", "net"), ("node", "--network", "net/node0")):
        said = run(*command, status=1, columns=200, TRAILBOSS_ENGINE="/none").stderr
        assert "make engine" in said
    assert not Path("net/node0/chain").exists()
    assert "node.toml" in run("node", "--network", "net", status=1, columns=200).stderr
    error = json.loads(run("node", "--network", "net", "--json", status=1).stderr)["error"]
    assert "testnet init" in error["fix"]
