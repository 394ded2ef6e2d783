"""The root over everything: one tree per namespace, and the state root over their digests.

``state_root = sha256(0x03 ‖ "cowboy-state-v1" ‖ for each namespace: its byte ‖ the digest of its tree)``, namespaces in
the order of ``keys.KEY_WIDTHS``. A leaf commits to sha256 of its value.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import groupby, islice
from types import MappingProxyType
from typing import Final

from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Hash32
from trailboss.state import tree
from trailboss.state.digests import DIGEST_WIDTH, EMPTY_DIGEST, STATE_ROOT_TAG, nibble_at, prefix_of
from trailboss.state.keys import KEY_WIDTHS
from trailboss.state.tree import Interior, Layout, TreeNode

Roots = Mapping[bytes, tree.TreeNode | None]  # the tree of each namespace; none of them ever changes

LAYOUTS: Final[Mapping[bytes, tree.Layout]] = MappingProxyType(
    {namespace: tree.Layout(width) for namespace, width in KEY_WIDTHS.items()}
)
EMPTY_ROOTS: Final[Roots] = MappingProxyType(dict.fromkeys(KEY_WIDTHS))

_WIDTHS: Final = dict(KEY_WIDTHS)  # a mapping proxy takes a look-up twice as long
BUILD_BATCH: Final = 16_384  # keys added to the trees at a time, so that building needs little extra memory


def state_root(roots: Roots) -> Hash32:
    """Return the root of the whole state."""
    parts = [namespace + (EMPTY_DIGEST if root is None else root.digest) for namespace, root in roots.items()]
    return Hash32(sha256(STATE_ROOT_TAG + b"".join(parts)).digest())


def next_roots(roots: Roots, changes: Iterable[tuple[bytes, bytes | None]]) -> Roots:
    """Return the trees with ``changes`` made: full key and value, or None to delete.

    Raises:
        InvariantError: If a key has no committed namespace, or not its width.
    """
    leaves: dict[bytes, list[bytes]] = {namespace: [] for namespace in KEY_WIDTHS}
    for full_key, value in changes:
        namespace, key = full_key[:1], full_key[1:]
        if len(key) != _WIDTHS.get(namespace):
            raise _refused(full_key)
        leaves[namespace].append(key if value is None else key + sha256(value).digest())
    return {
        namespace: tree.apply(root, leaves[namespace], LAYOUTS[namespace]) if leaves[namespace] else root
        for namespace, root in roots.items()
    }


def build_roots(values: Iterable[tuple[bytes, bytes]]) -> Roots:
    """Return the trees of a whole state, from full keys and values; ascending keys are fastest.

    Raises:
        InvariantError: If a key has no committed namespace, or not its width.
    """
    roots = dict(EMPTY_ROOTS)
    for namespace, entries in groupby(values, _namespace_of):
        width = KEY_WIDTHS.get(namespace, -1)
        while leaves := [key[1:] + sha256(value).digest() for key, value in islice(entries, BUILD_BATCH)]:
            for leaf in leaves:
                if len(leaf) != width + DIGEST_WIDTH:
                    raise _refused(namespace + leaf[:-DIGEST_WIDTH])
            roots[namespace] = tree.apply(roots[namespace], leaves, LAYOUTS[namespace])
    return roots


def _refused(full_key: bytes) -> InvariantError:
    return InvariantError(f"state key {full_key.hex()} has no committed namespace, or not its width")


def _namespace_of(entry: tuple[bytes, bytes]) -> bytes:
    return entry[0][:1]


def count_keys(roots: Roots, namespace: bytes, bound: bytes | None = None) -> int:
    """Return how many keys a namespace holds.

    ``bound``, a full key of the namespace or the beginning of one, counts only the keys below it. Complexity: O(depth).
    """
    root = roots[namespace]
    return tree.count(root) if bound is None else tree.count_below(root, bound[1:], LAYOUTS[namespace])


def iterate_values(
    roots: Roots,
    read: Callable[[bytes], bytes | None],
    namespace: bytes,
    lower: bytes | None = None,
    upper: bytes | None = None,
) -> Iterator[tuple[bytes, bytes]]:
    """Yield full keys and values of a namespace, ascending by key; ``read`` returns a full key's value in that state.

    ``lower`` is the least full key, or the beginning of one; ``upper`` ends the range. None means no bound.

    Raises:
        InvariantError: If a tree names a key that has no value.
    """
    start = b"" if lower is None else lower[1:]
    # A bound in a later namespace ends nothing in this one.
    end = upper[1:] if upper is not None and upper.startswith(namespace) else None
    for key, _ in tree.iterate(roots[namespace], LAYOUTS[namespace], start, end):
        full_key = namespace + key
        value = read(full_key)
        if value is None:
            raise InvariantError(f"state key {full_key.hex()} is in the tree and has no value")
        yield full_key, value


def differing_keys(left: Roots, right: Roots) -> Iterator[bytes]:
    """Yield the full keys that have different values in two states, ascending in a namespace.

    Complexity: O(differing keys × depth) as long as both trees have the same form around them; at most all keys.
    """
    for namespace, layout in LAYOUTS.items():
        for key in _differing(left[namespace], right[namespace], layout):
            yield namespace + key


def _differing(left: TreeNode | None, right: TreeNode | None, layout: Layout) -> Iterator[bytes]:
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


def _children_at(node: Interior, position: int) -> tuple[TreeNode | None, ...]:
    """Return the subtrees of a node by the nibble at ``position``, which is in its prefix or just after it."""
    if position == node.prefix_length:
        return node.children
    slot = nibble_at(node.prefix, position)
    return tuple(node if at == slot else None for at in range(len(node.children)))
