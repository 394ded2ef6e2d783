"""``activation``: rehearse the activation of the timer lane, vote for it, show its state."""

from typing import Annotated

import typer

from trailboss.chain import ChainReader
from trailboss.cli import output
from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import FAILED
from trailboss.cli.lazy import group
from trailboss.cli.options import LIMIT, Limit, height, number
from trailboss.governance.parameters import ACTIVATION
from trailboss.model.transactions import SetGovParam
from trailboss.primitives.units import format_cby
from trailboss.rehearsal.rehearse import (
    REHEARSED_BLOCKS,
    REHEARSED_MAX,
    ActivationRehearsal,
    RehearsedTimer,
    rehearse_activation,
)
from trailboss.rehearsal.run import EXPIRED, FIRED, STRANDED, WAITING, Fate, Run
from trailboss.views.json_values import to_json_value
from trailboss.views.mechanism.lane_records import activation_status
from trailboss.views.text import counted

activation = group("Rehearse the activation of the timer lane, and vote for it.")

Activation = Annotated[int, height("First block under the lane's rules.", least=1)]
Blocks = Annotated[int, number("Blocks to rehearse after that one.", most=REHEARSED_MAX)]
COLUMNS = output.columns(
    "timer | >due | >gas limit? | fires in the lane/17 | >a cycle? | >CBY | "
    ">burned? | >lane burn? | >tip? | under FIFO/13 | >CBY"
)
TURNS_MAX = 4  # turns of the lane basefee that are listed; of more only the highest and the lowest
COUNTED = {
    "on_time": "  fire on time", "late": "  fire late", "reverted": "    and revert",
    "stranded": "  stranded over the cap", "waiting": "  still wait", "unfunded": "  unfunded",
    "expired": "  expire", "cancelled": "  cancelled"
}  # fmt: skip
MONEY = {
    "paid": "CBY paid", "cycle_burned": "  cycle basefee", "cell_burned": "  cell basefee",
    "lane_burned": "  lane basefee", "tips": "  tips"
}  # fmt: skip
REASON_WORDS = {
    "over_cap": "over the cap",
    "priced_out": "priced out",
    "outranked": "outranked",
    "lane_full": "lane full",
    "cells_full": "cells for fires spent",
    "not_joined": "yet to join",
    "gc_exhausted": "clean-up budget spent",
    "agent_offer": "its agent offered too little",
}


@activation.command()
@command()
def rehearse(run: Invocation, height: Activation, blocks: Blocks = REHEARSED_BLOCKS, limit: Limit = LIMIT) -> None:
    """Simulate the activation on a copy of the chain, and show what becomes of each timer.

    The chain itself does not change. A second copy continues under FIFO, for comparison; both without transactions.

    Example: trailboss activation rehearse --height 500
    """
    found = _rehearse(run.chain, height, blocks, quiet=run.as_json)
    shown = found.timers[: limit or None]
    if run.as_json:
        output.print_json(_summary(found) | {"timers": to_json_value(shown), "more": len(shown) < len(found.timers)})
        return
    _show_summary(found)
    if shown:
        output.print_table("What becomes of each timer", COLUMNS, [_row(timer) for timer in shown])
    if any(timer.scheduled_at for timer in shown):
        output.note("* scheduled by a fire of the rehearsal")
    output.note_rest(len(shown), len(found.timers))
    _show_advice(found)


@activation.command()
@command("governor", "private_key")
def propose(run: Invocation, height: Activation, blocks: Blocks = REHEARSED_BLOCKS) -> None:
    """Rehearse the activation, then vote for it as the deployer.

    Until the lane begins, another vote can move or withdraw it.

    Example: trailboss activation propose --height 500
    """
    _ = run.signer  # a key that is unknown is reported before the rehearsal
    found = _rehearse(run.chain, height, blocks, quiet=run.as_json)
    if not run.as_json:
        _show_summary(found)
        _show_advice(found)
    [receipt] = run.send(SetGovParam(ACTIVATION, height.to_bytes(8, "big")))
    if not run.as_json:
        run.show_receipts({"vote": receipt})
        return
    output.print_json({"rehearsal": _summary(found), "vote": to_json_value(receipt)})
    if not receipt.ok:
        raise typer.Exit(FAILED)


@activation.command()
@command()
def status(run: Invocation) -> None:
    """Show whether the timer lane is active, or when it begins, and its present state.

    Example: trailboss activation status
    """
    found = activation_status(run.chain)
    height, timers = found["activation_height"], found["timers"]
    price = burned = None
    if found["active"]:
        lane = f"active since block {height}"
        price = f"basefee {found['lane_basefee']:,} a cycle, median tip {found['median_tip']:,}"
        burned = f"{format_cby(found['lane_burned'])} CBY by the lane basefee"
    elif height is None:
        lane = "not active, and no height is voted for"
    else:
        ahead = height - found["height"]
        lane = f"not active; begins with block {height}, {counted(ahead, 'block')} ahead"
    clamped = "; older timers are held to it" if found["clamps_gas_limit"] else ""
    facts: dict[str, output.Cell] = {
        "height": found["height"],
        "timer lane": lane,
        "price": price,
        "burned": burned,
        "room": f"{found['lane_cycles_per_block']:,} cycles a block, {found['max_cycles_per_fire']:,} a fire{clamped}",
        "timers": f"{timers['live']:,} live, {timers['due']:,} due, {timers['over_cap']:,} over the cap of a fire",
    }
    run.show(found, facts)


def _rehearse(chain: ChainReader, height: int, blocks: int, *, quiet: bool) -> ActivationRehearsal:
    total = 2 * max(0, height + blocks - chain.height)
    with output.progress("rehearsing", total, quiet=quiet) as advance:
        return rehearse_activation(chain, height, blocks, advance)


def _summary(found: ActivationRehearsal) -> dict[str, object]:
    document: dict[str, object] = to_json_value(found)
    del document["timers"]
    return document


# Words of a rehearsal


def _show_summary(found: ActivationRehearsal) -> None:
    cap = f"at most {found.max_cycles_per_fire:,} cycles a fire"
    clamped = ", to which it holds older timers" if found.clamps_gas_limit else ""
    late = [f"{count:,} by {label}" for label, count in found.lane.delays.items() if count and label != "0"]
    output.print_facts(
        {
            "rehearsed": f"blocks {found.from_height + 1} to {found.last_height}, on two copies of the chain",
            "the lane": f"from block {found.activation_height} on; {cap}{clamped}",
            "its basefee": _path(found.basefees, found.last_height),
            "fired late": f"{', '.join(late)} blocks" if late else None,
        }
    )
    rows: list[tuple[output.Cell, ...]] = [("due", found.lane.timers, found.fifo.timers)]
    for name, words in (COUNTED | MONEY).items():
        pair = getattr(found.lane, name), getattr(found.fifo, name)
        if any(pair) or name == "paid":
            rows.append((words, *(map(format_cby, pair) if name in MONEY else pair)))
    output.print_table("Both copies", output.columns("timers | >in the lane | >under FIFO"), rows)


def _show_advice(found: ActivationRehearsal) -> None:
    advice = found.advice or ("No timer would be worse off than under FIFO, but for the lane basefee that it pays.",)
    output.print_pairs(output.console(), [("advice", sentence) for sentence in advice])


def _path(basefees: tuple[Run, ...], end: int) -> str:
    """Return the lane basefee up to a height: its first value, its turns, its last value."""
    turns = [
        here
        for before, here, after in zip(basefees, basefees[1:], basefees[2:], strict=False)
        if (here[1] > before[1]) != (after[1] > here[1])
    ]
    if len(turns) > TURNS_MAX:
        turns = sorted({max(turns, key=lambda turn: turn[1]), min(turns, key=lambda turn: turn[1])})
    points = dict.fromkeys((basefees[0], *turns, basefees[-1]))
    words = [f"{price:,} at {height}" for height, price in points]
    if basefees[-1][0] < end:
        words[-1] = f"{basefees[-1][1]:,} from {basefees[-1][0]} on"
    return ", ".join(words)


def _row(timer: RehearsedTimer) -> tuple[output.Cell, ...]:
    payment, other = timer.lane.payment, timer.fifo
    prices: tuple[output.Cell, ...] = (None,) * 5
    if payment is not None:
        parts = (payment.paid, payment.cycle_burned + payment.cell_burned, payment.lane_burned, payment.tip)
        prices = (payment.price_per_cycle, *map(format_cby, parts))
    paid = None if other is None or other.payment is None else format_cby(other.payment.paid)
    return (
        timer.timer_id,
        str(timer.height) if timer.scheduled_at is None else f"{timer.height}*",
        timer.gas_limit,
        _words(timer.lane, timer.expires_at),
        *prices,
        None if other is None else _words(other, timer.expires_at).partition(":")[0],
        paid,
    )


def _words(fate: Fate, expires_at: int) -> str:
    runs = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in fate.priced_out)
    where = {"priced_out": f" at {runs}"} if runs else {}
    why = ", ".join(f"{REASON_WORDS[reason]}{where.get(reason, '')}" for reason in fate.waits)
    because = f": {why}" if why else ""
    if fate.outcome == STRANDED:
        return f"stranded until {expires_at}"
    if fate.outcome == WAITING:
        return f"still waits{because}"
    late = f", {fate.delay} late{because}" if fate.delay else ""
    if fate.outcome == FIRED:
        return f"at {fate.height}{', reverts' if fate.error else ''}{late}"
    if fate.outcome == EXPIRED:
        return f"expires at {fate.height}{because}"
    missing = f", {format_cby(fate.missing)} CBY short" if fate.missing else ""
    return f"{fate.outcome} at {fate.height}{missing}"
