"""What is in blocks: ``block`` shows one, ``events`` lists what was emitted."""

import json
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any, Final

import typer
from msgspec.structs import asdict as struct_dict

from trailboss.chain import ChainReader
from trailboss.cli import output
from trailboss.cli.command import Invocation, command
from trailboss.cli.directory_chain import DirectoryChain
from trailboss.cli.errors import Missing, Mistake
from trailboss.cli.options import LIMIT, Limit, Number, Text, argument, completing, number, option, whole_number
from trailboss.cli.targets import resolve_actor
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
from trailboss.views.mechanism.registry import views_of
from trailboss.views.records import DecisionView, event_view, receipt_view
from trailboss.views.text import time_words

TRANSACTION_COLUMNS = output.columns("transaction | from | >nonce? | instruction/14")
RECEIPT_COLUMNS = output.columns("receipt of | timer | actor? | status/12 | >cycles | >cells? | >CBY paid")
EVENT_COLUMNS = output.columns("event | emitter? | timer | data/29")
EVENTS: Final = output.columns(">block | event | emitter | timer | data/29")


@command()
def block(
    run: Invocation,
    height: Annotated[
        Number, argument("HEIGHT", "Height of the block.", "the last", parser=whole_number(0, U64_MAX))
    ] = None,
    lane: Annotated[
        bool, typer.Option("--lane", help="Show how it chose among its due timers: ranks, tips, the cut-off.")
    ] = False,
    limit: Limit = LIMIT,
) -> None:
    """Show a block, or how it chose among its due timers.

    Example: trailboss block 120 --lane
    """
    found = _find(run.chain, height)
    if lane:
        record = run.chain.decisions(found.height)
        _show_lane(found, None if record is None else decision_view(record, found.height), limit, as_json=run.as_json)
    else:
        _show_block(found, limit, as_json=run.as_json)


def _find(chain: ChainReader, height: int | None) -> Block:
    if height is not None and height > chain.height:
        raise Missing(f"there is no block {height}: the chain is at height {chain.height}", "name a lower height")
    return chain.head if height is None else chain.blocks[height]


def _show_block(found: Block, limit: int, *, as_json: bool) -> None:
    receipts = [receipt_view(receipt, found.height) for receipt in found.receipts]
    own = [event_view(event, found.height) for event in found.events]
    if as_json:
        output.print_json(_document(found, receipts, own))
        return
    output.print_facts(_facts(found))
    events = [event for receipt in receipts for event in receipt.events] + own
    width = output.console().width
    output.print_section("Transactions", TRANSACTION_COLUMNS, list(map(_transaction_row, found.transactions)), limit)
    output.print_section("Receipts", RECEIPT_COLUMNS, list(map(_receipt_row, receipts)), limit)
    output.print_section("Events", EVENT_COLUMNS, [_event_row(each, width) for each in events], limit)
    if not (found.transactions or receipts or events):
        output.note(f"nothing happened in block {found.height}")


def _document(found: Block, receipts: list[Receipt], own: list[Event]) -> dict[str, Any]:
    header: dict[str, Any] = struct_dict(found.header)
    for name in ("parent", "transactions_root", "receipts_root", "state_root"):
        header[name] = Hash32(header[name])
    header["proposer"] = Address(header["proposer"])
    for name in ("cycle_basefee", "cell_basefee"):
        header[name] = amount_of(header[name])
    transactions = [{"hash": transaction_hash(each), **to_json(each)} for each in found.transactions]
    return {
        "hash": found.hash,
        "header": header,
        "transactions": transactions,
        "receipts": receipts,
        "events": own,
        "has_decision_record": found.decisions is not None,
    }


def _facts(found: Block) -> dict[str, output.Cell]:
    header = found.header
    cycle, cell = amount_of(header.cycle_basefee), amount_of(header.cell_basefee)
    return {
        "block": header.height,
        "hash": str(found.hash),
        "parent": str(Hash32(header.parent)),
        "state root": str(Hash32(header.state_root)),
        "time": time_words(header.timestamp_ms),
        "basefees": f"{cycle:,} a cycle, {cell:,} a cell",
        "used": f"{header.cycles_used:,} cycles, {header.timer_cycles_used:,} of them by fires; "
        f"{header.cells_used:,} cells",
        "due timers": f"see `trailboss block {header.height} --lane`" if _had_due_timers(found) else None,
    }


def _had_due_timers(found: Block) -> bool:
    record = found.decisions
    if record is None:
        return False
    waiting = (record.outranked, record.priced_out, record.over_cap, record.not_joined, record.in_mailbox)
    return any((record.examined_count, *waiting))


def _transaction_row(transaction: Transaction) -> tuple[output.Cell, ...]:
    instruction = transaction.instruction
    name = type(instruction).__name__
    words = f"{name}: {instruction.handler}" if isinstance(instruction, ExecuteActor) else name
    return transaction_hash(transaction), transaction.sender, str(transaction.nonce), words


def _receipt_row(receipt: Receipt) -> tuple[output.Cell, ...]:
    status = receipt.status if receipt.error is None else f"{receipt.status}: E{receipt.error.code}"
    used = (receipt.cycles_used, receipt.cells_used)
    return receipt.origin, receipt.timer_id, receipt.actor, status, *used, format_cby(receipt.fee_paid)


def _event_row(event: Event, width: int) -> tuple[output.Cell, ...]:
    return event.name, event.emitter, event.timer_id, data_words(event, width)


def _show_lane(found: Block, view: DecisionView | None, limit: int, *, as_json: bool) -> None:
    if as_json:
        output.print_json({"height": found.height, "lane": to_json_value(view)})
        return
    if view is not None:
        output.print_facts({"block": view.height, **output.drawn_facts(decision_facts(view))})
    if view is None or not _had_due_timers(found):
        output.note(f"no timer that could run was due in block {found.height}")
        return
    views = views_of(view.mechanism)
    rows = [views.decision_cells(row) for row in (*view.rows, *view.runners_up)]
    heads, cells = output.drawn_table(views.decision_columns, rows)
    output.print_section(f"Due timers of block {view.height}", heads, cells, limit)
    if view.sentences:
        typer.echo()
        output.print_pairs(output.console(), [("waiting", sentence) for sentence in view.sentences])


@command()
def events(
    run: Invocation,
    name: Annotated[
        Text, option("NAME", "Only events of this name.", autocompletion=completing(sorted(PROTOCOL_TOPICS)))
    ] = None,
    actor: Annotated[Text, option("ACTOR", "Only events emitted by this actor.")] = None,
    since: Annotated[Number, number("From this block on.", metavar="H")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="On a node: print new events, from --since on, until Ctrl-C.")
    ] = False,
    limit: Limit = LIMIT,
) -> None:
    """List events, oldest first.

    If there are more events than the limit, only the latest are listed.

    Example: trailboss events --name timer.fired --since 100
    """
    chain = run.chain
    emitter = None if actor is None else resolve_actor(chain, actor)
    if follow:
        if isinstance(chain, DirectoryChain):
            raise Mistake(f"nothing happens in {run.place} by itself", "follow a node, with --url")
        with suppress(KeyboardInterrupt):
            _follow(chain.follow(since, name, emitter), as_json=run.as_json)
        return
    found = chain.latest_events(since or 0, name, emitter)
    latest = list(islice(found, limit or None))
    more = next(found, None) is not None
    _show_events(latest[::-1], more=more, as_json=run.as_json)


def _show_events(latest: list[Event], *, more: bool, as_json: bool) -> None:
    if as_json:
        output.print_json({"events": latest, "more": more})
        return
    if latest:
        width = output.console().width
        output.print_table("Events", EVENTS, [(str(each.block_height), *_event_row(each, width)) for each in latest])
    else:
        output.note("no such events")
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
