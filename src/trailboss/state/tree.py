"""The authenticated map: a canonical, order-preserving radix-16 trie with leaf pages, copy-on-write, SHA-256.

The shape is a function of the key set alone. A set of at most ``capacity`` keys is a *page*; a larger one is an
*interior* node at the longest prefix that all its keys share, counted in nibbles, with one child per next nibble. So
histories with equal contents have equal digests. Keys of one tree have one width. The tree holds digests of values, not
the values.

```text
page      digest = sha256(0x01 ‖ entries)              an entry is key ‖ value digest; entries ascend
interior  digest = sha256(0x02 ‖ prefix_length(1) ‖ count(8) ‖ prefix ‖ 16 child digests)
          prefix = the shared nibbles, packed; the unused low nibble of an odd one is 0; no child: 32 zero bytes
empty     digest = 32 zero bytes
```

Nodes never change. A batch copies the paths that it touches and hashes each touched node once; an old root stays valid,
so going back is keeping a pointer. The count below every interior node is part of its digest, which makes "how many
keys lie below this one" a short proof.

Complexity: ``apply`` is O(changes × depth), and depth is about log16(keys / capacity) for keys that are hashes.
"""

from bisect import bisect_left
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from msgspec import Struct

from trailboss.state import digests
from trailboss.state.digests import DIGEST_WIDTH, EMPTY_DIGEST, FAN_OUT, INTERIOR_TAG, PAGE_CAPACITY, PAGE_TAG


class LeafPage(Struct, frozen=True, eq=False, gc=False):
    """A leaf of the tree."""

    digest: bytes  # digest of the page
    count: int  # entries, 1..=capacity
    entries: bytes  # key and value digest of each entry, one after the other, ascending by key


class Interior(Struct, frozen=True, eq=False, gc=False):
    """An inner node: more keys than a page holds."""

    digest: bytes  # digest of the node
    count: int  # keys below
    prefix_length: int  # leading nibbles that all keys below share
    prefix: bytes  # those nibbles, two a byte; the low nibble of an odd tail is 0
    child_digests: bytes  # the 16 child digests, one after the other
    children: tuple["LeafPage | Interior | None", ...]  # at least two, by next nibble


TreeNode = LeafPage | Interior

SORTED_MIN: Final = 12  # changes from which on a page is sorted, and not searched for each


class Layout(Struct, frozen=True):
    """The form of a tree."""

    key_width: int  # bytes of every key, 1..=127
    capacity: int = PAGE_CAPACITY  # most entries of a page


def digest(root: TreeNode | None) -> bytes:
    """Return the digest of a tree: 32 zero bytes if it is empty."""
    return EMPTY_DIGEST if root is None else root.digest


def count(root: TreeNode | None) -> int:
    """Return how many keys a tree holds."""
    return 0 if root is None else root.count


def apply(root: TreeNode | None, changes: list[bytes], layout: Layout) -> TreeNode | None:
    """Return the tree with ``changes`` made; from an empty one it is built in bulk.

    A change is key ‖ value digest to set a key, or the key alone to delete it, if it exists; one per key.
    """
    return _apply(sorted(changes), layout, root, 0, len(changes)) if changes else root


def iterate(
    root: TreeNode | None, layout: Layout, lower: bytes = b"", upper: bytes | None = None
) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value digest of the entries with ``lower <= key < upper``, ascending by key.

    A bound can be the beginning of a key; ``upper`` None means no end.
    """
    key_width = layout.key_width
    entry_width = key_width + DIGEST_WIDTH
    for page in _pages(root, key_width, lower, upper):
        entries = page.entries
        for at in range(0, len(entries), entry_width):
            key = entries[at : at + key_width]
            if upper is not None and key >= upper:
                return
            if key >= lower:
                yield key, entries[at + key_width : at + entry_width]


def count_below(root: TreeNode | None, bound: bytes, layout: Layout) -> int:
    """Return how many keys are less than ``bound``, a key or the beginning of one. Complexity: O(depth)."""
    bound = bound.ljust(layout.key_width, b"\x00")
    below, node = 0, root
    while isinstance(node, Interior):
        own = digests.prefix_of(bound, node.prefix_length)
        if own != node.prefix:
            return below + (node.count if node.prefix < own else 0)
        slot = digests.nibble_at(bound, node.prefix_length)
        below += sum(child.count for child in node.children[:slot] if child is not None)
        node = node.children[slot]
    return below + (0 if node is None else _search(node.entries, bound, layout.key_width, 0, node.count))


def _shared_nibbles(left: bytes, right: bytes) -> int:
    """Return how many leading nibbles two strings of the same width share."""
    differing = int.from_bytes(left, "big") ^ int.from_bytes(right, "big")
    return 2 * len(left) - (differing.bit_length() + 3 >> 2)


def _new_page(entries: bytes, entry_width: int) -> LeafPage:
    return LeafPage(sha256(PAGE_TAG + entries).digest(), len(entries) // entry_width, entries)


def _new_interior(
    keys: int, prefix_length: int, prefix: bytes, child_digests: bytes, children: tuple[TreeNode | None, ...]
) -> Interior:
    head = INTERIOR_TAG + prefix_length.to_bytes(1, "big") + keys.to_bytes(8, "big")
    node_digest = sha256(head + prefix + child_digests).digest()
    return Interior(node_digest, keys, prefix_length, prefix, child_digests, children)


def _build(entries: list[bytes], start: int, end: int, layout: Layout) -> TreeNode | None:
    """Build the tree of ``entries[start:end]``, each a key and its value digest, ascending."""
    entry_width = layout.key_width + DIGEST_WIDTH
    if end - start <= layout.capacity:
        return _new_page(b"".join(entries[start:end]), entry_width) if end > start else None
    first, last = entries[start], entries[end - 1]
    prefix_length = _shared_nibbles(first[: layout.key_width], last[: layout.key_width])
    children: list[TreeNode | None] = [None] * FAN_OUT
    at = start
    while at < end:
        slot, following = _slot_run(entries, at, end, prefix_length)
        children[slot] = _build(entries, at, following, layout)
        at = following
    child_digests = b"".join([EMPTY_DIGEST if child is None else child.digest for child in children])
    return _new_interior(
        end - start, prefix_length, digests.prefix_of(first, prefix_length), child_digests, tuple(children)
    )


def _slot_run(keys: list[bytes], start: int, end: int, position: int) -> tuple[int, int]:
    """Return the nibble of ``keys[start]`` at ``position``, and the index, up to ``end``, where the next nibble begins.

    The keys ascend and share all nibbles before ``position``.
    """
    byte = position >> 1
    octet = keys[start][byte]
    highest = octet if position & 1 else octet | 15
    if keys[end - 1][byte] <= highest:
        following = end
    elif keys[start + 1][byte] > highest:
        following = start + 1
    else:
        # The last key lies beyond the slot, so the octet after it exists.
        following = bisect_left(keys, keys[start][:byte] + bytes((highest + 1,)), start + 2, end)
    return octet & 15 if position & 1 else octet >> 4, following


def _search(entries: bytes, key: bytes, key_width: int, low: int, high: int) -> int:
    """Return the index, within ``low..=high``, of the first entry whose key is not less than ``key``."""
    entry_width = key_width + DIGEST_WIDTH
    while low < high:
        middle = (low + high) >> 1
        at = middle * entry_width
        if entries[at : at + key_width] < key:
            low = middle + 1
        else:
            high = middle
    return low


def _apply(changes: list[bytes], layout: Layout, node: TreeNode | None, start: int, end: int) -> TreeNode | None:
    """Apply ``changes[start:end]``, which ascend, to the subtree that all of them belong to."""
    if isinstance(node, Interior):
        return _apply_to_interior(changes, layout, node, start, end)
    if isinstance(node, LeafPage):
        return _apply_to_page(changes, layout, node, start, end)
    entries = [change for change in changes[start:end] if len(change) > layout.key_width]
    return _build(entries, 0, len(entries), layout)


def _apply_to_page(changes: list[bytes], layout: Layout, page: LeafPage, start: int, end: int) -> TreeNode | None:
    """Merge changes into a page; it becomes a subtree if they overfill it."""
    entries, key_width = page.entries, layout.key_width
    entry_width = key_width + DIGEST_WIDTH
    if end - start >= SORTED_MIN:
        by_key = {
            entries[at : at + key_width]: entries[at : at + entry_width] for at in range(0, len(entries), entry_width)
        }
        by_key.update((change[:key_width], change) for change in changes[start:end])
        parts = [by_key[key] for key in sorted(by_key) if len(by_key[key]) > key_width]
        return _build(parts, 0, len(parts), layout)
    pieces: list[bytes] = []
    copied = index = 0
    for change in changes[start:end]:
        key = change[:key_width]
        at = index * entry_width
        # The changes of a page that is emptied or filled anew come one after the other.
        if not entries.startswith(key, at):
            index = _search(entries, key, key_width, index, page.count)
            at = index * entry_width
        pieces.append(entries[copied:at])
        copied = at
        if len(change) > key_width:
            pieces.append(change)
        if entries.startswith(key, at):
            index += 1
            copied += entry_width
    pieces.append(entries[copied:])
    merged = b"".join(pieces)
    if len(merged) > layout.capacity * entry_width:
        parts = [merged[at : at + entry_width] for at in range(0, len(merged), entry_width)]
        return _build(parts, 0, len(parts), layout)
    if not merged:
        return None
    return page if merged == entries else _new_page(merged, entry_width)


def _apply_to_interior(changes: list[bytes], layout: Layout, node: Interior, start: int, end: int) -> TreeNode | None:
    """Apply changes to the children of a node, and return the result in canonical form."""
    node = _split_prefix(node, changes[start], changes[end - 1])
    prefix_length, total = node.prefix_length, node.count
    children = list(node.children)
    child_digests = bytearray(node.child_digests)
    changed = False
    at = start
    while at < end:
        slot, following = _slot_run(changes, at, end, prefix_length)
        old = children[slot]
        new = _apply(changes, layout, old, at, following)
        at = following
        if new is old:
            continue
        changed = True
        children[slot] = new
        total += count(new) - count(old)
        child_digests[slot * DIGEST_WIDTH : (slot + 1) * DIGEST_WIDTH] = digest(new)
    if total <= layout.capacity:
        # So few keys leave no child more than a page.
        merged = b"".join([child.entries for child in children if isinstance(child, LeafPage)])
        return _new_page(merged, layout.key_width + DIGEST_WIDTH) if merged else None
    if children.count(None) == FAN_OUT - 1:
        return next(child for child in children if child is not None)
    if not changed:
        return node
    return _new_interior(total, prefix_length, node.prefix, bytes(child_digests), tuple(children))


def _split_prefix(node: Interior, first: bytes, last: bytes) -> Interior:
    """Return ``node``, or a node above it that also has room for the keys ``first..=last``.

    If some of those keys leave the compressed prefix, the returned node is where the first of them does and has
    ``node`` as its only child. It is not canonical and has no digest yet; the caller adds another child or drops it
    again.
    """
    prefix, width = node.prefix, len(node.prefix)
    own = digests.prefix_of(first, node.prefix_length)
    if own == prefix and (first == last or digests.prefix_of(last, node.prefix_length) == prefix):
        return node
    shared = min(node.prefix_length, _shared_nibbles(first[:width], prefix), _shared_nibbles(last[:width], prefix))
    slot = digests.nibble_at(prefix, shared)
    children: list[TreeNode | None] = [None] * FAN_OUT
    children[slot] = node
    child_digests = EMPTY_DIGEST * slot + node.digest + EMPTY_DIGEST * (FAN_OUT - 1 - slot)
    return Interior(b"", node.count, shared, digests.prefix_of(prefix, shared), child_digests, tuple(children))


def _pages(root: TreeNode | None, key_width: int, lower: bytes, upper: bytes | None) -> Iterator[LeafPage]:
    """Yield, in order, the pages that can hold keys of a range, skipping subtrees outside it."""
    lower = lower.ljust(key_width, b"\x00")
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, LeafPage):
            yield node
        elif node is not None and (upper is None or node.prefix.ljust(key_width, b"\x00") < upper):
            own = digests.prefix_of(lower, node.prefix_length)
            if own < node.prefix:
                waiting.extend(reversed(node.children))
            elif own == node.prefix:
                waiting.extend(reversed(node.children[digests.nibble_at(lower, node.prefix_length) :]))
