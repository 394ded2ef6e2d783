"""The processes of a network's nodes on this machine: started, started again when they die, ended together.

A node is one process, `trailboss node --network HOME`, which runs its engine as a child of its own. A node that stops
with a named reason is not started again: going on would do harm, up to a validator that signs two blocks of one height.
"""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final

from trailboss.network.halts import HALTED_STATUS
from trailboss.network.home import FILE_MODE, Home
from trailboss.primitives.errors import TrailbossError

AGAIN_SECONDS: Final = (1, 2, 4, 8, 15, 30)  # before a node is started again, by how often it has died in a row
STEADY_SECONDS: Final = 60  # after which a death is no longer counted with those before
LOOK_SECONDS: Final = 0.5  # how often new nodes are looked for
END_SECONDS: Final = 30  # how long a node may take to end when it is asked
LAST_WORDS_BYTES: Final = 16_384  # of a log, in which the reason of an end is looked for
REASON_MAX: Final = 400  # characters of a reason
Command = Callable[[Home], Sequence[str]]


class NodeState(Enum):
    """What a supervised node does."""

    RUNS = "runs"
    WAITS = "waits"  # it has died, and is started again soon
    HALTED = "halted"  # it has stopped with a named reason, and is not started again
    ENDED = "ended"  # it was asked to end


class SupervisedNode:
    """The process of one node, over all its lives."""

    def __init__(self, home: Home, command: Command, note: Callable[[str], None], delays: Sequence[float]) -> None:
        self.home = home
        self.state = NodeState.ENDED
        self.process_id: int | None = None  # of its present life
        self.restarts = 0
        self.reason = ""  # why its last life has ended
        self._command, self._note, self._delays = command, note, delays
        self._in_a_row = 0  # deaths without a steady life between them

    async def run(self, stop: asyncio.Event) -> None:
        """Keep the node alive until it halts, or ``stop`` is set; then ask it to end, and kill it if it does not."""
        clock, stopped = asyncio.get_running_loop(), asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                begun = clock.time()
                status = await self._live(stopped)
                if stop.is_set():
                    break
                self.reason = end_words(status, self.home.node_log)
                if status == HALTED_STATUS:
                    self.state = NodeState.HALTED
                    self._note(f"{self.home.name} has halted, and is not started again: {self.reason}")
                    return
                self._in_a_row = 1 if clock.time() - begun >= STEADY_SECONDS else self._in_a_row + 1
                delay = self._delays[min(self._in_a_row, len(self._delays)) - 1]
                self.state = NodeState.WAITS
                self._note(f"{self.home.name} has died, and is started again in {delay:g} s: {self.reason}")
                await asyncio.wait((stopped,), timeout=delay)
                self.restarts += 1
        finally:
            stopped.cancel()
        self.state = NodeState.ENDED

    async def _live(self, stopped: "asyncio.Task[bool]") -> int:
        """Run the node once, and return its exit status; if all is stopped meanwhile, have it end."""
        self.home.log_directory.mkdir(exist_ok=True)
        log = os.open(self.home.node_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE_MODE)
        try:
            # A session of its own: Ctrl-C reaches the supervisor alone, which ends the nodes.
            process = await asyncio.create_subprocess_exec(
                *self._command(self.home), stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(log)
        self.state, self.process_id = NodeState.RUNS, process.pid
        self._note(f"{self.home.name} runs as process {process.pid}")
        ended = asyncio.create_task(process.wait())
        try:
            await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                await _end(process, ended)
            return await ended
        finally:
            self.process_id = None
            if process.returncode is None:
                # What supervises it fails: no node outlives that.
                process.terminate()


class Supervisor:
    """Keeps the nodes of a network alive."""

    def __init__(self, command: Command, note: Callable[[str], None], delays: Sequence[float] = AGAIN_SECONDS) -> None:
        """Prepare it.

        Args:
            command: Returns what runs a node, by its home.
            note: Is called with a sentence for each thing that happens.
            delays: Seconds before a node is started again, by how often it has died in a row.
        """
        self.nodes: list[SupervisedNode] = []
        self._command, self._note, self._delays = command, note, delays

    async def run(self, new_homes: Callable[[], Sequence[Home]], stop: asyncio.Event) -> None:
        """Keep nodes alive until ``stop`` is set, or all of them have halted.

        ``new_homes`` is asked again and again for nodes that have come meanwhile.
        """
        stopped, lives = asyncio.create_task(stop.wait()), []
        try:
            while True:
                try:
                    found = new_homes()
                except TrailbossError as error:
                    found = []
                    self._note(f"a node that has come is not started: {error}")
                for home in found:
                    node = SupervisedNode(home, self._command, self._note, self._delays)
                    self.nodes.append(node)
                    lives.append(asyncio.create_task(node.run(stop)))
                await asyncio.wait((stopped,), timeout=LOOK_SECONDS)
                if all(life.done() for life in lives):
                    return
        finally:
            stop.set()
            stopped.cancel()
            await asyncio.gather(*lives)


async def _end(process: asyncio.subprocess.Process, ended: "asyncio.Task[int]") -> None:
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    await asyncio.wait((ended,), timeout=END_SECONDS)
    if not ended.done():
        with suppress(ProcessLookupError):
            process.kill()


def end_words(status: int, log: Path) -> str:
    """Return why a process has ended: its last words in its log, else how it ended."""
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    said = "" if status < 0 else last_words(log)
    return f"{said} ({how})" if said else how


def last_words(log: Path) -> str:
    """Return the last error that a log holds, of those that a node writes; empty if it ends without one."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LAST_WORDS_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return ""
    for line in reversed(lines):
        with suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                said = found.get("error", found)
                if isinstance(said, dict) and (said is not found or found.get("level") == "error"):
                    return str(said.get("what") or said.get("event") or "")[:REASON_MAX]
    return ""
