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
    """Whether the node works.

    Attributes:
        status: ``running``, ``stopping`` or ``failed``.
        reason: Why it failed; empty otherwise.
        waiting: Transactions that wait.
        pace: What makes it build blocks: ``interval``, ``auto`` or ``manual``.
        block_time_ms: Milliseconds from one block to the next; 0 under ``manual``.
        development: Whether it answers calls under ``/dev``.
        version: Of the program.
    """

    status: str
    reason: str
    height: int
    waiting: int
    pace: str
    block_time_ms: int
    development: bool
    version: str


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
