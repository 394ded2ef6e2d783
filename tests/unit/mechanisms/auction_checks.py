"""What must hold of the auction's index after any history."""

from tests.unit.mechanisms.auction_worlds import World
from tests.unit.mechanisms.bid_tree_checks import check_tree
from trailboss.mechanisms.auction.index import AuctionGroup, AuctionIndex


def check_index(index: AuctionIndex, world: World) -> None:
    """Check that an index, settled for the next block, equals one built afresh, and that its trees keep their rules."""
    index.settle(world.terms.height + 1, world.weight_of)
    fresh = AuctionIndex()
    fresh.join(world.waiting(), world.weight_of)
    assert contents(index) == contents(fresh)
    for tree in (*index.trees.values(), index.late_by_due):
        check_tree(tree)


def contents(index: AuctionIndex) -> dict[str, object]:
    """Return all that an index holds, in a form that does not depend on how it came about."""
    return {
        "entries": {
            timer_id: (entry.due, entry.gas_limit, entry.asked_at, entry.is_aside, described(entry.group))
            for timer_id, entry in index.timers.items()
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
        "trees": {key: [group.place for group in tree.items()] for key, tree in index.trees.items()},
        "late": [(item.place, item.bounds) for item in index.late_by_due.items()],
        "lists": [
            list(each)
            for each in (
                index.by_weight,
                index.prompt,
                index.late,
                index.unasked,
                index.asked,
                index.max_fees,
            )
        ],
        "gas": (index.gas_limits.items(), index.gas_limits.smallest),
        "weight": index.total_weight,
        "heard": (index.left, index._replaced, index._touched, index._lifted),
    }


def described(group: AuctionGroup) -> tuple[object, ...]:
    """Return what a group is; nothing is said of the bounds of one that is in no tree."""
    bounds = group.bounds if group.members else ()
    return group.owner.address, group.fees, group.is_late, group.place, group.held, group.members, bounds
