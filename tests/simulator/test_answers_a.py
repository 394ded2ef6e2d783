"""The studies of the lane's order: quick settings run and repeat, and the laws that answers rest on hold."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.agents.contenders import Contender
from trailboss.simulator.alone import Alone
from trailboss.simulator.metrics.weights import WeightMeasure
from trailboss.simulator.studies import fairness_window, fragmentation, median_shocks, tier_multipliers
from trailboss.simulator.study.catalogue import Mode, find_case
from trailboss.simulator.study.contest import TIP, actors_of, contest

STUDIES = {
    "fairness-window": ("heavy 100", "bursty 300"),
    "fragmentation": ("actor / 10 actors / 1", "new deployers / 10 actors / 1"),
    "median-shocks": ("crowd / 1", "manipulator / 300"),
    "tier-multipliers": ("{0.8, 1, 1.5, 2.5} / full / hurried", "{0.8, 1, 1.5, 2.5} of basefee ÷ 10 / calm / standard"),
}
WHOLE = 10**9


def run(name: str, point: str, seed: int = 1, **settings: Any) -> Mapping[str, float]:
    """Run one replication of a study with its quick settings, or some others."""
    case = find_case(name, Mode.QUICK)
    return case.study.replicate(replace(case.settings, **settings), case.point(point), seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_replications_repeat(name: str) -> None:
    """A replication gives the same measures again, another seed gives others, and none has the name of a fact."""
    for point in STUDIES[name]:
        found = run(name, point)
        assert found == run(name, point)
        assert found != run(name, point, seed=2)
        assert not found.keys() & find_case(name, Mode.QUICK).point(point).facts.keys()


# Weights


@pytest.mark.parametrize("lane", [{}, {"lane.weight_per_deployer": 1}, {"lane.fires_median_blocks": 5}])
def test_weights_are_those_of_the_lane(lane: dict[str, int]) -> None:
    """W as it is measured is W in the decision record of the next block."""
    agents = [
        Contender(name="one", count=3, gap=3.0, tip=TIP),
        Contender(name="split", actors=4, timers=6, tip=TIP),
        Contender(name="late", gap=2.5, tip=TIP, since=40),
    ]
    ground = contest(1, agents, 3, {"lane.fairness_window_blocks": 20, **lane})
    world, weights = Alone(ground, keeps_records=True), WeightMeasure(ground)
    compared = set[int]()
    for _ in range(80):
        expected = {actor: round(weights.weight(actor) * WHOLE) for agent in ground.agents for actor in agent.actors}
        block = world.build()
        weights.see(block)
        decided = {} if world.record is None else {one.timer_id: one.weight for one in world.record.decided}
        for fire in block.fires:
            assert decided[fire.plan.timer_id] == expected[fire.plan.order.actor]
            compared.add(expected[fire.plan.order.actor])
    assert len(compared) > 3


# Contenders


def test_contenders_always_want_their_timers() -> None:
    """An agent has as many timers as it wants, of its actors in turn, from the first height to the last."""
    row = Contender(name="split", actors=3, timers=4, since=5, until=30)
    world = Alone(contest(1, [row], 10, {}))
    owners = list[int]()
    for height in range(1, 60):
        block = world.build()
        owners += [plan.order.actor for plan in block.accepted]
        assert not block.accepted or 5 <= height < 30
        if 5 <= height < 28 and height % 2:
            assert world.pending() == 4
    assert world.pending() == 0
    assert set(owners) == {1, 2, 3}
    assert all(one % 3 + 1 == two for one, two in pairwise(owners))


def test_bursts_hold_all_heights() -> None:
    """An agent with bursts has timers due within them alone."""
    world = Alone(contest(1, [Contender(name="bursts", timers=5, bursts=40, burst=7)], 10, {}))
    plans = [plan for _ in range(200) for plan in world.build().accepted]
    assert len({plan.order.height for plan in plans}) >= 20
    assert all(plan.order.height % 40 < 7 for plan in plans)


def test_a_burst_longer_than_its_period_is_refused() -> None:
    """The refusal names the field."""
    assert "burst = 9" in str(Contender(name="x", bursts=8, burst=9).problem(1))


# Laws


def test_one_actor_gains_nothing() -> None:
    """An owner of one actor has the same under both rules, to the last measure."""
    one, two = (run("fragmentation", f"{rule} / 1 actors / 1") for rule in ("actor", "deployer"))
    assert one == two


@pytest.mark.slow
def test_splitting_gains_by_actor_alone() -> None:
    """By actor ten have 10 ÷ 30 of the lane; by deployer what one has; by new deployers they have it again."""
    shares = {
        name: run("fragmentation", f"{name} / 1", warm_up=600, blocks=400)["share"]
        for name in ("deployer / 1 actors", "actor / 10 actors", "deployer / 10 actors", "new deployers / 10 actors")
    }
    assert shares["actor / 10 actors"] == pytest.approx(1 / 3, abs=0.02)
    assert shares["new deployers / 10 actors"] == pytest.approx(1 / 3, abs=0.02)
    assert shares["deployer / 10 actors"] == pytest.approx(shares["deployer / 1 actors"], abs=0.01)


def test_twice_the_tip_is_never_overtaken() -> None:
    """Against owners who pay more than twice as much, ten actors fire nothing once the first blocks are over."""
    assert run("fragmentation", "actor / 10 actors / 2.1")["share"] < 0.001


def test_no_multiplier_leads_away_from_zero() -> None:
    """Tiers on the median stay at 0 for ever if they begin there; on the basefee they do not."""
    from_median = run("tier-multipliers", "{0.8, 1, 1.5, 2.5} / full / hurried / from 0", blocks=100)
    from_basefee = run("tier-multipliers", "{0.8, 1, 1.5, 2.5} of basefee ÷ 10 / full / hurried / from 0", blocks=100)
    assert (from_median["zero"], from_median["paid"]) == (1.0, 0.0)
    assert from_basefee["zero"] == 0.0
    assert from_basefee["separation"] > 5 > abs(from_median["separation"])


@pytest.mark.slow
def test_lags_grow_with_the_window() -> None:
    """A newcomer is favoured for longer, and a new identity gains more, with a longer window."""
    short, long = (run("fairness-window", f"heavy {window}") for window in (100, 1_000))
    assert long["newcomer_lag"] > 4 * short["newcomer_lag"]
    assert long["renamed_gain"] > 4 * short["renamed_gain"]


@pytest.mark.slow
def test_manipulators_take_the_weight_of_incumbents() -> None:
    """Many actors with a fire each bring the median down, and the incumbents' W to 1."""
    found = run("median-shocks", "manipulator / 1")
    assert found["weight_400"] < 1.01
    assert found["weight_1100"] > 1.1


# Refusals


@pytest.mark.parametrize(
    ("study", "wrong", "words"),
    [
        (fairness_window, {"windows": (300, 100)}, r"windows = \[300, 100\]"),
        (fragmentation, {"splits": (2, 10)}, r"splits = \[2, 10\]"),
        (fragmentation, {"crossed": (7,)}, "crossed"),
        (median_shocks, {"smoothing": (10, 20)}, r"smoothing = \[10, 20\]"),
        (median_shocks, {"blocks": 1_000}, "blocks = 1000"),
        (tier_multipliers, {"sets": ((1, 2, 3, 4),)}, r"sets\[0\]"),
    ],
)
def test_wrong_settings_are_refused(study: Any, wrong: dict[str, Any], words: str) -> None:
    """The refusal names field and value, before anything runs."""
    settings = find_case(study.__name__.rpartition(".")[2].replace("_", "-"), Mode.QUICK).settings
    with pytest.raises(ConfigurationError, match=words):
        study.points(replace(settings, **wrong))


def test_actors_are_found_by_the_name_of_their_row() -> None:
    """A row of several agents is found by its name, and another one's name that begins alike is not."""
    ground = contest(1, [Contender(name="a", count=2), Contender(name="ab"), Contender(name="c", actors=2)], 5, {})
    assert actors_of(ground, ["a", "c"]) == [1, 2, 4, 5]
