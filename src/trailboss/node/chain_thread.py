"""The chain thread: it builds blocks at the node's pace and runs commands in between.

The chain has one owner at a time, the holder of a token. The thread takes it for each block and each command; the
event loop takes it, if it is free, for a small block, which costs less than a change of threads.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Condition, Lock, Thread, get_ident
from typing import Final, TypeVar

from trailboss.chain import Chain
from trailboss.index import Index
from trailboss.mempool import Mempool
from trailboss.node.block_builder import (
    NANOSECONDS_PER_MS,
    NANOSECONDS_PER_SECOND,
    Builder,
    Clocks,
    Published,
    StoppingError,
)
from trailboss.node.block_timer import BlockTimer
from trailboss.node.options import NodeOptions, Pace, Rhythm
from trailboss.primitives.errors import Rejection

Result = TypeVar("Result")
STOPPING: Final = "the node is stopping"
WORK_PERCENT: Final = 50
"""Part of an interval after which a block takes no further transaction: one frame, the commit and readers follow."""
STEPS_BEHIND_MAX: Final = 16  # steps that the event loop may be behind before a long advance waits for it


class ChainThread:
    """Runs a builder on a thread of its own.

    Blocks and commands take turns: after each block at least one command runs, and commands never put a block off for
    longer than one of them takes. An error that is no refusal ends the thread: the chain stops, it never limps on.
    """

    def __init__(
        self,
        chain: Chain,
        mempool: Mempool,
        index: Index,
        options: NodeOptions,
        clocks: Clocks,
        *,
        on_step: Callable[[Published], None],
        announce: Callable[[Published], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Prepare the thread; from `start` to `join` nothing else may use the chain.

        The event loop deals with its own steps by ``on_step``. The chain thread calls ``announce``, and `step_done`
        follows when the step has been dealt with. The thread that meets an error calls ``failed``.
        """
        self.builder = Builder(
            chain, mempool, index, options, clocks, announce=self._announce, is_stopping=lambda: self._is_stopping
        )
        self.is_build_scheduled = False  # whether `build_here` is about to be called
        self._mempool = mempool
        self._now = clocks.now
        self._on_step, self._listener = on_step, announce
        self._failed = failed
        self._timer = BlockTimer(options.pace, clocks.now())
        self._commands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._put_off: list[Callable[[], None]] = []  # commands that wait until no block is staged
        self._thread = Thread(target=self._run, name="chain", daemon=True)
        self._token = Lock()
        self._is_stopping = False
        self._steps_behind = 0
        self._catching_up = Condition()
        self._is_closed = False
        self._gate = Lock()

    # From any thread

    @property
    def pace(self) -> Pace:
        """When blocks are built, at present."""
        return self._timer.pace

    @property
    def is_busy(self) -> bool:
        """Whether a block or a command has the chain."""
        return self._token.locked()

    def start(self) -> None:
        """Begin. The first block of an interval comes one interval from now."""
        self._timer.change(self._timer.pace, self._now())
        self._thread.start()

    def do(self, command: Callable[[Builder], Result], *, for_network: bool = False) -> Future[Result]:
        """Have a command run on the chain thread, and return its future result.

        A refusal goes to the caller, as does `StoppingError`; any other error goes there too, and ends the thread.
        While a network's block is staged, only the network's own commands run, and the others wait.
        """
        future: Future[Result] = Future()

        def run() -> None:
            if self.builder.is_staged and not for_network and not self._is_stopping:
                self._put_off.append(run)
                return
            if not future.set_running_or_notify_cancel():
                return
            try:
                if self._is_stopping:
                    raise StoppingError(STOPPING)
                result = command(self.builder)
            except (Rejection, StoppingError) as refusal:
                future.set_exception(refusal)
            except BaseException as error:
                future.set_exception(error)
                raise
            else:
                future.set_result(result)

        with self._gate:
            if self._is_closed:
                future.set_exception(StoppingError(STOPPING))
            else:
                self._commands.put(run)
        return future

    def wake(self) -> None:
        """Have the thread build a block of what waits, if the pace says so."""
        if self.pace.is_prompt:
            self._commands.put(_do_nothing)

    def set_pace(self, pace: Pace) -> Future[None]:
        """Go on at another pace."""
        return self.do(lambda _: self._timer.change(pace, self._now()))

    def step_done(self) -> None:
        """Note that an announced step has been dealt with."""
        with self._catching_up:
            self._steps_behind -= 1
            self._catching_up.notify()

    def stop(self) -> None:
        """Have the thread end after the present block; commands that wait are refused."""
        self._is_stopping = True
        with self._catching_up:
            self._catching_up.notify()
        self._commands.put(_do_nothing)

    def join(self) -> None:
        """Wait for the thread's end; the chain belongs to the caller again."""
        if self._thread.ident is not None:
            self._thread.join()

    # On the event loop

    def build_here(self) -> None:
        """Build a block at once if it is due and small and the thread is idle; else wake the thread.

        The steps before it must have been dealt with, so that all are announced in order.
        """
        self.is_build_scheduled = False
        if not self._timer.pace.is_prompt or self._is_stopping:
            return
        with self._chain_here() as builder:
            if builder is not None:
                if builder.build(is_optional=True, runs_programs=False):
                    self._timer.built(self._now())
                if not len(self._mempool):
                    return
        self.wake()

    def mine_here(self) -> int | None:
        """Build a block at once, an empty one if nothing waits, and return its height.

        It builds none, and returns None, where `build_here` would leave it to the chain thread.
        """
        with self._chain_here() as builder:
            if builder is not None:
                builder.advance(builder.chain.height + 1, runs_programs=False)
                self._timer.built(self._now())
                if len(self._mempool):
                    self.wake()
                return builder.chain.height
        return None

    @contextmanager
    def _chain_here(self) -> Iterator[Builder | None]:
        """Lend the chain, if the thread is idle, its steps are all dealt with, and the next block is small."""
        if self._is_stopping or self._steps_behind or not self._token.acquire(blocking=False):
            yield None
            return
        try:
            yield self.builder if self.builder.is_small() else None
        except BaseException as error:  # noqa: BLE001  # as in _run
            self._fail(error)
        finally:
            self._token.release()

    # On the chain thread

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                with self._token:
                    self._timer.wait_for(self.builder.chain.awaits_blocks(), self._now())
                    if self._timer.is_due(self._now()):
                        self._build()
                self._run_command()
        except BaseException as error:  # noqa: BLE001  # whatever it is, the chain stops here, and says so
            self._fail(error)
        finally:
            self._refuse_the_rest()

    def _fail(self, error: BaseException) -> None:
        self._is_stopping = True
        self._failed(error)

    def _build(self) -> None:
        begun = self._now()
        pace, late = self._timer.pace, self._timer.take(begun)
        within, hold = None, None
        if pace.rhythm is Rhythm.INTERVAL:
            # From its time, so that a late block takes less, and the next comes in time again.
            within = pace.block_time_ms * NANOSECONDS_PER_MS * WORK_PERCENT // 100 - (late or 0)
            hold = partial(self._hold, begun)
        # A block that only a call made due is built if there is something to put into it.
        if self.builder.build(late=late, within=within, is_optional=late is None, hold=hold):
            self._timer.built(self._now())
        elif pace.rhythm is Rhythm.DUE and self.builder.chain.awaits_blocks():
            self.builder.skip()

    def _hold(self, begun: int) -> int:
        """Wait for the place of a block of the interval, and return the nanoseconds that it took. Decision: D-127."""
        done = self._now()
        self._timer.took(done - begun)
        wait = self._timer.place - done
        if wait > 0:
            with self._catching_up:
                self._catching_up.wait_for(lambda: self._is_stopping, wait / NANOSECONDS_PER_SECOND)
        return self._now() - done

    def _run_command(self) -> None:
        """Run the next command, if one comes before a block is due."""
        try:
            command = self._commands.get(timeout=self._patience())
        except Empty:
            return
        with self._token:
            command()
            if self._put_off and not self.builder.is_staged:
                for each in self._put_off:
                    self._commands.put(each)
                self._put_off.clear()
            # Whatever it did, something may wait for a block now.
            self._timer.call()

    def _patience(self) -> float | None:
        """Return the seconds until a block is due; None if only a command can make one due."""
        now = self._now()
        if self._timer.is_due(now):
            return 0
        deadline = self._timer.deadline
        return None if deadline is None else (deadline - now) / NANOSECONDS_PER_SECOND

    def _announce(self, published: Published) -> None:
        if get_ident() != self._thread.ident:
            self._on_step(published)
            return
        with self._catching_up:
            self._steps_behind += 1
        self._listener(published)
        if published.late is None:
            # A long advance is faster than any listener; a block of the interval waits for none.
            with self._catching_up:
                self._catching_up.wait_for(lambda: self._steps_behind < STEPS_BEHIND_MAX or self._is_stopping)

    def _refuse_the_rest(self) -> None:
        with self._gate:
            self._is_closed = True
        for command in self._put_off:
            command()
        with suppress(Empty):
            while True:
                self._commands.get_nowait()()


def _do_nothing() -> None:
    """Make the thread look whether a block is due."""
