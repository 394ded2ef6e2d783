"""The mempool's own rules about what may wait. Those of the chain it has from `trailboss.chain.admission`.

Decision: D-71
"""

from collections.abc import Iterator, Sequence
from functools import partial
from heapq import heappush
from typing import Final, NamedTuple

from trailboss.chain import admission
from trailboss.chain.reader import ChainReader
from trailboss.chain.signature_checks import refusals_of
from trailboss.mempool.order import Contents, Queue, Tail, TipOrder, Worth, merged, offer_of
from trailboss.mempool.records import MempoolLimits, Pooled
from trailboss.model.transactions import Transaction
from trailboss.primitives.errors import Rejection, RejectionReason

WHOLE_PERCENT: Final = 100
OFFERS: Final = ("max_priority_fee_per_cycle", "max_priority_fee_per_cell", "max_fee_per_cycle", "max_fee_per_cell")
"""What a replacement must raise."""
LEAST_RISES: Final = (1, 0, 0, 0)  # by how much at least, in base units: a tenth of nothing is nothing


def verify(view: ChainReader, transactions: Sequence[Transaction]) -> list[Rejection | None]:
    """Check the signatures of transactions, some 40 µs each, and return for each None or why it is refused.

    On a development chain an unsigned transaction passes. Decision: D-69.
    """
    return refusals_of(partial(admission.check_sender, view), transactions)


class Clearance(NamedTuple):
    """That a transaction may come in, and how, until what it was checked against changes."""

    queue: Queue  # of its sender
    present: Pooled | None  # what it would replace there
    needs: admission.Needs
    changes: int  # `TipOrder.changes` when it was checked


def check_entry(
    contents: Contents,
    view: ChainReader,
    transaction: Transaction,
    *,
    limits: MempoolLimits,
    taken: frozenset[bytes],
    is_back: bool = False,
) -> Clearance:
    """Refuse a transaction that could not come in, but for its size, its signature and want of room.

    A transaction ``is_back`` if it has waited before; those ``taken`` are offered to the present block.

    Raises:
        Rejection: As `check_admission`; if another of its nonce waits, ``REPLACEMENT_UNDERPRICED``, or
            ``NONCE_MISMATCH`` where that one is taken.
    """
    standing = admission.standing_of(view, transaction.sender)
    queue = contents.order.queues.get(transaction.sender) or Queue(transaction.sender, standing.nonce)
    present = queue.at(transaction.nonce)
    promised = queue.cost_from(standing.nonce) - (0 if present is None else present.cost)
    ahead = None if is_back else limits.nonces_ahead_max
    needs = admission.check_admission(view, transaction, standing, promised=promised, ahead=ahead)
    if present is not None:
        _check_replacement(present, transaction, limits)
        _check_not_taken(present, taken)
    return Clearance(queue, present, needs, contents.order.changes)


def _check_replacement(present: Pooled, transaction: Transaction, limits: MempoolLimits) -> None:
    for field, least_rise in zip(OFFERS, LEAST_RISES, strict=True):
        before, after = getattr(present.transaction, field), getattr(transaction, field)
        rise = max(-(-before * limits.replacement_percent // WHOLE_PERCENT), least_rise)
        if after < before + rise:
            raise Rejection(
                RejectionReason.REPLACEMENT_UNDERPRICED,
                f"{field} is {after}; to take the place of {present.hash} at nonce {transaction.nonce} it must be "
                f"{before + rise}",
                field=field,
                offered=str(after),
                required=str(before + rise),
                replaces=str(present.hash),
            )


def _check_not_taken(present: Pooled, taken: frozenset[bytes]) -> None:
    """Refuse to take the place of a transaction that a block is being built with."""
    if present.hash in taken:
        nonce = present.transaction.nonce
        what = f"the block that is being built is offered {present.hash}, which has nonce {nonce} already"
        raise Rejection(RejectionReason.NONCE_MISMATCH, what, actual=nonce, offered=str(present.hash))


def find_void(queue: Queue, standing: admission.Standing) -> Iterator[tuple[Pooled, Rejection]]:
    """Yield the transactions of a sender that its account rules out, each with the reason.

    Where the balance does not cover them all, those with the highest nonces go.
    """
    stale = queue.below(standing.nonce)
    yield from ((pooled, admission.nonce_mismatch(pooled.transaction, standing.nonce)) for pooled in stale)
    promised = queue.cost_from(standing.nonce)
    for pooled in reversed(queue.pooled[len(stale) :]):
        if promised <= standing.balance:
            return
        promised -= pooled.cost
        try:
            admission.check_balance(pooled.transaction, standing.balance, promised)
        except Rejection as shortage:
            yield pooled, shortage


def find_room(
    contents: Contents,
    queue: Queue,
    transaction: Transaction,
    size: int,
    present: Pooled | None,
    *,
    limits: MempoolLimits,
    taken: frozenset[bytes],
) -> Sequence[Pooled]:
    """Return what must leave so that a transaction of a size can come; those ``taken`` stay, ``present`` leaves anyway.

    Raises:
        Rejection: ``MEMPOOL_FULL`` if too few are worth less.
    """
    count, size = len(contents.pooled) + 1, contents.size + size
    if present is not None:
        count, size = count - 1, size - len(present.raw)
    is_sender_full = present is None and len(queue.pooled) >= limits.sender_transactions_max
    if count <= limits.transactions_max and size <= limits.bytes_max and not is_sender_full:
        return ()
    crowd = _Crowd(contents.order, limits, taken, count, size)
    if is_sender_full:
        crowd.make_room_of_sender(queue, transaction)
    prices = contents.order.prices
    crowd.make_room(queue.worth(transaction.nonce, offer_of(transaction, prices), prices), present)
    return crowd.leaving


class _Crowd:
    """What must leave, found before anything does, so that a refusal changes nothing."""

    def __init__(self, order: TipOrder, limits: MempoolLimits, taken: frozenset[bytes], count: int, size: int) -> None:
        self.leaving: list[Pooled] = []
        self._gone: set[bytes] = set()
        self._order = order
        self._limits = limits
        self._taken = taken
        # What there is with the new one, and without what it replaces.
        self._count = count
        self._size = size

    def make_room_of_sender(self, queue: Queue, transaction: Transaction) -> None:
        """Remove the last transaction of a sender that has as many as it may, for one that comes before it."""
        last = queue.pooled[-1]
        if last.transaction.nonce < transaction.nonce:
            raise Rejection(
                RejectionReason.MEMPOOL_FULL,
                f"{transaction.sender} has {len(queue.pooled)} transactions waiting, the most that one sender may have",
                transactions=len(queue.pooled),
                transactions_max=self._limits.sender_transactions_max,
            )
        self._leave(last)

    def make_room(self, worth: Worth, present: Pooled | None) -> None:
        """Have those leave that are worth less than the new one, until the mempool is within its limits."""
        followers: list[Tail] = []
        tails = merged(self._order.tails, followers)
        while self._count > self._limits.transactions_max or self._size > self._limits.bytes_max:
            tail = next(tails, None)
            if tail is None or tail[:2] >= worth:
                raise self._full(worth, tail)
            *_, queue, index = tail
            pooled = queue.pooled[index]
            if pooled.hash in self._taken:
                continue
            if pooled is not present and pooled.hash not in self._gone:
                self._leave(pooled)
            if index:
                heappush(followers, self._order.tail_at(queue, index - 1))

    def _leave(self, pooled: Pooled) -> None:
        self.leaving.append(pooled)
        self._gone.add(pooled.hash)
        self._count -= 1
        self._size -= len(pooled.raw)

    def _full(self, worth: Worth, tail: Tail | None) -> Rejection:
        limits = self._limits
        is_count = self._count > limits.transactions_max
        full = f"{limits.transactions_max} transactions" if is_count else f"{limits.bytes_max} bytes"
        required = None
        is_executable, offer = worth
        if not is_executable:
            why = "this one cannot run before others of its sender have come"
        elif tail is None:
            why = "the block that is being built is offered the rest"
        else:
            required = str(tail[1] + 1)
            why = f"this one offers {offer} base units a cycle, with those before it; {required} would make room"
        what = f"the mempool holds {full}, its limit, and {why}"
        return Rejection(RejectionReason.MEMPOOL_FULL, what, offered=str(offer), required=required)
