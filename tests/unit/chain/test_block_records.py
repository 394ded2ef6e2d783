"""A block's record: everything comes back, and what is no record is refused."""

import msgspec
import pytest
from msgspec.structs import replace

from tests.model.histories import history, seeded
from tests.model.session import Session
from trailboss.chain.block_records import RECORD_VERSION, decode_block, encode_block
from trailboss.model.blocks import Block, Origin, ReceiptRecord, Status
from trailboss.model.configs import JoiningGap
from trailboss.model.decisions import AgentBid, AgentFailure, DecisionRecord, ExaminedTimer, FeeSource, Order, Stop
from trailboss.model.events import EventRecord
from trailboss.primitives.errors import ErrorObject, Rejection, RejectionReason
from trailboss.primitives.units import U64_MAX, U128_MAX, Amount, Cells, Cycles, Price
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


def examined_timer(**fields: object) -> ExaminedTimer:
    """Return an examined timer with the largest numbers there are, unless told otherwise."""
    return ExaminedTimer(
        **{
            "timer_id": b"\x05" * 32,
            "actor": b"\x06" * 20,
            "rank": U64_MAX,
            "outcome": "fire",
            "reason": "",
            "gas_limit": U64_MAX,
            "cycles_used": U64_MAX,
            "tip": Price(U128_MAX),
            "weight": 2**32,
            "max_fee": Price(2**127 - 1),
            "fee_source": FeeSource.FROZEN,
            "target": b"\x07" * 20,
            "standing": -(2**255),
            "fire_seq": U64_MAX,
            "deliver_seq": 0,
        }
        | fields
    )


def decision_record(**fields: object) -> DecisionRecord:
    """Return a decision record in which no two numbers are equal, and prices are beyond 64 bits."""
    return DecisionRecord(
        **{
            "mechanism": "lane",
            "order": Order.STANDING,
            "cycle_basefee": Price(10**24 + 1),
            "cell_basefee": Price(10**24 + 2),
            "lane_basefee": Price(10**24 + 3),
            "next_lane_basefee": Price(10**24 + 4),
            "previous_tip": Price(2**127 - 1),
            "median_fires": 1,
            "lane_cycles_max": U64_MAX,
            "lane_cycles_used": 2,
            "max_cycles_per_fire": 3,
            "lane_burned": Amount(U128_MAX),
            "examined": (examined_timer(), examined_timer(rank=0, outcome="defer", reason="over_cap", tip=Price(0))),
            "runner_up_count": 1,
            "examined_count": 4,
            "cut_off": 5,
            "stopped": Stop.LANE_FULL,
            "smallest_gas": 6,
            "outranked": 7,
            "priced_out": 8,
            "over_cap": 9,
            "not_joined": 10,
            "gaps": (JoiningGap(11, 12, 13), JoiningGap(14, 0, U64_MAX)),
            "agent_cycles": 15,
            "agent_failures": (AgentFailure(b"\x08" * 32, "what it says"), AgentFailure(b"\x09" * 32, "")),
            "agent_bids": (
                AgentBid(b"\x0a" * 32, Price(2**127 - 1), Price(16)),
                AgentBid(b"\x0b" * 32, Price(0), Price(0)),
            ),
            "queued": 17,
            "in_mailbox": 18,
            "carried": 19,
        }
        | fields
    )


@pytest.mark.parametrize("stopped", Stop)
def test_block_comes_back_when_it_has_a_decision_record(stopped: Stop) -> None:
    """Prices and money beyond 64 bits, every way to stop, examined timers and gaps; what comes back is of its types."""
    block = replace(block_with(), decisions=decision_record(stopped=stopped))
    found = decode_block(encode_block(block))
    assert found == block
    assert found.decisions is not None
    assert type(found.decisions.stopped) is Stop
    assert [type(item) for item in found.decisions.examined] == [ExaminedTimer] * 2
    assert [type(gap) for gap in found.decisions.gaps] == [JoiningGap] * 2
    assert [type(bid) for bid in found.decisions.agent_bids] == [AgentBid] * 2
    assert type(found.decisions.order) is Order
    assert [type(failure) for failure in found.decisions.agent_failures] == [AgentFailure] * 2
    assert [item.effective_priority for item in found.decisions.examined] == [U128_MAX * 2**32, 0]


@pytest.mark.parametrize("standing", [None, 0, -1, 2**255 - 1, -(2**255)])
@pytest.mark.parametrize("number", [None, 0, U64_MAX])
def test_examined_timer_comes_back_when_it_has_a_standing_or_none(standing: int | None, number: int | None) -> None:
    """A standing may be negative and has 256 bits; without one, or without a number, there is none and not 0."""
    item = examined_timer(standing=standing, fire_seq=number, deliver_seq=number, target=b"")
    found = decode_block(encode_block(replace(block_with(), decisions=decision_record(examined=(item,))))).decisions
    assert found is not None
    assert found.examined == (item,)


@pytest.mark.parametrize("source", FeeSource)
@pytest.mark.parametrize("price", [0, 1, U64_MAX, U64_MAX + 1, U128_MAX])
def test_examined_timer_comes_back_when_its_prices_have_any_size(source: FeeSource, price: int) -> None:
    """From nothing to the whole of 128 bits, whoever offered it."""
    item = examined_timer(tip=Price(price), max_fee=Price(U128_MAX - price), fee_source=source)
    block = replace(block_with(), decisions=decision_record(examined=(item,), gaps=()))
    found = decode_block(encode_block(block)).decisions
    assert found is not None
    assert found.examined == (item,)
    assert type(found.examined[0].fee_source) is FeeSource


@pytest.mark.parametrize("what", ["\ud800 what \udfff", "\udcff", "\x00\n\u202e", "\U0010ffff" * 1_024, ""])
def test_agent_failure_comes_back_when_its_words_are_odd(what: str) -> None:
    """They are what a program raised: lone surrogates, control characters, four bytes each, nothing."""
    failures = (AgentFailure(bytes(32), what), AgentFailure(b"\xff" * 32, what))
    block = replace(block_with(), decisions=decision_record(agent_failures=failures))
    found = decode_block(encode_block(block)).decisions
    assert found is not None
    assert found.agent_failures == failures


def test_decisions_are_beside_the_block_when_its_hash_is_taken() -> None:
    """The record has them, the header does not: another record, the same hash."""
    plain = block_with()
    told = replace(plain, decisions=decision_record())
    assert encode_block(told) != encode_block(plain)
    assert decode_block(encode_block(told)).hash == decode_block(encode_block(plain)).hash == plain.hash
    assert decode_block(encode_block(plain)).decisions is None


def test_block_comes_back_when_a_chain_has_built_it() -> None:
    """Every block of random histories, with transactions, fires, messages, reverts and the block's own events."""
    kinds, choices = set(), set()
    for seed in range(12):
        random_history = history(seeded(seed))
        session = Session(random_history)
        session.play(random_history.blocks)
        for block in session.chain.blocks:
            assert decode_block(encode_block(block)) == block
            kinds |= {(receipt.origin, receipt.status) for receipt in block.receipts}
            choices |= {item.outcome for item in block.decisions.examined} if block.decisions else {None}
    assert len(kinds) == 6, kinds
    assert {"fire", "defer", None} <= choices, choices


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
        (b"", "it begins with no bytes, and this program reads version 3"),
        (b"\x01rest", "it begins with version 1, and this program reads version 3"),
        (b"\x04rest", "it begins with version 4, and this program reads version 3"),
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
        record = bytes((RECORD_VERSION,)) + msgspec.msgpack.encode([header, transactions, receipts, [], None])
        with pytest.raises(Rejection, match="malformed block record") as caught:
            decode_block(record)
        assert words in caught.value.what


def test_record_is_refused_when_its_decisions_are_none() -> None:
    """An unknown way to stop, an unknown source of fees, a part too few, a number that is no number."""
    whole = msgspec.msgpack.decode(encode_block(replace(block_with(), decisions=decision_record()))[1:])
    decisions = whole[4]
    stop, examined, failures = decisions.index("lane_full"), 12, len(decisions) - 5
    item = ["hearsay" if part == "frozen" else part for part in decisions[examined][0]]
    changed = [
        ([*decisions[:stop], "bored", *decisions[stop + 1 :]], "Invalid enum value 'bored'"),
        ([*decisions[:examined], [item], *decisions[examined + 1 :]], "Invalid enum value 'hearsay'"),
        (decisions[:-1], "Expected `array` of at least length"),
        ([*decisions[:-2], "many", decisions[-1]], "Expected `int`, got `str`"),
        ([*decisions[:failures], "many", *decisions[failures + 1 :]], "Expected `array`, got `str`"),
        ([*decisions[:failures], [[bytes(32)]], *decisions[failures + 1 :]], "Expected `array` of length 2"),
        ([*decisions[:failures], [[bytes(32), b"\xff"]], *decisions[failures + 1 :]], "can't decode"),
        (7, "Expected `array | null`, got `int`"),
    ]
    for part, words in changed:
        record = bytes((RECORD_VERSION,)) + msgspec.msgpack.encode([*whole[:4], part])
        with pytest.raises(Rejection, match="malformed block record") as caught:
            decode_block(record)
        assert words in caught.value.what


def test_every_cut_or_flipped_record_is_refused_or_a_block() -> None:
    """Nothing but a refusal leaves the decoder, whatever byte is changed or missing."""
    block = block_with(error=ErrorObject(1, "slug", "what", "why", "fix", {"a": U64_MAX + 1}))
    record = encode_block(replace(block, decisions=decision_record()))
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
