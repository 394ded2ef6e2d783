"""Digests: known answers, and that no two different inputs hash the same bytes."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.crypto.digest import domain_digest, keccak256, merkle_path, merkle_root, root_of_path, sha256
from trailboss.primitives.errors import Rejection


def leaf(octets: bytes) -> bytes:
    """Hash a leaf as the tree must."""
    return hashlib.sha256(b"\x00" + octets).digest()


def node(left: bytes, right: bytes) -> bytes:
    """Hash an inner node as the tree must."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def test_digests_give_known_answers_when_input_is_empty() -> None:
    """The published digests of the empty string."""
    assert keccak256(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert sha256(b"").hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_domain_digest_hashes_length_prefixed_parts() -> None:
    """The bytes hashed are each item after its length in eight bytes."""
    framed = bytes(7) + b"\x01d" + bytes(7) + b"\x02ab" + bytes(8)
    assert domain_digest(b"d", b"ab", b"") == hashlib.sha256(framed).digest()


@given(st.lists(st.binary(max_size=3), max_size=4), st.lists(st.binary(max_size=3), max_size=4))
def test_domain_digest_differs_when_parts_differ(one: list[bytes], other: list[bytes]) -> None:
    """Moving bytes across a border between parts, or into the domain, changes the digest."""
    assert (domain_digest(b"x", *one) == domain_digest(b"x", *other)) == (one == other)
    assert domain_digest(b"x", *one) != domain_digest(b"", b"x", *one)


def test_merkle_root_is_zero_when_there_are_no_leaves() -> None:
    """An empty list has 32 zero bytes as its root."""
    assert merkle_root([]) == bytes(32)


def test_merkle_root_promotes_the_last_node_when_a_level_is_odd() -> None:
    """Five leaves: the fifth rises twice unchanged."""
    a, b, c, d, e = (leaf(bytes([i])) for i in range(5))
    assert merkle_root([b"\x00"]) == a
    assert merkle_root([b"\x00", b"\x01"]) == node(a, b)
    assert merkle_root([bytes([i]) for i in range(5)]) == node(node(node(a, b), node(c, d)), e)


@given(st.lists(st.binary(max_size=2), max_size=6), st.lists(st.binary(max_size=2), max_size=6))
def test_merkle_root_differs_when_leaves_differ(one: list[bytes], other: list[bytes]) -> None:
    """Order, count and content of the leaves are all in the root; a repeated last leaf shows."""
    assert (merkle_root(one) == merkle_root(other)) == (one == other)
    if one:
        assert merkle_root([*one, one[-1]]) != merkle_root(one)


def test_merkle_root_of_a_leaf_differs_from_the_node_it_imitates() -> None:
    """A leaf made of two child hashes is not their parent."""
    a, b = leaf(b"a"), leaf(b"b")
    assert merkle_root([a + b]) != merkle_root([b"a", b"b"])


@given(st.lists(st.binary(max_size=3), min_size=1, max_size=40))
def test_path_leads_every_leaf_to_the_root_and_nothing_else(leaves: list[bytes]) -> None:
    """Each leaf has a path of its own, as long as the tree is high at most, and no other content passes for it."""
    root = merkle_root(leaves)
    for index, each in enumerate(leaves):
        path = merkle_path(leaves, index)
        assert root_of_path(each, path) == root
        assert len(path) <= (len(leaves) - 1).bit_length()
        assert root_of_path(each + b"x", path) != root
        if path:
            assert root_of_path(path[0][1:], path[1:]) != root
            assert root_of_path(each, path[:-1]) != root


@pytest.mark.parametrize("path", [(b"",), (bytes(32),), (b"\x02" + bytes(32),), (bytes(34),)])
def test_path_is_refused_when_a_step_is_none(path: tuple[bytes, ...]) -> None:
    """A step has a side and a digest."""
    with pytest.raises(Rejection, match="a step of a path is a side, 0 or 1, and 32 bytes"):
        root_of_path(b"leaf", path)
