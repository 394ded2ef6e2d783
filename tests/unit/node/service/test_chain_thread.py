"""The chain thread: blocks at the node's pace, commands in between, and how it ends."""

from collections.abc import Iterator
from queue import SimpleQueue
from threading import Event, current_thread

import pytest

from tests.unit.node.service.world import PATIENCE, Notes, gift, make_world, take_time
from trailboss.chain import Chain
from trailboss.chain.development import account_name, development_account
from trailboss.chain.drafts import draft_transaction
from trailboss.chain.opening import GenesisOptions, new_genesis
from trailboss.codec.wire import encode_transaction
from trailboss.crypto.digest import sha256
from trailboss.mempool import Mempool
from trailboss.node.block_builder import BATCH_BLOCKS, SMALL_TRANSFERS_MAX, Builder, Clocks, Published, StoppingError
from trailboss.node.chain_thread import STEPS_BEHIND_MAX, ChainThread
from trailboss.node.options import AUTO, MANUAL, NodeOptions, Pace
from trailboss.primitives.errors import InvariantError, Rejection
from trailboss.primitives.octets import Hash32

SECOND = 10**9


class Stage:
    """A chain_thread on a chain in memory, a clock held in the hand, and what it says."""

    def __init__(self, pace: Pace, *, hears: bool = True) -> None:
        self.now = 0
        self.chain = Chain(new_genesis(GenesisOptions()))
        self.mempool, self.index = Mempool(), Notes()
        self.announced: SimpleQueue[Published] = SimpleQueue()
        self.failures: SimpleQueue[BaseException] = SimpleQueue()
        self.hears = hears
        self.thread = ChainThread(
            self.chain,
            self.mempool,
            self.index,
            NodeOptions(pace=pace),
            Clocks(lambda: self.now, lambda: 0),
            on_step=self.announced.put,
            announce=self._announce,
            failed=self.failures.put,
        )
        self.thread.start()

    def _announce(self, published: Published) -> None:
        self.announced.put(published)
        if self.hears:
            self.thread.step_done()

    def turn(self) -> int:
        """Let the thread go round once or more, and return the height after."""
        self.thread.do(lambda _: None).result(PATIENCE)
        return self.thread.do(lambda builder: builder.chain.height).result(PATIENCE)

    def send(self, sender: int = 0) -> None:
        """Have a transaction wait."""
        account, view = development_account(account_name(sender)), self.thread.builder.view
        waiting = self.mempool.next_nonce(view, account.address) - (view.account(account.address).nonce)
        transaction = draft_transaction(view, gift(), account.private_key, waiting=waiting)
        raw = encode_transaction(transaction)
        assert self.mempool.add(view, transaction, raw, Hash32(sha256(raw))).rejection is None

    def close(self) -> None:
        """End the thread."""
        self.thread.stop()
        self.thread.join()


@pytest.fixture
def stages() -> Iterator[list[Stage]]:
    """Return a list of stages that are closed at the end."""
    made: list[Stage] = []
    yield made
    for stage in made:
        stage.close()


def on_stage(stages: list[Stage], pace: Pace, **options: bool) -> Stage:
    """Return a new stage that is closed at the end."""
    stages.append(Stage(pace, **options))
    return stages[-1]


def test_block_comes_when_the_interval_has_passed(stages: list[Stage]) -> None:
    """One for each place of the grid, one for several that went by; each says how late it is."""
    stage = on_stage(stages, Pace.every(3_600_000))
    hour = 3_600 * SECOND
    assert stage.turn() == 0
    for now, height in ((hour - 1, 0), (hour, 1), (hour + 5, 1), (2 * hour + SECOND, 2), (9 * hour, 3), (9 * hour, 3)):
        stage.now = now
        assert stage.turn() == height
    assert [stage.announced.get_nowait().late for _ in range(3)] == [0, 1, 6 * 3_600]


def test_block_of_the_clock_takes_transactions_for_half_of_the_interval(stages: list[Stage]) -> None:
    """A late one for what is left of it; what is built on request takes all, so that no test depends on time."""
    stage = on_stage(stages, Pace.every(1_000))
    stage.turn()
    take_time(stage, 100)
    for sender in range(8):
        stage.send(sender)
    for now in (1, 2):
        stage.now = now * SECOND
        assert stage.turn() == now
    for sender in range(8):
        stage.send(sender)
    # Because of the slow ones before it, its time is a quarter of the interval before its place.
    stage.now = 3 * SECOND - SECOND // 4 + 3 * SECOND // 10
    assert stage.turn() == 3
    stage.thread.do(lambda builder: builder.build()).result(PATIENCE)
    steps = [stage.announced.get(timeout=PATIENCE) for _ in range(4)]
    assert [(len(step.blocks[0].transactions), step.left) for step in steps] == [(5, 3), (3, 0), (2, 6), (6, 0)]


def test_block_of_the_clock_is_begun_before_its_place_and_out_at_it(
    stages: list[Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the last ones took and half as much; the wait is not counted as work."""
    stage = on_stage(stages, Pace.every(1_000))
    stage.turn()
    take_time(stage, 40)
    for height in (1, 2):
        stage.send()
        stage.send()
        stage.now = height * SECOND
        assert stage.turn() == height
    stage.send()
    stage.now = 3 * SECOND - 120 * SECOND // 1_000 - 1
    assert stage.turn() == 2
    waits = []

    def wait_for(_: object, seconds: float) -> None:
        waits.append((seconds, stage.chain.height, stage.thread.builder.view.height))
        stage.now += int(seconds * SECOND)

    monkeypatch.setattr(stage.thread._catching_up, "wait_for", wait_for)
    stage.now += 1
    assert stage.turn() == 3
    assert waits == [(0.08, 3, 2)]
    assert stage.now == 3 * SECOND
    steps = [stage.announced.get(timeout=PATIENCE) for _ in range(3)]
    assert [(step.late, step.seconds) for step in steps] == [(0, 0.08), (0.12, 0.08), (0, 0.04)]


def test_small_block_is_built_by_the_caller_when_the_thread_is_idle(stages: list[Stage]) -> None:
    """At once; the thread goes on from there."""
    stage = on_stage(stages, AUTO)
    stage.turn()
    stage.send()
    stage.thread.build_here()
    assert (stage.chain.height, len(stage.mempool)) == (1, 0)
    assert stage.announced.get_nowait().blocks[0].transactions
    assert stage.turn() == 1


@pytest.mark.parametrize("transfers", [1, SMALL_TRANSFERS_MAX + 1])
def test_block_is_left_to_the_thread_when_it_is_not_small_or_a_step_is_not_dealt_with(
    stages: list[Stage], transfers: int
) -> None:
    """So all steps are announced in order, and long blocks do not hold up the event loop."""
    stage = on_stage(stages, AUTO, hears=transfers > 1)
    stage.thread.do(lambda builder: builder.build()).result(PATIENCE)
    assert stage.announced.get(timeout=PATIENCE).view.height == 1
    stage.thread.do(lambda _: [stage.send() for _ in range(transfers)] and None).result(PATIENCE)
    stage.thread.build_here()
    while len(stage.mempool):
        assert stage.announced.get(timeout=PATIENCE).view.height > 1


def test_chain_stops_when_a_block_of_the_caller_fails(stages: list[Stage]) -> None:
    """As when the thread builds it."""
    stage = on_stage(stages, AUTO)
    stage.turn()
    error = InvariantError("sums differ")

    def refuse(*_: object, **__: object) -> None:
        raise error

    stage.send()
    stage.chain.build = refuse
    stage.thread.build_here()
    assert stage.failures.get(timeout=PATIENCE) is error


def test_no_block_comes_when_the_pace_is_manual(stages: list[Stage]) -> None:
    """Until somebody asks for one, or for another pace."""
    stage = on_stage(stages, MANUAL)
    stage.send()
    stage.thread.wake()
    stage.now = 10**6 * SECOND
    assert stage.turn() == 0
    stage.thread.do(lambda builder: builder.advance(2)).result(PATIENCE)
    assert stage.turn() == 2
    stage.send()
    stage.thread.set_pace(AUTO).result(PATIENCE)
    assert stage.turn() == 3


def test_command_runs_on_the_chain_thread_and_its_result_comes_back(stages: list[Stage]) -> None:
    """In the order in which they came."""
    stage = on_stage(stages, MANUAL)
    order: list[int] = []
    futures = [stage.thread.do(lambda _, number=number: order.append(number)) for number in range(5)]
    assert stage.thread.do(lambda _: current_thread().name).result(PATIENCE) == "chain"
    assert [future.result(PATIENCE) for future in futures] == [None] * 5
    assert order == [0, 1, 2, 3, 4]


def test_thread_goes_on_when_a_command_is_refused(stages: list[Stage]) -> None:
    """Its caller hears why."""
    stage = on_stage(stages, MANUAL)
    with pytest.raises(Rejection, match="cannot drop 1 blocks"):
        stage.thread.do(lambda builder: builder.reorg(1)).result(PATIENCE)
    assert stage.turn() == 0
    assert stage.failures.empty()


def test_command_is_left_out_when_nobody_waits_for_it_any_more(stages: list[Stage]) -> None:
    """It is cancelled before its turn comes."""
    stage = on_stage(stages, MANUAL)
    release, done = Event(), []
    blocking = stage.thread.do(lambda _: release.wait(PATIENCE))
    cancelled = stage.thread.do(lambda _: done.append(1))
    assert cancelled.cancel()
    release.set()
    assert blocking.result(PATIENCE)
    stage.turn()
    assert done == []


@pytest.mark.parametrize("error", [InvariantError("sums differ"), RuntimeError("a bug"), SystemExit(3)], ids=type)
def test_thread_ends_when_a_command_fails(stages: list[Stage], error: BaseException) -> None:
    """The chain stops and says so; whoever asked hears of it, and later ones are told that it stops."""
    stage = on_stage(stages, MANUAL)
    release = Event()

    def fail(builder: Builder) -> None:
        release.wait(PATIENCE)
        raise error

    failing = stage.thread.do(fail)
    behind = stage.thread.do(lambda _: 1)
    release.set()
    with pytest.raises(type(error)):
        failing.result(PATIENCE)
    assert stage.failures.get(timeout=PATIENCE) is error
    with pytest.raises(StoppingError, match="the node is stopping"):
        behind.result(PATIENCE)
    stage.thread.join()
    with pytest.raises(StoppingError, match="the node is stopping"):
        stage.thread.do(lambda _: 1).result(PATIENCE)


def test_thread_ends_when_building_a_block_fails(stages: list[Stage]) -> None:
    """As by a broken invariant, or a disk that is full."""
    stage = on_stage(stages, AUTO)
    error = InvariantError("sums differ")

    def refuse(*_: object, **__: object) -> None:
        raise error

    stage.chain.build = refuse
    stage.send()
    stage.thread.wake()
    assert stage.failures.get(timeout=PATIENCE) is error


def test_commands_that_wait_are_refused_when_the_thread_is_stopped(stages: list[Stage]) -> None:
    """The one that runs is finished."""
    stage = on_stage(stages, MANUAL)
    release, begun = Event(), Event()

    def work(builder: Builder) -> str:
        begun.set()
        release.wait(PATIENCE)
        return "done"

    running, waiting = stage.thread.do(work), stage.thread.do(lambda _: "never")
    begun.wait(PATIENCE)
    stage.thread.stop()
    release.set()
    assert running.result(PATIENCE) == "done"
    with pytest.raises(StoppingError):
        waiting.result(PATIENCE)


def test_block_is_mined_here_when_the_thread_is_idle_and_the_block_small(stages: list[Stage]) -> None:
    """With what waits, or empty; a transaction too many, or a thread at work, leaves it to the chain thread."""
    stage = on_stage(stages, MANUAL)
    stage.send()
    assert stage.thread.mine_here() == 1
    assert len(stage.announced.get(timeout=PATIENCE).blocks[0].transactions) == 1
    assert stage.thread.mine_here() == 2

    begun, release = Event(), Event()
    at_work = stage.thread.do(lambda _: (begun.set(), release.wait(PATIENCE)))
    begun.wait(PATIENCE)
    assert stage.thread.mine_here() is None
    release.set()
    at_work.result(PATIENCE)

    for _ in range(SMALL_TRANSFERS_MAX + 1):
        stage.send()
    stage.turn()
    assert stage.thread.mine_here() is None
    assert stage.turn() == 2


def test_what_does_not_fit_a_block_that_is_mined_here_has_the_next_one(stages: list[Stage]) -> None:
    """Under automatic pace, at once."""
    stage = on_stage(stages, AUTO)
    stage.turn()
    stage.thread.builder._options = NodeOptions(pace=AUTO, block_transactions_max=1)
    stage.send()
    stage.send()
    assert stage.thread.mine_here() == 1
    steps = [stage.announced.get(timeout=PATIENCE) for _ in range(2)]
    assert [len(step.blocks[0].transactions) for step in steps] == [1, 1]


def test_long_advance_waits_when_nobody_listens_and_ends_when_stopped(stages: list[Stage]) -> None:
    """It is a bounded number of steps ahead, goes on as they are heard of, and a stop ends the wait."""
    stage = on_stage(stages, MANUAL, hears=False)
    end = 40 * BATCH_BLOCKS
    advancing = stage.thread.do(lambda builder: builder.advance(end))
    heights = [stage.announced.get(timeout=PATIENCE).view.height for _ in range(STEPS_BEHIND_MAX)]
    assert heights == [BATCH_BLOCKS * count for count in range(1, STEPS_BEHIND_MAX + 1)]
    assert stage.announced.empty()
    stage.thread.step_done()
    assert stage.announced.get(timeout=PATIENCE).view.height == heights[-1] + BATCH_BLOCKS
    stage.thread.stop()
    with pytest.raises(StoppingError, match=rf"stops at height {heights[-1] + BATCH_BLOCKS}, before {end}"):
        advancing.result(PATIENCE)


def test_interval_waits_for_nobody_when_nobody_listens(stages: list[Stage]) -> None:
    """Blocks come, heard of or not."""
    stage = on_stage(stages, Pace.every(1_000), hears=False)
    for second in range(1, STEPS_BEHIND_MAX + 10):
        stage.now = second * SECOND
        assert stage.turn() == second


def test_stop_before_start_ends_nothing() -> None:
    """A node that never began is closed like any other."""
    world = make_world()
    chain_thread = ChainThread(
        world.chain,
        world.mempool,
        world.index,
        NodeOptions(pace=MANUAL),
        Clocks(lambda: 0, lambda: 0),
        on_step=lambda _: None,
        announce=lambda _: None,
        failed=lambda _: None,
    )
    chain_thread.stop()
    chain_thread.join()
    assert world.chain.height == 0
