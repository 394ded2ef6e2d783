"""What makes a node part of a network: its engine, the socket between the two, and the way of transactions out."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from trailboss.network.abci import AbciServer
from trailboss.network.application import Application
from trailboss.network.engine import EngineClient, EngineError, EngineProcess
from trailboss.network.snapshots import Sync
from trailboss.node.logs import log
from trailboss.node.network import NetworkStatus, ValidatorStatus
from trailboss.node.service import Node
from trailboss.primitives.octets import Hash32

AGAIN_SECONDS: Final = 1  # before transactions that the engine did not take are offered to it again
LOOK_SECONDS: Final = 5  # how often what waits is looked through for transactions that no block has taken
LATE_BLOCKS: Final = 5  # after which a transaction is sent to the other nodes once more


class NetworkCompanion:
    """The engine beside one node, and the node's view of its network."""

    def __init__(
        self, name: str, public_key: bytes, *, command: Sequence[str], rpc_url: str, socket: Path, logs: Path
    ) -> None:
        """Prepare it.

        Args:
            name: Of the node.
            public_key: Of this node as a validator, 32 bytes; one of a full node is in no genesis.
            command: What starts the engine.
            rpc_url: Where the engine answers.
            socket: Path of the socket on which the engine asks.
            logs: Directory of the engine's log.
        """
        self._name, self._public_key = name, public_key
        self._command, self._socket, self._log_file = command, socket, logs / "engine.log"
        self._client = EngineClient(rpc_url)
        self._outgoing: asyncio.Queue[Hash32] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._node: Node
        self._application: Application
        self._engine: EngineProcess

    def begin(self, node: Node) -> None:
        """Begin beside a node that has begun."""
        self._node, node.network = node, self
        self._application = Application(node.builder, node.mempool, node.on_verdict)
        self._engine = EngineProcess(self._command, self._log_file, lambda: node.view.height)
        self._tasks = [asyncio.create_task(work) for work in (self._serve(), self._send(), self._look())]

    async def close(self) -> None:
        """End the engine, and then what answers it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()
        self._socket.unlink(missing_ok=True)

    # What the node asks

    def relay(self, transactions: Sequence[Hash32]) -> None:
        """Send transactions that have just come into the mempool to the other nodes."""
        for each in transactions:
            self._outgoing.put_nowait(each)

    async def status(self) -> NetworkStatus:
        """Return where the node stands."""
        engine, is_catching_up, peers = "", True, 0
        with suppress(EngineError):
            status, net = await self._client.ask("status"), await self._client.ask("net_info")
            engine = f"CometBFT {status['node_info']['version']}"
            is_catching_up, peers = bool(status["sync_info"]["catching_up"]), int(net["n_peers"])
        return NetworkStatus(
            name=self._name,
            engine_chain_id=self._node.view.genesis.engine_chain_id(),
            engine=engine,
            engine_restarts=self._engine.restarts,
            is_catching_up=is_catching_up,
            peers=peers,
        )

    def validators(self) -> list[ValidatorStatus]:
        """Return the validators, in the order of genesis."""
        attendance = self._application.participation.attendance()
        return [
            ValidatorStatus(
                identity=validator.identity,
                public_key=validator.public_key,
                power=validator.power,
                fee_account=validator.fee_account,
                is_here=validator.public_key == self._public_key,
                proposed=seen.proposed,
                signed=seen.signed,
                blocks=seen.blocks,
                last_signed=seen.last_signed,
            )
            for validator, seen in zip(self._node.view.genesis.validators, attendance, strict=True)
        ]

    async def signed_header(self, height: int) -> Mapping[str, Any] | None:
        """Return the engine's header of a height with the votes for it, as its JSON; None if it has none (yet)."""
        try:
            found = await self._client.ask("commit", height=str(height))
        except EngineError:
            return None
        return found["signed_header"]  # type: ignore[no-any-return]

    # Its work

    async def _serve(self) -> None:
        """Answer the engine, and keep it running."""
        try:
            server = AbciServer(self._application, Sync(), self._node.on_chain, self._node.fail)
            async with await server.listen(self._socket):
                await self._engine.run()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # whatever it is, the node cannot go on in its network
            self._node.fail(error)

    async def _send(self) -> None:
        """Hand what comes into the mempool to the engine, as fast as it takes it."""
        while True:
            hashes = [await self._outgoing.get()]
            while not self._outgoing.empty():
                hashes.append(self._outgoing.get_nowait())
            waiting = (self._node.mempool.find(each) for each in hashes)
            with suppress(EngineError):
                await self._client.broadcast([pooled.raw for pooled in waiting if pooled is not None])

    async def _look(self) -> None:
        """Send what has waited for some blocks once more: an engine that was started again has lost it."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            height = self._node.view.height
            late = [each for each in self._node.mempool.pooled() if each.admitted_height + LATE_BLOCKS <= height]
            if late:
                log().info("transactions that wait are sent once more", transactions=len(late))
                self.relay([each.hash for each in late])
