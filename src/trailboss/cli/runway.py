"""``trailboss runway``: how many fires a purse still pays for, and in which block it runs dry."""

from fractions import Fraction
from typing import Annotated, Final

import typer

from trailboss.cli.opening import open_chain, resolve_actor
from trailboss.cli.options import ANYONE, DIRECTORY, AsJson, Place, complete_account
from trailboss.cli.output import Cell, Column, note, print_facts, print_json, print_table
from trailboss.primitives.units import format_cby
from trailboss.views.forecast.recent import BLOCKS, BLOCKS_MAX
from trailboss.views.forecast.runway import PaidActor, Reach, Runway, runway_of

REACHES: Final = (
    Column("basefees"),
    Column("cycle", right=True),
    Column("lane", right=True, extra=True),
    Column("cell", right=True, extra=True),
    Column("CBY a fire", right=True),
    Column("base units", right=True),
    Column("fires left", right=True),
    Column("dry in block", right=True),
)
ACTORS: Final = (
    Column("actor"),
    Column("live timers", right=True),
    Column("fires seen", right=True),
    Column("a fire every", right=True),
    Column("cycles", right=True),
    Column("cells", right=True),
)
NAMES: Final = {"present": "present", "twice": "twice", "p95": "95th percentile"}


def runway(
    payer: Annotated[
        str,
        typer.Argument(
            metavar="PAYER",
            help=f"Whose purse: {ANYONE}.",
            autocompletion=complete_account,
            show_default=False,
        ),
    ],
    blocks: Annotated[
        int, typer.Option(min=1, max=BLOCKS_MAX, metavar="N", help="How many of the last blocks to go by.")
    ] = BLOCKS,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Tell how many fires a purse still pays for, and in which block it runs dry."""
    with open_chain(place) as chain:
        found = runway_of(chain, resolve_actor(chain, payer), blocks=blocks)
    if as_json:
        print_json(found)
        return
    _tell(found)
    for each in found.notes:
        note(f"note: {each}")


def _tell(found: Runway) -> None:
    stuck = f", {found.stuck:,} of which cannot fire" if found.stuck else ""
    print_facts(
        {
            "payer": str(found.payer),
            "balance": f"{_money(found.balance)} after block {found.height:,}",
            "timers": f"{'more than ' if found.has_more else ''}{found.timers:,} live that it pays for{stuck}",
        }
    )
    if found.actors:
        typer.echo()
        print_table("Whose fires it pays for", ACTORS, [_actor(each) for each in found.actors])
    typer.echo()
    print_table("How far it reaches", REACHES, [_reach(each) for each in found.reaches])
    dry = {NAMES[each.name]: _dry(each) for each in found.reaches if each.dry_at is not None}
    if dry:
        typer.echo()
        print_facts(dry)
    for each in found.reaches:
        if each.priced_out:
            note(f"note: at {NAMES[each.name]}, {each.priced_out:,} of its timers are priced out and wait")


def _actor(actor: PaidActor) -> tuple[Cell, ...]:
    return (
        actor.actor,
        f"{actor.timers:,}",
        f"{actor.fires:,}",
        None if actor.interval is None else f"{_rounded(actor.interval)} blocks",
        f"{actor.cycles_used // actor.fires:,}" if actor.fires else None,
        f"{actor.cells_used // actor.fires:,}" if actor.fires else None,
    )


def _reach(reach: Reach) -> tuple[Cell, ...]:
    cost = reach.spent // reach.fires if reach.fires else None
    return (
        NAMES[reach.name],
        f"{reach.cycle_basefee:,}",
        f"{reach.lane_basefee:,}",
        f"{reach.cell_basefee:,}",
        None if cost is None else format_cby(cost),
        None if cost is None else f"{cost:,}",
        f"{reach.fires:,}",
        "never" if reach.dry_at is None else f"{reach.dry_at:,}",
    )


def _dry(reach: Reach) -> str:
    return f"in block {reach.dry_at:,} a timer needs {_money(reach.required)} and finds {_money(reach.available)}"


def _money(amount: int) -> str:
    return f"{format_cby(amount)} CBY ({amount:,})"


def _rounded(number: Fraction) -> str:
    """Return a positive number with one decimal, or none if it is whole.

    >>> _rounded(Fraction(10)), _rounded(Fraction(10, 3)), _rounded(Fraction(1, 30))
    ('10', '3.3', '0.0')
    """
    tenths = round(number * 10)
    return f"{tenths // 10:,}" if number.denominator == 1 else f"{tenths // 10:,}.{tenths % 10}"
