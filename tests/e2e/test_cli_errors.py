"""The errors that people meet first: each says what, why and what to do, on stderr, with an exit status to go by."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.e2e.conftest import program
from trailboss.chain import Chain
from trailboss.cli.main import app
from trailboss.cli.targets import resolve_address

ROOT = Path(__file__).resolve().parents[2]
HEARTBEAT = str(ROOT / "examples/actors/heartbeat.py")
STRANGER = "0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1"

CROWD = """
import pvm_host


def schedule(payload):
    for height in range(100, 120):
        pvm_host.schedule_timer(height, b"")


def fail(payload):
    raise ValueError("not today")
"""


def run(*arguments: object) -> Result:
    """Run a command, 80 columns wide."""
    return CliRunner().invoke(app, [str(each) for each in arguments], env={"COLUMNS": "80"})


@pytest.fixture
def chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new chain's directory, below the present one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRAILBOSS_CHAIN", raising=False)
    monkeypatch.delenv("COWBOY_PRIVATE_KEY", raising=False)
    (tmp_path / "crowd.py").write_text(CROWD)
    (tmp_path / "echo.py").write_text("def echo(payload):\n    return payload\n")
    assert run("init").exit_code == 0
    return tmp_path / "chain"


def failed(*arguments: object, status: int = 1) -> str:
    """Run a command that must fail with a status, and return what it says, each word once separated by one blank."""
    result = run(*arguments)
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return " ".join(result.stderr.split())


def test_command_says_how_to_make_a_chain_when_there_is_none(chain: Path) -> None:
    """The first error of all."""
    assert failed("timers", "--chain", "nowhere") == (
        "error what there is no chain at nowhere fix make one with `trailboss init nowhere`, name another one with "
        "--chain, or a node with --url"
    )


@pytest.mark.parametrize("place", ["crowd.py", "."])
def test_command_is_refused_when_the_place_holds_no_chain(chain: Path, place: str) -> None:
    """A file, or a directory of other things; nothing in it changes."""
    before = sorted(path.name for path in chain.parent.iterdir())
    said = failed("status", "--chain", place)
    assert said.startswith(f"error what {place}: ")
    assert " fix " in said
    assert sorted(path.name for path in chain.parent.iterdir()) == before


def test_init_is_refused_when_a_chain_or_anything_else_is_there(chain: Path) -> None:
    """Nobody loses a chain to a repeated command."""
    assert failed("init").startswith("error what chain: ")
    assert run("status").exit_code == 0
    assert failed("init", ".").startswith("error what .: ")


def test_command_is_refused_when_another_process_has_the_chain(chain: Path) -> None:
    """The message names the process."""
    holder = Chain.open(chain)
    try:
        said = failed("status")
    finally:
        holder.close()
    assert str(os.getpid()) in said
    assert run("status").exit_code == 0


def test_command_is_refused_when_a_file_of_the_chain_is_damaged(chain: Path) -> None:
    """Never a wrong answer, never a crash."""
    file = chain / "chain.mdb"
    file.write_bytes(file.read_bytes()[:5_000])
    said = failed("status")
    assert said.startswith("error what chain")
    assert " fix " in said


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("balance", "bob"), "'bob' is no account: Address must be 40 hexadecimal digits, got 'bob'"),
        (("send", "1", "1.5"), "'1.5' is not an amount"),
        (("send", "1", "5", "--from", STRANGER), f"the key of {STRANGER} is not known"),
        (("send", "1", "5", "--private-key", "11"), "the private key is not 64 hexadecimal digits"),
        (("send", "1", "5", "--private-key", "00" * 32), "the private key is none: "),
        (("deploy", "nowhere.py"), "cannot read the source nowhere.py: No such file or directory"),
        (("call", STRANGER, "x", "0xf"), "payload '0xf' is not hexadecimal"),
        (("timer", "explain", "xyz"), "'xyz' is no timer id"),
        (("timers", "--from-height", "5", "--to-height", "3"), "--to-height 3 lies below --from-height 5"),
        (("prove", "timers", "5", "3"), "the last height, 3, lies below the first, 5"),
        (("replay", "--diff", "./chain", "--chain", "chain"), "--diff names"),
        (("mine", "3", "--to", "9"), "both a number of blocks and --to are given"),
        (("reorg", "--depth", "1"), "the chain has 0 blocks after genesis, fewer than 1"),
        (("replay", "--to", "1"), "height 1 lies ahead: the chain is at 0"),
        (("govern", "timer-config"), "nothing is given to set"),
        (("govern", "set", "fees.alpha", "5"), "'fees.alpha' is not set by this instruction"),
        (("params", "nonsense"), "there is no parameter 'nonsense'"),
        (("prove", "account", "0", "--out", "nowhere/x"), "cannot write nowhere/x: No such file or directory"),
        (("verify-proof", "crowd.py", "--root", "11" * 32), "the proof crowd.py is not JSON: "),
        (("verify-proof", "crowd.py", "--root", "11"), "the root '11' is not a hash"),
        (("init", "x", "--param", "a"), "--param 'a' is not path=integer"),
        (("init", "x", "--genesis", "a", "--preset", "minimal"), "a genesis file has a preset"),
        (("init", "x", "--genesis", "a"), "cannot read the genesis a: No such file or directory"),
    ],
)
def test_command_exits_with_2_when_what_is_typed_cannot_be_read(
    chain: Path, arguments: tuple[str, ...], what: str
) -> None:
    """The message names what was typed, and what can be typed instead; the chain has not changed."""
    said = failed(*arguments, status=2)
    assert said.startswith(f"error what {what}")
    assert " fix " in said
    assert json.loads(run("status", "--json").stdout)["height"] == 0


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("call", STRANGER, "x"), f"there is no actor at {STRANGER}"),
        (("call", "0x1a642f0E", "x"), "no actor's address begins with 0x1a642f0E"),
        (("timer", "explain", "0xab"), "the chain never had a timer 0xab…"),
        (("timer", "explain", "ab" * 32), f"the chain never had a timer {'ab' * 32}"),
        (("import", "crowd.py", "copy"), "crowd.py: "),
        (("init", "x", "--preset", "fast"), "unknown preset 'fast'; there are: mainnet, minimal"),
        (("init", "x", "--param", "calendar.ring_size=12"), "calendar.ring_size = 12 is too small"),
        (("replay", "--diff", "crowd.py"), "crowd.py: "),
    ],
)
def test_command_exits_with_1_when_it_cannot_be_done(chain: Path, arguments: tuple[str, ...], what: str) -> None:
    """What was meant is clear, and it is not there, or not allowed."""
    assert failed(*arguments).startswith(f"error what {what}")


def test_address_is_refused_when_its_checksum_is_wrong(chain: Path) -> None:
    """A typing error must not cost money."""
    assert "fails its EIP-55 checksum" in failed("send", STRANGER.replace("1a", "1A"), "5", status=2)


def test_id_is_refused_when_several_begin_so(chain: Path) -> None:
    """The message names some of them."""
    actor = json.loads(run("deploy", "crowd.py", "--value", "1000cby", "--json").stdout)["actor"]
    assert run("call", actor, "schedule").exit_code == 0
    ids = [entry["timer_id"] for entry in json.loads(run("timers", "--json").stdout)["timers"]]
    digit = next(each for each in "0123456789abcdef" if sum(found.startswith(f"0x{each}") for found in ids) > 1)
    said = failed("timer", "explain", f"0x{digit}", status=2)
    assert f"timers begin with 0x{digit}: 0x{digit}" in said
    assert said.endswith("fix give more digits")


def test_transaction_exits_with_1_and_is_told_when_it_is_reverted(chain: Path) -> None:
    """The receipt is data, why it failed a message: code, what, where, why, fix."""
    actor = json.loads(run("deploy", "crowd.py", "--json").stdout)["actor"]
    result = run("call", actor, "fail")
    assert result.exit_code == 1
    assert result.stdout.startswith("status  reverted, in block 2\n")
    assert " ".join(result.stderr.split()) == (
        'reverted E1210 pvm_error what ValueError: not today where line 11, in fail: raise ValueError("not today") '
        "why an exception that leaves a handler reverts its frame "
        "fix correct the line that raises it, or handle the exception there"
    )
    document = json.loads(run("call", actor, "fail", "--json").stdout)
    assert (document["status"], document["error"]["slug"]) == ("reverted", "pvm_error")
    assert failed("call", actor, "fail", "--view").startswith("failed E1210 pvm_error what ValueError: not today")


def test_transaction_exits_with_1_and_changes_nothing_when_it_is_refused(chain: Path) -> None:
    """No block, no fee."""
    before = json.loads(run("status", "--json").stdout)
    result = run("send", "1", "99_999_999cby")
    assert (result.exit_code, result.stdout) == (
        1,
        "status  refused: there is no block of it, and nothing has changed\n",
    )
    assert result.stderr.startswith("refused E1003 insufficient_balance\n  what  0x")
    assert json.loads(run("status", "--json").stdout)["block_hash"] == before["block_hash"]
    assert failed("send", "1", str(2**64)).startswith("error E1007 overflow what ")


def test_deployment_exits_with_1_when_the_source_is_no_actor(chain: Path) -> None:
    """And makes none."""
    (chain.parent / "bad.py").write_text("import os\n")
    said = failed("deploy", "bad.py")
    assert said.startswith("reverted E1101 non_deterministic_code what line 1")


def test_governance_is_refused_when_the_sender_may_not(chain: Path) -> None:
    """Only system deployers may."""
    assert "E1211 unauthorized" in failed("govern", "timer-config", "--max-ttl-blocks", 5, "--from", 1)


def test_timer_that_ended_is_not_governed(chain: Path) -> None:
    """The instruction would do nothing, so it is not sent."""
    actor = json.loads(run("deploy", HEARTBEAT, "--value", "100cby", "--json").stdout)["actor"]
    run("mine", 10)
    timer = json.loads(run("timers", "--state", "fired", "--json").stdout)["timers"][0]["timer_id"]
    assert failed("govern", "cancel-timer", timer).startswith(f"error what timer {timer} is not live any more")
    assert actor


def test_error_is_one_document_when_json_is_asked_for(chain: Path) -> None:
    """On stderr, so that stdout holds data or nothing."""
    result = run("timers", "--chain", "nowhere", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    error = json.loads(result.stderr)["error"]
    assert (error["what"], sorted(error)) == ("there is no chain at nowhere", ["fix", "what"])
    rejected = json.loads(run("send", "1", str(2**64), "--json").stderr)["error"]
    assert (rejected["code"], rejected["slug"]) == (1007, "overflow")


@pytest.mark.parametrize(
    "arguments", [("timerss",), ("timers", "--stat", "due"), ("timers", "--state", "x"), ("send", "1")]
)
def test_usage_is_shown_when_command_or_option_is_unknown(chain: Path, arguments: tuple[str, ...]) -> None:
    """With the nearest name there is."""
    said = failed(*arguments, status=2)
    assert "Usage: " in said
    if "timerss" in arguments:
        assert "Did you mean 'timers', 'timer'?" in said


@pytest.mark.parametrize(
    "arguments", [("events", "--since"), ("timers", "--from-height"), ("timers", "--to-height"), ("mine", "--to")]
)
def test_height_is_refused_or_finds_nothing_when_it_has_more_than_64_bits(
    chain: Path, arguments: tuple[str, ...]
) -> None:
    """In words, whatever the number."""
    result = run(*arguments, 2**64)
    assert "Traceback" not in result.output
    assert result.exit_code == (0 if arguments[0] == "events" else 2)


def test_status_tells_the_time_when_no_calendar_has_that_year(chain: Path) -> None:
    """A block may have any timestamp of 64 bits."""
    with Chain.open(chain) as opened:
        opened.build(timestamp_ms=2**64 - 1)
    assert "18,446,744,073,709,551,615 ms since 1970" in run("status").stdout
    assert failed("mine").startswith("error E1213 invalid_data what timestamp ")


def test_payload_is_the_bytes_typed_when_they_are_no_text(chain: Path) -> None:
    """Bytes of another encoding go through as they are; what a message repeats of them is an escape."""
    run("deploy", "echo.py")
    address = json.loads(run("balance", "--json").stdout)[-1]["address"]
    said = run("call", address, "echo", "\udcff", "--json")
    assert json.loads(said.stdout)["return_value"] == "0xff"
    assert "'\\udcff' is not an amount" in failed("send", "1", "\udcff", status=2)


@pytest.mark.parametrize(
    ("environment", "place", "status", "said"),
    [
        ({"PYTHONUNBUFFERED": "1"}, "/dev/full", 1, "what  the output: the system refuses: No space left on device"),
        ({"PYTHONUNBUFFERED": ""}, "/dev/full", 1, "what  the output: the system refuses: No space left on device"),
        ({"PYTHONIOENCODING": "iso-8859-1"}, "listed", 0, ""),
    ],
)
def test_program_says_so_when_what_it_prints_goes_nowhere(
    chain: Path, environment: dict[str, str], place: str, status: int, said: str
) -> None:
    """A full disk is an error in words; letters that the terminal lacks are escapes."""
    run("deploy", HEARTBEAT)
    command = [sys.executable, "-m", "trailboss", "timers"]
    with Path(place).open("w") as output:
        finished = subprocess.run(
            command,
            check=False,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment | {"COLUMNS": "80"},
        )
    assert finished.returncode == status, finished.stderr
    assert said in finished.stderr
    assert "Traceback" not in finished.stderr
    assert status or "\\u2026" in Path(place).read_text()


@pytest.fixture(params=["in the foreground", "in the background"])
def interrupts(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have these tests run where Ctrl-C is heard, and where it is ignored, as in the background of a script."""
    handler = signal.default_int_handler if request.param == "in the foreground" else signal.SIG_IGN
    before = signal.signal(signal.SIGINT, handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_mining_stops_between_blocks_when_it_is_interrupted(chain: Path) -> None:
    """What is built stays, and the chain opens again at once; wherever these tests run."""
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    size = (chain / "chain.mdb").stat().st_size
    with program("mine", 50_000_000, cwd=chain.parent, env=environment) as mining:
        while (chain / "chain.mdb").stat().st_size == size and mining.poll() is None:
            time.sleep(0.05)
        mining.send_signal(signal.SIGINT)
        output, notes = mining.communicate()
    assert mining.returncode == 130, notes
    height = int(output.split()[3])
    assert notes == "stopped before height 50000000; what is built stays\n"
    assert 0 < height < 50_000_000
    assert json.loads(run("status", "--json").stdout)["height"] == height


INTERRUPTED_WHILE_IMPORTING = """
import os, signal, sys
from trailboss.__main__ import main

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "trailboss.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
main()
"""


def test_program_ends_without_a_traceback_when_it_is_interrupted_as_it_is_imported() -> None:
    """With the status of whatever Ctrl-C ends."""
    command = [sys.executable, "-c", INTERRUPTED_WHILE_IMPORTING]
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (finished.returncode, finished.stdout, finished.stderr) == (130, "", "")


def test_names_of_accounts_are_read_in_both_forms() -> None:
    """As they are typed, and as they are shown."""
    assert resolve_address("3") == resolve_address("account 3")
    assert resolve_address("deployer") != resolve_address("0")
