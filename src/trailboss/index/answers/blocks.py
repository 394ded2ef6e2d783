"""Blocks as people look at them: headers, summaries, and what a block holds, a page at a time."""

from itertools import islice
from typing import Any, Final

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.model.blocks import Block, Header, Origin, ReceiptRecord
from trailboss.model.configs import amount_of
from trailboss.model.transactions import Instruction, Transaction
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.records import Event, Receipt, block_events, event_view, receipt_view

TARGETS: Final = ("actor", "to", "account", "timer_id")
"""Fields of instructions that name what they concern."""


class HeaderView(Struct, frozen=True, kw_only=True):
    """A block's header. Basefees are base units.

    Attributes:
        version: Of its layout.
        chain_id: Of the chain.
        height: 0 for genesis.
        parent: Hash of the block before; zero bytes for genesis.
        timestamp_ms: Milliseconds since 1970.
        proposer: Who gets the tips.
        transactions_root: Merkle root of the transaction hashes.
        receipts_root: Merkle root of the receipts and of the block's own events.
        state_root: Root of the state after the block.
        cycle_basefee: In force in the block.
        cell_basefee: In force in the block.
        cycles_used: By everything in the block.
        cells_used: By everything in the block.
        timer_cycles_used: By timer fires alone.
    """

    version: int
    chain_id: int
    height: int
    parent: Hash32
    timestamp_ms: int
    proposer: Address
    transactions_root: Hash32
    receipts_root: Hash32
    state_root: Hash32
    cycle_basefee: int
    cell_basefee: int
    cycles_used: int
    cells_used: int
    timer_cycles_used: int


class BlockSummary(Struct, frozen=True, kw_only=True):
    """A block in a list. Basefees are base units.

    Attributes:
        height: 0 for genesis.
        hash: Of its header.
        parent: Hash of the block before.
        timestamp_ms: Milliseconds since 1970.
        proposer: Who gets the tips.
        state_root: Root of the state after it.
        cycle_basefee: In force in it.
        cell_basefee: In force in it.
        cycles_used: By everything in it.
        cells_used: By everything in it.
        timer_cycles_used: By timer fires alone.
        transactions: How many it holds.
        receipts: How many it holds: of transactions, fires and messages.
        events: How many it holds: in receipts, and its own.
    """

    height: int
    hash: Hash32
    parent: Hash32
    timestamp_ms: int
    proposer: Address
    state_root: Hash32
    cycle_basefee: int
    cell_basefee: int
    cycles_used: int
    cells_used: int
    timer_cycles_used: int
    transactions: int
    receipts: int
    events: int


class TransactionSummary(Struct, frozen=True, kw_only=True):
    """A transaction of a block.

    Attributes:
        hash: Its hash.
        position: Among the block's transactions, from 0.
        sender: Who signed and paid.
        nonce: The sender's.
        instruction: Kind of its instruction.
        target: Actor, account or timer that it concerns, if there is one.
        handler: That it calls; None for an instruction that calls none.
        status: ``ok`` or ``reverted``.
        cycles_used: Cycles used.
        cells_used: Cells used.
        fee_paid: Base units that it cost.
    """

    hash: Hash32
    position: int
    sender: Address
    nonce: int
    instruction: str
    target: str | None
    handler: str | None
    status: str
    cycles_used: int
    cells_used: int
    fee_paid: int


class BlockView(Struct, frozen=True, kw_only=True):
    """A block. Of each of its lists a page: as many as ``limit`` says, from ``offset`` on.

    Attributes:
        hash: Of its header.
        header: The header.
        transactions: In order.
        receipts: Of transactions, fires and messages, in the order in which they ran.
        events: The block's own: timers that ended or waited without running.
        transaction_count: Transactions in all.
        receipt_count: Receipts in all.
        event_count: Events of its own in all.
        has_decision_record: Whether it chose among due timers; ``/lane`` tells how.
    """

    hash: Hash32
    header: HeaderView
    transactions: tuple[TransactionSummary, ...]
    receipts: tuple[Receipt, ...]
    events: tuple[Event, ...]
    transaction_count: int
    receipt_count: int
    event_count: int
    has_decision_record: bool


def header_view(block: Block) -> HeaderView:
    """Return a block's header."""
    header = block.header
    return HeaderView(
        version=header.version,
        chain_id=header.chain_id,
        transactions_root=Hash32(header.transactions_root),
        receipts_root=Hash32(header.receipts_root),
        **_figures(header),
    )


def block_summary(block: Block) -> BlockSummary:
    """Return a block as a list shows it."""
    return BlockSummary(
        hash=block.hash,
        transactions=len(block.transactions),
        receipts=len(block.receipts),
        events=sum(1 for _ in block_events(block)),
        **_figures(block.header),
    )


def _figures(header: Header) -> dict[str, Any]:
    """Return what a header and a summary share."""
    shared = ("height", "timestamp_ms", "cycles_used", "cells_used", "timer_cycles_used")
    return {name: getattr(header, name) for name in shared} | {
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
    )


def recent_summaries(chain: ChainReader, offset: int, limit: int) -> list[BlockSummary]:
    """Return blocks, the latest first.

    Complexity: O(limit), after the way to the lowest.
    """
    last = chain.height - offset
    first = max(last - limit + 1, 0)
    found = [block_summary(block) for block in islice(chain.blocks.since(first), max(last - first + 1, 0))]
    return found[::-1]


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
    found = next((getattr(instruction, name) for name in TARGETS if hasattr(instruction, name)), None)
    if found is None or isinstance(found, Address):
        return None if found is None else str(found)
    return f"0x{found.hex()}"
