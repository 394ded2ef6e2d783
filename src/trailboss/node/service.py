"""The node: a running chain with its mempool and its index, and the requests that it takes."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain as chained
from tempfile import TemporaryDirectory
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from trailboss.chain import Chain
from trailboss.chain.jobs import runner_of
from trailboss.chain.view import ChainView
from trailboss.codec.wire import encode_transaction
from trailboss.index import Index
from trailboss.index.records import IndexedTransaction
from trailboss.mempool import AdmissionOutcome, AdmissionStatus, Mempool
from trailboss.model.blocks import Block, Origin
from trailboss.model.timers import Timer
from trailboss.model.transactions import Transaction
from trailboss.node.block_builder import Builder, Clocks, Published, StoppingError
from trailboss.node.canned_replies import Replier, read_replies
from trailboss.node.chain_thread import STOPPING, ChainThread
from trailboss.node.crowd import NodeCrowd
from trailboss.node.dev_controls import Development
from trailboss.node.feed import Feed
from trailboss.node.logs import log_failure, log_step
from trailboss.node.metrics import Metrics
from trailboss.node.network import Network
from trailboss.node.options import NodeOptions, Pace
from trailboss.node.traces import TraceRoom
from trailboss.node.view_leases import Lender
from trailboss.node.watchtower import Watchtower
from trailboss.node.workbench import Workbench
from trailboss.primitives.errors import ErrorObject, Rejection, StorageError
from trailboss.primitives.octets import ZERO_HASH, Address, Hash32
from trailboss.primitives.units import check_range
from trailboss.views import Answer
from trailboss.views.read_only_calls import ask_actor, try_timer

if TYPE_CHECKING:
    from trailboss.simulator.live import LiveCrowd

Result = TypeVar("Result")
WORKERS: Final = 2  # threads that admit long submissions: signature checks leave the interpreter to others
ADMITTED_HERE_MAX: Final = 8  # transactions of a submission that the event loop admits itself, some 100 µs each
ASKED_CYCLES_MAX: Final = 1_000_000  # cycles that a view may use: it runs between two blocks, and both wait for it
RUNNING: Final = "running"
STOPPING_STATUS: Final = "stopping"
FAILED: Final = "failed"
MILLISECONDS: Final = 1_000
CLOCKS: Final = Clocks(monotonic_ns, time_ns)


class Health(Struct, frozen=True):
    """Whether a node works: ``running``, ``stopping`` or ``failed``, and why it failed."""

    status: str
    reason: str = ""

    @property
    def is_running(self) -> bool:
        """Whether it takes requests."""
        return self.status == RUNNING


class TransactionOutcome(Struct, frozen=True):
    """What became of a transaction."""

    hash: Hash32  # the transaction's
    place: IndexedTransaction | None = None  # where it is; None if no block will hold it
    block: Block | None = None  # the block that holds it; None likewise
    rejection: Rejection | None = None  # why no block will hold it; None if one does


class OutcomeWait:
    """A request that waits for what becomes of transactions."""

    __slots__ = ("ended", "found", "missing")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.missing: set[Hash32] = set()  # hashes of those that it waits for
        self.found: dict[Hash32, TransactionOutcome] = {}
        self.ended: asyncio.Future[None] = loop.create_future()

    def note(self, outcome: TransactionOutcome) -> None:
        """Note an outcome; the last one ends the wait."""
        self.missing.discard(outcome.hash)
        self.found[outcome.hash] = outcome
        if not self.missing:
            self.end()

    def end(self, error: StoppingError | None = None) -> None:
        """End the wait, with what was found or with an error."""
        if not self.ended.done():
            if error is None:
                self.ended.set_result(None)
            else:
                self.ended.set_exception(error)


class Node:
    """A running chain.

    Any thread may read `view`, `index` and `mempool`; all else belongs to the event loop. A request takes `view` once
    and answers wholly from it. To find a transaction, look into the mempool first and take the view after: what has
    left the mempool is in a block of that view. `development` is None unless the node runs as `trailboss dev`; `ended`
    is set when an error has stopped the chain.
    """

    def __init__(
        self,
        chain: Chain,
        mempool: Mempool,
        index: Index,
        options: NodeOptions,
        clocks: Clocks = CLOCKS,
        *,
        temporary: TemporaryDirectory[str] | None = None,
    ) -> None:
        """Prepare a node; `start` makes it run, `close` closes all that it was given."""
        self.options = options
        self.mempool = mempool
        self.index = index
        self.metrics = Metrics()
        self.watchtower = Watchtower(index)
        self.lender = Lender(clocks.now)
        self.traces = TraceRoom(index)
        genesis = chain.genesis
        self.workbench = Workbench(chain.params, genesis.image, breakpoints=genesis.allows_breakpoints)
        self._tasks: set[asyncio.Task[None]] = set()
        self.health = Health(RUNNING)
        self.failure: BaseException | None = None  # what it failed of
        self.network: Network | None = None  # the network that it is part of; None for a chain of its own
        self.ended = asyncio.Event()
        self._chain = chain
        self._temporary = temporary
        self._chain_thread = ChainThread(
            *(chain, mempool, index, options, clocks),
            on_step=self._on_step,
            announce=self._announce,
            failed=self._announce_failure,
        )
        admit = partial(self.admit, are_signed=False)
        development = Development(mempool, self.do, admit, self.set_pace, self._chain_thread.mine_here)
        self.development = development if options.development else None
        self._replier: Replier | None = None
        if options.development and options.replies is not None:
            self._replier = Replier(read_replies(options.replies), development.set_runner, development.reply)
        self.feed = Feed(self.view)
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="worker")
        self.crowd: NodeCrowd | None = None  # whose orders are sent after each step; None for none
        self._waits: dict[bytes, set[OutcomeWait]] = {}  # by hash of a transaction
        self._loop: asyncio.AbstractEventLoop
        self._is_closed = False

    @property
    def view(self) -> ChainView:
        """The chain after its last step."""
        return self._chain_thread.builder.view

    @property
    def is_busy(self) -> bool:
        """Whether a block or a command has the chain."""
        return self._chain_thread.is_busy

    @property
    def pace(self) -> Pace:
        """When blocks are built, at present."""
        return self._chain_thread.pace

    async def submit(self, transactions: Sequence[Transaction]) -> list[AdmissionOutcome]:
        """Admit signed transactions to the mempool, in order, and return a verdict on each.

        What is accepted is safe: if the chain is in a directory, the mempool's journal has it. A few are admitted at
        once; a caller that goes on to `outcomes` without a pause waits before the block is built.

        Raises:
            StoppingError: If the node stops.
        """
        self._check_running()
        if len(transactions) > ADMITTED_HERE_MAX:
            return await self._loop.run_in_executor(self._pool, self.admit, transactions)
        verdicts = [self._admit(transaction) for transaction in transactions]
        self._on_verdicts(verdicts)
        return verdicts

    @property
    def builder(self) -> Builder:
        """What builds its blocks; its methods run on the chain thread alone."""
        return self._chain_thread.builder

    async def outcome(self, tx_hash: Hash32, timeout_ms: int) -> TransactionOutcome | None:
        """Wait until a transaction is in a block or refused; None if neither happens in time. See `outcomes`."""
        return (await self.outcomes((tx_hash,), timeout_ms)).get(tx_hash)

    async def outcomes(self, hashes: Iterable[Hash32], timeout_ms: int) -> dict[Hash32, TransactionOutcome]:
        """Wait until transactions are in blocks or refused, and return the outcome of each that is in time.

        Raises:
            StoppingError: If the node stops meanwhile.
        """
        self._check_running()
        wait = OutcomeWait(self._loop)
        wait.missing.update(hashes)
        waited = list(wait.missing)
        try:
            for tx_hash in waited:
                # The wait begins before the look, so that no block comes between the two.
                self._waits.setdefault(tx_hash, set()).add(wait)
                if self.mempool.find(tx_hash) is None:
                    self._note_known(tx_hash, wait)
            if wait.missing:
                timer = self._loop.call_later(timeout_ms / MILLISECONDS, wait.end)
                try:
                    await wait.ended
                finally:
                    timer.cancel()
            return wait.found
        finally:
            for tx_hash in waited:
                waits = self._waits[tx_hash]
                waits.discard(wait)
                if not waits:
                    del self._waits[tx_hash]

    async def ask(self, actor: Address, handler: str, payload: bytes, sender: Address, cycles_limit: int) -> Answer:
        """Run a handler read-only between two blocks, as the next block would, with at most 1,000,000 cycles.

        Raises:
            Rejection: ``INVALID_DATA`` or ``OVERFLOW`` for another limit.
            StoppingError: If the node stops meanwhile.
        """
        check_range("cycles_limit", cycles_limit, ASKED_CYCLES_MAX, 1)
        return await self.do(
            lambda builder: ask_actor(builder.chain, actor, handler, payload, sender=sender, cycles_limit=cycles_limit)
        )

    async def do(self, command: Callable[[Builder], Result]) -> Result:
        """Run a command on the chain thread, between two blocks, and return its result.

        Raises:
            Rejection: If the command is refused.
            StoppingError: If the node stops first.
        """
        return await asyncio.wrap_future(self._chain_thread.do(command))

    async def on_chain(self, work: Callable[[], Result]) -> Result:
        """Run a network's work on the chain thread, also while one of its blocks is staged.

        Raises:
            StoppingError: If the node stops first.
        """
        return await asyncio.wrap_future(self._chain_thread.do(lambda _: work(), for_network=True))

    async def set_pace(self, pace: Pace) -> None:
        """Go on at another pace."""
        await asyncio.wrap_future(self._chain_thread.set_pace(pace))

    def gather(self, crowd: "LiveCrowd") -> None:
        """Let the agents of a crowd send transactions from the next block on."""
        self.crowd = NodeCrowd(crowd, self.mempool, partial(self.admit, are_signed=False))

    def start(self) -> None:
        """Begin to build blocks, and to announce them to the running event loop."""
        self._loop = asyncio.get_running_loop()
        if self.view.height:
            # After the first answer, and beside the blocks: only one in which a program runs waits for it. At genesis a
            # chain has no actors, and its first deployment loads the engine.
            self._begin(self._prepare())
        self._chain_thread.start()
        if self._replier is not None:
            starts_runner = not runner_of(self.view).jobs_max
            self._begin(self._replier.send(self._replier.answers(self.view), starts_runner=starts_runner))

    def begin_stop(self) -> None:
        """End what waits and streams, and refuse what comes: the node stops."""
        if self.health.is_running:
            self.health = Health(STOPPING_STATUS)
        # A long advance ends with its next step, and its caller gets StoppingError.
        self._chain_thread.stop()
        self.traces.stop()
        self.feed.close(STOPPING_STATUS)
        for wait in chained.from_iterable(self._waits.values()):
            wait.end(StoppingError(STOPPING))

    async def close(self) -> None:
        """Finish the present block, end the threads, close index, mempool and chain; again, it does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        self.begin_stop()
        await asyncio.to_thread(self._chain_thread.join)
        await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)
        # Readers must finish before the files are closed.
        await asyncio.get_running_loop().shutdown_default_executor()
        self.workbench.close()
        self.index.close()
        self.mempool.close()
        self._chain.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    # On any thread but the event loop's

    def admit(self, transactions: Sequence[Transaction], *, are_signed: bool = True) -> list[AdmissionOutcome]:
        """Admit transactions as `submit` does.

        A development chain takes unsigned transactions, but only from `Development`, never from the network.

        Raises:
            StoppingError: If the mempool's journal cannot be written: the node fails.
        """
        vouched = self.mempool.find_signed(self.view, transactions) if are_signed else range(len(transactions))
        verdicts = [self._admit(each, is_signed=place not in vouched) for place, each in enumerate(transactions)]
        self._loop.call_soon_threadsafe(self._on_verdicts, verdicts)
        return verdicts

    def try_timer(self, timer: Timer) -> ErrorObject | None:
        """Try a live timer's handler on the chain thread, between two blocks; see `read_only_calls.try_timer`.

        Raises:
            StoppingError: If the node stops meanwhile.
        """

        def command(builder: Builder) -> ErrorObject | None:
            # The chain may have gone on since the caller took its view.
            live = builder.chain.timer(timer.timer_id)
            return None if live is None else try_timer(builder.chain, live)

        return self._chain_thread.do(command).result()

    def state_after(self, height: int) -> ChainView:
        """Return the chain as it stood after an earlier block.

        Raises:
            Rejection: ``NOT_FOUND`` if the node does not hold that state any more, or there is no such block.
            StoppingError: If the node stops meanwhile.
        """
        return self._chain_thread.do(lambda builder: builder.chain.publish(height)).result()

    def _admit(self, transaction: Transaction, *, is_signed: bool = True) -> AdmissionOutcome:
        try:
            raw = encode_transaction(transaction)
        except Rejection as rejection:
            return AdmissionOutcome(hash=ZERO_HASH, status=AdmissionStatus.REFUSED, rejection=rejection)
        try:
            return self.mempool.admit(self.view, raw, transaction, is_signed=is_signed)
        except StorageError as error:
            self._announce_failure(error)
            raise StoppingError(STOPPING) from error

    # On the thread that has the chain

    def _announce(self, published: Published) -> None:
        self._loop.call_soon_threadsafe(self._on_announcement, published)

    def _announce_failure(self, error: BaseException) -> None:
        self._loop.call_soon_threadsafe(self.fail, error)

    # On the event loop

    def _on_announcement(self, published: Published) -> None:
        try:
            self._on_step(published)
        finally:
            self._chain_thread.step_done()

    def _on_step(self, published: Published) -> None:
        log_step(published)
        self.metrics.record(published)
        self.watchtower.record(published)
        self.feed.publish(published)
        self.lender.end_leases()
        if self.crowd is not None:
            self.crowd.record(published)
        if self._replier is not None:
            answers = self._replier.answers(published.view, has_gone_back=published.reorg_from is not None)
            if answers:
                self._begin(self._replier.send(answers))
        if self._waits:
            for block in published.blocks:
                self._finish_waits(included(block))
            refused = published.refused.items()
            self._finish_waits(TransactionOutcome(tx_hash, rejection=why) for tx_hash, why in refused)

    async def _prepare(self) -> None:
        """Load the engine; the node fails if that fails."""
        try:
            await self._loop.run_in_executor(self._pool, self._chain.engine.prepare)
        except Exception as error:  # noqa: BLE001  # whatever it is, the chain stops here, and says so
            self.fail(error)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        """Begin a task that the node waits for when it ends."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_verdicts(self, verdicts: Sequence[AdmissionOutcome]) -> None:
        for verdict in verdicts:
            self.on_verdict(verdict)
            if verdict.rejection is None and not self._chain_thread.is_build_scheduled:
                # In the loop's next turn, so that one block holds what comes in this one.
                self._chain_thread.is_build_scheduled = True
                self._loop.call_soon(self._chain_thread.build_here)
        if self.network is not None:
            self.network.relay([verdict.hash for verdict in verdicts if verdict.rejection is None])

    def on_verdict(self, verdict: AdmissionOutcome) -> None:
        """Count a verdict of the mempool, and end the waits that it has ended."""
        if verdict.rejection is not None:
            self.metrics.refused(verdict.rejection)
        self._finish_waits(TransactionOutcome(each.hash, rejection=each.rejection) for each in verdict.endings)

    def _finish_waits(self, outcomes: Iterable[TransactionOutcome]) -> None:
        for outcome in outcomes:
            for wait in self._waits.get(outcome.hash, ()):
                wait.note(outcome)

    def _note_known(self, tx_hash: Hash32, wait: OutcomeWait) -> None:
        """Note what became of a transaction that waits no longer, if that is known."""
        found, rejection = self.index.transaction(tx_hash, self.view.height), self.mempool.refusal(tx_hash)
        if found is not None:
            wait.note(TransactionOutcome(tx_hash, found, self.view.blocks[found.height]))
        elif rejection is not None:
            wait.note(TransactionOutcome(tx_hash, rejection=rejection))

    def fail(self, error: BaseException) -> None:
        """Stop the node for an error, and say why."""
        if self.failure is not None:
            return
        self.failure = error
        self.health = Health(FAILED, str(error) or type(error).__name__)
        log_failure(error)
        self.begin_stop()
        self.ended.set()

    def _check_running(self) -> None:
        if self.health.status != RUNNING:
            raise StoppingError(STOPPING)


def included(block: Block) -> Iterator[TransactionOutcome]:
    """Yield what became of a block's transactions, in order."""
    found = (at for at, receipt in enumerate(block.receipts) if receipt.origin is Origin.TRANSACTION)
    for position, at in enumerate(found):
        tx_hash = Hash32(block.receipts[at].origin_hash)
        place = IndexedTransaction(hash=tx_hash, height=block.height, position=position, receipt=at)
        yield TransactionOutcome(tx_hash, place, block)
