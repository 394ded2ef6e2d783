"""The auction's shelf: a tree that stays one, whatever comes and goes."""

from random import Random

import msgspec
import pytest

from tests.unit.mechanisms.auction_checks import check_node
from trailboss.mechanisms.auction.shelf import FANOUT, Bound, Node, Place, Shelf
from trailboss.primitives.errors import InvariantError


class Thing(msgspec.Struct, eq=False):
    """An item at a place."""

    place: Place
    by_fee: Bound
    by_tip: Bound


def thing(number: int, fee: int = 0, tip: int = 0) -> Thing:
    return Thing((number, b"", b""), (-fee, number), (-tip, number))


def height(shelf: Shelf) -> int:
    levels, node = 0, shelf.root
    while isinstance(node, Node):
        levels += 1
        node = None if node.is_bottom else node.children[0]
    return levels


@pytest.mark.parametrize("count", [0, 1, FANOUT, FANOUT + 1, 200, 5_000])
def test_shelf_is_in_order_when_it_is_filled_at_once(count: int) -> None:
    """Whatever the order in which they are given; the tree is as low as its fan-out allows, and half of that."""
    things = [thing(number, number % 7, number % 5) for number in range(count)]
    shelf = Shelf()
    shelf.add(Random(count).sample(things, count))
    assert shelf.items() == things
    assert shelf.root is None or check_node(shelf.root) == things
    assert (FANOUT // 2) ** (height(shelf) - 2) <= max(1, count)


def test_shelf_keeps_its_rules_when_items_come_and_go() -> None:
    """One by one, up to 600 and down to none, with bounds that move."""
    dice, shelf = Random(5), Shelf()
    there: dict[int, Thing] = {}
    for number in dice.sample(range(1_000), 600):
        there[number] = thing(number, dice.randrange(50), dice.randrange(50))
        shelf.add([there[number]])
        moved = there[dice.choice(sorted(there))]
        moved.by_fee, moved.by_tip = (-dice.randrange(50), 0), (-dice.randrange(50), 0)
        shelf.change(moved.place)
        assert shelf.root is not None
        check_node(shelf.root)
    for number in dice.sample(sorted(there), len(there)):
        shelf.remove(there.pop(number).place)
        assert shelf.items() == [there[each] for each in sorted(there)]
        assert shelf.root is None or check_node(shelf.root)
    assert shelf.root is None


def test_items_that_cannot_pay_are_left_out_when_a_basefee_is_asked_for() -> None:
    """By place, those with a max_fee of 30 at least."""
    shelf = Shelf()
    shelf.add([thing(number, number * 37 % 101) for number in range(100)])
    assert [item.place[0] for item in shelf.with_fee(30)] == [n for n in range(100) if n * 37 % 101 >= 30]


@pytest.mark.parametrize("count", [0, 1, 40])
def test_removal_is_refused_when_nothing_stands_there(count: int) -> None:
    """The index would be wrong about what it holds."""
    shelf = Shelf()
    shelf.add([thing(2 * number) for number in range(count)])
    with pytest.raises(InvariantError, match="nothing stands at the place"):
        shelf.remove((7, b"", b""))
