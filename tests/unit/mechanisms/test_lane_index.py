"""The lane's index is what one built afresh would be."""

import pytest

from tests.unit.mechanisms.lane_checks import check_index
from tests.unit.mechanisms.lane_worlds import Terms, World, due, make_timers
from trailboss.mechanisms import bid_tree
from trailboss.mechanisms.fee_lane import index as indices
from trailboss.mechanisms.fee_lane.index import LaneIndex
from trailboss.model.timers import freeze_fees

LANE_CAP = 1_000
PAYERS = [b"\x0a" * 20, b"\x0b" * 20]


@pytest.fixture
def _small_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bid_tree, "FANOUT", 4)
    monkeypatch.setattr(bid_tree, "MERGED_MAX", 2)


@pytest.mark.usefixtures("_small_nodes")
def test_expired_timers_leave_the_ranking_a_few_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five of six expire and count no more at once; three are taken out in one block, two in the next."""
    monkeypatch.setattr(indices, "UNRANKED_MAX", 3)
    world = World(terms=Terms(cap=LANE_CAP))
    world.follower = index = LaneIndex(LANE_CAP, 0)
    changes = [{"fees": freeze_fees(99, 9), "expires_at": 30, "gas_limit": 50 + number} for number in range(5)]
    index.join(due(world, make_timers(*changes, {"gas_limit": 400})).joining, lambda _: 0)
    world.terms.height = 31
    due(world, [])
    assert (len(index.timers), index.gas_limits.smallest, index.priced_out(100)) == (1, 400, 0)
    for left in (6, 3, 1):
        assert sum(len(group.members) for tree in index.trees.values() for group in tree.items()) == left
        index.settle(LANE_CAP, 0)
    check_index(index, world)


def test_timers_of_one_offer_are_apart_when_their_payers_differ() -> None:
    """A group has one payer, so that it can be left out as a whole; the entries of both are one actor's."""
    world = World(terms=Terms(cap=LANE_CAP))
    index = LaneIndex(LANE_CAP, 0)
    timers = make_timers(*[{"fee_payer": PAYERS[number % 2]} for number in range(4)])
    index.join(due(world, timers).joining, lambda _: 0)
    groups = [(group.payer, len(group.members)) for tree in index.trees.values() for group in tree.items()]
    assert sorted(groups) == [(payer, 2) for payer in PAYERS]
    check_index(index, world)


@pytest.mark.usefixtures("_small_nodes")
def test_actor_moves_with_all_its_offers_when_its_fires_change() -> None:
    """Two actors of thirty offers each, one of which fires: the trees are those of an index built afterwards."""
    actors = [b"\x01" * 20, b"\x02" * 20]
    world = World(terms=Terms(cap=LANE_CAP))
    timers = make_timers(
        *[{"actor": actors[number % 2], "fees": freeze_fees(99 - number // 4, number // 4)} for number in range(60)]
    )
    index = LaneIndex(LANE_CAP, 0)
    index.join(due(world, timers).joining, lambda _: 0)
    for fires in (1, 5, 5, 0):
        world.fires[actors[0]] = fires
        index.recount(actors[0], fires)
        check_index(index, world)
        assert {fires for fires, *_ in index.trees} == {0, fires}


def test_index_is_made_anew_when_more_have_left_than_stay() -> None:
    """Nine of ten leave at once; those that stay are in all orders."""
    world = World(terms=Terms(cap=LANE_CAP))
    timers = make_timers(*[{"fees": freeze_fees(20 + number, 3)} for number in range(10)])
    index = LaneIndex(LANE_CAP, 0)
    index.join(due(world, timers).joining, lambda _: 0)
    world.follower = index
    for timer in timers[1:]:
        world.remove(timer.timer_id)
    check_index(index, world)
    assert list(index.timers) == [timers[0].timer_id]
    world.remove(timers[0].timer_id)
    check_index(index, world)
    assert (index.trees, index.timers, index.gas_limits.smallest) == ({}, {}, 0)
