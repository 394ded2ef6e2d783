"""Looking at blocks, and at the timer lane in them, typed as a person types it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.e2e.conftest import Ask, Run
from tests.integration.helpers import answers, deploy_puppet, perform, schedule, step
from trailboss.cli.main import app
from trailboss.testing import LocalChain

NARROW = {
    "timers.lane_cycles_per_block": 100_000,
    "timers.max_cycles_per_fire": 100_000,
    "lane.max_cycles_per_fire": 60_000,
}
"""A lane for six fires of a puppet."""
ACTIVATION, SCHEDULED, DUE = 10, 36, 44


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a chain whose lane begins at 10: at 44 thirty timers compete; one waits over the cap."""
    path = tmp_path_factory.mktemp("lane") / "chain"
    with LocalChain(data_dir=path, params=NARROW) as chain:
        actor = deploy_puppet(chain)
        schedule(actor, DUE)
        chain.activate_lane(ACTIVATION)
        chain.advance_to(SCHEDULED - 1)
        offer = {"gas_limit": 40_000, "max_fee_per_cycle": 30_000}
        steps = (
            step("schedule_timer", DUE, b"%d" % number, max_priority_fee_per_cycle=1_000 + number, **offer)
            for number in range(30)
        )
        answers(perform(actor, *steps))
        schedule(actor, DUE + 60, max_fee_per_cycle=chain.lane_basefee, max_priority_fee_per_cycle=9)
        chain.advance_to(DUE + 2)
    return path


@pytest.fixture
def run(run: Run, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command on that chain."""
    monkeypatch.setenv("TRAILBOSS_CHAIN", str(directory))
    return run


@pytest.mark.parametrize("columns", [80, 140])
@pytest.mark.parametrize("arguments", [(SCHEDULED,), (DUE,), (DUE, "--lane"), (0,), ()])
def test_block_fits_when_the_terminal_has_so_many_columns(
    run: Run, arguments: tuple[object, ...], columns: int
) -> None:
    """Whatever it holds."""
    lines = run("block", *arguments, columns=columns).stdout.splitlines()
    assert max(map(len, lines)) <= columns


def test_block_tells_header_transactions_receipts_and_events(run: Run, ask: Ask, directory: Path) -> None:
    """What is printed is what the chain holds; the last block if no height is given."""
    said = run("block", SCHEDULED).stdout
    for word in ("ExecuteActor: perform", "timer.scheduled", "receipt of", "state root"):
        assert word in said
    document = ask("block", SCHEDULED)
    with LocalChain(data_dir=directory, params=NARROW) as chain:
        assert document["hash"] == str(chain.block(SCHEDULED).hash)
        assert document["header"]["state_root"] == f"0x{bytes(chain.block(SCHEDULED).header.state_root).hex()}"
    assert document["transactions"][0]["from"].startswith("0x")
    assert [receipt["status"] for receipt in document["receipts"]] == ["ok"]
    assert len(document["receipts"][0]["events"]) == 30
    assert ask("block")["header"]["height"] == DUE + 2


def test_block_shows_the_first_rows_when_there_are_more_than_the_limit(run: Run) -> None:
    """And says how many there are."""
    assert "these are the first 3 of 30; --limit 0 shows all" in run("block", SCHEDULED, "--limit", 3).output
    assert "these are the first" not in run("block", SCHEDULED, "--limit", 0).output


def test_block_says_so_when_nothing_happened_in_it(run: Run) -> None:
    """An idle block has a header and no more; nothing was due in it."""
    assert "nothing happened in block 6" in run("block", 6).output
    assert run("block", 6, "--lane").stdout == ""
    assert "no timer that could run was due in block 6" in run("block", 6, "--lane").output


def test_block_is_not_found_when_the_chain_is_not_that_high(run: Run) -> None:
    """It says how high the chain is."""
    said = " ".join(run("block", 999, status=1).output.split())
    assert f"there is no block 999: the chain is at height {DUE + 2}" in said


@pytest.mark.spec("L-09")
def test_lane_tells_ranks_and_why_the_others_could_not_win(run: Run, ask: Ask) -> None:
    """The table for people, the same numbers for programs."""
    said = run("block", DUE, "--lane").stdout
    assert "cut-off at rank 6" in said
    assert "24 outranked: the lane had" in said
    assert "1 over the cap of 60,000 cycles a fire" in said
    view = ask("block", DUE, "--lane")["lane"]
    ranked = [row for row in view["rows"] if row["rank"] is not None]
    assert [row["rank"] for row in ranked] == [1, 2, 3, 4, 5, 6]
    assert [row["tip"] for row in ranked] == [1_029 - place for place in range(6)]
    assert {(row["weight"], row["outcome"]) for row in ranked} == {("2.0", "fired")}
    assert ranked[0]["effective_priority"] == "2058"
    assert [row["reason"] for row in view["rows"] if row["rank"] is None] == ["over the cap of one fire"]
    assert (len(view["runners_up"]), view["not_examined"]) == (16, {"outranked": 24, "over_cap": 1})
    assert ask("block", 6, "--lane") == {"height": 6, "lane": None}


def test_status_tells_the_mechanism_in_force_and_what_the_lane_burned(run: Run, ask: Ask) -> None:
    """Since when, at which price, and how much of what was burned is the lane's."""
    said = run("status").stdout
    assert "lane since 10" in " ".join(said.split())
    assert "lane basefee" in said
    document = ask("status")
    lane = document["lane"]
    assert (document["mechanism"], document["genesis"]["mechanism"]) == ("lane", "fifo")
    assert (lane["active"], lane["activation_height"]) == (True, ACTIVATION)
    assert 0 < lane["burned"] < document["burned"]
    assert lane["basefee"] == ask("block", DUE + 2, "--lane")["lane"]["next_lane_basefee"]


def test_timers_tell_fees_and_who_cannot_compete_when_the_lane_is_active(run: Run, ask: Ask) -> None:
    """One is over the cap, one is priced out by the rise of the basefee, the rest wait for their turn."""
    assert "max fee" in run("timers", columns=160).stdout
    [large] = ask("timers", "--state", "over-cap")["timers"]
    assert (large["over_cap"], large["fees"], large["deferred_for"]) == (True, "default", "over_cap")
    [cheap] = ask("timers", "--state", "priced-out")["timers"]
    assert (cheap["max_fee_per_cycle"], cheap["priced_out"], cheap["state"]) == (1_000, True, "live")
    assert ask("status")["lane"]["basefee"] > 1_000
    waiting = [entry for entry in ask("timers", "--state", "due")["timers"] if not entry["over_cap"]]
    assert {(entry["fees"], entry["max_fee_per_cycle"]) for entry in waiting} == {("frozen", 30_000)}


@pytest.mark.parametrize(
    ("path", "value", "number"),
    [
        ("lane.activation_height", "+4", 4),
        ("lane.activation_height", "1_000", 1_000),
        ("lane.clamps_gas_limit", "on", 1),
        ("lane.clamps_gas_limit", "0", 0),
        ("lane.weight_min", "1.25", 1_250_000_000),
        ("lane.tier_fast", "1.75", 17_500),
        ("lane.tier_fast", "17_500", 17_500),
        ("lane.max_cycles_per_fire", "300_000", 300_000),
    ],
)
def test_parameter_is_set_when_its_value_is_written_as_people_write_it(
    tmp_path: Path, path: str, value: str, number: int
) -> None:
    """Blocks ahead, switches, decimals of what is kept in parts."""
    place = {"TRAILBOSS_CHAIN": str(tmp_path / "chain")}
    run = CliRunner()
    assert run.invoke(app, ["init"], env=place).exit_code == 0
    result = run.invoke(app, ["govern", "set", path, value, "--json"], env=place)
    [event] = json.loads(result.stdout)["events"]
    assert event["data"]["value"] == number


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("lane.activation_height", "soon", "lane.activation_height 'soon' is not a number"),
        ("lane.clamps_gas_limit", "maybe", "lane.clamps_gas_limit 'maybe' is neither on nor off"),
        ("lane.weight_min", "1.5x", "lane.weight_min '1.5x' is not a number"),
        ("lane.tier_fast", "1.00001", "lane.tier_fast '1.00001' is too fine"),
        ("lane.max_cycles_per_fire", "1.5", "lane.max_cycles_per_fire '1.5' is not a number"),
        ("lane.basefee_min", str(2**64), f"lane.basefee_min {2**64} is too large"),
    ],
)
def test_parameter_is_refused_when_its_value_cannot_be_read(run: Run, path: str, value: str, said: str) -> None:
    """Before anything is sent."""
    assert said in " ".join(run("govern", "set", path, value, status=2).output.split())
