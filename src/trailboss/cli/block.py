"""``trailboss block``: one block, and how it chose among its due timers."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final

import typer
from msgspec.structs import asdict as struct_dict

from trailboss.chain import ChainReader
from trailboss.cli.failures import Missing
from trailboss.cli.opening import open_chain
from trailboss.cli.options import DIRECTORY, LIMIT, AsJson, Limit, Place
from trailboss.cli.output import (
    Cell,
    Column,
    console,
    note,
    print_facts,
    print_json,
    print_pairs,
    print_table,
)
from trailboss.cli.status import time_words
from trailboss.codec.textual import to_json
from trailboss.model.blocks import Block
from trailboss.model.configs import amount_of
from trailboss.model.decisions import Order
from trailboss.model.transactions import ExecuteActor, Instruction, Transaction, transaction_hash
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, format_cby
from trailboss.views import Event, Receipt
from trailboss.views.explain.decision_view import decision_view
from trailboss.views.explain.sentences import data_words
from trailboss.views.json_values import plain
from trailboss.views.records import DecisionRow, DecisionView, event_view, receipt_view

TRANSACTION_COLUMNS = (
    Column("transaction"),
    Column("from"),
    Column("nonce", right=True, extra=True),
    Column("instruction", least=14),
)
RECEIPT_COLUMNS = (
    Column("receipt of"),
    Column("timer"),
    Column("actor", extra=True),
    Column("status", least=12),
    Column("cycles", right=True),
    Column("cells", right=True, extra=True),
    Column("CBY paid", right=True),
)
EVENT_COLUMNS = (Column("event"), Column("emitter", extra=True), Column("timer"), Column("data", least=29))
FIFO_COLUMNS = (
    Column("rank", right=True),
    Column("timer"),
    Column("actor"),
    Column("gas limit", right=True),
    Column("used", right=True, extra=True),
    Column("outcome", least=24),
)
AUCTION_COLUMNS = (
    Column("rank", right=True),
    Column("timer"),
    Column("actor", extra=True),
    Column("tip", right=True),
    Column("weight", right=True),
    Column("max fee", right=True, extra=True),
    Column("bid by", extra=True),
    Column("gas limit", right=True),
    Column("used", right=True, extra=True),
    Column("outcome", least=18),
)
GLOBALBOX_COLUMNS = (
    Column("rank", right=True),
    Column("timer"),
    Column("fire", right=True),
    Column("target", extra=True),
    Column("deliver seq", right=True),
    Column("tip", right=True),
    Column("gas limit", right=True),
    Column("used", right=True, extra=True),
    Column("outcome", least=18),
)
LANE_COLUMNS = (
    Column("rank", right=True),
    Column("timer"),
    Column("actor", extra=True),
    Column("tip", right=True),
    Column("W", right=True),
    Column("tip × W", right=True),
    Column("max fee", right=True, extra=True),
    Column("fees", extra=True),
    Column("gas limit", right=True),
    Column("used", right=True, extra=True),
    Column("outcome", least=18),
)


def block(
    height: Annotated[
        int | None,
        typer.Argument(metavar="HEIGHT", min=0, max=U64_MAX, help="The last block if not given.", show_default=False),
    ] = None,
    lane: Annotated[
        bool, typer.Option("--lane", help="Tell how it chose among its due timers: ranks, tips, the cut-off.")
    ] = False,
    limit: Limit = LIMIT,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Look at one block: its header, transactions, receipts and events, or how it chose among its due timers."""
    with open_chain(place) as chain:
        found = _find(chain, height)
        if lane:
            record = chain.decisions(found.height)
            _show_lane(found, None if record is None else decision_view(record, found.height), limit, as_json=as_json)
        else:
            _show_block(found, limit, as_json=as_json)


def _find(chain: ChainReader, height: int | None) -> Block:
    if height is not None and height > chain.height:
        raise Missing(f"there is no block {height}: the chain is at height {chain.height}", "name a lower height")
    return chain.head if height is None else chain.blocks[height]


def _show_block(found: Block, limit: int, *, as_json: bool) -> None:
    receipts = [receipt_view(receipt, found.height) for receipt in found.receipts]
    own = [event_view(event, found.height) for event in found.events]
    if as_json:
        print_json(_document(found, receipts, own))
        return
    print_facts(_facts(found))
    events = [event for receipt in receipts for event in receipt.events] + own
    width = console().width
    _section("Transactions", TRANSACTION_COLUMNS, list(map(_transaction_row, found.transactions)), limit)
    _section("Receipts", RECEIPT_COLUMNS, list(map(_receipt_row, receipts)), limit)
    _section("Events", EVENT_COLUMNS, [_event_row(each, width) for each in events], limit)
    if not (found.transactions or receipts or events):
        note(f"nothing happened in block {found.height}")


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


def _facts(found: Block) -> dict[str, Cell]:
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
    return record is not None and any(
        (
            record.examined_count,
            record.outranked,
            record.priced_out,
            record.over_cap,
            record.not_joined,
            record.in_mailbox,
        )
    )


def _section(title: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], limit: int) -> None:
    """Print a table among others: below its title also where nobody but a program reads."""
    if not rows:
        return
    shown = rows[: limit or None]
    typer.echo("" if console().is_terminal else f"\n{title}")
    print_table(title, columns, shown)
    if len(shown) < len(rows):
        note(f"these are the first {len(shown)} of {len(rows):,}; --limit 0 shows all")


def _transaction_row(transaction: Transaction) -> tuple[Cell, ...]:
    words = _instruction_words(transaction.instruction)
    return transaction_hash(transaction), transaction.sender, transaction.nonce, words


def _instruction_words(instruction: Instruction) -> str:
    name = type(instruction).__name__
    return f"{name}: {instruction.handler}" if isinstance(instruction, ExecuteActor) else name


def _receipt_row(receipt: Receipt) -> tuple[Cell, ...]:
    status = receipt.status if receipt.error is None else f"{receipt.status}: E{receipt.error.code}"
    return (
        receipt.origin,
        receipt.timer_id,
        receipt.actor,
        status,
        f"{receipt.cycles_used:,}",
        f"{receipt.cells_used:,}",
        format_cby(receipt.fee_paid),
    )


def _event_row(event: Event, width: int) -> tuple[Cell, ...]:
    return event.name, event.emitter, event.timer_id, data_words(event, width)


def _show_lane(found: Block, view: DecisionView | None, limit: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"height": found.height, "lane": plain(view)})
        return
    if view is not None:
        print_facts(_lane_facts(view))
    if view is None or not _had_due_timers(found):
        note(f"no timer that could run was due in block {found.height}")
        return
    columns, cells = TABLES[view.order]
    table = [cells(row) for row in (*view.rows, *view.runners_up)]
    _section(f"Due timers of block {view.height}", columns, table, limit)
    if view.sentences:
        typer.echo()
        print_pairs(console(), [("waiting", sentence) for sentence in view.sentences])


def _lane_facts(view: DecisionView) -> dict[str, Cell]:
    used = f"{view.lane_cycles_used:,} of {view.lane_cycles_max:,} cycles, at most {view.max_cycles_per_fire:,} a fire"
    facts: dict[str, Cell] = {"block": view.height, "mechanism": view.mechanism, "used": used}
    facts["basefees"] = f"{view.cycle_basefee:,} a cycle, {view.cell_basefee:,} a cell"
    if view.lane_basefee is not None and view.next_lane_basefee is not None:
        facts["lane basefee"] = (
            f"{view.lane_basefee:,} a cycle, next {view.next_lane_basefee:,}; it burned {format_cby(view.lane_burned)} "
            "CBY"
        )
        fires = "1 fire" if view.median_fires == 1 else f"{view.median_fires:,} fires"
        facts["medians"] = f"tip {view.previous_tip:,} in the block before, {fires} in the window"
    bids = f", {len(view.bids):,} bids" if view.bids else ""
    facts["agents"] = f"{view.agent_cycles:,} cycles{bids}" if view.agent_cycles else None
    if view.queued is not None:
        facts["after it"] = f"{view.queued:,} fires in Globalbox, {view.in_mailbox:,} entries in the mailbox"
    named = "" if len(view.rows) == view.examined else f", of which the first {len(view.rows):,} are named"
    cut_off = "" if view.cut_off is None else f", cut-off at rank {view.cut_off:,}"
    facts["examined"] = f"{view.examined:,}{named}{cut_off}"
    return facts


def _outcome(row: DecisionRow) -> str:
    return f"{row.outcome}: {row.reason}" if row.reason else row.outcome


def _used(row: DecisionRow) -> Cell:
    return None if row.cycles_used is None else f"{row.cycles_used:,}"


def _fifo_row(row: DecisionRow) -> tuple[Cell, ...]:
    return row.rank, row.timer_id, row.actor, f"{row.gas_limit:,}", _used(row), _outcome(row)


def _lane_row(row: DecisionRow) -> tuple[Cell, ...]:
    is_ranked = row.effective_priority is not None
    return (
        row.rank,
        row.timer_id,
        row.actor,
        f"{row.tip:,}" if is_ranked else None,
        row.weight,
        f"{Decimal(row.effective_priority):,}" if row.effective_priority is not None else None,
        None if row.max_fee is None else f"{row.max_fee:,}",
        row.fees,
        f"{row.gas_limit:,}",
        _used(row),
        _outcome(row),
    )


def _auction_row(row: DecisionRow) -> tuple[Cell, ...]:
    return (
        row.rank,
        row.timer_id,
        row.actor,
        f"{row.tip:,}" if row.rank else None,
        row.weight,
        None if row.max_fee is None else f"{row.max_fee:,}",
        row.fees,
        f"{row.gas_limit:,}",
        _used(row),
        _outcome(row),
    )


def _globalbox_row(row: DecisionRow) -> tuple[Cell, ...]:
    return (
        row.rank,
        row.timer_id,
        row.fire_seq,
        row.target,
        row.deliver_seq,
        f"{row.tip:,}",
        f"{row.gas_limit:,}",
        _used(row),
        _outcome(row),
    )


TABLES: Final[Mapping[str, tuple[tuple[Column, ...], Callable[[DecisionRow], tuple[Cell, ...]]]]] = {
    Order.DUE: (FIFO_COLUMNS, _fifo_row),
    Order.PRIORITY: (LANE_COLUMNS, _lane_row),
    Order.TIP: (AUCTION_COLUMNS, _auction_row),
    Order.STANDING: (GLOBALBOX_COLUMNS, _globalbox_row),
}
"""Columns of a block's due timers and what fills them, by what the block ranks by."""
