"""The blocks of a chain, from genesis to head, most of which need not be kept.

A block in which nothing happens follows from its parent: `idle_after`. So an archive holds *records*, whole blocks by
height, and the heights between one record and the next are its idle followers, derived on demand. A month of empty
blocks is some thousands of records, in memory and on disk. Decision: D-50.
"""

from collections.abc import Iterator, Sequence
from typing import Final, overload

from trailboss.chain.block_archive import BlockArchive, Records
from trailboss.model.blocks import Block, Header, header_hash
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason, ViewGoneError
from trailboss.primitives.octets import Hash32
from trailboss.state.view import StoreView

CHECKPOINT_BLOCKS: Final = 1_024
"""Blocks after which one is recorded whatever it holds, so that no block is more derivations away from a record."""

JOINED_FIX: Final = "ask a node that has the network's blocks from genesis"
"""What to do where a node lacks blocks because it joined by a snapshot."""

CACHED_BLOCKS: Final = 256  # blocks last asked for by height that are kept at hand

_NOTHING: Final = bytes(Hash32.WIDTH)  # root over no transactions or no receipts


def idle_after(parent: Block, interval_ms: int) -> Block:
    """Return the block in which nothing happens after ``parent``, an interval in milliseconds later.

    It is the child that `seal_block` builds when the basefees are at rest.
    """
    before = parent.header
    # Plain bytes are hashed in half the time of their subclasses, and this runs for every block of a month.
    identity = before.version, before.chain_id, before.height + 1, bytes(parent.hash), before.timestamp_ms + interval_ms
    roots = bytes(before.proposer), _NOTHING, _NOTHING, bytes(before.state_root)
    header = Header(*identity, *roots, before.cycle_basefee, before.cell_basefee, 0, 0, 0)
    return Block(header=header, hash=header_hash(header))


def follows_idly(parent: Block, block: Block, interval_ms: int) -> bool:
    """Return whether ``block``, a child of ``parent``, is exactly what `idle_after` derives."""
    before, header = parent.header, block.header
    return (
        header.state_root == before.state_root
        and header.timestamp_ms == before.timestamp_ms + interval_ms
        and header.transactions_root == header.receipts_root == _NOTHING
        and (header.cycles_used, header.cells_used, header.timer_cycles_used) == (0, 0, 0)
        and (header.cycle_basefee, header.cell_basefee) == (before.cycle_basefee, before.cell_basefee)
        and (header.version, header.chain_id, header.proposer) == (before.version, before.chain_id, before.proposer)
        and not is_eventful(block)
        and block.decisions is None
    )


def is_eventful(block: Block) -> bool:
    """Return whether a block holds a transaction, a receipt or an event."""
    return bool(block.transactions or block.receipts or block.events)


class BlockSequence(Sequence[Block]):
    """Blocks up to a head as a sequence by height, over records.

    They begin with genesis; those of a node that joined a network by a snapshot begin with the snapshot's block, of
    which they have the header alone. What asks for a run of blocks gets those there are; a single block below the first
    is refused. Decision: D-105.

    Invariant: every block from a record to the next one follows idly from the block before it.
    """

    __slots__ = ("archive", "base", "head", "interval_ms")

    archive: Records
    base: int  # height of the first block
    head: Block  # the last block, which is always at hand
    interval_ms: int  # milliseconds from one block to the next where nothing happens

    def __init__(self, archive: Records, interval_ms: int, head: Block, base: int = 0) -> None:
        self.archive, self.interval_ms, self.head, self.base = archive, interval_ms, head, base

    def __len__(self) -> int:
        return self.height + 1

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> list[Block]: ...
    def __getitem__(self, index: int | slice) -> Block | list[Block]:
        """Return the block of a height, counted from the end if negative, or a list of those of a slice.

        Complexity: O(1) for a recorded block, else as many derivations as it lies above one; a slice in steps of one
        costs what its blocks and the way to the first cost.

        Raises:
            IndexError: If there is no such block.
            Rejection: ``NOT_FOUND`` if it lies below the first one; a slice leaves those out.
        """
        if isinstance(index, slice):
            heights = range(len(self))[index]
            if heights.step == 1:
                return list(self._run(max(heights.start, self.base), heights.stop - 1))
            return [self[height] for height in heights if height >= self.base]
        height = index + len(self) if index < 0 else index
        if not 0 <= height <= self.height:
            raise IndexError(f"there is no block {index}: the head is block {self.height}")
        self.check_there(height)
        return self.head if height == self.height else self._block(height)

    def check_there(self, height: int) -> None:
        """Check that a height is not below the first block. `Rejection` ``NOT_FOUND`` otherwise."""
        if height < self.base:
            what = (
                f"block {height} is not here: this node joined the network at block {self.base} and has none below it"
            )
            raise Rejection(RejectionReason.NOT_FOUND, what, JOINED_FIX, height=height, base=self.base)

    def __iter__(self) -> Iterator[Block]:
        return self.since(0)

    @property
    def height(self) -> int:
        """Height of the head."""
        return self.head.header.height

    def since(self, height: int) -> Iterator[Block]:
        """Yield every block from a height up to the present head. Do not append or truncate meanwhile.

        Complexity: one derivation or one record a block, after the way to the first.
        """
        return self._run(max(height, self.base), self.height)

    def eventful(self, since: int = 0) -> Iterator[Block]:
        """Yield the blocks from a height on that hold transactions, receipts or events. Do not append meanwhile.

        Complexity: O(records), not blocks.
        """
        return filter(is_eventful, self.records(since))

    def latest_eventful(self, since: int = 0) -> Iterator[Block]:
        """Yield the blocks that hold transactions, receipts or events, the last one first, down to a height.

        Complexity: O(records) read, one at a time.
        """
        height = self.height
        while height >= max(since, self.base):
            record = self.record_at(height)
            height = record.height - 1
            if record.height >= since and is_eventful(record):
                yield record

    def records(self, since: int = 0) -> Iterator[Block]:
        """Yield the recorded blocks from a height on: all that do not follow idly, and some that do."""
        return self._records(max(since, self.base), self.height)

    def record_at(self, height: int) -> Block:
        """Return the last recorded block at or below a height of the sequence; what follows it is idle.

        Raises:
            Rejection: ``NOT_FOUND`` if the height lies below the first block.
        """
        self.check_there(height)
        return self.archive.at(height)

    def _block(self, height: int) -> Block:
        return self._at(height)

    def _at(self, height: int) -> Block:
        block = self.record_at(height)
        while block.height < height:
            block = idle_after(block, self.interval_ms)
        return block

    def _run(self, first: int, last: int) -> Iterator[Block]:
        """Yield the blocks of heights ``first..=last``, not above the head."""
        if first > last:
            return
        block = self.head if first == self.height else self._at(first)
        records = self._records(first + 1, last)
        record = next(records, None)
        yield block
        for following in range(first + 1, last + 1):
            if record is not None and record.height == following:
                block, record = record, next(records, None)
            else:
                block = idle_after(block, self.interval_ms)
            yield block

    def _records(self, first: int, last: int) -> Iterator[Block]:
        if first > last:
            return
        for record in self.archive.records(first):
            if record.height > last:
                return
            yield record


class History(BlockSequence):
    """The blocks of a chain."""

    __slots__ = ("_cache", "_recorded")

    archive: BlockArchive

    def __init__(
        self, archive: BlockArchive, interval_ms: int, genesis: Block | None = None, *, height: int = 0, base: int = 0
    ) -> None:
        """Start a history with a genesis block, or go on with one that the archive holds from a base up to a height.

        Raises:
            InvariantError: For a genesis of another height than 0.
            StorageError: If the archive is on disk and its records cannot be read.
        """
        self.archive, self.interval_ms, self.base = archive, interval_ms, base
        self._cache: dict[int, Block] = {}
        if genesis is None:
            self._rest_at(height)
        else:
            if genesis.height != 0:
                raise InvariantError(f"a history starts with block 0, not {genesis.height}")
            archive.keep(genesis)
            self.head, self._recorded = genesis, 0

    def extend(self, blocks: Sequence[Block]) -> None:
        """Append a run of blocks, all but the first of which follow idly; on disk they become durable in one step.

        All that the store has staged becomes durable with them.

        Raises:
            InvariantError: If one does not continue the one before it, or there are more than ``CHECKPOINT_BLOCKS``;
                nothing has changed then.
        """
        if not blocks:
            return
        if len(blocks) > CHECKPOINT_BLOCKS:
            raise InvariantError(f"{len(blocks)} blocks come at once, more than {CHECKPOINT_BLOCKS}")
        parent, record = self.head, None
        for block in blocks:
            if block.height != parent.height + 1 or block.header.parent != parent.hash:
                what = f"block {block.height}, child of {block.header.parent.hex()}, does not continue block"
                raise InvariantError(f"{what} {parent.height} {parent.hash}")
            if not follows_idly(parent, block, self.interval_ms):
                if block is not blocks[0]:
                    raise InvariantError(f"block {block.height} of a run does not follow idly")
                record = block
            parent = block
        due = self._recorded + CHECKPOINT_BLOCKS - blocks[0].height
        if record is None and due < len(blocks):
            record = blocks[due]
        self.archive.keep(record)
        if record is not None:
            self._recorded = record.height
        self.head = parent

    def truncate(self, height: int) -> None:
        """Forget the blocks above a height. On disk the store goes back first.

        Raises:
            InvariantError: If there is no block of that height, or a store on disk has not gone back.
        """
        if not self.base <= height <= self.height:
            raise InvariantError(f"cannot go back to block {height} from block {self.height}")
        if height < self.height:
            self.archive.drop_above(height)
            self._cache.clear()
            self._rest_at(height)

    def _rest_at(self, height: int) -> None:
        self._recorded = self.archive.at(height).height
        self.head = self._at(height)

    def _block(self, height: int) -> Block:
        """Return a block below the head, and keep it at hand; the one asked for longest ago makes room."""
        block = self._cache.pop(height, None) or self._at(height)
        self._cache[height] = block
        if len(self._cache) > CACHED_BLOCKS:
            del self._cache[next(iter(self._cache))]
        return block


class PublishedBlocks(BlockSequence):
    """The blocks of a chain up to one of them, for any thread. What the chain drops, they no longer have.

    Decision: D-74
    """

    __slots__ = ("_state",)

    def __init__(self, history: History, head: Block, state: StoreView) -> None:
        """Publish the blocks of a history up to a head; the state is that after it."""
        super().__init__(history.archive, history.interval_ms, head, history.base)
        self._state = state

    def record_at(self, height: int) -> Block:
        """Return the last recorded block at or below a height of the sequence.

        Raises:
            Rejection: ``NOT_FOUND`` if the height lies below the first block.
            ViewGoneError: If the chain has gone back below the height.
        """
        try:
            record = super().record_at(height)
        except IndexError:
            # A list in memory may get shorter between the search and the look.
            raise ViewGoneError(self.height, self._state.lowest_since()) from None
        self._check_there(height)
        return record

    def _records(self, first: int, last: int) -> Iterator[Block]:
        if first > last:
            return
        for record in self.archive.records(first):
            self._check_there(min(record.height, last))
            if record.height > last:
                return
            yield record
        self._check_there(last)

    def _check_there(self, height: int) -> None:
        """Check that what has just been read on the archive is of this branch up to a height.

        The store goes back before the archive does and says so before it goes, so looking afterwards is soon enough.
        """
        lowest = self._state.lowest_since()
        if lowest < height:
            raise ViewGoneError(self.height, lowest)
