"""``trailboss balance``: what accounts hold."""

from dataclasses import dataclass
from typing import Annotated

import typer

from trailboss.chain import Chain
from trailboss.cli.opening import names_by_address, open_chain, resolve_actor
from trailboss.cli.options import DIRECTORY, WHO, AsJson, Directory, complete_account
from trailboss.cli.output import Cell, Column, print_json, print_table
from trailboss.primitives.octets import Address
from trailboss.primitives.units import format_cby

COLUMNS = (
    Column("account"),
    Column("what"),
    Column("CBY", right=True),
    Column("nonce", right=True),
    Column("timers", right=True),
)


@dataclass(frozen=True, slots=True)
class Holder:
    """An account and what it holds.

    Attributes:
        address: Its address.
        name: Of a development account.
        kind: ``account``, ``actor``, or ``none`` if the chain has no such account.
        balance: Base units.
        nonce: Transactions it has sent.
        timers: Live timers it owns.
    """

    address: Address
    name: str | None
    kind: str
    balance: int
    nonce: int
    timers: int


def balance(
    who: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WHO",
            help=f"Accounts: {WHO}; of actors the first digits are enough. [dim]\\[default: all][/dim]",
            autocompletion=complete_account,
        ),
    ] = None,
    directory: Directory = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Tell what accounts and actors hold."""
    with open_chain(directory) as chain:
        if who:
            addresses = [resolve_actor(chain, each) for each in who]
        else:
            addresses = [Address(address) for address, _ in chain.accounts()]
        names = names_by_address()
        holders = [_holder(chain, address, names.get(address)) for address in addresses]
    if not who:
        holders.sort(key=lambda holder: (holder.name is None, holder.name or "", holder.address))
    if as_json:
        print_json(holders)
    else:
        print_table("Balances", COLUMNS, [_row(holder) for holder in holders])


def _holder(chain: Chain, address: Address, name: str | None) -> Holder:
    account = chain.account(address)
    if account is None:
        return Holder(address, name, "none", 0, 0, 0)
    kind = "actor" if account.code_hash else "account"
    return Holder(address, name, kind, chain.balance(address), account.nonce, account.timer_count)


def _row(holder: Holder) -> tuple[Cell, ...]:
    what = {"none": "no such account"}.get(holder.kind, holder.kind)
    shown = what if holder.name is None else holder.name
    return holder.address, shown, format_cby(holder.balance), holder.nonce, holder.timers
