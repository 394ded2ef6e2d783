"""`Chain`: one chain in process, from genesis to head."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Self

from msgspec import Struct

from trailboss.chain.block_archive import DiskArchive, MemoryArchive
from trailboss.chain.history import CHECKPOINT_BLOCKS, History, PublishedBlocks, idle_after
from trailboss.chain.reader import ChainReader
from trailboss.chain.signature_checks import are_signed
from trailboss.chain.view import ChainView
from trailboss.execution.block import Applied, apply_block, seal_block
from trailboss.execution.genesis import Genesis, apply_genesis, check_genesis, decode_genesis, encode_genesis
from trailboss.execution.mailbox import nothing_waits
from trailboss.execution.markets import MARKETS
from trailboss.mechanisms.registry import Succession
from trailboss.model.blocks import Block
from trailboss.model.transactions import Transaction
from trailboss.params import ChainParams
from trailboss.primitives.errors import ConfigurationError, Rejection, RejectionReason, StorageError
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.sandbox.engines import check_engine, new_engine
from trailboss.state.disk.files import RESTORE
from trailboss.state.disk.store import DEFAULT_SETTINGS, DiskStore, StoreSettings
from trailboss.state.store import BEFORE_GENESIS, MemoryStore, Store
from trailboss.timer_queue.queue import TimerQueue
from trailboss.timer_queue.source import StoredTimers
from trailboss.vm.engine import Engine


class Snapshot(Struct, frozen=True):
    """A point to go back to: clock, queue, fees and state are all functions of it."""

    height: int  # height of the head then
    hash: Hash32  # hash of the head then; going back to it after another branch took its place is refused


class Chain(ChainReader):
    """A chain and its history, in memory or in a directory.

    On disk every block is durable when the call that builds it returns: a process killed at any instruction leaves a
    chain that opens at its last block.
    """

    engine: Engine  # what runs its actors
    queue: TimerQueue  # the calendar queue over its state
    store: Store  # the committed state
    blocks: History  # its blocks by height, a sequence for reading
    _closed_with_it: tuple[Engine | DiskStore, ...]

    def __init__(
        self,
        genesis: Genesis,
        engine: Engine | None = None,
        disk: DiskStore | None = None,
        *,
        archive: MemoryArchive | None = None,
    ) -> None:
        """Start a chain in memory, or go on with the one in a store on disk, which the chain closes; see `open`.

        The engine None stands for the one that the genesis states. A chain in memory has its blocks in ``archive``,
        by default in one that keeps them all.

        Raises:
            ConfigurationError: If the genesis cannot be, or the actors of a new chain cannot run on this machine.
            StorageError: If the blocks in the store do not belong to its state.
        """
        params = check_genesis(genesis)
        if disk is None and engine is None:
            check_engine(genesis.image)
        interval_ms = params.governance.block_interval_ms
        store: Store = MemoryStore() if disk is None else disk
        if disk is None:
            blocks = History(archive or MemoryArchive(), interval_ms, apply_genesis(genesis, store))
        elif disk.height == BEFORE_GENESIS:
            blocks = History(DiskArchive(disk, disk.path), interval_ms, apply_genesis(genesis, store))
        else:
            records = DiskArchive(disk, disk.path)
            blocks = History(records, interval_ms, height=disk.height, base=records.base())
        engine = engine or new_engine(params, genesis.image, breakpoints=genesis.allows_breakpoints)
        self._begin(genesis, params, engine, store, blocks)
        self._closed_with_it = (self.engine,) if disk is None else (self.engine, disk)

    @classmethod
    def of_parts(
        cls, genesis: Genesis, params: ChainParams, engine: Engine, store: Store, blocks: History, *, owns_engine: bool
    ) -> Self:
        """Return a chain over a store and a history in memory; it closes the engine if it owns it."""
        chain = cls.__new__(cls)
        chain._begin(genesis, params, engine, store, blocks)
        chain._closed_with_it = (engine,) if owns_engine else ()
        return chain

    def _begin(self, genesis: Genesis, params: ChainParams, engine: Engine, store: Store, blocks: History) -> None:
        self.genesis = genesis
        self.params = params
        self.engine = engine
        self.store = store
        self.blocks = blocks
        self.queue = TimerQueue(self.params.calendar, StoredTimers(store), now=store.height)
        self._rest: tuple[Block | None, int] = (None, 0)  # a head, and `_rest_end` after it
        self._mechanisms = Succession(genesis.mechanism, self.params)
        self._published_mechanisms: Succession | None = None
        self.instance_id = genesis.instance_id()

    @classmethod
    def create(
        cls,
        directory: Path,
        genesis: Genesis,
        engine: Engine | None = None,
        *,
        durable: bool = True,
        settings: StoreSettings | None = None,
    ) -> Self:
        """Start a chain in a directory.

        Args:
            directory: Made if it is not there.
            genesis: What the chain starts from.
            engine: None for the one that the genesis states.
            durable: Whether blocks survive a power cut as soon as they are built, or only the end of the process.
            settings: What the store is tuned with.

        Raises:
            ConfigurationError: If the genesis cannot be, or its actors cannot run on this machine.
            StorageError: If a chain or anything else is in the directory, or it cannot be written.
        """
        check_genesis(genesis)
        if engine is None:
            check_engine(genesis.image)
        settings = settings or DEFAULT_SETTINGS
        disk = DiskStore.create(directory, encode_genesis(genesis), durable=durable, settings=settings)
        return cls._over(disk, genesis, engine)

    @classmethod
    def open(cls, directory: Path, engine: Engine | None = None, *, settings: StoreSettings | None = None) -> Self:
        """Open the chain in a directory, as its last block left it.

        A chain of the sandbox opens without its image, and needs it to run a frame.

        Raises:
            StorageError: If there is no chain, another process has it open, or its files cannot be trusted; with what
                is wrong and what to do.
        """
        disk = DiskStore.open(directory, settings=settings or DEFAULT_SETTINGS)
        try:
            genesis = decode_genesis(disk.genesis)
        except ConfigurationError as error:
            disk.close()
            raise StorageError(directory, f"its genesis cannot be read: {error}", RESTORE) from None
        return cls._over(disk, genesis, engine)

    @classmethod
    def _over(cls, disk: DiskStore, genesis: Genesis, engine: Engine | None) -> Self:
        try:
            chain = cls(genesis, engine, disk)
            if chain.head.header.state_root != disk.state_root:
                what = f"block {chain.height} has the state root {Hash32(chain.head.header.state_root)}, the state has"
                raise StorageError(disk.path, f"{what} {disk.state_root}", RESTORE)
            if chain.blocks.base > chain.floor:
                what = f"the first block is {chain.blocks.base}, and the journal reaches back to {chain.floor}"
                raise StorageError(disk.path, what, RESTORE)
        except BaseException:
            disk.close()
            raise
        return chain

    def check_writable(self) -> None:
        """Check that blocks can be built. `StorageError` if the chain is on disk and can only be read."""
        if isinstance(self.store, DiskStore):
            self.store.check_writable()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def build(
        self,
        transactions: Iterable[Transaction] = (),
        timestamp_ms: int | None = None,
        *,
        unless_refused: bool = False,
        signatures_checked: bool = False,
        runs_programs: bool = True,
    ) -> Applied:
        """Build the next block from transactions in order, apply it and append it.

        Args:
            transactions: Those that a rule refuses are left out and reported.
            timestamp_ms: Milliseconds since 1970, not before the parent's; None for one interval after it.
            unless_refused: Whether a block of which every transaction is refused is dropped, as if never built.
            signatures_checked: Whether the caller has checked all signatures: half of the work of a transfer. Only
                verifying the chain checks them again then.
            runs_programs: False if the caller knows that no frame runs in the block: it then stays on this thread.

        Raises:
            Rejection: ``INVALID_DATA`` for a timestamp before the parent's, or above 64 bits.
        """
        applied = self.stage(
            transactions, timestamp_ms, signatures_checked=signatures_checked, runs_programs=runs_programs
        )
        if unless_refused and applied.refused and not applied.block.transactions:
            self.forget()
        else:
            self.seal(applied)
        return applied

    def stage(
        self,
        transactions: Iterable[Transaction],
        timestamp_ms: int | None = None,
        *,
        proposer: Address | None = None,
        signatures_checked: bool = False,
        runs_programs: bool = True,
    ) -> Applied:
        """Apply the next block to the state without appending it; `seal` or `forget` must follow before anything else.

        Nothing of it is on disk until it is sealed. Arguments and refusals are those of `build`.

        Args:
            transactions: As in `build`.
            timestamp_ms: As in `build`.
            proposer: Who gets the tips; None for the one that the genesis states.
            signatures_checked: As in `build`.
            runs_programs: As in `build`.
        """
        if not signatures_checked:
            transactions = tuple(transactions)
            signatures_checked = are_signed(transactions)
        try:
            context = self.next_context(timestamp_ms, proposer)
            apply = partial(
                apply_block,
                context,
                transactions,
                store=self.store,
                queue=self.queue,
                engine=self.engine,
                mechanism=self._mechanisms.by_market[context.rules.market.kind],
                signatures_checked=signatures_checked,
            )
            return self.engine.perform(apply) if runs_programs else apply()
        except BaseException:
            # An interrupt from the keyboard, or a broken invariant: what the block has begun is not left half done.
            self.forget()
            raise

    def seal(self, applied: Applied) -> None:
        """Append the staged block: on disk it is durable when this returns."""
        self.blocks.extend((applied.block,))

    def forget(self) -> None:
        """Take back what a staged block has changed, as if it had never been; without one it does nothing."""
        self._go_back(self.blocks.height)

    def advance_to(self, height: int) -> Iterator[Block]:
        """Build empty blocks up to a height; every due timer runs in its own block. Yields each block, in order.

        Who proposed the head proposes them all: on the chain of a network that is what an idle block follows from.
        Blocks in which nothing can happen are sealed without being opened; they are the same blocks. They are built,
        and on disk made durable, up to ``CHECKPOINT_BLOCKS`` at a time, so a caller that stops early may find the
        chain that much further.

        Raises:
            Rejection: ``INVALID_DATA`` for a height below the present one.
        """
        if height < self.height:
            what = f"cannot advance to height {height}: the chain is at {self.height}"
            raise Rejection(RejectionReason.INVALID_DATA, what, height=height, current_height=self.height)
        while self.height < height:
            idle = self.idle_until(height) - self.height
            if idle > 0:
                yield from self._seal_idle(min(idle, CHECKPOINT_BLOCKS))
            else:
                self.seal(self.stage((), proposer=Address(self.head.header.proposer)))
                yield self.head

    def _seal_idle(self, count: int) -> list[Block]:
        block = seal_block(self.next_context(proposer=Address(self.head.header.proposer)), self.store.state_root)
        blocks = [block]
        # The block after the last that has a timestamp is refused by itself.
        count = min(count, 1 + (U64_MAX - block.header.timestamp_ms) // self.blocks.interval_ms)
        while len(blocks) < count:
            block = idle_after(block, self.blocks.interval_ms)
            blocks.append(block)
        for block in blocks:
            self.store.commit(block.height, {})
        self.queue.advance(block.height)
        self.blocks.extend(blocks)
        self._rest = self.head, self._rest[1]  # nothing has happened
        return blocks

    def idle_until(self, limit: int) -> int:
        """Return the last height, up to a limit, until which nothing can happen without transactions.

        Nothing happens while no timer is due that could run and none ends, no message waits, the basefees rest, the
        lane is not activated and no block leaves its fairness window, and while Globalbox has nothing queued, carried,
        to collect or to change. The limit is not below the present height; the result is that height, or less, if the
        next block is not idle.
        """
        head, end = self._rest
        if head is not self.head:
            end = self._rest_end()
            self._rest = self.head, end
        return min(limit, end)

    def _rest_end(self) -> int:
        """Return `idle_until` without a limit."""
        rules, read, queue = self.rules(), self.store.read, self.queue
        hooks, mechanism = MARKETS[rules.market.kind], self._mechanisms.by_market[rules.market.kind]
        if not (rules.basefees_rest() and nothing_waits(read) and hooks.rests(rules, read)):
            return self.store.height
        happens = [rules.changes_at]
        if queue.due_count:
            # Timers that no block can run any more, such as those above the lane's cap, wait for their expiry.
            expires_after = queue.next_expiry()
            if expires_after is None or not mechanism.only_wait(queue.due_count):
                return self.store.height
            happens.append(expires_after + 1)
        events = (queue.next_height_to_come(), mechanism.next_end(), hooks.next_event(rules, read))
        happens += [each for each in events if each is not None]
        return min(happens) - 1

    def awaits_blocks(self) -> bool:
        """Return whether blocks are awaited that no transaction asks for: a timer lives, or a message waits.

        Decision: D-95
        Complexity: O(1).
        """
        return self.timer_count() > 0 or not nothing_waits(self.store.read)

    def snapshot(self) -> Snapshot:
        """Return the present point. Costs nothing."""
        return Snapshot(self.height, self.head.hash)

    def revert(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot: state, clock, queue, fees.

        Raises:
            Rejection: ``NOT_FOUND`` if the chain does not hold that block (any more).
        """
        if snapshot.height > self.height or self.blocks[snapshot.height].hash != snapshot.hash:
            what = f"the chain does not hold block {snapshot.hash} at height {snapshot.height}"
            raise Rejection(RejectionReason.NOT_FOUND, what, height=snapshot.height)
        self._go_back(snapshot.height)

    def reorg(self, depth: int) -> None:
        """Drop the last blocks, as when another branch wins: state, clock, queue, fees. Build on to take their place.

        Raises:
            Rejection: ``INVALID_DATA`` for a depth other than 1 up to the present height.
            StorageError: If the chain is on disk and its undo journal does not reach that far.
        """
        if not 1 <= depth <= self.height:
            what = f"cannot drop {depth} blocks: a chain at height {self.height} can drop 1..={self.height}"
            raise Rejection(RejectionReason.INVALID_DATA, what, depth=depth, current_height=self.height)
        self._go_back(self.height - depth)

    @property
    def floor(self) -> int:
        """Height of the lowest block that the chain can go back to: on disk the undo journal is bounded.

        It is never below the first block that the chain has.
        """
        return max(self.store.floor, 0)

    def _go_back(self, height: int) -> None:
        # The store first: it informs the views that blocks are about to go.
        self.store.revert(height)
        self.blocks.truncate(height)
        self.queue.rewind(height)
        self._mechanisms.rewind()

    def publish(self, height: int | None = None) -> ChainView:
        """Return the chain as it stands, or stood after an earlier block, for other threads to read while it goes on.

        Complexity: O(1); for an earlier block O(keys changed since).

        Raises:
            Rejection: ``NOT_FOUND`` for a height above the present one, or below `floor`.
        """
        # Views ask a mechanism for its name and its policy, and must not meet what those that select remember.
        if self._published_mechanisms is None:
            self._published_mechanisms = Succession(self.genesis.mechanism, self.params)
        if height is None or height == self.height:
            state = self.store.view()
            return ChainView(self, self._published_mechanisms, state, PublishedBlocks(self.blocks, self.head, state))
        if not self.floor <= height < self.height:
            what = f"there is no state of height {height}: the chain has those of {self.floor} to {self.height}"
            raise Rejection(RejectionReason.NOT_FOUND, what, height=height, current_height=self.height)
        state = self.store.view_at(height)
        blocks = PublishedBlocks(self.blocks, self.blocks[height], state)
        return ChainView(self, self._published_mechanisms, state, blocks)

    def _has_kept(self, values: Mapping[bytes, bytes | None], root: Hash32) -> bool:
        return self.store.has_kept(values.keys(), root) or super()._has_kept(values, root)

    def check_invariants(self) -> None:
        """Check money, timers, queue and store against one another, the slow way.

        Spec: CIP-5 §5.4
        Decision: D-35

        Raises:
            InvariantError: Naming what does not add up.
        """
        super().check_invariants()
        self.queue.check_invariants()
        self.store.check_invariants()

    def close(self) -> None:
        """Release the engine, and the directory of a chain on disk. Closing it again does nothing."""
        for part in self._closed_with_it:
            part.close()
