"""The home of one node of a network: a directory with its settings, its keys, and what its chain and engine keep.

```text
HOME/node.toml      name, addresses, peers, time between blocks, and from where it begins if not with block 1
HOME/genesis.toml   what the chain starts from, the same on every node of the network
HOME/engine/        the engine's own home: config/ is written from the two files above whenever the node starts, but
                    for its keys, config/node_key.json and config/priv_validator_key.json; data/ is the engine's
HOME/chain/         the chain
HOME/app.sock       where the engine reaches the chain
HOME/logs/          engine.log and node.log
```

Decision: D-103
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Struct

from trailboss.chain.export_frames import writing
from trailboss.chain.opening import Genesis, genesis_text, parse_genesis
from trailboss.codec.toml import table_text
from trailboss.model.validators import identity_of
from trailboss.network.engine_files import configuration_text, genesis_document
from trailboss.network.keys import node_key_text, public_bytes, read_public_key, validator_key_text
from trailboss.node.options import is_loopback
from trailboss.primitives.errors import ConfigurationError, StorageError

NODE_FILE: Final = "node.toml"
GENESIS_FILE: Final = "genesis.toml"
SOCKET_BYTES_MAX: Final = 103  # of the path of a socket: Darwin has room for 104 with its end, Linux for 108
PORT_MAX: Final = 65_535
BLOCK_TIME_MS: Final = 1_000
SNAPSHOT_BLOCKS: Final = 100
BLOCK_TIME_MIN_MS: Final = 100
BLOCK_TIME_MAX_MS: Final = 3_600_000
SERVERS_MIN: Final = 2  # nodes that the engine compares when it begins from a snapshot
DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600
FIRST_VOTE: Final = '{"height": "0", "round": 0, "step": 0}\n'
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", re.ASCII)
_ENDPOINT: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+):(?P<port>[0-9]{1,5})", re.ASCII)
_PEER: Final = re.compile(r"(?P<id>[0-9a-f]{40})@(?P<endpoint>.+)", re.ASCII)
_HASH: Final = re.compile(r"(?:0x)?[0-9A-Fa-f]{64}", re.ASCII)


class SocketAddress(NamedTuple):
    """An address of the network and a port."""

    host: str  # an IPv6 address stands in brackets
    port: int  # 1 to 65,535

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class StateSync(Struct, frozen=True):
    """From where a node begins that does not replay the chain: from a snapshot at or after a block that it trusts."""

    servers: tuple[str, ...]  # ``host:port`` of the engines' RPC of two nodes or more; one may stand twice
    trust_height: int
    trust_hash: str  # hash of the engine's header of that height, 64 hexadecimal digits


class _Settings(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    api: str
    p2p: str
    rpc: str
    peers: list[str] = []
    others: list[str] = []
    block_time_ms: int = BLOCK_TIME_MS
    snapshot_blocks: int = SNAPSHOT_BLOCKS
    state_sync: StateSync | None = None


class Home(Struct, frozen=True, kw_only=True):
    """The home of one node."""

    directory: Path  # absolute
    name: str  # 1 to 32 letters, digits, ``-`` and ``_``
    genesis: Genesis
    api: SocketAddress  # where clients reach the node
    p2p: SocketAddress  # where other nodes' engines reach its engine
    rpc: SocketAddress  # where its engine answers questions
    peers: tuple[str, ...] = ()  # engines that its engine stays connected with, as ``node id@host:port``
    others: tuple[str, ...] = ()  # URLs of other nodes, which are asked where a block of theirs differs
    block_time_ms: int = BLOCK_TIME_MS  # time between blocks that its engine aims at; every validator has the same
    snapshot_blocks: int = SNAPSHOT_BLOCKS  # from one snapshot that it offers to the next, 1 or more
    state_sync: StateSync | None = None  # from where it begins if its chain is empty; None for block 1

    def __post_init__(self) -> None:
        """Refuse with `ConfigurationError` what no node can run with."""
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(f"name {self.name!r} must be 1 to 32 letters, digits, - and _")
        if not self.genesis.validators:
            raise ConfigurationError(f"the genesis of {self.directory} states no validators, so it starts no network")
        for peer in self.peers:
            match = _PEER.fullmatch(peer)
            if match is None:
                raise ConfigurationError(f"peer {peer!r} must be ID@HOST:PORT, with 40 lower hexadecimal digits as ID")
            parse_address("peers", match["endpoint"])
        if len({self.api, self.p2p, self.rpc}) < len((self.api, self.p2p, self.rpc)):
            raise ConfigurationError(f"api {self.api}, p2p {self.p2p} and rpc {self.rpc} must be three addresses")
        if not BLOCK_TIME_MIN_MS <= self.block_time_ms <= BLOCK_TIME_MAX_MS:
            bounds = f"{BLOCK_TIME_MIN_MS} to {BLOCK_TIME_MAX_MS}"
            raise ConfigurationError(f"block_time_ms = {self.block_time_ms} must be {bounds} in a network")
        if self.snapshot_blocks < 1:
            raise ConfigurationError(f"snapshot_blocks = {self.snapshot_blocks} must be 1 or more")
        length = len(os.fsencode(self.app_socket))
        if length > SOCKET_BYTES_MAX:
            raise ConfigurationError(
                f"{self.app_socket} has {length} bytes, and the path of a socket at most {SOCKET_BYTES_MAX}: choose a "
                "directory with a shorter path"
            )
        if not self.genesis.image and not self.is_loopback:
            raise ConfigurationError(
                f"{self.name} listens on {self.api}, {self.p2p} and {self.rpc}, where other machines send it actors, "
                "and its genesis states no image of the sandbox: use loopback addresses, or a network of the sandbox"
            )
        if self.state_sync is not None:
            _check_state_sync(self.state_sync)

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Return the home that is in a directory.

        Raises:
            StorageError: If there is none.
            ConfigurationError: If a file says what cannot be, naming file, key, value and rule.
        """
        directory = directory.absolute()
        path = directory / NODE_FILE
        try:
            settings = msgspec.toml.decode(_text_of(path), type=_Settings)
            return cls(
                directory=directory,
                name=settings.name,
                genesis=_genesis_of(directory / GENESIS_FILE),
                api=parse_address("api", settings.api),
                p2p=parse_address("p2p", settings.p2p),
                rpc=parse_address("rpc", settings.rpc),
                peers=tuple(settings.peers),
                others=tuple(settings.others),
                block_time_ms=settings.block_time_ms,
                snapshot_blocks=settings.snapshot_blocks,
                state_sync=settings.state_sync,
            )
        except msgspec.DecodeError as error:
            raise ConfigurationError(f"{path}: {error}") from None
        except ConfigurationError as error:
            text = str(error)
            raise ConfigurationError(text if str(directory) in text else f"{path}: {text}") from None

    @classmethod
    def is_in(cls, directory: Path) -> bool:
        """Return whether a directory is a node's home."""
        return (directory / NODE_FILE).is_file()

    def create(self, validator_key: Ed25519PrivateKey, node_key: Ed25519PrivateKey) -> None:
        """Make the directory, which must not be there or be empty, with settings and keys.

        Raises:
            StorageError: If something is there, or it cannot be written.
        """
        with writing(self.directory):
            self.directory.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
            if any(self.directory.iterdir()):
                raise StorageError(self.directory, "something is there already", "name a new or empty directory")
            self.directory.chmod(DIRECTORY_MODE)
            for each in (self.engine_directory, self.log_directory):
                each.mkdir(DIRECTORY_MODE)
        for path, text in (
            (self.validator_key_file, validator_key_text(validator_key)),
            (self.node_key_file, node_key_text(node_key)),
            (self.vote_file, FIRST_VOTE),
        ):
            write_private(path, text)
        self.write()

    def write(self) -> None:
        """Write ``node.toml``, ``genesis.toml``, and what follows from them; see `write_engine_files`."""
        settings = {
            "name": self.name,
            "api": str(self.api),
            "p2p": str(self.p2p),
            "rpc": str(self.rpc),
            "block_time_ms": self.block_time_ms,
            "snapshot_blocks": self.snapshot_blocks,
            "peers": list(self.peers),
            "others": list(self.others),
        }
        parts = [table_text("", settings)]
        if self.state_sync is not None:
            parts.append(table_text("[state_sync]", msgspec.structs.asdict(self.state_sync)))
        write_private(self.directory / GENESIS_FILE, genesis_text(self.genesis))
        self.write_engine_files()
        # The last one: with it a directory is a home.
        write_private(self.directory / NODE_FILE, "\n".join(parts))

    def write_engine_files(self) -> None:
        """Write the engine's settings from this home's: call it before the engine starts, so that they agree."""
        write_private(self.engine_configuration / "config.toml", configuration_text(self))
        write_private(self.engine_configuration / "genesis.json", genesis_document(self.genesis))

    # Places

    @property
    def app_socket(self) -> Path:
        """Where the engine reaches the chain."""
        return self.directory / "app.sock"

    @property
    def chain_directory(self) -> Path:
        """Where the chain is, once it has begun."""
        return self.directory / "chain"

    @property
    def engine_directory(self) -> Path:
        """The engine's own home."""
        return self.directory / "engine"

    @property
    def engine_configuration(self) -> Path:
        """Where the engine's settings and keys are."""
        return self.engine_directory / "config"

    @property
    def engine_data(self) -> Path:
        """Where the engine's blocks are."""
        return self.engine_directory / "data"

    @property
    def vote_file(self) -> Path:
        """What the engine has signed last: what keeps it from signing twice."""
        return self.engine_data / "priv_validator_state.json"

    @property
    def validator_key_file(self) -> Path:
        """The key that signs votes, if it is a validator's."""
        return self.engine_configuration / "priv_validator_key.json"

    @property
    def node_key_file(self) -> Path:
        """The key of the node itself."""
        return self.engine_configuration / "node_key.json"

    @property
    def log_directory(self) -> Path:
        """Where the logs are."""
        return self.directory / "logs"

    @property
    def engine_log(self) -> Path:
        """What the engine logs."""
        return self.log_directory / "engine.log"

    @property
    def node_log(self) -> Path:
        """What the node logs, if `trailboss testnet` has started it."""
        return self.log_directory / "node.log"

    def engine_command(self, engine: Path) -> list[str]:
        """Return what starts the home's engine."""
        return [str(engine), "start", "--home", str(self.engine_directory)]

    # Names

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the node."""
        return all(is_loopback(each.host.strip("[]")) for each in (self.api, self.p2p, self.rpc))

    @property
    def api_host(self) -> str:
        """The address on which the node serves clients."""
        return self.api.host

    @property
    def api_port(self) -> int:
        """The port on which it does."""
        return self.api.port

    @property
    def api_url(self) -> str:
        """Where clients reach the node."""
        return f"http://{self.api}"

    @property
    def rpc_url(self) -> str:
        """Where the engine answers questions."""
        return f"http://{self.rpc}"

    @property
    def public_key(self) -> bytes:
        """The public key that the node would sign votes with; genesis has that of a validator."""
        return read_public_key(self.validator_key_file)

    @property
    def key(self) -> bytes | None:
        """The public key of this node's validator; None if it is no validator. `ConfigurationError` without a file."""
        own = self.public_key
        return own if any(each.public_key == own for each in self.genesis.validators) else None

    @property
    def node_id(self) -> str:
        """How other engines name this node: 40 hexadecimal digits. `ConfigurationError` without a file."""
        return identity_of(read_public_key(self.node_key_file)).hex()

    @property
    def peer(self) -> str:
        """What other nodes state among their peers to be connected with this one."""
        return f"{self.node_id}@{self.p2p}"


def node_id_of(key: Ed25519PrivateKey) -> str:
    """Return how engines name the node that has a key."""
    return identity_of(public_bytes(key)).hex()


def parse_address(name: str, text: str) -> SocketAddress:
    """Return an address and a port from ``host:port``; `ConfigurationError` names the key that has another form."""
    match = _ENDPOINT.fullmatch(text)
    if match is None or not 1 <= int(match["port"]) <= PORT_MAX:
        raise ConfigurationError(f"{name} {text!r} must be HOST:PORT, with a port of 1 to {PORT_MAX}")
    return SocketAddress(match["host"], int(match["port"]))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all, with the directories that it needs."""
    with writing(path):
        path.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.new")
        with suppress(FileNotFoundError):
            unfinished.unlink()
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        fix = "name the directory of one node, as `trailboss testnet init` makes them"
        raise StorageError(path.parent, f"there is no node's home here: no {path.name}", fix) from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 at byte {error.start}") from None


def _genesis_of(path: Path) -> Genesis:
    try:
        return parse_genesis(_text_of(path))
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def _check_state_sync(wanted: StateSync) -> None:
    if len(wanted.servers) < SERVERS_MIN:
        raise ConfigurationError(f"state_sync.servers has {len(wanted.servers)}; the engine compares {SERVERS_MIN}")
    for server in wanted.servers:
        parse_address("state_sync.servers", server)
    if wanted.trust_height < 1:
        raise ConfigurationError(f"state_sync.trust_height = {wanted.trust_height} must be 1 or more")
    if not _HASH.fullmatch(wanted.trust_hash):
        raise ConfigurationError(f"state_sync.trust_hash {wanted.trust_hash!r} must be 64 hexadecimal digits")
