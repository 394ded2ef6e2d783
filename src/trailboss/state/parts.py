"""A state in parts, each of which is checked by itself against the state root.

A *part* is all that lies below one node of a namespace's tree, or one entry of a page that is too large for a part. The
nodes above the parts are *open*: the `Top` holds what their digests are taken of, so whoever trusts the state root can
check the top, and with it the digest of every part. Which nodes are open is a function of the state alone: those below
which more than ``PART_OCTETS`` lie. Decision: D-105.

```text
entry = full key ‖ length of the value (4) ‖ value
```
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from msgspec import Struct

from trailboss.primitives.errors import InvariantError, ProofError
from trailboss.state import tree
from trailboss.state.commitment import LAYOUTS, Roots
from trailboss.state.digests import DIGEST_WIDTH, EMPTY_DIGEST, FAN_OUT, INTERIOR_TAG, PAGE_TAG, STATE_ROOT_TAG
from trailboss.state.keys import KEY_WIDTHS
from trailboss.state.tree import LeafPage, TreeNode

PART_OCTETS: Final = 1 << 20  # most bytes of a part with more than one entry; a million timers are some 300 parts
LENGTH_WIDTH: Final = 4  # bytes of the length of a value

NIBBLE_BITS: Final = 4
_PREFIX_START: Final = 10  # where the prefix begins in the digest's input of an interior node
_CHILDREN_WIDTH: Final = FAN_OUT * DIGEST_WIDTH
_FULL_WIDTHS: Final = {namespace[0]: 1 + width for namespace, width in KEY_WIDTHS.items()}

Read = Callable[[bytes], bytes | None]  # returns the value of a full key, or None
Entry = tuple[bytes, bytes]  # full key and value


class Top(Struct, frozen=True, array_like=True):
    """What lies above the parts of a state."""

    namespaces: tuple[bytes, ...]  # digest of each namespace's tree, in the order of the state root
    opened: tuple[bytes, ...]  # what the digests of the open nodes are taken of, parents first


class Part(NamedTuple):
    """A part, as a checked top describes it."""

    first: bytes  # full key; the part has no key below it
    digest: bytes  # digest of the tree of its entries, or of the value of its only entry
    is_entry: bool  # whether it is one entry of a page, whose key is ``first``


class StoredPart(NamedTuple):
    """A part of a state that is at hand."""

    namespace: bytes
    node: TreeNode  # what lies in the part
    octets: int  # bytes of its entries

    def encode(self, read: Read) -> bytes:
        """Return its entries, ascending by key. `InvariantError` if a key has no value."""
        keys = (self.namespace + key for key, _ in tree.iterate(self.node, LAYOUTS[self.namespace]))
        return b"".join([piece for key in keys for piece in _encoded(key, _value(read, key))])


class _Cut(NamedTuple):
    """How a subtree is cut."""

    octets: int  # bytes of its entries
    opened: list[bytes]  # what the digests of its open nodes are taken of; empty if it fits into one part
    parts: list[StoredPart]  # its parts; empty likewise


def cut_state(roots: Roots, read: Read) -> tuple[Top, list[StoredPart]]:
    """Return the top of a state, and its parts in the order of their keys. Complexity: O(state), 3 µs an entry.

    Raises:
        InvariantError: If a key has no value.
    """
    opened: list[bytes] = []
    parts: list[StoredPart] = []
    for namespace, root in sorted(roots.items(), key=itemgetter(0)):
        if root is not None:
            cut = _cut(namespace, root, read)
            opened += cut.opened
            parts += cut.parts or [StoredPart(namespace, root, cut.octets)]
    return Top(tuple(tree.digest(root) for root in roots.values()), tuple(dict.fromkeys(opened))), parts


def check_top(top: Top, state_root: bytes) -> list[Part]:
    """Return the parts below a top, in the order of their keys, once it is known to be that of a state root.

    Raises:
        ProofError: If it is not.
    """
    named = list(zip(KEY_WIDTHS, top.namespaces, strict=False))
    root_input = b"".join(namespace + digest for namespace, digest in named)
    if len(top.namespaces) != len(KEY_WIDTHS) or sha256(STATE_ROOT_TAG + root_input).digest() != state_root:
        raise ProofError(f"the digests of the namespaces do not give the state root {state_root.hex()}")
    # A node is open if its digest is that of something opened: nobody finds other bytes with a trusted digest.
    opened = {sha256(octets).digest(): octets for octets in top.opened}
    reached: set[bytes] = set()
    parts: list[Part] = []
    for namespace, root in sorted(named):
        width = KEY_WIDTHS[namespace]
        waiting = [(namespace + bytes(width), root)]
        while waiting:
            first, digest = waiting.pop()
            octets = opened.get(digest)
            if octets is None:
                parts.append(Part(first, digest, is_entry=False))
                continue
            reached.add(digest)
            if octets.startswith(PAGE_TAG):
                parts += _entries_of(octets, namespace, width)
            else:
                waiting += reversed([*_children_of(octets, namespace, width)])
    if len(reached) < len(top.opened):
        raise ProofError(f"{len(top.opened) - len(reached)} of {len(top.opened)} open nodes are not of the state")
    return [part for part in parts if part.digest != EMPTY_DIGEST]


def check_parts(parts: Sequence[Part], octets: bytes) -> list[Entry]:
    """Return the entries of consecutive parts, ascending by key, once all of them are known to be right.

    Raises:
        ProofError: If the bytes are not exactly the entries of these parts.
    """
    entries = list(_decode(octets))
    keys = [key for key, _ in entries]
    if any(key >= following for key, following in pairwise(keys)):
        raise ProofError("its keys do not ascend")
    bounds = [0, *(bisect_left(keys, part.first) for part in parts[1:]), len(entries)]
    for part, (start, end) in zip(parts, pairwise(bounds), strict=True):
        if not _is_right(part, entries[start:end]):
            raise ProofError(f"what lies from key {part.first.hex()} on is not what the state root commits to")
    return entries


def _cut(namespace: bytes, node: TreeNode, read: Read) -> _Cut:
    if isinstance(node, LeafPage):
        return _cut_page(namespace, node, read)
    children = [child for child in node.children if child is not None]
    cuts = [_cut(namespace, child, read) for child in children]
    octets = sum(cut.octets for cut in cuts)
    if octets <= PART_OCTETS:
        return _Cut(octets, [], [])
    head = INTERIOR_TAG + node.prefix_length.to_bytes(1, "big") + node.count.to_bytes(8, "big")
    opened = [head + node.prefix + node.child_digests]
    parts: list[StoredPart] = []
    for child, cut in zip(children, cuts, strict=True):
        opened += cut.opened
        parts += cut.parts or [StoredPart(namespace, child, cut.octets)]
    return _Cut(octets, opened, parts)


def _cut_page(namespace: bytes, page: LeafPage, read: Read) -> _Cut:
    width = LAYOUTS[namespace].key_width
    entries = page.entries
    sizes = []
    for at in range(0, len(entries), width + DIGEST_WIDTH):
        sizes.append(1 + width + LENGTH_WIDTH + len(_value(read, namespace + entries[at : at + width])))
    octets = sum(sizes)
    if octets <= PART_OCTETS:
        return _Cut(octets, [], [])
    parts = []
    for at, size in enumerate(sizes):
        entry = entries[at * (width + DIGEST_WIDTH) : (at + 1) * (width + DIGEST_WIDTH)]
        parts.append(StoredPart(namespace, LeafPage(b"", 1, entry), size))
    return _Cut(octets, [PAGE_TAG + entries], parts)


def _value(read: Read, key: bytes) -> bytes:
    value = read(key)
    if value is None:
        raise InvariantError(f"state key {key.hex()} is in the tree and has no value")
    return value


def _entries_of(octets: bytes, namespace: bytes, width: int) -> Iterator[Part]:
    """Yield the entries of an open page as parts."""
    for at in range(len(PAGE_TAG), len(octets), width + DIGEST_WIDTH):
        key, digest = octets[at : at + width], octets[at + width : at + width + DIGEST_WIDTH]
        yield Part(namespace + key, digest, is_entry=True)


def _children_of(octets: bytes, namespace: bytes, width: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the least full key below each child of an open interior node, and the child's digest."""
    length, prefix, children = octets[1], octets[_PREFIX_START:-_CHILDREN_WIDTH], octets[-_CHILDREN_WIDTH:]
    for slot in range(FAN_OUT):
        beginning = prefix[:-1] + bytes((prefix[-1] | slot,)) if length & 1 else prefix + bytes((slot << NIBBLE_BITS,))
        yield (
            namespace + beginning.ljust(width, b"\x00"),
            children[slot * DIGEST_WIDTH : (slot + 1) * DIGEST_WIDTH],
        )


def _encoded(key: bytes, value: bytes) -> tuple[bytes, bytes, bytes]:
    return key, len(value).to_bytes(LENGTH_WIDTH, "big"), value


def _decode(octets: bytes) -> Iterator[Entry]:
    at, end = 0, len(octets)
    while at < end:
        width = _FULL_WIDTHS.get(octets[at])
        if width is None:
            raise ProofError(f"the byte {octets[at]:#04x} at offset {at} is no namespace")
        start = at + width + LENGTH_WIDTH
        following = start + int.from_bytes(octets[at + width : start], "big")
        if following > end:
            raise ProofError(f"the entry at offset {at} is cut off")
        yield octets[at : at + width], octets[start:following]
        at = following


def _is_right(part: Part, entries: Sequence[Entry]) -> bool:
    leaves = [key[1:] + sha256(value).digest() for key, value in entries]
    if part.is_entry:
        return leaves == [part.first[1:] + part.digest]
    namespace = part.first[:1]
    if any(not key.startswith(namespace) for key, _ in entries):
        return False
    return tree.digest(tree.apply(None, leaves, LAYOUTS[namespace])) == part.digest
