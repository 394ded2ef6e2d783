"""The node itself."""

from importlib.metadata import version
from typing import Final

from msgspec import Struct
from starlette.responses import Response

from trailboss.api.errors import HttpReason
from trailboss.api.operations import Call, Refusal, Routes, respond

routes: Final = Routes("node")
VERSION: Final = version("trailboss")


class HealthAnswer(Struct, frozen=True, kw_only=True):
    """Whether the node works."""

    status: str  # ``running``, ``stopping`` or ``failed``
    reason: str  # why it failed; empty otherwise
    height: int
    waiting: int  # transactions that wait
    pace: str  # what makes it build blocks: ``interval``, ``auto`` or ``manual``
    block_time_ms: int  # milliseconds from one block to the next; 0 under ``manual``
    development: bool  # whether it answers calls under ``/dev``
    version: str  # of the program


@routes.get("/health", refusals={HttpReason.UNAVAILABLE.status: Refusal | HealthAnswer})
async def health(call: Call) -> HealthAnswer | Response:
    """Return whether the node works. The status is 503 if it does not."""
    node = call.node
    found, pace = node.health, node.pace
    answer = HealthAnswer(
        status=found.status,
        reason=found.reason,
        height=call.view.height,
        waiting=len(node.mempool),
        pace=pace.rhythm.value,
        block_time_ms=pace.block_time_ms,
        development=node.development is not None,
        version=VERSION,
    )
    return respond(answer, HttpReason.UNAVAILABLE.status if not found.is_running else 200)
