"""Parts of a state: together they are the state, each is right by itself, and nothing else passes for one."""

from collections.abc import Iterator, Mapping
from hashlib import sha256, sha512

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trailboss.primitives.errors import ProofError
from trailboss.state import parts
from trailboss.state.commitment import build_roots, state_root
from trailboss.state.keys import KEY_WIDTHS

SIZES = (1, 64, 400, 3_000, 1 << 20)
NAMESPACES = tuple(KEY_WIDTHS)


def full_key(namespace: bytes, kind: int, number: int) -> bytes:
    """Return one of many keys: scattered, under few heights, or differing only in their last nibbles."""
    width = KEY_WIDTHS[namespace]
    scattered = sha512(number.to_bytes(4, "big")).digest()[:width]
    if kind == 0:
        return namespace + scattered
    if kind == 1:
        return namespace + (number % 5 * 100).to_bytes(8, "big") + scattered[8:]
    return namespace + bytes(width - 2) + number.to_bytes(2, "big")


KEYS = st.builds(full_key, st.sampled_from(NAMESPACES), st.integers(0, 2), st.integers(0, 300))
STATES = st.dictionaries(KEYS, st.binary(max_size=80), max_size=200)


@pytest.fixture(scope="module", autouse=True)
def _any_size() -> Iterator[None]:
    """Put the size of a part back."""
    size = parts.PART_OCTETS
    yield
    parts.PART_OCTETS = size


def cut(state: Mapping[bytes, bytes], size: int) -> tuple[bytes, parts.Top, list[bytes]]:
    """Return root, top, and the bytes of every part of a state, cut into parts of a size."""
    parts.PART_OCTETS = size
    roots = build_roots(sorted(state.items()))
    top, stored = parts.cut_state(roots, state.get)
    encoded = [part.encode(state.get) for part in stored]
    assert [part.octets for part in stored] == list(map(len, encoded))
    return state_root(roots), top, encoded


@given(STATES, st.sampled_from(SIZES), st.data())
def test_parts_are_the_whole_state_when_they_are_checked_in_any_runs(
    state: dict[bytes, bytes], size: int, data: st.DataObject
) -> None:
    """Every run of parts gives exactly its entries; a part with several entries is no larger than a part may be."""
    root, top, encoded = cut(state, size)
    found = parts.check_top(top, root)
    assert len(found) == len(encoded)
    entries: list[tuple[bytes, bytes]] = []
    at = 0
    while at < len(found):
        following = data.draw(st.integers(at + 1, len(found)))
        octets = b"".join(encoded[at:following])
        entries += parts.check_parts(found[at:following], octets)
        at = following
    assert entries == sorted(state.items())
    for part, octets in zip(found, encoded, strict=True):
        assert len(octets) <= size or len(parts.check_parts([part], octets)) == 1


@given(STATES, st.permutations(range(8)), st.sampled_from(SIZES))
def test_parts_are_the_same_bytes_when_the_state_came_about_otherwise(
    state: dict[bytes, bytes], order: list[int], size: int
) -> None:
    """They are a function of the state alone, not of its history."""
    items = list(state.items())
    shuffled = dict(item for start in order for item in items[start::8])
    assert cut(shuffled, size) == cut(state, size)


@given(STATES.filter(bool), st.sampled_from(SIZES), st.data())
def test_run_of_parts_is_refused_when_anything_of_it_is_changed(
    state: dict[bytes, bytes], size: int, data: st.DataObject
) -> None:
    """A flipped bit, a byte more or less, an entry left out, twice or in another place, other parts: none passes."""
    root, top, encoded = cut(state, size)
    found = parts.check_top(top, root)
    first = data.draw(st.integers(0, len(found) - 1))
    last = data.draw(st.integers(first + 1, len(found)))
    run, octets = found[first:last], b"".join(encoded[first:last])
    entries = [parts._encoded(*entry) for entry in parts.check_parts(run, octets)]
    at = data.draw(st.integers(0, len(octets) - 1))
    entry = data.draw(st.integers(0, len(entries) - 1))
    rest = [*entries[:entry], *entries[entry + 1 :]]
    wrong = {
        octets[:at] + bytes((octets[at] ^ 1 << data.draw(st.integers(0, 7)),)) + octets[at + 1 :],
        octets[:at],
        octets + octets[:at],
        b"".join(b"".join(each) for each in rest),
        b"".join(b"".join(each) for each in (*entries, entries[entry])),
        b"".join(b"".join(each) for each in (*rest, entries[entry])),
        b"".join(encoded[:first]),
        b"".join(encoded[last:]),
        b"",
    }
    for each in wrong - {octets}:
        with pytest.raises(ProofError):
            parts.check_parts(run, each)


@given(STATES.filter(bool), st.sampled_from(SIZES), st.data())
def test_top_is_refused_when_it_is_not_that_of_the_root(
    state: dict[bytes, bytes], size: int, data: st.DataObject
) -> None:
    """Other digests of namespaces and nodes of no tree are refused; a node left out only makes a larger part of it."""
    root, top, encoded = cut(state, size)
    at = data.draw(st.integers(0, len(top.namespaces) - 1))
    other = sha256(top.namespaces[at]).digest()
    changed = (*top.namespaces[:at], other, *top.namespaces[at + 1 :])
    stranger = data.draw(st.binary(max_size=600))
    for wrong in (
        replace(top, namespaces=changed),
        replace(top, namespaces=top.namespaces[1:]),
        replace(top, namespaces=(*top.namespaces, bytes(32))),
        replace(top, opened=(*top.opened, stranger)),
        replace(top, opened=(*top.opened, *top.opened[:1], stranger)),
    ):
        with pytest.raises(ProofError):
            parts.check_top(wrong, root)
    with pytest.raises(ProofError):
        parts.check_top(top, other)
    if top.opened:
        node = data.draw(st.integers(0, len(top.opened) - 1))
        kept = tuple(octets for number, octets in enumerate(top.opened) if number != node)
        try:
            fewer = parts.check_top(replace(top, opened=kept), root)
        except ProofError:
            return  # What lies below it has no parent any more.
        assert parts.check_parts(fewer, b"".join(encoded)) == sorted(state.items())


@given(STATES.filter(bool), st.binary(max_size=300))
def test_strangers_bytes_are_refused_when_they_are_sent_as_parts(state: dict[bytes, bytes], octets: bytes) -> None:
    """Whatever they are, they are refused by name."""
    root, top, encoded = cut(state, 400)
    found = parts.check_top(top, root)
    for run in (found, found[:1], found[-1:]):
        if octets not in encoded:
            with pytest.raises(ProofError):
                parts.check_parts(run, octets)
