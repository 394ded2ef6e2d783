"""What the mempool holds: each transaction under its hash, in its sender's queue, and by its age.

Decision: D-71
"""

from collections import OrderedDict
from collections.abc import Sequence

from sortedcontainers import SortedDict

from trailboss.mempool.order import Order, Queue
from trailboss.mempool.records import End, Ending, Pooled
from trailboss.primitives.errors import Rejection


class Contents:
    """Transactions that wait, and why the last ones that do not any more were given up. Knows no threads.

    Attributes:
        pooled: By hash; in order of arrival.
        order: Their order.
        size: Their wire bytes.
        arrivals: How many have come so far.
        refusals: Why those that ended last were given up, by hash.
    """

    def __init__(self, remembered_max: int) -> None:
        """Begin with nothing, and remember so many refusals."""
        self.pooled: dict[bytes, Pooled] = {}
        self.order = Order()
        self.size = 0
        self.arrivals = 0
        self.refusals: OrderedDict[bytes, Rejection] = OrderedDict()
        self._remembered_max = remembered_max
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
        """Remove transactions that are there; tell how the wait of each ended."""
        endings: list[Ending] = []
        queues: dict[bytes, Queue] = {}
        for pooled, end, rejection in over:
            sender = pooled.transaction.sender
            queue = queues[sender] = self.order.queues[sender]
            queue.remove(pooled)
            self._drop(pooled)
            if rejection is not None:
                self.remember(pooled.hash, rejection)
            endings.append(Ending(hash=pooled.hash, end=end, rejection=rejection))
        for queue in queues.values():
            self.order.refresh(queue)
        return endings

    def _drop(self, pooled: Pooled) -> None:
        del self.pooled[pooled.hash]
        self.size -= len(pooled.raw)
        of_its_age = self._by_height[pooled.admitted_height]
        del of_its_age[pooled.hash]
        if not of_its_age:
            del self._by_height[pooled.admitted_height]

    def remember(self, name: bytes, rejection: Rejection) -> None:
        """Remember why a transaction was given up, and forget the one that has been remembered for longest."""
        self.refusals[name] = rejection
        if len(self.refusals) > self._remembered_max:
            self.refusals.popitem(last=False)

    def older_than(self, height: int) -> list[Pooled]:
        """Return those that came below a height."""
        ages = self._by_height.irange(maximum=height, inclusive=(True, False))
        return [pooled for age in ages for pooled in self._by_height[age].values()]
