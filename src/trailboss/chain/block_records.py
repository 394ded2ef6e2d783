"""A block as bytes: everything that a chain remembers of it, to be kept in a store.

A record is a version byte and then positional msgpack: header, transactions as their wire bytes, receipts, the block's
own events, how it chose among its due timers, and what gas bidding agents printed. Fields stand in the order of the
model's records, so a field that is added there needs another version. Amounts are 16 bytes, for msgpack's
integers have 64 bits. The hash is not in it: it is the header's. What was printed is at the end of what holds it, and
older records lack it.
"""

from operator import attrgetter
from types import GenericAlias
from typing import Any, Final

import msgspec
from msgspec.structs import asdict, fields

from trailboss.codec.canonical import pack
from trailboss.codec.wire import decode_transaction, encode_transaction
from trailboss.model.blocks import Block, ReceiptRecord, header_hash
from trailboss.model.configs import amount_octets, amount_of
from trailboss.model.decisions import AgentBid, AgentFailure, DecisionRecord, ExaminedTimer
from trailboss.model.globalbox import standing_octets, standing_of
from trailboss.primitives.errors import ErrorObject, Fact, Rejection, RejectionReason
from trailboss.primitives.units import U64_MAX, Price

RECORD_VERSION: Final = 3  # first byte of a record

_LEAST_INTEGER: Final = -(2**63)  # of msgpack; the largest is ``U64_MAX``
_HEXADECIMAL: Final = 16

_DECISION_AMOUNTS: Final = (
    "cycle_basefee", "cell_basefee", "lane_basefee", "next_lane_basefee", "previous_tip", "lane_burned",
)  # fmt: skip
_RECEIPT_AMOUNTS: Final = ("reserved", "fee_burned", "tip", "refund")  # one after the other
_RECEIPT_FIELDS: Final = ReceiptRecord.__struct_fields__
_RECEIPT_AMOUNTS_AT: Final = slice(
    _RECEIPT_FIELDS.index(_RECEIPT_AMOUNTS[0]), _RECEIPT_FIELDS.index(_RECEIPT_AMOUNTS[-1]) + 1
)
_RECEIPT_ERROR_AT: Final = _RECEIPT_FIELDS.index("error")
_receipt_values: Final = attrgetter(*_RECEIPT_FIELDS)
_EXAMINED_AMOUNTS: Final = ("tip", "max_fee")

_StoredFact = int | bool | bytes | tuple[bytes] | None
"""A fact of an error: text as bytes, and an integer beyond 64 bits as its hexadecimal digits in a tuple."""


class _StoredError(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An error's words and facts. What a program raises may hold lone surrogates, which msgpack's text cannot."""

    code: int
    slug: str
    what: bytes
    why: bytes
    fix: bytes
    context: tuple[tuple[str, _StoredFact], ...]


def _stored_form(kind: type[msgspec.Struct], **types: Any) -> Any:
    """Return the stored form of a record: its fields but a hash, some with other types; only ``printed`` may lack."""
    members = [(each.name, types.get(each.name, each.type)) for each in fields(kind) if each.name != "hash"]
    defined = [(*each, ()) if each[0] == "printed" else each for each in members]
    return msgspec.defstruct(f"_Stored{kind.__name__}", defined, frozen=True, array_like=True, gc=False)


_StoredReceipt: Final = _stored_form(ReceiptRecord, error=_StoredError | None, **dict.fromkeys(_RECEIPT_AMOUNTS, bytes))
_StoredExamined: Final = _stored_form(ExaminedTimer, standing=bytes, **dict.fromkeys(_EXAMINED_AMOUNTS, bytes))
_StoredDecisions: Final = _stored_form(
    DecisionRecord,
    examined=GenericAlias(tuple, (_StoredExamined, ...)),
    agent_failures=tuple[tuple[bytes, bytes], ...],
    agent_bids=tuple[tuple[bytes, ...], ...],
    **dict.fromkeys(_DECISION_AMOUNTS, bytes),
)
_StoredBlock: Final = _stored_form(
    Block,
    transactions=tuple[bytes, ...],
    receipts=GenericAlias(tuple, (_StoredReceipt, ...)),
    decisions=_StoredDecisions | None,
)
_decoder: Final = msgspec.msgpack.Decoder(_StoredBlock)


def encode_block(block: Block) -> bytes:
    """Return the record of a block; `decode_block` gives an equal block back.

    Raises:
        Rejection: ``OVERFLOW`` or ``INVALID_DATA`` if a transaction's field does not fit its width on the wire.
    """
    stored = _StoredBlock(
        block.header,
        tuple(map(encode_transaction, block.transactions)),
        tuple(map(_stored_receipt, block.receipts)),
        block.events,
        None if block.decisions is None else _stored_decisions(block.decisions),
        block.printed,
    )
    return bytes((RECORD_VERSION,)) + pack(stored)


def decode_block(record: bytes) -> Block:
    """Return the block that a record holds.

    Raises:
        Rejection: ``INVALID_DATA`` for bytes that are not a block's record, or one of another version.
    """
    if not record or record[0] != RECORD_VERSION:
        found = f"version {record[0]}" if record else "no bytes"
        raise _malformed(f"it begins with {found}, and this program reads version {RECORD_VERSION}")
    try:
        stored = _decoder.decode(memoryview(record)[1:])
        return Block(
            header=stored.header,
            hash=header_hash(stored.header),
            transactions=tuple(map(decode_transaction, stored.transactions)),
            receipts=tuple(map(_receipt, stored.receipts)),
            events=stored.events,
            decisions=None if stored.decisions is None else _decisions(stored.decisions),
            printed=stored.printed,
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise _malformed(str(error)) from None
    except Rejection as rejection:
        raise _malformed(rejection.what) from None


def _malformed(rule: str) -> Rejection:
    return Rejection(RejectionReason.INVALID_DATA, f"malformed block record: {rule}")


def _stored(record: msgspec.Struct, amounts: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a record with those that are amounts as bytes."""
    return asdict(record) | {name: amount_octets(getattr(record, name)) for name in amounts}


def _restored(stored: msgspec.Struct, amounts: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a stored record with the amounts as numbers."""
    return asdict(stored) | {name: amount_of(getattr(stored, name)) for name in amounts}


def _stored_decisions(record: DecisionRecord) -> Any:
    values = _stored(record, _DECISION_AMOUNTS)
    values["examined"] = tuple(map(_stored_examined, record.examined))
    # What a program raises may hold lone surrogates, which msgpack's text cannot.
    values["agent_failures"] = tuple((item.timer_id, _text_octets(item.what)) for item in record.agent_failures)
    values["agent_bids"] = tuple(
        (bid.timer_id, *map(amount_octets, (bid.max_fee, bid.max_priority_fee, *(bid.cell_fees or ()))))
        for bid in record.agent_bids
    )
    return _StoredDecisions(**values)


def _decisions(stored: Any) -> DecisionRecord:
    values = _restored(stored, _DECISION_AMOUNTS)
    values["examined"] = tuple(map(_examined, stored.examined))
    values["agent_failures"] = tuple(AgentFailure(item, _text(what)) for item, what in stored.agent_failures)
    values["agent_bids"] = tuple(_bid(*bid) for bid in stored.agent_bids)
    return DecisionRecord(**values)


def _bid(timer_id: bytes, max_fee: bytes, priority: bytes, *cell_fees: bytes) -> AgentBid:
    """Return what was bid; amounts per cell follow those per cycle, if it states them. Decision: D-86."""
    cap, tip, *cells = (Price(amount_of(octets)) for octets in (max_fee, priority, *cell_fees))
    return AgentBid(timer_id, cap, tip, (cells[0], cells[1]) if cells else None)


def _stored_examined(item: ExaminedTimer) -> Any:
    standing = b"" if item.standing is None else standing_octets(item.standing)
    return _StoredExamined(**_stored(item, _EXAMINED_AMOUNTS) | {"standing": standing})


def _examined(stored: Any) -> ExaminedTimer:
    standing = standing_of(stored.standing) if stored.standing else None
    return ExaminedTimer(**_restored(stored, _EXAMINED_AMOUNTS) | {"standing": standing})


def _stored_receipt(receipt: ReceiptRecord) -> list[Any]:
    """Return the values of the stored form in order, which are encoded alike, and found in half the time."""
    values = [*_receipt_values(receipt)]
    values[_RECEIPT_AMOUNTS_AT] = map(amount_octets, values[_RECEIPT_AMOUNTS_AT])
    if receipt.error is not None:
        values[_RECEIPT_ERROR_AT] = _stored_error(receipt.error)
    return values


def _receipt(stored: Any) -> ReceiptRecord:
    error = None if stored.error is None else _error(stored.error)
    return ReceiptRecord(**_restored(stored, _RECEIPT_AMOUNTS) | {"error": error})


def _stored_error(error: ErrorObject) -> _StoredError:
    context = tuple((name, _stored_fact(fact)) for name, fact in error.context.items())
    what, why, fix = map(_text_octets, (error.what, error.why, error.fix))
    return _StoredError(error.code, error.slug, what, why, fix, context)


def _error(stored: _StoredError) -> ErrorObject:
    context = {name: _fact(fact) for name, fact in stored.context}
    what, why, fix = map(_text, (stored.what, stored.why, stored.fix))
    return ErrorObject(stored.code, stored.slug, what, why, fix, context)


def _stored_fact(fact: Fact) -> _StoredFact:
    if isinstance(fact, str):
        return _text_octets(fact)
    if fact is not None and not _LEAST_INTEGER <= fact <= U64_MAX:
        return (f"{fact:x}".encode(),)
    return fact


def _fact(stored: _StoredFact) -> Fact:
    if isinstance(stored, bytes):
        return _text(stored)
    if isinstance(stored, tuple):
        return int(stored[0], _HEXADECIMAL)
    return stored


def _text_octets(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _text(octets: bytes) -> str:
    return octets.decode(errors="surrogatepass")
