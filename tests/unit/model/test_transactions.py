"""Transactions: hash, signature, and the addresses of deployed actors."""

import hashlib

import pytest
from cowboy_sdk.actor import derive_actor_address as derive_as_the_sdk
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from trailboss.codec.wire import encode_transaction
from trailboss.crypto.signatures import GROUP_ORDER, address_of, sign
from trailboss.model.transactions import (
    Transaction,
    Transfer,
    check_signature,
    derive_actor_address,
    sign_transaction,
    signing_hash,
    transaction_hash,
)
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.keccak import keccak256
from trailboss.primitives.octets import ZERO_ADDRESS, Address

KEY, OTHER_KEY = b"\x01" * 32, b"\x02" * 32
SENDER, OTHER = address_of(KEY), address_of(OTHER_KEY)
UNSIGNED = Transaction(
    chain_id=1,
    nonce=0,
    instruction=Transfer(OTHER, 5),
    cycles_limit=50_000,
    cells_limit=5_000,
    max_fee_per_cycle=10_000,
    max_fee_per_cell=10_000,
)
SIGNED = sign_transaction(UNSIGNED, KEY)


def refusal_of(transaction: Transaction) -> Rejection:
    """Return the refusal of a transaction's signatures."""
    with pytest.raises(Rejection) as caught:
        check_signature(transaction)
    assert caught.value.reason is RejectionReason.INVALID_SIGNATURE
    return caught.value


def test_sign_transaction_sets_the_sender_and_signs_once_and_for_all() -> None:
    """The sender is the key's address; signing again changes nothing."""
    assert SIGNED.sender == SENDER
    assert replace(UNSIGNED, sender=SENDER, signature=SIGNED.signature) == SIGNED
    assert sign_transaction(SIGNED, KEY) == SIGNED
    check_signature(SIGNED)


@pytest.mark.parametrize(
    "change",
    [
        {"chain_id": 2},
        {"nonce": 1},
        {"instruction": Transfer(OTHER, 6)},
        {"cycles_limit": 50_001},
        {"cells_limit": 5_001},
        {"access_limit": 1},
        {"max_fee_per_cycle": 10_001},
        {"max_fee_per_cell": 10_001},
        {"max_fee_per_access": 1},
        {"max_priority_fee_per_cycle": 1},
        {"max_priority_fee_per_cell": 1},
        {"max_priority_fee_per_access": 1},
        {"sender": OTHER},
        {"access_list": ()},
        {"metadata": b"\x00"},
        {"origin_remaining_cycles": 0},
        {"origin_remaining_cells": 0},
        {"origin_remaining_access": 0},
        {"additional_signers": ((OTHER, bytes(65)),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_check_signature_refuses_when_anything_changed_after_signing(change: dict[str, object]) -> None:
    """Every field is signed."""
    refusal = refusal_of(replace(SIGNED, **change))
    assert refusal.context["field"] == "from"


def test_check_signature_names_both_addresses_when_another_key_signed() -> None:
    """The refusal says who claims to be the sender and whose signature it is."""
    forged = replace(SIGNED, signature=sign(signing_hash(SIGNED), OTHER_KEY))
    refusal = refusal_of(forged)
    assert refusal.what == f"from is {SENDER}, but the signature is one of {OTHER}"
    assert refusal.context == {"field": "from", "claimed": str(SENDER), "recovered": str(OTHER)}


def test_check_signature_refuses_when_nobody_signed() -> None:
    """The zero signature is refused for its r."""
    refusal = refusal_of(UNSIGNED)
    assert refusal.what == (
        f"the signature of from {ZERO_ADDRESS} is invalid: r is 0x{0:064x}; it must be from 1 to below the group order"
    )


@pytest.mark.parametrize("v", [2, 27, 28])
def test_check_signature_refuses_when_v_is_not_0_or_1(v: int) -> None:
    """Ethereum's other forms of the recovery id are not the protocol's."""
    refusal = refusal_of(replace(SIGNED, signature=SIGNED.signature[:64] + bytes([v])))
    assert refusal.what == f"the signature of from {SENDER} is invalid: v is {v}; it must be 0 or 1"


def test_check_signature_refuses_when_s_is_high() -> None:
    """The twin of a valid signature would give one transaction two hashes."""
    twin = GROUP_ORDER - int.from_bytes(SIGNED.signature[32:64], "big")
    changed = SIGNED.signature[:32] + twin.to_bytes(32, "big") + bytes([1 - SIGNED.signature[64]])
    refusal = refusal_of(replace(SIGNED, signature=changed))
    assert "above half the group order; the lower of the two valid s is required" in refusal.what


def test_check_signature_demands_every_additional_signer() -> None:
    """All signers sign one hash; a wrong one is named by its place."""
    draft = replace(UNSIGNED, sender=SENDER, additional_signers=((OTHER, bytes(65)),))
    digest = signing_hash(draft)
    complete = replace(draft, signature=sign(digest, KEY), additional_signers=((OTHER, sign(digest, OTHER_KEY)),))
    assert signing_hash(complete) == digest
    check_signature(complete)
    wrong = replace(complete, additional_signers=((OTHER, sign(digest, KEY)),))
    assert refusal_of(wrong).what == f"additional_signers[0] is {OTHER}, but the signature is one of {SENDER}"


def test_transaction_hash_is_sha256_of_the_wire_bytes() -> None:
    """The hash covers the signature too."""
    assert transaction_hash(SIGNED) == hashlib.sha256(encode_transaction(SIGNED)).digest()
    assert transaction_hash(SIGNED) != transaction_hash(UNSIGNED)


@settings(max_examples=60)
@given(
    st.binary(min_size=20, max_size=20),
    st.binary(max_size=32),
    st.binary(max_size=50).map(keccak256),
    st.none() | st.integers(0, 2**16 - 1),
)
def test_derive_actor_address_equals_the_public_sdks(
    deployer: bytes, salt: bytes, code_hash: bytes, shard: int | None
) -> None:
    """The SDK derives the same address."""
    ours = derive_actor_address(Address(deployer), salt, code_hash, shard)
    assert ours == bytes(derive_as_the_sdk(deployer, salt, code_hash, shard))


def test_derive_actor_address_keeps_the_deployers_group_unless_told() -> None:
    """The first two bytes are the deployer's, or the shard."""
    digest = keccak256(b"\xff" + SENDER + keccak256(b"salt") + keccak256(b"code"))
    assert derive_actor_address(SENDER, b"salt", keccak256(b"code")) == SENDER[:2] + digest[14:]
    assert derive_actor_address(SENDER, b"salt", keccak256(b"code"), 0xABCD) == b"\xab\xcd" + digest[14:]


@pytest.mark.parametrize(
    ("salt", "code_hash", "shard", "reason", "what"),
    [
        (bytes(33), bytes(32), None, RejectionReason.INVALID_DATA, "salt has 33 bytes, above 32"),
        (b"", bytes(31), None, RejectionReason.INVALID_DATA, "code_hash must be 32 bytes, got 31"),
        (b"", bytes(32), 65_536, RejectionReason.OVERFLOW, "shard is 65536, outside 0..=65535"),
        (b"", bytes(32), -1, RejectionReason.OVERFLOW, "shard is -1, outside 0..=65535"),
        (b"", bytes(32), True, RejectionReason.INVALID_DATA, "shard must be an integer, got True"),
    ],
)
def test_derive_actor_address_refuses_when_an_input_is_out_of_range(
    salt: bytes, code_hash: bytes, shard: int | None, reason: RejectionReason, what: str
) -> None:
    """The SDK's limits, refused with value and rule."""
    with pytest.raises(Rejection) as caught:
        derive_actor_address(SENDER, salt, code_hash, shard)
    assert (caught.value.reason, caught.value.what) == (reason, what)
