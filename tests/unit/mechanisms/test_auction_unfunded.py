"""Who cannot pay, in the auction: told once, out of the ranking, and in nobody's way."""

import msgspec
import pytest

from tests.unit.mechanisms.auction_blocks import ALICE, BOB, CAROL, Block
from tests.unit.mechanisms.auction_worlds import HALF, World, make_timers
from trailboss.model.decisions import FeeSource, Stop
from trailboss.model.timers import Timer

FIRST = 9_999
"""Number of the first of the honest timers."""


def numbered(actor: bytes, numbers: range) -> list[Timer]:
    """Return an actor's timers with these numbers; none has been asked about."""
    return make_timers(*({"actor": actor, "sequence": n, "timer_id": b"%032d" % n} for n in numbers))


class Siege:
    """Bob holds nothing, bids without end, and has as many new timers in every block; Alice has one, and a low bid."""

    def __init__(self, count: int, **terms: int) -> None:
        self.count, self.blocks = count, 0
        self.world = World(balances={BOB: 0})
        self.block = Block(self.joining(), self.world, **{"questions": 10**4} | terms)
        self.outcomes = self.block.outcomes()

    def joining(self) -> list[Timer]:
        first = self.blocks * self.count
        crowd, (honest,) = (
            numbered(BOB, range(first, first + self.count)),
            numbered(ALICE, range(FIRST + self.blocks, FIRST + self.blocks + 1)),
        )
        self.world.bids |= dict.fromkeys((timer.timer_id for timer in crowd), (10**30, 10**30))
        self.world.bids[honest.timer_id] = 1_000, 1
        self.blocks += 1
        return [msgspec.structs.replace(timer, height=19 + self.blocks) for timer in (*crowd, honest)]

    def next(self) -> list[tuple[int, str]]:
        return self.block.next(self.joining())


@pytest.mark.spec("A-06")
@pytest.mark.parametrize("terms", [{}, {"passed_over_max": 1}, {"examined_max": 1}], ids=str)
def test_empty_purses_delay_nobody_by_a_block_when_they_are_more_than_a_block_passes_over(
    terms: dict[str, int],
) -> None:
    """300 new ones in each of four blocks, and those of the blocks before: each is told once, and Alice's fires."""
    siege = Siege(300, **terms)
    found = siege.outcomes
    for number in range(4):
        crowd = [(each, "unfunded") for each in range(300 * number, 300 * (number + 1))]
        assert found == [*crowd, (FIRST + number, "fire")]
        rest = siege.block.selection.rest()
        assert (rest.stopped, rest.joined, rest.outranked) == (Stop.NONE_LEFT, 300 * (number + 1), 0)
        found = siege.next()


@pytest.mark.spec("A-06")
def test_marked_timers_stay_out_of_the_ranking_when_the_index_is_built_anew() -> None:
    """The mark is in the record: a node that has just started decides the same."""
    siege = Siege(300)
    siege.block.auction.rewind()
    assert siege.next() == [*((number, "unfunded") for number in range(300, 600)), (FIRST + 1, "fire")]


@pytest.mark.spec("A-06")
def test_unfunded_timer_is_told_before_the_ranking_when_its_agent_was_asked() -> None:
    """It has a bid and no rank; 100 cycles at 10 + 40, and 50 cells at 3, are 5,150: Bob holds one less."""
    timers = make_timers({"actor": BOB}, {"actor": ALICE, "height": 19})
    bids = {timers[0].timer_id: (50, 90), timers[1].timer_id: (1_000, 1)}
    block = Block(timers, World(balances={BOB: 5_149}, bids=bids, weights={BOB: HALF // 2}), questions=2)
    told, fired = block.decisions()
    assert (told.timer.sequence, told.reason, told.rank, fired.rank) == (0, "unfunded", 0, 1)
    assert (told.max_cost, told.available, told.prices.cycle_tip, told.max_fee) == (5_150, 5_149, 40, 50)
    assert (told.weight, told.fee_source, told.agent_cycles) == (HALF // 2, FeeSource.AGENT, 5)
    rest = block.selection.rest()
    assert (rest.stopped, rest.joined, rest.outranked, rest.priced_out) == (Stop.NONE_LEFT, 1, 0, 0)
    block.world.balances[BOB] = 5_150
    assert block.next(questions=1) == [(0, "fire")]


@pytest.mark.spec("A-06")
def test_unfunded_timers_are_told_in_the_order_of_the_questions() -> None:
    """Of the block's own height first, whatever they bid."""
    timers = make_timers(*({"actor": BOB, "height": height} for height in (19, 20, 18)))
    bids = {timer.timer_id: (1_000, tip) for timer, tip in zip(timers, (5, 1, 9), strict=True)}
    assert Block(timers, World(balances={BOB: 0}, bids=bids), questions=3).outcomes() == [
        (1, "unfunded"),
        (2, "unfunded"),
        (0, "unfunded"),
    ]


@pytest.mark.spec("A-06")
def test_unfunded_timer_is_set_aside_until_its_agent_is_asked_again_and_it_can_be_paid() -> None:
    """It waits outside the ranking although it could pay again; asked while it cannot, it is not even told."""
    timers = make_timers({"actor": BOB, "bid": (1_000, 90)}, {"bid": (1_000, 1), "gas_limit": 5_000})
    bids = {timers[0].timer_id: (1_000, 50), timers[1].timer_id: (1_000, 1)}
    block = Block(timers, World(balances={BOB: 100}, bids=bids), spent=1)
    assert block.outcomes() == [(0, "unfunded"), (1, "lane_full")]
    assert block.world.timers[timers[0].timer_id].deferred_for == "unfunded"
    assert block.next() == [(1, "lane_full")]
    assert block.selection.rest().outranked == 0
    assert block.next(questions=2) == [(1, "lane_full")]
    assert block.asked() == [0, 1]
    block.world.balances[BOB] = 10**6
    assert block.next(questions=0) == [(1, "lane_full")]
    assert block.next(questions=1) == [(0, "fire")]


@pytest.mark.spec("A-06")
def test_timer_is_ranked_without_a_question_again_when_it_has_waited_for_something_else_since() -> None:
    """Bob's could be paid and had no room: that is what it is marked for now. A timer that is priced out has some."""
    timers = make_timers({"actor": BOB, "gas_limit": 400}, {"bid": (9, 9)})
    bids = {timers[0].timer_id: (1_000, 5), timers[1].timer_id: (9, 9)}
    block = Block(timers, World(balances={BOB: 0}, bids=bids), questions=2, budget=300, spent=1)
    assert block.outcomes() == [(0, "unfunded")]
    block.world.balances[BOB] = 10**6
    assert block.next() == [(0, "lane_full")]
    assert block.next(questions=0) == [(0, "lane_full")]
    assert block.next(budget=401) == [(0, "fire")]


@pytest.mark.spec("A-06")
def test_timer_is_not_told_about_funds_when_it_is_priced_out() -> None:
    """It would not be ranked anyhow, and is counted with those; once the basefee is below its bid, it is told."""
    timers = make_timers({"actor": BOB})
    block = Block(timers, World(balances={BOB: 0}, bids={timers[0].timer_id: (9, 9)}), questions=1)
    assert block.outcomes() == []
    assert block.selection.rest().priced_out == 1
    assert block.next(basefee=9) == [(0, "unfunded")]
    assert block.selection.rest().priced_out == 0


@pytest.mark.spec("A-06")
def test_marked_timer_is_counted_as_priced_out_when_its_agent_bids_too_little() -> None:
    """Its agent was asked, so the bid counts and not the mark."""
    timers = make_timers({"actor": BOB, "bid": (1_000, 5), "deferred_for": "unfunded"})
    block = Block(timers, World(balances={BOB: 0}, bids={timers[0].timer_id: (9, 9)}))
    assert (block.outcomes(), block.selection.rest().priced_out) == ([], 0)
    assert (block.next(questions=1), block.selection.rest().priced_out) == ([], 1)


@pytest.mark.spec("A-06")
def test_owner_that_can_pay_one_of_two_has_the_other_told_in_its_turn() -> None:
    """Each could be paid when they were asked about; the second is found unfunded in the walk, with its rank."""
    timers = make_timers({"actor": BOB}, {"actor": BOB})
    bids = dict.fromkeys((timer.timer_id for timer in timers), (1_000, 5))
    block = Block(timers, World(balances={BOB: 1_650}, bids=bids), questions=2)
    found = []
    for decision in block.decisions():
        found.append((decision.timer.sequence, decision.rank, str(decision.reason or decision.verdict)))
        block.world.balances[BOB] = 1_649
    assert found == [(0, 1, "fire"), (1, 2, "unfunded")]


@pytest.mark.spec("A-06")
def test_unfunded_timers_do_not_count_as_passed_over_when_the_walk_comes_to_them() -> None:
    """Three whose agents were not asked, and three that could be paid until one of them ran: Alice's runs."""
    timers = make_timers(
        *({"actor": BOB, "bid": (1_000, 9)} for _ in range(3)),
        *({"actor": CAROL} for _ in range(3)),
        {"actor": ALICE, "bid": (1_000, 1)},
    )
    bids = dict.fromkeys((timer.timer_id for timer in timers[3:6]), (1_000, 8))
    world = World(balances={BOB: 0, CAROL: 2_000}, bids=bids)
    block = Block(timers, world, questions=3, passed_over_max=1, budget=10**6)
    found = []
    for decision in block.decisions():
        found.append((decision.timer.sequence, str(decision.reason or decision.verdict)))
        world.balances[CAROL] -= decision.max_cost if decision.timer.sequence == 3 else 0
    aside = [(number, "unfunded") for number in (0, 1, 2, 4, 5)]
    assert found == [*aside[:3], (3, "fire"), *aside[3:], (6, "fire")]
    assert block.selection.rest().stopped is Stop.NONE_LEFT


@pytest.mark.spec("A-06")
def test_lack_of_funds_counts_before_lack_of_room() -> None:
    """400 fit neither Bob's balance nor what the pool has left; a timer that is priced out keeps the walk going."""
    timers = make_timers({"actor": BOB, "bid": (1_000, 9), "gas_limit": 400}, {"bid": (1_000, 1)}, {"bid": (1, 1)})
    assert Block(timers, World(balances={BOB: 0}), budget=300).outcomes() == [(1, "fire"), (0, "unfunded")]


@pytest.mark.spec("A-06", "F-75")
def test_owner_is_out_for_the_block_when_it_cannot_pay_and_enough_were_told() -> None:
    """Two of Bob's five are told, the third is found, and none of them has a turn or a rank after that."""
    timers = make_timers(*({"actor": BOB, "bid": (1_000, 9)} for _ in range(5)), {"actor": ALICE, "bid": (1_000, 1)})
    block = Block(timers, World(balances={BOB: 0}), dead_examined_max=2, examined_max=1)
    found = [(each.timer.sequence, str(each.reason or each.verdict), each.rank) for each in block.decisions()]
    assert found == [(0, "unfunded", 1), (1, "unfunded", 2), (5, "fire", 4)]
    rest = block.selection.rest()
    assert (rest.stopped, rest.joined, rest.outranked) == (Stop.NONE_LEFT, 5, 3)
    assert block.next() == [(2, "unfunded"), (3, "unfunded")]
    block.world.balances[BOB] = 10**6
    assert block.next() == [(4, "fire")]


@pytest.mark.spec("A-06", "F-75")
def test_owner_that_is_out_is_no_runner_up() -> None:
    """The budget is full behind Alice's: her next one is, and those of Bob, who is out by then, are not."""
    rows = [(BOB, 9, 300), (BOB, 8, 300), (ALICE, 7, 500), (BOB, 6, 300), (ALICE, 5, 500)]
    timers = make_timers(*({"actor": actor, "bid": (1_000, tip), "gas_limit": gas} for actor, tip, gas in rows))
    block = Block(timers, World(balances={BOB: 0}), dead_examined_max=1, spent=400)
    assert block.outcomes() == [(0, "unfunded"), (2, "fire")]
    rest = block.selection.rest()
    assert ([each.timer.sequence for each in rest.runners_up], rest.outranked) == ([4], 3)
