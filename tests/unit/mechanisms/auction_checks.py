"""What must hold of the auction's index after any history."""

from tests.unit.mechanisms.auction_worlds import World
from trailboss.mechanisms.auction import shelf as shelves
from trailboss.mechanisms.auction.index import AuctionIndex, Group
from trailboss.mechanisms.auction.shelf import Item, Node


def check_index(index: AuctionIndex, world: World) -> None:
    """Check that an index, settled for the next block, equals one built afresh, and that its trees keep their rules."""
    index.settle(world.terms.height + 1, world.weight_of)
    fresh = AuctionIndex()
    fresh.join(world.waiting(), world.weight_of)
    assert contents(index) == contents(fresh)
    for shelf in (*index.shelves.values(), index.late_by_due):
        assert shelf.root is None or check_node(shelf.root) == shelf.items()


def contents(index: AuctionIndex) -> dict[str, object]:
    """Return all that an index holds, in a form that does not depend on how it came about."""
    return {
        "entries": {
            timer_id: (entry.due, entry.gas_limit, entry.asked_at, entry.is_aside, described(entry.group))
            for timer_id, entry in index.entries.items()
        },
        "actors": {
            address: (
                owner.weight,
                owner.gas_limits,
                owner.max_fees,
                {key: described(owner.groups[key]) for key in owner.groups},
            )
            for address, owner in index.actors.items()
        },
        "shelves": {key: [item.place for item in shelf.items()] for key, shelf in index.shelves.items()},
        "late": [(item.place, item.by_fee) for item in index.late_by_due.items()],
        "lists": [
            list(each)
            for each in (
                index.by_weight,
                index.prompt,
                index.late,
                index.unasked,
                index.asked,
                index.max_fees,
                index.gas_limits,
            )
        ],
        "weight": index.total_weight,
        "heard": (index.left, index._replaced, index._touched, index._lifted),
    }


def described(group: Group) -> tuple[object, ...]:
    """Return what a group is; nothing is said of the bounds of one that is on no shelf."""
    bounds = (group.by_fee, group.by_tip) if group.ranked else ()
    return group.owner.address, group.fees, group.is_late, group.place, group.held, group.ranked, bounds


def check_node(node: Node) -> list[Item]:
    """Check the order, the sizes and the bounds of a node, and return its items."""
    assert 1 <= len(node.children) <= shelves.FANOUT
    assert all(isinstance(child, Node) is not node.is_bottom for child in node.children)
    items: list[Item] = []
    for child in node.children:
        items += check_node(child) if isinstance(child, Node) else [child]
    assert node.place == items[0].place
    assert [item.place for item in items] == sorted({item.place for item in items})
    assert node.by_fee == min(item.by_fee for item in items)
    assert node.by_tip == min(item.by_tip for item in items)
    return items
