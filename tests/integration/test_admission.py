"""Which transactions may be in a block: each wrong one has a refusal of its own and changes nothing."""

import msgspec
import pytest

from tests.integration.helpers import CBY, deploy_puppet
from trailboss.crypto.signatures import address_of
from trailboss.model.transactions import Transaction, Transfer, sign_transaction
from trailboss.primitives.octets import Hash32
from trailboss.testing import LocalChain, TestAccount
from trailboss.views.records import Receipt

CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
TRANSFER_CYCLES, TRANSFER_CELLS = 10_000, 500


def transfer(chain: LocalChain, sender: TestAccount | None = None, amount: int = 5, **changes: object) -> Transaction:
    """Return a signed transfer that a block would take, but for the changes."""
    sender = sender or chain.accounts[0]
    fields = {
        "chain_id": 1,
        "nonce": chain.nonce(sender),
        "instruction": Transfer(chain.accounts[1].address, amount),
        "cycles_limit": TRANSFER_CYCLES,
        "cells_limit": TRANSFER_CELLS,
        "max_fee_per_cycle": 20_000,
        "max_fee_per_cell": 20_000,
        **changes,
    }
    return sign_transaction(Transaction(**fields), sender.private_key)


def assert_refused(chain: LocalChain, transaction: Transaction, code: int, slug: str, *words: str) -> Receipt:
    """Assert that a transaction is refused and changes nothing, not even the height."""
    root, accounts, head = chain.state_root, dict(chain.chain.accounts()), chain.block()
    receipt = chain.submit(transaction)
    assert receipt.status == "refused"
    assert receipt.error is not None
    assert (receipt.error.code, receipt.error.slug) == (code, slug), receipt.error
    for word in words:
        assert word in receipt.error.what, receipt.error.what
    assert (receipt.fee_paid, receipt.cycles_used, receipt.events) == (0, 0, ())
    assert chain.state_root == root
    assert dict(chain.chain.accounts()) == accounts
    assert chain.block() is head
    return receipt


def test_transfer_is_accepted_when_nothing_is_wrong(chain: LocalChain) -> None:
    """The baseline of what follows."""
    assert chain.submit(transfer(chain)).ok


@pytest.mark.spec("E-05", "E-06")
@pytest.mark.parametrize("offset", [-1, 1, 2, 1_000])
def test_transaction_is_refused_when_its_nonce_is_not_the_next(chain: LocalChain, offset: int) -> None:
    """Neither an old one nor one ahead; the refusal names both numbers."""
    chain.submit(transfer(chain))
    receipt = assert_refused(
        chain,
        transfer(chain, nonce=1 + offset),
        1002,
        "nonce_mismatch",
        f"{chain.accounts[0].address} is at nonce 1, the transaction has {1 + offset}",
    )
    assert receipt.error is not None
    assert receipt.error.context == {"expected": 1, "actual": 1 + offset}


@pytest.mark.spec("E-05")
def test_transaction_applies_once_when_it_is_sent_again(chain: LocalChain) -> None:
    """In a later block and in the same one."""
    transaction = transfer(chain)
    before = chain.balance(chain.accounts[1])
    with chain.one_block():
        first, second = chain.submit(transaction), chain.submit(transaction)
    assert (first.status, second.status) == ("ok", "refused")
    assert_refused(chain, transaction, 1002, "nonce_mismatch")
    assert chain.balance(chain.accounts[1]) == before + 5
    assert chain.nonce(chain.accounts[0]) == 1


@pytest.mark.spec("E-05")
def test_nonce_is_used_when_the_transaction_reverts(chain: LocalChain) -> None:
    """A reverted transaction cannot be replayed either."""
    actor = deploy_puppet(chain)
    nonce = chain.nonce(chain.accounts[0])
    assert actor.call("no_such_handler", sender=chain.accounts[0]).status == "reverted"
    assert chain.nonce(chain.accounts[0]) == nonce + 1


@pytest.mark.spec("E-06")
def test_transaction_is_refused_when_signed_for_another_chain(chain: LocalChain) -> None:
    """Code 1011 with both ids."""
    words = "the transaction is for chain 2, this is chain 1"
    assert_refused(chain, transfer(chain, chain_id=2), 1011, "chain_id_mismatch", words)


def tampered(chain: LocalChain, how: str) -> Transaction:
    """Return a transfer whose signature is not right."""
    good = transfer(chain)
    r, s, v = good.signature[:32], good.signature[32:64], good.signature[64]
    replaced = {
        "another amount": {"instruction": Transfer(chain.accounts[1].address, 6)},
        "another sender": {"sender": chain.accounts[2].address},
        "another nonce": {"nonce": 7},
        "short signature": {"signature": good.signature[:64]},
        "flipped v": {"signature": r + s + bytes([v ^ 1])},
        "v out of range": {"signature": r + s + bytes([v + 4])},
        "v of 255": {"signature": r + s + b"\xff"},
        "high s": {"signature": r + (CURVE_ORDER - int.from_bytes(s, "big")).to_bytes(32, "big") + bytes([v ^ 1])},
        "r of zero": {"signature": bytes(32) + s + bytes([v])},
        "s beyond the order": {"signature": r + b"\xff" * 32 + bytes([v])},
        "a stranger's": {"signature": transfer(chain, chain.accounts[3]).signature},
    }
    return msgspec.structs.replace(good, **replaced[how])


@pytest.mark.spec("E-06")
@pytest.mark.parametrize(
    "how",
    [
        "another amount",
        "another sender",
        "another nonce",
        "short signature",
        "flipped v",
        "v out of range",
        "v of 255",
        "high s",
        "r of zero",
        "s beyond the order",
        "a stranger's",
    ],
)
def test_transaction_is_refused_when_its_signature_is_wrong(chain: LocalChain, how: str) -> None:
    """Code 1001, whatever is wrong with it."""
    assert_refused(chain, tampered(chain, how), 1001, "invalid_signature")


@pytest.mark.spec("E-06")
def test_transaction_is_refused_when_it_claims_to_be_deferred(chain: LocalChain) -> None:
    """Only the chain makes executions that stem from another transaction."""
    assert_refused(chain, transfer(chain, origin_tx_hash=Hash32(bytes(32))), 1213, "invalid_data", "origin_tx_hash")


@pytest.mark.spec("E-01")
@pytest.mark.parametrize(
    ("field", "edge", "code", "slug"),
    [
        ("cycles_limit", TRANSFER_CYCLES, 1005, "out_of_cycles"),
        ("cells_limit", TRANSFER_CELLS, 1006, "out_of_cells"),
    ],
)
def test_each_limit_must_cover_what_the_instruction_uses_before_it_runs(
    chain: LocalChain, field: str, edge: int, code: int, slug: str
) -> None:
    """The exact need is accepted, one unit less is refused by the meter that lacks it."""
    assert chain.submit(transfer(chain, **{field: edge})).ok
    words = f"{field} is {edge - 1}, Transfer uses {edge} before it runs"
    assert_refused(chain, transfer(chain, **{field: edge - 1}), code, slug, words)


@pytest.mark.spec("E-01")
@pytest.mark.parametrize("field", ["max_fee_per_cycle", "max_fee_per_cell"])
def test_each_fee_cap_must_cover_its_own_basefee(chain: LocalChain, field: str) -> None:
    """At the basefee it is accepted, one below it is refused, whatever the other cap is."""
    assert chain.submit(transfer(chain, **{field: 10_000})).ok
    receipt = assert_refused(chain, transfer(chain, **{field: 9_999}), 1008, "basefee_too_low", "9999")
    assert receipt.error is not None
    assert receipt.error.context[field] == "9999"


def funded(chain: LocalChain, amount: int) -> TestAccount:
    """Return a new account that holds exactly so much."""
    key = bytes(31) + b"\x07"
    account = TestAccount("exact", address_of(key), key)
    chain.transfer(account.address, amount, sender=chain.accounts[0], check=True)
    return account


@pytest.mark.spec("E-06")
def test_sender_must_hold_every_limit_at_its_cap_and_what_it_sends(chain: LocalChain) -> None:
    """Exactly enough passes; one unit less of either is refused by its own code."""
    gas = TRANSFER_CYCLES * 20_000 + TRANSFER_CELLS * 20_000
    account = funded(chain, gas + 100)
    refused = assert_refused(chain, transfer(chain, account, amount=101), 1003, "insufficient_balance", str(gas + 100))
    assert refused.error is not None
    assert refused.error.context == {"required": str(gas + 101), "available": str(gas + 100)}
    words = f"holds {gas + 100} base units, its limits at its fee caps need {gas + 20_000}"
    dear = transfer(chain, account, amount=0, cells_limit=TRANSFER_CELLS + 1)
    assert_refused(chain, dear, 1004, "insufficient_gas_balance", words)
    before = chain.balance(account.address)
    receipt = chain.submit(transfer(chain, account, amount=100))
    assert receipt.ok
    assert receipt.fee_paid == gas // 2
    assert chain.balance(account.address) == before - 100 - gas // 2


@pytest.mark.spec("E-06")
def test_transaction_is_refused_when_its_account_does_not_exist(chain: LocalChain) -> None:
    """An account that nobody has funded holds nothing, and none is created for it."""
    key = bytes(31) + b"\x09"
    stranger = TestAccount("stranger", address_of(key), key)
    assert_refused(chain, transfer(chain, stranger), 1004, "insufficient_gas_balance", "holds 0 base units")
    assert chain.chain.account(stranger.address) is None


@pytest.mark.spec("E-01")
@pytest.mark.parametrize("unit", ["cycles", "cells"])
def test_transaction_is_refused_when_its_limit_does_not_fit_the_block(chain: LocalChain, unit: str) -> None:
    """A block's caps are twice its targets; the exact cap fits, one unit more does not."""
    cap = {"cycles": 20_000_000, "cells": 2_200_000}[unit]
    words = f"{unit}_limit is {cap + 1}, the block has {cap} of {cap} {unit} left"
    assert_refused(chain, transfer(chain, **{f"{unit}_limit": cap + 1}), 1012, "block_full", words)
    assert chain.submit(transfer(chain, **{f"{unit}_limit": cap})).ok


@pytest.mark.spec("E-01")
def test_transaction_is_refused_when_those_before_it_have_filled_the_block(chain: LocalChain) -> None:
    """What they used counts, not what they reserved; the refused one can come in the next block."""
    senders = chain.accounts[:3]
    limits = {"cycles_limit": 20_000_000 - TRANSFER_CYCLES, "cells_limit": TRANSFER_CELLS}
    transactions = [transfer(chain, sender, **limits) for sender in senders]
    with chain.one_block():
        receipts = [chain.submit(transaction) for transaction in transactions]
    assert [receipt.status for receipt in receipts] == ["ok", "ok", "refused"]
    assert receipts[2].error.slug == "block_full"
    assert chain.submit(transactions[2]).ok


@pytest.mark.spec("E-06")
def test_refused_transaction_leaves_the_others_of_its_block_alone(chain: LocalChain) -> None:
    """The block is the one that would have been built without it."""
    mark = chain.snapshot()
    good = [transfer(chain, sender) for sender in chain.accounts[:3]]
    bad = transfer(chain, chain.accounts[4], chain_id=9)
    with chain.one_block():
        for transaction in (good[0], bad, good[1], bad, good[2]):
            chain.submit(transaction)
    mixed = chain.block().hash
    assert chain.height == mark.height + 1
    chain.revert(mark)
    with chain.one_block():
        for transaction in good:
            chain.submit(transaction)
    assert chain.block().hash == mixed


@pytest.mark.spec("E-06")
@pytest.mark.parametrize(
    ("options", "words"),
    [({"amount": 2**64}, str(2**64)), ({"amount": -1}, "-1"), ({"amount": 1, "cycles_limit": -1}, "-1")],
)
def test_transaction_is_refused_when_a_number_does_not_fit_its_width(
    chain: LocalChain, options: dict[str, int], words: str
) -> None:
    """What has no bytes cannot be signed: it is refused like anything else, and nothing is built."""
    root = chain.state_root
    receipt = chain.transfer(chain.accounts[1], sender=chain.accounts[0], **options)
    assert receipt.status == "refused"
    assert receipt.error is not None
    assert (receipt.error.code, receipt.error.slug) == (1007, "overflow")
    assert words in receipt.error.what
    assert (chain.height, chain.state_root, chain.nonce(chain.accounts[0])) == (0, root, 0)


def test_transfer_costs_its_fee_alone_when_it_goes_to_oneself(chain: LocalChain) -> None:
    """A transfer to oneself is fine; the sums hold."""
    sender = chain.accounts[0]
    before = chain.balance(sender)
    receipt = chain.transfer(sender, CBY, sender=sender)
    assert receipt.ok
    assert chain.balance(sender) == before - receipt.fee_paid
