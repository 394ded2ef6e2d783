"""The lane's index: its tree, and that it is what one built afresh would be."""

from random import Random

import pytest

from tests.unit.mechanisms.lane_checks import check_index, check_node, heights
from tests.unit.mechanisms.lane_worlds import Terms, World, due, make_timers
from trailboss.mechanisms.fee_lane import index as indices
from trailboss.mechanisms.fee_lane import shelf as shelves
from trailboss.mechanisms.fee_lane.gas_limits import GasLimits
from trailboss.mechanisms.fee_lane.index import LaneIndex
from trailboss.mechanisms.fee_lane.ranking import Lineup, Row, ranked_all, ranked_first
from trailboss.mechanisms.fee_lane.shelf import Group, Shelf
from trailboss.model.timers import freeze_fees
from trailboss.primitives.errors import InvariantError

LANE_CAP = 1_000
PAYERS = [b"\x0a" * 20, b"\x0b" * 20]


@pytest.fixture
def _small_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "FANOUT", 4)
    monkeypatch.setattr(shelves, "MERGED_MAX", 2)


def make_group(dice: Random, *, widest: int = 40) -> Group:
    max_fee, priority = dice.randrange(widest), dice.randrange(widest)
    ids = sorted(dice.randbytes(32) for _ in range(dice.randint(1, 3)))
    return Group(
        dice.randbytes(20), dice.choice(PAYERS), freeze_fees(max_fee, priority), False, max_fee, priority, 99, ids
    )


@pytest.mark.usefixtures("_small_nodes")
@pytest.mark.parametrize("seed", range(6))
def test_tree_keeps_its_rules_when_groups_come_and_go(seed: int) -> None:
    """Growing, churning and shrinking; every way down is equally long, and both ways to rank agree at any basefee."""
    dice, shelf, groups = Random(seed), Shelf(), []
    for step in range(600):
        grows = dice.random() < (0.8 if step < 200 else 0.5 if step < 400 else 0.2)
        if grows or not groups:
            groups.append(make_group(dice))
            shelf.add(groups[-1])
        else:
            group = groups.pop(dice.randrange(len(groups)))
            shelf.remove(group, group.ids[0])
        if groups and dice.random() < 0.3:
            group = dice.choice(groups)
            first = group.ids[0]
            group.ids[:] = sorted({dice.randbytes(32), *group.ids[dice.randrange(2) :]})
            if group.ids[0] != first:
                shelf.change(group, first)
        if step % 20 == 0 and shelf.root is not None:
            found = check_node(shelf.root)
            assert {id(group) for group in found} == {id(group) for group in groups}
            assert len(set(heights(shelf.root))) == 1
            lineup = Lineup([Row(shelf, 3, None)], dice.randrange(45), 50, {}, set(PAYERS[: dice.randrange(3)]))
            assert list(ranked_first(lineup)) == list(ranked_all(lineup))


def test_tree_is_low_when_most_groups_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand groups in nodes of 16, of which one in fifty stays: small nodes join, and levels go."""
    monkeypatch.setattr(shelves, "FANOUT", 16)
    monkeypatch.setattr(shelves, "MERGED_MAX", 8)
    dice, shelf = Random(5), Shelf()
    groups = [make_group(dice, widest=10**6) for _ in range(1_000)]
    for group in groups:
        shelf.add(group)
    assert shelf.root is not None
    assert max(heights(shelf.root)) == 3
    for number, group in enumerate(groups):
        if number % 50:
            shelf.remove(group, group.ids[0])
    assert len(check_node(shelf.root)) == 20
    assert max(heights(shelf.root)) == 2


def test_search_opens_few_nodes_when_fees_are_hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half have high priorities under caps without room, half the opposite: each cap alone would lead astray.

    Of 4,096 groups in nodes of 64, the best ten are found by looking at no more than a few nodes a level.
    """
    shelf, basefee = Shelf(), 1_000_000
    for number in range(4_096):
        low = number % 2
        fee, priority = (basefee + number % 7, 10**9 + number) if low else (10**12 + number, number % 7)
        actor = number.to_bytes(20, "big")
        shelf.add(Group(actor, actor, freeze_fees(fee, priority), False, fee, priority, 99, [actor + bytes(12)]))
    seen = []
    best = shelves.Node.best
    monkeypatch.setattr(shelves.Node, "best", lambda node, fee: seen.append(node) or best(node, fee))
    lineup = Lineup([Row(shelf, 1, None)], basefee, 50, {}, ())
    ranked = ranked_first(lineup)
    first = [next(ranked) for _ in range(10)]
    assert len(seen) < 150
    assert first == list(ranked_all(lineup))[:10]


def test_search_leaves_out_what_has_expired_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A storm of 4,096 offers, all expired, and one behind them that is not: few nodes are looked at."""
    shelf = Shelf()
    for number in range(4_097):
        actor, priority = number.to_bytes(20, "big"), number + 1
        fees, expiry = freeze_fees(10**6, priority), 49 if number else 50
        shelf.add(Group(actor, actor, fees, False, 10**6, priority, expiry, [actor + bytes(12)]))
    seen = []
    best = shelves.Node.best
    monkeypatch.setattr(shelves.Node, "best", lambda node, fee: seen.append(node) or best(node, fee))
    lineup = Lineup([Row(shelf, 1, None)], 10, 50, {}, ())
    assert list(ranked_first(lineup)) == list(ranked_all(lineup)) == [bytes(32)]
    assert len(seen) <= 4 * shelves.FANOUT


def test_search_finds_nothing_when_all_are_priced_out() -> None:
    """Neither a group nor a node comes into sight."""
    shelf = Shelf()
    shelf.add(make_group(Random(1)))
    assert list(ranked_first(Lineup([Row(shelf, 1, None)], 41, 50, {}, ()))) == []


@pytest.mark.spec("F-75")
def test_search_leaves_a_payer_out_at_once_when_it_is_out() -> None:
    """Two payers with a thousand timers each that offer the same: after two of them the first has no more turns."""
    shelf, fees = Shelf(), freeze_fees(99, 9)
    lines = [sorted(bytes([number]) + n.to_bytes(31, "big") for n in range(1_000)) for number in range(2)]
    for payer, ids in zip(PAYERS, lines, strict=True):
        shelf.add(Group(b"\x01" * 20, payer, fees, False, 99, 9, 99, ids))
    out: set[bytes] = set()
    ranked = ranked_first(Lineup([Row(shelf, 1, None)], 10, 50, {}, out))
    assert [next(ranked) for _ in range(2)] == lines[0][:2]
    out.add(PAYERS[0])
    assert list(ranked) == lines[1]


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
    assert (len(index.entries), index.gas_limits.smallest, index.priced_out(100)) == (1, 400, 0)
    for left in (6, 3, 1):
        assert sum(len(group.ids) for shelf in index.shelves.values() for group in shelf.groups()) == left
        index.settle(LANE_CAP, 0)
    check_index(index, world)


def test_timers_of_one_offer_are_apart_when_their_payers_differ() -> None:
    """A group has one payer, so that it can be left out as a whole; the entries of both are one actor's."""
    world = World(terms=Terms(cap=LANE_CAP))
    index = LaneIndex(LANE_CAP, 0)
    timers = make_timers(*[{"fee_payer": PAYERS[number % 2]} for number in range(4)])
    index.join(due(world, timers).joining, lambda _: 0)
    groups = [(group.payer, len(group.ids)) for shelf in index.shelves.values() for group in shelf.groups()]
    assert sorted(groups) == [(payer, 2) for payer in PAYERS]
    check_index(index, world)


def test_group_is_refused_when_it_is_not_on_its_shelf() -> None:
    """Neither from an empty shelf nor from another one's."""
    dice, shelf = Random(1), Shelf()
    group, other = make_group(dice), make_group(dice)
    for _ in range(2):
        with pytest.raises(InvariantError, match="is not on the shelf"):
            shelf.remove(group, group.ids[0])
        shelf.add(other)


def test_smallest_gas_limit_follows_who_comes_and_goes() -> None:
    """Two of the smallest, and the next larger one behind them."""
    limits = GasLimits()
    for gas_limit in (300, 100, 100, 200):
        limits.add(gas_limit)
    found = [limits.smallest]
    for gas_limit in (100, 300, 100, 200):
        limits.drop(gas_limit)
        found.append(limits.smallest)
    assert found == [100, 100, 100, 200, 0]


@pytest.mark.usefixtures("_small_nodes")
def test_actor_moves_with_all_its_offers_when_its_fires_change() -> None:
    """Two actors of thirty offers each, one of which fires: the shelves are those of an index built afterwards."""
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
        assert {fires for fires, _ in index.shelves} == {0, fires}


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
    assert list(index.entries) == [timers[0].timer_id]
    world.remove(timers[0].timer_id)
    check_index(index, world)
    assert (index.shelves, index.entries, index.gas_limits.smallest) == ({}, {}, 0)
