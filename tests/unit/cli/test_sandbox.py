"""A chain of the sandbox on a machine without its image: only what runs a frame needs it, and says what is missing."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trailboss.cli.main import app
from trailboss.sandbox import cache

ACTOR = """
def init(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + 3, b"", gas_limit=50_000)

def handle_timer(payload):
    pvm_host.set_state(b"fired", b"yes")

def go(payload):
    return 1
"""
NOT_BUILT = "the sandbox is not built on this machine: run: trailboss sandbox build"
GENESIS = """
chain_id = 7
preset = "minimal"
mechanism = "fifo"
proposer = "0x{0}"
system_deployers = ["0x{0}"]
{1}

[accounts]
"0x{0}" = 1_000_000_000_000
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs a command in a folder of its own, expects an exit status, and returns what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRAILBOSS_CHAIN", raising=False)
    monkeypatch.setattr("trailboss.node.logs.configure_logs", lambda _: None)

    def run_command(*arguments, status=0):
        result = CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "200"})
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == status, result.output
        return " ".join(result.output.split())

    return run_command


@pytest.fixture
def elsewhere(run, tmp_path, monkeypatch):
    """The same on a machine to which the directory of a chain, with an actor and a timer, was copied."""
    if not cache.is_built():
        pytest.skip("the sandbox is not built: run make sandbox")
    Path("actor.py").write_text(ACTOR)
    run("init", "--vm", "sandbox")
    run("deploy", "actor.py", "--value", "100cby")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    cache.load_runtime.cache_clear()
    yield run
    cache.load_runtime.cache_clear()


def test_command_needs_no_image_when_it_runs_no_frame(elsewhere):
    (timer,) = json.loads(elsewhere("timers", "--json"))["timers"]
    assert "vm sandbox" in elsewhere("status")
    explained = elsewhere("timer", "explain", timer["timer_id"])
    assert timer["timer_id"] in explained
    elsewhere("prove", "timer", timer["timer_id"], "--out", "proof")
    elsewhere("verify-proof", "proof", "--root", json.loads(elsewhere("status", "--json"))["state_root"])
    for command in (
        ("balance",),
        ("events",),
        ("params",),
        ("block", 1),
        ("export", "chain.trail"),
        ("send", "1", "1cby"),
        ("mine", 1),
    ):
        elsewhere(*command)


def test_command_is_refused_and_changes_nothing_when_it_runs_a_frame(elsewhere):
    (actor,) = {each["actor"] for each in json.loads(elsewhere("timers", "--json"))["timers"]}
    before = elsewhere("status")
    elsewhere("export", "chain.trail")
    for command in (
        ("call", actor, "go"),
        ("verify",),
        ("replay",),
        ("import", "chain.trail", "copy"),
        ("init", "another", "--vm", "sandbox"),
    ):
        assert NOT_BUILT in elsewhere(*command, status=1), command
    assert elsewhere("status") == before
    assert not Path("copy").exists()
    assert not Path("another").exists()
    # The blocks before the fire stay.
    assert NOT_BUILT in elsewhere("mine", 9, status=1)
    assert json.loads(elsewhere("status", "--json"))["height"] == 3


@pytest.mark.parametrize(
    ("vm", "flaw"),
    [
        (None, "is for development: its keys are public"),
        ("native", "runs actors in this process"),
    ],
)
def test_node_is_refused_to_others_when_its_chain_is_not_for_strangers(run, vm, flaw):
    if vm is None:
        run("init", "--vm", "native")
    else:
        Path("genesis.toml").write_text(GENESIS.format("11" * 20, ""))
        run("init", "--genesis", "genesis.toml")
    said = run("node", "--host", "0.0.0.0", "--port", 0, status=2)

    assert flaw in said
    assert "listen on 127.0.0.1, or start a chain whose genesis has your accounts" in said


def test_image_is_named_by_its_first_digits_when_it_is_removed(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    directory = cache.cache_directory()
    directory.mkdir(parents=True)
    digests = ["ab" * 32, "ac" * 32]
    for digest in digests:
        (directory / f"{digest}.image").write_bytes(bytes(2_000_000))
    assert f"0x{digests[0]} 2 MB" in run("sandbox", "status")
    assert "2 images begin with 0xa" in run("sandbox", "remove", "0xa", status=2)
    assert "no image that is kept begins with 0xff" in run("sandbox", "remove", "0xff", status=1)

    assert run("sandbox", "remove", "0xAB") == f"image 0x{digests[0]} removed 2 MB"
    assert [each["digest"] for each in json.loads(run("sandbox", "status", "--json"))["images"]] == [f"0x{digests[1]}"]
