"""Digests: known answers, and that no two different inputs hash the same bytes."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from trailboss.crypto.digest import domain_digest, keccak256, merkle_root, sha256


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
