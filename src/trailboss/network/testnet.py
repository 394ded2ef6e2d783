"""A network in one directory: several nodes' homes, made together, and one more that joins them.

```text
DIR/node0 … nodeN   homes; see `trailboss.network.home`
DIR/lock            the process that supervises them
```
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.chain.development import account_name, development_account
from trailboss.chain.opening import (
    Genesis,
    GenesisOptions,
    funded_accounts,
    genesis_text,
    new_genesis,
    parse_genesis,
)
from trailboss.model.validators import Validator
from trailboss.network.home import BLOCK_TIME_MS, PORT_MAX, Home, SocketAddress, StateSync, node_id_of
from trailboss.network.keys import new_key, public_bytes
from trailboss.primitives.errors import ConfigurationError, StorageError

VALIDATORS_MAX: Final = 100
POWER: Final = 10
"""Votes of each validator. With one vote each of four, the engine takes a validator that is behind for one that the
network cannot do without, and never lets it catch up by blocks."""
HOST: Final = "127.0.0.1"
API_PORT: Final = 4_000
ENGINE_PORT: Final = 26_600
ENGINE_PORTS: Final = 2  # of one node: for other engines, and for questions
GENESIS_TIME: Final = "governance.genesis_timestamp_ms"
_NAME: Final = re.compile(r"node(?P<number>0|[1-9][0-9]{0,5})", re.ASCII)


class Plan(Struct, frozen=True, kw_only=True):
    """What network to make."""

    validators: int = 4  # 1 to 100
    genesis: GenesisOptions = GenesisOptions()  # the rules, and the development accounts that are funded
    # Addresses to listen on: one for all nodes, whose ports differ then, or one for each.
    hosts: Sequence[str] = (HOST,)
    api_port: int = API_PORT  # of the first node on an address; the next one has the next port
    engine_port: int = ENGINE_PORT  # the first of two; the next node has the next two
    block_time_ms: int = BLOCK_TIME_MS  # time between blocks, 100 to 3,600,000
    seed: str | None = None  # from which all keys follow, and which must stay secret; None for random keys


def create_testnet(directory: Path, plan: Plan, now_ms: int) -> list[Home]:
    """Make the homes of a network's validators in a new or empty directory; its first block has the present time.

    Raises:
        ConfigurationError: If no network can be so; then nothing is written.
        StorageError: If something is there, or it cannot be written.
    """
    if not 1 <= plan.validators <= VALIDATORS_MAX:
        raise ConfigurationError(f"validators = {plan.validators} must be 1 to {VALIDATORS_MAX}")
    if len(plan.hosts) not in (1, plan.validators):
        what = f"{len(plan.hosts)} addresses for {plan.validators} validators"
        raise ConfigurationError(f"{what}: name one for all of them, or one for each")
    directory = directory.absolute()
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise StorageError(directory, "something is there already", "name a new or empty directory")
    validator_keys = [new_key(plan.seed, f"validator {number}") for number in range(plan.validators)]
    node_keys = [new_key(plan.seed, f"node {number}") for number in range(plan.validators)]
    genesis = _genesis(plan, [public_bytes(key) for key in validator_keys], now_ms)
    places = [_addresses(plan, number) for number in range(plan.validators)]
    peers = [f"{node_id_of(key)}@{p2p}" for key, (_, p2p, _) in zip(node_keys, places, strict=True)]
    homes = [
        Home(
            directory=directory / f"node{number}",
            name=f"node{number}",
            genesis=genesis,
            api=api,
            p2p=p2p,
            rpc=rpc,
            peers=tuple(peer for peer in peers if peer != peers[number]),
            others=tuple(f"http://{other}" for other, _, _ in places if other != api),
            block_time_ms=plan.block_time_ms,
        )
        for number, (api, p2p, rpc) in enumerate(places)
    ]
    for home, validator_key, node_key in zip(homes, validator_keys, node_keys, strict=True):
        home.create(validator_key, node_key)
    return homes


def read_testnet(directory: Path) -> list[Home]:
    """Return the homes of a directory's nodes, by number.

    Raises:
        StorageError: If there are none.
        ConfigurationError: If a file says what cannot be.
    """
    numbers = sorted(_numbers(directory))
    if not numbers:
        fix = f"make one with: trailboss testnet init {directory}"
        raise StorageError(directory, "there is no testnet here: no node0", fix)
    return [Home.read(directory / f"node{number}") for number in numbers]


class NewHomes:
    """The homes of a directory's nodes, each found once: called again, only those that have come since."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: list[int] = []

    def __call__(self) -> list[Home]:
        """Return the homes that are new, by number; raises as `read_testnet` does, once for each."""
        found = [number for number in sorted(_numbers(self._directory)) if number not in self._known]
        self._known += found
        return [Home.read(self._directory / f"node{number}") for number in found]


def add_node(homes: Sequence[Home], state_sync: StateSync | None = None) -> Home:
    """Make the home of one more node, next to the others: it votes on nothing, and follows their blocks.

    Raises:
        ConfigurationError: If no port is left.
        StorageError: If it cannot be written.
    """
    last = homes[-1]
    number = max(_numbers(last.directory.parent)) + 1
    host = last.api.host
    api_port = max(home.api.port for home in homes if home.api.host == host) + 1
    engine_port = max(max(home.p2p.port, home.rpc.port) for home in homes) + 1
    if max(api_port, engine_port + 1) > PORT_MAX:
        raise ConfigurationError(f"no port up to {PORT_MAX} is left after those of {last.name}")
    home = replace(
        last,
        directory=last.directory.parent / f"node{number}",
        name=f"node{number}",
        api=SocketAddress(host, api_port),
        p2p=SocketAddress(last.p2p.host, engine_port),
        rpc=SocketAddress(last.rpc.host, engine_port + 1),
        peers=tuple(each.peer for each in homes),
        others=tuple(each.api_url for each in homes),
        state_sync=state_sync,
    )
    home.create(new_key(None, "validator"), new_key(None, "node"))
    return home


def _genesis(plan: Plan, public_keys: Sequence[bytes], now_ms: int) -> Genesis:
    overrides = {GENESIS_TIME: now_ms} | dict(plan.genesis.overrides)
    genesis = replace(new_genesis(replace(plan.genesis, overrides=overrides)), development=False)
    # The accounts after those that are funded: their keys are known, so that the tips can be spent.
    first = funded_accounts(genesis)
    validators = tuple(
        Validator(public_key, POWER, development_account(account_name(first + number)).address)
        for number, public_key in enumerate(public_keys)
    )
    # As each node will read it, with all its checks.
    return parse_genesis(genesis_text(replace(genesis, validators=validators)))


def _addresses(plan: Plan, number: int) -> tuple[SocketAddress, SocketAddress, SocketAddress]:
    """Return where a node serves clients, other engines, and questions to its engine."""
    host, place = (plan.hosts[0], number) if len(plan.hosts) == 1 else (plan.hosts[number], 0)
    engine_port = plan.engine_port + ENGINE_PORTS * place
    found = (
        SocketAddress(host, plan.api_port + place),
        SocketAddress(host, engine_port),
        SocketAddress(host, engine_port + 1),
    )
    for each in found:
        if not 1 <= each.port <= PORT_MAX:
            raise ConfigurationError(f"node{number} would listen on port {each.port}; ports are 1 to {PORT_MAX}")
    return found


def _numbers(directory: Path) -> list[int]:
    if not directory.is_dir():
        return []
    matches = (_NAME.fullmatch(each.name) for each in directory.iterdir() if Home.is_in(each))
    return [int(match["number"]) for match in matches if match is not None]
