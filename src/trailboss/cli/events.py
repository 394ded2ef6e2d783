"""``trailboss events``: what happened."""

from collections import deque
from typing import Annotated

import typer

from trailboss.chain import Event
from trailboss.chain.telling.explain import events_since
from trailboss.cli.event_words import data_words
from trailboss.cli.opening import open_chain, resolve_actor
from trailboss.cli.options import DIRECTORY, LIMIT, AsJson, Directory, Limit
from trailboss.cli.output import Cell, Column, console, note, print_json, print_table
from trailboss.model.events import PROTOCOL_TOPICS

COLUMNS = (
    Column("block", right=True),
    Column("event"),
    Column("emitter"),
    Column("timer"),
    Column("data", least=29),
)


def _complete_topic(incomplete: str) -> list[str]:
    return sorted(topic for topic in PROTOCOL_TOPICS if topic.startswith(incomplete))


def events(
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only events of this name.", autocompletion=_complete_topic)
    ] = None,
    actor: Annotated[str | None, typer.Option(metavar="ACTOR", help="Only what this actor emitted.")] = None,
    since: Annotated[int, typer.Option(min=0, metavar="H", help="From this block on.")] = 0,
    limit: Limit = LIMIT,
    directory: Directory = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """List what happened, oldest first.

    If there are more events than the limit, the latest of them.
    """
    with open_chain(directory) as chain:
        emitter = None if actor is None else resolve_actor(chain, actor)
        latest: deque[Event] = deque(maxlen=limit or None)
        total = 0
        for event in events_since(chain, since, name):
            if emitter in (None, event.emitter):
                latest.append(event)
                total += 1
    if as_json:
        print_json({"total": total, "events": list(latest)})
        return
    if latest:
        width = console().width
        print_table("Events", COLUMNS, [_row(event, width) for event in latest])
    else:
        note("no such events")
    if total > len(latest):
        note(f"these are the last {len(latest)} of {total:,}; --limit 0 shows all")


def _row(event: Event, width: int) -> tuple[Cell, ...]:
    return event.block_height, event.name, event.emitter, event.timer_id, data_words(event, width)
