"""The node itself, and how to watch it: ``/events`` for programs and pages, ``/metrics`` for Prometheus.

Decision: D-73
"""

from importlib.metadata import version
from typing import Annotated, Final

from msgspec import Struct
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.datastructures import Headers
from starlette.responses import Response

from trailboss.api.errors import HttpReason, malformed, shown
from trailboss.api.operations import Call, Refusal, Routes, respond
from trailboss.api.requests import U64, choice, text
from trailboss.api.sse import Position, StreamFilter
from trailboss.api.stream import EVENT_STREAM
from trailboss.node.watchtower import KNOWN_MAX
from trailboss.primitives.octets import Address, Hash32

routes: Final = Routes("node")
VERSION: Final = version("trailboss")


class HealthAnswer(Struct, frozen=True, kw_only=True):
    """Whether the node works."""

    status: str  # ``running``, ``stopping`` or ``failed``
    reason: str  # why it failed; empty otherwise
    height: int
    waiting: int  # transactions that wait
    pace: str  # what makes it build blocks: ``interval``, ``auto``, ``due`` or ``manual``
    block_time_ms: int  # milliseconds from one block to the next; 0 under ``due`` and ``manual``
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


@routes.get("/events", produces=EVENT_STREAM)
async def events(
    call: Call,
    *,
    since: U64 | None = None,  # first block, past or future; the next one if left out
    name: Annotated[str, text(64)] | None = None,
    emitter: Address | None = None,
    timer_id: Hash32 | None = None,  # only events about this timer
    address: Address | None = None,  # only events that it emitted, and the chain's own events that name it
    kinds: Annotated[str, choice("blocks", "events", "blocks,events")] = "blocks,events",  # blocks, events, or both
) -> Response:
    """Stream blocks and events as they come, and those of the past before.

    Server-sent events: `block` with the same members as in a list of blocks, then its events, each under its own name
    with `name`, `emitter`, `data`, `raw`, `block_height`, `timer_id` and `index`. An event whose name is one of the
    stream's own or of the browser's comes as `event`. `reorg` says that the blocks above its `height` are gone; others
    follow. `end` has the reason why the stream ends. A client that reconnects with `Last-Event-ID` misses nothing.
    """
    place = None if since is None else Position(since)
    last = Headers(scope=call.scope).get("last-event-id")
    if last is not None:
        place = Position.after_mark(last)
        if place is None:
            raise malformed("header", "Last-Event-ID", shown(last), "an id of this stream")
    if call.scope["method"] == "HEAD":
        return Response(media_type=EVENT_STREAM)
    selection = StreamFilter(
        name=name,
        emitter=emitter,
        timer_id=timer_id,
        address=address,
        blocks=kinds != "events",
        events=kinds != "blocks",
    )
    return call.streams.open(selection, place, since or 0)


@routes.get("/metrics", produces="text/plain")
def metrics(call: Call) -> Response:
    """Return the node's metrics in the text format of Prometheus."""
    node, view = call.node, call.view
    watch = node.watchtower.look(view, KNOWN_MAX)
    rendered = node.metrics.render(view, node.mempool.statistics(), len(node.lender), watch)
    return Response(rendered, media_type=CONTENT_TYPE_PLAIN_0_0_4)
