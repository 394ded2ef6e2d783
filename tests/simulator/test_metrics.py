"""Measures say what their definitions say, and keep no blocks."""

import math
import re
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest
from msgspec.structs import replace

from tests.simulator.rogues import Rogue, rogue_ground
from tests.simulator.slow_measures import History, basefee_values
from trailboss.model.timers import TimerEnd
from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.alone import Alone
from trailboss.simulator.ground import Ground
from trailboss.simulator.metrics.attacks import attack_cost, damage, fragmentation_gain
from trailboss.simulator.metrics.base import Measure, observe
from trailboss.simulator.metrics.blocks import BasefeeMeasure, LaneMeasure
from trailboss.simulator.metrics.catalogue import of_agents, standard
from trailboss.simulator.metrics.fairness import FairnessMeasure
from trailboss.simulator.metrics.money import BidMeasure, MoneyMeasure
from trailboss.simulator.metrics.optimum import Job, optimum
from trailboss.simulator.metrics.statistics import (
    Interval,
    Moments,
    attractor,
    gini,
    hhi,
    interval_of,
    jain,
    kaplan_meier,
    lyapunov,
    map_lyapunov,
    t_quantile,
)
from trailboss.simulator.metrics.timers import CountMeasure, DelayMeasure
from trailboss.simulator.metrics.welfare import EfficiencyMeasure, WelfareMeasure
from trailboss.simulator.orders import BlockResult, Fire, PlannedTimer, Schedule, UnfiredTimer, View
from trailboss.simulator.whole import Whole

MECHANISMS = ["fifo", "lane", "auction", "globalbox"]
PAGE = Path(__file__).parents[2] / "docs/reference/measures.md"
CYCLES = 100  # of a block's fires, and of ten fires


def plan(height: int, at: int = 0, actor: int = 1, **ways: Any) -> PlannedTimer:
    """Return a timer that is scheduled at a height; its fire uses ten cycles."""
    order = Schedule(actor=actor, height=height, **{"gas_limit": 10, "cycles": 10} | ways)
    return PlannedTimer(order, actor, b"", at)


def fire(of: PlannedTimer, height: int, *, is_ok: bool = True, burned: int = 0, tip: int = 0) -> Fire:
    return Fire(of, height, of.order.height, is_ok, of.order.cycles, burned, tip)


def block(height: int, basefee: int = 1, **facts: Any) -> BlockResult:
    """Return a block; what is not given follows from its fires, or is nothing."""
    prices = {"user_basefee": basefee, "timer_basefee": basefee, "lane_basefee": basefee}
    seen: dict[str, Any] = dict.fromkeys(View.__struct_fields__, 0)
    view = View(**seen | prices | {"height": height, "lane_cycles_max": CYCLES})
    fires = facts.get("fires", [])
    known: dict[str, Any] = {
        "accepted": [],
        "fires": [],
        "endings": [],
        "refused": [],
        "waiting": 0,
        "timer_cycles": sum(each.cycles_used for each in fires),
        "cycles": sum(each.cycles_used for each in fires),
        "burned": sum(each.burned for each in fires),
        "tips": sum(each.tip for each in fires),
    }
    return BlockResult(view=view, **known | facts)


def values_of(measure: Measure, *blocks: BlockResult) -> dict[str, float]:
    for each in blocks:
        measure.see(each)
    return measure.values()


def test_delays_and_survival_by_hand() -> None:
    """Of four due timers one fires at once, one after two blocks, one expires after one, one waits."""
    now, later, dead, waiting, far = plan(2, 1), plan(2, 1), plan(2, 1), plan(3, 1), plan(90, 1)
    values = values_of(
        DelayMeasure(),
        block(1, accepted=[now, later, dead, waiting, far]),
        block(2, fires=[fire(now, 2)]),
        block(3, endings=[UnfiredTimer(dead, 3, TimerEnd.EXPIRED)]),
        block(4, fires=[fire(later, 4)]),
    )
    assert (values["late_mean"], values["late_p50"], values["late_p95"], values["late_max"]) == (1.0, 0, 2, 2)
    assert (values["late_over_0"], values["late_over_1"], values["late_over_2"]) == (0.5, 0.5, 0.0)
    assert (values["waiting"], values["censored"]) == (1, 0.5)
    # Four are at risk at 0 and one fires; two of the others are last seen at 1; the last one fires at 2.
    assert (values["survival_0"], values["survival_1"], values["survival_2"]) == (0.75, 0.75, 0.0)


def test_timers_of_the_warm_up_count_by_their_fires_alone() -> None:
    """A fire of a timer that no measure saw coming is late, and no part of the survival."""
    old, new = plan(5, 1), plan(12, 10)
    values = values_of(
        DelayMeasure(), block(10, accepted=[new], fires=[fire(old, 10)]), block(12, fires=[fire(new, 12)])
    )
    assert (values["late_mean"], values["survival_0"], values["censored"]) == (2.5, 0.0, 0.0)


def test_counts_by_hand() -> None:
    """Each way to come and to go has its count."""
    plans = [plan(2, 1) for _ in range(4)]
    ends = zip(plans[1:], (TimerEnd.EXPIRED, TimerEnd.UNFUNDED, TimerEnd.CANCELLED), strict=True)
    values = values_of(
        CountMeasure(),
        block(1, accepted=plans, refused=[(0, plans[0].order)]),
        block(2, fires=[fire(plans[0], 2, is_ok=False)], endings=[UnfiredTimer(each, 2, end) for each, end in ends]),
    )
    names = ("scheduled", "fired", "reverted", "expired", "unfunded", "cancelled", "refused")
    assert [values[name] for name in names] == [4, 1, 1, 1, 1, 1, 1]


def test_evenness_and_starvation_by_hand() -> None:
    """Actor 1 has both of its fires; actor 2, of the other agent, waits for three blocks and has one of two."""
    first, second, third, fourth = plan(2, 1), plan(3, 1), plan(2, 1, actor=2), plan(2, 1, actor=2)
    values = values_of(
        FairnessMeasure({1: 0, 2: 1}),
        block(1, accepted=[first, second, third, fourth]),
        block(2, fires=[fire(first, 2)]),
        block(3, fires=[fire(second, 3)]),
        block(4),
        block(5, fires=[fire(third, 5)]),
        block(6),
    )
    assert values["starvation"] == 3
    assert values["jain_actors"] == values["jain_agents"] == pytest.approx(1.5**2 / (2 * 1.25))
    assert values["gini_actors"] == pytest.approx(0.5 / (2 * 1.5))
    assert (values["largest_actors"], values["hhi_actors"]) == pytest.approx((2 / 3, 5 / 9))


def test_use_of_blocks_by_hand() -> None:
    """Of four blocks one is full, one is half full, two are empty."""
    timers = [plan(1) for _ in range(9)]
    values = values_of(
        LaneMeasure(),
        block(1, fires=[fire(each, 1) for each in timers], waiting=6, cycles=500),
        block(2, fires=[fire(each, 2) for each in timers[:5]], waiting=2),
        block(3),
        block(4),
    )
    assert values == pytest.approx(
        {
            "use_mean": 0.35,
            "use_sd": math.sqrt((0.55**2 + 0.15**2 + 2 * 0.35**2) / 3),
            "full": 0.25,
            "empty": 0.5,
            "backlog_mean": 2.0,
            "backlog_max": 6,
            "block_cycles": 137.5,
        }
    )


@pytest.mark.parametrize(
    ("series", "settling", "amplitude"),
    [
        ([100, 50, 120, 100, 105, 95, 100, 100], 3, 105 / 95),
        ([100] * 6, 0, 1.0),
        ([100, 100, 50, 100, 100, 100], 3, 1.0),
        ([100, 100, 100, 50, 100, 100], -1, 2.0),
        ([100, 150] * 4, -1, 1.5),
    ],
)
def test_basefees_by_hand(series: list[int], settling: int, amplitude: float) -> None:
    """A basefee settles once it stays within a tenth of its median, and never if it still leaves it."""
    measure = BasefeeMeasure("x", lambda view: view.lane_basefee)
    values = values_of(measure, *(block(at, basefee) for at, basefee in enumerate(series)))
    assert values["x_settling"] == settling
    assert values["x_amplitude"] == pytest.approx(amplitude)
    assert (values["x_min"], values["x_max"]) == (min(series), max(series))
    assert values["x_mean"] == pytest.approx(fmean(series))


def test_basefees_of_a_long_run_keep_a_sample() -> None:
    """Of 100,000 blocks of two alternating prices, a twentieth a third one, range and settling stay exact."""
    draw, measure = Random(1), BasefeeMeasure("x", lambda view: view.lane_basefee)
    series = [500] * 7 + [draw.choice((100 + at % 2, 104)) for at in range(100_000)]
    for at, basefee in enumerate(series):
        measure.see(block(at, basefee))
    assert len(measure._sample) <= 16_384
    assert len(measure._highs) + len(measure._lows) < 20
    values = measure.values()
    assert (values["x_settling"], values["x_max"], values["x_amplitude"]) == (7, 500, 1.04)


def test_money_by_hand() -> None:
    """Blocks that burn 10 and 30 and tip 0 and 4 have those means and variances."""
    timer = plan(1)
    values = values_of(
        MoneyMeasure(), block(1, fires=[fire(timer, 1, burned=10)]), block(2, fires=[fire(timer, 2, burned=30, tip=4)])
    )
    expected = {"burn_mean": 20, "burn_variance": 200, "revenue_mean": 2, "revenue_variance": 8}
    assert values == pytest.approx(expected)


def test_overpayment_and_regret_by_hand() -> None:
    """A late fire regrets the cheap block in which it was due; one that tips too much, the lowest tip."""
    cheap, dear, late = plan(1), plan(2), plan(1, value=500, decay=100)
    values = values_of(
        BidMeasure(),
        block(1, fires=[fire(cheap, 1, burned=20, tip=10)]),
        block(2, fires=[fire(dear, 2, burned=40, tip=10), fire(late, 2, burned=40, tip=30)]),
    )
    assert (values["paid"], values["paid_mean"]) == (150, 50)
    assert values["overpayment"] == pytest.approx(20 / 3)
    # One that pays 50 in a block in which it was due regrets nothing; the late one 100 of its worth and 70 less 30.
    assert values["regret"] == pytest.approx(140 / 3)


def test_welfare_and_efficiency_by_hand() -> None:
    """One block has room for one: to fire the lesser first costs the greater's decay, and a reverted fire is naught."""
    room = {"cycles": CYCLES, "gas_limit": CYCLES}
    great, small = plan(2, 1, value=90, expires_at=2, **room), plan(2, 1, value=30, **room)
    fails = plan(2, 1, value=1_000, fails=True, **room)
    blocks = (
        block(1, accepted=[great, small, fails]),
        block(2, fires=[fire(small, 2)]),
        block(3, fires=[fire(fails, 3, is_ok=False)], endings=[UnfiredTimer(great, 3, TimerEnd.EXPIRED)]),
    )
    assert values_of(WelfareMeasure(), *blocks) == {"welfare": 30}
    assert values_of(EfficiencyMeasure(), *blocks) == {"efficiency": 30 / 120}
    assert values_of(EfficiencyMeasure(), blocks[0], blocks[1]) == {"efficiency": 30 / 90}
    slow = plan(1, value=50, decay=20)
    assert values_of(WelfareMeasure(), block(3, fires=[fire(slow, 3)]), block(9, fires=[fire(slow, 9)])) == {
        "welfare": 10
    }


def test_the_optimum_knows_when_timers_lose_their_worth() -> None:
    """Of three timers for one place in each block, two are dead after the first, by expiry and by decay."""
    room = {"cycles": CYCLES, "gas_limit": CYCLES}
    dies, fades = plan(2, 1, value=70, expires_at=2, **room), plan(2, 1, value=60, decay=60, **room)
    stays = plan(2, 1, value=50, **room)
    blocks = block(1, accepted=[dies, fades, stays]), block(2, fires=[fire(stays, 2)]), block(3), block(4)
    assert values_of(EfficiencyMeasure(), *blocks) == {"efficiency": 50 / 120}


@pytest.mark.parametrize(("count", "efficiency"), [(2_500, 5 / 10), (4_001, 5 / 30)])
def test_efficiency_follows_the_first_timers(count: int, efficiency: float) -> None:
    """Those of the block with the 2,000th belong to it, later ones do not; too many have the room of all blocks."""
    first = [plan(2, 1, value=1, expires_at=2) for _ in range(count)]
    later = [plan(3, 2, value=50) for _ in range(9)]
    values = values_of(
        EfficiencyMeasure(),
        block(1, accepted=first),
        block(2, accepted=later, fires=[fire(each, 2) for each in first[:5]]),
        block(3, fires=[fire(each, 3) for each in later]),
        block(4),
    )
    assert values == {"efficiency": efficiency}


# Against plain lists


class Owner(Rogue):
    """A rogue whose timers are worth something."""

    def _schedule(self, actor: int, view: View) -> Schedule:
        order, draw = super()._schedule(actor, view), self._random
        return replace(order, value=draw.choice((0, 10**9, 10**10)), decay=draw.choice((0, 10**8)))


def owners_ground(mechanism: str, seed: int) -> Ground:
    """Return the ground of rogues, whose timers are worth something."""
    ground = rogue_ground(mechanism, seed)
    kind = {"asked": ground.agents[0].asked, "is_global": mechanism == "globalbox"}
    return replace(ground, agents=[Owner(agent.name, agent.actors, seed, **kind) for agent in ground.agents])


@pytest.mark.parametrize("warm_up", [0, 15])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_streams_equal_lists(mechanism: str, warm_up: int) -> None:
    """Over random runs, each measure is what its definition makes of the lists of everything."""
    for seed in range(4):
        alone = Alone(owners_ground(mechanism, seed))
        blocks = list[BlockResult]()
        ground = alone.ground
        found = observe(alone, [*standard(ground), _Keeper(blocks)], 60, warm_up)
        history = History(blocks)
        expected = history.delays() | history.money() | history.bids() | {"starvation": history.starvation()}
        for level, owners in (("actors", {each: each for each in ground.agent_of}), ("agents", ground.agent_of)):
            shares, cycles = history.evenness(owners)
            expected |= {f"jain_{level}": jain(shares), f"gini_{level}": gini(shares)}
            expected |= {f"hhi_{level}": hhi(cycles), f"largest_{level}": max(cycles) / sum(cycles)}
        for name, read in PRICES.items():
            series = basefee_values([read(each.view) for each in blocks])
            expected |= {f"{name}_{key}": value for key, value in series.items()}
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-6), f"{mechanism}, seed {seed}: {name}"
        assert 0 <= found["efficiency"] <= 1


PRICES: dict[str, Callable[[View], int]] = {
    "lane_basefee": lambda view: view.lane_basefee,
    "basefee": lambda view: view.user_basefee,
}


class _Keeper:
    """Keeps the blocks."""

    def __init__(self, blocks: list[BlockResult]) -> None:
        self._blocks = blocks

    def see(self, block: BlockResult) -> None:
        self._blocks.append(block)

    def values(self) -> dict[str, float]:
        return {}


@pytest.mark.parametrize("mechanism", MECHANISMS[:3])
def test_no_timer_is_lost(mechanism: str) -> None:
    """What was scheduled has fired, ended or lives, and those of the living that are due wait."""
    for seed in range(4):
        alone = Alone(rogue_ground(mechanism, seed))
        values = observe(alone, standard(alone.ground), 60)
        gone = sum(values[name] for name in ("fired", "expired", "unfunded", "cancelled"))
        assert values["scheduled"] == gone + alone.pending()
        assert values["waiting"] <= alone.pending()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_whole_chain_has_the_measures_of_the_mechanism_alone(mechanism: str) -> None:
    """Every measure is equal, those of timers that nothing but a block's list of them shows included."""
    for seed in range(3):
        alone, whole = Alone(owners_ground(mechanism, seed)), Whole(owners_ground(mechanism, seed))
        values = observe(alone, standard(alone.ground), 25, 5)
        assert observe(whole, standard(whole.ground), 25, 5) == values, f"{mechanism}, seed {seed}"


# Single agents


def test_agents_have_measures_of_their_own() -> None:
    """The measures of agents add up to those of all, and a row's name stands for all of its agents."""
    ground = rogue_ground("lane", 6)
    names = [agent.name for agent in ground.agents]
    assert len(names) > 1
    values = observe(Alone(ground), [*standard(ground), *of_agents(ground, [*names, "rogue"])], 60)
    for measure in ("scheduled", "fired", "expired", "refused", "paid", "waiting"):
        assert sum(values[f"{name}.{measure}"] for name in names) == values[measure] == values[f"rogue.{measure}"]
    assert values["rogue.overpayment"] == pytest.approx(values["overpayment"])
    assert values["rogue.starvation"] == values["starvation"]


def test_an_agent_overpays_against_all_fires_of_its_block() -> None:
    """The lowest offer is that of the block, whoever made it."""
    ground = rogue_ground("fifo", 6)
    assert len(ground.agents) > 1
    measure = of_agents(ground, [ground.agents[1].name])[0]
    one, other = plan(1, actor=0), plan(1, actor=1)
    values = values_of(measure, block(1, fires=[fire(one, 1, tip=10), fire(other, 1, tip=25)]))
    assert values[f"{ground.agents[1].name}.overpayment"] == 15


def test_a_name_that_no_agent_has_is_refused() -> None:
    """The refusal names it and those that there are."""
    with pytest.raises(ConfigurationError, match="no agent is called 'stranger'; those are rogue 0"):
        of_agents(rogue_ground("lane", 1), ["stranger"])


def test_two_measures_of_one_name_are_refused() -> None:
    """A value never hides another."""
    with pytest.raises(ConfigurationError, match="cancelled is the name of two"):
        observe(Alone(rogue_ground("fifo", 1)), [CountMeasure(), CountMeasure()], 1)


def test_attacks_by_hand() -> None:
    """Gain, cost and damage are what their definitions make of two runs."""
    quiet = {"a.fired": 10.0, "a.paid": 50.0, "a.welfare": 40.0, "v.welfare": 200.0}
    attacked = {"a.fired": 25.0, "a.paid": 90.0, "a.welfare": 60.0, "v.welfare": 150.0}
    assert fragmentation_gain(quiet, attacked, "a", "fired") == 2.5
    assert attack_cost(quiet, attacked, "a") == 20
    assert attack_cost({}, attacked, "a") == 30
    assert damage(quiet, attacked, "v", "welfare") == 0.25


# The clairvoyant optimum


def random_jobs(seed: int, sizes: tuple[int, ...], starts: int = 4) -> list[Job]:
    draw = Random(seed)
    firsts = [draw.randint(1, starts) for _ in range(draw.randint(1, 6))]
    return [Job(start, start + draw.randint(0, 2), draw.choice(sizes), draw.randint(0, 9)) for start in firsts]


def best_of(jobs: list[Job], room: int) -> int:
    """Return the greatest value of jobs, each whole in one block, by trying all."""

    @cache
    def best(at: int, left: tuple[int, ...]) -> int:
        if at == len(jobs):
            return 0
        job, found = jobs[at], best(at + 1, left)
        for height in range(job.first, job.last + 1):
            if left[height] >= job.cycles:
                rest = (*left[:height], left[height] - job.cycles, *left[height + 1 :])
                found = max(found, job.value + best(at + 1, rest))
        return found

    return best(0, (room,) * 8)


@pytest.mark.parametrize("room", [1, 2, 3])
def test_the_optimum_of_equal_jobs_is_that_of_trying_all(room: int) -> None:
    """The greedy choice over the matroid is exact."""
    for seed in range(150):
        jobs = [job._replace(cycles=7) for job in random_jobs(seed, (7,))]
        assert optimum(jobs, 7 * room + 3) == best_of(jobs, 7 * room + 3), f"seed {seed}"


@pytest.mark.parametrize("room", [1, 2, 3])
def test_the_optimum_of_unequal_jobs_bounds_that_of_trying_all(room: int) -> None:
    """It is exactly what jobs are worth that may be split, and no whole jobs are worth more."""
    for seed in range(60):
        jobs = [Job(1, 1, 4, 2), *random_jobs(seed, (1, 2, 3), starts=2)[:4]]
        bound = optimum(jobs, room)
        assert bound >= best_of(jobs, room) - 1e-9
        # Twelve times the value keeps that of each piece whole.
        pieces = [Job(job.first, job.last, 1, 12 * job.value // job.cycles) for job in jobs for _ in range(job.cycles)]
        assert 12 * bound == pytest.approx(best_of(pieces, room)), f"seed {seed}"


def test_the_optimum_of_one_block_is_dantzigs() -> None:
    """The last job that does not fit whole counts in part."""
    jobs = [Job(1, 1, 6, 60), Job(1, 1, 5, 40), Job(1, 1, 5, 39)]
    assert optimum(jobs, 10) == pytest.approx(60 + 40 * 4 / 5)


# Statistics


@pytest.mark.parametrize(
    ("probability", "freedom", "quantile"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 4, 2.776),
        (0.975, 9, 2.262),
        (0.975, 30, 2.042),
        (0.975, 120, 1.980),
        (0.95, 5, 2.015),
        (0.995, 10, 3.169),
        (0.9995, 3, 12.924),
        (0.5, 7, 0.0),
    ],
)
def test_quantiles_of_t_are_those_of_the_tables(probability: float, freedom: int, quantile: float) -> None:
    """Three decimals agree. Source: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2."""
    assert t_quantile(probability, freedom) == pytest.approx(quantile, abs=6e-4)


def test_an_interval_by_hand() -> None:
    """Mean 3, deviation √2.5, five values: 2.776 · √0.5; and equal values have no width at all."""
    found = interval_of([1, 2, 3, 4, 5])
    assert (found.mean, found.count) == (3.0, 5)
    assert found.half_width == pytest.approx(2.7764 * math.sqrt(0.5), rel=1e-4)
    assert interval_of([0.1] * 7) == Interval(0.1, 0.0, 7)
    assert math.isnan(interval_of([0.1, math.nan]).mean)


def test_nine_in_ten_intervals_and_more_hold_the_mean() -> None:
    """Of 2,000 samples of five normal values, 95 % have intervals that hold the mean, give or take two in a hundred."""
    draw = Random(5)
    intervals = [interval_of([draw.gauss(3, 2) for _ in range(5)]) for _ in range(2_000)]
    assert fmean(abs(each.mean - 3) <= each.half_width for each in intervals) == pytest.approx(0.95, abs=0.02)


def test_moments_of_great_numbers_keep_their_variance() -> None:
    """A small variance beside a great mean is not lost."""
    moments = Moments()
    for value in (1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16):
        moments.add(value)
    assert (moments.mean, moments.variance) == pytest.approx((1e9 + 10, 30))


def test_evenness_of_known_distributions() -> None:
    """Equal shares, one of four, and one to four."""
    assert (jain([5] * 4), gini([5] * 4), hhi([5] * 4)) == (1.0, 0.0, 0.25)
    assert (jain([0, 0, 0, 5]), gini([0, 0, 0, 5]), hhi([0, 0, 0, 5])) == (0.25, 0.75, 1.0)
    assert (jain([1, 2, 3, 4]), gini([4, 1, 3, 2]), hhi([1, 2, 3, 4])) == pytest.approx((100 / 120, 0.25, 0.3))


def test_survival_of_a_known_trial() -> None:
    """Freireich's 21 patients under 6-MP. Source: Kalbfleisch & Prentice 1980, table 1.1 (weeks in remission)."""
    ended, censored = {6: 3, 7: 1, 10: 1, 13: 1, 16: 1, 22: 1, 23: 1}, {6: 1, 9: 1, 10: 1, 11: 1, 17: 1, 19: 1, 20: 1}
    curve = dict(kaplan_meier(ended, censored | {25: 1, 32: 2, 34: 1, 35: 1}))
    shares = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    assert curve == pytest.approx(shares, abs=6e-4)


def logistic(rate: float, count: int) -> list[float]:
    values = [0.3]
    for _ in range(count + 100):
        values.append(rate * values[-1] * (1 - values[-1]))
    return values[100:]


def test_exponents_of_the_logistic_map() -> None:
    """At 4 it is ln 2, from the map and from its series alone; at 2.5, where it settles, ln ½."""
    chaos = logistic(4, 1_000)
    assert map_lyapunov(lambda x: 4 - 8 * x, logistic(4, 100_000)) == pytest.approx(math.log(2), abs=0.01)
    assert lyapunov(chaos) == pytest.approx(math.log(2), abs=0.05)
    assert map_lyapunov(lambda x: 2.5 - 5 * x, logistic(2.5, 1_000)) == pytest.approx(math.log(0.5), abs=1e-6)


def test_a_series_that_repeats_or_waves_is_not_chaotic() -> None:
    """Neighbours in a cycle, a constant or a sine do not part."""
    assert lyapunov([1, 2, 3, 4] * 100) == 0 == lyapunov([7] * 100)
    assert lyapunov([math.sin(0.1 * at) for at in range(1_000)]) == pytest.approx(0, abs=0.01)


def test_the_attractor_of_a_map_doubles_its_period() -> None:
    """The logistic map has one point at 2.5, two at 3.2, four at 3.5."""
    for rate, count in ((2.5, 1), (3.2, 2), (3.5, 4)):
        assert len({round(value, 9) for value in attractor(logistic(rate, 5_000), 64)}) == count
    assert attractor(iter([9, 3, 1, 3]), 3) == [1, 3]


# The page


def test_the_page_lists_the_measures() -> None:
    """Its table has the names of all values, and no other."""
    values = observe(Alone(ground := rogue_ground("lane", 1)), standard(ground), 5)
    table = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"`([a-z0-9_]+)`", row)] == list(values)


def test_a_measure_forgets_blocks() -> None:
    """What all measures keep after 40 and after 400 blocks of equal load is of like size, but for bounded samples."""
    sizes = []
    for blocks in (40, 400):
        delay, fairness = DelayMeasure(), FairnessMeasure()
        for height, actor in product(range(1, blocks), range(3)):
            due = [fire(plan(height, height - 1, actor), height)] if height > 1 else []
            for measure in (delay, fairness):
                measure.see(block(height, accepted=[plan(height + 1, height, actor)], fires=due))
        sizes.append((len(delay._live), len(delay._late.counts), len(fairness._ahead), len(fairness._since)))
    assert sizes[0] == sizes[1]
