"""The lane's selection, rule by rule: expiry, cap, agents, ranking, walk, and what may happen between two decisions."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest

from tests.unit.mechanisms.lane_worlds import WHOLE, Terms, World, due, make_timers
from trailboss.mechanisms.base import Charging, Decision, DueTimers, Phase
from trailboss.mechanisms.context import Bid
from trailboss.mechanisms.fee_lane import Lane, build_lane
from trailboss.mechanisms.fee_lane.selection import LaneSelection
from trailboss.model.decisions import FeeSource, Stop
from trailboss.model.timers import ASK_AGENT, NO_FEES, Timer, freeze_fees
from trailboss.params import load_params
from trailboss.primitives.errors import InvariantError

ALICE, BOB = b"\x0a" * 20, b"\x0b" * 20


def fees(max_fee: int, priority: int) -> dict[str, object]:
    return {"fees": freeze_fees(max_fee, priority)}


class Block:
    """A lane over a world of timers, selected block by block."""

    def __init__(self, timers: list[Timer], **terms: object) -> None:
        self.world = World(terms=Terms(**terms))
        overrides = {
            "timers.due_examined_max": self.world.terms.examined_max,
            "timers.dead_examined_max": self.world.terms.dead_examined_max,
            "lane.passed_over_max": self.world.terms.passed_over_max,
            "lane.joined_max": self.world.terms.joined_max,
        }
        self.lane = build_lane(load_params(overrides=overrides))
        self.world.follower = self.lane
        self.selection = self.open(timers)

    def open(self, joining: list[Timer]) -> LaneSelection:
        self.selection = self.lane.select(due(self.world, joining), self.world.context())
        return self.selection

    def decisions(self) -> Iterator[Decision]:
        for decision in self.selection:
            self.world.carry_out(decision)
            yield decision

    def outcomes(self) -> list[tuple[int, str]]:
        """Return number and verdict or reason of each decision, all carried out."""
        return [(decision.timer.sequence, str(decision.reason or decision.verdict)) for decision in self.decisions()]

    def next(self, joining: list[Timer] | None = None, **terms: object) -> list[tuple[int, str]]:
        changed = {"height": self.world.terms.height + 1} | terms
        self.world.terms = replace(self.world.terms, **changed)
        self.open(joining or [])
        return self.outcomes()


def outcomes(timers: list[Timer], **terms: object) -> list[tuple[int, str]]:
    return Block(timers, **terms).outcomes()


def order(timers: list[Timer], **terms: object) -> list[int]:
    return [number for number, _ in outcomes(timers, **({"lane": 10**6} | terms))]


@pytest.mark.spec("L-04", "L-28")
def test_policy_settles_each_timer_before_the_next() -> None:
    """After the transactions, in turn, with a market; the bounds are the chain's parameters."""
    lane = build_lane(load_params())
    assert (lane.name, lane.policy.phase, lane.policy.charging) == ("lane", Phase.AFTER_TRANSACTIONS, Charging.IN_TURN)
    assert (lane.policy.examined_max, lane.policy.joined_max, lane.policy.passed_over_max) == (25_000, 10_000, 256)
    assert lane.policy.dead_examined_max == 256


@pytest.mark.spec("L-29")
def test_expired_timers_go_first_by_expiry_and_due_order_when_the_budget_lasts() -> None:
    """Two removals of 200 out of 400; the third expired one is not ranked and gets no decision."""
    timers = make_timers({"expires_at": 19}, {}, {"expires_at": 18}, {"expires_at": 18, "height": 17})
    block = Block(timers)
    assert block.outcomes() == [(3, "expire"), (2, "expire"), (1, "fire")]
    assert block.selection.rest().joined == 0
    assert block.next() == [(0, "expire")]


@pytest.mark.spec("L-29", "F-75")
def test_expired_timers_are_removed_whether_they_have_joined_or_not() -> None:
    """One has joined and died while it waited, the other has never joined: the first to expire goes first."""
    block = Block(make_timers({"expires_at": 20} | fees(9, 0), {}), gc=200)
    assert block.outcomes() == [(1, "fire")]
    late, later = make_timers(*[{}] * 7, {"expires_at": 19}, {})[7:]
    assert block.next([late, later], height=21) == [(7, "expire"), (8, "fire")]
    assert block.next() == [(0, "expire")]


@pytest.mark.spec("L-08")
def test_barred_timers_are_removed_with_what_the_expired_leave_of_the_budget() -> None:
    """In due order, those that cannot be paid: at the least that a fire costs, without any tip."""
    block = Block([], gc=600)
    expired, live = make_timers({"expires_at": 1}, {"sequence": 9, "timer_id": b"%032d" % 9} | fees(50, 5))
    changes = [
        {"fee_payer": BOB, "sequence": number, "timer_id": b"%032d" % number, "height": height, "gas_limit": gas_limit}
        for number, height, gas_limit in ((2, 20, 100), (3, 20, 3_000), (4, 19, 90), (5, 19, 91))
    ]
    block.world.balances[BOB] = 90 * (7 + 10) + 150
    block.selection = block.lane.select(due(block.world, [expired, live], make_timers(*changes)), block.world.context())
    found = list(block.decisions())
    assert [(each.timer.sequence, str(each.verdict)) for each in found] == [
        (0, "expire"), (5, "unfund"), (2, "unfund"), (9, "fire"),
    ]  # fmt: skip
    assert [(each.max_cost, each.available, each.rank) for each in found[1:3]] == [
        (91 * 17 + 150, 90 * 17 + 150, 0),
        (100 * 17 + 150, 90 * 17 + 150, 0),
    ]


def test_expired_timer_keeps_out_of_the_ranking_when_it_would_be_first() -> None:
    """It does not use a rank either."""
    (decision,) = Block(make_timers({"expires_at": 19} | fees(500, 400), fees(50, 5)), gc=0).decisions()
    assert (decision.timer.sequence, decision.rank) == (1, 1)


def test_timer_competes_on_when_it_was_extended_in_the_block_in_which_it_would_expire() -> None:
    """A transaction of the block came before the block's timers."""
    block = Block(make_timers({"expires_at": 20} | fees(50, 5)), lane=0)
    assert block.outcomes() == []
    block.world.write(msgspec.structs.replace(block.world.timers[b"%032d" % 0], expires_at=30))
    assert block.next(lane=1_000) == [(0, "fire")]


@pytest.mark.spec("L-05")
def test_timer_above_the_cap_is_set_aside_and_told_once() -> None:
    """Whatever it offers, it is not ranked; the next block says nothing."""
    block = Block(make_timers({"gas_limit": 300} | fees(900, 800), {"gas_limit": 250}), cap=250)
    assert block.outcomes() == [(0, "over_cap"), (1, "fire")]
    assert block.selection.rest().over_cap == 1
    assert block.next() == []


@pytest.mark.spec("L-05")
def test_timers_above_the_cap_are_told_in_due_order_at_most_so_many_a_block() -> None:
    """Three of them, two a block; one that was told of another reason before is told too."""
    timers = make_timers({"gas_limit": 300}, {"gas_limit": 300, "height": 19}, {"gas_limit": 300, "height": 18})
    timers[2] = msgspec.structs.replace(timers[2], deferred_for="lane_full")
    block = Block(timers, cap=250, joined_max=2)
    assert block.outcomes() == [(2, "over_cap"), (1, "over_cap")]
    assert block.next() == [(0, "over_cap")]


def test_expired_timer_above_the_cap_is_not_told() -> None:
    """It waits for its removal only."""
    assert outcomes(make_timers({"gas_limit": 300, "expires_at": 1}), cap=250, gc=0) == []


@pytest.mark.spec("L-05", "L-31")
def test_gas_limit_is_clamped_when_the_timer_is_from_before_the_activation() -> None:
    """With the clamp it is held to the cap, and charged for that; the same timer of a later block is set aside."""
    timers = make_timers({"gas_limit": 300, "schedule_block": 4}, {"gas_limit": 300, "schedule_block": 5})
    block = Block(timers, cap=250, clamps_before=5, basefee=10, previous_tip=3)
    told, fired = block.decisions()
    assert (told.timer.sequence, str(told.reason), told.gas_limit) == (1, "over_cap", 300)
    assert (fired.gas_limit, fired.max_cost) == (250, 250 * (7 + 10 + 3) + 150)


@pytest.mark.spec("L-05")
def test_timers_are_set_aside_anew_when_the_cap_changes() -> None:
    """A lower cap sets one more aside, a higher one lets both compete, and each change to over the cap is told."""
    block = Block(make_timers({"gas_limit": 300}, {"gas_limit": 200}), cap=250, lane=0)
    assert block.outcomes() == [(0, "over_cap")]
    assert block.next(cap=150) == [(1, "over_cap")]
    assert block.next(cap=400, lane=1_000) == [(0, "fire"), (1, "fire")]


@pytest.mark.spec("L-02", "L-06")
def test_tip_is_what_the_cap_leaves_room_for() -> None:
    """Caps 50 and 12 above a basefee of 10, stated 5 and 5: the tips are 5 and 2, and are charged with the basefees."""
    first, second = Block(make_timers(fees(12, 5), fees(50, 5))).decisions()
    assert [decision.prices.cycle_tip for decision in (first, second)] == [5, 2]
    assert (first.max_cost, second.max_cost) == (100 * (7 + 10 + 5) + 150, 100 * (7 + 10 + 2) + 150)
    assert (first.prices.lane_basefee, first.prices.cell_tip, first.max_fee) == (10, 0, 50)


@pytest.mark.spec("L-13")
def test_timer_without_priority_fires_when_there_is_room() -> None:
    """It pays the basefees alone; its cap need only cover the lane's."""
    (decision,) = Block(make_timers(fees(10, 0))).decisions()
    assert (str(decision.verdict), decision.prices.cycle_tip, decision.weight) == ("fire", 0, 2 * WHOLE)


@pytest.mark.spec("L-09")
def test_timer_is_priced_out_when_its_cap_is_below_the_basefee() -> None:
    """No decision tells so; it is counted, and competes when the basefee has come down."""
    block = Block(make_timers(fees(9, 4), fees(10, 0)))
    assert block.outcomes() == [(1, "fire")]
    assert (block.selection.rest().priced_out, block.selection.rest().outranked) == (1, 0)
    assert block.next(basefee=9) == [(0, "fire")]


@pytest.mark.spec("L-03")
def test_order_is_by_tip_and_then_by_timer_id() -> None:
    """The due order plays no part."""
    timers = make_timers(fees(50, 1), fees(50, 3), fees(13, 9) | {"timer_id": b"%032d" % 999}, fees(50, 2))
    assert order(timers) == [1, 2, 3, 0]
    same = make_timers(*[fees(50, 1) | {"timer_id": bytes([9 - number]) * 32} for number in range(5)])
    assert order(same) == [4, 3, 2, 1, 0]


@pytest.mark.spec("L-02", "L-23", "L-24")
def test_weight_decides_when_tips_are_close() -> None:
    """2 against 1 doubles a tip of 6 to beat 11, and ties with 12, where the id decides."""
    timers = make_timers({"actor": ALICE} | fees(99, 11), {"actor": BOB} | fees(99, 6), {"actor": ALICE} | fees(99, 12))
    block = Block([], median=4, lane=10**6)
    block.world.fires = {ALICE: 9}
    block.world.joined.clear()
    block.open(timers)
    assert [(each.timer.sequence, each.weight) for each in block.decisions()] == [
        (1, 2 * WHOLE),
        (2, WHOLE),
        (0, WHOLE),
    ]


@pytest.mark.spec("L-25")
def test_weight_does_not_move_within_a_block() -> None:
    """Fires that are heard of during the walk count in the next block."""
    block = Block(make_timers(*[{"actor": ALICE} | fees(50, tip) for tip in (3, 2, 1)]), median=1)
    weights = []
    for fires, decision in enumerate(block.decisions(), 1):
        block.world.fires[ALICE] = fires
        block.lane.recount(ALICE, fires)
        weights.append(decision.weight)
    assert weights == [2 * WHOLE] * 3
    block.world.terms.lane = 0
    block.next(make_timers({"actor": ALICE, "timer_id": bytes(32)}))
    (runner_up,) = block.selection.rest().runners_up
    assert runner_up.weight == WHOLE


@pytest.mark.spec("L-19")
@pytest.mark.parametrize(("previous_tip", "tip"), [(3, 3), (10, 10), (11, 10)])
def test_timer_without_fees_offers_what_the_default_agent_does(previous_tip: int, tip: int) -> None:
    """Twice the basefee and the median tip, which the basefee bounds."""
    (decision,) = Block(make_timers({"fees": NO_FEES}), previous_tip=previous_tip).decisions()
    assert (decision.prices.cycle_tip, decision.max_fee, decision.fee_source) == (tip, 20, FeeSource.DEFAULT)


@pytest.mark.spec("L-20")
def test_agents_of_the_own_height_are_asked_first_when_the_budget_has_room_for_two() -> None:
    """Then the oldest; the third timer takes the default agent's fees in this block, and is not changed."""
    timers = make_timers(*[{"fees": ASK_AGENT, "height": height} for height in (20, 18, 19)])
    block = Block(timers, lane=10**6)
    asked: list[int] = []

    def ask(timer: Timer) -> Bid | None:
        asked.append(timer.sequence)
        return Bid(100, 10 * len(asked), FeeSource.AGENT, 5) if len(asked) < 3 else None

    context = block.world.context()
    market = msgspec.structs.replace(context.market, ask=ask)
    block.selection = block.lane.select(DueTimers(()), msgspec.structs.replace(context, market=market))
    found = {decision.timer.sequence: decision for decision in block.decisions()}
    assert asked == [0, 1, 2]
    assert [found[number].prices.cycle_tip for number in (0, 1, 2)] == [10, 20, 3]
    assert [found[number].agent_cycles for number in (0, 1, 2)] == [5, 5, 0]
    assert [str(found[number].fee_source) for number in (0, 1, 2)] == ["agent", "agent", "fallback"]
    assert [found[number].rank for number in (1, 0, 2)] == [1, 2, 3]


@pytest.mark.spec("L-20")
def test_agents_are_not_asked_when_their_timers_cannot_run() -> None:
    """Neither of an expired timer nor of one above the cap; questions come after the removals."""
    timers = make_timers(
        {"fees": ASK_AGENT, "expires_at": 1}, {"fees": ASK_AGENT, "gas_limit": 2_000}, {"fees": ASK_AGENT}
    )
    block = Block(timers, gc=0)
    asked: list[tuple[int, int]] = []
    context = block.world.context()

    def ask(timer: Timer) -> Bid | None:
        asked.append((timer.sequence, len(told)))
        return Bid(9, 0, FeeSource.AGENT, 5)

    told: list[Decision] = []
    market = msgspec.structs.replace(context.market, ask=ask)
    block.selection = block.lane.select(DueTimers(()), msgspec.structs.replace(context, market=market))
    told.extend(block.decisions())
    assert [str(decision.reason) for decision in told] == ["over_cap"]
    assert asked in ([(2, 0)], [(2, 1)])
    assert block.selection.rest().priced_out == 1


@pytest.mark.spec("L-20")
def test_timer_is_not_asked_about_again_when_its_agent_failed() -> None:
    """Its record has become one without fees, also when nobody else told the lane."""
    (timer,) = make_timers({"fees": ASK_AGENT})
    block = Block([timer], lane=0)
    context = block.world.context()

    def ask(timer: Timer) -> Bid | None:
        block.world.timers[timer.timer_id] = msgspec.structs.replace(timer, fees=NO_FEES)
        return Bid(20, 3, FeeSource.FALLBACK, 5)

    market = msgspec.structs.replace(context.market, ask=ask)
    block.selection = block.lane.select(DueTimers(()), msgspec.structs.replace(context, market=market))
    assert block.outcomes() == []
    assert [each.fee_source for each in block.selection.rest().runners_up] == [FeeSource.FALLBACK]
    block.world.terms.questions = 9
    block.next(lane=0)
    assert [each.fee_source for each in block.selection.rest().runners_up] == [FeeSource.DEFAULT]


@pytest.mark.spec("L-08")
def test_unfunded_timer_is_removed_when_its_turn_comes() -> None:
    """Funds come before room; when the clean-up budget is spent it waits, with the numbers that say why."""
    timers = make_timers(*[{"fee_payer": BOB, "gas_limit": 900} | fees(50, tip) for tip in (9, 8, 7)], fees(50, 1))
    block = Block(timers)
    block.world.balances[BOB] = 42
    found = list(block.decisions())
    assert [str(each.reason or each.verdict) for each in found] == ["unfund", "unfund", "gc_exhausted", "fire"]
    assert (found[2].available, found[2].max_cost, found[2].rank) == (42, 900 * (7 + 10 + 7) + 150, 3)


@pytest.mark.spec("L-08", "F-75")
def test_payer_is_out_for_the_block_when_it_cannot_pay_and_the_dead_are_too_many() -> None:
    """After one removal and one deferral Bob's have no turn and no rank. All compete in the next block."""
    poor = [{"fee_payer": BOB} | fees(50, 40 - number) for number in range(9)]
    block = Block(make_timers(*poor, fees(50, 1), fees(50, 0)), gc=200, dead_examined_max=1, examined_max=2)
    block.world.balances[BOB] = 0
    found = [(each.timer.sequence, str(each.reason or each.verdict), each.rank) for each in block.decisions()]
    assert found == [(0, "unfund", 1), (1, "gc_exhausted", 2), (9, "fire", 4), (10, "fire", 5)]
    assert (block.selection.rest().joined, block.selection.rest().outranked) == (8, 7)
    assert block.next() == [(1, "unfund"), (2, "gc_exhausted")]
    block.world.balances[BOB] = 10**6
    assert block.next() == [(2, "fire"), (3, "fire")]


@pytest.mark.spec("L-08", "F-75")
def test_payer_that_can_pay_for_less_loses_its_later_turns_when_it_is_out() -> None:
    """Bob can pay 100 cycles and not 500: the smaller one behind the larger waits for the next block."""
    rows = ((BOB, 500, 9), (BOB, 100, 8), (ALICE, 500, 7))
    timers = make_timers(*[{"fee_payer": payer, "gas_limit": gas} | fees(50, tip) for payer, gas, tip in rows])
    (first,) = make_timers({"fee_payer": ALICE, "timer_id": b"%032d" % 9, "sequence": 9} | fees(50, 40))
    block = Block([first, *timers], gc=0, dead_examined_max=1)
    block.world.balances |= {BOB: 100 * (7 + 10 + 9) + 150, ALICE: 0}
    walk = block.decisions()
    assert next(walk).timer.sequence == 9
    block.world.balances[ALICE] = 10**6
    assert [(each.timer.sequence, str(each.verdict)) for each in walk] == [(2, "fire")]
    assert block.next() == [(9, "fire"), (0, "gc_exhausted"), (1, "fire")]


@pytest.mark.spec("L-08")
def test_balance_is_read_when_the_turn_comes() -> None:
    """A fire that empties the purse of the next one's payer is noticed."""
    block = Block(make_timers(fees(50, 9), {"fee_payer": BOB} | fees(50, 8)))
    block.world.balances[BOB] = 10**6
    walk = block.decisions()
    assert str(next(walk).verdict) == "fire"
    block.world.balances[BOB] = 0
    assert str(next(walk).verdict) == "unfund"


@pytest.mark.spec("L-04")
def test_lane_fills_by_use_and_not_by_gas_limits() -> None:
    """Three limits of 500 fit into 1,000 when the first two use 200 each."""
    block = Block(make_timers(*[{"gas_limit": 500} | fees(50, tip) for tip in (9, 8, 7, 6)]))
    block.world.used = {b"%032d" % number: 200 for number in range(4)}
    assert block.outcomes() == [(0, "fire"), (1, "fire"), (2, "fire")]


@pytest.mark.spec("L-04", "L-09")
def test_timer_that_does_not_fit_is_passed_over_while_a_smaller_one_might() -> None:
    """After 600 of 1,000 one of 500 is deferred and one of 300 fires; then nothing fits, and the walk ends."""
    timers = make_timers(
        *[{"gas_limit": gas} | fees(50, tip) for gas, tip in ((600, 9), (500, 8), (300, 7), (300, 6), (150, 5))]
    )
    block = Block(timers)
    assert block.outcomes() == [(0, "fire"), (1, "lane_full"), (2, "fire")]
    rest = block.selection.rest()
    assert (rest.stopped, rest.smallest_gas, rest.outranked, rest.joined) == (Stop.LANE_FULL, 150, 2, 3)
    assert [(each.timer.sequence, each.rank, str(each.reason)) for each in rest.runners_up] == [
        (3, 4, "outranked"),
        (4, 5, "outranked"),
    ]


@pytest.mark.spec("L-04")
def test_walk_goes_on_when_the_smallest_limit_is_of_one_that_is_priced_out() -> None:
    """The minimum is over all joined timers that are not above the cap; the second is told that the lane is full."""
    timers = make_timers({"gas_limit": 900}, {"gas_limit": 900}, {"gas_limit": 100} | fees(9, 0), {"gas_limit": 2_000})
    assert outcomes(timers) == [(3, "over_cap"), (0, "fire"), (1, "lane_full")]


@pytest.mark.spec("L-04", "F-75")
def test_walk_stops_when_the_smallest_limit_is_of_one_that_has_expired() -> None:
    """It keeps nothing going, whether it has never joined, or died while it waited."""
    timers = make_timers({"gas_limit": 900}, {"gas_limit": 900}, {"gas_limit": 50, "expires_at": 1})
    block = Block([*timers, *make_timers({"gas_limit": 100, "expires_at": 20, "timer_id": b"\xff" * 32})], lane=0, gc=0)
    assert block.outcomes() == []
    assert block.next(lane=1_000) == [(0, "fire")]
    rest = block.selection.rest()
    assert (rest.stopped, rest.smallest_gas, rest.joined, rest.outranked) == (Stop.LANE_FULL, 900, 1, 1)


@pytest.mark.spec("L-04")
def test_walk_stops_when_the_smallest_has_left() -> None:
    """Cancelled by the first fire, it no longer keeps the walk going."""
    block = Block(make_timers({"gas_limit": 900}, {"gas_limit": 900}, {"gas_limit": 100} | fees(9, 0)))
    walk = block.decisions()
    next(walk)
    block.world.remove(b"%032d" % 2)
    assert list(walk) == []
    assert (block.selection.rest().stopped, block.selection.rest().smallest_gas) == (Stop.LANE_FULL, 900)


def test_walk_stops_when_as_many_were_examined_as_a_block_examines() -> None:
    """The others are runners-up, sixteen at most."""
    block = Block(make_timers(*[fees(99, 60 - number) for number in range(30)]), examined_max=2)
    assert block.outcomes() == [(0, "fire"), (1, "fire")]
    rest = block.selection.rest()
    assert (rest.stopped, rest.outranked, len(rest.runners_up)) == (Stop.EXAMINED_MAX, 28, 16)


def test_full_lane_is_the_reason_when_the_bound_is_reached_too() -> None:
    """It says more: none of the others could have run."""
    block = Block(make_timers({"gas_limit": 900}, {"gas_limit": 900}), examined_max=1)
    assert block.outcomes() == [(0, "fire")]
    assert block.selection.rest().stopped is Stop.LANE_FULL


def test_walk_stops_when_as_many_were_passed_over_as_a_block_passes_over() -> None:
    """One of a gas limit of 1 at the very end would keep the walk going; the two that do not fit end it."""
    large = [fees(99, 60 - number) | {"gas_limit": 600} for number in range(4)]
    block = Block(make_timers(*large, fees(99, 0) | {"gas_limit": 1}), passed_over_max=2)
    assert [str(decision.reason or decision.verdict) for decision in block.decisions()] == [
        "fire", "lane_full", "lane_full",
    ]  # fmt: skip
    rest = block.selection.rest()
    assert (rest.stopped, rest.outranked, len(rest.runners_up)) == (Stop.PASSED_OVER_MAX, 2, 2)


def test_nothing_is_left_when_all_were_examined() -> None:
    """Then no smallest limit is told, also if deferred timers wait."""
    block = Block(make_timers({"gas_limit": 900}, {"gas_limit": 100}, {"gas_limit": 400}))
    assert block.outcomes() == [(0, "fire"), (1, "fire")]
    assert block.selection.rest().stopped is Stop.LANE_FULL
    assert block.next() == [(2, "fire")]
    assert (block.selection.rest().stopped, block.selection.rest().smallest_gas) == (Stop.NONE_LEFT, 0)


def test_rest_is_refused_before_the_walk_is_over() -> None:
    """What is left is not known yet."""
    with pytest.raises(InvariantError, match="when it is over"):
        Block(make_timers({})).selection.rest()


def test_deferred_timer_counts_no_more_when_a_later_fire_cancels_it() -> None:
    """It was examined and has left; nothing is outranked."""
    block = Block(make_timers(*[{"gas_limit": gas} | fees(50, tip) for gas, tip in ((600, 9), (500, 8), (300, 7))]))
    for decision in block.decisions():
        if decision.rank == 3:
            block.world.remove(b"%032d" % 1)
    assert (block.selection.rest().joined, block.selection.rest().outranked) == (0, 0)


def test_cancelled_timer_leaves_its_rank_unused() -> None:
    """Those behind it keep theirs, in the walk and among the runners-up."""
    block = Block(make_timers(*[fees(50, tip) for tip in (9, 8, 7, 6, 5)]), lane=200)
    walk = block.decisions()
    next(walk)
    block.world.remove(b"%032d" % 1)
    assert [decision.rank for decision in walk] == [3]
    assert [decision.rank for decision in block.selection.rest().runners_up] == [4, 5]


def test_expiry_that_a_fire_lowers_counts_from_the_next_block_on() -> None:
    """The second fires although its last height has just become the present one; the third waits, and then expires."""
    block = Block(make_timers(fees(50, 9), fees(50, 8), fees(50, 7)), lane=200)
    walk = block.decisions()
    next(walk)
    for number in (1, 2):
        timer = block.world.timers[b"%032d" % number]
        block.world.write(msgspec.structs.replace(timer, expires_at=20))
    assert [(each.timer.sequence, each.timer.expires_at) for each in walk] == [(1, 20)]
    assert block.next() == [(2, "expire")]


def test_news_of_timers_that_have_not_joined_is_ignored() -> None:
    """Nothing is known of them, and nothing of actors without timers."""
    block = Block(make_timers({}))
    (stranger,) = make_timers({"timer_id": b"\xff" * 32})
    for lane in (block.lane, build_lane(load_params())):
        lane.leave(stranger.timer_id)
        lane.replace(stranger)
        lane.recount(BOB, 7)
    assert block.outcomes() == [(0, "fire")]


def test_timer_is_refused_when_it_joins_twice() -> None:
    """A contradiction of the chain with itself."""
    block = Block(make_timers({}), lane=0)
    with pytest.raises(InvariantError, match="a second time"):
        block.lane.select(DueTimers((), make_timers({})), block.world.context())


def test_waiting_timers_are_not_read_when_the_index_stands() -> None:
    """They are at first and after the chain has gone back."""
    block = Block(make_timers(fees(50, 1), fees(50, 2)), lane=0)
    read: list[int] = []

    def waiting() -> Iterator[Timer]:
        for timer in block.world.due_order():
            read.append(timer.sequence)
            yield timer

    lane: Lane = block.lane
    lane.select(DueTimers(waiting()), block.world.context())
    assert read == []
    lane.rewind()
    block.world.terms.lane = 1_000
    block.selection = lane.select(DueTimers(waiting()), block.world.context())
    assert read == [0, 1]
    assert block.outcomes() == [(1, "fire"), (0, "fire")]


def test_prices_of_the_widest_range_keep_their_order() -> None:
    """Two tips that differ by one near the highest price, with the greatest weight that a parameter can hold."""
    top = 2**127 - 1
    timers = make_timers(fees(top, top - 11), fees(top, top - 10), fees(top, top))
    assert order(timers, weight_max=2**64 - 1, weight_min=2**64 - 1, basefee=1) == [2, 1, 0]
    assert order(timers, basefee=top) == [0, 1, 2]
