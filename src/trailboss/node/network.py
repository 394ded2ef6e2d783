"""What a node knows of the network that it is part of. Decision: D-103."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from trailboss.primitives.octets import Address, Hash32


class ValidatorStatus(Struct, frozen=True, kw_only=True):
    """One validator, and its part in the last blocks, as far as this node has seen them since it started."""

    identity: bytes  # how the engine names it, 20 bytes
    public_key: bytes  # Ed25519, 32 bytes
    power: int  # its votes
    fee_account: Address  # who gets the tips of the blocks that it proposes
    is_here: bool  # whether it is this node
    proposed: int  # blocks of the last ones that it proposed
    signed: int  # blocks of the last ones that it signed
    blocks: int  # how many those last ones are
    last_signed: int | None  # height of the last block that it signed; None if none is known


class NetworkStatus(Struct, frozen=True, kw_only=True):
    """Where a node stands in its network."""

    name: str  # of the node
    engine_chain_id: str  # what the engine signs blocks under
    engine: str  # name and version of the engine; empty while it does not answer
    engine_restarts: int  # how often the engine has been started again
    is_catching_up: bool  # whether it is still fetching blocks that others have; True while the engine does not answer
    peers: tuple[str, ...]  # names of the nodes that it is connected to


class Network(Protocol):
    """The network of a node."""

    def relay(self, transactions: Sequence[Hash32]) -> None:
        """Send transactions that have just come into the mempool to the other nodes."""

    def status(self) -> NetworkStatus:
        """Return where the node stands, as of a few seconds ago at most."""

    def validators(self) -> list[ValidatorStatus]:
        """Return the validators, in the order of genesis."""

    async def signed_header(self, height: int) -> Mapping[str, Any] | None:
        """Return the engine's header of a height with the votes for it, as its JSON; None if it has none (yet)."""
