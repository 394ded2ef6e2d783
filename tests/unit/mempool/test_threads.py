"""Several threads at once: two bring, one takes, builds and settles, one tidies up; everybody's end is told once."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from tests.unit.mempool.world import BASEFEE, World, name_of, person, small, transfer
from trailboss.chain.admission import standing_of
from trailboss.codec.wire import encode_transaction
from trailboss.mempool import AdmissionOutcome, AdmissionStatus, Journal, journal
from trailboss.model.transactions import Transaction

BROUGHT = 400
BLOCKS = 40
ENOUGH = 60
"""Seconds after which a thread that still runs hangs."""


@pytest.fixture
def _restless_threads() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run_together(*bodies: Callable[[], None]) -> None:
    """Run functions in threads of their own; raise what one of them raised."""
    failures: list[BaseException] = []

    def run(body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ENOUGH)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


@pytest.mark.usefixtures("_restless_threads")
def test_everything_adds_up_when_threads_work_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was accepted waits or has ended, once; and the journal says the same."""
    monkeypatch.setattr(journal, "WASTE_MIN", 2_000)
    path = tmp_path / "mempool.journal"
    genesis = World().chain.genesis.instance_id()
    world = small(Journal.open(path, genesis), transactions_max=40, sender_transactions_max=8)
    verdicts: list[AdmissionOutcome] = []
    ended: list[bytes] = []
    bringing = threading.Barrier(2)
    busy = threading.Semaphore(0)

    def bring(seed: int) -> None:
        dice = Random(seed)
        bringing.wait(ENOUGH)
        for _ in range(BROUGHT):
            view = world.view
            sender = dice.randrange(8)
            nonce = standing_of(view, person(sender)).nonce + dice.choice((0, 0, 1, 2, 3))
            factor = dice.randrange(2, 9)
            terms = {"max_fee_per_cycle": factor * BASEFEE, "max_fee_per_cell": factor * BASEFEE}
            transaction = transfer(sender, nonce, max_priority_fee_per_cycle=factor + dice.randrange(50), **terms)
            raw = encode_transaction(transaction)
            verdicts.append(world.mempool.admit(view, raw, transaction, is_signed=False))
            busy.release()

    def build() -> None:
        for _ in range(BLOCKS):
            for _ in range(2 * BROUGHT // BLOCKS):
                assert busy.acquire(timeout=ENOUGH)
            ended.extend(ending.hash for ending in world.build())
            world.mempool.statistics()

    def look() -> None:
        for _ in range(BLOCKS):
            world.mempool.page(0, 10)

    run_together(lambda: bring(1), lambda: bring(2), build, look)
    came = Counter(
        verdict.hash for verdict in verdicts if verdict.status in (AdmissionStatus.ACCEPTED, AdmissionStatus.REPLACED)
    )
    ended.extend(ending.hash for verdict in verdicts for ending in verdict.endings)
    assert came == Counter(ended) + Counter(world.waiting())
    assert world.chain.height == BLOCKS
    assert {verdict.status for verdict in verdicts} >= {
        AdmissionStatus.ACCEPTED,
        AdmissionStatus.REPLACED,
        AdmissionStatus.REFUSED,
    }
    check_whole(world)
    store = Journal.open(path, genesis)
    store.close()
    assert list(store.take_found().waiting) == world.waiting()


def check_whole(world: World) -> None:
    """Check that every way of looking tells the same."""
    pooled = world.mempool.pooled()
    statistics = world.mempool.statistics()
    queues: dict[bytes, list[Transaction]] = {}
    for each in pooled:
        queues[each.transaction.sender] = [one.transaction for one in world.mempool.of_sender(each.transaction.sender)]
    assert sorted(map(name_of, (each for queue in queues.values() for each in queue))) == sorted(world.waiting())
    assert (statistics.senders, statistics.transactions) == (len(queues), len(pooled))
    assert statistics.bytes == sum(len(each.raw) for each in pooled)
    for sender, queue in queues.items():
        nonces = [transaction.nonce for transaction in queue]
        assert nonces == sorted(set(nonces))
        assert nonces[0] >= standing_of(world.view, sender).nonce
    executable = sum(
        transaction.nonce == standing_of(world.view, sender).nonce + index
        for sender, queue in queues.items()
        for index, transaction in enumerate(queue)
    )
    assert statistics.executable == executable == len(world.take())
