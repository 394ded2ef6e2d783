"""``trailboss events``: what happened."""

import json
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from trailboss.chain import Event
from trailboss.chain.plain import plain
from trailboss.chain.telling.event_words import data_words
from trailboss.chain.telling.explain import events_since
from trailboss.cli.directory import DirectoryChain
from trailboss.cli.failures import Mistake
from trailboss.cli.opening import open_chain, resolve_actor
from trailboss.cli.options import DIRECTORY, LIMIT, AsJson, Limit, Place
from trailboss.cli.output import Cell, Column, console, note, print_json, print_table
from trailboss.model.events import PROTOCOL_TOPICS
from trailboss.primitives.octets import Address

if TYPE_CHECKING:
    from trailboss.cli.remote.chain import RemoteChain

COLUMNS = (
    Column("block", right=True),
    Column("event"),
    Column("emitter"),
    Column("timer"),
    Column("data", least=29),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events somebody wants.

    Attributes:
        name: Only those of this name; None for any.
        emitter: Only those of this actor; None for anybody's.
    """

    name: str | None
    emitter: Address | None

    def takes(self, event: Event) -> bool:
        """Return whether an event of that name is wanted."""
        return self.emitter in (None, event.emitter)


def _complete_topic(incomplete: str) -> list[str]:
    return sorted(topic for topic in PROTOCOL_TOPICS if topic.startswith(incomplete))


def events(
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only events of this name.", autocompletion=_complete_topic)
    ] = None,
    actor: Annotated[str | None, typer.Option(metavar="ACTOR", help="Only what this actor emitted.")] = None,
    since: Annotated[int, typer.Option(min=0, metavar="H", help="From this block on.")] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Of a node: go on with what happens, until Ctrl-C.")
    ] = False,
    limit: Limit = LIMIT,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """List what happened, oldest first.

    If there are more events than the limit, the latest of them.
    """
    with open_chain(place) as chain:
        if follow and isinstance(chain, DirectoryChain):
            raise Mistake(f"nothing happens in {place} by itself", "follow a node, with --url")
        emitter = None if actor is None else resolve_actor(chain, actor)
        latest: deque[Event] = deque(maxlen=limit or None)
        total = 0
        for event in events_since(chain, since, name):
            if emitter in (None, event.emitter):
                latest.append(event)
                total += 1
        if follow and not isinstance(chain, DirectoryChain):
            with suppress(KeyboardInterrupt):
                _follow(chain, list(latest), Wanted(name, emitter), as_json=as_json)
            return
    _show(list(latest), total, as_json=as_json)


def _show(latest: list[Event], total: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"total": total, "events": latest})
        return
    if latest:
        width = console().width
        print_table("Events", COLUMNS, [_row(event, width) for event in latest])
    else:
        note("no such events")
    if total > len(latest):
        note(f"these are the last {len(latest)} of {total:,}; --limit 0 shows all")


def _follow(chain: "RemoteChain", latest: list[Event], wanted: Wanted, *, as_json: bool) -> None:
    """Print events, and then those of each new block: a line each, or a JSON document a line."""
    _print_lines(latest, as_json=as_json)
    for step in chain.follow():
        if step.went_back:
            note(f"the chain has gone back to block {step.first - 1}")
        else:
            found = events_since(chain, step.first, wanted.name)
            _print_lines(filter(wanted.takes, found), as_json=as_json)


def _print_lines(found: Iterable[Event], *, as_json: bool) -> None:
    printer = console()
    for event in found:
        if as_json:
            typer.echo(json.dumps(plain(event)))
        else:
            about = "" if event.timer_id is None else f" {event.timer_id}"
            told = f"{event.block_height:>8} {event.name}{about} {data_words(event, printer.width)}"
            printer.print(told, markup=False, highlight=False, soft_wrap=True)


def _row(event: Event, width: int) -> tuple[Cell, ...]:
    return event.block_height, event.name, event.emitter, event.timer_id, data_words(event, width)
