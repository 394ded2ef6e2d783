"""Proofs say exactly what a plain dict holds, and both verifiers hear the same."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model import slow_verifier
from tests.model.states import (
    SIZES,
    is_true,
    make_state,
    random_address,
    random_height,
    random_subject,
    random_values,
    related_values,
    timer_record,
)
from trailboss.primitives.errors import ProofError
from trailboss.primitives.units import U64_MAX
from trailboss.state.proofs.proof import Proof
from trailboss.state.proofs.subjects import AccountSubject, SlotSubject, StorageSubject, TimersSubject, TimerSubject

SEEDS = st.integers(0, 2**32)
SIZE = st.sampled_from((None, *SIZES))


def check(state, subject) -> None:
    """Prove a subject, send the proof around, and compare what both verifiers hear with what the state holds."""
    octets = state.prove(subject).to_bytes()
    proof = Proof.from_bytes(octets)
    statement = proof.verify(state.root)
    assert (statement.subject, statement.state_root) == (subject, state.root)
    assert is_true(statement, state)
    assert statement.is_present == bool(state.holds(subject))
    assert sorted(slow_verifier.verify(octets, state.root).values()) == sorted(state.holds(subject))
    assert Proof.from_json(json.loads(json.dumps(proof.to_json()))).to_bytes() == octets


@pytest.mark.spec("Q-09", "F-04")
@given(seed=SEEDS, size=SIZE)
def test_proof_says_what_the_state_holds_when_subject_is_random(seed, size) -> None:
    """Accounts, slots, timers and ranges, there and not there, inside and outside of compressed prefixes."""
    rng = random.Random(seed)
    state = make_state(random_values(rng, size))
    for _ in range(8):
        check(state, random_subject(rng, state.values))


@pytest.mark.spec("Q-09")
@given(seed=SEEDS, size=SIZE)
def test_range_proof_is_complete_when_bounds_are_at_the_edge(seed, size) -> None:
    """All heights, one height at either end, and the bounds right at, below and above a crowded height."""
    rng = random.Random(seed)
    values = random_values(rng, size)
    crowded = random_height(rng)
    for sequence in range(rng.choice((0, 1, 33, 100))):
        timer_id = rng.randbytes(32)
        values[b"t" + crowded.to_bytes(8, "big") + timer_id] = timer_record(crowded, timer_id, sequence)
    state = make_state(values)
    below, above = max(crowded - 1, 0), min(crowded + 1, U64_MAX)
    bounds = [
        (0, U64_MAX),
        (0, 0),
        (U64_MAX, U64_MAX),
        (crowded, crowded),
        (below, above),
        (0, below),
        (above, U64_MAX),
    ]
    for first, last in bounds:
        check(state, TimersSubject(first, last))


@given(seed=SEEDS)
def test_proof_of_absence_holds_when_key_leaves_a_compressed_prefix_anywhere(seed) -> None:
    """All keys share a long prefix; what is sought leaves it at each nibble in turn, upwards and downwards."""
    rng = random.Random(seed)
    beginning = rng.randbytes(18)
    state = make_state({b"a" + beginning + rng.randbytes(2): b"" for _ in range(rng.choice((1, 40)))})
    for position in range(40):
        address = bytearray(beginning + rng.randbytes(2))
        address[position // 2] ^= rng.randrange(1, 16) << (0 if position % 2 else 4)
        if b"a" + address not in state.values:
            check(state, AccountSubject(bytes(address)))


@given(seed=SEEDS)
def test_proof_is_refused_when_another_state_differs_in_the_subject(seed) -> None:
    """Under the root of the next block the old proof proves nothing, though little has changed."""
    rng = random.Random(seed)
    values = random_values(rng)
    old, new = make_state(values), make_state(related_values(rng, values))
    for subject in [random_subject(rng, values) for _ in range(4)]:
        proof = old.prove(subject)
        if old.root != new.root:
            with pytest.raises(ProofError, match="the proof leads to the state root"):
                proof.verify(new.root)


@given(octets=st.binary(max_size=300), root=st.binary(min_size=32, max_size=32))
def test_bytes_are_refused_with_a_reason_when_they_are_anything(octets, root) -> None:
    """Whatever the bytes, nothing but a refusal comes out."""
    with pytest.raises(ProofError):
        Proof.from_bytes(octets).verify(root)


@given(seed=SEEDS)
def test_every_subject_has_one_proof_when_the_state_is_the_same(seed) -> None:
    """A proof does not depend on the history of the state."""
    rng = random.Random(seed)
    values = random_values(rng)
    order = list(values.items())
    rng.shuffle(order)
    address = random_address(rng)
    for subject in (StorageSubject(address), SlotSubject(address, b"x"), TimerSubject(7, bytes(32))):
        assert make_state(values).prove(subject) == make_state(dict(order)).prove(subject)
