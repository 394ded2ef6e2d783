"""Dry runs and forecasts on the command line: what they show, and what they refuse."""

from pathlib import Path

import pytest

from tests.e2e.conftest import Ask, Run

TILL = """
import pvm_host

def init(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + 5, b"", gas_limit=100_000)

def add(payload):
    print("adds", payload)
    total = int(pvm_host.get_state(b"total") or b"0") + int(payload)
    pvm_host.set_state(b"total", b"%d" % total)
    return b"%d" % total

def handle_timer(payload):
    if pvm_host.get_state(b"total") == b"7":
        raise ValueError("seven")
    init(payload)
"""


@pytest.fixture
def till(run: Run, ask: Ask) -> str:
    """Return the address of an actor on a new chain."""
    Path("till.py").write_text(TILL)
    run("init")
    return str(ask("deploy", "till.py", "--value", "20cby")["actor"])


def test_dry_run_shows_the_receipt_and_changes_nothing(run: Run, ask: Ask, till: str) -> None:
    """As text and as JSON; the real call gives the same."""
    before = ask("status")
    shown = run("call", till, "add", "5", "--dry-run").stdout
    assert "dry run   nothing is sent, and nothing has changed" in shown
    assert "status    ok, as block 2 would have it" in shown
    assert "returned  5" in shown
    assert "adds b'5'" in shown
    told = ask("call", till, "add", "5", "--dry-run")
    assert ask("status") == before
    assert ask("call", till, "add", "5") == told


def test_assumptions_hold_for_the_dry_run(run: Run, ask: Ask, till: str) -> None:
    """Money, slots, code and basefees; anyone is the sender."""
    slot, code = f"slot:{till}:total=2", f"code:{till}=other.py"
    Path("other.py").write_text("def add(payload):\n    return b'other'\n")
    assert ask("call", till, "add", "5", "--dry-run", "--assume", slot)["return_value"] == "0x37"
    assert ask("call", till, "add", "5", "--dry-run", "--assume", code)["return_value"] == f"0x{b'other'.hex()}"
    Path("other.py").write_bytes(b"x = '\xff'\n")
    refused = run("call", till, "add", "5", "--dry-run", "--assume", code, status=2)
    assert "the source other.py is not UTF-8 at byte 5" in refused.stderr
    free = ("--assume", "cycle_basefee=0", "--assume", "cell_basefee=0")
    assert ask("call", till, "add", "5", "--dry-run", *free)["fee_paid"] == 0
    poor = run("send", "1", "5cby", "--dry-run", "--assume", "balance:0=1cby", status=1)
    assert "insufficient_gas_balance" in poor.stderr
    anyone = ("--from", f"0x{'42' * 20}", "--assume", f"balance:0x{'42' * 20}=900cby")
    assert ask("send", "1", "5cby", "--dry-run", *anyone)["status"] == "ok"


def test_dry_run_of_a_timer_shows_its_next_fire(run: Run, ask: Ask, till: str) -> None:
    """In the block in which it comes; with the line that raises; and again once it has fired."""
    [timer] = [each["timer_id"] for each in ask("timers")["timers"]]
    fine = ask("timer", "dry-run", timer[:12])
    assert (fine["status"], fine["block_height"]) == ("ok", 6)
    broken = run("timer", "dry-run", timer, "--assume", f"slot:{till}:total=7", status=1)
    assert "status   reverted, as block 6 would have it" in broken.stdout
    assert 'line 15, in handle_timer: raise ValueError("seven")' in broken.stderr
    run("mine", 8)
    assert "is not live any more" in run("timer", "dry-run", timer, status=1).stderr
    assert ask("timer", "dry-run", timer, "--at-height", 4) == fine


def test_forecast_lists_what_comes(run: Run, ask: Ask, till: str) -> None:
    """As a table that fits a terminal, of one timer, and as JSON."""
    shown = run("forecast", "--blocks", 12)
    rows = [line.split() for line in shown.stdout.splitlines()]
    assert rows[0] == ["timer", "due", "block", "what", "price", "CBY"]
    assert [row[1:4] for row in rows[1:]] == [["6", "6", "fires"], ["11", "11", "fires"]]
    assert all(len(line) <= 80 for line in shown.stdout.splitlines())
    assert "1 timer is due after these blocks" in shown.stderr
    [timer] = ask("timers")["timers"]
    found = ask("forecast", timer["timer_id"][:12])
    assert [each["block"] for each in found["timers"]] == [6]
    assert (found["from_height"], found["last_height"]) == (1, 101)
    quote = run("quote", "--height", 11, "--gas-limit", 50_000).stdout
    assert "if nothing else is sent, it runs in block 11, at 10,000 a cycle" in " ".join(quote.split())


@pytest.mark.parametrize(
    ("status", "options", "what"),
    [
        (2, ("--dry-run", "--assume", "nonsense"), "cannot assume 'nonsense'"),
        (2, ("--dry-run", "--assume", "balance:0"), "cannot assume 'balance:0'"),
        (2, ("--dry-run", "--assume", "balance:0=1", "--assume", "balance:0=2"), "balance:0 is assumed twice"),
        (2, ("--dry-run", "--assume", "cycle_basefee=x"), "cycle_basefee 'x' is not a number"),
        (1, ("--dry-run", "--assume", "lane_basefee=5"), "the timer lane is not active"),
        (1, ("--dry-run", "--at-height", "99"), "there is no block 99"),
        (2, ("--dry-run", "--impersonate", "1"), "both --dry-run and --impersonate are given"),
        (2, ("--dry-run", "--view"), "both --view and --dry-run are given"),
        (2, ("--assume", "balance:0=1"), "--assume or --at-height is given without --dry-run"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    run: Run, till: str, status: int, options: tuple[str, ...], what: str
) -> None:
    """By what is wrong with them."""
    refused = run("call", till, "add", "5", *options, status=status)
    assert what in " ".join(refused.stderr.split())
