"""What must hold of the lane's index after any history."""

from tests.unit.mechanisms.bid_tree_checks import check_tree
from tests.unit.mechanisms.lane_worlds import World
from trailboss.mechanisms.fee_lane.index import LaneGroup, LaneIndex


def check_index(index: LaneIndex, world: World) -> None:
    """Check that an index, settled, equals one built afresh, and that its trees keep their rules."""
    terms = world.terms
    index.settle(terms.cap, terms.clamps_before)
    while index._expired:  # Some leave the ranking in each block.
        index.settle(terms.cap, terms.clamps_before)
    fresh = LaneIndex(terms.cap, terms.clamps_before, terms.age_blocks)
    fresh.join(world.waiting(), lambda actor: world.fires.get(actor, 0), world.counted_for)
    assert contents(index) == contents(fresh)
    for entry in index.timers.values():
        assert -entry.group.ends >= entry.expires_at
    for key, tree in index.trees.items():
        assert check_tree(tree), f"the tree {key} is empty, and must go"


def contents(index: LaneIndex) -> dict[str, object]:
    """Return all that an index holds, in a form that does not depend on how it came about."""
    return {
        "entries": {
            timer_id: (
                entry.due,
                entry.expires_at,
                entry.gas_limit,
                entry.stated_gas,
                entry.schedule_block,
                entry.is_marked,
            )
            for timer_id, entry in index.timers.items()
        },
        "groups": {timer_id: described(entry.group) for timer_id, entry in index.timers.items()},
        "actors": {
            address: (owner.fires, [described(group) for group in owner.groups])
            for address, owner in index._actors.items()
        },
        "trees": {
            key: [(group.place, group.bounds[:2]) for group in tree.items()] for key, tree in index.trees.items()
        },
        "due order": (list(index.unmarked), list(index.asking)),
        "caps": (list(index._fee_caps), index.gas_limits.items(), index.gas_limits.smallest, index.over_cap),
        "heard": (index.left, index._replaced, index._recounted),
    }


def described(group: LaneGroup) -> tuple[object, ...]:
    """Return what a group is."""
    terms = group.actor, group.payer, group.fees, group.is_over_cap, group.aged_from, group.caps, group.place
    return *terms, tuple(group.members)
