"""The transactions that wait: in which order they come into a block, and in which order they make room.

A sender's transactions can run in the order of their nonces only. So a block takes the best of those that are next,
then the best of those that are next after that. Room is made from the other end, by the last transaction of a sender:
the one that is worth least. What a transaction is worth is the lowest offer among it and all that must run before it.
Decision: D-71.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, Final, TypeVar

from msgspec import Struct, field
from sortedcontainers import SortedDict, SortedList

from trailboss.mempool.records import End, Ending, Pooled
from trailboss.model.transactions import Transaction
from trailboss.primitives.bounded import BoundedDict
from trailboss.primitives.errors import Rejection

Prices = tuple[int, int]  # basefees of the next block, per cycle and per cell, in base units
PRICED_OUT: Final = -1

Place = TypeVar("Place", "Head", "Tail")


def offer_of(transaction: Transaction, prices: Prices) -> int:
    """Return the effective tip per cycle, in base units; negative if a fee cap does not cover its basefee."""
    cycle_basefee, cell_basefee = prices
    if transaction.max_fee_per_cell < cell_basefee:
        return PRICED_OUT
    return min(transaction.max_priority_fee_per_cycle, transaction.max_fee_per_cycle - cycle_basefee)


Worth = tuple[bool, int]
"""What keeps a transaction in the mempool: whether no nonce is missing before it, and the lowest offer among it
and those before it. Of two the greater stays."""


class Queue(Struct, eq=False):
    """What waits of one sender, by nonce; ``nonce`` is the account's when it was looked at last, and none is lower."""

    sender: bytes
    nonce: int
    pooled: list[Pooled] = field(default_factory=list)
    cost: int = 0  # base units that all can cost at most
    _nonces: list[int] = field(default_factory=list)
    # The lowest offer up to each place, as far as it has been asked for, and the basefees it was asked for.
    _lowest: list[int] = field(default_factory=list)
    _lowest_at: Prices | None = None

    def at(self, nonce: int) -> Pooled | None:
        """Return the transaction of a nonce, or None."""
        index = bisect_left(self._nonces, nonce)
        return self.pooled[index] if index < len(self.pooled) and self._nonces[index] == nonce else None

    def put(self, pooled: Pooled) -> None:
        """Add a transaction; there is none of its nonce."""
        index = bisect_left(self._nonces, pooled.transaction.nonce)
        self._nonces.insert(index, pooled.transaction.nonce)
        self.pooled.insert(index, pooled)
        self.cost += pooled.cost
        del self._lowest[index:]

    def remove(self, pooled: Pooled) -> None:
        """Remove a transaction that is there."""
        index = bisect_left(self._nonces, pooled.transaction.nonce)
        del self._nonces[index], self.pooled[index], self._lowest[index:]
        self.cost -= pooled.cost

    def below(self, nonce: int) -> list[Pooled]:
        """Return those of lower nonces."""
        return self.pooled[: bisect_left(self._nonces, nonce)]

    def cost_from(self, nonce: int) -> int:
        """Return the base units that those from a nonce on can cost at most."""
        return self.cost - sum(pooled.cost for pooled in self.pooled[: bisect_left(self._nonces, nonce)])

    def next_nonce(self, nonce: int) -> int:
        """Return the first nonce from one on of which there is no transaction."""
        first = bisect_left(self._nonces, nonce)
        count = len(self.pooled) - first
        if count and self._nonces[-1] != nonce + count - 1:
            return next(wanted for wanted, present in enumerate(self._nonces[first:], nonce) if present != wanted)
        return nonce + count

    def worth(self, nonce: int, offer: int, prices: Prices) -> Worth:
        """Return what a transaction of a nonce and an offer is worth."""
        before = bisect_left(self._nonces, nonce)
        lowest = min(offer, self._lowest_before(before, prices)) if before else offer
        return self.next_nonce(self.nonce) >= nonce, lowest

    def _lowest_before(self, index: int, prices: Prices) -> int:
        if prices != self._lowest_at:
            self._lowest, self._lowest_at = [], prices
        lowest = self._lowest
        for pooled in self.pooled[len(lowest) : index]:
            offer = offer_of(pooled.transaction, prices)
            lowest.append(min(lowest[-1], offer) if lowest else offer)
        return lowest[index - 1]


Head = tuple[int, int, Queue, int]
"""One that may be next: its offer negated, its arrival, its queue and its place there. The least comes first."""
Tail = tuple[bool, int, int, Queue, int]
"""One that may make room: its worth, its arrival negated, its queue and its place there. The least goes first."""

Start = tuple[Head | None, int]
"""The first place of a queue, if it may be next, and how many of its transactions have no nonce missing before them."""
NOWHERE: Final[Start] = (None, 0)


class TipOrder:
    """All queues, and which is first and last among them at the present basefees; no queue is empty.

    Attributes:
        heads: The places that are next, the best first.
        changes: How often a queue has changed, or anything else that an admission depends on.
    """

    def __init__(self) -> None:
        self.queues: dict[bytes, Queue] = {}
        self.executable = self.changes = 0
        self.prices: Prices = (0, 0)
        self.heads: SortedList[Head] = SortedList()
        self._starts: dict[bytes, Start] = {}
        # Only a full mempool makes room: until it asks, at present basefees, its transactions need no order of leaving.
        self._tails: SortedList[Tail] | None = None
        self._ends: dict[bytes, Tail] = {}

    @property
    def tails(self) -> SortedList[Tail]:
        """The places that make room, the least worth first. Complexity: O(n log n) for n senders once for basefees."""
        if self._tails is None:
            self._ends = {sender: self._end(queue) for sender, queue in self.queues.items()}
            self._tails = SortedList(self._ends.values())
        return self._tails

    def reprice(self, prices: Prices) -> None:
        """Order again for other basefees. Complexity: O(n log n) for n senders if they are others, else O(1)."""
        if prices == self.prices:
            return
        self.prices, self._tails = prices, None
        self._starts = {sender: self._start(queue) for sender, queue in self.queues.items()}
        self.heads = SortedList(head for head, _ in self._starts.values() if head is not None)

    def refresh(self, queue: Queue) -> None:
        """Put a queue that has changed into its place, or out of it if it is empty.

        Complexity: O(log n) for n senders, and the transactions of the queue that come after the change.
        """
        self.changes += 1
        sender = queue.sender
        was_head, was_executable = self._starts.pop(sender, NOWHERE)
        head, executable = NOWHERE
        if queue.pooled:
            self.queues[sender] = queue
            head, executable = self._starts[sender] = self._start(queue)
        else:
            self.queues.pop(sender, None)
        self.executable += executable - was_executable
        if head != was_head:
            _exchange(self.heads, was_head, head)
        if self._tails is not None:
            was_end, end = self._ends.pop(sender, None), None
            if queue.pooled:
                end = self._ends[sender] = self._end(queue)
            _exchange(self._tails, was_end, end)

    def head_at(self, queue: Queue, index: int) -> Head:
        """Return a place among those that may be next."""
        pooled = queue.pooled[index]
        return (-offer_of(pooled.transaction, self.prices), pooled.arrival, queue, index)

    def tail_at(self, queue: Queue, index: int) -> Tail:
        """Return a place among those that may make room."""
        pooled = queue.pooled[index]
        offer = offer_of(pooled.transaction, self.prices)
        return (*queue.worth(pooled.transaction.nonce, offer, self.prices), -pooled.arrival, queue, index)

    def _start(self, queue: Queue) -> Start:
        executable = queue.next_nonce(queue.nonce) - queue.nonce
        return self.head_at(queue, 0) if executable else None, executable

    def _end(self, queue: Queue) -> Tail:
        return self.tail_at(queue, len(queue.pooled) - 1)


def _exchange(places: SortedList[Any], before: Place | None, after: Place | None) -> None:
    if before is not None:
        places.remove(before)
    if after is not None:
        places.add(after)


def merged(places: Iterable[Place], followers: list[Place]) -> Iterator[Place]:
    """Yield places in order, and between them what is pushed onto the heap of followers meanwhile."""
    for place in places:
        while followers and followers[0] < place:
            yield heappop(followers)
        yield place
    while followers:
        yield heappop(followers)


def choose(order: TipOrder, cycles_max: int, cells_max: int, count_max: int, passed_over_max: int) -> list[Pooled]:
    """Return the best transactions that may all be in one block, those of a sender by nonce.

    What a transaction uses is known when it has run. Here each counts with the least it can use, so that none is left
    out that the block would have had room for; it may turn out to have none for the last of them. The search ends once
    more than ``passed_over_max`` have been passed over that would fit an empty block. Complexity: O(log n) for each
    that is taken or passed over, with n senders.
    """
    chosen: list[Pooled] = []
    followers: list[Head] = []
    cycles = cells = passed_over = 0
    for offer_negated, _, queue, index in merged(order.heads, followers):
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


class Contents:
    """What waits, by hash in order of arrival, and why others were given up; not for several threads."""

    def __init__(self, remembered_max: int) -> None:
        self.pooled: dict[bytes, Pooled] = {}
        self.order = TipOrder()
        self.size = 0
        self.arrivals = 0
        self.refusals: BoundedDict[bytes, Rejection] = BoundedDict(remembered_max)
        self._by_height: SortedDict[int, dict[bytes, Pooled]] = SortedDict()

    def put(self, queue: Queue, pooled: Pooled) -> None:
        """Add a transaction to the queue of its sender."""
        self.arrivals += 1
        self.pooled[pooled.hash] = pooled
        self._by_height.setdefault(pooled.admitted_height, {})[pooled.hash] = pooled
        self.size += len(pooled.raw)
        self.refusals.pop(pooled.hash, None)
        queue.put(pooled)
        self.order.refresh(queue)

    def end(self, over: Sequence[tuple[Pooled, End, Rejection | None]]) -> list[Ending]:
        """Remove transactions that are there, and return the ending of each."""
        endings: list[Ending] = []
        queues: dict[bytes, Queue] = {}
        for pooled, end, rejection in over:
            sender = pooled.transaction.sender
            queue = queues[sender] = self.order.queues[sender]
            queue.remove(pooled)
            del self.pooled[pooled.hash]
            self.size -= len(pooled.raw)
            of_its_age = self._by_height[pooled.admitted_height]
            del of_its_age[pooled.hash]
            if not of_its_age:
                del self._by_height[pooled.admitted_height]
            if rejection is not None:
                self.refusals[pooled.hash] = rejection
            endings.append(Ending(hash=pooled.hash, end=end, rejection=rejection))
        for queue in queues.values():
            self.order.refresh(queue)
        return endings

    def older_than(self, height: int) -> list[Pooled]:
        """Return those that came below a height."""
        ages = self._by_height.irange(maximum=height, inclusive=(True, False))
        return [pooled for age in ages for pooled in self._by_height[age].values()]
