"""The engine's side of the socket: connections that send frames, whole or broken, and read answers."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.network.nodes import VALIDATORS, Member
from trailboss.network.abci import AbciServer, read_frame, to_frame
from trailboss.network.answers import ChainAnswers
from trailboss.network.application import Application
from trailboss.network.messages import Request, Response
from trailboss.network.sync import SnapshotOffer

FLUSH = "flush"
TURNS = 5


def to_request(kind: str, **fields: Any) -> Any:
    """Return a request of a kind."""
    request = Request()
    getattr(request, kind).SetInParent()
    for name, value in fields.items():
        holder = getattr(request, kind)
        if isinstance(value, list):
            getattr(holder, name).extend(value)
        elif isinstance(value, dict):
            for part, inner in value.items():
                setattr(getattr(holder, name), part, inner)
        else:
            setattr(holder, name, value)
    return request


def frame(kind: str, **fields: Any) -> bytes:
    """Return a request as wire bytes."""
    return to_frame(to_request(kind, **fields))


def block_frame(height: int, *transactions: bytes, proposer: int = 0) -> bytes:
    """Return a request to finalize a block, a second after the one before."""
    return frame(
        "finalize_block",
        height=height,
        txs=list(transactions),
        time={"seconds": 1_000 + height},
        proposer_address=VALIDATORS[proposer].identity,
    )


class Connection:
    """One connection to the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self._writer = reader, writer

    async def send(self, octets: bytes) -> None:
        """Send bytes, and let the other side read them."""
        self._writer.write(octets)
        await self._writer.drain()
        await _others()

    async def read(self) -> Any:
        """Return the next answer; None once the other side has closed the connection."""
        try:
            found = await read_frame(self.reader)
        except ConnectionError:
            return None
        return None if found is None else Response.FromString(found)

    async def ask(self, octets: bytes) -> Any:
        """Send a request and a flush, as the engine does, and return the answer to the first; None if it is cut off."""
        await self.send(octets + frame(FLUSH))
        answer = await self.read()
        if answer is not None:
            assert (await self.read()).WhichOneof("value") == FLUSH
        return answer

    async def finish(self) -> None:
        """Send no more; what is read then ends where the other side closes."""
        self._writer.write_eof()

    async def close(self) -> None:
        """Go away."""
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()
        await _others()


class Served(Struct):
    """A socket that an application answers on."""

    path: Path
    failures: list[BaseException]
    connections: list[Connection]
    chain: asyncio.Lock  # held while the chain works

    async def connect(self) -> Connection:
        """Open a connection."""
        self.connections.append(Connection(*await asyncio.open_unix_connection(self.path)))
        return self.connections[-1]


@asynccontextmanager
async def served(
    member: Member, application: Callable[[Member], Application] = lambda member: member.application
) -> AsyncIterator[Served]:
    """Answer on a socket for a member, whose chain runs where the socket does."""

    async def on_chain(work: Callable[[], Any]) -> Any:
        async with chain:
            return work()

    failures: list[BaseException] = []
    chain = asyncio.Lock()
    answers = ChainAnswers(application(member), SnapshotOffer(1_000))
    server = AbciServer(answers, on_chain, failures.append)
    # A path of pytest's own may be longer than a socket's may be.
    with tempfile.TemporaryDirectory(prefix="abci-") as folder:
        path = Path(folder, "socket")
        async with await server.listen(path):
            socket = Served(path, failures, [], chain)
            try:
                yield socket
            finally:
                for connection in socket.connections:
                    await connection.close()


async def _others() -> None:
    """Let the other side have its turn."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
