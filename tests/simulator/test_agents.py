"""Each kind of agent does what its row says."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from tests.simulator.agreement import facts
from trailboss.model.timers import TimerEnd
from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.agents.arrivals import AnyPattern
from trailboss.simulator.agents.base import Agent
from trailboss.simulator.agents.keeper import Funding, Impatience
from trailboss.simulator.agents.offers import AnyOffer
from trailboss.simulator.agents.quantities import Exponential, Lognormal, Pareto, Uniform
from trailboss.simulator.alone import Alone
from trailboss.simulator.orders import BlockResult, Schedule, View, Work
from trailboss.simulator.scenario import AnyRow, Scenario, at_load, parse_scenario, read_scenario
from trailboss.simulator.whole import Whole

ROOT = Path(__file__).resolve().parents[2]
LOADS = ("steady", "bursts", "round-heights", "cron", "outage", "heavy")
HEAD = 'name = "test"\nblocks = 10\n'
MECHANISMS = ("fifo", "lane", "auction", "globalbox")
VIEW = View(
    height=1,
    user_basefee=10_000,
    timer_basefee=10_000,
    cell_basefee=10_000,
    lane_basefee=1_000,
    previous_tip=400,
    marginal_tip=0,
    lane_cycles_max=2_000_000,
    has_mailbox=False,
    balance_of=lambda _: 0,
    addresses=(),
)
EVERY = """
[params]
"timers.lane_cycles_per_block" = 600_000
"auction.budget_cycles" = 600_000
"timers.max_cells_per_fire" = 1_000
"lane.fairness_window_blocks" = 5
[[agents]]
kind = "poisson"
name = "daily"
rate = 2
actors = 3
cycles = {kind = "lognormal", median = 30_000, sigma = 1.0}
value = {kind = "exponential", mean = 40_000}
decay = {kind = "uniform", least = 0, most = 2_000}
patience = {kind = "uniform", least = 3, most = 30}
fails = 0.1
cells = 100
pattern = {kind = "daily", period = 10}
offer = {kind = "truthful"}
[[agents]]
kind = "poisson"
name = "round"
share = 0.2
batch = 2
round_to = 5
actors = 2
owners = "turn"
calls = "next"
value = 50_000
pattern = {kind = "bursts", on = 3, off = 3}
offer = {kind = "best_response"}
impatience = {after = 2}
[[agents]]
kind = "poisson"
name = "outage"
rate = 3
slack = 10_000
asked = true
value = 60_000
cycles = {kind = "pareto", least = 20_000, shape = 1.5}
pattern = {kind = "outage", first = 5, blocks = 5}
offer = {kind = "learner"}
impatience = {after = 1}
[[agents]]
kind = "crowd"
name = "clock"
count = 2
actors = 4
timers = 5
every = 6
phase = "random"
offer = {kind = "tier", multiplier = 15_000}
impatience = {after = 2, times = 2}
[[agents]]
kind = "crowd"
name = "flood"
actors = 3
owners = "least_id"
timers = 40
every = 0
phase = 12
ahead = 3
cycles = 10_000
patience = 9
offer = {kind = "fixed", tip = 0}
[[agents]]
kind = "loop"
name = "dry"
timers = 4
actors = 2
every = {kind = "uniform", least = 1, most = 4}
fails = 0.2
funds = 15_000_000
funding = {fires = 4, every = 8}
[[agents]]
kind = "loop"
name = "alternate"
timers = 6
actors = 2
owners = "blocks"
calls = "first"
patience = 4
offer = {kind = "fixed", cap = 8_000, tip = 500}
[[agents]]
kind = "trigger"
name = "trigger"
timers = 3
actors = 3
touches = 0.5
[[agents]]
kind = "traffic"
name = "users"
rate = 3
cycles = 4_000_000
"""


def scenario_of(tables: str, mechanism: str = "lane", seed: int = 1) -> Scenario:
    """Return a scenario with some tables."""
    return replace(parse_scenario(HEAD + tables), mechanism=mechanism, seed=seed)


def run(scenario: Scenario, blocks: int) -> list[BlockResult]:
    """Return the blocks of a scenario alone."""
    alone = Alone(scenario.ground())
    return [alone.build() for _ in range(blocks)]


def agent_of(table: str) -> Agent:
    """Return the one agent of a table."""
    return scenario_of("[[agents]]\nname = 'it'\n" + table).ground().agents[0]


def seen(table: str, blocks: int, **changes: Any) -> list[list[Any]]:
    """Return what the one agent of a table orders in each block, without a mechanism."""
    agent = agent_of(table)
    return [list(agent.orders(replace(VIEW, height=height, **changes))) for height in range(1, blocks + 1)]


def total(blocks: list[list[Any]]) -> int:
    """Return the cycles of all timers that are ordered."""
    return sum(order.cycles for orders in blocks for order in orders if isinstance(order, Schedule))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.slow
def test_every_kind_is_the_same_alone_and_on_a_whole_chain(mechanism: str) -> None:
    """Agents of every kind see and do the same in both."""
    scenario = scenario_of(EVERY, mechanism)
    alone, whole = Alone(scenario.ground()), Whole(scenario.ground())
    ends: set[TimerEnd] = set()
    for _ in range(30):
        found, expected = alone.build(), whole.build()
        for name, value in facts(expected).items():
            assert facts(found)[name] == value, f"block {whole.height}: {name}"
        assert alone.balances() == whole.balances()
        ends |= {ending.end for ending in expected.endings}
    assert TimerEnd.CANCELLED in ends


PATTERNS = {
    "steady": "",
    "bursts": "pattern = {kind = 'bursts', on = 10, off = 30}",
    "daily": "pattern = {kind = 'daily', period = 50, depth = 1.0}",
    "outage": "pattern = {kind = 'outage', first = 20, blocks = 30, every = 100}",
    "batches": "batch = 5",
    "round heights": "round_to = 100",
}


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_every_pattern_has_the_same_mean(pattern: str) -> None:
    """Over many blocks a share is what fires ask for, whatever their rhythm and sizes."""
    for cycles in ("60_000", "{kind = 'pareto', least = 20_000, shape = 1.2}"):
        found = seen(f"kind = 'poisson'\nshare = 0.9\ncycles = {cycles}\n{pattern}", 1_000)
        assert total(found) / 1_000 == pytest.approx(0.9 * VIEW.lane_cycles_max, rel=0.05)


def test_a_crowd_with_a_share_asks_for_it_exactly() -> None:
    """What is left of a timer at one height counts at the next."""
    found = seen("kind = 'crowd'\nshare = 0.9\ncycles = 70_000\nevery = 7\nahead = 3", 700)
    assert total(found) == pytest.approx(700 * 0.9 * VIEW.lane_cycles_max, rel=0.002)
    assert {order.height % 7 for orders in found for order in orders} == {0}


def test_bursts_are_off_for_their_share_of_time() -> None:
    """Nothing comes in blocks that are off, and all in those that are on."""
    found = [len(each) for each in seen("kind='poisson'\nrate=5\npattern={kind='bursts', on=10, off=30}", 400)]
    assert sum(1 for count in found if count) == pytest.approx(100, abs=2)


def test_a_daily_rhythm_has_a_busy_and_a_quiet_half() -> None:
    """With full depth a sine puts 1/2 + 1/pi of all into its first half."""
    found = [
        len(each) for each in seen("kind='poisson'\nrate=20\npattern={kind='daily', period=100, depth=1.0}", 1_000)
    ]
    busy = sum(count for height, count in enumerate(found, 1) if height % 100 < 50)
    assert busy / sum(found) == pytest.approx(0.818, abs=0.02)


def test_after_an_outage_all_that_was_missed_comes_at_once() -> None:
    """The block after it has what its blocks would have had."""
    with_outage = seen("kind='poisson'\nrate=4\npattern={kind='outage', first=20, blocks=30}", 60)
    without = seen("kind='poisson'\nrate=4", 60)
    assert not any(with_outage[19:49])
    assert len(with_outage[49]) == sum(map(len, without[19:50]))
    assert with_outage[:19] == without[:19]


def test_heights_are_round() -> None:
    """A height is the next multiple that is not below what was wanted."""
    for height, orders in enumerate(seen("kind='poisson'\nrate=5\nahead=7\nround_to=20", 100), 1):
        assert all(order.height % 20 == 0 and 7 <= order.height - height < 27 for order in orders)


def test_a_splitter_asks_for_the_same_in_total() -> None:
    """As 1 actor or as 10, an owner has the same timers, which its actors own in equal parts."""
    demand = "kind='poisson'\nrate=5\nvalue={kind='pareto', least=9, shape=2}\n"
    one, ten = seen(demand + "actors=1", 300), seen(demand + "actors=10", 300)
    assert [[replace(order, actor=1) for order in orders] for orders in ten] == one
    owners = Counter(order.actor for orders in ten for order in orders)
    assert sorted(owners) == list(range(1, 11))
    assert max(owners.values()) < 2 * min(owners.values())


def test_alternate_actors_fire_in_turn() -> None:
    """By blocks, one of two actors owns all timers of odd heights, and the other those of even ones."""
    blocks = seen("kind='poisson'\nrate=5\nactors=2\nowners='blocks'", 50)
    assert {(order.actor, order.height % 2) for orders in blocks for order in orders} == {(1, 0), (2, 1)}


def test_a_grinder_has_smaller_ids() -> None:
    """Who may choose among ten actors gets the least of ten ids, about a tenth of the range down."""

    def mean_id(owners: str) -> float:
        blocks = run(scenario_of(f"[[agents]]\nkind='crowd'\nname='it'\ntimers=1\nevery=1\nactors=10\n{owners}"), 100)
        ids = [plan.timer_id[0] for result in blocks for plan in result.accepted]
        return sum(ids) / len(ids)

    assert mean_id("owners = 'turn'") > 100
    assert mean_id("owners = 'least_id'") < 40


def test_a_flood_is_due_at_one_height() -> None:
    """It is scheduled over the blocks before, once."""
    found = seen("kind='crowd'\ntimers=100\nevery=0\nphase=20\nahead=7\noffer={kind='fixed', tip=0}", 60)
    assert [len(orders) for orders in found[12:19]] == [14, 14, 14, 15, 14, 14, 15]
    orders = [order for each in found for order in each]
    assert len(orders) == 100
    assert {(order.height, order.tip) for order in orders} == {(20, 0)}


def test_a_loop_keeps_its_timers() -> None:
    """Each fire schedules the next one, and one that fails, expires or is refused starts again."""
    lives = "[[agents]]\nkind='loop'\nname='it'\ntimers=30\nevery=3\nfails=0.3\npatience=1\nactors=3\n"
    alone = Alone(scenario_of(lives + "gas_limit_max=400_000\ncycles=400_000", "fifo").ground())
    results = [alone.build() for _ in range(60)]
    assert {ending.end for result in results for ending in result.endings} == {TimerEnd.EXPIRED}
    assert any(not fire.is_ok for result in results for fire in result.fires)
    # Those that ended in the last block start in the next.
    assert alone.pending() + len(results[-1].endings) + sum(not fire.is_ok for fire in results[-1].fires) == 30


def test_a_payer_runs_dry_until_money_comes() -> None:
    """It fires as often as its funds last, and again after the next funding."""
    table = "[[agents]]\nkind='loop'\nname='it'\nevery=1\nfunds=11_000_000_000\nfunding={fires=5, every=20}"
    results = run(scenario_of(table, "fifo"), 40)
    heights = [result.view.height for result in results if result.fires]
    # The reserve for the cells of a fire is never spent, but for what one more fire needs less than the next.
    assert 5 <= sum(height <= 20 for height in heights) <= 16
    assert heights[-1] > 21
    assert any(ending.end is TimerEnd.UNFUNDED for result in results for ending in result.endings)


def test_the_impatient_cancel_and_come_again_with_a_higher_offer() -> None:
    """A timer that waits too long is cancelled, and replaced in the next block by one that offers more."""
    table = """[params]
"auction.budget_cycles" = 2_000_000
[[agents]]
kind = "crowd"
name = "it"
timers = 100
every = 1_000
phase = 5
cycles = 200_000
offer = {kind = "fixed", cap = 50_000, tip = 100}
impatience = {after = 2, percent = 50, step = 10, times = 2}
"""
    for mechanism in MECHANISMS:
        results = run(scenario_of(table, mechanism), 20)
        cancelled = [e.plan.order for result in results for e in result.endings if e.end is TimerEnd.CANCELLED]
        again = [plan.order for result in results for plan in result.accepted if plan.order.tag]
        assert {order.tip for order in again} == {160, 220}
        assert len(again) == len(cancelled) > 30


def fees(offer: str, blocks: int, view: Callable[[int], View]) -> list[tuple[int | None, int | None]]:
    """Return what an offer is in each block, by the views of their heights."""
    agent = agent_of(f"kind='crowd'\ntimers=1\nevery=1\nvalue=20_000\noffer={offer}")
    found = []
    for height in range(1, blocks + 1):
        (order,) = agent.orders(view(height))
        assert isinstance(order, Schedule)
        found.append((order.cap, order.tip))
    return found


def test_offers_follow_their_rules() -> None:
    """No fees, a tier's part of the median, fixed fees, the value, and just above the marginal tip."""
    views = [VIEW, replace(VIEW, height=2, marginal_tip=700), replace(VIEW, height=3, marginal_tip=99_000)]

    def asked(offer: str) -> list[tuple[int | None, int | None]]:
        return fees(offer, 3, lambda height: views[height - 1])

    assert asked("{kind='default'}") == [(None, None)] * 3
    assert asked("{kind='tier', multiplier=25_000}") == [(None, 1_000)] * 3
    assert asked("{kind='fixed', tip=5}") == [(None, 5)] * 3
    assert asked("{kind='truthful'}") == [(10_000, 10_000)] * 3
    assert asked("{kind='best_response'}") == [(10_000, 1), (10_000, 701), (10_000, 10_000)]
    assert asked("{kind='best_response', blocks=2, above=3}")[1:] == [(10_000, 703), (10_000, 10_000)]


@pytest.mark.parametrize(("timers", "least", "most"), [(5, 0, 0), (60, 5_000, 90_000)])
def test_a_learner_pays_nothing_when_alone_and_more_under_congestion(timers: int, least: int, most: int) -> None:
    """Its tip falls from where it begins while its fires are prompt, and rises to what it takes while they are late."""
    table = f"""[[agents]]
kind = "crowd"
name = "it"
timers = {timers}
every = 1
cycles = 50_000
value = 100_000
patience = 3
offer = {{kind = "learner", first = 1_000}}
"""
    results = run(scenario_of(table, "globalbox"), 150)
    tips = [plan.order.tip or 0 for plan in results[-1].accepted]
    assert all(least <= tip <= most for tip in tips)


def test_an_agent_that_is_asked_answers_for_the_worth_of_now() -> None:
    """Its bid falls with what the delay costs it; under the auction it is on top of the basefee."""
    table = (
        "[[agents]]\nkind='crowd'\nname='it'\ntimers=60\nevery=1000\nphase=2\nvalue=30_000\ndecay=1_000\nasked=true\n"
    )
    alone = Alone(scenario_of(table + "cycles=200_000\noffer={kind='truthful'}", "auction").ground())
    first = [alone.build() for _ in range(2)][-1]
    (agent,) = alone.ground.agents
    bids = [agent.bid(first.fires[0].plan, replace(first.view, height=2 + blocks)) for blocks in (0, 5, 25)]
    assert bids == [(30_000, 20_000), (25_000, 15_000), (10_000, 0)]


def test_the_median_tip_follows_who_has_the_most_fires() -> None:
    """Many small timers with a high tip set the median that all others pay by default."""
    honest = "[[agents]]\nkind='poisson'\nname='honest'\nrate=5\n"
    many = "[[agents]]\nkind='crowd'\nname='many'\ntimers=20\nevery=1\ncycles=10_000\n"
    many += "offer={kind='fixed', cap=90_000, tip=900}\n"
    assert max(result.view.previous_tip for result in run(scenario_of(honest), 30)) == 0
    assert run(scenario_of(honest + many), 30)[-1].view.previous_tip == 900


def test_triggers_fire_after_their_slots_change() -> None:
    """Under Globalbox each watch fires for each block in which its slot changes, and stays."""
    table = "[[agents]]\nkind='trigger'\nname='it'\ntimers=3\nactors=3\ntouches=0.3"
    alone = Alone(scenario_of(table, "globalbox").ground())
    fires = sum(len(alone.build().fires) for _ in range(200))
    assert 40 < fires < 80
    assert alone.pending() == 3


def test_mailbox_fires_call_the_target() -> None:
    """Under Globalbox all of an agent's timers may call one of its actors."""
    results = run(scenario_of("[[agents]]\nkind='loop'\nname='it'\ntimers=4\nactors=4\ncalls='first'", "globalbox"), 20)
    assert {fire.plan.order.called for result in results for fire in result.fires} == {1}


def test_users_load_blocks() -> None:
    """Their transactions use what the row says, at random or exactly."""
    drawn = seen("kind='traffic'\nrate=2.5\ncycles={kind='exponential', mean=200_000}", 1_000)
    exact = seen("kind='traffic'\nrate=2.5\nis_random=false\ncycles=100_000\ncells=900", 100)
    assert sum(map(len, drawn)) == pytest.approx(2_500, rel=0.1)
    assert [order for orders in exact for order in orders] == [Work(100_000, 900)] * 250


def test_another_agent_changes_no_draws() -> None:
    """An agent orders the same whether another one stands before it or not."""
    own = "[[agents]]\nkind='poisson'\nname='it'\nrate=3\nahead={kind='exponential', mean=9}\n"
    own += "cycles={kind='lognormal', median=40_000, sigma=1}\n"
    other = own.replace("'it'", "'other'")

    def orders(tables: str, number: int) -> list[Any]:
        agent = scenario_of(tables).ground().agents[number]
        views = [replace(VIEW, height=height) for height in range(1, 50)]
        return [replace(order, actor=0) for view in views for order in agent.orders(view)]

    assert orders(own, 0) == orders(other + own, 1) != orders(other + own, 0)


def test_a_load_scales_all_shares() -> None:
    """What the agents of a scenario ask for together is the load, in unchanged proportions."""
    arrivals = "[[agents]]\nkind='poisson'\nname='a'\nshare=0.1\ncount=2\n"
    others = "[[agents]]\nkind='crowd'\nname='b'\nshare=0.2\n[[agents]]\nkind='loop'\nname='c'"
    scaled = at_load(scenario_of(arrivals + others), 1.2)
    assert [getattr(row, "share", None) for row in scaled.agents] == [pytest.approx(0.3), pytest.approx(0.6), None]


REFUSED = {
    "kind='poisson'": "rate = None and share = None: give one of them, and only one",
    "kind='poisson'\nrate=1\nshare=1": "rate = 1.0 and share = 1.0: give one of them, and only one",
    "kind='crowd'": "timers = None and share = None: give one of them, and only one",
    "kind='crowd'\ntimers=1\nevery=5\nphase=5": "phase = 5 must be below every, 5",
    "kind='crowd'\ntimers=1\nevery=0\nphase=1": "phase = 1 must be the height, above ahead, 1, since every is 0",
    "kind='crowd'\nshare=1\nevery=0\nphase=2": "timers = None must be given, since every is 0",
    "kind='crowd'\ntimers=1\nevery=5\nahead=6": "ahead = 6 must be at most every, 5",
    "kind='loop'\noffer={kind='truthful'}": "value = 0 must be above 0 for the offer 'truthful', which follows from it",
    "kind='loop'\ncycles={kind='uniform', least=9, most=3}": "cycles: least = 9 must be at most most, 3",
    "kind='loop'\ngas_limit_max=9_999": "gas_limit_max = 9999: expected `int` >= 10000",
    "kind='loop'\nowners='none'": "owners = 'none': invalid enum value 'none'",
    "kind='poisson'\nrate=1\npattern={kind='outage', first=1, blocks=5, every=5}": (
        "pattern.every = 5 must be above pattern.blocks, 5, or 0"
    ),
    "kind='other'": "kind = 'other': invalid value 'other'",
}


@pytest.mark.parametrize("table", REFUSED)
def test_wrong_rows_are_refused_with_field_value_and_rule(table: str) -> None:
    """Each names its table and field, its value, and what it may be."""
    with pytest.raises(ConfigurationError) as caught:
        scenario_of("[[agents]]\nname = 'it'\n" + table)
    assert str(caught.value) == f"agents[0].{REFUSED[table]}"


@pytest.mark.parametrize("load", LOADS)
def test_the_six_loads_ask_for_the_same(load: str) -> None:
    """In each, fires ask for 0.9 of what they may use, and all four mechanisms run it."""
    scenario = read_scenario(ROOT / f"examples/scenarios/{load}.toml")
    agents, blocks = scenario.ground().agents, 3_000
    views = [replace(VIEW, height=height) for height in range(1, blocks + 1)]
    asked = total([list(agent.orders(view)) for agent in agents for view in views])
    assert asked / blocks == pytest.approx(0.9 * VIEW.lane_cycles_max, rel=0.03)
    for mechanism in MECHANISMS:
        results = run(replace(scenario, mechanism=mechanism), 20)
        assert results[-1].view.lane_cycles_max == VIEW.lane_cycles_max


def test_every_example_of_the_page_runs() -> None:
    """Each section of the page of scenarios has an example, which parses and runs for 20 blocks."""
    page = (ROOT / "docs/reference/scenarios.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    kinds = set()
    for example in examples:
        scenario = parse_scenario(example if "name" in example.split("[[")[0] else HEAD + example)
        kinds |= {row.__struct_config__.tag for row in scenario.agents}
        for mechanism in MECHANISMS:
            run(replace(scenario, mechanism=mechanism), 20)
    assert kinds == {"poisson", "crowd", "loop", "trigger", "traffic"}


def test_the_page_names_every_field() -> None:
    """Each field of each kind of agent, offer, pattern and distribution stands on the page of scenarios."""
    page = (ROOT / "docs/reference/scenarios.md").read_text(encoding="utf-8")
    kinds = [*get_args(AnyRow), *get_args(AnyOffer), *get_args(AnyPattern), Uniform, Exponential, Lognormal, Pareto]
    for kind in [*kinds, Impatience, Funding, Scenario]:
        for name in kind.__struct_fields__:
            assert re.search(rf"`{name}`|^{name} = |\[\[?{name}\]|[{{ ]{name} = ", page, re.MULTILINE), (kind, name)
