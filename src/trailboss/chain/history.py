"""The blocks of a chain, from genesis to head, most of which need not be kept.

A block in which nothing happens follows from its parent: `idle_after`. So an archive holds *records*, whole blocks by
height, and the heights between one record and the next are its idle followers, derived on demand. A month of empty
blocks is some thousands of records, in memory and on disk. Decision: D-50.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, overload

from trailboss.chain.block_archive import BlockArchive, Records
from trailboss.model.blocks import Block, Header, header_hash
from trailboss.primitives.errors import InvariantError, ViewGoneError
from trailboss.primitives.octets import Hash32
from trailboss.state.view import StoreView

CHECKPOINT_BLOCKS: Final = 1_024
"""Blocks after which one is recorded whatever it holds, so that no block is more derivations away from a record."""

CACHED_BLOCKS: Final = 256  # blocks last asked for by height that are kept at hand

_NOTHING: Final = bytes(Hash32.WIDTH)  # root over no transactions or no receipts


def idle_after(parent: Block, interval_ms: int) -> Block:
    """Return the block in which nothing happens after ``parent``, an interval in milliseconds later.

    It is the child that `seal_idle` builds when the basefees are at rest.
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


class BlockSequence(Sequence[Block], ABC):
    """Blocks from genesis to a head as a sequence by height, over records.

    Invariant: every block from a record to the next one follows idly from the block before it.
    """

    __slots__ = ("_archive", "_interval_ms")

    def __init__(self, archive: Records, interval_ms: int) -> None:
        self._archive = archive
        self._interval_ms = interval_ms

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
        """
        if isinstance(index, slice):
            heights = range(len(self))[index]
            if heights.step == 1:
                return list(self._run(heights.start, heights.stop - 1))
            return [self[height] for height in heights]
        height = index + len(self) if index < 0 else index
        if not 0 <= height <= self.height:
            raise IndexError(f"there is no block {index}: the head is block {self.height}")
        return self.head if height == self.height else self._block(height)

    def __iter__(self) -> Iterator[Block]:
        return self.since(0)

    @property
    def height(self) -> int:
        """Height of the head."""
        return self.head.header.height

    @property
    @abstractmethod
    def head(self) -> Block:
        """The last block."""

    def since(self, height: int) -> Iterator[Block]:
        """Yield every block from a height up to the present head. Do not append or truncate meanwhile.

        Complexity: one derivation or one record a block, after the way to the first.
        """
        return self._run(max(height, 0), self.height)

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
        while height >= max(since, 0):
            record = self.record_at(height)
            height = record.height - 1
            if record.height >= since and is_eventful(record):
                yield record

    def records(self, since: int = 0) -> Iterator[Block]:
        """Yield the recorded blocks from a height on: all that do not follow idly, and some that do."""
        return self._records(max(since, 0), self.height)

    def record_at(self, height: int) -> Block:
        """Return the last recorded block at or below a height of the sequence; what follows it is idle."""
        return self._archive.at(height)

    def _block(self, height: int) -> Block:
        return self._at(height)

    def _at(self, height: int) -> Block:
        block = self.record_at(height)
        while block.height < height:
            block = idle_after(block, self._interval_ms)
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
                block = idle_after(block, self._interval_ms)
            yield block

    def _records(self, first: int, last: int) -> Iterator[Block]:
        if first > last:
            return
        for record in self._archive.records(first):
            if record.height > last:
                return
            yield record


class History(BlockSequence):
    """The blocks of a chain. Invariant: the head is at hand."""

    __slots__ = ("_cache", "_head", "_recorded")

    _archive: BlockArchive

    def __init__(
        self, archive: BlockArchive, interval_ms: int, genesis: Block | None = None, *, height: int = 0
    ) -> None:
        """Start a history with a genesis block, or go on with one that the archive holds up to a height.

        Raises:
            InvariantError: For a genesis of another height than 0.
            StorageError: If the archive is on disk and its records cannot be read.
        """
        super().__init__(archive, interval_ms)
        self._cache: dict[int, Block] = {}
        if genesis is None:
            self._rest_at(height)
        else:
            if genesis.height != 0:
                raise InvariantError(f"a history starts with block 0, not {genesis.height}")
            archive.keep(genesis)
            self._head, self._recorded = genesis, 0

    @property
    def head(self) -> Block:
        """The last block."""
        return self._head

    def published(self, state: StoreView) -> "PublishedBlocks":
        """Return the present blocks for other threads to read; the state is that after the head."""
        return PublishedBlocks(self._archive, self._interval_ms, self._head, state)

    def append(self, block: Block) -> None:
        """Append the next block; on disk it is durable when this returns, with all that its store has staged.

        Raises:
            InvariantError: If it does not continue the head; nothing has changed then.
        """
        self.extend((block,))

    def extend(self, blocks: Sequence[Block]) -> None:
        """Append a run of blocks, all but the first of which follow idly; on disk they become durable in one step.

        Raises:
            InvariantError: If one does not continue the one before it, or there are more than ``CHECKPOINT_BLOCKS``;
                nothing has changed then.
        """
        if not blocks:
            return
        if len(blocks) > CHECKPOINT_BLOCKS:
            raise InvariantError(f"{len(blocks)} blocks come at once, more than {CHECKPOINT_BLOCKS}")
        record = self._record_of(blocks)
        self._archive.keep(record)
        if record is not None:
            self._recorded = record.height
        self._head = blocks[-1]

    def truncate(self, height: int) -> None:
        """Forget the blocks above a height. On disk the store goes back first.

        Raises:
            InvariantError: If there is no block of that height, or a store on disk has not gone back.
        """
        if not 0 <= height <= self.height:
            raise InvariantError(f"cannot go back to block {height} from block {self.height}")
        if height < self.height:
            self._archive.drop_above(height)
            self._cache.clear()
            self._rest_at(height)

    def _rest_at(self, height: int) -> None:
        self._recorded = self._archive.at(height).height
        self._head = self._at(height)

    def _record_of(self, blocks: Sequence[Block]) -> Block | None:
        """Check that blocks continue the head, and return the one of them that must be recorded, if any."""
        first = blocks[0]
        _check_continues(self._head, first)
        for parent, block in pairwise(blocks):
            _check_continues(parent, block)
            if not follows_idly(parent, block, self._interval_ms):
                raise InvariantError(f"block {block.height} of a run does not follow idly")
        if not follows_idly(self._head, first, self._interval_ms):
            return first
        due = self._recorded + CHECKPOINT_BLOCKS
        return blocks[due - first.height] if due <= blocks[-1].height else None

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

    __slots__ = ("_head", "_state")

    def __init__(self, archive: Records, interval_ms: int, head: Block, state: StoreView) -> None:
        super().__init__(archive, interval_ms)
        self._head = head
        self._state = state

    @property
    def head(self) -> Block:
        """The last block. It is always there."""
        return self._head

    def record_at(self, height: int) -> Block:
        """Return the last recorded block at or below a height of the sequence.

        Raises:
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
        for record in self._archive.records(first):
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


def _check_continues(parent: Block, block: Block) -> None:
    if block.height != parent.height + 1 or block.header.parent != parent.hash:
        what = f"block {block.height}, child of {block.header.parent.hex()}, does not continue block {parent.height}"
        raise InvariantError(f"{what} {parent.hash}")
