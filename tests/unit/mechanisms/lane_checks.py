"""What must hold of the lane's index after any history."""

from collections.abc import Iterator

from tests.unit.mechanisms.lane_worlds import World
from trailboss.mechanisms.fee_lane import shelf as shelves
from trailboss.mechanisms.fee_lane.index import LaneIndex
from trailboss.mechanisms.fee_lane.shelf import Group, Node


def check_index(index: LaneIndex, world: World) -> None:
    """Check that an index, settled, equals one built afresh, and that its trees keep their rules."""
    terms = world.terms
    index.settle(terms.cap, terms.clamps_before)
    while index._expired:  # Some leave the ranking in each block.
        index.settle(terms.cap, terms.clamps_before)
    fresh = LaneIndex(terms.cap, terms.clamps_before)
    fresh.join(world.waiting(), lambda actor: world.fires.get(actor, 0))
    assert contents(index) == contents(fresh)
    for entry in index.entries.values():
        assert entry.group.last_expiry >= entry.expires_at
    for key, shelf in index.shelves.items():
        assert shelf.root is not None, f"the shelf {key} is empty, and must go"
        check_node(shelf.root)


def contents(index: LaneIndex) -> dict[str, object]:
    """Return all that an index holds, in a form that does not depend on how it came about."""
    return {
        "entries": {
            timer_id: (
                *entry.place,
                entry.expires_at,
                entry.gas_limit,
                entry.stated_gas,
                entry.schedule_block,
                entry.is_told,
            )
            for timer_id, entry in index.entries.items()
        },
        "groups": {timer_id: described(entry.group) for timer_id, entry in index.entries.items()},
        "actors": {
            address: (owner.fires, [described(group) for group in owner.groups])
            for address, owner in index._actors.items()
        },
        "shelves": {key: sorted(group.place for group in shelf.groups()) for key, shelf in index.shelves.items()},
        "due order": (list(index.untold), list(index.asking)),
        "caps": (list(index._fee_caps), index.gas_limits.items(), index.gas_limits.smallest, index.over_cap),
        "heard": (index.left, index._replaced, index._recounted),
    }


def described(group: Group) -> tuple[object, ...]:
    """Return what a group is."""
    terms = group.actor, group.payer, group.fees, group.is_over_cap, group.max_fee, group.max_priority
    return *terms, tuple(group.ids)


def check_node(node: Node) -> list[Group]:
    """Check the order, the sizes and the bests of a node, and return its groups."""
    assert 1 <= len(node) <= shelves.FANOUT
    assert not (node.nodes and node.groups)
    groups = list(node.groups)
    for number, child in enumerate(node.nodes):
        below = check_node(child)
        if number:
            assert max(group.place for group in groups) < child.start <= min(group.place for group in below)
        groups += below
    assert all(group.ids == sorted(group.ids) and group.ids for group in groups)
    best_fee = min((-group.max_fee, group.ids[0]) for group in groups)
    best_priority = min((-group.max_priority, group.ids[0]) for group in groups)
    assert node.last_expiry >= max(group.last_expiry for group in groups)
    node.best(0)
    assert (node._best_fee, node._best_priority) == (best_fee, best_priority)
    return groups


def heights(node: Node) -> Iterator[int]:
    """Yield the number of levels below each way down; all are equal."""
    if not node.nodes:
        yield 1
    for child in node.nodes:
        yield from (1 + levels for levels in heights(child))
