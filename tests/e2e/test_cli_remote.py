"""Every command tells of a node what it tells of a directory, and does to it what it does there."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import IO, Any

import httpx
import pytest

from tests.e2e.conftest import Ask, Run, program
from trailboss.chain.development import development_account
from trailboss.crypto.digest import sha256

ACTORS = Path(__file__).parents[2] / "examples" / "actors"
CLOCK, HEARTBEAT = ACTORS / "clock.py", ACTORS / "heartbeat.py"


@contextmanager
def running_node(*options: str) -> Iterator[str]:
    """Run a node that builds a block when a transaction comes, and return its URL."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("COWBOY", "TRAILBOSS_CHAIN"))
    }
    arguments = ("dev", "--port", 0, "--no-explorer", "--json", *options)
    with program(*arguments, stderr=subprocess.DEVNULL, env=environment) as process:
        try:
            yield f"http://127.0.0.1:{ready(process.stdout)['port']}"
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0


def ready(output: IO[str]) -> Any:
    """Return the document that a node prints when it is ready: one, over several lines."""
    text = ""
    for line in output:
        text += line
        if line == "}\n":
            break
    return json.loads(text)


@pytest.fixture(scope="module")
def fifo_node() -> Iterator[str]:
    with running_node("--pace", "auto", "--block-time", "3600s") as url:
        yield url


@pytest.fixture(scope="module")
def globalbox_node() -> Iterator[str]:
    with running_node("--pace", "auto", "--block-time", "3600s", "--mechanism", "globalbox") as url:
        yield url


@pytest.fixture(scope="module")
def manual_node() -> Iterator[str]:
    with running_node("--pace", "manual") as url:
        yield url


def told(run: Run, place: str, command: Sequence[object], status: int) -> str:
    """Return what a command says, on both streams, of a directory or a node."""
    result = run(*command, "--chain", place, status=status, columns=200)
    return result.stdout + result.stderr


def check_session(run: Run, ask: Ask, url: str, steps: Sequence[tuple[int, tuple[object, ...]]]) -> None:
    for status, command in steps:
        shown = [told(run, place, command, status) for place in ("chain", url)]
        # Where the chain is, and how large on disk, is all that may differ.
        assert re.sub(r"^chain .*\n", "", shown[1]) == re.sub(r"^chain .*\n", "", shown[0]), command


def test_commands_say_the_same_of_a_node_as_of_a_directory_when_both_have_done_the_same(
    run: Run, ask: Ask, fifo_node: str
) -> None:
    """Acting, looking, forecasting, governing, proving, and what only a development chain does."""
    run("init")
    first = ask("schedule", "--height", "60", "--gas-limit", "60000", "--chain", "chain")
    again = ask("schedule", "--height", "60", "--gas-limit", "60000", "--chain", fifo_node)
    assert first == again
    timer, owner = first["return_value"], first["actor"]
    check_session(
        run,
        ask,
        fifo_node,
        [
            (0, ("deploy", HEARTBEAT, "--value", "100cby")),
            (0, ("send", "1", "5cby")),
            (0, ("mine", "12")),
            (0, ("status",)),
            (0, ("timers",)),
            (0, ("timers", "--state", "all", "--limit", "0")),
            (0, ("timer", "explain", timer)),
            (0, ("block", "2")),
            (0, ("block",)),
            (0, ("quote", "--height", "40", "--gas-limit", "50000")),
            (0, ("quote", "--height", "90", "--gas-limit", "50000", "--json")),
            (0, ("forecast", "--blocks", "80")),
            (0, ("forecast", timer, "--json")),
            (0, ("timer", "dry-run", timer)),
            (1, ("timer", "dry-run", timer, "--assume", f"balance:{owner}=1")),
            (0, ("send", "2", "7", "--dry-run", "--from", "3", "--at-height", "3")),
            (1, ("call", owner, "nothing", "--dry-run", "--from", owner, "--assume", f"balance:{owner}=999cby")),
            (0, ("deploy", HEARTBEAT, "--dry-run")),
            (0, ("runway", owner)),
            (0, ("balance",)),
            (0, ("events", "--limit", "0")),
            (0, ("params",)),
            (0, ("govern", "set", "lane.activation_height", "+50")),
            (0, ("activation", "status")),
            (0, ("prove", "account", "0")),
            (0, ("prove", "timers", "0", "100")),
            (0, ("prove", "timer", timer[:12])),
            (0, ("hold", timer, "--until", "80")),
            (0, ("force", timer)),
            (0, ("timer", "explain", timer)),
            (1, ("drop", timer)),
            (0, ("set-balance", "3", "7cby")),
            (0, ("set-storage", owner, "beats", "7")),
            (0, ("set-storage", owner, "beats")),
            (0, ("mock", owner, "price", "--returns", "5", "--times", "2")),
            (0, ("mock",)),
            (0, ("mock", "--clear")),
            (0, ("send", "2", "1cby", "--impersonate", "1")),
            (1, ("send", "2", "9999999cby")),
            (1, ("call", owner, "nothing_of_that_name")),
            (0, ("reorg", "--depth", "2")),
            (0, ("mine", "--to", "40")),
            (2, ("mine", "--to", "3")),
            (0, ("next",)),
            (1, ("next", "--actor", owner, "--within", "3")),
            (1, ("timer", "explain", "0x1234567890")),
            (0, ("status",)),
        ],
    )


def test_clock_reaches_tick_1000_without_a_call_when_the_pace_is_due(run: Run, ask: Ask) -> None:
    """Every fire is in the block of its height, and a transaction that waits comes in between."""
    with running_node("--pace", "due", "--no-explorer") as url:
        clock = ask("deploy", CLOCK, "--value", "100000cby", "--chain", url)["actor"]
        while ask("status", "--chain", url)["height"] < 5_006:
            sleep(0.05)
        ask("send", "1", "5cby", "--chain", url)
        httpx.post(f"{url}/dev/pace", json={"pace": "manual"}).raise_for_status()
        fires = ask("events", "--name", "timer.fired", "--actor", clock, "--limit", "0", "--chain", url)["events"]
    assert [each["block_height"] for each in fires[:1000]] == list(range(6, 5_002, 5))


def test_commands_of_globalbox_say_the_same_of_a_node_when_it_runs_that_mechanism(
    run: Run, ask: Ask, globalbox_node: str
) -> None:
    """Watches, updates, the queue and the mailbox."""
    run("init", "--mechanism", "globalbox")
    orders = [ask("schedule", "--height", "20", "--bid", "3", "--chain", place) for place in ("chain", globalbox_node)]
    assert orders[0] == orders[1]
    timer = orders[0]["return_value"]
    check_session(
        run,
        ask,
        globalbox_node,
        [
            (0, ("update", timer, "--bid", "5")),
            (0, ("mailbox",)),
            (0, ("mailbox", "--queued")),
            (0, ("mine", "--to", "21")),
            (0, ("timer", "explain", timer)),
            (0, ("timers", "--state", "fired")),
            (0, ("events",)),
            (1, ("cancel", timer)),
        ],
    )


def test_timer_that_waited_is_explained_from_the_index_when_a_node_is_asked(
    run: Run, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came before it counts for its place in the queue, and is not read block by block."""
    room = ("timers.lane_cycles_per_block=550000", "lane.max_cycles_per_fire=550000")
    tight = ("--mechanism", "lane", "--param", room[0], "--param", room[1])
    run("init", *tight)
    with running_node("--pace", "auto", *tight) as url:
        for place in ("chain", url):
            orders = [("schedule", "--height", "9", "--gas-limit", "550000", "--chain", place) for _ in range(3)]
            timers = [ask(*order)["return_value"] for order in orders]
            run("mine", "--to", 14, "--chain", place)
        explained = [told(run, "chain", ("timer", "explain", timer), 0) for timer in timers]
        monkeypatch.delattr("trailboss.views.explain.life._find_earlier")
        assert [told(run, url, ("timer", "explain", timer), 0) for timer in timers] == explained
    assert sum("waited" in each for each in explained) == 2


def test_snapshot_is_gone_back_to_when_it_is_a_nodes(run: Run, ask: Ask, fifo_node: str) -> None:
    """A node names its snapshots by number, a directory by height and hash."""
    run("init")
    for place in ("chain", fifo_node):
        before = ask("status", "--chain", place)
        mark = ask("snapshot", "--chain", place)["mark"]
        run("mine", 5, "--chain", place)
        assert ask("revert", mark, "--chain", place)["state_root"] == before["state_root"]
        assert ask("status", "--chain", place)["height"] == before["height"]
    assert "no mark" in run("revert", "7", "--chain", "chain", status=2).stderr
    run("revert", "77", "--chain", fifo_node, status=1)


def test_faucet_gives_5000_cby_when_the_node_has_one(run: Run, ask: Ask, fifo_node: str) -> None:
    """A directory has none, and says what to use instead."""
    stranger = "0x00000000000000000000000000000000000cB0ff"
    shown = run("faucet", stranger.lower(), "--chain", fifo_node).stdout
    assert "5,000 CBY" in shown
    [holder] = ask("balance", stranger.lower(), "--chain", fifo_node)
    assert holder["balance"] == 5_000 * 10**9
    run("init")
    assert "trailboss set-balance" in run("faucet", "0", status=2).stderr


def test_view_asks_a_node_when_nothing_is_to_change(run: Run, ask: Ask, fifo_node: str) -> None:
    """The answer is the handler's, and the height stays."""
    source = Path("asked.py")
    source.write_text("def seen(payload):\n    return b'seen ' + payload\n")
    actor = ask("deploy", source, "--chain", fifo_node)["actor"]
    height = ask("status", "--chain", fifo_node)["height"]
    answer = ask("call", actor, "seen", "it", "--view", "--chain", fifo_node)
    assert bytes.fromhex(answer["return_value"][2:]) == b"seen it"
    assert ask("status", "--chain", fifo_node)["height"] == height


def test_export_of_a_node_is_verified_when_it_is_imported(run: Run, ask: Ask, fifo_node: str) -> None:
    """What a node lends is the whole chain, block for block."""
    root = ask("status", "--chain", fifo_node)["state_root"]
    run("export", "node.chain", "--url", fifo_node)
    run("import", "node.chain", "copy")
    assert ask("status", "--chain", "copy")["state_root"] == root
    run("verify", "--chain", "copy")


def test_transaction_waits_when_the_node_builds_blocks_only_when_asked(
    run: Run, manual_node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says that it waits, and what makes a block; the next block holds it."""
    monkeypatch.setattr("trailboss.cli.remote.chain.WAIT_MS", 100)
    shown = run("send", "1", "1cby", "--url", manual_node, status=1, columns=200).stderr
    assert "still waits" in shown
    assert "trailboss mine" in shown
    run("mine", "--url", manual_node)
    assert "1 CBY" not in run("balance", "1", "--url", manual_node).stdout
    assert "1,000,001" in run("balance", "1", "--url", manual_node).stdout


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1", "there is no node at http://127.0.0.1:1"),
        ("127.0.0.1:1", "trailboss dev"),
        ("http://host:port", "is no URL of a node"),
    ],
)
def test_command_names_the_url_when_there_is_no_node(run: Run, url: str, words: str) -> None:
    """And what starts one."""
    assert words in run("status", "--url", url, status=1, columns=200).stderr


def test_command_refuses_a_node_when_it_needs_the_directory(run: Run) -> None:
    """Verifying replays a directory's blocks."""
    assert "needs a chain's directory" in run("verify", "--url", "http://localhost:1", status=2).stderr


def test_url_is_taken_from_the_environment_when_none_is_given(run: Run, fifo_node: str) -> None:
    """COWBOY_RPC_URL, as for the public command line; a directory that is named goes before it."""
    assert fifo_node in run("status", COWBOY_RPC_URL=fifo_node).stdout
    assert "no chain at" in run("status", "--chain", "nowhere", status=1, COWBOY_RPC_URL=fifo_node).stderr


KEY = development_account("account 4").private_key


def envelope(key: bytes, checksum: str | None = None) -> str:
    from base64 import b64encode  # noqa: PLC0415

    lines = ["-----BEGIN COWBOY PRIVATE KEY-----", "Curve: secp256k1"]
    lines += [f"Checksum: {checksum or sha256(key).hex()[:4]}", "", b64encode(key).decode()]
    return "\n".join([*lines, "-----END COWBOY PRIVATE KEY-----", ""])


def sender_of(receipt: dict[str, Any]) -> str:
    return str(receipt["payer"])


@pytest.mark.parametrize("form", [KEY.hex(), f"0x{KEY.hex()}\n", envelope(KEY)], ids=["hex", "0x", "envelope"])
@pytest.mark.parametrize("place", ["config", "key", "parent"])
def test_key_of_the_project_signs_when_nobody_says_who(run: Run, ask: Ask, form: str, place: str) -> None:
    """`.cowboy/config.json` names the file of the active environment, else `.cowboy/key` is it, here or further up."""
    run("init")
    folder = Path(".cowboy") if place != "parent" else Path("..") / ".cowboy"
    folder.mkdir(exist_ok=True)
    path = folder / ("key" if place != "config" else "local.key")
    path.write_text(form)
    path.chmod(0o600)
    if place == "config":
        environments = {"local": {"rpc_url": "http://localhost:4000", "key_file": "local.key"}}
        (folder / "config.json").write_text(json.dumps({"active": "local", "environments": environments}))
    try:
        assert sender_of(ask("send", "1", "1")) == str(development_account("account 4").address)
        assert sender_of(ask("send", "1", "1", "--from", "2")) == str(development_account("account 2").address)
    finally:
        path.unlink()


def test_key_file_is_refused_when_it_holds_no_key(run: Run) -> None:
    """By what is wrong, and nothing of the file is repeated."""
    run("init")
    for text, words in [
        (envelope(KEY, "0000"), "damaged"),
        ("-----BEGIN COWBOY PRIVATE KEY-----\n", "END COWBOY"),
        ("secret words", "64 hexadecimal digits"),
    ]:
        Path("mine.key").write_text(text)
        shown = run("send", "1", "1", "--private-key", "mine.key", status=2, columns=200).stderr
        assert words in shown
        assert "secret" not in shown


def test_key_file_is_warned_of_when_others_can_read_it(run: Run) -> None:
    """The note says what to do about it."""
    run("init")
    Path(".cowboy").mkdir()
    Path(".cowboy/key").write_text(KEY.hex())
    Path(".cowboy/key").chmod(0o644)
    assert "chmod 600" in run("send", "1", "1").stderr


def test_events_are_followed_when_a_node_goes_on_and_back(run: Run, ask: Ask) -> None:
    """What there was since a block, what comes, that the chain has gone back, and what comes instead: a line each."""
    with running_node("--pace", "auto", "--block-time", "3600s") as url:
        timers = [ask("schedule", "--height", str(height), "--url", url)["return_value"] for height in (5, 8, 11)]
        run("mine", "--to", 6, "--url", url)
        with program("events", "--follow", "--since", 0, "--json", "--name", "timer.fired", "--url", url) as process:
            heard = [json.loads(process.stdout.readline())]
            run("mine", "--to", 9, "--url", url)
            heard.append(json.loads(process.stdout.readline()))
            run("reorg", "--depth", 3, "--url", url)
            assert process.stderr.readline() == "the chain has gone back to block 6\n"
            run("mine", "--to", 11, "--url", url)
            heard += [json.loads(process.stdout.readline()) for _ in range(2)]
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0
    told = [(event["block_height"], event["timer_id"]) for event in heard]
    assert told == [(5, timers[0]), (8, timers[1]), (8, timers[1]), (11, timers[2])]


def test_events_are_followed_from_the_head_on_when_nobody_says_since_when(run: Run, ask: Ask) -> None:
    """What there was is not told."""
    with running_node("--pace", "auto", "--block-time", "3600s") as url:
        ask("schedule", "--height", 5, "--url", url)
        later = ask("schedule", "--height", 8, "--url", url)["return_value"]
        run("mine", "--to", 6, "--url", url)
        with program("events", "--follow", "--json", "--name", "timer.fired", "--url", url) as process:
            while "trailboss_stream_readers 1.0" not in httpx.get(f"{url}/metrics").text:
                assert process.poll() is None
            run("mine", "--to", 8, "--url", url)
            heard = json.loads(process.stdout.readline())
    assert (heard["block_height"], heard["timer_id"]) == (8, later)


def test_events_are_not_followed_when_there_is_only_a_directory(run: Run) -> None:
    """Nothing happens there by itself."""
    run("init")
    assert "follow a node" in run("events", "--follow", status=2).stderr
