"""Timers: ``timers`` lists them, ``timer explain`` shows the life of one, ``mailbox`` what waits under Globalbox."""

from itertools import islice
from typing import Annotated, Final

import typer

from trailboss.chain import ChainReader
from trailboss.cli import output
from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import Mistake
from trailboss.cli.lazy import group
from trailboss.cli.options import LIMIT, Limit, Number, Text, TimerId, argument, height, option
from trailboss.cli.targets import resolve_actor, resolve_timer
from trailboss.primitives.units import U64_MAX
from trailboss.views import TimerLife
from trailboss.views.mechanism.globalbox import mailbox_table, queue_table
from trailboss.views.mechanism.globalbox_records import FireView, MailboxView, globalbox_of, mailbox_of
from trailboss.views.mechanism.registry import MECHANISM_VIEWS, views_for
from trailboss.views.records import TimerEntry
from trailboss.views.timer_list import REVERTED, STATES, TimerFilter

STATE_TEXT: Final = "; ".join(
    [f"One of {', '.join(STATES)}. live includes due and deferred"]
    + [f"{', '.join(views.timer_states)} under {name}" for name, views in MECHANISM_VIEWS.items() if views.timer_states]
)
COLUMNS = output.columns("timer | >height | state | actor | handler/12 | payer | >gas limit? | >expires after? | tier?")


def _state(text: str) -> str:
    if text not in STATES:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(STATES)}.")
    return text


@command()
def timers(
    run: Invocation,
    actor: Annotated[Text, option("ACTOR", "Only timers of this actor.")] = None,
    target: Annotated[Text, option("ACTOR", "Only timers that call this actor.")] = None,
    payer: Annotated[Text, option("ACTOR", "Only timers that this account pays for.")] = None,
    state: Annotated[str, option("STATE", f"{STATE_TEXT}.", parser=_state)] = "live",
    from_height: Annotated[int, height("Only timers due at this height or later.")] = 0,
    to_height: Annotated[Number, height("Only timers due at this height or earlier.")] = None,
    limit: Limit = LIMIT,
) -> None:
    """List timers: live ones by height, ended ones with the latest first.

    Example: trailboss timers --state all --actor 0x044d2D5f
    """
    last = U64_MAX if to_height is None else to_height
    if last < from_height:
        raise Mistake(f"--to-height {last} lies below --from-height {from_height}", "swap them")
    chain = run.chain
    wanted = TimerFilter(
        state=state,
        actor=None if actor is None else resolve_actor(chain, actor),
        target=None if target is None else resolve_actor(chain, target),
        payer=None if payer is None else resolve_actor(chain, payer),
        first=from_height,
        last=last,
    )
    found = chain.list_timers(wanted)
    entries = list(islice(found, limit or None))
    more = next(found, None) is not None
    _show(chain, entries, state, more=more, as_json=run.as_json)


def _show(chain: ChainReader, entries: list[TimerEntry], state: str, *, more: bool, as_json: bool) -> None:
    if as_json:
        output.print_json({"height": chain.height, "live": chain.timer_count(), "timers": entries, "more": more})
        return
    if entries:
        title = f"{'Timers' if state == 'all' else f'{state.capitalize()} timers'} after block {chain.height}"
        views = views_for(chain)
        heads, cells = output.drawn_table(views.timer_columns, map(views.timer_cells, entries))
        rows = [(*_row(entry), *own) for entry, own in zip(entries, cells, strict=True)]
        output.print_table(title, [*COLUMNS, *heads], rows)
    else:
        output.note(f"no such timers after block {chain.height}; {chain.timer_count()} are live")
    if more:
        output.note(f"these are the first {len(entries)}; --limit 0 shows all")


def _row(entry: TimerEntry) -> tuple[output.Cell, ...]:
    payer = "the actor" if entry.fee_payer == entry.actor else entry.fee_payer
    ending = REVERTED if entry.reverted else entry.state
    state = entry.state if entry.ended_at is None else f"{ending} in {entry.ended_at}"
    height = None if entry.is_watch else str(entry.height)
    expiry = "never" if entry.expires_at == U64_MAX else str(entry.expires_at)
    tier = entry.tier or entry.deferred_for
    return entry.timer_id, height, state, entry.actor, entry.handler, payer, entry.gas_limit, expiry, tier


timer = group("Explain one timer.")


@timer.callback()
def _one_timer() -> None:
    """Explain one timer."""


@timer.command()
@command()
def explain(run: Invocation, timer_id: TimerId) -> None:
    """Show the whole life of a timer, with the reason for each decision about it.

    Example: trailboss timer explain 0x6e3d2443
    """
    identity = resolve_timer(run.chain, timer_id)
    life = run.chain.explain(identity)
    if run.as_json:
        output.print_json(_document(life))
        return
    printer = output.console()
    printer.print(life.heading(), markup=False, soft_wrap=True)
    output.print_pairs(printer, life.lines(), indent="  ")


def _document(life: TimerLife) -> dict[str, object]:
    steps = [
        {"block_height": step.block_height, "event": step.event.name, "story": step.story, "data": step.event.data}
        for step in life.steps
    ]
    return {
        "timer_id": life.timer_id,
        "state": life.state,
        "steps": steps,
        "waited": life.waited or None,
        "waits": life.waits,
        "bids": life.bids,
        "fires": life.fires,
        "outlook": life.outlook or None,
        "reverted": life.has_reverted,
        "failure": life.failure,
    }


@command()
def mailbox(
    run: Invocation,
    target: Annotated[Text, argument("TARGET", "Only what is for this actor.", "all")] = None,
    queued: Annotated[bool, typer.Option("--queued", help="List the fires queued behind the mailbox.")] = False,
    limit: Limit = LIMIT,
) -> None:
    """List Globalbox's mailbox in order of delivery, or the fires queued behind it.

    Example: trailboss mailbox --queued
    """
    chain = run.chain
    wanted = None if target is None else resolve_actor(chain, target)
    found: list[FireView] | list[MailboxView]
    if queued:
        found = [view for view in globalbox_of(chain) if wanted in (None, view.target)]
        table = queue_table(found[: limit or None])
    else:
        found = mailbox_of(chain, wanted)
        table = mailbox_table(found[: limit or None])
    height = chain.height
    if run.as_json:
        name = "globalbox" if queued else "mailbox"
        output.print_json({"height": height, "total": len(found), name: found[: limit or None]})
        return
    if table.rows:
        output.print_table(f"{table.title}, after block {height}", *output.drawn_table(table.columns, table.rows))
    else:
        output.note(table.empty)
    output.note_rest(len(table.rows), len(found))
