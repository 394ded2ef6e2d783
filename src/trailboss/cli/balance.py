"""``trailboss balance``: what accounts hold."""

from typing import Annotated

import typer

from trailboss.cli.opening import open_chain, resolve_actor
from trailboss.cli.options import ANYONE, DIRECTORY, AsJson, Place, complete_account
from trailboss.cli.output import Cell, Column, print_json, print_table
from trailboss.primitives.octets import Address
from trailboss.primitives.units import format_cby
from trailboss.views.accounts import Holder, holder_of, known_names

COLUMNS = (
    Column("account"),
    Column("what"),
    Column("CBY", right=True),
    Column("nonce", right=True),
    Column("timers", right=True),
)


def balance(
    who: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHO",
            help=f"Accounts: {ANYONE}. [dim]\\[default: all][/dim]",
            autocompletion=complete_account,
        ),
    ] = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Tell what accounts and actors hold."""
    with open_chain(place) as chain:
        if who:
            addresses = [resolve_actor(chain, each) for each in who]
        else:
            addresses = [Address(address) for address, _ in chain.accounts()]
        names = known_names(chain.genesis)
        holders = [holder_of(chain, address, names) for address in addresses]
    if not who:
        places = {address: place for place, address in enumerate(names)}
        holders.sort(key=lambda holder: (places.get(holder.address, len(places)), holder.address))
    if as_json:
        print_json(holders)
    else:
        print_table("Balances", COLUMNS, [_row(holder) for holder in holders])


def _row(holder: Holder) -> tuple[Cell, ...]:
    what = {"none": "no such account"}.get(holder.kind, holder.kind)
    shown = what if holder.name is None else holder.name
    return holder.address, shown, format_cby(holder.balance), holder.nonce, holder.timers
