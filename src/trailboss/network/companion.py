"""What makes a node part of a network: its engine, the socket between the two, and the way of transactions out."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx

from trailboss.chain import Chain
from trailboss.chain.outcomes import compare_outcomes, outcome_from_json, outcome_of
from trailboss.network.abci import AbciServer
from trailboss.network.answers import ChainAnswers
from trailboss.network.application import Application
from trailboss.network.engine import ANSWER_SECONDS, EngineClient, EngineError, EngineProcess
from trailboss.network.halts import Halt, NetworkHaltError
from trailboss.network.home import GENESIS_FILE, Home
from trailboss.network.sync import SnapshotOffer
from trailboss.network.votes import check_votes
from trailboss.node.logs import log
from trailboss.node.network import NetworkStatus, ValidatorStatus
from trailboss.node.service import Node
from trailboss.primitives.errors import TrailbossError
from trailboss.primitives.octets import Hash32

ASK_SECONDS: Final = 2  # how often the engine is asked where it stands
LOOK_SECONDS: Final = 5  # how often what waits is looked through for transactions that no block has taken
LATE_BLOCKS: Final = 5  # after which a transaction is sent to the other nodes once more


class NetworkCompanion:
    """The engine beside one node, and the node's view of its network."""

    def __init__(self, home: Home, engine: Path) -> None:
        """Prepare it for the node of a home, with the engine's program."""
        self._home, self._key = home, home.key
        self._command = home.engine_command(engine)
        self._client = EngineClient(home.rpc_url)
        self.failure: BaseException | None = None  # what its node has failed of, once both have ended
        self._snapshots = SnapshotOffer(home.snapshot_blocks)
        self._outgoing: asyncio.Queue[Hash32] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._engine_words, self._is_catching_up = "", True
        self._peers: tuple[str, ...] = ()
        self._node: Node
        self._application: Application
        self._engine: EngineProcess

    def check(self, chain: Chain) -> None:
        """Refuse a chain of another network, and a validator that could vote twice, by `NetworkHaltError`."""
        home = self._home
        if chain.genesis != home.genesis:
            what = f"{home.chain_directory} did not start from {home.directory / GENESIS_FILE}"
            raise NetworkHaltError(Halt.OTHER_GENESIS, what)
        check_votes(home, chain)

    def begin(self, node: Node) -> None:
        """Begin beside a node that has begun."""
        self._node, node.network = node, self
        self._application = Application(node.builder, node.mempool, node.on_verdict)
        self._engine = EngineProcess(self._command, self._home.engine_log, lambda: node.view.height)
        self._tasks = [asyncio.create_task(work) for work in (self._serve(), self._send(), self._look(), self._ask())]

    async def close(self) -> None:
        """End the engine, and then what answers it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._tasks:
            self.failure = self._node.failure
        await asyncio.to_thread(self._snapshots.close)
        await self._client.close()
        self._home.app_socket.unlink(missing_ok=True)

    # What the node asks

    def relay(self, transactions: Sequence[Hash32]) -> None:
        """Send transactions that have just come into the mempool to the other nodes."""
        for each in transactions:
            self._outgoing.put_nowait(each)

    def status(self) -> NetworkStatus:
        """Return where the node stands, as of a few seconds ago at most."""
        return NetworkStatus(
            name=self._home.name,
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
                is_here=validator.public_key == self._key,
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
            async with await server.listen(self._home.app_socket):
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
        words = "no other node says what its block holds"
        for url in self._home.others:
            try:
                ours = await self._node.do(lambda builder: outcome_of(builder.chain, height))
                async with httpx.AsyncClient(base_url=url, timeout=ANSWER_SECONDS, trust_env=False) as client:
                    theirs = outcome_from_json((await client.get(f"/block/{height}/outcome")).json())
                parting = compare_outcomes(ours, theirs, ("this node", url))
            except (httpx.HTTPError, ValueError, TrailbossError) as error:
                words = f"it cannot be compared with block {height} of {url}: {error}"
            else:
                if parting is not None:
                    return str(parting)
                words = f"{url} has the same block {height}"
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
