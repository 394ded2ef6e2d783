"""Where two states differ: the keys that hold different values, found through the digests of their trees."""

from collections.abc import Iterator

from trailboss.state import tree
from trailboss.state.commitment import LAYOUTS, Roots
from trailboss.state.digests import nibble_at, prefix_of
from trailboss.state.tree import Interior, Layout, Node


def differing_keys(left: Roots, right: Roots) -> Iterator[bytes]:
    """Yield the full keys that hold a value in one state and another or none in the other, ascending in a namespace.

    Complexity: O(differing keys × depth) as long as both trees have the same form around them; at most all keys.
    """
    for namespace, layout in LAYOUTS.items():
        for key in _differing(left[namespace], right[namespace], layout):
            yield namespace + key


def _differing(left: Node | None, right: Node | None, layout: Layout) -> Iterator[bytes]:
    if tree.digest(left) == tree.digest(right):
        return
    if isinstance(left, Interior) and isinstance(right, Interior):
        length = min(left.prefix_length, right.prefix_length)
        if prefix_of(left.prefix, length) == prefix_of(right.prefix, length):
            for ours, theirs in zip(_children_at(left, length), _children_at(right, length), strict=True):
                yield from _differing(ours, theirs, layout)
            return
    lefts, rights = dict(tree.iterate(left, layout)), dict(tree.iterate(right, layout))
    yield from sorted(key for key in lefts.keys() | rights.keys() if lefts.get(key) != rights.get(key))


def _children_at(node: Interior, position: int) -> tuple[Node | None, ...]:
    """Return the subtrees of a node by the nibble at ``position``, which lies within its prefix or just after it."""
    if position == node.prefix_length:
        return node.children
    slot = nibble_at(node.prefix, position)
    return tuple(node if at == slot else None for at in range(len(node.children)))
