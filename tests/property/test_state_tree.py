"""The laws of the tree, held against a slow model written from the definition of its shape alone."""

import random
from hashlib import sha256, sha512

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.state import tree

WIDTHS = (20, 32, 40, 52)
CAPACITIES = (1, 4, 32)


def model_digest(entries: dict[bytes, bytes], capacity: int) -> bytes:
    """Digest a set of entries by the definition: recursively, over hexadecimal text, from nothing."""
    if not entries:
        return bytes(32)
    if len(entries) <= capacity:
        return sha256(b"\x01" + b"".join(key + entries[key] for key in sorted(entries))).digest()
    prefix = ""
    while len(digits := {key.hex()[len(prefix)] for key in entries}) == 1:
        prefix += digits.pop()
    children = b""
    for digit in "0123456789abcdef":
        below = {key: value for key, value in entries.items() if key.hex().startswith(prefix + digit)}
        children += model_digest(below, capacity)
    packed = bytes.fromhex(prefix + "0" * (len(prefix) % 2))
    return sha256(b"\x02" + bytes([len(prefix)]) + len(entries).to_bytes(8, "big") + packed + children).digest()


def apply(root: tree.TreeNode | None, changes: dict[bytes, bytes | None], layout: tree.Layout) -> tree.TreeNode | None:
    """Apply changes that are given as value digest by key, None to delete."""
    return tree.apply(root, [key + (value_digest or b"") for key, value_digest in changes.items()], layout)


def key_of(kind: int, number: int, width: int) -> bytes:
    """Return one of many keys: scattered, under few heights, or differing only in their last nibbles."""
    scattered = sha512(number.to_bytes(4, "big")).digest()[:width]
    if kind == 0:
        return scattered
    if kind == 1:
        return (number % 7 * 100).to_bytes(8, "big") + scattered[8:]
    return bytes(width - 2) + number.to_bytes(2, "big")


KEYS = st.tuples(st.integers(0, 2), st.integers(0, 400))
CHANGES = st.dictionaries(KEYS, st.none() | st.integers(0, 3), min_size=1, max_size=80)
BATCHES = st.lists(st.one_of(CHANGES, CHANGES, CHANGES, st.just("wipe out")), min_size=2, max_size=8)


def value_digest(number: int) -> bytes:
    return sha256(bytes([number])).digest()


@given(width=st.sampled_from(WIDTHS), capacity=st.sampled_from(CAPACITIES), batches=BATCHES)
def test_tree_equals_the_model_when_batches_are_applied(width, capacity, batches) -> None:
    """After every batch, digest, count and entries are those of the contents, however they came about."""
    layout = tree.Layout(width, capacity)
    root, contents = None, {}
    for batch in batches:
        if batch == "wipe out":
            changes = dict.fromkeys(contents)
        else:
            changes = {
                key_of(*key, width): None if value is None else value_digest(value) for key, value in batch.items()
            }
        before, digest_before = root, tree.digest(root)
        root = apply(root, changes, layout)
        contents = {key: value for key, value in (contents | changes).items() if value is not None}
        assert tree.digest(root) == model_digest(contents, capacity)
        assert tree.count(root) == len(contents)
        assert list(tree.iterate(root, layout)) == sorted(contents.items())
        assert tree.digest(before) == digest_before


@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("width", WIDTHS)
def test_tree_has_one_digest_when_history_differs(width, capacity) -> None:
    """Single inserts in any order, with keys that come and go between, end where one batch ends."""
    rng = random.Random(width * capacity)
    layout = tree.Layout(width, capacity)
    contents = {key_of(rng.randrange(3), rng.randrange(400), width): rng.randbytes(32) for _ in range(150)}
    passing = {rng.randbytes(width): rng.randbytes(32) for _ in range(50)}
    bulk = apply(None, contents, layout)
    singles = list((contents | passing).items())
    for _ in range(3):
        rng.shuffle(singles)
        root = None
        for key, value in singles:
            root = apply(root, {key: value}, layout)
        for key in rng.sample(list(passing), len(passing)):
            root = apply(root, {key: None}, layout)
        assert tree.digest(root) == tree.digest(bulk) == model_digest(contents, capacity)


@given(
    keys=st.sets(KEYS, max_size=120),
    bounds=st.tuples(KEYS, KEYS),
    cut=st.integers(0, 20),
    capacity=st.sampled_from(CAPACITIES),
)
def test_tree_answers_as_a_sorted_list_when_it_is_asked(keys, bounds, cut, capacity) -> None:
    """Ranges and counts agree with a sorted list, also for bounds that are only the beginning of a key."""
    width = 20
    layout = tree.Layout(width, capacity)
    contents = {key_of(*key, width): value_digest(key[1] % 256) for key in keys}
    root = apply(None, contents, layout)
    lower, upper = key_of(*bounds[0], width)[:cut], key_of(*bounds[1], width)[: width - cut]
    expected = sorted((key, value) for key, value in contents.items() if lower <= key < upper)
    assert list(tree.iterate(root, layout, lower, upper)) == expected
    assert list(tree.iterate(root, layout, lower)) == sorted((k, v) for k, v in contents.items() if k >= lower)
    assert tree.count_below(root, upper, layout) == sum(key < upper for key in contents)
