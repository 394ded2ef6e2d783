"""The blocks of a chain, from genesis to head, most of which need not be kept.

A block in which nothing happens follows from its parent: `idle_after`. So a shelf holds *records*, whole blocks by
height, and the heights between one record and the next are its idle followers, derived when somebody asks for them.
A month of empty blocks is some thousands of records, in memory and on disk.

Decision: D-50
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Final, Protocol, overload

from trailboss.chain.block_records import decode_block, encode_block
from trailboss.model.blocks import Block, Header, header_hash
from trailboss.primitives.errors import InvariantError, Rejection, StorageError
from trailboss.primitives.octets import Hash32

CHECKPOINT_BLOCKS: Final = 1_024
"""Blocks after which one is recorded whatever it holds, so that no block is more derivations away from a record."""

CACHED_BLOCKS: Final = 256
"""Blocks last asked for by height that are kept at hand."""

_NOTHING: Final = bytes(Hash32.WIDTH)
"""Root over no transactions or no receipts."""


def idle_after(parent: Block, interval_ms: int) -> Block:
    """Return the block in which nothing happens after ``parent``, an interval in milliseconds later.

    It is the child that `seal_idle` builds when the basefees are at rest.
    """
    before = parent.header
    # Plain bytes are hashed in half the time of their subclasses, and this runs for every block of a month.
    header = Header(
        before.version,
        before.chain_id,
        before.height + 1,
        bytes(parent.hash),
        before.timestamp_ms + interval_ms,
        bytes(before.proposer),
        _NOTHING,
        _NOTHING,
        bytes(before.state_root),
        before.cycle_basefee,
        before.cell_basefee,
        0,
        0,
        0,
    )
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


class Shelf(Protocol):
    """Where records lie: whole blocks by height, the first at height 0."""

    def keep(self, record: Block | None) -> None:
        """Keep a record above all others, or none; whatever came since the last call is safe when this returns."""
        ...

    def at(self, height: int) -> Block:
        """Return the last record at or below a height."""
        ...

    def records(self, first: int) -> Iterator[Block]:
        """Yield the records from a height on, ascending. Do not keep or drop any meanwhile."""
        ...

    def drop_above(self, height: int) -> None:
        """Forget the records above a height."""
        ...


class MemoryShelf:
    """A shelf in memory."""

    __slots__ = ("_heights", "_records")

    def __init__(self) -> None:
        self._heights: list[int] = []
        self._records: list[Block] = []

    def keep(self, record: Block | None) -> None:
        """Keep a record above all others, or none."""
        if record is not None:
            self._heights.append(record.height)
            self._records.append(record)

    def at(self, height: int) -> Block:
        """Return the last record at or below a height."""
        return self._records[bisect_right(self._heights, height) - 1]

    def records(self, first: int) -> Iterator[Block]:
        """Yield the records from a height on, ascending. Do not keep or drop any meanwhile."""
        return islice(self._records, bisect_left(self._heights, first), None)

    def drop_above(self, height: int) -> None:
        """Forget the records above a height."""
        end = bisect_right(self._heights, height)
        del self._heights[end:], self._records[end:]


class RecordStore(Protocol):
    """What a shelf on disk needs of a store: opaque records by height, written together with the staged blocks."""

    def seal(self, record: tuple[int, bytes] | None) -> None:
        """Make all staged blocks durable, and with them a record under its height, if one is given."""
        ...

    def record_at(self, height: int) -> tuple[int, bytes]:
        """Return the last record at or below a height, and its height."""
        ...

    def records(self, first: int) -> Iterator[tuple[int, bytes]]:
        """Yield heights and records from a height on, ascending."""
        ...


class DiskShelf:
    """A shelf in a store on disk: a record becomes durable in one step with the state after its block."""

    __slots__ = ("_path", "_store")

    def __init__(self, store: RecordStore, path: Path) -> None:
        """Read and write the records of a store.

        Args:
            store: The store. Going back in it also deletes the records above.
            path: The chain directory, for messages.
        """
        self._store = store
        self._path = path

    def keep(self, record: Block | None) -> None:
        """Seal the store, with a record above all others, or none."""
        self._store.seal(None if record is None else (record.height, encode_block(record)))

    def at(self, height: int) -> Block:
        """Return the last record at or below a height.

        Raises:
            StorageError: If it is not the record of a block of its height.
        """
        return self._decoded(*self._store.record_at(height))

    def records(self, first: int) -> Iterator[Block]:
        """Yield the records from a height on, ascending; raises as `at`."""
        for height, record in self._store.records(first):
            yield self._decoded(height, record)

    def drop_above(self, height: int) -> None:
        """Check that the store has gone back, which deletes the records above a height.

        Raises:
            InvariantError: If it still holds one.
        """
        kept = next(self._store.records(height + 1), None)
        if kept is not None:
            raise InvariantError(f"the store keeps the record of block {kept[0]} after going back to block {height}")

    def _decoded(self, height: int, record: bytes) -> Block:
        try:
            block = decode_block(record)
        except Rejection as rejection:
            raise self._unusable(f"block {height} cannot be read: {rejection.what}") from None
        if block.height != height:
            raise self._unusable(f"the record of block {height} holds block {block.height}")
        return block

    def _unusable(self, what: str) -> StorageError:
        return StorageError(self._path, what, "restore the chain from an export")


class History(Sequence[Block]):
    """The blocks of a chain as a sequence by height, over a shelf of records.

    Invariants: every block from a record to the next one follows idly from the block before it; the head is at hand.
    """

    __slots__ = ("_cache", "_head", "_interval_ms", "_recorded", "_shelf")

    def __init__(self, shelf: Shelf, interval_ms: int, genesis: Block | None = None, *, height: int = 0) -> None:
        """Start a history with a genesis block, or go on with one that the shelf holds already.

        Args:
            shelf: Where its records lie.
            interval_ms: Milliseconds from a block to an idle one after it.
            genesis: Block 0, kept at once; None for a shelf that holds it.
            height: Height of the head, without a genesis.

        Raises:
            InvariantError: For a genesis of another height than 0.
            StorageError: If the shelf is on disk and its records cannot be read.
        """
        self._shelf = shelf
        self._interval_ms = interval_ms
        self._cache: dict[int, Block] = {}
        if genesis is None:
            self._rest_at(height)
        else:
            if genesis.height != 0:
                raise InvariantError(f"a history starts with block 0, not {genesis.height}")
            shelf.keep(genesis)
            self._head, self._recorded = genesis, 0

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
                return list(islice(self.since(heights.start), len(heights)))
            return [self[height] for height in heights]
        height = index + len(self) if index < 0 else index
        if not 0 <= height <= self.height:
            raise IndexError(f"there is no block {index}: the head is block {self.height}")
        if height == self.height:
            return self._head
        return self._cached(height)

    def __iter__(self) -> Iterator[Block]:
        return self.since(0)

    @property
    def height(self) -> int:
        """Height of the head."""
        return self._head.header.height

    @property
    def head(self) -> Block:
        """The last block."""
        return self._head

    def append(self, block: Block) -> None:
        """Append the next block; on disk it is durable when this returns, with all that its store has staged.

        Raises:
            InvariantError: If it does not continue the head; nothing has changed then.
        """
        self.extend((block,))

    def extend(self, blocks: Sequence[Block]) -> None:
        """Append a run of blocks, all but the first of which follow idly; on disk they become durable in one step.

        Args:
            blocks: In order, at most ``CHECKPOINT_BLOCKS``.

        Raises:
            InvariantError: If one does not continue the one before it, or there are too many; nothing has changed then.
        """
        if not blocks:
            return
        if len(blocks) > CHECKPOINT_BLOCKS:
            raise InvariantError(f"{len(blocks)} blocks come at once, more than {CHECKPOINT_BLOCKS}")
        record = self._record_of(blocks)
        self._shelf.keep(record)
        if record is not None:
            self._recorded = record.height
        self._head = blocks[-1]

    def since(self, height: int) -> Iterator[Block]:
        """Yield every block from a height up to the present head. Do not append or truncate meanwhile.

        Complexity: one derivation or one record a block, after the way to the first.
        """
        height = max(height, 0)
        if height > self.height:
            return
        block, last = self._at(height), self.height
        records = self._shelf.records(height + 1)
        record = next(records, None)
        yield block
        for following in range(height + 1, last + 1):
            if record is not None and record.height == following:
                block, record = record, next(records, None)
            else:
                block = idle_after(block, self._interval_ms)
            yield block

    def eventful(self, since: int = 0) -> Iterator[Block]:
        """Yield the blocks from a height on that hold transactions, receipts or events. Do not append meanwhile.

        Complexity: O(records), not blocks.
        """
        return filter(is_eventful, self.records(since))

    def records(self, since: int = 0) -> Iterator[Block]:
        """Yield the recorded blocks from a height on: all that do not follow idly, and some that do."""
        return iter(()) if since > self.height else self._shelf.records(max(since, 0))

    def truncate(self, height: int) -> None:
        """Forget the blocks above a height. On disk the store goes back first.

        Raises:
            InvariantError: If there is no block of that height, or a store on disk has not gone back.
        """
        if not 0 <= height <= self.height:
            raise InvariantError(f"cannot go back to block {height} from block {self.height}")
        if height < self.height:
            self._shelf.drop_above(height)
            self._cache.clear()
            self._rest_at(height)

    def _rest_at(self, height: int) -> None:
        self._recorded = self._shelf.at(height).height
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

    def _cached(self, height: int) -> Block:
        """Return a block below the head, and keep it at hand; the one asked for longest ago makes room."""
        block = self._cache.pop(height, None) or self._at(height)
        self._cache[height] = block
        if len(self._cache) > CACHED_BLOCKS:
            del self._cache[next(iter(self._cache))]
        return block

    def _at(self, height: int) -> Block:
        block = self._shelf.at(height)
        while block.height < height:
            block = idle_after(block, self._interval_ms)
        return block


def _check_continues(parent: Block, block: Block) -> None:
    if block.height != parent.height + 1 or block.header.parent != parent.hash:
        what = f"block {block.height}, child of {block.header.parent.hex()}, does not continue block {parent.height}"
        raise InvariantError(f"{what} {parent.hash}")
