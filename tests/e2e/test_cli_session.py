"""A whole session on a chain directory, typed as a person types it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Ask, Run
from trailboss.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
HEARTBEAT = str(ROOT / "examples/actors/heartbeat.py")

POST = """
import pvm_host


def put(payload):
    pvm_host.set_state(b"note", payload)
    return b"was noted"


def get(payload):
    return pvm_host.get_state(b"note") or b""


def later(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + int(payload), b"")


def handle_timer(payload):
    raise ValueError("never today")
"""


@pytest.fixture(autouse=True)
def post(tmp_path: Path) -> None:
    """Have the post's source lie where the commands run."""
    (tmp_path / "post.py").write_text(POST)


@pytest.fixture
def heartbeat(run: Run, ask: Ask) -> str:
    """Return the address of a heartbeat on a new chain."""
    run("init")
    return ask("deploy", HEARTBEAT, "--value", "100cby")["actor"]


def test_session_tells_one_story_when_a_person_goes_through_it(run: Run, ask: Ask, heartbeat: str) -> None:
    """Deploy, mine, look, ask why, govern, go back."""
    assert ask("status")["height"] == 1
    mined = ask("mine", 30)
    assert (mined["from_height"], mined["height"], mined["counts"]["fired"]) == (1, 31, 3)

    [live] = ask("timers")["timers"]
    assert (live["actor"], live["height"], live["state"]) == (heartbeat, 41, "live")
    ended = ask("timers", "--state", "fired")["timers"]
    assert [(entry["height"], entry["ended_at"]) for entry in ended] == [(31, 31), (21, 21), (11, 11)]
    assert ask("timers", "--state", "all", "--limit", 2)["timers"] == [live, ended[0]]

    life = ask("timer", "explain", ended[0]["timer_id"][:10])
    assert (life["timer_id"], life["state"]) == (ended[0]["timer_id"], "fired")
    assert [step["block_height"] for step in life["steps"]] == [21, 31]

    run("govern", "cancel-timer", live["timer_id"][:12])
    assert ask("timers")["timers"] == []
    assert ask("timers", "--state", "cancelled")["timers"][0]["timer_id"] == live["timer_id"]

    ask("reorg", "--depth", 1)
    assert ask("timers")["timers"] == [live]


def test_account_of_ones_own_can_send_when_its_key_is_given(run: Run, ask: Ask) -> None:
    """By option or by environment; --from names it, or nobody."""
    run("init")
    key, address = "01" * 32, "0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1"
    run("send", address, "1_000cby")
    assert ask("send", 1, 5, "--private-key", key)["payer"] == address
    result = run("send", 1, 5, "--from", address, COWBOY_PRIVATE_KEY=f"0x{key}")
    assert address in result.stdout
    assert ask("send", 1, 5, "--private-key", key, "--from", 4)["payer"] == ask("balance", 4)[0]["address"]


def test_call_returns_what_the_handler_returns_when_mined_or_asked(run: Run, ask: Ask) -> None:
    """A view changes nothing and costs nothing."""
    run("init")
    post = ask("deploy", "post.py")["actor"]
    short = post[:12]
    assert ask("call", short, "put", "@post.py")["return_value"] == f"0x{b'was noted'.hex()}"
    assert run("call", post, "put", "ten blinks").stdout.splitlines()[-1] == "returned  was noted"
    root = ask("status")["state_root"]
    assert run("call", short, "get", "--view").stdout.splitlines()[0] == "returned  ten blinks"
    assert ask("call", short, "get", "--view", "--from", post)["return_value"] == f"0x{b'ten blinks'.hex()}"
    assert ask("status")["state_root"] == root


def test_sdk_actor_gets_cbor_when_the_payload_is_json(run: Run, ask: Ask, tmp_path: Path) -> None:
    """What can be typed reaches a handler that decodes."""
    run("init")
    (tmp_path / "adder.py").write_text(
        "from cowboy_sdk import actor, public, codec\n\n@actor\nclass Adder:\n    @public\n"
        "    def add(self, numbers):\n        return b'%d' % sum(numbers['all'])\n"
        "\ndef add(payload):\n    return Adder().add(payload)\n"
    )
    adder = ask("deploy", "adder.py")["actor"]
    assert ask("call", adder, "add", '{"all": [1, 2, 39]}', "--cbor")["return_value"] == "0x3432"


def test_timers_are_listed_by_actor_height_payer_and_state(run: Run, ask: Ask, heartbeat: str) -> None:
    """Each filter alone, and a fire that failed among those that fired."""
    post = ask("deploy", "post.py", "--value", "100cby")["actor"]
    run("call", post, "later", 3)
    run("call", post, "later", 50)
    ask("mine", 4)

    def actors(*options: object) -> list[str]:
        return [entry["actor"] for entry in ask("timers", *options)["timers"]]

    assert actors() == [heartbeat, post]
    assert actors("--actor", post[:10]) == actors("--payer", post) == actors("--from-height", 50) == [post]
    assert actors("--to-height", 20) == [heartbeat]
    assert actors("--state", "due") == actors("--state", "deferred") == []
    assert actors("--state", "fired") == [post]
    assert run("timers", "--state", "due").stderr == "no such timers after block 8; 2 are live\n"
    assert run("timers", "--limit", 1).stderr == "these are the first 1; --limit 0 shows all\n"


def test_events_are_filtered_and_the_latest_are_shown_when_there_are_many(run: Run, ask: Ask, heartbeat: str) -> None:
    """By name, emitter and height."""
    ask("mine", 30)
    everything = ask("events", "--limit", 0)
    assert len(everything["events"]) == 8
    assert not everything["more"]
    assert ask("events", "--limit", 3) == {"events": everything["events"][-3:], "more": True}
    assert len(ask("events", "--name", "timer.fired", "--since", 12)["events"]) == 2
    assert len(ask("events", "--actor", heartbeat)["events"]) == 8
    assert run("events", "--limit", 3).stderr == "these are the last 3; --limit 0 shows all\n"
    assert run("events", "--name", "nothing").stderr == "no such events\n"


def test_params_tell_who_set_them_when_genesis_and_governance_have(run: Run, ask: Ask) -> None:
    """Each instruction of governance shows in the parameters it is about."""
    run("init", "--preset", "minimal", "--param", "timers.payload_bytes_max=2_000")
    run("govern", "timer-config", "--max-ttl-blocks", 100)
    run("govern", "basefee-config", "--alpha", 9)
    run("govern", "multipliers", "--timer", 20_000)
    run("govern", "set", "timers.gc_cycles_per_timer", 300)
    found = {item["path"]: (item["value"], item["set_by"]) for item in ask("params")["parameters"]}
    assert found["timers.payload_bytes_max"] == (2_000, "genesis")
    assert found["timers.max_ttl_blocks"] == (100, "governance")
    assert found["fees.alpha"] == (9, "governance")
    assert found["multipliers.timer"] == (20_000, "governance")
    assert found["timers.gc_cycles_per_timer"] == (300, "governance")
    assert found["calendar.ring_size"][1] == found["multipliers.user"][1] == "preset"
    assert len(ask("params", "multipliers", "fees.alpha")["parameters"]) == 5


def test_actor_gets_new_code_when_governance_upgrades_it(run: Run, ask: Ask, tmp_path: Path) -> None:
    """And a timer's end can be moved."""
    run("init")
    post = ask("deploy", "post.py", "--value", "100cby")["actor"]
    run("call", post, "later", 90)
    timer = ask("timers")["timers"][0]["timer_id"]
    run("govern", "extend-timer", timer, 200)
    assert ask("timers")["timers"][0]["expires_at"] == 200
    (tmp_path / "post.py").write_text(POST.replace("was noted", "is noted"))
    run("govern", "upgrade", post, "post.py")
    assert "returned  is noted" in run("call", post, "put", "x").stdout


def test_chain_is_the_same_when_it_is_exported_and_imported(run: Run, ask: Ask, heartbeat: str) -> None:
    """Then the copy goes its own way, and replay says where."""
    ask("mine", 30)
    assert ask("export", "saved")["height"] == 31
    root = ask("import", "saved", "copy")["state_root"]
    assert root == ask("status")["state_root"] == ask("status", "--chain", "copy")["state_root"]
    assert ask("replay", "--diff", "copy") == ask("replay", "--diff", "saved") == {"same": True, "parting": None}
    assert ask("replay", "--to", 31)["state_root"] == root
    assert ask("verify", "--chain", "copy")["holds"] is True

    run("send", 1, 1, "--chain", "copy")
    run("mine", 1)
    parting = ask("replay", "--diff", "copy", status=1)["parting"]
    assert parting["height"] == 32
    assert "part at block 32" in run("replay", "--diff", "copy", status=1).stdout
    assert ask("replay", "--diff", "copy", "--to", 31)["same"] is True


def test_proofs_hold_against_the_root_when_the_chain_is_gone(run: Run, ask: Ask, heartbeat: str) -> None:
    """Every kind of proof, checked in an empty folder; another root proves nothing."""
    root = ask("status")["state_root"]
    [timer] = ask("timers")["timers"]
    subjects = (
        ("account", "0"),
        ("slot", heartbeat, "beats"),
        ("storage", heartbeat),
        ("timer", timer["timer_id"]),
        ("timers", 0, 100),
    )
    for subject in subjects:
        made = ask("prove", *subject, "--out", "proof.json")
        checked = ask("verify-proof", "proof.json", "--root", root, status=0)
        assert (checked["holds"], checked["statement"]) == (True, made["statement"])
        assert json.loads(run("prove", *subject).stdout) == json.loads(Path("proof.json").read_text())
        if subject[0] == "account":
            [holder] = ask("balance", 0)
            assert checked["records"][0]["balance"] == holder["balance"]
    assert "1 timer is due in 0..=100, and no other" in run("verify-proof", "proof.json", "--root", root).stdout
    refused = run("verify-proof", "proof.json", "--root", f"0x{'11' * 32}", status=1)
    assert refused.stderr.startswith("error\n  what  the proof leads to the state root")
    run("prove", "timer", timer["timer_id"], "--height", timer["height"], "--out", "gone.json")


def test_directory_comes_from_the_environment_when_none_is_named(run: Run, tmp_path: Path) -> None:
    """TRAILBOSS_CHAIN holds for every command."""
    place = tmp_path / "elsewhere"
    run("init", TRAILBOSS_CHAIN=str(place))
    assert str(place) in run("status", TRAILBOSS_CHAIN=str(place)).stdout.replace("\n", "").replace(" " * 12, "")


@pytest.mark.parametrize("width", [80, 140])
def test_output_fits_when_the_terminal_has_so_many_columns(run: Run, ask: Ask, heartbeat: str, width: int) -> None:
    """No line of a list, a receipt, a story or an error is longer; only an id is never broken."""
    ask("mine", 12)
    [timer] = ask("timers")["timers"]
    commands = (
        ("init", "other"),
        ("status",),
        ("timers", "--state", "all"),
        ("timer", "explain", timer["timer_id"]),
        ("balance",),
        ("events",),
        ("params",),
        ("deploy", HEARTBEAT),
        ("mine", 3),
        ("export", "saved"),
        ("prove", "timers", 0, 9, "--out", "proof.json"),
        ("send", 1, 1),
        *((entry.name, "--help") for entry in COMMANDS),
    )
    for command in commands:
        output = run(*command, COLUMNS=str(width)).output
        assert max(map(len, output.splitlines())) <= width, output


def test_program_keeps_the_chain_when_every_command_is_a_process(tmp_path: Path) -> None:
    """As a shell runs it: separate processes, one directory, data and notes apart."""
    environment = {key: value for key, value in os.environ.items() if key not in ("TRAILBOSS_CHAIN", "COLUMNS")}

    def run_process(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "trailboss", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)

    run_process("init")
    run_process("deploy", HEARTBEAT, "--value", "100cby")
    run_process("mine", "--to", "25")
    listed = run_process("timers")
    heading, row = listed.stdout.splitlines()
    assert heading.split()[:3] == ["timer", "height", "state"]
    assert len(row.split()[0]) == 66
    assert "\x1b" not in listed.stdout + listed.stderr
    assert json.loads(run_process("verify", "--json").stdout)["blocks"] == 25
