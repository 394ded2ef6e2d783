"""The part of a tree that a proof shows, and the digest computed from it.

The nodes are in order, parents first, children by nibble. A proof does not choose the shown children of an interior
node: it shows exactly those below which a key of the range could be, and the digests of the others. So omitted parts
cannot belong to the range, and a range has one proof.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from trailboss.primitives.errors import ProofError
from trailboss.primitives.units import U64_MAX
from trailboss.state import digests
from trailboss.state.digests import DIGEST_WIDTH, EMPTY_DIGEST, FAN_OUT, INTERIOR_TAG, PAGE_CAPACITY, PAGE_TAG
from trailboss.state.proofs.subjects import KeyRange

_ALL_PRESENT: Final = 2**FAN_OUT - 1


class ShownPage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="page"):
    """A leaf of the tree, whole."""

    entries: bytes  # key and value digest of each entry, one after the other, ascending by key


class ShownInterior(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="interior"):
    """An inner node, without the digests of shown children."""

    count: int  # keys below
    prefix_length: int  # nibbles that all keys below share
    prefix: bytes  # those nibbles, two a byte; the low nibble of an odd tail is 0
    present: int  # bit ``1 << nibble`` is set if there is a child under that nibble
    digests: bytes  # digests of existing children that are not shown, one after the other


ShownNode = ShownPage | ShownInterior
LeafEntry = tuple[bytes, bytes]  # key and value digest


class _Folded(NamedTuple):
    """A checked subtree, as its parent needs it: all its keys begin as both bounds begin."""

    digest: bytes
    total: int
    prefix_length: int
    least: bytes
    greatest: bytes


def shown_slots(prefix: bytes, prefix_length: int, keys: KeyRange) -> range:
    """Return the nibbles under which keys of a range could be, for an interior node with this packed prefix."""
    low, high = digests.prefix_of(keys.low, prefix_length), digests.prefix_of(keys.high, prefix_length)
    if low > prefix or high < prefix:
        return range(0)
    first = digests.nibble_at(keys.low, prefix_length) if low == prefix else 0
    last = digests.nibble_at(keys.high, prefix_length) if high == prefix else FAN_OUT - 1
    return range(first, last + 1)


def entries_within(entries: bytes, keys: KeyRange) -> Iterator[LeafEntry]:
    """Yield key and value digest of a page's entries within a range."""
    key_width = len(keys.low)
    for at in range(0, len(entries), key_width + DIGEST_WIDTH):
        key = entries[at : at + key_width]
        if keys.low <= key <= keys.high:
            yield key, entries[at + key_width : at + key_width + DIGEST_WIDTH]


def fold_nodes(nodes: Sequence[ShownNode], keys: KeyRange) -> tuple[bytes, list[LeafEntry]]:
    """Check the shown part of a tree, parents first; return the tree's digest and all its entries within a range.

    Nothing is trusted: the digests and the canonical form are checked as far as they are shown. The last node comes
    first, so that every node finds its children folded; nothing recurses. Complexity: O(size of the nodes).

    Raises:
        ProofError: Naming the node, counted from 0, and the rule that it breaks.
    """
    folded: list[_Folded] = []
    pages: list[bytes] = []
    for index in range(len(nodes) - 1, -1, -1):
        node = nodes[index]
        try:
            if isinstance(node, ShownPage):
                folded.append(_fold_page(node, len(keys.low)))
                pages.append(node.entries)
            else:
                folded.append(_fold_interior(node, keys, folded))
        except ProofError as error:
            raise ProofError(f"node {index}: {error}") from None
    if len(folded) > 1:
        raise ProofError(f"{len(folded) - 1} of the subtrees shown have no parent")
    entries = [entry for page in reversed(pages) for entry in entries_within(page, keys)]
    return folded[0].digest if folded else EMPTY_DIGEST, entries


def _fold_page(page: ShownPage, key_width: int) -> _Folded:
    entry_width = key_width + DIGEST_WIDTH
    entries = page.entries
    count, rest = divmod(len(entries), entry_width)
    if rest or not 1 <= count <= PAGE_CAPACITY:
        raise ProofError(f"a page of {len(entries)} bytes is not 1..={PAGE_CAPACITY} entries of {entry_width} bytes")
    page_keys = [entries[at : at + key_width] for at in range(0, len(entries), entry_width)]
    if any(key >= following for key, following in pairwise(page_keys)):
        raise ProofError("the keys of a page do not ascend")
    # In a sorted page, all keys share the common prefix of the first and the last key.
    return _Folded(sha256(PAGE_TAG + entries).digest(), count, 2 * key_width, page_keys[0], page_keys[-1])


def _fold_interior(node: ShownInterior, keys: KeyRange, folded: list[_Folded]) -> _Folded:
    """Check an interior node and take its shown children from the end of ``folded``."""
    _check_interior(node, len(keys.low))
    slots = [slot for slot in range(FAN_OUT) if node.present >> slot & 1]
    shown = shown_slots(node.prefix, node.prefix_length, keys)
    shown_count = sum(slot in shown for slot in slots)
    left_out = len(slots) - shown_count
    if shown_count > len(folded):
        raise ProofError(f"{shown_count} of its children must be shown, {len(folded)} are")
    if len(node.digests) != left_out * DIGEST_WIDTH:
        raise ProofError(f"{left_out} of its children are left out, the digests have {len(node.digests)} bytes")
    child_digests = [EMPTY_DIGEST] * FAN_OUT
    at = below = 0
    for slot in slots:
        if slot in shown:
            child = folded.pop()
            _check_child(node, slot, child)
            child_digests[slot] = child.digest
            below += child.total
        else:
            child_digests[slot] = node.digests[at : at + DIGEST_WIDTH]
            at += DIGEST_WIDTH
            if child_digests[slot] == EMPTY_DIGEST:
                raise ProofError(f"the child under nibble {slot} has the digest of nothing")
    if node.count < below + left_out or (left_out == 0 and node.count != below):
        raise ProofError(f"{node.count} keys cannot lie below {left_out} children left out and {below} keys shown")
    head = INTERIOR_TAG + node.prefix_length.to_bytes(1, "big") + node.count.to_bytes(8, "big")
    digest = sha256(head + node.prefix + b"".join(child_digests)).digest()
    return _Folded(digest, node.count, node.prefix_length, node.prefix, node.prefix)


def _check_interior(node: ShownInterior, key_width: int) -> None:
    """Check an interior node by itself."""
    if not 0 <= node.prefix_length < 2 * key_width:
        raise ProofError(f"a prefix of {node.prefix_length} nibbles leaves none of a key of {key_width} bytes")
    width = (node.prefix_length + 1) // 2
    if len(node.prefix) != width or digests.prefix_of(node.prefix, node.prefix_length) != node.prefix:
        raise ProofError(f"the prefix {node.prefix.hex():.80} is not {node.prefix_length} nibbles")
    if not PAGE_CAPACITY < node.count <= U64_MAX:
        raise ProofError(f"an interior node of {node.count} keys is not above {PAGE_CAPACITY}, within 64 bits")
    if not 0 <= node.present <= _ALL_PRESENT or node.present.bit_count() < 2:
        raise ProofError(f"the bits {node.present:#x} are not those of 2..={FAN_OUT} children")


def _check_child(node: ShownInterior, slot: int, child: _Folded) -> None:
    """Check that all keys of a shown child begin with its parent's prefix and its own nibble."""
    length = node.prefix_length
    beginning = node.prefix
    if child.prefix_length <= length:
        raise ProofError(f"the child under nibble {slot} shares {child.prefix_length} nibbles, its parent {length}")
    for bound in (child.least, child.greatest):
        if digests.prefix_of(bound, length) != beginning or digests.nibble_at(bound, length) != slot:
            raise ProofError(f"the child under nibble {slot} holds keys that begin with {bound.hex()}")
