"""What is done with the chain, a step at a time, and how each step is published, by the thread that has the chain."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from itertools import chain as chained
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from trailboss.chain import Applied, Chain, Snapshot
from trailboss.chain.view import ChainView
from trailboss.index import Index
from trailboss.mempool import Mempool, Pooled
from trailboss.model.blocks import Block, Origin
from trailboss.model.transactions import Transaction, Transfer, transaction_hash
from trailboss.node.options import Clock, NodeOptions
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason, TrailbossError
from trailboss.primitives.octets import Address, Hash32

BATCH_BLOCKS: Final = 256  # blocks without transactions that are published together
ADVANCE_MAX: Final = 10_000_000  # blocks that one request may have built
SMALL_TRANSFERS_MAX: Final = 16  # transfers of a small block, some 100 µs each
FRAME_BYTES: Final = 8  # at most what a network's engine adds to each transaction of a proposal: a tag and a length
NANOSECONDS_PER_MS: Final = 1_000_000
NANOSECONDS_PER_SECOND: Final = 1_000_000_000
NOTHING: Final[Mapping[Hash32, Rejection]] = MappingProxyType({})


class StoppingError(TrailbossError):
    """The node is stopping, and does not begin or finish the request."""


class Published(Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """One step of the chain, after the index has it."""

    view: ChainView  # the chain after the step
    blocks: tuple[Block, ...] = ()  # the new blocks, ascending; none if the chain only went back
    # Height of the last block that remains, if blocks above it were dropped; None otherwise.
    reorg_from: int | None = None
    # Transactions that left the mempool without a block, each with the reason.
    refused: Mapping[Hash32, Rejection] = field(default_factory=dict)
    seconds: float = 0.0  # time that building and publishing took
    # Seconds by which a block of the interval was begun late; None for any other step.
    late: float | None = None
    left: int = 0  # transactions that the block did not come to, because its time was used up; they wait on


class Clocks(Struct, frozen=True):
    """The two clocks of a node, in nanoseconds: one that never goes back, and time since 1970."""

    now: Callable[[], int]
    wall: Callable[[], int]


class Mark(Struct, frozen=True):
    """A point to go back to: the chain, and the mempool's transactions."""

    snapshot: Snapshot
    waiting: tuple[Pooled, ...]


class Builder:
    """Builds blocks and goes back. Each step is indexed, published, settled and announced, in this order.

    So a block that is announced is in the index, and a transaction that has left the mempool for a block is in the
    view that is taken then. One thread at a time may call it; nothing else changes its chain.
    """

    view: ChainView  # the chain after the last step, for any thread

    def __init__(
        self,
        chain: Chain,
        mempool: Mempool,
        index: Index,
        options: NodeOptions,
        clocks: Clocks,
        *,
        announce: Callable[[Published], None],
        is_stopping: Callable[[], bool],
    ) -> None:
        """Begin with a chain.

        ``announce`` is called after each step, and may wait until the event loop has caught up; ``is_stopping`` says
        whether long work is to end between two steps.
        """
        self.chain = chain
        self.view = chain.publish()
        self._mempool = mempool
        self._index = index
        self._options = options
        self._clocks = clocks
        self._announce = announce
        self._is_stopping = is_stopping
        self._staged: tuple[int, Applied] | None = None  # when its work began, and what it came to

    def is_small(self) -> bool:
        """Return whether the next block holds a few transfers and nothing else, and is not written to a disk.

        No timer, message or program runs in it. Decision: D-95
        """
        if self._options.directory is not None:
            return False
        waiting = self._mempool.page(0, SMALL_TRANSFERS_MAX + 1)
        return len(waiting) <= SMALL_TRANSFERS_MAX and not self._runs_programs(waiting)

    def _runs_programs(self, offered: Iterable[Pooled]) -> bool:
        """Return whether a frame may run in a block of these transactions."""
        next_height = self.chain.height + 1
        has_others = any(type(pooled.transaction.instruction) is not Transfer for pooled in offered)
        return has_others or self.chain.idle_until(next_height) < next_height

    def build(
        self,
        *,
        late: int | None = None,
        within: int | None = None,
        is_optional: bool = False,
        runs_programs: bool = True,
        hold: Callable[[], int] | None = None,
    ) -> bool:
        """Build a block from the mempool, unless it ``is_optional`` and no transaction comes into it.

        Returns whether there is one; ``late`` is by how many nanoseconds it is begun late. Once
        ``within`` nanoseconds have passed, it takes no further transaction; None for no such bound. Decision: D-70

        ``runs_programs`` is False if the caller knows that no frame runs in it. ``hold`` is called before the block is
        published, and returns the nanoseconds that it waited.
        """
        # CHECK
        begun = self._clocks.now()
        limits = self.chain.rules().params.limits
        offered = self._mempool.take(
            self.view, limits.block_cycles_max, limits.block_cells_max, self._options.block_transactions_max
        )
        if is_optional and not offered:
            return False
        # RUN
        before, timestamp_ms = self.chain.blocks.head.header, None
        if self._options.clock is Clock.WALL:
            # A chain that was sent ahead creeps on until the wall clock has caught up. Decision: D-70.
            timestamp_ms = max(self._clocks.wall() // NANOSECONDS_PER_MS, before.timestamp_ms + 1)
        transactions: Iterable[Transaction] = [pooled.transaction for pooled in offered]
        if within is not None:
            transactions = self._until(begun + within, transactions)
        # The mempool holds no transaction whose signature has not been checked.
        applied = self.chain.build(
            transactions,
            timestamp_ms,
            unless_refused=is_optional,
            signatures_checked=True,
            # While the engine loads, after the start, only blocks that need it wait for it.
            runs_programs=runs_programs and self._runs_programs(offered),
        )
        is_built = self.chain.height > before.height
        # SETTLE
        left = len(offered) - len(applied.block.transactions) - len(applied.refused)
        offered = offered[: len(offered) - left]
        refusals = {id(transaction): rejection for transaction, rejection in applied.refused}
        included = [pooled.hash for pooled in offered if id(pooled.transaction) not in refusals]
        found = ((pooled.hash, refusals.get(id(pooled.transaction))) for pooled in offered)
        refused = {tx_hash: rejection for tx_hash, rejection in found if rejection is not None}
        blocks = (applied.block,) if is_built else ()
        if hold is not None:
            begun += hold()
        self._publish(blocks, begun, included=included, refused=refused, late=late, left=left)
        return is_built

    def propose(self, octets_max: int) -> list[bytes]:
        """Return the wire bytes of what the mempool has for the next block, at most so many of them all told.

        Each transaction takes `FRAME_BYTES` more. Those of a sender stay in the order of their nonces.
        """
        limits = self.chain.rules().params.limits
        offered = self._mempool.take(
            self.view, limits.block_cycles_max, limits.block_cells_max, self._options.block_transactions_max
        )
        sizes = accumulate(len(pooled.raw) + FRAME_BYTES for pooled in offered)
        return [pooled.raw for pooled, size in zip(offered, sizes, strict=True) if size <= octets_max]

    @property
    def is_staged(self) -> bool:
        """Whether a block is applied and neither sealed nor forgotten: the chain must not be asked anything then."""
        return self._staged is not None

    def stage(self, transactions: Sequence[Transaction], timestamp_ms: int, proposer: Address) -> Applied:
        """Apply the next block as a network has agreed on it; the signatures of its transactions are checked already.

        What was staged before is forgotten. `seal` appends and publishes it.
        """
        self.forget()
        begun = self._clocks.now()
        applied = self.chain.stage(transactions, timestamp_ms, proposer=proposer, signatures_checked=True)
        self._staged = begun, applied
        return applied

    def seal(self) -> None:
        """Append the staged block, and publish it.

        Raises:
            InvariantError: If none is staged.
        """
        if self._staged is None:
            raise InvariantError(f"no block is staged above block {self.chain.height}")
        (begun, applied), self._staged = self._staged, None
        self.chain.seal(applied)
        included = [Hash32(each.origin_hash) for each in applied.block.receipts if each.origin is Origin.TRANSACTION]
        refused = {transaction_hash(transaction): why for transaction, why in applied.refused}
        for each in included:
            # Who decided the block may have put one transaction into it twice.
            refused.pop(each, None)
        self._publish((applied.block,), begun, included=included, refused=refused)

    def forget(self) -> None:
        """Take back the staged block, if there is one: no network will commit it."""
        if self._staged is not None:
            self._staged = None
            self.chain.forget()

    def _until(self, end: int, transactions: Iterable[Transaction]) -> Iterator[Transaction]:
        """Yield transactions until a time, the first in any case: fires before it may have used up the time."""
        for at, transaction in enumerate(transactions):
            if at and self._clocks.now() >= end:
                break
            yield transaction

    def advance(self, height: int, *, runs_programs: bool = True) -> None:
        """Build blocks up to a height, the first ones from the mempool. Due timers run in each.

        ``runs_programs`` is as in `Chain.build`.

        Raises:
            Rejection: ``INVALID_DATA`` for a height below the present one, or too far above it.
            StoppingError: If the node stops first.
        """
        # CHECK
        last = self.chain.height + ADVANCE_MAX
        if not self.chain.height <= height <= last:
            present = self.chain.height
            what = f"cannot advance to height {height}: the chain is at {present}, and one request may reach {last}"
            raise Rejection(RejectionReason.INVALID_DATA, what, height=height, current_height=present)
        # RUN
        while self.chain.height < height:
            if self._is_stopping():
                raise StoppingError(f"the node stops at height {self.chain.height}, before {height}")
            if not self.build(is_optional=True, runs_programs=runs_programs):
                begun = self._clocks.now()
                end = min(height, self.chain.height + BATCH_BLOCKS)
                self._publish(tuple(self.chain.advance_to(end)), begun)

    def skip(self) -> None:
        """Build empty blocks up to the next in which something happens, at most `BATCH_BLOCKS` of them."""
        begun = self._clocks.now()
        chain = self.chain
        last = chain.idle_until(chain.height + BATCH_BLOCKS - 1) + 1
        self._publish(tuple(chain.advance_to(last)), begun)

    def mark(self) -> Mark:
        """Return the present point, for `revert`."""
        return Mark(self.chain.snapshot(), tuple(self._mempool.pooled()))

    def revert(self, mark: Mark) -> None:
        """Go back to a point: state, clock, queue and fees, and the mempool to the transactions that waited then.

        Raises:
            Rejection: ``NOT_FOUND`` if the chain no longer holds it; ``INVALID_DATA`` if it lies too far back.
        """
        begun = self._clocks.now()
        height = mark.snapshot.height
        self._check_depth(height)
        self.chain.revert(mark.snapshot)
        waited = {pooled.hash for pooled in mark.waiting}
        present = {pooled.hash for pooled in self._mempool.pooled()}
        after = f"after the snapshot at height {height}, which the chain has gone back to"
        came = {
            each: Rejection(RejectionReason.WITHDRAWN, f"transaction {each} came {after}", height=height)
            for each in present - waited
        }
        gone = [pooled.transaction for pooled in mark.waiting if pooled.hash not in present]
        self._publish((), begun, refused=came, returned=gone, reorg_from=height)

    def reorg(self, depth: int, *, keep_transactions: bool = True) -> None:
        """Drop the last blocks, as when another branch wins; their transactions may go back to the mempool.

        Raises:
            Rejection: ``INVALID_DATA`` for a depth outside of 1..=height, or that the chain can no longer go back.
        """
        begun = self._clocks.now()
        height = self.chain.height - depth
        self._check_depth(height)
        dropped = self.chain.blocks[height + 1 :] if keep_transactions and height >= 0 else []
        self.chain.reorg(depth)
        returned = tuple(chained.from_iterable(block.transactions for block in dropped))
        self._publish((), begun, returned=returned, reorg_from=height)

    def _check_depth(self, height: int) -> None:
        # Here, because a refusal of the store would stop the node.
        if 0 <= height < self.chain.floor:
            what = f"cannot go back to block {height}: the chain on disk goes back to block {self.chain.floor}"
            raise Rejection(RejectionReason.INVALID_DATA, what, height=height, floor=self.chain.floor)

    def _publish(
        self,
        blocks: tuple[Block, ...],
        begun: int,
        *,
        included: Iterable[Hash32] = (),
        refused: Mapping[Hash32, Rejection] = NOTHING,
        returned: Sequence[Transaction] = (),
        reorg_from: int | None = None,
        late: int | None = None,
        left: int = 0,
    ) -> None:
        if reorg_from is not None:
            self._index.revert(reorg_from)
        self._index.apply(blocks)
        self.view = view = self.chain.publish()
        endings = self._mempool.settle(view, included, refused, returned)
        self._announce(
            Published(
                view=view,
                blocks=blocks,
                reorg_from=reorg_from,
                refused={end.hash: end.rejection for end in endings if end.rejection is not None},
                seconds=(self._clocks.now() - begun) / NANOSECONDS_PER_SECOND,
                late=None if late is None else late / NANOSECONDS_PER_SECOND,
                left=left,
            )
        )
