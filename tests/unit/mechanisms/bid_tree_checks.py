"""What must hold of a bid tree after any history."""

from typing import Any

from trailboss.mechanisms import bid_tree
from trailboss.mechanisms.bid_tree import BidNode, BidTree


def check_tree(tree: BidTree[Any]) -> list[Any]:
    """Check order, sizes, bounds and levels of a tree, and return its items by place."""
    items = list(tree.items())
    if tree.root is None:
        assert items == []
        return items
    assert _check_node(tree.root) == items
    places = [item.place for item in items]
    assert places == sorted(set(places))
    return items


def levels_of(tree: BidTree[Any]) -> int:
    """Return how many nodes lie on the way from the root to an item."""
    levels, node = 0, tree.root
    while isinstance(node, BidNode):
        levels, node = levels + 1, node.children[0]
    return levels


def _check_node(node: BidNode[Any]) -> list[Any]:
    assert 1 <= len(node.children) <= bid_tree.FANOUT
    assert all(isinstance(child, BidNode) is not node.is_bottom for child in node.children)
    # All ways down are equally long.
    assert len({child.is_bottom for child in node.children if isinstance(child, BidNode)}) <= 1
    items: list[Any] = []
    for child in node.children:
        assert not items or items[-1].place < child.place
        items += _check_node(child) if isinstance(child, BidNode) else [child]
    assert node.place <= items[0].place
    assert node.bounds == tuple(min(item.bounds[number] for item in items) for number in range(len(node.bounds)))
    return items
