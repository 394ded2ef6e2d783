"""Which of the transactions that wait a block is offered."""

from heapq import heappush

from trailboss.mempool.order import Head, Order
from trailboss.mempool.records import Pooled


def choose(order: Order, cycles_max: int, cells_max: int, count_max: int, passed_over_max: int) -> list[Pooled]:
    """Return the best transactions that may all be in one block, those of a sender by nonce.

    What a transaction uses is known when it has run. Here each counts with the least it can use, so that none is left
    out that the block would have had room for; it may turn out to have none for the last of them.

    Complexity: O(log n) for each that is taken or passed over, with n senders.

    Args:
        order: Those that wait.
        cycles_max: Cycles that the block has room for.
        cells_max: Cells that it has room for.
        count_max: Most transactions.
        passed_over_max: Most that fit a block, and this one not any more, before it is left at that.
    """
    chosen: list[Pooled] = []
    followers: list[Head] = []
    cycles = cells = passed_over = 0
    for offer_negated, _, queue, index in order.heads(followers):
        if offer_negated > 0 or len(chosen) == count_max or passed_over > passed_over_max:
            # All that follow are priced out as well, or the block is as good as full.
            break
        pooled = queue.pooled[index]
        transaction = pooled.transaction
        if transaction.cycles_limit > cycles_max or transaction.cells_limit > cells_max:
            continue
        if cycles + transaction.cycles_limit > cycles_max or cells + transaction.cells_limit > cells_max:
            passed_over += 1
            continue
        chosen.append(pooled)
        cycles += pooled.cycles
        cells += pooled.cells
        if queue.at(transaction.nonce + 1) is not None:
            heappush(followers, order.head_at(queue, index + 1))
    return chosen
