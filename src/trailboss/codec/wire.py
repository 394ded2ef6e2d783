"""The public transaction codec: wire bytes, signing hash and submission envelope.

A transaction is a version byte and the fields of `trailboss.codec.layout.ENVELOPE`. Accepted bytes are reproduced
exactly; all others are refused with the offset and the rule. Source: docs/spec/sources.md §8; bytes pinned against the
public codec, version 0.6.0. Decision: D-33
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from msgspec.structs import replace

from trailboss.codec.instructions import UNSIGNED, Transaction
from trailboss.codec.kinds import LENGTH, malformed, read_tag
from trailboss.codec.layout import ENVELOPE
from trailboss.primitives.keccak import keccak256
from trailboss.primitives.octets import Hash32

VERSION: Final = 2  # first byte of a transaction
SUBMISSION_OF_TRANSACTIONS: Final = 1  # first byte of a submission that carries transactions

_in_record_order: Final = itemgetter(
    *(tuple(name for name, _ in ENVELOPE).index(field) for field in Transaction.__struct_fields__)
)
_WIRE: Final = "wire"  # what the wire bytes of a transaction are kept as
_UNSIGNED_END: Final = UNSIGNED + bytes(1)
_READERS: Final = tuple(kind.read for _, kind in ENVELOPE)
_WRITERS: Final = tuple((name, kind.write) for name, kind in ENVELOPE)


def encode_transaction(transaction: Transaction) -> bytes:
    """Return the wire bytes of a transaction, signatures included; it keeps them, as those it was decoded from.

    Raises:
        Rejection: ``OVERFLOW`` or ``INVALID_DATA`` if a field does not fit its width on the wire.
    """
    kept = transaction.__dict__
    known: bytes | None = kept.get(_WIRE)
    if known is None:
        out = bytearray((VERSION,))
        for name, write in _WRITERS:
            write(out, getattr(transaction, name), name)
        known = kept[_WIRE] = bytes(out)
    return known


def signing_hash(transaction: Transaction) -> Hash32:
    """Return the Keccak-256 digest of what every signer signs: the wire bytes with all signatures zero.

    It refuses as `encode_transaction`.
    """
    if not transaction.additional_signers and len(transaction.signature) == len(UNSIGNED):
        # The signature is the last but the number of additional signers.
        wire = encode_transaction(transaction)
        return Hash32(keccak256(wire[: -len(_UNSIGNED_END)] + _UNSIGNED_END))
    signers = tuple((address, UNSIGNED) for address, _ in transaction.additional_signers)
    unsigned = replace(transaction, signature=UNSIGNED, additional_signers=signers)
    return Hash32(keccak256(encode_transaction(unsigned)))


def decode_transaction(encoded: bytes) -> Transaction:
    """Return the transaction that ``encoded`` is, to the last byte.

    Raises:
        Rejection: ``UNSUPPORTED_INSTRUCTION`` naming an instruction that this chain does not execute; ``INVALID_DATA``
            with offset and rule for anything but the one encoding of a transaction.
    """
    transaction, end = _read_transaction(encoded, 0)
    if end != len(encoded):
        raise malformed(end, f"{len(encoded) - end} trailing bytes")
    return transaction


def encode_submission(transactions: Sequence[Transaction]) -> bytes:
    """Return the body that submits transactions to a node; refuses as `encode_transaction`."""
    out = bytearray((SUBMISSION_OF_TRANSACTIONS,))
    LENGTH.write(out, len(transactions), "transactions")
    for transaction in transactions:
        out += encode_transaction(transaction)
    return bytes(out)


def decode_submission(encoded: bytes) -> list[Transaction]:
    """Return the transactions of a submission, in order; refuses as `decode_transaction`."""
    kind = read_tag(encoded, 0)
    if kind != SUBMISSION_OF_TRANSACTIONS:
        raise malformed(0, f"a submission of transactions starts with {SUBMISSION_OF_TRANSACTIONS}, not {kind}")
    count, offset = LENGTH.read(encoded, 1)
    if count > len(encoded) - offset:
        raise malformed(1, f"a count of {count} exceeds what the {len(encoded) - offset} bytes left can hold")
    transactions = []
    for _ in range(count):
        transaction, offset = _read_transaction(encoded, offset)
        transactions.append(transaction)
    if offset != len(encoded):
        raise malformed(offset, f"{len(encoded) - offset} trailing bytes")
    return transactions


def _read_transaction(encoded: bytes, offset: int) -> tuple[Transaction, int]:
    start, version = offset, read_tag(encoded, offset)
    if version != VERSION:
        raise malformed(offset, f"a transaction starts with version {VERSION}, not {version}")
    offset += 1
    values = []
    for read in _READERS:
        value, offset = read(encoded, offset)
        values.append(value)
    transaction = Transaction(*_in_record_order(values))
    # There is no other encoding of it, and it is asked for three times on the way into a block.
    transaction.__dict__[_WIRE] = encoded[start:offset]
    return transaction, offset
