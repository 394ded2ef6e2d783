"""The two paths by which a node is watched: ``/events`` for programs and pages, ``/metrics`` for Prometheus.

Decision: D-73
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from trailboss.api.errors import malformed, shown
from trailboss.api.kinds import ADDRESS, HASH, HEIGHT, choice, words
from trailboss.api.openapi import refused
from trailboss.api.operations import ALWAYS, GET, Endpoint
from trailboss.api.parsing import Parameter, query, query_or, read_query
from trailboss.api.shapes import Schemas
from trailboss.api.sse import Place, Selection
from trailboss.api.stream import EventStream, Streams
from trailboss.node.watchtower import KNOWN_MAX
from trailboss.primitives.errors import ViewGoneError

if TYPE_CHECKING:
    from trailboss.node.service import Node

NAME_MAX: Final = 64
"""Characters of an event's name."""
LAST_EVENT_ID: Final = "last-event-id"
BLOCKS: Final = "blocks"
EVENTS: Final = "events"
BOTH: Final = "blocks,events"
SINCE: Final = query("since", HEIGHT, "First block that is told, past or to come; the next one if it is left out.")
NAME: Final = query("name", words(NAME_MAX), "Only events of this name.")
EMITTER: Final = query("emitter", ADDRESS, "Only events of this emitter.")
TIMER_ID: Final = query("timer_id", HASH, "Only events about this timer.")
ABOUT: Final = query("address", ADDRESS, "Only events that it emitted, and those of the chain itself that name it.")
KINDS: Final = query_or("kinds", choice(BLOCKS, EVENTS, BOTH), "What is told: blocks, events, or both.", BOTH)
PARAMETERS: Final[dict[str, Parameter[Any]]] = {
    each.name: each for each in (SINCE, NAME, EMITTER, TIMER_ID, ABOUT, KINDS)
}
RESUME: Final = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "Id of the last thing that a reader was told who comes back.",
    "schema": {"type": "string"},
}
EVENTS_ABOUT: Final = """
Blocks and events as they come, and those of the past before.

Server-sent events: `block` with what a list of blocks says of each, then its events, each under its own name with
`name`, `emitter`, `data`, `raw`, `block_height`, `timer_id` and `index`. An event whose name is one of the stream's own
or of the browser's comes as `event`. `reorg` says that the blocks above its `height` are gone; others follow. `end`
says why the stream ends. Whoever comes back with `Last-Event-ID` goes on where he was.
"""
METRICS_ABOUT: Final = "What the node counts, in the text format of Prometheus."


def add_watching(app: FastAPI, node: "Node", schemas: Schemas) -> None:
    """Have an application answer ``/events`` and ``/metrics`` for a node."""
    streams = Streams(node.feed, node.index, node.metrics)

    async def events(request: Request) -> Response:
        said = read_query(request.scope["query_string"], PARAMETERS)
        return open_stream(streams, said, request.headers.get(LAST_EVENT_ID))

    async def metrics(request: Request) -> Response:
        read_query(request.scope["query_string"], {})
        return Response(await asyncio.to_thread(_render, node), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    of_events = [*map(_described, PARAMETERS.values()), RESUME]
    _add(app, events, about=EVENTS_ABOUT, media_type=EventStream.media_type, parameters=of_events, schemas=schemas)
    _add(app, metrics, about=METRICS_ABOUT, media_type="text/plain", parameters=[], schemas=schemas)


def _render(node: "Node") -> bytes:
    try:
        view = node.view
        watch = node.watchtower.look(view, KNOWN_MAX)
    except ViewGoneError:
        # The chain has gone back behind the view; the next one is of the branch that holds now.
        view = node.view
        watch = node.watchtower.look(view, KNOWN_MAX)
    return node.metrics.render(view, node.mempool.statistics(), len(node.lender), watch)


def _add(
    app: FastAPI,
    answer: Callable[[Request], Awaitable[Response]],
    *,
    about: str,
    media_type: str,
    parameters: list[dict[str, Any]],
    schemas: Schemas,
) -> None:
    name = answer.__name__
    summary, _, description = about.strip().partition("\n\n")
    content = {media_type: {"schema": {"type": "string"}}}
    app.router.add_api_route(
        f"/{name}",
        answer,
        methods=[GET],
        operation_id=name,
        tags=["node"],
        summary=summary,
        description=" ".join(description.split()),
        responses={
            HTTPStatus.OK.value: {"description": "The answer.", "content": content},
            **refused(ALWAYS, schemas),
        },
        response_class=Response,
        openapi_extra={"parameters": parameters},
        route_class_override=Endpoint,
    )


def _described(parameter: Parameter[Any]) -> dict[str, Any]:
    place, schema = parameter.place.value, parameter.schema()
    return {"name": parameter.name, "in": place, "description": parameter.about, "schema": schema}


def open_stream(streams: Streams, said: dict[str, Any], last_event_id: str | None) -> EventStream:
    """Return the answer that streams to one more reader.

    Args:
        streams: Of the node.
        said: Values of the parameters.
        last_event_id: Where the reader was when he was last told something; None if he is new.

    Raises:
        HttpError: ``BAD_REQUEST`` for an id that is none of the stream's; ``UNAVAILABLE`` with too many readers.
    """
    since: int | None = said[SINCE.name]
    selection = Selection(
        name=said[NAME.name],
        emitter=said[EMITTER.name],
        timer_id=said[TIMER_ID.name],
        address=said[ABOUT.name],
        blocks=said[KINDS.name] != EVENTS,
        events=said[KINDS.name] != BLOCKS,
    )
    place = None if since is None else Place(since)
    if last_event_id is not None:
        place = Place.after_mark(last_event_id)
        if place is None:
            raise malformed("header", "Last-Event-ID", shown(last_event_id), "an id that this stream has given")
    return streams.open(selection, place, since or 0)
