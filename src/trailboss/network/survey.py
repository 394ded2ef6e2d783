"""Where the nodes of a network stand, asked from outside: over their APIs and their engines' RPC."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import httpx
from msgspec import Struct
from msgspec.structs import asdict

from trailboss.network.home import Home, StateSync
from trailboss.primitives.errors import ConfigurationError

ANSWER_SECONDS: Final = 5
TRUST_SERVERS: Final = 2


class NodeStanding(Struct, frozen=True, kw_only=True):
    """Where one node stands; what it does not answer is None."""

    name: str
    api_url: str
    height: int | None = None
    state_root: str | None = None  # after that height
    is_behind: bool | None = None  # whether its engine still fetches blocks
    peers: int | None = None  # engines that its engine is connected with
    engine_height: int | None = None

    def document(self) -> dict[str, object]:
        """Return all of it by name."""
        return asdict(self)


class Agreement(Struct, frozen=True):
    """What the nodes that answer have at the height that all of them have reached."""

    height: int | None  # None if no node answers
    blocks: dict[str, tuple[str, str]]  # block hash and state root there, by the node's name

    @property
    def is_whole(self) -> bool:
        """Whether all of them have one block and one state there."""
        return len(set(self.blocks.values())) == 1


async def survey(homes: Sequence[Home], client: httpx.AsyncClient) -> list[NodeStanding]:
    """Ask every node where it stands, all at once."""
    return list(await asyncio.gather(*(_standing(home, client) for home in homes)))


async def compare(homes: Sequence[Home], standings: Sequence[NodeStanding], client: httpx.AsyncClient) -> Agreement:
    """Compare the nodes that have answered, at the lowest of their heights."""
    answered = [home for home, each in zip(homes, standings, strict=True) if each.height is not None]
    height = min((each.height for each in standings if each.height is not None), default=None)
    if height is None:
        return Agreement(None, {})
    found = await asyncio.gather(*(_ask(client, f"{home.api_url}/block/{height}?limit=1") for home in answered))
    blocks = {
        home.name: (str(block["hash"]), str(block["header"]["state_root"]))
        for home, block in zip(answered, found, strict=True)
        if block is not None
    }
    return Agreement(height, blocks)


async def trust(homes: Sequence[Home], client: httpx.AsyncClient) -> StateSync:
    """Return from where a new node begins that trusts the nodes that run now: their last block.

    Raises:
        ConfigurationError: If none of them runs, or they have different blocks at one height.
    """
    running = [home for home in homes if await _engine_status(home, client) is not None]
    if not running:
        raise ConfigurationError("no node of the network answers: start it first, so that there is a block to trust")
    servers = [str(home.rpc) for home in running[:TRUST_SERVERS]]
    latest = await _engine(client, running[0], "commit")
    height = int(latest["signed_header"]["header"]["height"]) - 1
    hashes = set()
    for home in running[:TRUST_SERVERS]:
        commit = await _engine(client, home, f"commit?height={height}")
        if commit is None:
            raise ConfigurationError(f"the engine of {home.name} does not have block {height} yet: try again")
        hashes.add(str(commit["signed_header"]["commit"]["block_id"]["hash"]))
    if len(hashes) > 1:
        names = " and ".join(home.name for home in running[:TRUST_SERVERS])
        raise ConfigurationError(f"{names} have different blocks at height {height}: no node can trust both")
    return StateSync(tuple(servers * TRUST_SERVERS)[:TRUST_SERVERS], height, f"0x{hashes.pop().lower()}")


async def _standing(home: Home, client: httpx.AsyncClient) -> NodeStanding:
    status, engine, network = await asyncio.gather(
        _status(home, client), _engine_status(home, client), _engine(client, home, "net_info")
    )
    return NodeStanding(
        name=home.name,
        api_url=home.api_url,
        height=None if status is None else int(status["height"]),
        state_root=None if status is None else str(status["state_root"]),
        is_behind=None if engine is None else bool(engine["sync_info"]["catching_up"]),
        peers=None if network is None else int(network["n_peers"]),
        engine_height=None if engine is None else int(engine["sync_info"]["latest_block_height"]),
    )


async def _status(home: Home, client: httpx.AsyncClient) -> Any:
    """Return the status of a node's chain; None if it does not answer, or another network's node does in its place."""
    found = await _ask(client, f"{home.api_url}/status")
    own = f"0x{home.genesis.instance_id().hex()}"
    return None if found is None or found["genesis"]["instance_id"] != own else found


async def _engine_status(home: Home, client: httpx.AsyncClient) -> Any:
    """Return the status of a node's engine; None likewise."""
    found = await _engine(client, home, "status")
    return None if found is None or found["node_info"]["network"] != home.genesis.engine_chain_id() else found


async def _engine(client: httpx.AsyncClient, home: Home, call: str) -> Any:
    """Return what an engine answers to a call; None if it does not."""
    answer = await _ask(client, f"{home.rpc_url}/{call}")
    return None if answer is None else answer.get("result")


async def _ask(client: httpx.AsyncClient, url: str) -> Any:
    try:
        answer = await client.get(url, timeout=ANSWER_SECONDS)
    except httpx.HTTPError:
        return None
    return answer.json() if answer.is_success else None
