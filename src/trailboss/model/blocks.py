"""Headers, receipts and blocks."""

from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct, field

from trailboss.codec.canonical import pack
from trailboss.crypto.digest import domain_digest, merkle_root
from trailboss.model.configs import amount_octets
from trailboss.model.decisions import DecisionRecord
from trailboss.model.events import EventRecord
from trailboss.model.printed import PrintedLine
from trailboss.model.transactions import Transaction
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import Amount, Cells, Cycles

HEADER_VERSION: Final = 1


class Origin(StrEnum):
    """What caused an execution."""

    TRANSACTION = "transaction"
    TIMER = "timer"
    MESSAGE = "message"


class Status(StrEnum):
    """How an execution ended: applied; rolled back and charged; or refused with nothing changed."""

    OK = "ok"
    REVERTED = "reverted"
    REFUSED = "refused"


class ReceiptRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one execution did and cost. Money is in base units.

    Attributes:
        origin: What caused it.
        origin_hash: Hash of the transaction, or of the one that created a deferred one; 32 zero bytes for a timer or a
            message. Spec: CIP-5 §5.2. Decision: D-88.
        sender: Execution identity: the signer; for a timer its actor; for a message the actor that sent it.
        payer: Account that paid.
        status: How it ended.
        error: Why it failed.
        cycles_used: Cycles used, within the limit.
        cells_used: Cells used, within the limit.
        reserved: Taken before the run.
        fee_burned: Burned.
        tip: Paid to the proposer.
        refund: Given back.
        return_value: The handler's answer.
        events: In order.
        timer_id: The timer that fired, or empty.
        actor: The actor that ran, or was deployed; empty for instructions that run none.
        printed: What actors printed meanwhile; outside consensus. Decision: D-89.
    """

    origin: Origin
    origin_hash: bytes
    sender: bytes
    payer: bytes
    status: Status
    error: ErrorObject | None
    cycles_used: Cycles
    cells_used: Cells
    reserved: Amount
    fee_burned: Amount
    tip: Amount
    refund: Amount
    return_value: bytes
    events: tuple[EventRecord, ...]
    timer_id: bytes = b""
    actor: bytes = b""
    printed: tuple[PrintedLine, ...] = ()

    @property
    def fee_paid(self) -> Amount:
        """Base units the execution cost its payer."""
        return Amount(self.fee_burned + self.tip)


class Header(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A block's header. Roots and hashes are 32 bytes, basefees 16 bytes big-endian.

    Attributes:
        version: Version of this layout.
        chain_id: Id of the chain.
        height: 0 for genesis.
        parent: Hash of the header before; 32 zero bytes for genesis.
        timestamp_ms: Milliseconds since 1970.
        proposer: Who gets the tips, 20 bytes.
        transactions_root: Merkle root of the transaction hashes.
        receipts_root: Merkle root of the receipts and of the block's own events.
        state_root: State after the block.
        cycle_basefee: In force in the block.
        cell_basefee: In force in the block.
        cycles_used: By everything in the block.
        cells_used: By everything in the block.
        timer_cycles_used: By timer fires alone.
    """

    version: int
    chain_id: int
    height: int
    parent: bytes
    timestamp_ms: int
    proposer: bytes
    transactions_root: bytes
    receipts_root: bytes
    state_root: bytes
    cycle_basefee: bytes
    cell_basefee: bytes
    cycles_used: int
    cells_used: int
    timer_cycles_used: int


class Block(Struct, frozen=True, kw_only=True):
    """A block and its results.

    Attributes:
        header: Its header.
        hash: Hash of the header.
        transactions: In order, without refused ones.
        receipts: One per transaction, then one per fire, then one per message, in the order they ran.
        events: The block's own events: timers that ended or waited without running. Decision: D-38.
        decisions: How it chose among its due timers; outside consensus, None if it had no choice. Decision: D-53.
        printed: What queried gas bidding agents printed; outside consensus. Decision: D-89.
    """

    header: Header
    hash: Hash32
    transactions: tuple[Transaction, ...] = ()
    receipts: tuple[ReceiptRecord, ...] = ()
    events: tuple[EventRecord, ...] = field(default=())
    decisions: DecisionRecord | None = None
    printed: tuple[PrintedLine, ...] = ()

    @property
    def height(self) -> int:
        """Height of the block."""
        return self.header.height


def header_hash(header: Header) -> Hash32:
    """Return the hash of a header."""
    return Hash32(domain_digest(b"cowboy-header-v1", pack(header)))


def receipts_root(receipts: tuple[ReceiptRecord, ...], events: tuple[EventRecord, ...]) -> Hash32:
    """Return the Merkle root of the receipts, in order, and then of the block's own events.

    A receipt commits to its error's code and slug, not to its words: an exception's text depends on the interpreter's
    version.

    Spec: CIP-5 §7
    Decision: D-46
    """
    leaves = [pack(_committed(receipt)) for receipt in receipts]
    leaves.extend(pack(event) for event in events)
    return merkle_root(leaves)


def _committed(receipt: ReceiptRecord) -> list[object]:
    error = None if receipt.error is None else [receipt.error.code, receipt.error.slug]
    return [
        receipt.origin,
        receipt.origin_hash,
        receipt.sender,
        receipt.payer,
        receipt.status,
        error,
        receipt.cycles_used,
        receipt.cells_used,
        amount_octets(receipt.fee_burned),
        amount_octets(receipt.tip),
        amount_octets(receipt.refund),
        receipt.return_value,
        receipt.timer_id,
        receipt.actor,
        receipt.events,
    ]
