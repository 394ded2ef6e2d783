"""The network that a node is part of: where it stands, its validators, and what they have signed. Decision: D-103."""

from typing import Any, Final

from msgspec import Struct

from trailboss.api.errors import missing
from trailboss.api.operations import NOT_FOUND, Call, Routes
from trailboss.api.requests import U64
from trailboss.node.network import Network, NetworkStatus, ValidatorStatus

routes: Final = Routes("network")


class NetworkAnswer(Struct, frozen=True):
    """A network, as one of its nodes sees it."""

    height: int
    node: NetworkStatus
    validators: list[ValidatorStatus]  # in the order of genesis


class SignedHeaderAnswer(Struct, frozen=True):
    """What the validators have signed for one block of the engine."""

    height: int  # of the engine's block; its header states the app hash after the block before
    signed_header: Any  # the engine's header, and the votes for it, as the engine's own JSON


@routes.get("/network", refuses=NOT_FOUND)
async def network(call: Call) -> NetworkAnswer:
    """Return where the node stands in its network, and what its validators did in the last blocks."""
    found = _network(call)
    return NetworkAnswer(call.view.height, found.status(), found.validators())


@routes.get("/light/{height}", refuses=NOT_FOUND)
async def signed_header(call: Call, *, height: U64) -> SignedHeaderAnswer:
    """Return the engine's header of a height with the validators' signatures: what a light client checks."""
    found = await _network(call).signed_header(height)
    if found is None:
        raise missing(f"the engine has no signed header of height {height} (yet)", height=height)
    return SignedHeaderAnswer(height, found)


def _network(call: Call) -> Network:
    found = call.node.network
    if found is None:
        raise missing("this node runs its chain alone, without a network")
    return found
