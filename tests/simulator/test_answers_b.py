"""Studies of multiplier, basefee rule, caps, activation, ageing and mechanisms, and the laws that they rest on."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import pytest
from msgspec.structs import replace

from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.metrics.statistics import Interval
from trailboss.simulator.studies import activation, ageing, basefee_rule, caps, lane_multiplier, mechanisms
from trailboss.simulator.study.basefee_map import REST, BasefeeMap, linear_threshold, rule_of, stable_below
from trailboss.simulator.study.catalogue import Case, Mode, find_case, provenance_of
from trailboss.simulator.study.replication import measured, task_of
from trailboss.simulator.study.results import StoredResults, results_of
from trailboss.simulator.study.verdicts import UNSHOWN, difference_text, shown, sign

NAMES = ("activation", "ageing", "basefee-rule", "caps", "lane-multiplier", "mechanisms")


def quick(name: str) -> Case:
    """Return a study with its quick settings."""
    return find_case(name, Mode.QUICK)


def results_from(case: Case, measures: Mapping[str, Sequence[Mapping[str, float]]]) -> StoredResults:
    """Return results with the measures of each replication of each point."""
    rows = {(point, at): dict(row) for point, found in measures.items() for at, row in enumerate(found, 1)}
    return results_of(provenance_of(case), case.settings, rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_replication_is_the_same_each_time(name: str) -> None:
    """Two points of the quick settings give equal measures on a second run, and not those of another seed."""
    case = quick(name)
    for point in (case.points[0], case.points[-1]):
        first = measured(task_of(case, point, 1))
        assert repr(measured(task_of(case, point, 1))) == repr(first)
    assert measured(task_of(case, case.points[-1], 2)) != first


# Multiplier


def test_a_lower_multiplier_is_used_only_where_the_lane_basefee_rests() -> None:
    """Above the target the lane basefee takes up what the multiplier takes off, so that a cycle costs the same."""
    settings = replace(quick("lane-multiplier").settings, blocks=150, warm_up=100)

    def run(load: float, multiplier: int) -> Mapping[str, float]:
        facts = {"load": load, "elasticity": 2.0, "multiplier": multiplier}
        return lane_multiplier.replicate(settings, lane_multiplier.Point("case", facts), 1)

    low, full = run(0.15, 8_000), run(0.15, 10_000)
    assert low["use"] > 1.2 * full["use"]
    low, full = run(0.9, 8_000), run(0.9, 10_000)
    assert low["paid"] == pytest.approx(full["paid"], rel=0.05)
    assert low["lane_basefee"] > full["lane_basefee"]


# Basefee rule


@pytest.mark.parametrize("lag", [0, 1, 10])
@pytest.mark.parametrize("rule", ["as written", "alpha 8", "exponential"])
def test_a_rule_is_stable_up_to_the_elasticity_of_the_linear_map(rule: str, lag: int) -> None:
    """Near rest the chain's rule is the linear map, so a nudge dies out below 2 sin(π ÷ (4 lag + 2)) ÷ gain."""
    lane = basefee_rule.params_of(rule).lane
    found = stable_below(rule_of(lane), lane.elasticity, lag)
    assert found == pytest.approx(linear_threshold(basefee_rule.gain_of(rule), lag), rel=0.02)


def test_neighbours_meet_below_the_threshold_and_part_above() -> None:
    """At elasticity 4 the Lyapunov exponent is below 0 under EIP-1559's rule, and above it under the written one."""
    first = REST + REST // 9
    calm, wild = (
        BasefeeMap(rule=rule_of(basefee_rule.params_of(name).lane), elasticity=4.0, most=2, lag=0)
        for name in ("alpha 8", "as written")
    )
    assert calm.exponent(first, 1_000) < -0.1
    assert calm.settling(first, 1_000) < 20
    assert wild.exponent(first, 1_000) > 0.1


# Caps


def test_a_frozen_cap_is_priced_out_and_a_default_at_the_fire_is_not() -> None:
    """After a tenfold rise nothing that was capped at twice the old basefee fires."""
    settings = caps.Settings(blocks=100, warm_up=60, growths=(10,), caps=(2,), aheads=(60,))
    frozen, at_the_fire = (caps.replicate(settings, point, 1) for point in caps.points(settings))
    assert frozen["lost_default_60"] > 0.7
    assert frozen["lost_2_60"] > 0.7
    assert at_the_fire["lost_default_60"] == 0
    assert at_the_fire["bill_default_60"] > 2


# Activation


@pytest.mark.slow
def test_every_timer_of_the_backlog_has_one_fate() -> None:
    """Set aside all expire; clamped those within the cap fire and all others revert; under a higher cap all fire."""
    case = quick("activation")
    found = {point.name: activation.replicate(case.settings, point, 1) for point in case.points}
    for measures in found.values():
        assert sum(measures[fate] for fate in ("ok", "reverted", "expired", "waiting")) == pytest.approx(1)
    assert found["set aside, small fires"]["expired"] == 1
    assert found["clamped, small fires"]["ok"] == 1
    assert found["clamped, large fires"]["reverted"] == 1
    assert found["cap of 550,000, large fires"]["ok"] == 1


# Ageing


def test_ageing_shortens_the_tail_of_low_tips_and_cannot_help_those_without_a_tip() -> None:
    """A weight multiplies a tip: among equal tips the oldest comes first, and 0 stays 0."""
    case = quick("ageing")
    chosen = [point for point in case.points if point.facts["load"] == "below"]
    plain, aged = (ageing.replicate(case.settings, point, 1) for point in (chosen[0], chosen[-1]))
    assert aged["low_late_p99"] < plain["low_late_p99"]
    assert aged["none_expired_share"] == pytest.approx(plain["none_expired_share"], abs=0.05)


def test_the_slowest_ageing_is_recommended_that_no_faster_one_improves_on() -> None:
    """A faster one counts only if its interval shows it to be better for low tips, and worse for no tips."""
    case = quick("ageing")
    tails = {0: 80.0, 100: 30.0, 10: 30.0}

    def rows(age: int, high: float) -> list[dict[str, float]]:
        same = dict.fromkeys(ageing.JUDGED, 1.0)
        return [same | {"low_late_p99": tails[age] + shift, "high_late_p99": high} for shift in (-1.0, 0.0, 1.0)]

    def best(high: Mapping[int, float]) -> int:
        found = {point.name: rows(int(age := point.facts["age"]), high[int(age)]) for point in case.points}
        return ageing.best_age(results_from(case, found))

    assert best({0: 5.0, 100: 5.0, 10: 5.0}) == 100
    assert best({0: 5.0, 100: 9.0, 10: 5.0}) == 10
    assert best({0: 5.0, 100: 9.0, 10: 9.0}) == 0


# Mechanisms


@pytest.mark.slow
def test_the_bound_of_welfare_is_one_for_all_mechanisms() -> None:
    """Nobody gets more than the bound, which counts refused timers; only the lane refuses any for their caps."""
    settings = mechanisms.Settings(blocks=60, warm_up=20, load=0.9, loads=("steady",))
    for point in mechanisms.points(settings):
        found = mechanisms.replicate(settings, point, 1)
        assert 0 < found["efficiency"] <= 1, point.name
        assert (found["refused"] > 0) == (point.facts["mechanism"] == "lane")


@pytest.mark.parametrize("load", mechanisms.LOADS)
def test_every_load_asks_for_the_same_share(load: str) -> None:
    """The three groups together ask for the load, in whatever way."""
    rows = mechanisms.agents_of(load, 0.9)
    assert sum(row.share or 0.0 for row in rows if not isinstance(row, str)) == pytest.approx(0.9)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("study", "settings", "field"),
    [
        (mechanisms, {"load": 0.9, "loads": ("steady", "odd")}, "loads = 'odd'"),
        (ageing, {"ages": (0, 1), "loads": {"odd": 1.0}, "low": 0.1, "none": 0.1, "patience": 5}, r"loads\.odd"),
    ],
)
def test_an_unknown_load_is_refused(study: Any, settings: Mapping[str, Any], field: str) -> None:
    """The refusal names the field, the value and those that there are."""
    with pytest.raises(ConfigurationError, match=field):
        study.points(study.Settings(blocks=1, **settings))


# Verdicts


def test_no_difference_is_claimed_where_intervals_reach_zero() -> None:
    """A difference counts only if its whole interval lies on one side of 0."""
    assert [sign(Interval(mean, 1.0, 5)) for mean in (1.5, 1.0, 0.0, -1.0, -1.5)] == [1, 0, 0, 0, -1]
    assert difference_text(Interval(0.5, 1.0, 5)).startswith(UNSHOWN)
    assert difference_text(Interval(5.0, 1.0, 5), "later").endswith("later")
    assert shown(Interval(nan, nan, 5)) == "—"
