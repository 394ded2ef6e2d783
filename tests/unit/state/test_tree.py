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


def test_apply_returns_the_same_node_when_nothing_changes() -> None:
    """Equal values and deletes of absent keys, inside and outside of a compressed prefix, copy nothing."""
    root = apply(None, {b"\x12\xa0": VALUE, b"\x12\xa5": VALUE}, LAYOUT)
    same = {b"\x12\xa0": VALUE, b"\x12\xa1": None, b"\x12\xb0": None, b"\x00\x00": None, b"\xff\xff": None}
    assert apply(root, same, LAYOUT) is root
    assert apply(root, {}, LAYOUT) is root
