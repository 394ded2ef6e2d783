"""More than two thirds of the power sign, each at its place, and no signature counts for anything else."""

import pytest
from msgspec.structs import replace

from tests.model.committee import CHAIN_ID, Committee
from trailboss.light.commits import Support, verify_signed_header
from trailboss.light.engine_records import FOR_BLOCK
from trailboss.light.engine_values import NO_TIME, Number, Octets, Signature, Time
from trailboss.model.blocks import Header
from trailboss.primitives.errors import ProofError

OURS = Header(1, 7, 41, bytes(32), 0, bytes(20), *[bytes(32)] * 3, bytes(16), bytes(16), 0, 0, 0)
EQUAL = Committee((10, 10, 10, 10))


def refusal(signed, committee=EQUAL, chain_id=CHAIN_ID) -> str:
    with pytest.raises(ProofError) as refused:
        verify_signed_header(signed, committee.validators, chain_id)
    return str(refused.value)


@pytest.mark.parametrize("powers", [(1,), (10, 10, 10, 10), (1, 1, 1), (5, 2, 9, 9, 2**59)])
def test_commit_of_all_is_verified_whatever_their_powers(powers) -> None:
    committee = Committee(powers)
    found = verify_signed_header(committee.sign(OURS), committee.validators[::-1], CHAIN_ID)
    assert found == Support(len(powers), len(powers), sum(powers), sum(powers))


@pytest.mark.parametrize("round_number", [0, 1, 2**31 - 1])
def test_commit_of_a_later_round_is_verified(round_number) -> None:
    verify_signed_header(EQUAL.sign(OURS, round_number=round_number), EQUAL.validators, CHAIN_ID)


@pytest.mark.parametrize(
    ("powers", "absent", "against", "is_enough"),
    [
        ((10, 10, 10, 10), (0,), (), True),
        ((10, 10, 10, 10), (0, 3), (), False),
        ((10, 10, 10, 10), (), (1,), True),
        ((10, 10, 10, 10), (), (1, 2), False),
        ((10, 10, 10, 10), (0,), (1,), False),
        ((1, 1, 1), (2,), (), False),  # two thirds are not more than two thirds
        ((2, 2, 1), (2,), (), True),
        ((100, 1, 1), (1, 2), (), True),
        ((100, 1, 1), (0,), (), False),
    ],
)
def test_power_decides_and_not_the_number_of_votes(powers, absent, against, is_enough) -> None:
    committee = Committee(powers)
    signed = committee.sign(OURS, absent=absent, against=against)
    if is_enough:
        assert verify_signed_header(signed, committee.validators, CHAIN_ID).is_enough
    else:
        assert refusal(signed, committee).startswith(
            "a block needs more than two thirds of the power, and this one has"
        )


def with_vote(place, **changes):
    signed = EQUAL.sign(OURS)
    votes = list(signed.commit.signatures)
    votes[place] = replace(votes[place], **changes)
    return replace(signed, commit=replace(signed.commit, signatures=tuple(votes)))


def test_refusal_names_rule_and_value() -> None:
    signed = EQUAL.sign(OURS)
    other = Committee((10, 10, 10, 10), seed="other")
    votes = signed.commit.signatures
    header, commit = signed.header, signed.commit
    assert refusal(signed, chain_id="trailboss-7-other") == (
        "the signed header is of the chain 'trailboss-7-0123456789ab', not of 'trailboss-7-other'"
    )
    assert refusal(signed, other).startswith("the signed header states the validators 0x")
    assert refusal(signed, Committee((10, 10, 10, 11))).startswith("the signed header states the validators 0x")
    assert refusal(replace(signed, commit=replace(commit, height=Number(43)))) == (
        "the commit is for height 43, the header of height 42"
    )
    later = replace(header, time=Time(header.time + 1))
    assert refusal(replace(signed, header=later)).startswith("the commit is for the block 0x")
    assert refusal(replace(signed, commit=replace(commit, signatures=votes[:3]))) == (
        "the commit has 3 votes, and there are 4 validators"
    )
    assert refusal(replace(signed, commit=replace(commit, signatures=(votes[1], votes[0], *votes[2:])))).startswith(
        "vote 0 is of 0x"
    )
    assert refusal(with_vote(2, signature=Signature(bytes(64)))).startswith("the signature of vote 2 is not that of")
    assert refusal(with_vote(2, signature=Signature(bytes(63)))) == "the signature of vote 2 has 63 bytes, not 64"
    assert refusal(with_vote(2, signature=None)) == "the signature of vote 2 has 0 bytes, not 64"
    assert refusal(with_vote(1, timestamp=Time(0))).startswith("the signature of vote 1 is not that of")


@pytest.mark.parametrize(
    "stated",
    [{"signature": Signature(bytes(64))}, {"validator_address": Octets(bytes(20))}, {"timestamp": Time(0)}],
    ids=str,
)
def test_vote_that_was_not_seen_states_nothing(stated) -> None:
    signed = EQUAL.sign(OURS, absent=(3,))
    votes = signed.commit.signatures
    forged = replace(signed, commit=replace(signed.commit, signatures=(*votes[:3], replace(votes[3], **stated))))
    assert refusal(forged) == "vote 3 was not seen by its flag, and yet states signature, validator or time"


def test_one_signature_counts_once_when_it_stands_at_every_place() -> None:
    """One validator cannot fill the places of the others."""
    signed = EQUAL.sign(OURS, absent=(1, 2, 3))
    forged = replace(signed, commit=replace(signed.commit, signatures=signed.commit.signatures[:1] * 4))
    assert refusal(forged).startswith("vote 1 is of 0x")


def test_vote_for_no_block_does_not_become_one_for_the_block() -> None:
    """The flag is part of what is signed."""
    signed = EQUAL.sign(OURS, against=(0, 1))
    votes = signed.commit.signatures
    turned = replace(votes[0], block_id_flag=FOR_BLOCK)
    forged = replace(signed, commit=replace(signed.commit, signatures=(turned, *votes[1:])))
    assert refusal(forged).startswith("the signature of vote 0 is not that of")


def test_votes_of_another_chain_count_nothing() -> None:
    """The same keys, the same header but for its chain, and signatures from there."""
    elsewhere = Committee((10, 10, 10, 10), chain_id="trailboss-7-ba9876543210")
    signed = EQUAL.sign(OURS)
    foreign = elsewhere.commit(signed.header)
    forged = replace(signed, commit=foreign.commit)
    assert refusal(forged).startswith("the signature of vote 0 is not that of")


def test_absent_time_is_the_engines() -> None:
    assert NO_TIME.text() == "0001-01-01T00:00:00Z"
