"""`Chain`: one chain in process, from genesis to head."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trailboss.execution.asking import ask
from trailboss.execution.block import Applied, apply_block, seal_idle
from trailboss.execution.genesis import Genesis, apply_genesis, check_genesis
from trailboss.execution.mailbox import mailbox_is_empty
from trailboss.execution.session import BlockContext, QueueChange
from trailboss.governance.rules import ECONOMY_KEY, SCHEDULER_KEY, Rules, read_rules
from trailboss.mechanisms.registry import build_mechanism
from trailboss.model.actors import Account, decode_account
from trailboss.model.blocks import Block
from trailboss.model.configs import Economy, SchedulerTotals, amount_of, decode_record
from trailboss.model.timers import Timer, decode_timer
from trailboss.model.transactions import Transaction
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import Height
from trailboss.state.keys import ACCOUNTS, STORAGE, TIMERS, account_key, storage_range, timer_key
from trailboss.state.slots import decode_slot
from trailboss.state.store import MemoryStore
from trailboss.timer_queue.placement import tier_of
from trailboss.timer_queue.queue import TimerQueue
from trailboss.vm.engine import Engine, Outcome
from trailboss.vm.meter import Meter
from trailboss.vm.native import NativeEngine


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A point to go back to: clock, queue, fees and state are all functions of it.

    Attributes:
        height: Height of the head then.
        hash: Hash of the head then; going back to it after another branch took its place is refused.
    """

    height: int
    hash: Hash32


class Chain:
    """A chain and its history, in memory.

    Attributes:
        genesis: What it started from.
        params: Its parameters before governance.
        engine: What runs its actors.
        mechanism: What selects its due timers.
        queue: The calendar queue over its state.
    """

    def __init__(self, genesis: Genesis, engine: Engine | None = None) -> None:
        """Start a chain.

        Raises:
            ConfigurationError: If the genesis cannot be.
        """
        self.params = check_genesis(genesis)
        self.genesis = genesis
        self.engine: Engine = NativeEngine(self.params) if engine is None else engine
        self.mechanism = build_mechanism(genesis.mechanism, self.params)
        self.queue = TimerQueue(self.params.calendar)
        self._instance_id = genesis.instance_id()
        self._store = MemoryStore()
        self._blocks = [apply_genesis(genesis, self._store)]
        self._queue_changes: list[tuple[QueueChange, ...]] = [()]
        self._rules: tuple[Hash32, Rules] | None = None

    # Building

    def build(self, transactions: Iterable[Transaction] = (), timestamp_ms: int | None = None) -> Applied:
        """Build the next block from transactions in order, apply it and append it.

        Args:
            transactions: Those that a rule refuses are left out and reported.
            timestamp_ms: Milliseconds since 1970, not before the parent's; None for one interval after it.

        Raises:
            Rejection: ``INVALID_DATA`` for a timestamp before the parent's.
        """
        context = self._next_context(timestamp_ms)
        applied = apply_block(
            context,
            transactions,
            store=self._store,
            queue=self.queue,
            engine=self.engine,
            mechanism=self.mechanism,
        )
        self._append(applied.block, applied.queue_changes)
        return applied

    def advance_to(self, height: int) -> Iterator[Block]:
        """Build empty blocks up to a height; every due timer runs in its own block. Yields each block as it is built.

        Blocks in which nothing can happen are sealed without being opened; they are the same blocks.

        Raises:
            Rejection: ``INVALID_DATA`` for a height below the present one.
        """
        if height < self.height:
            raise Rejection(
                RejectionReason.INVALID_DATA,
                f"cannot advance to height {height}: the chain is at {self.height}",
                height=height,
                current_height=self.height,
            )
        while self.height < height:
            if self._is_idle():
                context = self._next_context(None)
                self.queue.advance(context.height)
                self._store.commit(context.height, {})
                self._append(seal_idle(context, self._store.state_root), ())
            else:
                self.build()
            yield self.head

    def _is_idle(self) -> bool:
        """Whether the next block, without transactions, changes nothing: no timer due, no message, basefees at rest."""
        due = self.queue.next_due_height()
        if due is not None and due <= self.height + 1:
            return False
        return self.rules().basefees_rest() and mailbox_is_empty(self._store.read)

    def _next_context(self, timestamp_ms: int | None) -> BlockContext:
        parent = self.head
        if timestamp_ms is None:
            timestamp_ms = parent.header.timestamp_ms + self.params.governance.block_interval_ms
        elif timestamp_ms < parent.header.timestamp_ms:
            raise Rejection(
                RejectionReason.INVALID_DATA,
                f"timestamp {timestamp_ms} ms lies before the parent's {parent.header.timestamp_ms} ms",
            )
        return BlockContext(
            chain_id=self.genesis.chain_id,
            chain_instance_id=self._instance_id,
            height=Height(parent.height + 1),
            timestamp_ms=timestamp_ms,
            parent=parent.hash,
            proposer=self.genesis.proposer,
            rules=self.rules(),
        )

    def _append(self, block: Block, changes: tuple[QueueChange, ...]) -> None:
        self._blocks.append(block)
        self._queue_changes.append(changes)

    # Going back

    def snapshot(self) -> Snapshot:
        """Return the present point. Costs nothing."""
        return Snapshot(self.height, self.head.hash)

    def revert(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot: state, clock, queue, fees.

        Raises:
            Rejection: ``NOT_FOUND`` if the chain does not hold that block (any more).
        """
        if snapshot.height > self.height or self._blocks[snapshot.height].hash != snapshot.hash:
            raise Rejection(
                RejectionReason.NOT_FOUND,
                f"the chain does not hold block {snapshot.hash} at height {snapshot.height}",
                height=snapshot.height,
            )
        while self.height > snapshot.height:
            self._blocks.pop()
            for change in reversed(self._queue_changes.pop()):
                if change.placed:
                    self.queue.cancel(change.timer_id)
                else:
                    self.queue.restore(change.height, change.sequence, change.timer_id)
        self.queue.rewind(snapshot.height)
        self._store.revert(snapshot.height)

    # Looking

    def ask(self, actor: bytes, handler: str, payload: bytes, *, sender: bytes, meter: Meter) -> Outcome:
        """Run a handler read-only, as the next block would; nothing changes and nobody pays.

        Args:
            actor: Whose handler, 20 bytes.
            handler: Function or method.
            payload: Its argument.
            sender: Immediate caller that the handler sees, 20 bytes.
            meter: What it may use, and then what it has used.
        """
        return ask(
            self._next_context(None),
            self._store,
            queue=self.queue,
            engine=self.engine,
            actor=actor,
            handler=handler,
            payload=payload,
            sender=sender,
            meter=meter,
        )

    @property
    def height(self) -> int:
        """Height of the head."""
        return len(self._blocks) - 1

    @property
    def head(self) -> Block:
        """The last block."""
        return self._blocks[-1]

    @property
    def state_root(self) -> Hash32:
        """Root of the state after the head."""
        return self._store.state_root

    @property
    def blocks(self) -> list[Block]:
        """All blocks, block 0 first; the chain's own list, for reading."""
        return self._blocks

    def rules(self) -> Rules:
        """Return the rules of the next block."""
        if self._rules is None or self._rules[0] != self._store.state_root:
            self._rules = (self._store.state_root, read_rules(self.params, self._store.read))
        return self._rules[1]

    def account(self, address: bytes) -> Account | None:
        """Return an account, or None."""
        octets = self._store.read(account_key(address))
        return None if octets is None else decode_account(octets)

    def balance(self, address: bytes) -> int:
        """Return a balance in base units; 0 for an account that is not there."""
        account = self.account(address)
        return 0 if account is None else amount_of(account.balance)

    def accounts(self) -> Iterator[tuple[bytes, Account]]:
        """Yield every address and account, in order of address."""
        for key, octets in self._store.iterate(ACCOUNTS):
            yield key[1:], decode_account(octets)

    def storage(self, address: bytes) -> dict[bytes, bytes]:
        """Return all slots of an actor."""
        return dict(decode_slot(octets) for _, octets in self._store.iterate(STORAGE, *storage_range(address)))

    def timer(self, timer_id: bytes) -> Timer | None:
        """Return a live timer by id, or None."""
        height = self.queue.height_of(timer_id)
        if height is None:
            return None
        octets = self._store.read(timer_key(height, timer_id))
        return None if octets is None else decode_timer(octets)

    def timers(self) -> Iterator[Timer]:
        """Yield every live timer in order of height and, within a height, of insertion."""
        waiting: list[Timer] = []
        for _, octets in self._store.iterate(TIMERS):
            timer = decode_timer(octets)
            if waiting and waiting[0].height != timer.height:
                yield from sorted(waiting, key=lambda item: item.sequence)
                waiting.clear()
            waiting.append(timer)
        yield from sorted(waiting, key=lambda item: item.sequence)

    def timers_at(self, height: int) -> list[Timer]:
        """Return the live timers of one height in order of insertion. Spec: CIP-5 §3.2."""
        found = (self.timer(timer_id) for timer_id in self.queue.ids_at(height))
        return [timer for timer in found if timer is not None]

    def tier(self, timer: Timer) -> str:
        """Return the tier that a live timer's height calls for now."""
        return tier_of(timer.height, self.height, self.params.calendar).value

    def economy(self) -> tuple[int, int]:
        """Return the supply at genesis and what has been burned since, in base units."""
        octets = self._store.read(ECONOMY_KEY)
        if octets is None:
            raise InvariantError("the state holds no economy record")
        economy = decode_record(octets, Economy)
        return amount_of(economy.supply), amount_of(economy.burned)

    def circulating(self) -> int:
        """Return the sum of all balances, in base units.

        Complexity: O(accounts).
        """
        return sum(amount_of(account.balance) for _, account in self.accounts())

    def totals(self) -> SchedulerTotals:
        """Return the running totals over all timers."""
        octets = self._store.read(SCHEDULER_KEY)
        return SchedulerTotals() if octets is None else decode_record(octets, SchedulerTotals)

    def check_invariants(self) -> None:
        """Check money, timers, queue and store against one another, the slow way.

        Spec: CIP-5 §5.4
        Decision: D-35

        Raises:
            InvariantError: Naming what does not add up.
        """
        supply, burned = self.economy()
        balances = self.circulating()
        if balances + burned != supply:
            raise InvariantError(f"balances {balances} + burned {burned} is not the supply {supply}")
        totals = self.totals()
        live = self._store.count(TIMERS)
        ended = totals.fired + totals.unfunded + totals.expired + totals.cancelled
        if ended + live != totals.scheduled:
            raise InvariantError(f"{totals.scheduled} timers scheduled, {ended} ended and {live} live")
        self._check_timers(live)
        self.queue.check_invariants()
        self._store.check_invariants()

    def _check_timers(self, live: int) -> None:
        counts: dict[bytes, int] = {}
        for timer in self.timers():
            counts[timer.actor] = counts.get(timer.actor, 0) + 1
            if self.queue.height_of(timer.timer_id) != timer.height:
                raise InvariantError(f"the queue does not hold timer {timer.timer_id.hex()} at height {timer.height}")
        if len(self.queue) != live:
            raise InvariantError(f"the queue holds {len(self.queue)} timers, the state {live}")
        for address, account in self.accounts():
            if account.timer_count != counts.get(address, 0):
                raise InvariantError(
                    f"actor {address.hex()} counts {account.timer_count} timers and has {counts.get(address, 0)}"
                )

    def close(self) -> None:
        """Release what the engine holds."""
        self.engine.close()
