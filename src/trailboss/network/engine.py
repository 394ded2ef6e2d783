"""The consensus engine of one node: its process, what it logs, and what can be asked of it.

Source: CometBFT 0.38, `cometbft start` and its JSON-RPC.
"""

import asyncio
import os
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx

from trailboss.network.halts import Halt, NetworkHaltError
from trailboss.node.logs import log
from trailboss.primitives.errors import TrailbossError

BATCH_MAX: Final = 10  # calls in one request that the engine takes by default
ANSWER_SECONDS: Final = 10  # how long the engine may take for an answer
END_SECONDS: Final = 10  # how long it may take to end
AGAIN_SECONDS: Final = (1, 2, 4, 8, 15)
"""Before it is started again, by how often it has ended since the last block that came; after one more it is not."""
LINE_BYTES_MAX: Final = 2**20
KEPT_LINES: Final = 20  # last lines that name why it ended
ENVIRONMENT: Final = re.compile("(CMT|TM)_?")  # variables that would override the engine's home
DIFFERS: Final = re.compile(r"wrong Block\.Header\.(?P<field>AppHash|LastResultsHash)\.?\s+(?P<what>Expected [^\\\"]*)")
FAILURE: Final = "CONSENSUS FAILURE"
NO_ROOM: Final = "no space left on device"
FOREIGN_DATA: Final = re.compile("is higher than core|did you reset CometBFT|App.?[Hh]ash.* does not match")


class EngineError(TrailbossError):
    """The engine does not answer, or refuses a call."""


class EngineProcess:
    """The engine's process: started, started again when it ends, and ended with its node."""

    def __init__(self, command: Sequence[str], log_file: Path, height: Callable[[], int]) -> None:
        """Prepare it; ``height`` returns that of the last block that the chain has committed."""
        self._command = command
        self._log_file = log_file
        self._height = height
        self._last: list[str] = []
        self.restarts = 0  # how often it has been started again

    async def run(self) -> None:
        """Run the engine until this is cancelled.

        Raises:
            NetworkHaltError: If it cannot go on, with the reason.
        """
        ended_in_a_row = 0
        while True:
            height = self._height()
            status = await self._run_once()
            ended_in_a_row = 1 if self._height() > height else ended_in_a_row + 1
            if ended_in_a_row > len(AGAIN_SECONDS):
                words = " / ".join(self._last[-KEPT_LINES:])
                what = (
                    f"it has ended {ended_in_a_row} times without a block, the last time with status {status}: {words}"
                )
                raise NetworkHaltError(Halt.ENGINE_STOPPED, what)
            pause = AGAIN_SECONDS[ended_in_a_row - 1]
            log().warning("the engine has ended, and is started again", status=status, seconds=pause)
            await asyncio.sleep(pause)
            self.restarts += 1

    async def _run_once(self) -> int:
        environment = {name: value for name, value in os.environ.items() if not ENVIRONMENT.match(name)}
        pipe, joined = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=joined, env=environment,
            limit=LINE_BYTES_MAX,
        )  # fmt: skip
        try:
            await self._follow(process)
            return await process.wait()
        finally:
            await end(process)

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        """Keep what the engine logs, until it ends. `NetworkHaltError` for a line after which it cannot go on."""
        if process.stdout is None:
            raise ValueError("the engine's lines go to no pipe")
        with self._log_file.open("ab", buffering=0) as kept:
            while True:
                try:
                    line = await process.stdout.readline()
                except ValueError:
                    continue  # longer than any that matters
                if not line:
                    return
                text = line.decode(errors="replace").rstrip()
                self._last = [*self._last[1 - KEPT_LINES :], text]
                try:
                    kept.write(line)
                except OSError as error:
                    self._check(text)
                    what = f"{self._log_file} cannot be written: {error.strerror}"
                    raise NetworkHaltError(Halt.STORAGE, what) from error
                self._check(text)

    def _check(self, line: str) -> None:
        found = DIFFERS.search(line)
        if found is not None and (FAILURE in line or "module=blocksync" in line):
            field = "app hash" if found["field"] == "AppHash" else "hash of the results"
            what = (
                f"after block {self._height()} the {field} of this node is not the network's: {found['what'].strip()}"
            )
            raise NetworkHaltError(Halt.STATE_DIFFERS, what)
        if FOREIGN_DATA.search(line):
            raise NetworkHaltError(Halt.HEIGHT_GAP, line)
        if FAILURE in line:
            raise NetworkHaltError(Halt.STORAGE if NO_ROOM in line else Halt.ENGINE_STOPPED, line)


async def end(process: asyncio.subprocess.Process) -> None:
    """End a process: ask, wait, and kill."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), END_SECONDS)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


class EngineClient:
    """What a node asks of its engine, over JSON-RPC."""

    def __init__(self, url: str) -> None:
        self._http = httpx.AsyncClient(base_url=url, timeout=ANSWER_SECONDS, trust_env=False)

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def broadcast(self, transactions: Sequence[bytes]) -> None:
        """Hand transactions to the engine, which sends them to its peers. What it has already, it leaves alone.

        What it has no room for is sent once more later, as all that waits for long is.

        Raises:
            EngineError: If it does not answer.
        """
        for start in range(0, len(transactions), BATCH_MAX):
            calls = [
                _call(at, "broadcast_tx_async", {"tx": b64encode(raw).decode()})
                for at, raw in enumerate(transactions[start : start + BATCH_MAX])
            ]
            await self._post(calls)

    async def ask(self, method: str, **parameters: str) -> Mapping[str, Any]:
        """Return the result of a call, such as ``status`` or ``commit``, as the engine's JSON.

        Raises:
            EngineError: If it does not answer, or refuses the call.
        """
        answer = await self._post(_call(0, method, parameters))
        if "error" in answer:
            error = answer["error"]
            raise EngineError(f"the engine refuses {method}: {error.get('message')}: {error.get('data')}")
        result: Mapping[str, Any] = answer["result"]
        return result

    async def _post(self, body: object) -> Any:
        try:
            response = await self._http.post("/", json=body)
            return response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise EngineError(f"the engine does not answer: {type(error).__name__} {error}".rstrip()) from None


def _call(number: int, method: str, parameters: Mapping[str, str]) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(parameters)}
