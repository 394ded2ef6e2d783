"""Our transaction codec against the public one: byte for byte, both ways."""

import json
import re

import cowboy_protocol
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.conformance.codec.strategies import DEVELOPMENT_KINDS, KINDS, any_transaction, transactions
from trailboss.codec.layout import ACTOR_NAMES, FAMILY_NAMES, LIBRARY_NAMES, SYSTEM_NAMES, UNNUMBERED_SYSTEM_NAMES
from trailboss.codec.textual import from_json, to_text
from trailboss.codec.wire import (
    decode_submission,
    decode_transaction,
    encode_submission,
    encode_transaction,
    signing_hash,
)
from trailboss.crypto.signatures import GROUP_ORDER, address_of, sign
from trailboss.model.transactions import Transaction, check_signature, sign_transaction
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.keccak import keccak256

private_keys = st.integers(1, GROUP_ORDER - 1).map(lambda number: number.to_bytes(32, "big"))


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=20)
@given(data=st.data())
def test_wire_bytes_equal_the_public_codecs_for_every_kind(kind: str, data: st.DataObject) -> None:
    """Encoding, preimage, signing hash and submission are the public codec's, and its bytes decode to the record."""
    transaction = data.draw(transactions(kind))
    text = to_text(transaction)
    theirs = cowboy_protocol.encode_transaction(text)
    assert encode_transaction(transaction) == theirs
    assert decode_transaction(theirs) == transaction
    assert signing_hash(transaction) == keccak256(cowboy_protocol.signing_preimage(text))
    assert signing_hash(transaction) == cowboy_protocol.signing_hash(text)
    submission = cowboy_protocol.encode_submission(text)
    assert encode_submission([transaction]) == submission
    assert decode_submission(submission) == [transaction]


@pytest.mark.parametrize("kind", sorted(DEVELOPMENT_KINDS))
@settings(max_examples=20)
@given(data=st.data())
def test_instructions_of_our_own_come_back_and_are_none_of_the_public_codecs(kind: str, data: st.DataObject) -> None:
    """They go through both of our codecs unchanged, and the public one knows neither name nor number."""
    transaction = data.draw(transactions(kind))
    assert decode_transaction(encode_transaction(transaction)) == transaction
    assert from_json(to_text(transaction)) == transaction
    with pytest.raises(cowboy_protocol.CowboyProtocolError, match=f"unknown variant `{kind}`"):
        cowboy_protocol.encode_transaction(to_text(transaction))


@settings(max_examples=20)
@given(any_transaction, private_keys)
def test_signature_and_json_text_equal_the_public_codecs(transaction: Transaction, private_key: bytes) -> None:
    """Signing gives the same transaction, printed as the same text, which reads back to the record."""
    signed = sign_transaction(transaction, private_key)
    theirs = cowboy_protocol.sign_transaction(to_text(transaction), private_key)
    assert to_text(signed) == theirs
    assert from_json(theirs) == signed
    assert decode_transaction(cowboy_protocol.encode_transaction(theirs)) == signed


@settings(max_examples=20)
@given(private_keys, st.binary(min_size=32, max_size=32))
def test_address_and_signature_equal_the_public_codecs(private_key: bytes, digest: bytes) -> None:
    """A key has the same address, and signs a digest with the same 65 bytes."""
    assert str(address_of(private_key)) == cowboy_protocol.address_from_private_key(private_key)
    assert sign(digest, private_key) == cowboy_protocol.sign(digest, private_key)


@settings(max_examples=25)
@given(any_transaction, private_keys)
def test_signature_is_accepted_when_the_public_codec_made_it(transaction: Transaction, private_key: bytes) -> None:
    """What the public codec signs passes our check once nobody else has to sign."""
    document = json.loads(to_text(transaction)) | {"additional_signers": []}
    check_signature(from_json(cowboy_protocol.sign_transaction(json.dumps(document), private_key)))


@settings(max_examples=100)
@given(any_transaction, st.data())
def test_decoding_is_canonical_when_bytes_are_changed(transaction: Transaction, data: st.DataObject) -> None:
    """Changed bytes are refused, or decode to a record that encodes to exactly them."""
    encoded = bytearray(encode_transaction(transaction))
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    changed = bytes(encoded)
    try:
        decoded = decode_transaction(changed)
    except Rejection as refusal:
        if refusal.reason not in (RejectionReason.INVALID_DATA, RejectionReason.UNSUPPORTED_INSTRUCTION):
            raise
    else:
        # A copy has kept no bytes, so that it is encoded.
        assert encode_transaction(replace(decoded)) == changed


@settings(max_examples=100)
@given(st.binary(max_size=80).map(lambda tail: b"\x02" + tail))
def test_decoding_refuses_and_never_fails_otherwise_when_bytes_are_random(encoded: bytes) -> None:
    """Random bytes are refused as malformed or unsupported; nothing else leaves the decoder."""
    with pytest.raises(Rejection):
        decode_transaction(encoded)


def test_instruction_names_are_all_that_the_public_codec_knows() -> None:
    """The table of names lists exactly the variants that the public codec offers when it meets an unknown one."""
    document = {"chain_id": 1, "nonce": 0}

    def offered(instruction: object) -> set[str]:
        with pytest.raises(cowboy_protocol.CowboyProtocolError) as caught:
            cowboy_protocol.encode_transaction(json.dumps(document | {"instruction": instruction}))
        return set(re.findall(r"`(\w+)`", str(caught.value).split("expected")[1]))

    assert offered({"?": {}}) == set(FAMILY_NAMES.values())
    assert offered({"System": {"?": {}}}) == {*SYSTEM_NAMES.values(), *UNNUMBERED_SYSTEM_NAMES}
    assert offered({"Actor": {"?": {}}}) == set(ACTOR_NAMES.values())
    assert offered({"Library": {"?": {}}}) == set(LIBRARY_NAMES.values())
