"""Many signatures at once: what is refused, with which words and in which order, is what one by one finds."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from trailboss.chain import Chain, signature_checks
from trailboss.chain.development import account_name, development_account, development_genesis
from trailboss.chain.signature_checks import SHARED_MIN, are_signed, refusals_of
from trailboss.codec.wire import encode_transaction
from trailboss.crypto import signatures
from trailboss.mempool import AdmissionOutcome, Mempool
from trailboss.model.transactions import (
    UNSIGNED,
    Transaction,
    Transfer,
    check_signature,
    sign_transaction,
    signing_hash,
)
from trailboss.primitives.errors import Rejection

ALICE, BOB = (development_account(account_name(number)) for number in range(2))
COUNT = SHARED_MIN + 4
SPOILS = {
    "changed": lambda signed: replace(signed, cycles_limit=signed.cycles_limit + 1),
    "unsigned": lambda signed: replace(signed, signature=UNSIGNED),
    "no v": lambda signed: replace(signed, signature=signed.signature[:64] + b"\x02"),
    "high s": lambda signed: replace(signed, signature=signed.signature[:32] + b"\xf0" * 32 + b"\x00"),
    "another chain": lambda signed: sign_transaction(replace(signed, chain_id=2), ALICE.private_key),
    "another signer": lambda signed: with_signer(signed, BOB.private_key),
    "a false signer": lambda signed: with_signer(signed, ALICE.private_key),
    "no number": lambda signed: replace(signed, cycles_limit=2**64),
    "another nonce": lambda signed: sign_transaction(replace(signed, nonce=signed.nonce + 500), ALICE.private_key),
}


def with_signer(signed: Transaction, private_key: bytes) -> Transaction:
    """Return a transaction with BOB as an additional signer, signed by a key that may not be BOB's."""
    both = replace(signed, additional_signers=((BOB.address, UNSIGNED),))
    digest = signing_hash(both)
    return replace(
        both,
        signature=signatures.sign(digest, ALICE.private_key),
        additional_signers=((BOB.address, signatures.sign(digest, private_key)),),
    )


def signed(nonce: int) -> Transaction:
    terms = {"cycles_limit": 10_000, "cells_limit": 500, "max_fee_per_cycle": 20_000, "max_fee_per_cell": 20_000}
    return sign_transaction(
        Transaction(chain_id=1, nonce=nonce, instruction=Transfer(BOB.address, 1), **terms), ALICE.private_key
    )


SIGNED = [signed(nonce) for nonce in range(COUNT)]
spoiled = st.dictionaries(st.integers(0, COUNT - 1), st.sampled_from(sorted(SPOILS)), max_size=4).map(
    lambda spoils: [SPOILS[spoils[at]](each) if at in spoils else each for at, each in enumerate(SIGNED)]
)


def words(refusals: Sequence[Rejection | None]) -> list[tuple[int, str, object] | None]:
    return [refusal and (refusal.reason.code, refusal.what, refusal.context) for refusal in refusals]


def one_by_one(transactions: Sequence[Transaction]) -> list[Rejection | None]:
    found: list[Rejection | None] = []
    for transaction in transactions:
        try:
            check_signature(transaction)
            found.append(None)
        except Rejection as rejection:
            found.append(rejection)
    return found


@pytest.mark.parametrize("processors", [1, 2, 3, 64])
@settings(max_examples=40)
@given(transactions=spoiled)
def test_refusals_are_those_of_a_plain_loop(processors: int, transactions: list[Transaction]) -> None:
    """Whichever signatures are bad, and however many threads look at them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signature_checks, "usable_processors", lambda: processors)
        assert words(refusals_of(check_signature, transactions)) == words(one_by_one(transactions))
        plain = [each for each in transactions if each.signature != UNSIGNED]
        is_plain = not any(each.additional_signers for each in plain) and not any(one_by_one(plain))
        assert are_signed(transactions) == (processors > 1 and is_plain)


@settings(max_examples=40)
@given(transactions=spoiled)
def test_block_is_the_same_with_one_processor_and_several(transactions: list[Transaction]) -> None:
    """Its hash, receipts, and what it refuses with which words, in order."""
    blocks = []
    for processors in (1, 2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(signature_checks, "usable_processors", lambda number=processors: number)
            applied = Chain(development_genesis()).build(iter(transactions))
        refused = [(transaction, words([refusal])) for transaction, refusal in applied.refused]
        blocks.append((applied.block, refused))
    assert blocks[0] == blocks[1]


@settings(max_examples=40)
@given(transactions=spoiled, doubled=st.integers(0, COUNT - 1))
def test_submission_has_the_verdicts_of_one_by_one(transactions: list[Transaction], doubled: int) -> None:
    """Those that repeat one before them included."""
    # What does not fit the wire has no bytes to submit.
    submission = [each for each in (*transactions, transactions[doubled]) if each.cycles_limit < 2**64]
    view = Chain(development_genesis()).publish()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signature_checks, "usable_processors", lambda: 2)
        ahead, plain = Mempool(), Mempool()
        found = ahead.find_signed(view, submission)
    assert {place for place in found if one_by_one([submission[place]]) != [None]} == set()
    verdicts = [
        shown(ahead.admit(view, encode_transaction(each), each, is_signed=place not in found))
        for place, each in enumerate(submission)
    ]
    assert verdicts == [shown(plain.admit(view, encode_transaction(each), each)) for each in submission]
    assert [each.hash for each in ahead.pooled()] == [each.hash for each in plain.pooled()]


def shown(outcome: AdmissionOutcome) -> tuple[object, ...]:
    return outcome.hash, outcome.status, words([outcome.rejection]), outcome.endings


def test_signatures_of_what_cannot_come_in_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of hopeless transactions does not delay the signatures of others."""
    monkeypatch.setattr(signature_checks, "usable_processors", lambda: 2)
    view = Chain(development_genesis()).publish()
    hopeless = [SPOILS["another chain"](each) for each in SIGNED]
    looked_at: list[bytes] = []

    def recover_key(digest: bytes, signature: bytes) -> object:
        looked_at.append(signature)
        return signatures.recover_key(digest, signature)

    monkeypatch.setattr(signature_checks, "recover_key", recover_key)
    assert Mempool().find_signed(view, [*hopeless, *SIGNED]) == set(range(COUNT, 2 * COUNT))
    assert sorted(looked_at) == sorted(each.signature for each in SIGNED)


def test_few_are_not_looked_at_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a thread costs more than it gains."""
    monkeypatch.setattr(signature_checks, "usable_processors", lambda: 2)
    few = SIGNED[: SHARED_MIN - 1]
    assert not are_signed(few)
    assert not Mempool().find_signed(Chain(development_genesis()).publish(), few)
    assert refusals_of(check_signature, few) == [None] * len(few)


@pytest.mark.parametrize("place", [0, COUNT // 2, COUNT - 1])
def test_error_that_is_no_refusal_comes_through(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever thread meets it: it must not be lost."""
    monkeypatch.setattr(signature_checks, "usable_processors", lambda: 2)

    def recover_key(digest: bytes, signature: bytes) -> object:
        if signature == SIGNED[place].signature:
            raise ZeroDivisionError
        return signatures.recover_key(digest, signature)

    monkeypatch.setattr(signature_checks, "recover_key", recover_key)
    with pytest.raises(ZeroDivisionError):
        refusals_of(check_signature, SIGNED)
