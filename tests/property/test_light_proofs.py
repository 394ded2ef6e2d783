"""Forged light proofs: with any part flipped, cut, dropped or exchanged they say nothing, or nothing that is not so."""

import json
import random
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.integration.helpers import deploy_puppet, perform, schedule, script, step
from tests.model.committee import CHAIN_ID, Committee
from tests.model.states import State, is_true, make_state
from trailboss.chain.proofs import AccountSubject, TimersSubject, TimerSubject
from trailboss.crypto.digest import merkle_root
from trailboss.light.endings import EndingProof, prove_ending
from trailboss.light.engine_records import ABSENT, SignedHeader
from trailboss.light.engine_values import Number, Octets
from trailboss.light.proof import LightProof
from trailboss.model.blocks import header_hash
from trailboss.primitives.errors import ProofError
from trailboss.primitives.octets import ZERO_ADDRESS
from trailboss.state.keys import KEY_WIDTHS
from trailboss.state.proofs.statements import Statement
from trailboss.testing import LocalChain

SEEDS = st.integers(0, 2**32)
POWERS = (10, 30, 20, 20, 20)
COMMITTEE = Committee(POWERS)
FAR = 500


class World(NamedTuple):
    """One chain: honest proofs of it, and what is so."""

    proofs: tuple[LightProof, ...]
    states: dict[bytes, State]  # by state root
    ends: frozenset[str]  # what is true of ends


def honest() -> tuple[LightProof, ...]:
    """Return proofs of one chain: of four heights, of state and of ends, with missing votes and in a later round."""
    return world().proofs


@cache
def world() -> World:
    """Build the chain, once."""
    with LocalChain() as chain:
        actor = deploy_puppet(chain)
        live, cancelled = schedule(actor, FAR), schedule(actor, FAR)
        ended = [schedule(actor, chain.height + 4), schedule(actor, chain.height + 3, script(step("raise", "no")))]
        perform(actor, step("cancel_timer", cancelled))
        chain.mine(6)
        proofs: list[LightProof] = []
        states = {bytes(chain.state_root): state_of(chain)}
        for subject in (TimerSubject(FAR, live), TimerSubject(FAR, cancelled), TimersSubject(0, 2 * FAR)):
            ours = chain.block().header
            proofs.append(LightProof(COMMITTEE.sign(ours, round_number=2), ours, chain.prove(subject)))
            chain.transfer(chain.accounts[1], 1, sender=chain.accounts[0])
            states[bytes(chain.state_root)] = state_of(chain)
        ours = chain.block().header
        proofs.append(LightProof(COMMITTEE.sign(ours, absent=(1,)), ours, chain.prove(AccountSubject(ZERO_ADDRESS))))
        for timer_id in (*ended, cancelled):
            for block in map(chain.block, range(chain.height)):
                shown = prove_ending(timer_id, block.receipts, block.events)
                if shown is not None:
                    proofs.append(LightProof(COMMITTEE.sign(block.header, against=(4,)), block.header, shown))
    ends = (str(each.verify(COMMITTEE.validators, CHAIN_ID)) for each in proofs if isinstance(each.shown, EndingProof))
    return World(tuple(proofs), states, frozenset(ends))


def state_of(chain: LocalChain) -> State:
    """Return a copy of the present state."""
    store = chain.chain.store
    return make_state(dict(entry for namespace in KEY_WIDTHS for entry in store.iterate(namespace)))


def says(document: object) -> str | None:
    """Return what a document proves, or None if it is refused.

    What it proves must be so; it fails the test if it is not, and if anything but a `ProofError` comes out.
    """
    try:
        found = LightProof.from_json(document).verify(COMMITTEE.validators, CHAIN_ID)
    except ProofError:
        return None
    if isinstance(found.proven, Statement):
        assert is_true(found.proven, world().states[found.header.state_root]), f"FORGED: {found}"
    else:
        assert str(found) in world().ends, f"FORGED: {found}"
    return str(found)


def check_refused(forged: object, proof: LightProof) -> None:
    """Expect the refusal of a document that is not that of a proof.

    One that only asks something else of the same tree can hold: an honest proof shows more than one absence.
    """
    if forged != copied(proof) and says(forged) is not None:
        found = LightProof.from_json(forged)
        shown = replace(found.shown, subject=proof.shown.subject)
        assert replace(found, shown=shown) == proof


def copied(proof: LightProof) -> dict:
    return json.loads(json.dumps(proof.to_json()))


def places(document) -> Iterator[tuple]:
    """Yield container and key of every member and element, at every depth."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        yield document, key
        if isinstance(value, dict | list):
            yield from places(value)


def spoil(rng: random.Random, container, key) -> None:
    """Change, cut, drop, double or blank one part."""
    value = container[key]
    kind = rng.randrange(4)
    if kind == 0 and isinstance(container, list):
        container.insert(rng.randrange(len(container) + 1), value)
    elif kind == 1:
        del container[key]
    elif isinstance(value, str) and value:
        at = rng.randrange(len(value))
        swapped = rng.choice("0123456789abcdefABCDEF+/=Zx")
        container[key] = rng.choice((value[:at], value[at + 1 :], value[:at] + swapped + value[at + 1 :], value + "00"))
    elif isinstance(value, int):
        container[key] = rng.choice((value + 1, value - 1, -value, value ^ 1 << rng.randrange(70), str(value), True))
    elif isinstance(value, list) and len(value) > 1:
        container[key] = rng.choice((value[::-1], value[1:], value[:-1], []))
    else:
        container[key] = rng.choice((None, "", "0x", "0xff", "AA==", 0, [], {}))


def test_honest_proofs_hold() -> None:
    """What the forgeries below are made of is true, and of every kind."""
    said = [says(copied(proof)) for proof in honest()]
    assert None not in said
    assert len(set(said)) == len(said) == 7
    assert sum("fired" in each for each in said) == 2


@given(seed=SEEDS)
def test_proof_is_refused_when_any_part_is_changed(seed) -> None:
    """Signatures, powers, order, headers, receipts, nodes, values: nothing in a file is there without effect."""
    rng = random.Random(seed)
    for proof in honest():
        document = copied(proof)
        for _ in range(10):
            forged = json.loads(json.dumps(document))
            spoil(rng, *rng.choice(list(places(forged))))
            check_refused(forged, proof)


@given(seed=SEEDS)
def test_text_of_a_proof_is_refused_when_it_is_cut_or_has_another_byte(seed) -> None:
    """Whatever comes out of the file as JSON is refused, or is the same."""
    rng = random.Random(seed)
    proof = rng.choice(honest())
    text = json.dumps(proof.to_json())
    for _ in range(20):
        at = rng.randrange(len(text))
        cut = text[:at] + rng.choice(("", chr(rng.randrange(32, 127)), text[at:][1:], text[at:] + "}"))
        forged = cut if rng.random() < 0.5 else text[:at] + chr(rng.randrange(32, 127)) + text[at + 1 :]
        try:
            document = json.loads(forged)
        except ValueError:
            continue
        check_refused(document, proof)


@given(seed=SEEDS)
def test_parts_of_other_proofs_say_nothing_false(seed) -> None:
    """Parts of honest proofs of other heights, subjects and rounds, put together, are refused or say what is so."""
    rng = random.Random(seed)
    for _ in range(10):
        proof, other = copied(rng.choice(honest())), copied(rng.choice(honest()))
        for _ in range(rng.randint(1, 3)):
            container, key = rng.choice(list(places(proof)))
            sources = [(there, at) for there, at in places(other) if at == key]
            if sources:
                there, at = rng.choice(sources)
                container[key] = json.loads(json.dumps(there[at]))
        says(proof)


@given(seed=SEEDS)
def test_proof_is_refused_when_two_thirds_or_fewer_have_signed(seed) -> None:
    """Whichever validators are missing or against, the power alone decides."""
    rng = random.Random(seed)
    proof = rng.choice(honest())
    absent = {place for place in range(len(POWERS)) if rng.random() < 0.3}
    against = {place for place in range(len(POWERS)) if rng.random() < 0.2}
    ordered = [each.power for each in COMMITTEE.ordered]
    power = sum(each for place, each in enumerate(ordered) if place not in absent | against)
    signed = COMMITTEE.sign(proof.header, absent=absent, against=against)
    holds = says(copied(replace(proof, signed=signed))) is not None
    assert holds == (3 * power > 2 * sum(POWERS))


def forged_state(rng: random.Random, proof: LightProof) -> LightProof:
    """Change our header, and the engine's header and hash with it: only the signatures are still of the old one."""
    field = rng.choice(("state_root", "receipts_root", "parent", "transactions_root"))
    ours = replace(proof.header, **{field: rng.randbytes(32)})
    return over(proof, ours)


def forged_receipt(rng: random.Random, proof: LightProof) -> LightProof:
    """Say that a timer fired in a block whose receipts root is made for it."""
    shown = next(each.shown for each in honest() if isinstance(each.shown, EndingProof))
    ours = replace(proof.header, receipts_root=merkle_root([shown.leaf]))
    return replace(over(proof, ours), shown=replace(shown, path=()))


def over(proof: LightProof, ours) -> LightProof:
    header = replace(proof.signed.header, app_hash=Octets(header_hash(ours)))
    block_id = replace(proof.signed.commit.block_id, hash=Octets(header.digest()))
    return replace(proof, header=ours, signed=SignedHeader(header, replace(proof.signed.commit, block_id=block_id)))


def forged_commit(rng: random.Random, proof: LightProof) -> LightProof:
    """Let strangers sign for the validators, at their places and under their names."""
    strangers = Committee(POWERS, seed="stranger")
    commit, votes = proof.signed.commit, []
    for vote, stranger in zip(commit.signatures, strangers.ordered, strict=True):
        votes.append(vote if vote.block_id_flag == ABSENT else strangers.signed(commit, vote, stranger))
    return replace(proof, signed=replace(proof.signed, commit=replace(commit, signatures=tuple(votes))))


def forged_validators(rng: random.Random, proof: LightProof) -> LightProof:
    """State and let sign another set of validators: all strangers, or the same with other powers."""
    other = rng.choice((Committee(POWERS, seed="stranger"), Committee(POWERS[::-1]), Committee(POWERS[:4])))
    return replace(proof, signed=other.sign(proof.header))


def other_chain(rng: random.Random, proof: LightProof) -> LightProof:
    """Take what the same validators have signed on another chain."""
    return replace(proof, signed=Committee(POWERS, chain_id="trailboss-8-0123456789ab").sign(proof.header))


def other_height(rng: random.Random, proof: LightProof) -> LightProof:
    """Let validators state the same app hash at another height."""
    header = COMMITTEE.header(proof.header)
    later = replace(header, height=Number(header.height + rng.choice((-1, 1, 1_000))))
    return replace(proof, signed=COMMITTEE.commit(later))


def other_round(rng: random.Random, proof: LightProof) -> LightProof:
    """Claim that the votes are of another round."""
    commit = proof.signed.commit
    return replace(proof, signed=replace(proof.signed, commit=replace(commit, round=commit.round + rng.choice((1, 7)))))


def exchanged_votes(rng: random.Random, proof: LightProof) -> LightProof:
    """Exchange two votes, their addresses or their signatures alone."""
    votes = list(proof.signed.commit.signatures)
    seen = [place for place, vote in enumerate(votes) if vote.block_id_flag != ABSENT]
    one, two = rng.sample(seen, 2)
    names = rng.choice((("signature",), ("validator_address",), ("signature", "validator_address", "timestamp")))
    first, second = votes[one], votes[two]
    votes[one] = replace(first, **{name: getattr(second, name) for name in names})
    votes[two] = replace(second, **{name: getattr(first, name) for name in names})
    return replace(proof, signed=replace(proof.signed, commit=replace(proof.signed.commit, signatures=tuple(votes))))


FORGERIES = (
    forged_state,
    forged_receipt,
    forged_commit,
    forged_validators,
    other_chain,
    other_height,
    other_round,
    exchanged_votes,
)


@pytest.mark.parametrize("forge", FORGERIES)
@given(seed=SEEDS)
def test_forgery_with_every_hash_in_place_is_refused(forge, seed) -> None:
    """All hashes are computed again; the signatures, the validators, the chain or the height are still wrong."""
    rng = random.Random(seed)
    for proof in honest():
        assert says(copied(forge(rng, proof))) is None


@given(seed=SEEDS)
def test_receipt_is_refused_under_another_blocks_root(seed) -> None:
    """The path of one leaf does not prove another, nor a leaf's inside."""
    rng = random.Random(seed)
    for proof in honest():
        if isinstance(proof.shown, EndingProof):
            leaf, path = proof.shown.leaf, proof.shown.path
            for forged in (leaf[1:], leaf + b"\0", rng.randbytes(len(leaf)), *path):
                assert says(copied(replace(proof, shown=replace(proof.shown, leaf=forged)))) is None
