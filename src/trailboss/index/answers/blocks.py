"""Blocks as people look at them: headers, summaries, and what a block holds, a page at a time."""

from typing import Any

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.index import row_builder
from trailboss.model.blocks import Block, Header, Origin, ReceiptRecord
from trailboss.model.configs import amount_of
from trailboss.model.transactions import Instruction, Transaction
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.records import Event, Receipt, block_events, event_view, receipt_view
from trailboss.views.shared_fields import extended


class HeaderView(Struct, frozen=True, kw_only=True):
    """A block's header. Basefees are base units."""

    version: int  # of its layout
    chain_id: int  # of the chain
    height: int  # 0 for genesis
    parent: Hash32  # hash of the block before; zero bytes for genesis
    timestamp_ms: int  # milliseconds since 1970
    proposer: Address  # who gets the tips
    transactions_root: Hash32  # merkle root of the transaction hashes
    receipts_root: Hash32  # merkle root of the receipts and of the block's own events
    state_root: Hash32  # root of the state after the block
    cycle_basefee: int  # in force in the block
    cell_basefee: int  # in force in the block
    cycles_used: int  # by everything in the block
    cells_used: int  # by everything in the block
    timer_cycles_used: int  # by timer fires alone


class BlockSummary(Struct, frozen=True, kw_only=True):
    """A block in a list. Basefees are base units."""

    height: int  # 0 for genesis
    hash: Hash32  # of its header
    parent: Hash32  # hash of the block before
    timestamp_ms: int  # milliseconds since 1970
    proposer: Address  # who gets the tips
    state_root: Hash32  # root of the state after it
    cycle_basefee: int  # in force in it
    cell_basefee: int  # in force in it
    cycles_used: int  # by everything in it
    cells_used: int  # by everything in it
    timer_cycles_used: int  # by timer fires alone
    transactions: int  # how many it holds
    receipts: int  # how many it holds: of transactions, fires and messages
    events: int  # how many it holds: in receipts, and its own
    is_header_only: bool  # whether this node joined the network at it, and does not know what it holds


class TransactionSummary(Struct, frozen=True, kw_only=True):
    """A transaction of a block."""

    hash: Hash32  # its hash
    position: int  # among the block's transactions, from 0
    sender: Address  # who signed and paid
    nonce: int  # the sender's
    instruction: str  # kind of its instruction
    target: str | None  # actor, account or timer that it concerns, if there is one
    handler: str | None  # that it calls; None for an instruction that calls none
    status: str  # ``ok`` or ``reverted``
    cycles_used: int  # cycles used
    cells_used: int  # cells used
    fee_paid: int  # base units that it cost


class BlockView(Struct, frozen=True, kw_only=True):
    """A block. Of each of its lists a page: as many as ``limit`` says, from ``offset`` on."""

    hash: Hash32  # of its header
    header: HeaderView  # the header
    transactions: tuple[TransactionSummary, ...]  # in order
    receipts: tuple[Receipt, ...]  # of transactions, fires and messages, in the order in which they ran
    events: tuple[Event, ...]  # the block's own: timers that ended or waited without running
    transaction_count: int  # transactions in all
    receipt_count: int  # receipts in all
    event_count: int  # events of its own in all
    has_decision_record: bool  # whether it chose among due timers; ``/lane`` shows how
    is_header_only: bool  # whether this node joined the network at it, and does not know what it holds


def header_view(block: Block) -> HeaderView:
    """Return a block's header."""
    header = block.header
    roots = {name: Hash32(getattr(header, name)) for name in ("transactions_root", "receipts_root")}
    return extended(HeaderView, header, **roots, **_figures(header))


def block_summary(block: Block) -> BlockSummary:
    """Return a block as a list shows it."""
    figures: dict[str, Any] = {
        "transactions": len(block.transactions),
        "receipts": len(block.receipts),
        "events": sum(1 for _ in block_events(block)),
        "is_header_only": block.is_header_only,
    }
    return extended(BlockSummary, block.header, hash=block.hash, **figures, **_figures(block.header))


def _figures(header: Header) -> dict[str, Any]:
    return {
        "parent": Hash32(header.parent),
        "proposer": Address(header.proposer),
        "state_root": Hash32(header.state_root),
        "cycle_basefee": amount_of(header.cycle_basefee),
        "cell_basefee": amount_of(header.cell_basefee),
    }


def block_view(block: Block, offset: int, limit: int) -> BlockView:
    """Return a block, and of what it holds a page."""
    page = slice(offset, offset + limit)
    return BlockView(
        hash=block.hash,
        header=header_view(block),
        transactions=tuple(transaction_summaries(block, offset, limit)),
        receipts=tuple(receipt_view(receipt, block.height) for receipt in block.receipts[page]),
        events=tuple(event_view(event, block.height) for event in block.events[page]),
        transaction_count=len(block.transactions),
        receipt_count=len(block.receipts),
        event_count=len(block.events),
        has_decision_record=block.decisions is not None,
        is_header_only=block.is_header_only,
    )


def recent_summaries(chain: ChainReader, offset: int, limit: int) -> list[BlockSummary]:
    """Return blocks, the latest first. Complexity: O(limit), after the way to the lowest."""
    last = chain.height - offset
    first = max(last - limit + 1, 0)
    return [block_summary(block) for block in reversed(chain.blocks[first : max(last + 1, 0)])]


def transaction_summaries(block: Block, offset: int, limit: int) -> list[TransactionSummary]:
    """Return some of a block's transactions, in order."""
    records = transaction_receipts(block)[offset : offset + limit]
    transactions = block.transactions[offset : offset + limit]
    pairs = zip(transactions, records, strict=True)
    return [_summary(transaction, record, offset + at) for at, (transaction, record) in enumerate(pairs)]


def transaction_receipts(block: Block) -> list[ReceiptRecord]:
    """Return the receipts of a block's transactions, in the order of these. Spec: CIP-1v1 §3 (fires run among them)."""
    return [receipt for receipt in block.receipts if receipt.origin is Origin.TRANSACTION]


def _summary(transaction: Transaction, record: ReceiptRecord, position: int) -> TransactionSummary:
    instruction = transaction.instruction
    return TransactionSummary(
        hash=Hash32(record.origin_hash),
        position=position,
        sender=transaction.sender,
        nonce=transaction.nonce,
        instruction=instruction.name,
        target=target_of(instruction),
        handler=getattr(instruction, "handler", None),
        status=record.status.value,
        cycles_used=record.cycles_used,
        cells_used=record.cells_used,
        fee_paid=record.fee_paid,
    )


def target_of(instruction: Instruction) -> str | None:
    """Return the actor, account or timer that an instruction concerns, in text; None if it concerns none."""
    found = row_builder.target_of(instruction) or getattr(instruction, "timer_id", None)
    return None if found is None else str(found) if isinstance(found, Address) else f"0x{found.hex()}"
