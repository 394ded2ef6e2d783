"""One workload through every mechanism: what can be worked out by hand, and that a second run is the same."""

from pathlib import Path

import pytest

from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.measures import MechanismResult
from trailboss.simulator.run import MECHANISMS, compare
from trailboss.simulator.workload_file import parse_workload, read_workload

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/workloads"

# Room for four fires a block; six are due at once, of which two offer a tip.
SMALL = """
name = "six at once"
seed = 0
blocks = 9
budget_cycles = 600_000

[[actors]]
name = "plain"
count = 4
funds = "100cby"
first = 2
gas_limit = 140_000
work = 100_000

[[actors]]
name = "keen"
count = 2
funds = "100cby"
first = 2
period = 5
gas_limit = 140_000
work = 100_000
tip = 50

[[transactions]]
per_block = 2

[[transactions]]
per_block = 1
first = 3
last = 4
work = 2_000_000
"""


def late(result: MechanismResult) -> list[tuple[int | None, int | None]]:
    """Return the median and the greatest lateness of each group."""
    return [(group.outcome.late_p50, group.outcome.late_max) for group in result.groups]


@pytest.fixture(scope="module")
def results() -> dict[str, MechanismResult]:
    """Return what every mechanism makes of the small workload."""
    return {result.mechanism: result for result in compare(parse_workload(SMALL, MECHANISMS))}


def test_every_mechanism_runs_the_same_workload(results: dict[str, MechanismResult]) -> None:
    """All deliver everything; nobody is charged more than once, and all have the same money to begin with."""
    for result in results.values():
        outcome = result.outcome
        assert (outcome.asked, outcome.delivered, outcome.scheduled, outcome.waiting) == (8, 8, 10, 2)
        assert (outcome.reverted, outcome.expired, outcome.unfunded, outcome.cancelled) == (0, 0, 0, 0)
        assert (result.transactions, result.transactions_refused) == (2 * 9 + 2, 0)
        assert result.budget_cycles == 600_000
        assert result.balances + result.burned == result.supply
        assert outcome.paid == outcome.burned + outcome.tips
        assert sum(line.timer_cycles for line in result.timeline) == outcome.cycles_used
        assert [actor.delivered for actor in result.actors] == [1, 1, 1, 1, 2, 2]
        assert outcome.jain == 10**9
    assert len({result.supply for result in results.values()}) == 1
    assert len({result.state_root for result in results.values()}) == len(MECHANISMS)
    # The two large transactions, and nothing else, lift the use above two million cycles.
    assert [line.block for line in results["fifo"].timeline if line.cycles > 2_000_000] == [3, 4]


def test_fires_come_in_the_order_of_the_mechanism(results: dict[str, MechanismResult]) -> None:
    """Six fires of some 110,000 cycles are due in block 2, and four fit.

    FIFO runs those that were made first, and the two who tip wait; elsewhere they run in time. In the lane and in
    Globalbox the tip is paid for 110,000 cycles, in the auction for the question to the agent besides.
    """
    assert late(results["fifo"]) == [(0, 0), (0, 1)]
    for name in ("lane", "auction", "globalbox"):
        assert late(results[name])[1] == (0, 0)
        assert late(results[name])[0][1] == 1
    assert results["fifo"].outcome.tips == 0
    assert 4 * 50 * 110_000 <= results["lane"].outcome.tips <= 4 * 50 * 111_000
    assert 4 * 50 * 110_000 <= results["globalbox"].outcome.tips <= 4 * 50 * 111_000
    assert 4 * 50 * 120_000 <= results["auction"].outcome.tips <= 4 * 50 * 122_000


@pytest.mark.determinism
def test_second_run_is_the_same() -> None:
    """Every number and every root."""
    workload = parse_workload(SMALL, MECHANISMS)
    told: list[int] = []
    assert compare(workload, on_block=lambda: told.append(1)) == compare(workload)
    assert len(told) == workload.blocks * len(MECHANISMS)


def test_actors_that_cannot_be_set_up_are_refused_with_the_reason_of_the_chain() -> None:
    """A deployment costs more than the chain lets a transaction use."""
    costly = SMALL.replace("[[actors]]", '[params]\n"costs.deploy" = 19_000_000\n\n[[actors]]', 1)
    with pytest.raises(ConfigurationError, match="the actors cannot be set up under lane: E1005 out_of_cycles"):
        compare(parse_workload(costly, ["lane"]), ["lane"])


def test_calm_is_delivered_in_time_by_all_when_only_prices_differ() -> None:
    """What the comment of the workload says."""
    results = compare(read_workload(EXAMPLES / "calm.toml", MECHANISMS))
    assert {result.outcome.delivered for result in results} == {results[0].outcome.asked}
    assert {result.outcome.late_max for result in results} == {0}
    tips = [result.outcome.tips for result in results]
    assert tips[0] == 0
    assert all(tips[1:])
    paid = {result.mechanism: result.outcome.paid for result in results}
    assert paid["fifo"] < paid["globalbox"] < paid["auction"]
    assert paid["globalbox"] < paid["lane"]


def test_flood_holds_up_the_regulars_under_fifo_alone() -> None:
    """What the comment of the workload says: they are late behind all of it, or hardly."""
    results = {result.mechanism: result for result in compare(read_workload(EXAMPLES / "flood.toml", MECHANISMS))}
    regulars = {name: result.groups[2].outcome for name, result in results.items()}
    assert regulars["fifo"].late_max is not None
    assert regulars["fifo"].late_max > 10
    assert regulars["fifo"].delivered < regulars["globalbox"].delivered < regulars["lane"].delivered
    assert regulars["auction"].late_max == 0
    assert results["fifo"].outcome.expired > results["lane"].outcome.expired > results["auction"].outcome.expired == 0
