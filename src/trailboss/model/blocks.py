"""Headers, receipts and blocks."""

from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct, field

from trailboss.codec.canonical import pack
from trailboss.crypto.digest import domain_digest, merkle_root
from trailboss.model.configs import amount_octets
from trailboss.model.decisions import DecisionRecord
from trailboss.model.events import EventRecord, PrintedLine
from trailboss.model.transactions import Transaction
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import Amount, Cells, Cycles

HEADER_VERSION: Final = 1
_NO_RECEIPTS: Final = bytes(Hash32.WIDTH)  # root over no receipts


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


class ReceiptRecord(msgspec.Struct, frozen=True, gc=False):
    """What one execution did and cost. Money is in base units."""

    origin: Origin
    origin_hash: bytes
    """Hash of the transaction, or of the one that created a deferred one; 32 zero bytes for a timer or a message.
    Spec: CIP-5 §5.2. Decision: D-88.
    """
    sender: bytes  # execution identity: the signer; for a timer its actor; for a message the actor that sent it
    payer: bytes  # account that paid
    status: Status
    error: ErrorObject | None  # why it failed
    cycles_used: Cycles  # cycles used, within the limit
    cells_used: Cells  # cells used, within the limit
    reserved: Amount  # taken before the run
    fee_burned: Amount
    tip: Amount  # paid to the proposer
    refund: Amount  # given back
    return_value: bytes  # the handler's answer
    events: tuple[EventRecord, ...]
    timer_id: bytes = b""  # the timer that fired, or empty
    actor: bytes = b""  # the actor that ran, or was deployed; empty for instructions that run none
    printed: tuple[PrintedLine, ...] = ()  # what actors printed meanwhile; outside consensus. Decision: D-89.

    @property
    def fee_paid(self) -> Amount:
        """Base units the execution cost its payer."""
        return Amount(self.fee_burned + self.tip)


class CommittedReceipt(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What the receipts root commits to of a receipt: an error's code and slug, and not its words.

    An exception's text depends on the interpreter's version. Amounts are 16 bytes big-endian. Decision: D-46.
    """

    origin: Origin
    origin_hash: bytes
    sender: bytes
    payer: bytes
    status: Status
    error: tuple[int, str] | None
    cycles_used: int
    cells_used: int
    fee_burned: bytes
    tip: bytes
    refund: bytes
    return_value: bytes
    timer_id: bytes
    actor: bytes
    events: tuple[EventRecord, ...]


class Header(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A block's header. Roots and hashes are 32 bytes, basefees 16 bytes big-endian."""

    version: int  # version of this layout
    chain_id: int  # id of the chain
    height: int  # 0 for genesis
    parent: bytes  # hash of the header before; 32 zero bytes for genesis
    timestamp_ms: int  # milliseconds since 1970
    proposer: bytes  # who gets the tips, 20 bytes
    transactions_root: bytes  # Merkle root of the transaction hashes
    receipts_root: bytes  # Merkle root of the receipts and of the block's own events
    state_root: bytes  # state after the block
    cycle_basefee: bytes  # in force in the block
    cell_basefee: bytes  # in force in the block
    cycles_used: int  # by everything in the block
    cells_used: int  # by everything in the block
    timer_cycles_used: int  # by timer fires alone


class Block(Struct, frozen=True, kw_only=True):
    """A block and its results."""

    header: Header
    hash: Hash32  # hash of the header
    transactions: tuple[Transaction, ...] = ()  # in order, without refused ones
    receipts: tuple[ReceiptRecord, ...] = ()  # of transactions, then fires, then messages, in the order they ran
    events: tuple[EventRecord, ...] = field(default=())  # its own: timers that ended or waited unrun. Decision: D-38.
    decisions: DecisionRecord | None = None  # its choice among due timers; outside consensus. Decision: D-53.
    printed: tuple[PrintedLine, ...] = ()  # what queried gas bidding agents printed; outside consensus. Decision: D-89.

    @property
    def height(self) -> int:
        """Height of the block."""
        return self.header.height

    @property
    def is_header_only(self) -> bool:
        """Whether it lacks what its header commits to: a node that joined by a snapshot has its first block so.

        Decision: D-105
        """
        has_content = bool(self.receipts or self.events)
        return not has_content and self.header.receipts_root != _NO_RECEIPTS


def header_hash(header: Header) -> Hash32:
    """Return the hash of a header."""
    return Hash32(domain_digest(b"cowboy-header-v1", pack(header)))


def receipts_root(receipts: tuple[ReceiptRecord, ...], events: tuple[EventRecord, ...]) -> Hash32:
    """Return the Merkle root of `receipt_leaves`. Spec: CIP-5 §7."""
    return merkle_root(receipt_leaves(receipts, events))


def receipt_leaves(receipts: tuple[ReceiptRecord, ...], events: tuple[EventRecord, ...]) -> list[bytes]:
    """Return what a header commits to of a block's results: its receipts, in order, and then its own events.

    Decision: D-46.
    """
    leaves = []
    for receipt in receipts:
        committed = CommittedReceipt(
            receipt.origin,
            receipt.origin_hash,
            receipt.sender,
            receipt.payer,
            receipt.status,
            None if receipt.error is None else (receipt.error.code, receipt.error.slug),
            receipt.cycles_used,
            receipt.cells_used,
            amount_octets(receipt.fee_burned),
            amount_octets(receipt.tip),
            amount_octets(receipt.refund),
            receipt.return_value,
            receipt.timer_id,
            receipt.actor,
            receipt.events,
        )
        leaves.append(pack(committed))
    leaves.extend(pack(event) for event in events)
    return leaves
