"""The chain thread: the one thread that changes the chain. It builds blocks at the node's pace, obeys in between."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Condition, Lock, Thread
from typing import Final, TypeVar

from msgspec import Struct

from trailboss.chain import Chain
from trailboss.chain.idle_blocks import awaits_blocks
from trailboss.index import Index
from trailboss.mempool import Mempool
from trailboss.node.block_builder import NANOSECONDS_PER_SECOND, Builder, StoppingError, Surroundings
from trailboss.node.block_timer import Timetable
from trailboss.node.options import NodeOptions, Pace, Rhythm
from trailboss.node.step import Published
from trailboss.primitives.errors import Rejection

Result = TypeVar("Result")
STOPPING: Final = "the node is stopping"
UNHEARD_MAX: Final = 16
"""Steps that those who listen may be behind before a long advance waits for them."""


class Clocks(Struct, frozen=True):
    """The two clocks of a node, in nanoseconds.

    Attributes:
        now: One that never goes back.
        wall: Time since 1970.
    """

    now: Callable[[], int]
    wall: Callable[[], int]


class Producer:
    """Runs a builder on a thread of its own.

    Blocks and commands take turns: after each block at least one command runs, and commands never put a block off for
    longer than one of them takes. An error that is no refusal ends the thread: the chain stops, it never limps on.

    Attributes:
        builder: What works on the chain.
    """

    def __init__(
        self,
        chain: Chain,
        mempool: Mempool,
        index: Index,
        options: NodeOptions,
        clocks: Clocks,
        *,
        announce: Callable[[Published], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Prepare the thread.

        Args:
            chain: From `start` to `join` it belongs to the thread.
            mempool: What blocks are taken from.
            index: What is told of blocks first.
            options: The node's.
            clocks: What it goes by.
            announce: Called on the thread after each step; `heard` is to be called when it has been dealt with.
            failed: Called on the thread when it ends by an error.
        """
        surroundings = Surroundings(clocks.now, clocks.wall, self._announce, lambda: self._is_stopping)
        self.builder = Builder(chain, mempool, index, options, surroundings)
        self._now = clocks.now
        self._listener = announce
        self._failed = failed
        self._timetable = Timetable(options.pace, clocks.now())
        self._commands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._thread = Thread(target=self._run, name="chain", daemon=True)
        self._is_stopping = False
        self._unheard = 0
        self._hearing = Condition()
        self._is_closed = False
        self._gate = Lock()

    # From any thread

    @property
    def pace(self) -> Pace:
        """When blocks are built, at present."""
        return self._timetable.pace

    def start(self) -> None:
        """Begin. The first block of an interval comes one interval from now."""
        self._timetable.change(self._timetable.pace, self._now())
        self._thread.start()

    def do(self, command: Callable[[Builder], Result]) -> Future[Result]:
        """Have a command run on the chain thread, and return its result to be.

        A refusal goes to the caller, as does `StoppingError`; any other error goes there too, and ends the thread.
        """
        future: Future[Result] = Future()

        def run() -> None:
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
        """Say that a transaction waits."""
        if self.pace.rhythm is Rhythm.AUTO:
            self._commands.put(_do_nothing)

    def set_pace(self, pace: Pace) -> Future[None]:
        """Go on at another pace."""
        return self.do(lambda _: self._timetable.change(pace, self._now()))

    def heard(self) -> None:
        """Say that a step that was announced has been dealt with."""
        with self._hearing:
            self._unheard -= 1
            self._hearing.notify()

    def stop(self) -> None:
        """Have the thread end after the block that it builds; commands that wait are refused."""
        self._is_stopping = True
        with self._hearing:
            self._hearing.notify()
        self._commands.put(_do_nothing)

    def join(self) -> None:
        """Wait for the thread's end; the chain belongs to the caller again."""
        if self._thread.ident is not None:
            self._thread.join()

    # On the chain thread

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._timetable.wait_for(awaits_blocks(self.builder.chain), self._now())
                if self._timetable.is_due(self._now()):
                    self._build()
                self._obey()
        except BaseException as error:  # noqa: BLE001  # whatever it is, the chain stops here, and says so
            self._is_stopping = True
            self._failed(error)
        finally:
            self._refuse_the_rest()

    def _build(self) -> None:
        late = self._timetable.take(self._now())
        # What nothing but a call made due is built if there is something to put into it.
        if self.builder.build(late=late, is_optional=late is None):
            self._timetable.built(self._now())

    def _obey(self) -> None:
        """Run the next command, if one comes before a block is due."""
        try:
            command = self._commands.get(timeout=self._patience())
        except Empty:
            return
        command()
        # Whatever it did, something may wait for a block now.
        self._timetable.call()

    def _patience(self) -> float | None:
        """Return the seconds until a block is due; None if nothing but a command can make one due."""
        now = self._now()
        if self._timetable.is_due(now):
            return 0
        deadline = self._timetable.deadline
        return None if deadline is None else (deadline - now) / NANOSECONDS_PER_SECOND

    def _announce(self, published: Published) -> None:
        with self._hearing:
            self._unheard += 1
        self._listener(published)
        if published.late is None:
            # Long advances are faster than anybody can listen; a block of the interval waits for nobody.
            with self._hearing:
                self._hearing.wait_for(lambda: self._unheard < UNHEARD_MAX or self._is_stopping)

    def _refuse_the_rest(self) -> None:
        with self._gate:
            self._is_closed = True
        with suppress(Empty):
            while True:
                self._commands.get_nowait()()


def _do_nothing() -> None:
    """Make the thread look whether a block is due."""
