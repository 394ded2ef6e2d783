"""What is to come: ``forecast`` of live timers, ``quote`` for a timer scheduled now, ``runway`` of a payer."""

from typing import Annotated, Final

import typer

from trailboss.cli.command import Invocation, command
from trailboss.cli.options import ANYONE, LIMIT, Limit, Number, Text, argument, complete_account, number, option
from trailboss.cli.output import Cell, columns, note, print_facts, print_json, print_section, print_table
from trailboss.cli.targets import find_actor, find_timer, resolve_actor
from trailboss.forecast.quote import FULL_BLOCKS_MAX, Backlog, Quote
from trailboss.forecast.runway import PaidActor, Reach, runway_of
from trailboss.primitives.units import format_cby
from trailboss.rehearsal.forecast import FORECAST_BLOCKS, FORECAST_BLOCKS_MAX, ForecastTimer, forecast_words
from trailboss.views.accounts import known_names
from trailboss.views.explain.decision_view import REASONS
from trailboss.views.json_values import to_json_value
from trailboss.views.recent_blocks import BLOCKS, BLOCKS_MAX
from trailboss.views.text import counted, decimal_text, rounded

PRICES: Final = columns("what | >price | >units | >CBY | >base units")
CHANCES: Final = columns("within | >would have run | >of")
FORECAST: Final = columns("timer | handler? | >due | >block | what | >price | >CBY | payer?")
REACHES: Final = columns(
    "basefees | >cycle | >lane? | >cell? | >CBY a fire | >base units | >fires left | >dry in block"
)
ACTORS: Final = columns("actor | >live timers | >fires seen | >a fire every | >cycles | >cells")
NAMES: Final = {"present": "present", "twice": "twice", "p95": "95th percentile"}
Recent = Annotated[int, number("Number of recent blocks to judge by.", least=1, most=BLOCKS_MAX)]


@command()
def forecast(
    run: Invocation,
    timer: Annotated[Text, argument("ID", "Only this timer, by its id or the first digits of it.", "all")] = None,
    blocks: Annotated[
        int, number("Number of blocks to look ahead.", least=1, most=FORECAST_BLOCKS_MAX)
    ] = FORECAST_BLOCKS,
    limit: Limit = LIMIT,
) -> None:
    """Forecast what live timers do in the next blocks if nothing is sent.

    When each fires, at what price, who pays for it, and why it waits. The chain stays as it is.

    Example: trailboss forecast --blocks 20
    """
    wanted = None if timer is None else find_timer(run.chain, timer)
    found = run.chain.forecast(blocks)
    rows = found.timers if wanted is None else found.of(wanted)
    if run.as_json:
        print_json({**to_json_value(found), "timers": to_json_value(rows)})
        return
    shown = rows[: limit or None]
    title = f"Forecast of blocks {found.from_height + 1:,} to {found.last_height:,}, if nothing is sent"
    empty = "no timer is due in these blocks" if wanted is None else "it is due after these blocks"
    print_table(title, FORECAST, [_forecast_row(run, each) for each in shown], f"note: {empty}")
    if len(shown) < len(rows) or found.has_more:
        more = "more than " if found.has_more else ""
        note(f"note: these are {len(shown):,} of {more}{len(rows):,}; --limit shows more")
    if found.last_height < found.from_height + blocks:
        note("note: it ends early, for fires use too many cycles")
    if found.later and wanted is None:
        note(f"note: {counted(found.later, 'timer')} {'is' if found.later == 1 else 'are'} due after these blocks")
    for each in shown:
        if each.error is not None or (each.block is None and wanted is not None):
            note(f"note: timer {each.timer_id.hex()[:8]}… {forecast_words(each)}")


def _forecast_row(run: Invocation, found: ForecastTimer) -> tuple[Cell, ...]:
    what = f"{found.outcome}, {found.delay:,} late" if found.delay and found.block else found.outcome
    payer = known_names(run.chain.genesis).get(found.fee_payer, str(found.fee_payer))
    paid = None if found.paid is None else format_cby(found.paid)
    return found.timer_id, found.handler, found.height, found.block, what, found.price_per_cycle, paid, payer


@command()
def quote(
    run: Invocation,
    height: Annotated[int, number("Height at which it would be due.", metavar="H")],
    gas_limit: Annotated[int, number("Cycles the fire may use.", metavar="G", least=1)],
    tip: Annotated[
        Number, number("max_priority_fee_per_cycle, base units.", "the default agent's", metavar="T")
    ] = None,
    actor: Annotated[Text, option("ACTOR", "Owner of the timer.", "an actor that has not fired")] = None,
    blocks: Recent = BLOCKS,
) -> None:
    """Quote the price of a timer scheduled now, and how often one would have run.

    Example: trailboss quote --height 500 --gas-limit 50000
    """
    owner = None if actor is None else find_actor(run.chain, actor)
    found = run.chain.quote(height, gas_limit, tip, owner, blocks)
    if run.as_json:
        print_json({**to_json_value(found), "per_cycle": found.per_cycle})
        return
    timer = f"due at height {found.height:,}, scheduled in block {found.scheduled_in:,}"
    print_facts({"timer": timer, "mechanism": found.mechanism, **_cap(found)})
    print_section("Price", PRICES, _prices(found))
    print_section("Chance", CHANCES, [(counted(each.within, "block"), each.runs, each.of) for each in found.chances])
    typer.echo()
    ahead = _backlog(found.ahead, f"due by height {found.height:,}")
    print_facts(
        {
            "forecast": _expected(found),
            "judged by": _judged(found),
            "waiting": _backlog(found.waiting, "due by now"),
            "ahead": ahead,
        }
    )
    for remark in found.notes:
        note(f"note: {remark}")


def _cap(found: Quote) -> dict[str, Cell]:
    """Return what the lane adds: the cap that the default agent freezes, and the weight."""
    if found.max_fee is None or found.max_cost_at_cap is None:
        return {}
    covered = found.full_blocks_covered or 0
    lasts = f"{FULL_BLOCKS_MAX:,} or more" if covered == FULL_BLOCKS_MAX else f"{covered:,}"
    return {
        "cap": f"max_fee {found.max_fee:,} a cycle: covers {lasts} full lanes in a row, and then needs "
        f"{_money(found.max_cost_at_cap)}",
        "weight": f"W {decimal_text(found.weight, 1)}",
    }


def _prices(found: Quote) -> list[tuple[Cell, ...]]:
    cycles = (found.charged_cycles, "cycles")
    parts = [("cycle basefee", found.cycle_basefee, *cycles)]
    if found.lane_basefee:
        parts += [("lane basefee", found.lane_basefee, *cycles), ("tip", found.tip, *cycles)]
    parts.append(("cell basefee", found.cell_basefee, found.max_cells, "cells"))
    return [
        *((what, price, f"{n:,} {name}", format_cby(price * n), price * n) for what, price, n, name in parts),
        ("must be in the balance", "", "", format_cby(found.max_cost), found.max_cost),
    ]


def _expected(found: Quote) -> str | None:
    """Return when it would run, if nothing else is sent."""
    expected = found.expected
    if expected is None:
        return None
    if expected.block is None:
        why = "" if expected.why is None else f": {REASONS[expected.why]}"
        return f"if nothing else is sent, it does not run by block {expected.last_block:,}{why}"
    late = expected.block - found.height
    after = f", {counted(late, 'block')} late" if late else ""
    why = f" ({REASONS[expected.why]})" if expected.why is not None else ""
    price = f"at {expected.per_cycle:,} a cycle, up to {_money(expected.max_cost)}"
    return f"if nothing else is sent, it runs in block {expected.block:,}{after}{why}, {price}"


def _judged(found: Quote) -> str:
    if found.last_block < found.first_block:
        return "no block yet under this mechanism"
    missed = "; ".join(f"in {count:,}: {REASONS[reason]}" for reason, count in found.not_run.items())
    ran = f"it would not have run {missed}" if missed else "it would have run in each"
    return f"blocks {found.first_block:,} to {found.last_block:,}; {ran}"


def _backlog(backlog: Backlog, when: str) -> str:
    timers = f"{counted(backlog.timers, 'timer')} {when}"
    if not backlog.timers:
        return timers
    more = "at least " if backlog.counted < backlog.timers else ""
    lanes = counted(backlog.full_blocks, "full lane")
    over = f"; {backlog.over_cap:,} of them above the cap and not counted in" if backlog.over_cap else ""
    return f"{timers}: gas limits {more}{backlog.gas:,}, {more}{lanes}{over}"


def _money(amount: int) -> str:
    return f"{format_cby(amount)} CBY ({amount:,})"


@command()
def runway(
    run: Invocation,
    payer: Annotated[str, argument("PAYER", f"Payer: {ANYONE}.", autocompletion=complete_account)],
    blocks: Recent = BLOCKS,
) -> None:
    """Show how many fires a balance pays for, and in which block it runs out.

    Example: trailboss runway 0x044d2D5f
    """
    found = runway_of(run.chain, resolve_actor(run.chain, payer), blocks=blocks)
    if run.as_json:
        print_json(found)
        return
    stuck = f", {found.stuck:,} of which cannot fire" if found.stuck else ""
    print_facts(
        {
            "payer": str(found.payer),
            "balance": f"{_money(found.balance)} after block {found.height:,}",
            "timers": f"{'more than ' if found.has_more else ''}{found.timers:,} live that it pays for{stuck}",
        }
    )
    print_section("Whose fires it pays for", ACTORS, [_actor(each) for each in found.actors])
    print_section("How far it reaches", REACHES, [_reach(each) for each in found.reaches])
    dry = {
        NAMES[each.name]: f"in block {each.dry_at:,} a timer needs {_money(each.required)} and finds "
        f"{_money(each.available)}"
        for each in found.reaches
        if each.dry_at is not None
    }
    if dry:
        typer.echo()
        print_facts(dry)
    for each in found.reaches:
        if each.priced_out:
            note(f"note: at {NAMES[each.name]}, {each.priced_out:,} of its timers are priced out and wait")
    for remark in found.notes:
        note(f"note: {remark}")


def _actor(actor: PaidActor) -> tuple[Cell, ...]:
    interval = None if actor.interval is None else f"{rounded(actor.interval)} blocks"
    used = [total // actor.fires if actor.fires else None for total in (actor.cycles_used, actor.cells_used)]
    return actor.actor, actor.timers, actor.fires, interval, *used


def _reach(reach: Reach) -> tuple[Cell, ...]:
    prices = (reach.cycle_basefee, reach.lane_basefee, reach.cell_basefee)
    cost = reach.spent // reach.fires if reach.fires else None
    costs = (None if cost is None else format_cby(cost), cost)
    return NAMES[reach.name], *prices, *costs, reach.fires, "never" if reach.dry_at is None else reach.dry_at
