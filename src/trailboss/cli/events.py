"""``trailboss events``: what happened."""

import json
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Annotated

import typer

from trailboss.cli.directory import DirectoryChain
from trailboss.cli.failures import Mistake
from trailboss.cli.opening import open_chain, resolve_actor
from trailboss.cli.options import DIRECTORY, LIMIT, AsJson, Limit, Place
from trailboss.cli.output import Cell, Column, console, note, print_json, print_table
from trailboss.model.events import PROTOCOL_TOPICS
from trailboss.views import Event
from trailboss.views.explain.sentences import data_words
from trailboss.views.json_values import plain

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
    since: Annotated[
        int | None, typer.Option(min=0, metavar="H", help="From this block on.", show_default=False)
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Of a node: what happens from now on, or from the block of --since on, until Ctrl-C."
        ),
    ] = False,
    limit: Limit = LIMIT,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """List what happened, oldest first.

    If there are more events than the limit, the latest of them.
    """
    with open_chain(place) as chain:
        emitter = None if actor is None else resolve_actor(chain, actor)
        if follow:
            if isinstance(chain, DirectoryChain):
                raise Mistake(f"nothing happens in {place} by itself", "follow a node, with --url")
            with suppress(KeyboardInterrupt):
                _follow(chain.follow(since, name, emitter), as_json=as_json)
            return
        found = chain.latest_events(since or 0, name, emitter)
        latest = list(islice(found, limit or None))
        more = next(found, None) is not None
    _show(latest[::-1], more=more, as_json=as_json)


def _show(latest: list[Event], *, more: bool, as_json: bool) -> None:
    if as_json:
        print_json({"events": latest, "more": more})
        return
    if latest:
        width = console().width
        print_table("Events", COLUMNS, [_row(event, width) for event in latest])
    else:
        note("no such events")
    if more:
        note(f"these are the last {len(latest)}; --limit 0 shows all")


def _follow(found: Iterable[Event | int], *, as_json: bool) -> None:
    """Print events as they come, a line each, or a JSON document a line; and when the chain has gone back."""
    printer = console()
    for event in found:
        if isinstance(event, int):
            note(f"the chain has gone back to block {event}")
        elif as_json:
            typer.echo(json.dumps(plain(event)))
        else:
            about = "" if event.timer_id is None else f" {event.timer_id}"
            told = f"{event.block_height:>8} {event.name}{about} {data_words(event, printer.width)}"
            printer.print(told, markup=False, highlight=False, soft_wrap=True)


def _row(event: Event, width: int) -> tuple[Cell, ...]:
    return event.block_height, event.name, event.emitter, event.timer_id, data_words(event, width)
