"""The tree's digests and nodes in small cases computed by hand."""

from hashlib import sha256

from trailboss.state import tree

LAYOUT = tree.Layout(key_width=2, capacity=1)
VALUE = sha256(b"value").digest()


def apply(root: tree.TreeNode | None, changes: dict[bytes, bytes | None], layout: tree.Layout) -> tree.TreeNode | None:
    """Apply changes that are given as value digest by key, None to delete."""
    return tree.apply(root, [key + (value_digest or b"") for key, value_digest in changes.items()], layout)


def page_digest(*keys: bytes) -> bytes:
    return sha256(b"\x01" + b"".join(key + VALUE for key in keys)).digest()


def test_digest_is_zero_when_the_tree_is_empty() -> None:
    """No entries: 32 zero bytes."""
    assert tree.digest(None) == bytes(32)
    assert tree.count(None) == 0
    assert apply(None, {b"\x00\x00": None}, LAYOUT) is None


def test_digest_is_that_of_the_page_when_entries_fit() -> None:
    """Entries lie in a page in ascending order."""
    root = apply(None, {b"\x02\x00": VALUE, b"\x01\x00": VALUE}, tree.Layout(2, 2))
    assert isinstance(root, tree.LeafPage)
    assert root.digest == page_digest(b"\x01\x00", b"\x02\x00")
    assert root.count == 2


def test_interior_masks_the_low_nibble_when_its_prefix_is_odd() -> None:
    """Keys 12a0 and 12a5 share three nibbles; in the packed prefix the fourth is 0."""
    root = apply(None, {b"\x12\xa0": VALUE, b"\x12\xa5": VALUE}, LAYOUT)
    assert isinstance(root, tree.Interior)
    assert (root.prefix_length, root.prefix, root.count) == (3, b"\x12\xa0", 2)
    children = page_digest(b"\x12\xa0") + bytes(4 * 32) + page_digest(b"\x12\xa5") + bytes(10 * 32)
    head = b"\x02" + b"\x03" + (2).to_bytes(8, "big") + b"\x12\xa0"
    assert root.digest == sha256(head + children).digest()


def test_digest_forgets_the_representative_when_an_odd_prefix_loses_it() -> None:
    """The key that an odd prefix was taken from can go without a trace."""
    rest = {b"\x12\xa5": VALUE, b"\x12\xa7": VALUE}
    root = apply(None, rest | {b"\x12\xa0": VALUE}, LAYOUT)
    assert tree.digest(apply(root, {b"\x12\xa0": None}, LAYOUT)) == tree.digest(apply(None, rest, LAYOUT))


def test_apply_returns_the_same_node_when_nothing_changes() -> None:
    """Equal values and deletes of absent keys, inside and outside of a compressed prefix, copy nothing."""
    root = apply(None, {b"\x12\xa0": VALUE, b"\x12\xa5": VALUE}, LAYOUT)
    same = {b"\x12\xa0": VALUE, b"\x12\xa1": None, b"\x12\xb0": None, b"\x00\x00": None, b"\xff\xff": None}
    assert apply(root, same, LAYOUT) is root
    assert apply(root, {}, LAYOUT) is root


def test_old_root_stays_when_changes_are_applied() -> None:
    """A tree is a value: its contents can be listed after later batches."""
    old = apply(None, {bytes([n, 0]): VALUE for n in range(40)}, LAYOUT)
    new = apply(old, {bytes([n, 0]): None for n in range(40)}, LAYOUT)
    assert new is None
    assert [key[0] for key, _ in tree.iterate(old, LAYOUT)] == list(range(40))


def test_untouched_children_are_shared_when_changes_are_applied() -> None:
    """A batch copies the paths it touches and nothing else."""
    old = apply(None, {bytes([n, 0]): VALUE for n in range(256)}, LAYOUT)
    new = apply(old, {b"\x00\x00": sha256(b"other").digest()}, LAYOUT)
    assert isinstance(old, tree.Interior)
    assert isinstance(new, tree.Interior)
    assert [a is b for a, b in zip(old.children, new.children, strict=True)] == [False] + [True] * 15


def test_count_below_ends_early_when_the_bound_leaves_a_compressed_prefix() -> None:
    """All or none of a subtree lies below a bound outside its prefix."""
    root = apply(None, {b"\x12\xa0": VALUE, b"\x12\xa5": VALUE}, LAYOUT)
    bounds = (b"\x12", b"\x12\xa5", b"\x12\xa6", b"\x13", b"")
    assert [tree.count_below(root, bound, LAYOUT) for bound in bounds] == [0, 1, 2, 2, 0]
