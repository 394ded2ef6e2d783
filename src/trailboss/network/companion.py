"""What makes a node part of a network: its engine, the socket between the two, and the way of transactions out."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx

from trailboss.chain.outcomes import compare_outcomes, outcome_from_json, outcome_of
from trailboss.network.abci import AbciServer
from trailboss.network.answers import ChainAnswers
from trailboss.network.application import Application
from trailboss.network.engine import ANSWER_SECONDS, EngineClient, EngineError, EngineProcess
from trailboss.network.halts import Halt, NetworkHaltError
from trailboss.network.sync import SnapshotOffer
from trailboss.node.logs import log
from trailboss.node.network import NetworkStatus, ValidatorStatus
from trailboss.node.service import Node
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Hash32

ASK_SECONDS: Final = 2  # how often the engine is asked where it stands
LOOK_SECONDS: Final = 5  # how often what waits is looked through for transactions that no block has taken
LATE_BLOCKS: Final = 5  # after which a transaction is sent to the other nodes once more


class NetworkCompanion:
    """The engine beside one node, and the node's view of its network."""

    def __init__(
        self,
        name: str,
        public_key: bytes,
        *,
        command: Sequence[str],
        rpc_url: str,
        socket: Path,
        logs: Path,
        snapshot_blocks: int,
        others: Sequence[str] = (),
    ) -> None:
        """Prepare it.

        Args:
            name: Of the node.
            public_key: Of this node as a validator, 32 bytes; one of a full node is in no genesis.
            command: What starts the engine.
            rpc_url: Where the engine answers.
            socket: Path of the socket on which the engine asks.
            logs: Directory of the engine's log.
            snapshot_blocks: Blocks from one snapshot that it offers to the next.
            others: URLs of other nodes, which are asked where a block differs.
        """
        self._name, self._public_key = name, public_key
        self._command, self._socket, self._log_file = command, socket, logs / "engine.log"
        self._client = EngineClient(rpc_url)
        self._others = others
        self._snapshots = SnapshotOffer(snapshot_blocks)
        self._outgoing: asyncio.Queue[Hash32] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._engine_words, self._is_catching_up = "", True
        self._peers: tuple[str, ...] = ()
        self._node: Node
        self._application: Application
        self._engine: EngineProcess

    def begin(self, node: Node) -> None:
        """Begin beside a node that has begun."""
        self._node, node.network = node, self
        self._application = Application(node.builder, node.mempool, node.on_verdict)
        self._engine = EngineProcess(self._command, self._log_file, lambda: node.view.height)
        self._tasks = [asyncio.create_task(work) for work in (self._serve(), self._send(), self._look(), self._ask())]

    async def close(self) -> None:
        """End the engine, and then what answers it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._snapshots.close)
        await self._client.close()
        self._socket.unlink(missing_ok=True)

    # What the node asks

    def relay(self, transactions: Sequence[Hash32]) -> None:
        """Send transactions that have just come into the mempool to the other nodes."""
        for each in transactions:
            self._outgoing.put_nowait(each)

    def status(self) -> NetworkStatus:
        """Return where the node stands, as of a few seconds ago at most."""
        return NetworkStatus(
            name=self._name,
            engine_chain_id=self._node.view.genesis.engine_chain_id(),
            engine=self._engine_words,
            engine_restarts=self._engine.restarts,
            is_catching_up=self._is_catching_up,
            peers=self._peers,
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
            answers = ChainAnswers(self._application, self._snapshots)
            server = AbciServer(answers, self._node.on_chain, self._node.fail)
            async with await server.listen(self._socket):
                await self._engine.run()
        except asyncio.CancelledError:
            raise
        except NetworkHaltError as error:
            if error.halt is Halt.STATE_DIFFERS:
                error = NetworkHaltError(error.halt, f"{error.what}\n{await self._difference()}")
            self._node.fail(error)
        except BaseException as error:  # noqa: BLE001  # whatever it is, the node cannot go on in its network
            self._node.fail(error)

    async def _difference(self) -> str:
        """Return in words what the last block came to otherwise here than on another node, as far as one answers."""
        height = self._node.view.height
        ours = await self._node.do(lambda builder: outcome_of(builder.chain, height))
        words = "no other node says what its block holds"
        for url in self._others:
            try:
                async with httpx.AsyncClient(base_url=url, timeout=ANSWER_SECONDS, trust_env=False) as client:
                    theirs = outcome_from_json((await client.get(f"/block/{height}/outcome")).json())
                parting = compare_outcomes(ours, theirs, ("this node", url))
            except (httpx.HTTPError, ValueError, Rejection) as error:
                words = f"{url} does not say what its block {height} holds: {error}"
            else:
                if parting is not None:
                    return str(parting)
        return words

    async def _send(self) -> None:
        """Hand what comes into the mempool to the engine, as fast as it takes it."""
        while True:
            hashes = [await self._outgoing.get()]
            while not self._outgoing.empty():
                hashes.append(self._outgoing.get_nowait())
            waiting = (self._node.mempool.find(each) for each in hashes)
            with suppress(EngineError):
                await self._client.broadcast([pooled.raw for pooled in waiting if pooled is not None])

    async def _ask(self) -> None:
        """Ask the engine again and again where it stands."""
        while True:
            try:
                status, net = await self._client.ask("status"), await self._client.ask("net_info")
                self._engine_words = f"CometBFT {status['node_info']['version']}"
                self._is_catching_up = bool(status["sync_info"]["catching_up"])
                self._peers = tuple(sorted(peer["node_info"]["moniker"] for peer in net["peers"]))
            except EngineError:
                self._engine_words, self._is_catching_up, self._peers = "", True, ()
            await asyncio.sleep(ASK_SECONDS)

    async def _look(self) -> None:
        """Send what has waited for some blocks once more: an engine that was started again has lost it."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            height = self._node.view.height
            late = [each for each in self._node.mempool.pooled() if each.admitted_height + LATE_BLOCKS <= height]
            if late:
                log().info("transactions that wait are sent once more", transactions=len(late))
                self.relay([each.hash for each in late])
