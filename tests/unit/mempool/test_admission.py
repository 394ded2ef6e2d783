"""What comes in, and what is refused with which code and words."""

import pytest
from msgspec.structs import replace

from tests.unit.mempool.world import BASEFEE, CELLS, CYCLES, World, name_of, person, small, transfer
from trailboss.chain import Chain
from trailboss.chain.development import account_name, development_account, development_genesis
from trailboss.codec.wire import encode_transaction
from trailboss.crypto.digest import sha256
from trailboss.execution.genesis import Genesis
from trailboss.mempool import AdmissionStatus, verify
from trailboss.model.transactions import Transaction, Transfer, sign_transaction
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Hash32

ALICE = person(0)
COST = 2 * BASEFEE * (CYCLES + CELLS)
HOLDS = 10**15

REFUSED = [
    (transfer(chain_id=7), 1011, "the transaction is for chain 7, this is chain 1"),
    (
        transfer(origin_tx_hash=Hash32(bytes(32))),
        1213,
        f"origin_tx_hash is 0x{'00' * 32}: only the chain makes deferred transactions",
    ),
    (transfer(nonce=65), 1903, f"{ALICE} is at nonce 0, the transaction has 65: more than 64 ahead"),
    (transfer(cycles_limit=9_999), 1005, "cycles_limit is 9999, Transfer uses 10000 before it runs"),
    (transfer(cells_limit=499), 1006, "cells_limit is 499, Transfer uses 500 before it runs"),
    (
        transfer(cycles_limit=20_000_001),
        1012,
        "cycles_limit is 20000001, the block has 20000000 of 20000000 cycles left",
    ),
    (
        transfer(max_fee_per_cell=9_999),
        1008,
        "fee caps are 20000 a cycle and 9999 a cell, the basefees 10000 and 10000",
    ),
    (
        transfer(max_fee_per_cycle=10**12),
        1004,
        f"{ALICE} holds {HOLDS} base units, its limits at its fee caps need {10**16 + 20_000 * CELLS}",
    ),
    (
        transfer(instruction=Transfer(ALICE, HOLDS)),
        1003,
        f"{ALICE} holds {HOLDS} base units, {HOLDS} and fees of up to {COST} are needed",
    ),
]


def told(rejection: Rejection | None) -> tuple[int, str] | None:
    """Return code and words."""
    return None if rejection is None else (rejection.reason.code, rejection.what)


@pytest.mark.parametrize(("transaction", "code", "what"), REFUSED, ids=[str(code) for _, code, _ in REFUSED])
def test_transaction_is_refused_when_a_block_could_not_hold_it(transaction: Transaction, code: int, what: str) -> None:
    """`check` raises what `add` tells; nothing has changed."""
    world = World()
    verdict = world.add(transaction)
    assert (verdict.status, told(verdict.rejection)) == (AdmissionStatus.REFUSED, (code, what))
    assert not verdict.is_waiting
    assert (len(world.mempool), world.mempool.find(verdict.hash), world.mempool.refusal(verdict.hash)) == (
        0,
        None,
        None,
    )
    with pytest.raises(Rejection) as caught:
        world.mempool.check(world.view, transaction)
    assert told(caught.value) == (code, what)


def test_transaction_waits_when_a_block_could_hold_it() -> None:
    """All that is known of it can be found."""
    world = World()
    world.go_on(3)
    transaction = transfer(nonce=64)
    world.mempool.check(world.view, transaction)
    verdict = world.add(transaction)
    assert (verdict.status, verdict.rejection, verdict.endings, verdict.is_waiting) == (
        AdmissionStatus.ACCEPTED,
        None,
        (),
        True,
    )
    [pooled] = world.mempool.of_sender(ALICE)
    assert pooled is world.mempool.find(verdict.hash)
    assert (pooled.transaction, pooled.raw, pooled.hash) == (transaction, encode_transaction(transaction), verdict.hash)
    assert (pooled.cost, pooled.cycles, pooled.cells, pooled.admitted_height) == (COST + 1, CYCLES, CELLS, 3)


def test_transaction_is_refused_when_its_nonce_is_used() -> None:
    """As a block would refuse it."""
    world = World()
    world.add(transfer())
    world.build()
    again = transfer(max_priority_fee_per_cycle=9)
    assert told(world.add(again).rejection) == (1002, f"{ALICE} is at nonce 1, the transaction has 0")


def test_transaction_is_refused_when_it_is_too_long() -> None:
    """Its bytes are counted as they came."""
    world = small(transaction_bytes_max=100)
    transaction = transfer()
    size = len(encode_transaction(transaction))
    assert told(world.add(transaction).rejection) == (1213, f"the transaction has {size} bytes, above 100")


def test_transaction_is_known_when_it_waits_already() -> None:
    """It is told apart from a refusal: there is nothing to mend."""
    world = World()
    first, second = world.add(transfer()), world.add(transfer())
    assert (second.status, second.is_waiting, second.hash) == (AdmissionStatus.KNOWN, True, first.hash)
    assert told(second.rejection) == (1904, f"{first.hash} waits already")


def test_balance_covers_all_that_wait_of_a_sender() -> None:
    """At their fee caps, with what they send; the one that is replaced does not count."""
    world = World()
    world.add(transfer(instruction=Transfer(person(1), HOLDS - 2 * COST)))
    verdict = world.add(transfer(nonce=1, instruction=Transfer(person(1), 1)))
    assert told(verdict.rejection) == (
        1003,
        f"{ALICE} holds {HOLDS} base units, of which its other transactions may need {HOLDS - COST}, 1 and fees of up "
        f"to {COST} are needed",
    )
    verdict = world.add(transfer(nonce=1, cells_limit=2 * CELLS))
    assert told(verdict.rejection) == (
        1004,
        f"{ALICE} holds {HOLDS} base units, of which its other transactions may need {HOLDS - COST}, its limits at its "
        f"fee caps need {COST + 2 * BASEFEE * CELLS}",
    )
    raised = {"max_fee_per_cycle": 3 * BASEFEE, "max_fee_per_cell": 3 * BASEFEE, "max_priority_fee_per_cycle": 2}
    assert world.add(transfer(**raised)).status is AdmissionStatus.REPLACED
    assert world.add(transfer(nonce=1)).status is AdmissionStatus.ACCEPTED


# Replacing


@pytest.mark.parametrize(
    ("changes", "field", "offered", "required"),
    [
        ({"max_priority_fee_per_cycle": 10}, "max_priority_fee_per_cycle", 10, 11),
        ({"max_priority_fee_per_cell": 12}, "max_priority_fee_per_cell", 12, 13),
        ({"max_fee_per_cycle": 21_999}, "max_fee_per_cycle", 21_999, 22_000),
        ({"max_fee_per_cell": 21_999}, "max_fee_per_cell", 21_999, 22_000),
    ],
)
def test_replacement_is_refused_when_an_offer_rises_too_little(
    changes: dict[str, int], field: str, offered: int, required: int
) -> None:
    """Each of the four rises by a tenth, rounded up."""
    world = World()
    first = world.add(transfer(max_priority_fee_per_cycle=10, max_priority_fee_per_cell=11)).hash
    enough = {
        "max_priority_fee_per_cycle": 11,
        "max_priority_fee_per_cell": 13,
        "max_fee_per_cycle": 22_000,
        "max_fee_per_cell": 22_000,
    }
    verdict = world.add(transfer(**(enough | changes)))
    assert told(verdict.rejection) == (
        1902,
        f"{field} is {offered}; to take the place of {first} at nonce 0 it must be {required}",
    )
    assert world.waiting() == [first]


def test_replacement_needs_a_tip_more_when_there_was_none() -> None:
    """A tenth of nothing would let anybody send copies for ever."""
    world = World()
    world.add(transfer(max_priority_fee_per_cycle=0))
    caps = {"max_fee_per_cycle": 22_000, "max_fee_per_cell": 22_000}
    refused = world.add(transfer(max_priority_fee_per_cycle=0, **caps)).rejection
    assert refused is not None
    assert (refused.reason, refused.context["required"]) == (RejectionReason.REPLACEMENT_UNDERPRICED, "1")
    assert world.add(transfer(max_priority_fee_per_cycle=1, **caps)).status is AdmissionStatus.REPLACED


def test_replaced_transaction_is_told_of() -> None:
    """The verdict carries its end, and it is remembered why."""
    world = World()
    first = world.add(transfer()).hash
    better = transfer(max_priority_fee_per_cycle=2, max_fee_per_cycle=22_000, max_fee_per_cell=22_000)
    verdict = world.add(better)
    [ending] = verdict.endings
    assert (verdict.status, ending.hash, ending.end.value) == (AdmissionStatus.REPLACED, first, "replaced")
    what = f"{verdict.hash} took the place of {first} at nonce 0 of {ALICE}"
    assert told(ending.rejection) == told(world.mempool.refusal(first)) == (1906, what)
    assert world.waiting() == [verdict.hash]


def test_refusal_is_forgotten_when_the_transaction_comes_back() -> None:
    """It waits, so it was not refused."""
    world = small(transactions_max=1)
    poor = transfer(1)
    world.add(poor)
    world.add(transfer(2, max_priority_fee_per_cycle=5))
    assert world.mempool.refusal(name_of(poor)) is not None
    world.build()
    assert world.add(poor).status is AdmissionStatus.ACCEPTED
    assert world.mempool.refusal(name_of(poor)) is None


# Signatures


def test_signatures_are_verified_apart() -> None:
    """One answer for each, in order."""
    world = World(chain=Chain(plain_genesis()))
    key = development_account(account_name(0)).private_key
    good = sign_transaction(transfer(), key)
    forged = replace(good, instruction=Transfer(person(3), 10**6))
    answers = verify(world.view, [good, forged, transfer()])
    assert [None if answer is None else answer.reason for answer in answers] == [
        None,
        RejectionReason.INVALID_SIGNATURE,
        RejectionReason.INVALID_SIGNATURE,
    ]
    assert told(answers[2]) == (
        1001,
        f"the transaction of {ALICE} is not signed: only a development chain takes unsigned transactions",
    )


def test_unsigned_transaction_passes_when_the_chain_is_for_development() -> None:
    """Whoever develops may act for everybody."""
    assert verify(World().view, [transfer()]) == [None]


def plain_genesis() -> Genesis:
    """Return a genesis with the usual accounts, of a chain that is not for development."""
    base = development_genesis()
    return Genesis(chain_id=base.chain_id, proposer=base.proposer, accounts=base.accounts)


def test_next_nonce_counts_what_waits_without_a_gap() -> None:
    """And begins anew behind what the chain holds."""
    world = World()
    assert world.mempool.next_nonce(world.view, ALICE) == 0
    for nonce in (0, 1, 3):
        world.add(transfer(nonce=nonce))
    assert world.mempool.next_nonce(world.view, ALICE) == 2
    world.build()
    assert world.mempool.next_nonce(world.view, ALICE) == 2
    world.add(transfer(nonce=2))
    assert world.mempool.next_nonce(world.view, ALICE) == 4


def test_hash_names_the_bytes() -> None:
    """The hash of the wire bytes is the transaction's name everywhere."""
    transaction = transfer()
    assert name_of(transaction) == sha256(encode_transaction(transaction))
