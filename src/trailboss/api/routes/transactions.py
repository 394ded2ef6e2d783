"""Transactions: in blocks and waiting, with their results."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from trailboss.api.errors import missing
from trailboss.api.operations import NOT_FOUND, Call, Routes
from trailboss.api.requests import LIMIT_DEFAULT, Limit, Offset
from trailboss.api.routes.submission import INCLUDED, WAITING
from trailboss.api.transaction_shape import TRANSACTION_ANSWER
from trailboss.index.answers.blocks import target_of
from trailboss.index.answers.transactions import TransactionReceipt, find_transaction, receipt_of, transaction_document
from trailboss.index.records import IndexedTransaction
from trailboss.mempool import Pooled, Statistics
from trailboss.model.blocks import Block
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.shared_fields import extended

routes: Final = Routes("transactions")
ENDED: Final = "ended"


class WaitingTransaction(Struct, frozen=True, kw_only=True):
    """A transaction that waits for a block."""

    hash: Hash32  # its hash
    sender: Address  # who signed, and pays
    nonce: int  # the sender's
    instruction: str  # kind of its instruction
    target: str | None  # actor, account or timer that it concerns, if there is one
    handler: str | None  # that it calls; None for an instruction that calls none
    max_fee_per_cycle: int  # most base units that a cycle may cost
    max_priority_fee_per_cycle: int  # tip a cycle
    bytes: int  # its size
    admitted_height: int  # height of the chain when it came


class MempoolPage(Struct, frozen=True):
    """Transactions that wait, in the order in which they came."""

    total_count: int
    statistics: Statistics  # how much waits
    transactions: list[WaitingTransaction]


class MempoolAnswer(Struct, frozen=True, kw_only=True):
    """What became of a transaction that was sent."""

    hash: Hash32  # its hash
    status: str  # ``waiting``; ``included`` in a block; or ``ended`` without one
    block_height: int | None = None  # of the block that holds it; None if none does
    error: ErrorObject | None = None  # why its wait has ended; None unless it has ended without a block
    waiting: WaitingTransaction | None = None  # what waits; None if it does not


@routes.get("/transaction/{hash}", refuses=NOT_FOUND)
def transaction(call: Call, *, hash: Hash32) -> Annotated[dict[str, Any], Meta(extra_json_schema=TRANSACTION_ANSWER)]:
    """Return a transaction of a block."""
    block, found = _find(call, hash)
    return transaction_document(block.transactions[found.position], found.hash, block.height, found.position)


@routes.get("/transaction/{hash}/receipt", refuses=NOT_FOUND)
def receipt(call: Call, *, hash: Hash32) -> TransactionReceipt:
    """Return what a transaction of a block did and cost."""
    block, found = _find(call, hash)
    return receipt_of(block, found)


@routes.get("/mempool/transaction/{hash}", refuses=NOT_FOUND)
async def mempool_transaction(call: Call, *, hash: Hash32) -> MempoolAnswer:
    """Return the state of a submitted transaction: waiting, in a block, or ended with a reason."""
    # What has left the mempool is in a block of the view that is taken after this.
    pooled = call.node.mempool.find(hash)
    place = call.node.index.transaction(hash, call.view.height)
    rejection = call.node.mempool.refusal(hash)
    if place is not None:
        return MempoolAnswer(hash=hash, status=INCLUDED, block_height=place.height)
    if pooled is not None:
        return MempoolAnswer(hash=hash, status=WAITING, waiting=waiting_view(pooled))
    if rejection is None:
        raise missing(f"no transaction {hash} waits, and none is in a block", transaction=str(hash))
    return MempoolAnswer(hash=hash, status=ENDED, error=rejection.error())


@routes.get("/mempool")
def mempool(call: Call, *, offset: Offset = 0, limit: Limit = LIMIT_DEFAULT) -> MempoolPage:
    """List waiting transactions, in the order in which they came."""
    pool = call.node.mempool
    statistics = pool.statistics()
    return MempoolPage(statistics.transactions, statistics, [waiting_view(each) for each in pool.page(offset, limit)])


def waiting_view(pooled: Pooled) -> WaitingTransaction:
    """Return a transaction that waits, as a list shows it."""
    found = pooled.transaction
    return extended(
        WaitingTransaction,
        found,
        hash=pooled.hash,
        instruction=found.instruction.name,
        target=target_of(found.instruction),
        handler=getattr(found.instruction, "handler", None),
        bytes=len(pooled.raw),
        admitted_height=pooled.admitted_height,
    )


def _find(call: Call, tx_hash: Hash32) -> tuple[Block, IndexedTransaction]:
    waits = call.node.mempool.find(tx_hash) is not None
    found = find_transaction(call.view, call.node.index, tx_hash)
    if found is None:
        hint = f"; it waits, see /mempool/transaction/{tx_hash}" if waits else ""
        raise missing(f"no block holds a transaction {tx_hash}{hint}", transaction=str(tx_hash))
    return found
