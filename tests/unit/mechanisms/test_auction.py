"""The auction's selection, rule by rule: weighing, lateness, questions, ranking, slices, pool, end of the block."""

import msgspec
import pytest

from tests.unit.mechanisms.auction_blocks import ALICE, BOB, CAROL, Block
from tests.unit.mechanisms.auction_worlds import HALF, World, make_timers
from trailboss.mechanisms.auction import Auction, build_auction
from trailboss.mechanisms.base import Charging, DueTimers, Phase
from trailboss.model import calls
from trailboss.model.auction import DelayAction
from trailboss.model.configs import MarketKind
from trailboss.model.decisions import FeeSource, Stop
from trailboss.model.timers import Timer
from trailboss.params import load_params
from trailboss.primitives.errors import InvariantError


def order(timers: list[Timer], world: World | None = None, **terms: object) -> list[int]:
    """Return the numbers of the timers in the order in which they fire when the budget is large."""
    return [number for number, _ in Block(timers, world, **({"budget": 10**6} | terms)).outcomes()]


def bidding(*tips: int, **change: object) -> list[Timer]:
    """Return timers that bid these tips, above any basefee."""
    return make_timers(*({"bid": (1_000, tip)} | change for tip in tips))


@pytest.mark.spec("A-01", "A-02")
def test_policy_is_that_of_the_parameters() -> None:
    """Before the transactions, in turn; two calls; its own state; bounds from the chain's parameters."""
    auction = build_auction(load_params())
    policy = auction.policy
    assert (auction.name, policy.phase, policy.charging) == ("auction", Phase.BEFORE_TRANSACTIONS, Charging.IN_TURN)
    assert (policy.examined_max, policy.joined_max, policy.passed_over_max) == (25_000, 10_000, 256)
    assert policy.dead_examined_max == 256
    assert policy.calls == {calls.SET_TIMEOUT_AUCTION, calls.CANCEL}
    assert policy.keeps is MarketKind.AUCTION


def test_timer_is_refused_when_it_is_another_mechanisms() -> None:
    """There is no agent to ask."""
    (timer,) = make_timers({})
    with pytest.raises(InvariantError, match="no AuctionTerms"):
        Block([msgspec.structs.replace(timer, terms=None)])


def test_timer_is_refused_when_it_joins_twice() -> None:
    """The queue offers each once."""
    timers = make_timers({})
    block = Block(timers, spent=1_000)
    with pytest.raises(InvariantError, match="a second time"):
        block.open(timers)


def test_rest_is_refused_when_the_walk_is_not_over() -> None:
    """What is left is not known before."""
    with pytest.raises(InvariantError, match="when it is over"):
        Block([]).selection.rest()


@pytest.mark.spec("A-04")
def test_order_is_by_effective_tip_when_bids_differ() -> None:
    """min(tip, max_fee - basefee) at a basefee of 10: 5, 6 (room for 6 of 90), 0, 7; the last is below the basefee."""
    timers = make_timers({"bid": (100, 5)}, {"bid": (16, 90)}, {"bid": (10, 10)}, {"bid": (17, 7)}, {"bid": (9, 9)})
    block = Block(timers, budget=10**6)
    fired = list(block.decisions())
    assert [(each.timer.sequence, each.rank, each.prices.cycle_tip) for each in fired] == [
        (3, 1, 7),
        (1, 2, 6),
        (0, 3, 5),
        (2, 4, 0),
    ]
    rest = block.selection.rest()
    assert (rest.stopped, rest.joined, rest.priced_out, rest.outranked) == (Stop.NONE_LEFT, 1, 1, 0)


@pytest.mark.spec("A-04")
def test_order_follows_the_basefee_when_it_moves() -> None:
    """(30, 9) offers 9 up to a basefee of 21 and (1000, 4) always 4: at 27 the first is behind, at 31 priced out."""
    timers = make_timers({"bid": (30, 9)}, {"bid": (1_000, 4)})
    assert order(timers, basefee=10) == [0, 1]
    assert order(timers, basefee=27) == [1, 0]
    assert order(timers, basefee=31) == [1]
    block = Block(timers, basefee=31, spent=1_000)
    assert block.outcomes() == []
    assert block.next(basefee=20, budget=10**6) == [(0, "fire"), (1, "fire")]


@pytest.mark.spec("A-04")
def test_pre_charge_is_basefee_tip_and_cells_when_a_timer_fires() -> None:
    """100 cycles at 10 + 5, and 50 cells at 3: 1,650, from the owner."""
    block = Block(bidding(5))
    (decision,) = block.decisions()
    assert (decision.max_cost, decision.prices.cycle_basefee, decision.prices.cell_basefee) == (1_650, 10, 3)
    assert (decision.max_fee, decision.weight, decision.fee_source) == (1_000, HALF, FeeSource.FROZEN)


@pytest.mark.spec("A-11")
def test_ties_are_broken_by_weight_and_then_by_due_order_when_tips_are_equal() -> None:
    """All offer 5, one of them by room; Bob weighs most, then Alice, then Carol; Bob's older timer is first."""
    timers = make_timers(
        {"actor": CAROL, "bid": (100, 5), "height": 1},
        {"actor": ALICE, "bid": (15, 9)},
        {"actor": BOB, "bid": (100, 5)},
        {"actor": BOB, "bid": (90, 5), "height": 19},
        {"actor": ALICE, "bid": (100, 5)},
    )
    world = World(weights={ALICE: 4 * HALF // 5, BOB: HALF, CAROL: HALF // 5})
    assert order(timers, world) == [3, 2, 1, 4, 0]


@pytest.mark.spec("A-11", "A-05")
def test_budget_is_sold_by_slices_and_then_by_tip_when_an_actor_bids_for_more_than_its_slice() -> None:
    """Weights 2 : 1 : 1 cut a budget of 1,000 into slices of 500, 250 and 250; each timer takes 200.

    By tip Alice (weight 1) stands first with four timers, then Bob (2) with three, then Carol (1) with one.
    First walk: Alice's slice holds one, Bob's two, Carol's one. That is 800. Of those kept, Alice's second has the
    highest tip and takes the last 200. Nothing is left for her third, her fourth and Bob's third.
    """
    actors = [ALICE] * 4 + [BOB] * 3 + [CAROL]
    timers = make_timers(
        *({"actor": actor, "gas_limit": 200, "bid": (1_000, 90 - n)} for n, actor in enumerate(actors))
    )
    world = World(weights={ALICE: HALF // 2, BOB: HALF, CAROL: HALF // 2})
    block = Block(timers, world, budget=1_000)
    fired = [(each.timer.sequence, each.rank) for each in block.decisions()]
    assert fired == [(0, 1), (4, 5), (5, 6), (7, 8), (1, 2)]
    rest = block.selection.rest()
    assert (rest.stopped, rest.joined, rest.outranked, rest.smallest_gas) == (Stop.LANE_FULL, 3, 3, 200)
    assert [(each.timer.sequence, each.rank) for each in rest.runners_up] == [(2, 3), (3, 4), (6, 7)]


@pytest.mark.spec("A-11")
def test_slice_is_used_up_by_cycles_used_when_fires_need_less_than_their_limits() -> None:
    """Two slices of 300; Alice's fires take 100 of 200, so hers holds two; her third comes after Bob's."""
    timers = make_timers(
        *({"actor": actor, "gas_limit": 200, "bid": (1_000, 9)} for actor in (ALICE, ALICE, ALICE, BOB))
    )
    world = World(used={timer.timer_id: 100 for timer in timers})
    assert order(timers, world, budget=600) == [0, 1, 3, 2]


@pytest.mark.spec("A-05", "A-11")
def test_order_is_that_of_tips_when_no_slice_holds_a_timer() -> None:
    """Three slices of 99 for timers of 100: the pool sells 200 to the two that bid most, of one actor."""
    timers = make_timers(
        *({"actor": actor, "bid": (1_000, tip)} for actor, tip in [(ALICE, 1), (BOB, 9), (BOB, 8), (CAROL, 2)])
    )
    block = Block(timers, budget=299)
    assert block.outcomes() == [(1, "fire"), (2, "fire")]
    assert block.selection.rest().stopped is Stop.LANE_FULL


@pytest.mark.spec("A-14", "A-08")
def test_six_highest_fire_and_four_are_carried_over_when_ten_bid_for_a_budget_of_six() -> None:
    """The overview's example, ten bids for room for six; the next block sells to the four, in their order."""
    tips = [3, 10, 7, 1, 9, 5, 8, 2, 6, 4]
    block = Block(bidding(*tips), budget=600)
    assert [tips[number] for number, _ in block.outcomes()] == [10, 9, 8, 7, 6, 5]
    rest = block.selection.rest()
    assert (rest.stopped, rest.joined, rest.outranked) == (Stop.LANE_FULL, 4, 4)
    assert [tips[each.timer.sequence] for each in rest.runners_up] == [4, 3, 2, 1]
    assert [tips[number] for number, _ in block.next()] == [4, 3, 2, 1]
    assert block.world.timers == {}


@pytest.mark.spec("A-08")
def test_carried_over_timer_is_not_written_when_nothing_is_decided_about_it() -> None:
    """What was outranked, and what was priced out, is as it was."""
    timers = make_timers({"bid": (1_000, 9)}, {"bid": (1_000, 1)}, {"bid": (9, 9)})
    block = Block(timers, budget=100)
    assert block.outcomes() == [(0, "fire")]
    assert list(block.world.timers.values()) == timers[1:]


@pytest.mark.spec("A-05")
def test_timer_is_passed_over_when_it_does_not_fit_and_a_smaller_one_follows() -> None:
    """Two slices of 500 hold Alice's 450 and 50, and Bob's 100 and 150; in the 250 that are left her 200 run.

    Her 400 are told to wait: they come before her 200, and did not fit.
    """
    limits = [(ALICE, 450), (ALICE, 400), (BOB, 100), (ALICE, 200), (BOB, 150), (ALICE, 50)]
    timers = make_timers(
        *({"actor": actor, "gas_limit": gas, "bid": (1_000, 9 - n)} for n, (actor, gas) in enumerate(limits))
    )
    block = Block(timers)
    fired = [(number, "fire") for number in (0, 2, 4, 5)]
    assert block.outcomes() == [*fired, (1, "lane_full"), (3, "fire")]
    rest = block.selection.rest()
    assert (rest.stopped, rest.joined, rest.outranked, rest.smallest_gas) == (Stop.NONE_LEFT, 1, 0, 0)


def test_walk_ends_when_as_many_are_passed_over_as_may_be() -> None:
    """No slice of 333 holds one of 400: in the pool one fires, two do not fit the 600, and the next in rank would."""
    offers = [(BOB, 400, 9), (BOB, 700, 8), (BOB, 800, 7), (CAROL, 500, 6), (ALICE, 500, 5)]
    timers = make_timers(*({"actor": actor, "gas_limit": gas, "bid": (1_000, tip)} for actor, gas, tip in offers))
    block = Block(timers, passed_over_max=2)
    assert block.outcomes() == [(0, "fire"), (1, "lane_full"), (2, "lane_full")]
    rest = block.selection.rest()
    assert (rest.stopped, rest.outranked) == (Stop.PASSED_OVER_MAX, 2)


@pytest.mark.spec("A-05")
def test_first_timer_fires_when_it_is_larger_than_the_budget() -> None:
    """A budget that governance has lowered to 300, for 400 and 500: each runs where nothing has run before it.

    Alice's 100 fit her slice and run first; 250 of 300 are left then, and neither the 400 nor the 500 fit.
    """
    offers = [(BOB, 400, 9), (BOB, 500, 8), (ALICE, 100, 1)]
    timers = make_timers(*({"actor": actor, "gas_limit": gas, "bid": (1_000, tip)} for actor, gas, tip in offers))
    priced_out = make_timers({"gas_limit": 50, "bid": (9, 9), "sequence": 3, "timer_id": b"%032d" % 3})
    world = World(used=dict.fromkeys((timer.timer_id for timer in timers), 50))
    block = Block([*timers, *priced_out], world, budget=300)
    assert block.outcomes() == [(2, "fire"), (0, "lane_full"), (1, "lane_full")]
    assert block.next() == [(0, "fire"), (1, "lane_full")]
    world.used.clear()
    assert block.next() == [(1, "fire")]


def test_block_is_over_when_its_first_fire_has_used_more_than_the_budget() -> None:
    """Of two that are larger than the budget the second has its turn in the next block."""
    block = Block(bidding(9, 8, gas_limit=400), budget=300)
    assert block.outcomes() == [(0, "fire")]
    rest = block.selection.rest()
    assert (rest.stopped, rest.outranked, block.world.budget_left) == (Stop.LANE_FULL, 1, -100)
    assert block.next() == [(1, "fire")]


def test_walk_ends_when_as_many_were_looked_at_as_may_be() -> None:
    """Three ranks of five, whether they were decided or kept for the pool; the next in rank are named."""
    timers = make_timers(*({"actor": actor, "bid": (1_000, 9 - n)} for n, actor in enumerate([BOB] * 3 + [ALICE] * 2)))
    block = Block(timers, budget=400, examined_max=3)
    assert block.outcomes() == [(0, "fire"), (1, "fire"), (2, "fire")]
    rest = block.selection.rest()
    assert rest.stopped is Stop.EXAMINED_MAX
    assert [each.rank for each in rest.runners_up] == [4, 5]


@pytest.mark.spec("A-03")
def test_agents_are_asked_new_ones_first_then_the_longest_ago_when_questions_are_few() -> None:
    """Of the block's own height before older ones; who was asked in block 18 before who was in 19."""
    timers = make_timers({"height": 18}, {"height": 20}, {"height": 17}, {"height": 20}, {"bid": (1_000, 1)})
    block = Block(timers, spent=1_000, questions=3)
    assert (block.outcomes(), block.asked()) == ([], [1, 3, 2])
    assert (block.next(questions=2), block.asked()) == ([], [0, 4])
    joining = msgspec.structs.replace(timers[0], height=22, sequence=9, timer_id=b"%032d" % 9)
    assert (block.next([joining], questions=4), block.asked()) == ([], [9, 2, 1, 3])


@pytest.mark.spec("A-03")
def test_bid_stands_until_the_next_question_when_the_budget_is_spent() -> None:
    """Never asked: the default bid, without a tip. Asked: the agent's, with what the question used. Then frozen."""
    (timer,) = make_timers({})
    block = Block([timer], World(bids={timer.timer_id: (40, 30)}), spent=1_000)
    found = []
    for questions in (0, 1, 0):
        assert block.next(questions=questions) == []
        (each,) = block.selection.rest().runners_up
        found.append((each.max_fee, each.prices.cycle_tip, each.fee_source, each.agent_cycles))
    assert found == [(20, 0, FeeSource.FALLBACK, 0), (40, 30, FeeSource.AGENT, 5), (40, 30, FeeSource.FROZEN, 0)]


@pytest.mark.spec("A-13", "A-08")
def test_late_timers_are_told_once_when_the_action_is_an_event() -> None:
    """Late is more than three blocks after 16: in block 20. The order stays that of tips."""
    timers = make_timers({"height": 16, "bid": (1_000, 1)}, {"height": 17, "bid": (1_000, 2)})
    block = Block(timers, spent=1_000, delays_max=3)
    assert block.outcomes() == [(0, "delay")]
    assert block.next() == [(1, "delay")]
    assert block.next(budget=10**6) == [(1, "fire"), (0, "fire")]


@pytest.mark.spec("A-13")
def test_late_timers_go_first_in_due_order_when_the_action_is_the_front() -> None:
    """They pay their own tips; one that is priced out is told, and not ranked."""
    bids = [(16, 1), (20, 9), (15, 3), (14, 0)]
    timers = make_timers(*({"height": height, "bid": (9 if not tip else 1_000, tip)} for height, tip in bids))
    block = Block(timers, budget=10**6, delays_max=3, delay_action=DelayAction.FRONT)
    found = [(each.timer.sequence, str(each.verdict), each.rank, each.prices.cycle_tip) for each in block.decisions()]
    assert found == [
        (3, "delay", 0, 0),
        (2, "delay", 0, 0),
        (0, "delay", 0, 0),
        (2, "fire", 1, 3),
        (0, "fire", 2, 1),
        (1, "fire", 3, 9),
    ]


@pytest.mark.spec("A-13")
def test_late_timers_are_cancelled_oldest_first_when_the_action_is_to_cancel() -> None:
    """Marked before or not, as many as may join in a block; one that has not had its turn competes as before."""
    timers = make_timers(*({"height": height, "bid": (1_000, 5), "late": height == 15} for height in (16, 15, 14, 20)))
    block = Block(timers, delays_max=3, delay_action=DelayAction.CANCEL, joined_max=2, budget=100)
    assert block.outcomes() == [(2, "cancel"), (1, "cancel"), (0, "fire")]
    assert block.next() == [(3, "fire")]


@pytest.mark.spec("A-09", "A-12")
def test_actors_are_weighed_when_their_timers_join_and_otherwise_by_address_within_the_bound() -> None:
    """In a new epoch: Carol, who joins, beside one that waits in each block, Alice before Bob."""
    timers = make_timers({"actor": BOB}, {"actor": ALICE}, {"actor": CAROL})
    block = Block(timers[:2], spent=1_000, actors_weighed_max=1)
    assert (block.outcomes(), block.world.refreshed) == ([], [BOB, ALICE])
    assert (block.next(timers[2:], epoch=1), block.world.refreshed) == ([], [CAROL, ALICE])
    assert (block.next(), block.world.refreshed) == ([], [BOB])
    assert (block.next(), block.world.refreshed) == ([], [])
    assert (block.next(rescales=1, actors_weighed_max=9), block.world.refreshed) == ([], [ALICE, BOB, CAROL])


@pytest.mark.spec("A-11")
def test_weight_counts_from_the_block_in_which_it_is_freshened() -> None:
    """Alice and Bob offer the same; who weighs more comes first, and that changes with the epoch."""
    timers = make_timers({"actor": ALICE, "bid": (1_000, 5)}, {"actor": BOB, "bid": (1_000, 5)})
    block = Block(timers, spent=1_000)
    assert [each.timer.actor for each in block.selection] == []
    assert [each.weight for each in block.selection.rest().runners_up] == [HALF, HALF]
    block.world.weights = {ALICE: HALF // 2}
    assert block.next(epoch=1) == []
    assert [each.timer.actor for each in block.selection.rest().runners_up] == [BOB, ALICE]


def test_cancelled_timer_leaves_its_rank_unused_when_a_fire_cancels_it() -> None:
    """The second of three goes while the first runs."""
    timers = bidding(9, 8, 7)
    block = Block(timers)
    ranks = []
    for decision in block.decisions():
        ranks.append((decision.timer.sequence, decision.rank))
        if decision.rank == 1:
            block.world.remove(timers[1].timer_id)
    assert ranks == [(0, 1), (2, 3)]


def test_nothing_is_said_about_waiting_when_the_auction_is_asked_for_an_idle_stretch() -> None:
    """Every waiting timer is asked, or competes, in every block."""
    block = Block(make_timers({}), spent=1_000)
    assert block.outcomes() == []
    block.auction.expire([bytes(32)])
    assert not block.auction.only_wait(1)


def test_auction_hears_before_its_first_block_without_an_index() -> None:
    """There is nothing to be in; what follows is read from what waits."""
    auction: Auction = build_auction(load_params())
    (timer,) = make_timers({})
    auction.begin(lambda: iter(()))
    auction.schedule(timer)
    auction.replace(timer)
    auction.recount(ALICE, 3)
    auction.leave(timer.timer_id)
    assert not auction.is_watched(b"key")
    world = World()
    world.timers, world.joined = {timer.timer_id: timer}, {timer.timer_id}
    assert len(list(auction.select(DueTimers(iter([timer])), world.context()))) == 1
