"""A workload is read as it stands, or refused with key, value and rule; its seed alone spreads its timers."""

from pathlib import Path

import pytest

from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.run import MECHANISMS
from trailboss.simulator.workload import ActorGroup, Traffic, Workload, asked_fires, due_heights
from trailboss.simulator.workload_file import parse_workload, read_workload

GROUP = """
[[actors]]
name = "clocks"
funds = "1.5cby"
gas_limit = 100_000
"""
LEAST = 'name = "least"\nseed = 1\nblocks = 20\n' + GROUP
FULL = """
name = "full"
seed = 7
blocks = 50
preset = "minimal"
budget_cycles = 1_000_000

[params]
"lane.alpha" = 8

[params_of.auction]
"auction.delay_action" = 1

[[actors]]
name = "clocks"
count = 3
funds = 12
timers = 2
burst = 4
first = 5
spread = 9
period = 10
gas_limit = 100_000
work = 60_000
payload_bytes = 16
tip = 500
max_fee = 9_000
expiry = 20

[[transactions]]
per_block = 3
first = 2
last = 9
work = 1_000_000
"""


def test_workload_is_read_when_it_says_everything() -> None:
    """Every key has its place."""
    clocks = ActorGroup(
        name="clocks",
        count=3,
        funds=12,
        gas_limit=100_000,
        work=60_000,
        timers=2,
        burst=4,
        first=5,
        spread=9,
        period=10,
        payload_bytes=16,
        tip=500,
        max_fee=9_000,
        expiry=20,
    )
    assert parse_workload(FULL, MECHANISMS) == Workload(
        name="full",
        seed=7,
        blocks=50,
        actors=(clocks,),
        preset="minimal",
        budget_cycles=1_000_000,
        transactions=(Traffic(per_block=3, first=2, last=9, work=1_000_000),),
        params={"lane.alpha": 8},
        params_of={"auction": {"auction.delay_action": 1}},
    )


def test_workload_takes_defaults_when_it_says_little() -> None:
    """One timer an actor, once, in the first block, for nothing; CBY are exact."""
    (group,) = parse_workload(LEAST, MECHANISMS).actors
    assert group == ActorGroup(name="clocks", funds=1_500_000_000, gas_limit=100_000)
    assert (group.count, group.timers, group.burst, group.first, group.period, group.tip) == (1, 1, 1, 1, 0, 0)


@pytest.mark.parametrize(
    ("mend", "complaint"),
    [
        (("name =", "title ="), "the workload: .*unknown field `title`|the workload: .*missing required field `name`"),
        (("seed = 1\n", ""), "the workload: .*missing required field `seed`"),
        (("seed = 1", "seed = -1"), "seed = -1: expected `int` >= 0"),
        (("seed = 1", "seed = true"), "seed = True: expected `int`"),
        (("seed = 1", "seed ="), "the workload is not TOML"),
        (("blocks = 20", "blocks = 0"), "blocks = 0: expected `int` >= 1"),
        (('"least"', '""'), "name = '': expected `str` of length >= 1"),
        (('"least"', "5"), "name = 5: expected `str`"),
        (("blocks = 20", "blocks = 20\nbudget_cycles = 0"), "budget_cycles = 0: expected `int` >= 1"),
        (("blocks = 20", 'blocks = 20\npreset = "none"'), "unknown preset 'none'"),
        (("blocks = 20", "blocks = 20\nparams = 3"), "params = 3: expected `object`"),
        (("blocks = 20", 'blocks = 20\nparams = {"lane.alpa" = 1}'), "unknown parameter 'lane.alpa'"),
        (("blocks = 20", "blocks = 20\nparams_of = {sieve = {}}"), "params_of names 'sieve'; it may name: fifo, lane"),
        (("blocks = 20", "blocks = 20\ntransactions = 5"), "transactions = 5: expected `array`"),
        (
            ("blocks = 20", 'blocks = 20\nbudget_cycles = 600_000\nparams = {"auction.budget_cycles" = 600_000}'),
            "budget_cycles and the parameter 'auction.budget_cycles' say the same",
        ),
        (("blocks = 20", "blocks = 20\nbudget_cycles = 500_000"), "timers.lane_cycles_per_block = 500000 is too small"),
        ((GROUP, ""), "the workload: .*missing required field `actors`"),
        ((GROUP, "actors = []"), "the workload has no actors"),
        ((GROUP, GROUP + GROUP), "actors name 'clocks' stands for more than one group"),
        (('"clocks"', '"<b>"'), r"actors\[0\].name = '<b>': expected `str` matching regex"),
        (("gas_limit = 100_000", ""), r"actors\[0\]: .*missing required field `gas_limit`"),
        (("gas_limit = 100_000", "gas_limit = 10_000"), "gas_limit = 10,000 must be at least 30,000, work"),
        (("gas_limit = 100_000", "gas_limit = 300_000"), "gas_limit = 300,000 must be at most 250,000"),
        (("gas_limit", "work = 80_000\ngas_limit"), "gas_limit = 100,000 must be at least 110,000, work"),
        (("gas_limit", "gas = 1\ngas_limit"), r"actors\[0\]: .*unknown field `gas`"),
        (('"1.5cby"', '"1.5"'), r"actors\[0\].funds = '1.5' must be base units, or CBY"),
        (('"1.5cby"', '"0.1234567891cby"'), "nine decimals at most"),
        (('"1.5cby"', "1.5"), r"actors\[0\].funds = 1.5: expected `int`"),
        (("gas_limit", "first = 10\nspread = 11\ngas_limit"), "spread = 21 must be at most blocks = 20"),
        (("gas_limit", "timers = 33\nburst = 32\ngas_limit"), "burst = 1,056 must be at most 1,024"),
        (("gas_limit", "count = 10_000\ntimers = 11\ngas_limit"), "110,000 timers; it may have 100,000"),
        (("gas_limit", "payload_bytes = 70_000\ngas_limit"), "payload_bytes = 70,000 must be at most 65,536"),
        (("gas_limit", "tip = 6\nmax_fee = 5\ngas_limit"), "tip = 6 must be at most max_fee = 5"),
        ((GROUP, GROUP + "[[transactions]]\nper_block = 0\n"), r"transactions\[0\].per_block = 0: expected `int` >= 1"),
        ((GROUP, GROUP + "[[transactions]]\nfirst = 1\n"), r"transactions\[0\]: .*missing required field `per_block`"),
        ((GROUP, GROUP + "[[transactions]]\nper_block = 1\nfirst = 5\nlast = 4\n"), "first = 5 and last = 4 must lie"),
        ((GROUP, GROUP + "[[transactions]]\nper_block = 1\nlast = 21\n"), r"within 1..=20"),
    ],
)
def test_workload_is_refused_when_a_value_breaks_a_rule(mend: tuple[str, str], complaint: str) -> None:
    """The message names key, value and rule."""
    with pytest.raises(ConfigurationError, match=complaint):
        parse_workload(LEAST.replace(*mend), MECHANISMS)


def test_workload_is_refused_when_its_file_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a folder, and bytes that are no text."""
    with pytest.raises(ConfigurationError, match=r"cannot read the workload .*none.toml: No such file"):
        read_workload(tmp_path / "none.toml", MECHANISMS)
    with pytest.raises(ConfigurationError, match="cannot read the workload"):
        read_workload(tmp_path, MECHANISMS)
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(ConfigurationError, match=r"is not UTF-8: .* at byte 8"):
        read_workload(tmp_path / "latin.toml", MECHANISMS)


def test_budget_is_the_same_under_every_mechanism_unless_parameters_say_otherwise() -> None:
    """The auction's own default is five times the others'."""
    lane, auction = "timers.lane_cycles_per_block", "auction.budget_cycles"
    unsaid = parse_workload(LEAST, MECHANISMS)
    assert unsaid.overrides("auction") == {auction: 2_000_000}
    said = parse_workload(LEAST.replace("blocks = 20", "blocks = 20\nbudget_cycles = 600_000"), MECHANISMS)
    assert said.overrides("lane") == {lane: 600_000, auction: 600_000}
    own = LEAST.replace("blocks = 20", f'blocks = 20\nparams_of = {{auction = {{"{auction}" = 700_000}}}}')
    assert parse_workload(own, MECHANISMS).overrides("auction") == {auction: 700_000}
    assert parse_workload(own, MECHANISMS).overrides("fifo") == {auction: 2_000_000}


def test_heights_are_spread_by_the_seed_alone() -> None:
    """The same file gives the same heights on every machine; these are held for good."""
    workload = parse_workload(FULL, MECHANISMS)
    (group,) = workload.actors
    heights = [due_heights(workload, group, number) for number in range(group.count)]
    assert heights == [[5] * 4 + [10] * 4, [6] * 4 + [12] * 4, [7] * 4 + [9] * 4]
    again = parse_workload(FULL.replace("seed = 7", "seed = 8"), MECHANISMS)
    assert [due_heights(again, group, number) for number in range(group.count)] != heights


@pytest.mark.parametrize(("period", "asked"), [(0, 8), (10, 40), (45, 12), (100, 8)])
def test_asked_counts_the_fires_that_fit_when_none_is_late(period: int, asked: int) -> None:
    """Four timers at 5, four at 10, in 50 blocks: with period 10 each has five fires; with 45 those at 5 have two."""
    group = ActorGroup(name="x", funds=0, gas_limit=50_000, timers=1, burst=4, first=5, period=period)
    later = ActorGroup(name="x", funds=0, gas_limit=50_000, timers=1, burst=4, first=10, period=period)
    workload = Workload(name="w", seed=0, blocks=50, actors=(group,))
    assert asked_fires(workload, group, 0) + asked_fires(workload, later, 0) == asked
