"""Bid trees and their ranking: a tree stays one whatever comes and goes, and a search opens few nodes of it."""

from itertools import islice
from math import ceil, log
from random import Random

import pytest

from tests.unit.mechanisms.bid_tree_checks import check_tree, levels_of
from trailboss.mechanisms import bid_tree, ranking
from trailboss.mechanisms.bid_tree import FANOUT, BidNode, BidTree
from trailboss.mechanisms.ranking import BidGroup, GasLimits, Lineup, PricedTree, ranked_all, ranked_first
from trailboss.model.timers import freeze_fees
from trailboss.primitives.errors import InvariantError

PAYERS = [b"\x0a" * 20, b"\x0b" * 20]
FOREVER = 2**64


@pytest.fixture
def _small_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bid_tree, "FANOUT", 4)
    monkeypatch.setattr(bid_tree, "MERGED_MAX", 2)


def make_group(
    number: int, max_fee: int = 0, priority: int = 0, *, payer: bytes = b"", members: int = 1, expiry: int = FOREVER
) -> BidGroup[int]:
    """Return a group of timers whose members follow from its number."""
    group = BidGroup(
        actor=number.to_bytes(20, "big"),
        payer=payer or number.to_bytes(20, "big"),
        fees=freeze_fees(max_fee, priority),
        members=[number * 1_000 + member for member in range(members)],
    )
    measure(group, expiry)
    return group


def measure(group: BidGroup[int], expiry: int = FOREVER) -> None:
    group.ends = -expiry
    group.measure()


def make_tree(*groups: BidGroup[int]) -> BidTree[BidGroup[int]]:
    tree: BidTree[BidGroup[int]] = BidTree()
    tree.add(groups)
    return tree


def lineup_of(tree: BidTree[BidGroup[int]], basefee: int, **facts: object) -> Lineup:
    return Lineup([PricedTree(tree, None, 3)], basefee, **({"out": (), "height": 50} | facts))


@pytest.mark.usefixtures("_small_nodes")
@pytest.mark.parametrize("seed", range(6))
def test_tree_keeps_its_rules_when_groups_come_and_go(seed: int) -> None:
    """Growing, churning and shrinking, with bounds that move; both ways to rank agree at any basefee."""
    dice, tree, groups = Random(seed), make_tree(), []
    for step in range(600):
        grows = dice.random() < (0.8 if step < 200 else 0.5 if step < 400 else 0.2)
        if grows or not groups:
            groups.append(
                make_group(step, dice.randrange(40), dice.randrange(40), payer=dice.choice(PAYERS), members=3)
            )
            tree.add(groups[-1:])
        else:
            tree.remove(groups.pop(dice.randrange(len(groups))))
        if groups:
            group = dice.choice(groups)
            group.members.append(dice.randrange(10**6, 10**9))
            del group.members[0]
            group.members.sort()
            before = group.bounds
            measure(group, dice.choice([FOREVER, 49]))
            tree.change(group, before)
        if step % 20 == 0:
            assert {id(group) for group in check_tree(tree)} == {id(group) for group in groups}
            apart = {dice.choice(group.members): dice.choice([None, -5]) for group in groups[:2]}
            apart = {member: value and (value, 0, member) for member, value in apart.items()}
            lineup = lineup_of(tree, dice.randrange(45), out=set(PAYERS[: dice.randrange(3)]), apart=apart)
            assert list(ranked_first(lineup)) == list(ranked_all(lineup))
    for group in groups:
        tree.remove(group)
    assert tree.root is None


@pytest.mark.parametrize("count", [0, 1, FANOUT, FANOUT + 1, 200, 5_000])
def test_tree_is_in_order_when_it_is_filled_at_once(count: int) -> None:
    """Whatever the order in which they are given; the tree is as low as half its fan-out allows."""
    groups = [make_group(number, number % 7, number % 7) for number in range(count)]
    tree = make_tree(*Random(count).sample(groups, count))
    assert check_tree(tree) == groups
    assert (FANOUT // 2) ** (levels_of(tree) - 2) <= max(1, count)


def test_tree_is_low_when_most_groups_have_left() -> None:
    """A thousand groups, of which one in fifty stays: small nodes merge, and levels go."""
    groups = [make_group(number, number) for number in range(1_000)]
    tree = make_tree()
    for group in Random(5).sample(groups, len(groups)):
        tree.add([group])
    assert levels_of(tree) == 3
    for number, group in enumerate(groups):
        if number % 50:
            tree.remove(group)
    assert check_tree(tree) == groups[::50]
    assert levels_of(tree) == 2


def test_groups_that_cannot_pay_are_left_out_when_a_basefee_is_given() -> None:
    """By place, those with a max_fee of 30 at least."""
    fees = [number * 37 % 101 for number in range(100)]
    tree = make_tree(*(make_group(number, fee, fee) for number, fee in enumerate(fees)))
    assert [int.from_bytes(group.actor) for group in tree.items(30)] == [
        number for number, fee in enumerate(fees) if fee >= 30
    ]


@pytest.mark.parametrize("count", [0, 1, 40])
def test_removal_is_refused_when_nothing_is_there(count: int) -> None:
    """The index would be wrong about what it holds."""
    tree = make_tree(*(make_group(2 * number, 7) for number in range(count)))
    with pytest.raises(InvariantError, match="nothing at"):
        tree.remove(make_group(7, 7))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return what a search takes from its heap for good: nodes that it opens, and groups that are at their end."""
    taken: list[object] = []
    heappop = ranking.heappop
    monkeypatch.setattr(ranking, "heappop", lambda heap: taken.append(heap[0]) or heappop(heap))
    return taken


@pytest.mark.parametrize("size", [16, 256, 4_096, 65_536])
def test_search_opens_a_few_nodes_a_level_when_bids_are_hostile(opened: list[object], size: int) -> None:
    """Half have high priorities under caps without room, half the opposite: each cap alone would lead astray.

    The best is found by opening at most two nodes a level, and each of the next by as many at most; its group ends.
    """
    basefee = 1_000_000
    bids = [
        (basefee + n % 7, 10**9 + n) if n % 2 else (10**12 + n, n % 7) for n in Random(size).sample(range(size), size)
    ]
    tree = make_tree(*(make_group(number, *bid) for number, bid in enumerate(bids)))
    lineup, levels = lineup_of(tree, basefee), ceil(log(size, FANOUT // 2))
    for most in (1, 10):
        opened.clear()
        assert list(islice(ranked_first(lineup), most)) == list(ranked_all(lineup))[:most]
        assert len(opened) <= (2 * levels + 1) * most


@pytest.mark.parametrize("size", [16, 256, 4_096, 65_536])
def test_change_takes_one_step_a_level(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Also where the bounds of all nodes above the item change; a change of nothing stops at once."""
    tree = make_tree(*(make_group(number, number % 97, number % 89) for number in range(size)))
    steps: list[object] = []
    for name in ("measure", "include"):
        do = getattr(BidNode, name)
        monkeypatch.setattr(BidNode, name, lambda *given, do=do: steps.append(given) or do(*given))
    group = next(tree.items())
    tree.change(group, group.bounds)
    assert len(steps) == 1
    for bounds in (((-(10**9), 0, 0), (-(10**9), 0, 0), -FOREVER), group.bounds):
        steps.clear()
        before, group.bounds = group.bounds, bounds
        tree.change(group, before)
        assert len(steps) == levels_of(tree) <= 1 + ceil(log(size, FANOUT // 2))
    tree.remove(group)
    check_tree(tree)


def test_search_leaves_out_what_has_expired_as_a_whole(opened: list[object]) -> None:
    """A storm of 4,096 offers, all expired, and one behind them that is not: few nodes are opened."""
    tree = make_tree(*(make_group(n, 10**6, n + 1, expiry=49 if n else 50) for n in range(4_097)))
    lineup = lineup_of(tree, 10)
    assert list(ranked_first(lineup)) == list(ranked_all(lineup)) == [0]
    assert len(opened) <= levels_of(tree) + 1


def test_search_finds_nothing_when_all_are_priced_out() -> None:
    """Neither a group nor a node comes into sight."""
    lineup = lineup_of(make_tree(make_group(1, 40, 3)), 41)
    assert list(ranked_first(lineup)) == list(ranked_all(lineup)) == []


@pytest.mark.spec("F-75")
def test_search_leaves_a_payer_out_at_once_when_it_is_out() -> None:
    """Two payers with a thousand timers each that offer the same: after two of them the first has no more turns."""
    tree = make_tree(*(make_group(n, 99, 9, payer=payer, members=1_000) for n, payer in enumerate(PAYERS)))
    out: set[bytes] = set()
    in_rank = ranked_first(lineup_of(tree, 10, out=out))
    assert [next(in_rank) for _ in range(2)] == [0, 1]
    out.add(PAYERS[0])
    assert list(in_rank) == list(range(1_000, 2_000))


@pytest.mark.parametrize(("waiting", "way"), [(80, "all"), (81, "first")])
def test_all_are_sorted_when_most_are_asked_for(monkeypatch: pytest.MonkeyPatch, waiting: int, way: str) -> None:
    """Up to eight timers for each that may be asked for; beyond, a search for the first takes less time."""
    monkeypatch.setattr(ranking, "ranked_all", lambda _: "all")
    monkeypatch.setattr(ranking, "ranked_first", lambda _: "first")
    assert ranking.ranked(lineup_of(make_tree(), 1), waiting, 10) == way


def test_smallest_gas_limit_follows_what_comes_and_goes() -> None:
    """Two of the smallest, and the next larger one behind them."""
    limits = GasLimits()
    for gas_limit in (300, 100, 100, 200):
        limits.add(gas_limit)
    found = [limits.smallest]
    for gas_limit in (100, 300, 100, 200):
        limits.remove(gas_limit)
        found.append(limits.smallest)
    assert found == [100, 100, 100, 200, 0]
