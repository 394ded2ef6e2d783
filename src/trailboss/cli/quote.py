"""``trailboss quote``: what a timer that is scheduled now would cost, and how likely it runs soon."""

from typing import Annotated, Final

import typer

from trailboss.cli.opening import find_actor, open_chain
from trailboss.cli.options import DIRECTORY, AsJson, Place
from trailboss.cli.output import Cell, Column, note, print_facts, print_json, print_table
from trailboss.primitives.units import format_cby
from trailboss.views.explain.decision_view import REASONS
from trailboss.views.forecast.chances import Chance
from trailboss.views.forecast.quote import FULL_BLOCKS_MAX, Backlog, Quote, quote_timer
from trailboss.views.forecast.recent import BLOCKS, BLOCKS_MAX
from trailboss.views.json_values import plain
from trailboss.views.text import decimal_text

PRICES: Final = (
    Column("what"),
    Column("price", right=True),
    Column("units", right=True),
    Column("CBY", right=True),
    Column("base units", right=True),
)
CHANCES: Final = (Column("within"), Column("would have run", right=True), Column("of", right=True))


def quote(
    height: Annotated[int, typer.Option(min=0, metavar="H", help="At which it would be due.", show_default=False)],
    gas_limit: Annotated[int, typer.Option(min=1, metavar="G", help="Cycles the fire may use.", show_default=False)],
    tip: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="T",
            help="max_priority_fee_per_cycle, base units. [dim]\\[default: the default agent's][/dim]",
            show_default=False,
        ),
    ] = None,
    actor: Annotated[
        str | None,
        typer.Option(metavar="ACTOR", help="Whose timer. [dim]\\[default: one that has not fired][/dim]"),
    ] = None,
    blocks: Annotated[
        int, typer.Option(min=1, max=BLOCKS_MAX, metavar="N", help="How many of the last blocks to judge by.")
    ] = BLOCKS,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Say what a timer scheduled now would cost, and how often one would have run.

    Example: trailboss quote --height 500 --gas-limit 50000
    """
    with open_chain(place) as chain:
        owner = None if actor is None else find_actor(chain, actor)
        found = quote_timer(chain, height, gas_limit, tip, actor=owner, blocks=blocks)
    if as_json:
        print_json({**plain(found), "per_cycle": found.per_cycle})
        return
    _tell(found)
    for each in found.notes:
        note(f"note: {each}")


def _tell(found: Quote) -> None:
    timer = f"due at height {found.height:,}, scheduled in block {found.scheduled_in:,}"
    print_facts({"timer": timer, "mechanism": found.mechanism, **_cap(found)})
    typer.echo()
    print_table("Price", PRICES, _prices(found))
    typer.echo()
    print_table("Chance", CHANCES, [_chance(each) for each in found.chances])
    typer.echo()
    print_facts(
        {
            "judged by": _judged(found),
            "waiting": _backlog(found.waiting, "due by now"),
            "ahead": _backlog(found.ahead, f"due by height {found.height:,}"),
        }
    )


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
    rows = [("cycle basefee", found.cycle_basefee)]
    if found.mechanism == "lane":
        rows += [("lane basefee", found.lane_basefee), ("tip", found.tip)]
    priced = [_part(what, price, found.charged_cycles, "cycles") for what, price in rows]
    priced.append(_part("cell basefee", found.cell_basefee, found.max_cells, "cells"))
    return [*priced, ("must be in the purse", "", "", format_cby(found.max_cost), f"{found.max_cost:,}")]


def _part(what: str, price: int, units: int, name: str) -> tuple[Cell, ...]:
    return what, f"{price:,}", f"{units:,} {name}", format_cby(price * units), f"{price * units:,}"


def _chance(chance: Chance) -> tuple[Cell, ...]:
    return f"{chance.within:,} block{'' if chance.within == 1 else 's'}", f"{chance.runs:,}", f"{chance.of:,}"


def _judged(found: Quote) -> str:
    if found.last_block < found.first_block:
        return "no block yet under this mechanism"
    span = f"blocks {found.first_block:,} to {found.last_block:,}"
    missed = "; ".join(f"in {count:,}: {REASONS[reason]}" for reason, count in found.not_run.items())
    return f"{span}; it would not have run {missed}" if missed else f"{span}; it would have run in each"


def _backlog(backlog: Backlog, when: str) -> str:
    timers = f"{backlog.timers:,} timer{'' if backlog.timers == 1 else 's'} {when}"
    if not backlog.timers:
        return timers
    more = "at least " if backlog.counted < backlog.timers else ""
    lanes = f"{backlog.full_blocks:,} full lane{'' if backlog.full_blocks == 1 else 's'}"
    over = f"; {backlog.over_cap:,} of them above the cap and not counted in" if backlog.over_cap else ""
    return f"{timers}: gas limits {more}{backlog.gas:,}, {more}{lanes}{over}"


def _money(amount: int) -> str:
    return f"{format_cby(amount)} CBY ({amount:,})"
