"""What is in blocks (``block``, ``events``) and what waits for them (``timers``, ``timer explain``, ``mailbox``)."""

import json
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any, Final

import typer
from msgspec.structs import asdict as struct_dict

from trailboss.chain import Chain
from trailboss.cli import options, output
from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import Mistake, NotFound
from trailboss.cli.lazy import group
from trailboss.cli.targets import find_timer, resolve_timer
from trailboss.codec.textual import to_json
from trailboss.model.blocks import Block
from trailboss.model.configs import amount_of
from trailboss.model.events import PROTOCOL_TOPICS
from trailboss.model.transactions import ExecuteActor, Transaction, transaction_hash
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, format_cby
from trailboss.views import Event, Receipt
from trailboss.views.explain.decision_view import decision_facts, decision_view
from trailboss.views.explain.sentences import data_words
from trailboss.views.json_values import to_json_value
from trailboss.views.labels import labelled
from trailboss.views.mechanism.globalbox import mailbox_table, queue_table
from trailboss.views.mechanism.globalbox_records import FireView, MailboxView, globalbox_of, mailbox_of
from trailboss.views.mechanism.registry import MECHANISM_VIEWS, views_for, views_of
from trailboss.views.records import DecisionView, TimerEntry, event_view, receipt_view
from trailboss.views.text import time_words
from trailboss.views.timer_list import REVERTED, STATES, TimerFilter

STATE_TEXT: Final = "; ".join(
    [f"One of {', '.join(STATES)}. live includes due and deferred"]
    + [f"{', '.join(views.timer_states)} under {name}" for name, views in MECHANISM_VIEWS.items() if views.timer_states]
)
COLUMNS = output.columns("timer | >height | state | actor | handler/12 | payer | >gas limit? | >expires after? | tier?")


@command()
def timers(
    run: Invocation,
    actor: Annotated[options.Text, options.option("ACTOR", "Only timers of this actor.")] = None,
    target: Annotated[options.Text, options.option("ACTOR", "Only timers that call this actor.")] = None,
    payer: Annotated[options.Text, options.option("ACTOR", "Only timers that this account pays for.")] = None,
    state: Annotated[str, options.option("STATE", f"{STATE_TEXT}.", parser=options.one_of(STATES))] = "live",
    from_height: Annotated[int, options.height("Only timers due at this height or later.")] = 0,
    to_height: Annotated[options.Number, options.height("Only timers due at this height or earlier.")] = None,
    limit: options.Limit = options.LIMIT,
) -> None:
    """List timers: live ones by height, ended ones with the latest first.

    Example: trailboss timers --state all --actor 0x044d2D5f
    """
    last = U64_MAX if to_height is None else to_height
    if last < from_height:
        raise Mistake(f"--to-height {last} lies below --from-height {from_height}", "swap them")
    chain = run.chain
    parties = {"actor": run.actor(actor), "target": run.actor(target), "payer": run.actor(payer)}
    found = chain.list_timers(TimerFilter(state=state, first=from_height, last=last, **parties))
    entries = list(islice(found, limit or None))
    more, live = next(found, None) is not None, chain.timer_count()
    if run.as_json:
        output.print_json({"height": chain.height, "live": live, "timers": entries, "more": more})
        return
    title = f"{'Timers' if state == 'all' else f'{state.capitalize()} timers'} after block {chain.height}"
    views = views_for(chain)
    own = output.drawn_rows(views.timer_columns, map(views.timer_cells, entries))
    rows = [(*_row(entry), *cells) for entry, cells in zip(entries, own, strict=True)]
    empty = f"no such timers after block {chain.height}; {live} are live"
    output.print_table(title, [*COLUMNS, *views.timer_columns], rows, empty)
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


@timer.command()
@command()
def explain(run: Invocation, timer_id: options.TimerId) -> None:
    """Show the whole life of a timer, with the reason for each decision about it.

    Example: trailboss timer explain 0x6e3d2443
    """
    life = run.chain.explain(resolve_timer(run.chain, timer_id))
    steps = [
        {"block_height": step.block_height, "event": step.event.name, "story": step.story, "data": step.event.data}
        for step in life.steps
    ]
    waited = {"waited": life.waited or None, "waits": life.waits, "bids": life.bids, "fires": life.fires}
    ended = {
        "outlook": life.outlook or None,
        "reverted": life.has_reverted,
        "failure": life.failure,
        "forecast": life.forecast or None,
    }
    document = {"timer_id": life.timer_id, "state": life.state, "steps": steps, **waited, **ended}
    if run.as_json:
        output.print_json(document)
        return
    printer = output.console()
    printer.print(labelled(life.heading()), markup=False, soft_wrap=True)
    output.print_pairs(printer, life.lines(), indent="  ")


@timer.command("dry-run")
@command("at_height", "assume")
def dry_run(run: Invocation, timer_id: options.TimerId) -> None:
    """Simulate a live timer's next fire, and show its receipt; nothing changes.

    It fires as it would if nothing were sent until then: in the block in which it is its turn, at the prices there.

    Example: trailboss timer dry-run 0x6e3d2443
    """
    run.dry_run = True
    # At an earlier height, a timer that has ended since was live.
    found = (find_timer if run.at_height is None else resolve_timer)(run.chain, timer_id)
    receipt = run.chain.simulate_fire(found, run.at_height, run.overrides)
    run.show_receipts({"fire": receipt}, {"timer": found})


@command()
def mailbox(
    run: Invocation,
    target: Annotated[options.Text, options.argument("TARGET", "Only what is for this actor.", "all")] = None,
    queued: Annotated[bool, options.flag("--queued", "List the fires queued behind the mailbox.")] = False,
    limit: options.Limit = options.LIMIT,
) -> None:
    """List Globalbox's mailbox in order of delivery, or the fires queued behind it.

    Example: trailboss mailbox --queued
    """
    chain = run.chain
    wanted = run.actor(target)
    found: list[FireView] | list[MailboxView]
    if queued:
        found = [view for view in globalbox_of(chain) if wanted in (None, view.target)]
        table = queue_table(found[: limit or None])
    else:
        found = mailbox_of(chain, wanted)
        table = mailbox_table(found[: limit or None])
    if run.as_json:
        name = "globalbox" if queued else "mailbox"
        output.print_json({"height": chain.height, "total": len(found), name: found[: limit or None]})
        return
    rows = output.drawn_rows(table.columns, table.rows)
    output.print_table(f"{table.title}, after block {chain.height}", table.columns, rows, table.empty)
    output.note_rest(len(rows), len(found))


TRANSACTION_COLUMNS = output.columns("transaction | from | >nonce? | instruction/14")
RECEIPT_COLUMNS = output.columns("receipt of | timer | actor? | status/12 | >cycles | >cells? | >CBY paid")
EVENT_COLUMNS = output.columns("event | emitter? | timer | data/29")
EVENTS: Final = output.columns(">block | event | emitter | timer | data/29")


@command()
def block(
    run: Invocation,
    height: Annotated[
        options.Number,
        options.argument("HEIGHT", "Height of the block.", "the last", parser=options.whole_number(0, U64_MAX)),
    ] = None,
    lane: Annotated[
        bool, options.flag("--lane", "Show how it chose among its due timers: ranks, tips, the cut-off.")
    ] = False,
    limit: options.Limit = options.LIMIT,
) -> None:
    """Show a block, or how it chose among its due timers.

    Example: trailboss block 120 --lane
    """
    chain = run.chain
    if height is not None and height > chain.height:
        raise NotFound(f"there is no block {height}: the chain is at height {chain.height}", "name a lower height")
    found = chain.head if height is None else chain.blocks[height]
    if lane:
        record = chain.decisions(found.height)
        _show_lane(run, found, None if record is None else decision_view(record, found.height), limit)
        return
    receipts = [receipt_view(receipt, found.height) for receipt in found.receipts]
    own = [event_view(event, found.height) for event in found.events]
    run.show(_block_document(found, receipts, own), _block_facts(found))
    if run.as_json:
        return
    events = [event for receipt in receipts for event in receipt.events] + own
    width = output.console().width
    output.print_section("Transactions", TRANSACTION_COLUMNS, list(map(_transaction_row, found.transactions)), limit)
    output.print_section("Receipts", RECEIPT_COLUMNS, list(map(receipt_row, receipts)), limit)
    output.print_section("Events", EVENT_COLUMNS, [event_row(each, width) for each in events], limit)
    if found.is_header_only:
        output.note(f"this node joined the network at block {found.height}, and has its header alone")
    elif not (found.transactions or receipts or events):
        output.note(f"nothing happened in block {found.height}")


def _block_document(found: Block, receipts: list[Receipt], own: list[Event]) -> dict[str, Any]:
    kinds = {"proposer": Address, "cycle_basefee": amount_of, "cell_basefee": amount_of}
    kinds |= dict.fromkeys(("parent", "transactions_root", "receipts_root", "state_root"), Hash32)
    header = {name: kinds.get(name, int)(value) for name, value in struct_dict(found.header).items()}
    return {
        "hash": found.hash,
        "header": header,
        "transactions": [{"hash": transaction_hash(each), **to_json(each)} for each in found.transactions],
        "receipts": receipts,
        "events": own,
        "has_decision_record": found.decisions is not None,
        "is_header_only": found.is_header_only,
    }


def _block_facts(found: Block) -> dict[str, output.Cell]:
    header = found.header
    cycle, cell = amount_of(header.cycle_basefee), amount_of(header.cell_basefee)
    return {
        "block": header.height,
        "hash": found.hash,
        "parent": Hash32(header.parent),
        "state root": Hash32(header.state_root),
        "time": time_words(header.timestamp_ms),
        "basefees": f"{cycle:,} a cycle, {cell:,} a cell",
        "used": f"{header.cycles_used:,} cycles, {header.timer_cycles_used:,} of them by fires; "
        f"{header.cells_used:,} cells",
        "due timers": f"see `trailboss block {header.height} --lane`" if _had_due_timers(found) else None,
    }


def _had_due_timers(found: Block) -> bool:
    names = ("examined_count", "outranked", "priced_out", "over_cap", "not_joined", "in_mailbox")
    return found.decisions is not None and any(getattr(found.decisions, name) for name in names)


def _transaction_row(transaction: Transaction) -> tuple[output.Cell, ...]:
    instruction = transaction.instruction
    name = type(instruction).__name__
    words = f"{name}: {instruction.handler}" if isinstance(instruction, ExecuteActor) else name
    return transaction_hash(transaction), transaction.sender, str(transaction.nonce), words


def receipt_row(receipt: Receipt) -> tuple[output.Cell, ...]:
    """Return the cells of `RECEIPT_COLUMNS`."""
    status = receipt.status if receipt.error is None else f"{receipt.status}: E{receipt.error.code}"
    used = (receipt.cycles_used, receipt.cells_used)
    return receipt.origin, receipt.timer_id, receipt.actor, status, *used, format_cby(receipt.fee_paid)


def event_row(event: Event, width: int) -> tuple[output.Cell, ...]:
    """Return the cells of `EVENT_COLUMNS`; data for a line of so many columns."""
    return event.name, event.emitter, event.timer_id, data_words(event, width)


def _show_lane(run: Invocation, found: Block, view: DecisionView | None, limit: int) -> None:
    if run.as_json:
        output.print_json({"height": found.height, "lane": view})
        return
    if view is not None:
        output.print_facts({"block": view.height, **output.drawn_facts(decision_facts(view))})
    if view is None or not _had_due_timers(found):
        output.note(f"no timer that could run was due in block {found.height}")
        return
    views = views_of(view.mechanism)
    rows = output.drawn_rows(views.decision_columns, map(views.decision_cells, (*view.rows, *view.runners_up)))
    output.print_section(f"Due timers of block {view.height}", views.decision_columns, rows, limit)
    if view.sentences:
        typer.echo()
        output.print_pairs(output.console(), [("waiting", sentence) for sentence in view.sentences])


@command()
def events(
    run: Invocation,
    name: Annotated[
        options.Text,
        options.option("NAME", "Only events of this name.", autocompletion=options.completing(sorted(PROTOCOL_TOPICS))),
    ] = None,
    actor: Annotated[options.Text, options.option("ACTOR", "Only events emitted by this actor.")] = None,
    since: Annotated[options.Number, options.number("From this block on.", metavar="H")] = None,
    follow: Annotated[
        bool, options.flag("--follow -f", "On a node: print new events, from --since on, until Ctrl-C.")
    ] = False,
    limit: options.Limit = options.LIMIT,
) -> None:
    """List events, oldest first.

    If there are more events than the limit, only the latest are listed.

    Example: trailboss events --name timer.fired --since 100
    """
    chain = run.chain
    emitter = run.actor(actor)
    if follow:
        if isinstance(chain, Chain):
            raise Mistake(f"nothing happens in {run.place} by itself", "follow a node, with --url")
        with suppress(KeyboardInterrupt):
            _follow(chain.follow(since, name, emitter), as_json=run.as_json)
        return
    found = chain.latest_events(since or 0, name, emitter)
    latest = list(islice(found, limit or None))
    more = next(found, None) is not None
    if run.as_json:
        output.print_json({"events": latest[::-1], "more": more})
        return
    width = output.console().width
    rows = [(str(each.block_height), *event_row(each, width)) for each in reversed(latest)]
    output.print_table("Events", EVENTS, rows, "no such events")
    if more:
        output.note(f"these are the last {len(latest)}; --limit 0 shows all")


def _follow(found: Iterable[Event | int], *, as_json: bool) -> None:
    """Print events as they come, a line each, or a JSON document a line; and when the chain has gone back."""
    printer = output.console()
    for event in found:
        if isinstance(event, int):
            output.note(f"the chain has gone back to block {event}")
        elif as_json:
            typer.echo(json.dumps(to_json_value(event)))
        else:
            about = "" if event.timer_id is None else f" {event.timer_id}"
            line = f"{event.block_height:>8} {event.name}{about} {data_words(event, printer.width)}"
            printer.print(line, markup=False, highlight=False, soft_wrap=True)
