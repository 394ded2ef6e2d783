"""What is done with the chain, a step at a time, and how each step is made known. All of it on the chain thread."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain as chained
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from trailboss.chain import Chain, Snapshot
from trailboss.chain.view import ChainView
from trailboss.index import Index
from trailboss.mempool import Mempool, Pooled
from trailboss.model.blocks import Block
from trailboss.model.transactions import Transaction
from trailboss.node.options import Clock, NodeOptions
from trailboss.node.step import Published
from trailboss.primitives.errors import Rejection, RejectionReason, TrailbossError
from trailboss.primitives.octets import Hash32

BATCH_BLOCKS: Final = 256
"""Blocks without transactions that are made known together."""
ADVANCE_MAX: Final = 10_000_000
"""Blocks that one request may have built."""
NANOSECONDS_PER_MS: Final = 1_000_000
NANOSECONDS_PER_SECOND: Final = 1_000_000_000


NOTHING: Final[Mapping[Hash32, Rejection]] = MappingProxyType({})


class StoppingError(TrailbossError):
    """The node is stopping, and does not begin or finish what was asked of it."""


class Surroundings(Struct, frozen=True):
    """What a builder knows of the world outside the chain.

    Attributes:
        now: Nanoseconds of a clock that never goes back.
        wall: Nanoseconds since 1970.
        announce: Called after each step; it may wait until those who listen have caught up.
        is_stopping: Whether long work is to be given up between two steps.
    """

    now: Callable[[], int]
    wall: Callable[[], int]
    announce: Callable[[Published], None]
    is_stopping: Callable[[], bool]


class Mark(Struct, frozen=True):
    """A point to go back to.

    Attributes:
        snapshot: Of the chain.
        waiting: What the mempool held.
    """

    snapshot: Snapshot
    waiting: tuple[Pooled, ...]


class Builder:
    """Builds blocks and goes back, and after each step has it indexed, published, settled and announced, in this order.

    Whoever hears of a block therefore finds it in the index, and whoever does not find a transaction in the mempool any
    more finds its block in the view that he takes then.

    Attributes:
        chain: The chain; nobody else changes it.
        view: The chain after the last step, for any thread.
    """

    def __init__(
        self, chain: Chain, mempool: Mempool, index: Index, options: NodeOptions, surroundings: Surroundings
    ) -> None:
        self.chain = chain
        self.view: ChainView = chain.publish()
        self._mempool = mempool
        self._index = index
        self._options = options
        self._world = surroundings

    # Building

    def build(self, *, late: int | None = None, is_optional: bool = False) -> bool:
        """Build a block of what waits in the mempool, and return whether there is one.

        Args:
            late: Nanoseconds that it comes after its place in the grid, if it has one.
            is_optional: Whether to build none if no transaction comes into it.
        """
        # CHECK
        begun = self._world.now()
        limits = self.chain.rules().params.limits
        offered = self._mempool.take(
            self.view, limits.block_cycles_max, limits.block_cells_max, self._options.block_transactions_max
        )
        if is_optional and not offered:
            return False
        # RUN
        before = self.chain.height
        transactions = [pooled.transaction for pooled in offered]
        # Whatever is in the mempool has had its signatures checked before it came in, on another thread than this.
        applied = self.chain.build(transactions, self._timestamp(), unless_refused=is_optional, signatures_checked=True)
        is_built = self.chain.height > before
        # SETTLE
        refusals = {id(transaction): rejection for transaction, rejection in applied.refused}
        included = [pooled.hash for pooled in offered if id(pooled.transaction) not in refusals]
        refused = {
            pooled.hash: refusals[id(pooled.transaction)] for pooled in offered if id(pooled.transaction) in refusals
        }
        blocks = (applied.block,) if is_built else ()
        self._make_known(blocks, begun, included=included, refused=refused, late=late)
        return is_built

    def advance(self, height: int) -> None:
        """Build blocks up to a height: those that wait in the mempool first, then empty ones. Due timers run in each.

        Raises:
            Rejection: ``INVALID_DATA`` for a height below the present one, or too far above it.
            StoppingError: If the node stops before it is reached.
        """
        # CHECK
        last = self.chain.height + ADVANCE_MAX
        if not self.chain.height <= height <= last:
            raise Rejection(
                RejectionReason.INVALID_DATA,
                f"cannot advance to height {height}: the chain is at {self.chain.height}, and one request may reach "
                f"{last}",
                height=height,
                current_height=self.chain.height,
            )
        # RUN
        while self.chain.height < height:
            if self._world.is_stopping():
                raise StoppingError(f"the node stops at height {self.chain.height}, before {height}")
            if not self.build(is_optional=True):
                begun = self._world.now()
                end = min(height, self.chain.height + BATCH_BLOCKS)
                self._make_known(tuple(self.chain.advance_to(end)), begun)

    def _timestamp(self) -> int | None:
        """Return the next block's timestamp; None for one interval after its parent's. Decision: D-70."""
        if self._options.clock is Clock.CHAIN:
            return None
        # Time that the chain was sent ahead by is not taken back: it creeps on until the wall clock has caught up.
        return max(self._world.wall() // NANOSECONDS_PER_MS, self.chain.head.header.timestamp_ms + 1)

    # Going back

    def mark(self) -> Mark:
        """Return the present point, for `revert`."""
        return Mark(self.chain.snapshot(), tuple(self._mempool.pooled()))

    def revert(self, mark: Mark) -> None:
        """Go back to a point: state, clock, queue and fees, and the mempool to the transactions that waited then.

        Raises:
            Rejection: ``NOT_FOUND`` if the chain does not hold it any more; ``INVALID_DATA`` if it lies too far back.
        """
        begun = self._world.now()
        height = mark.snapshot.height
        self._check_depth(height)
        self.chain.revert(mark.snapshot)
        waited = {pooled.hash for pooled in mark.waiting}
        present = {pooled.hash for pooled in self._mempool.pooled()}
        came = {tx_hash: _withdrawn(tx_hash, height) for tx_hash in present if tx_hash not in waited}
        gone = [pooled.transaction for pooled in mark.waiting if pooled.hash not in present]
        self._make_known((), begun, refused=came, returned=gone, reorg_from=height)

    def reorg(self, depth: int, *, keep_transactions: bool = True) -> None:
        """Drop the last blocks, as when another branch wins.

        Args:
            depth: Blocks to drop, 1 up to the present height.
            keep_transactions: Whether their transactions go back to the mempool.

        Raises:
            Rejection: ``INVALID_DATA`` for another depth, or one that the chain cannot go back any more.
        """
        begun = self._world.now()
        height = self.chain.height - depth
        self._check_depth(height)
        dropped = self.chain.blocks[height + 1 :] if keep_transactions and height >= 0 else []
        self.chain.reorg(depth)
        returned = tuple(chained.from_iterable(block.transactions for block in dropped))
        self._make_known((), begun, returned=returned, reorg_from=height)

    def _check_depth(self, height: int) -> None:
        # Before the store finds out: what the store refuses stops the node.
        if 0 <= height < self.chain.floor:
            raise Rejection(
                RejectionReason.INVALID_DATA,
                f"cannot go back to block {height}: the chain on disk goes back to block {self.chain.floor}",
                height=height,
                floor=self.chain.floor,
            )

    # Making known

    def _make_known(
        self,
        blocks: tuple[Block, ...],
        begun: int,
        *,
        included: Iterable[Hash32] = (),
        refused: Mapping[Hash32, Rejection] = NOTHING,
        returned: Sequence[Transaction] = (),
        reorg_from: int | None = None,
        late: int | None = None,
    ) -> None:
        if reorg_from is not None:
            self._index.revert(reorg_from)
        self._index.apply(blocks)
        self.view = view = self.chain.publish()
        endings = self._mempool.settle(view, included, refused, returned)
        self._world.announce(
            Published(
                view=view,
                blocks=blocks,
                reorg_from=reorg_from,
                refused={end.hash: end.rejection for end in endings if end.rejection is not None},
                seconds=(self._world.now() - begun) / NANOSECONDS_PER_SECOND,
                late=None if late is None else late / NANOSECONDS_PER_SECOND,
            )
        )


def _withdrawn(tx_hash: Hash32, height: int) -> Rejection:
    what = f"transaction {tx_hash} came after the snapshot at height {height}, which the chain has gone back to"
    return Rejection(RejectionReason.WITHDRAWN, what, height=height)
