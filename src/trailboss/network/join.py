"""Joining a network by a snapshot: the engine fetches one from other nodes, and the chain is built of it.

The node serves nothing meanwhile. The engine is started once more when the node begins, and goes on from there.
"""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from trailboss.network.abci import AbciServer
from trailboss.network.answers import JoiningAnswers
from trailboss.network.engine import EngineProcess
from trailboss.network.halts import Halt, NetworkHaltError
from trailboss.network.home import Home
from trailboss.network.sync import Joining
from trailboss.node.logs import log

Answered = TypeVar("Answered")


class _Finished(Exception):
    """The engine asks for the next block: all that it needs of the snapshot is on its disk."""


async def join_network(home: Home, engine: Path) -> None:
    """Build a home's chain of a snapshot.

    Raises:
        NetworkHaltError: If the engine cannot go on.
        StorageError: If the disk fails.
        asyncio.CancelledError: If a signal ends it; nothing is left behind then.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    joining = Joining(home.chain_directory, home.genesis)
    process = EngineProcess(home.engine_command(engine), home.engine_log, lambda: joining.standing()[0])

    def finish(_request: Any, _answer: Any) -> None:
        if joining.joined is None:
            what = f"the engine asks for a block, and there is no chain in {home.chain_directory}"
            raise NetworkHaltError(Halt.HEIGHT_GAP, what)
        raise _Finished

    def fail(error: BaseException) -> None:
        if not done.done():
            done.set_exception(error)

    answers = JoiningAnswers(joining, finish)
    log().info("waits for a snapshot from other nodes", trusted=home.state_sync and home.state_sync.trust_height)
    loop.add_signal_handler(signal.SIGTERM, done.cancel)
    try:
        async with await AbciServer(answers, _at_once, fail).listen(home.app_socket):
            running = asyncio.create_task(process.run())
            running.add_done_callback(lambda task: None if task.cancelled() else fail(task.exception() or _Finished()))
            try:
                await done
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
    except _Finished:
        pass
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        joining.close()


async def _at_once(work: Callable[[], Answered]) -> Answered:
    # Nothing else uses the loop.
    return work()
