"""Receipts of transactions: of the one that deployed an actor, and of those of a block built for them."""

from collections.abc import Sequence

from msgspec.structs import replace

from trailboss.chain.chain import Chain
from trailboss.chain.reader import ChainReader
from trailboss.model.blocks import Origin
from trailboss.model.transactions import DeployActor, Transaction
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.views.records import Receipt, receipt_view, refusal_view


def deployment_of(chain: ChainReader, address: bytes) -> Receipt:
    """Return the receipt of the transaction that deployed an actor.

    Complexity: O(blocks that hold something) up to that one.

    Raises:
        Rejection: ``ACTOR_NOT_FOUND`` if no transaction of the chain has.
    """
    account = chain.account(address)
    if account is not None and account.code_hash:
        for block in chain.blocks.eventful():
            for transaction, record in zip(block.transactions, block.receipts, strict=False):
                if record.actor == address and isinstance(transaction.instruction, DeployActor):
                    return receipt_view(record, block.height)
    raise Rejection(
        RejectionReason.ACTOR_NOT_FOUND, f"there is no actor at {Address(address)}", actor=str(Address(address))
    )


def build_block(chain: Chain, transactions: Sequence[Transaction]) -> list[Receipt]:
    """Build one block of signed transactions and return a receipt for each, in order.

    If the chain refuses every one of them there is no block: a refusal changes nothing, not even the height.
    """
    # Copies, so that one transaction sent twice gives two receipts.
    offered = [replace(transaction) for transaction in transactions]
    applied = chain.build(offered, unless_refused=True)
    height = applied.block.height
    refused = {id(transaction): rejection for transaction, rejection in applied.refused}
    records = (record for record in applied.block.receipts if record.origin is Origin.TRANSACTION)
    return [
        refusal_view(refused[id(transaction)], transaction.sender, height)
        if id(transaction) in refused
        else receipt_view(next(records), height)
        for transaction in offered
    ]
