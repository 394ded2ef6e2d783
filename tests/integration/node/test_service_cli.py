"""What `trailboss dev` and `trailboss node` refuse before they run, and what they print when they do."""

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trailboss.chain import Chain
from trailboss.chain.opening import GenesisOptions, new_genesis
from trailboss.cli.main import app
from trailboss.node.options import NodeOptions
from trailboss.node.service import Node
from trailboss.node.startup import open_node

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command in a folder of its own, and expects an exit status."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRAILBOSS_CHAIN", raising=False)
    monkeypatch.setattr("trailboss.node.logs.configure_logs", lambda _: None)

    def run_command(*arguments: object, status: int = 0, columns: int = 80) -> Result:
        settings = {"COLUMNS": str(columns)}
        result = CliRunner().invoke(app, [str(each) for each in arguments], env=settings)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == status, result.output
        assert "Traceback" not in result.output
        return result

    return run_command


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a node end as soon as it has said that it is ready; the port is made up."""

    def run_node(options: NodeOptions, ready: Callable[[Node, int], None]) -> int:
        node = open_node(options)
        ready(node, options.port)
        asyncio.run(node.close())
        return 0

    monkeypatch.setattr("trailboss.server.run_node", run_node)


def test_node_says_what_it_is_when_it_is_ready(run: Run, brief: None) -> None:
    """Chain, rules, pace, where to look, who may come, the accounts with their keys, and a warning about these."""
    said = run("dev", "--mechanism", "lane", "--block-time", "250ms").stdout
    for line in (
        "node      Trailboss 0.6.0, for development",
        "chain     temporary, deleted when the node ends; at height 0",
        "rules     chain id 1, preset mainnet, mechanism lane",
        "pace      a block every 250 ms, empty ones too; POST /dev/mine builds one at",
        "explorer  http://127.0.0.1:4000/",
        "API       http://127.0.0.1:4000/swagger-ui",
        "metrics   http://127.0.0.1:4000/metrics",
        "listens   on 127.0.0.1, for this machine only",
        "0         0x044D388b58ee66D6bE82b07DCaA6A859Ab2C27C5  1,000,000",
        "deployer  0xbaEdDc78B99e0d7B78389096F53464aB97d4aA0B  1,000,000",
        "9         0xe6cf43997c7a026784a01563cbb371dc60d06842e2ff7bfcd35a73b8c187bea2",
        "These keys are public",
        "Ctrl-C ends the node.",
    ):
        assert line in said
    assert max(map(len, said.splitlines())) <= 80


def test_keys_stand_beside_addresses_when_there_is_room(run: Run, brief: None) -> None:
    """One table instead of two; of many accounts the first ones, and how many more there are."""
    said = run("dev", "--pace", "auto", "--accounts", 30, "--no-explorer", columns=140).stdout
    assert "account   address                                           CBY  private key" in said
    assert "10 more accounts: --json has them all" in said
    assert "explorer" not in said
    assert "a block as soon as a transaction waits" in said


def test_document_has_everything_when_it_is_asked_for(run: Run, brief: None) -> None:
    """All accounts, and where the node answers."""
    document = json.loads(run("dev", "--pace", "manual", "--accounts", 30, "--port", 4123, "--json").stdout)
    assert len(document["accounts"]) == 31
    assert document["accounts"][0]["balance"] == 10**15
    assert document["urls"] == {
        "explorer": "http://127.0.0.1:4123/",
        "api": "http://127.0.0.1:4123",
        "reference": "http://127.0.0.1:4123/swagger-ui",
        "openapi": "http://127.0.0.1:4123/openapi.json",
        "metrics": "http://127.0.0.1:4123/metrics",
    }
    assert (document["pace"], document["block_time_ms"], document["directory"]) == ("manual", None, None)


def test_warning_is_given_when_others_can_reach_the_node(run: Run, brief: None) -> None:
    """On stderr, with what they could do; the addresses are still this machine's."""
    result = run("dev", "--host", "0.0.0.0")
    assert "WARNING: the node listens on 0.0.0.0" in result.stderr
    assert "act for every account" in " ".join(result.stderr.split())
    assert "http://127.0.0.1:4000/" in result.stdout
    assert "http://[::1]:4000/" in run("dev", "--host", "::").stdout


def test_keys_are_not_shown_when_the_node_is_no_development_node(run: Run, brief: None) -> None:
    """Of the same chain."""
    run("dev", "--chain", "here")
    said = run("node", "--chain", "here").stdout
    assert "here; at height 0" in said
    assert "private key" not in said
    assert "POST /dev/mine" not in said


def test_port_is_named_when_it_is_in_use(run: Run) -> None:
    """And what to do; no directory has been made."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = run("dev", "--port", port, "--chain", "new", status=1).stderr
    assert f"port {port} of 127.0.0.1 is in use" in said
    assert "--port" in said
    assert not Path("new").exists()


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid", "::ffff:zz"])
def test_host_is_named_when_it_is_not_this_machines(run: Run, host: str) -> None:
    """And which option to use."""
    said = run("dev", "--host", host, "--port", 0, status=1).stderr
    assert host in said
    assert "is no address of this machine: name one with --host" in " ".join(said.split())


def test_directory_is_named_when_another_process_has_it(run: Run) -> None:
    """As it would be for any other command."""
    Chain.create(Path("busy"), new_genesis(GenesisOptions())).close()
    with Chain.open(Path("busy")):
        for command in ("dev", "node"):
            said = " ".join(run(command, "--chain", "busy", "--port", 0, status=1).stderr.split())
            assert "busy: the chain is in use by process" in said


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        (["--mechanism", "lane"], "mechanism fifo, not lane"),
        (["--preset", "mainnet"], "preset minimal, not mainnet"),
        (["--accounts", "4"], "3 funded accounts, not 4"),
        (["--param", "timers.max_timers_per_actor=9"], "timers.max_timers_per_actor = 7, not 9"),
    ],
)
def test_difference_is_named_when_the_chain_started_otherwise(
    run: Run, brief: None, options: list[str], difference: str
) -> None:
    """What is not asked for may be anything, and what is asked for rightly is no difference."""
    own = ["--preset", "minimal", "--accounts", "3", "--param", "timers.max_timers_per_actor=7"]
    run("dev", "--chain", "here", *own)
    run("dev", "--chain", "here", *own, "--mechanism", "fifo")
    run("dev", "--chain", "here")
    said = " ".join(run("dev", "--chain", "here", *options, status=1).stderr.split())
    assert f"here holds a chain that started with {difference}: leave that option out" in said
    run("dev", "--chain", "here")


def test_node_is_refused_when_there_is_no_chain(run: Run) -> None:
    """Only a development node makes one."""
    Path("empty").mkdir()
    for place in ("nowhere", "empty"):
        assert place in run("node", "--chain", place, "--port", 0, status=1).stderr
    assert not Path("nowhere").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--block-time", "1s", "--pace", "due"], "--block-time and --pace due are given"),
        (["--block-time", "1s", "--pace", "manual"], "--block-time and --pace manual are given"),
        (["--block-time", "fast"], "'fast' is not a time"),
        (["--block-time", "1.5ms"], "'1.5ms' is not a time"),
        (["--block-time", "1.0005s"], "'1.0005s' is not a time"),
        (["--block-time", "5"], "'5' is not a time"),
        (["--param", "timers"], "is not path=integer"),
    ],
)
def test_option_is_refused_when_it_cannot_be_read(run: Run, arguments: list[str], words: str) -> None:
    """With what to write instead, and status 2."""
    assert words in " ".join(run("dev", *arguments, status=2).stderr.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--block-time", "5ms"], "a block every 5 ms cannot be"),
        (["--mechanism", "dice"], "dice"),
        (["--preset", "moon"], "moon"),
        (["--param", "timers.no_such=1"], "timers.no_such"),
    ],
)
def test_option_is_refused_when_no_node_can_be_so(run: Run, arguments: list[str], words: str) -> None:
    """With status 1, and nothing made."""
    said = run("dev", "--port", 0, "--chain", "new", *arguments, status=1).stderr
    assert words in " ".join(said.split())
    assert not Path("new").exists()
