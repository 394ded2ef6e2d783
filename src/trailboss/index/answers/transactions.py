"""Transactions as people look at them: those in blocks, those that wait, and what came of them."""

from typing import Any

from trailboss.chain.view import ChainView
from trailboss.codec.textual import to_json
from trailboss.index import Index
from trailboss.index.records import IndexedTransaction
from trailboss.model.blocks import Block
from trailboss.model.transactions import Transaction
from trailboss.primitives.octets import Hash32
from trailboss.views.records import Receipt, receipt_view
from trailboss.views.shared_fields import extended


class TransactionReceipt(Receipt, frozen=True):
    """What a transaction did and cost. Amounts are base units."""

    tx_hash: Hash32  # the transaction's hash
    position: int  # its place among the block's transactions, from 0


def transaction_document(
    transaction: Transaction, tx_hash: Hash32, block_height: int | None, position: int | None
) -> dict[str, Any]:
    """Return a transaction in the public JSON shape, with where it is.

    Height and position of the block that holds it are None while it waits.
    """
    place = {"hash": str(tx_hash), "block_height": block_height, "position": position}
    return place | to_json(transaction)


def find_transaction(view: ChainView, index: Index, tx_hash: Hash32) -> tuple[Block, IndexedTransaction] | None:
    """Return the block that holds a transaction, and where in it that stands; None if none does.

    The index may be a branch ahead of the view for a moment.

    Raises:
        ViewGoneError: If the chain has gone back behind the view.
    """
    found = index.transaction(tx_hash, view.height)
    if found is None:
        return None
    block = view.blocks[found.height]
    is_there = found.receipt < len(block.receipts) and block.receipts[found.receipt].origin_hash == tx_hash
    return (block, found) if is_there else None


def receipt_of(block: Block, place: IndexedTransaction) -> TransactionReceipt:
    """Return the receipt of a block's transaction."""
    view = receipt_view(block.receipts[place.receipt], block.height)
    return extended(TransactionReceipt, view, tx_hash=place.hash, position=place.position)
