"""A block's record: everything comes back, and what is no record is refused."""

from dataclasses import replace

import msgspec
import pytest

from tests.model.histories import history, seeded
from tests.model.session import Session
from trailboss.chain.block_records import RECORD_VERSION, decode_block, encode_block
from trailboss.model.blocks import Block, Origin, ReceiptRecord, Status
from trailboss.model.events import EventRecord
from trailboss.primitives.errors import ErrorObject, Rejection, RejectionReason
from trailboss.primitives.units import U64_MAX, U128_MAX, Amount, Cells, Cycles
from trailboss.testing import LocalChain


def block_with(**fields: object) -> Block:
    """Return a block whose one receipt has the given fields and otherwise the largest values there are."""
    with LocalChain() as chain:
        head = chain.chain.head
    receipt = ReceiptRecord(
        **{
            "origin": Origin.MESSAGE,
            "origin_hash": bytes(32),
            "sender": b"\x01" * 20,
            "payer": b"\x02" * 20,
            "status": Status.REVERTED,
            "error": None,
            "cycles_used": Cycles(U64_MAX),
            "cells_used": Cells(U64_MAX),
            "reserved": Amount(U128_MAX),
            "fee_burned": Amount(U128_MAX),
            "tip": Amount(U64_MAX + 1),
            "refund": Amount(0),
            "return_value": b"\x00\xff",
            "events": (EventRecord("note", b"\x03" * 20, b"", b"\x04" * 32),),
            "timer_id": b"\x05" * 32,
            "actor": b"\x06" * 20,
        }
        | fields
    )
    return replace(head, receipts=(receipt,), events=(EventRecord("own", b"\x07" * 20, b"data"),))


def test_block_comes_back_when_a_chain_has_built_it() -> None:
    """Every block of random histories, with transactions, fires, messages, reverts and the block's own events."""
    kinds = set()
    for seed in range(12):
        random_history = history(seeded(seed))
        session = Session(random_history)
        session.play(random_history.blocks)
        for block in session.chain.blocks:
            assert decode_block(encode_block(block)) == block
            kinds |= {(receipt.origin, receipt.status) for receipt in block.receipts}
    assert len(kinds) == 6, kinds


@pytest.mark.parametrize("number", [-(2**63) - 1, -(2**63), -1, U64_MAX, U64_MAX + 1, 10**80, True, None])
def test_block_comes_back_when_an_error_has_facts_of_any_size(number: int | bool | None) -> None:
    """Integers beyond 64 bits, truth values and nothing; the order of the facts stays, too."""
    error = ErrorObject(1210, "pvm_error", "what", "why", "fix", {"b": number, "a": "text", "0": 7})
    block = block_with(error=error)
    found = decode_block(encode_block(block))
    assert found == block
    context = found.receipts[0].error.context
    assert list(context) == ["b", "a", "0"]
    assert type(context["b"]) is type(number)


def test_block_comes_back_when_a_program_raised_a_lone_surrogate() -> None:
    """No text encoding carries one, and a program may say what it likes."""
    error = ErrorObject(1210, "pvm_error", "\ud800 what", "\udfff", "fix", {"exception_message": "\ud800"})
    block = block_with(error=error)
    assert decode_block(encode_block(block)) == block


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (b"", "it begins with no bytes, and this program reads version 1"),
        (b"\x02rest", "it begins with version 2, and this program reads version 1"),
        (bytes((RECORD_VERSION,)), "truncated"),
        (bytes((RECORD_VERSION, 0x90)), "array"),
        (encode_block(block_with()) + b"\x00", "trailing"),
    ],
)
def test_record_is_refused_when_it_is_none(record: bytes, words: str) -> None:
    """With what is wrong."""
    with pytest.raises(Rejection) as caught:
        decode_block(record)
    assert caught.value.reason is RejectionReason.INVALID_DATA
    assert "malformed block record: " in caught.value.what
    assert words in caught.value.what


def test_record_is_refused_when_a_part_of_it_is_none() -> None:
    """A transaction that is no transaction, a text that is no text, an unknown status."""
    header = msgspec.msgpack.decode(encode_block(block_with())[1:])[0]
    error = [1210, "pvm_error", b"\xff", b"", b"", []]
    receipt = ["timer", b"", b"", b"", "ok", error, 0, 0, b"", b"", b"", b"", b"", [], b"", b""]
    for transactions, receipts, words in (
        ([b"\x07"], [], "a transaction starts with version 2"),
        ([], [receipt], "can't decode"),
        ([], [["timer", b"", b"", b"", "lost", *receipt[5:]]], "Invalid enum value 'lost'"),
    ):
        record = bytes((RECORD_VERSION,)) + msgspec.msgpack.encode([header, transactions, receipts, []])
        with pytest.raises(Rejection, match="malformed block record") as caught:
            decode_block(record)
        assert words in caught.value.what


def test_every_cut_or_flipped_record_is_refused_or_a_block() -> None:
    """Nothing but a refusal leaves the decoder, whatever byte is changed or missing."""
    record = encode_block(block_with(error=ErrorObject(1, "slug", "what", "why", "fix", {"a": U64_MAX + 1})))
    variants = [record[:length] for length in range(len(record))]
    variants += [
        record[:at] + bytes((record[at] ^ bit,)) + record[at + 1 :] for at in range(len(record)) for bit in (1, 128)
    ]
    refused = 0
    for variant in variants:
        try:
            assert isinstance(decode_block(variant), Block)
        except Rejection:
            refused += 1
    assert refused > len(record)
