"""``trailboss send``: move money."""

from typing import Annotated

import typer

from trailboss.chain.drafts import DEFAULT_TERMS
from trailboss.cli.opening import open_chain, resolve_actor
from trailboss.cli.options import ANYONE, DIRECTORY, AsJson, Impersonated, Key, Place, Sender, complete_account
from trailboss.cli.parsing import parse_amount
from trailboss.cli.receipts import send_one, show_receipts
from trailboss.model.transactions import Transfer
from trailboss.primitives.units import format_cby


def send_money(
    to: Annotated[
        str,
        typer.Argument(
            metavar="TO", help=f"Who gets it: {ANYONE}.", show_default=False, autocompletion=complete_account
        ),
    ],
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="Base units, or CBY as 1.5cby.", show_default=False)],
    sender: Sender = None,
    private_key: Key = None,
    impersonate: Impersonated = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Move money to an account or an actor, in a block of its own.

    Example: trailboss send 0x044d2D5f 1.5cby --from 3
    """
    units = parse_amount(amount)
    with open_chain(place) as chain:
        address = resolve_actor(chain, to)
        receipt = send_one(chain, sender, private_key, impersonate, Transfer(address, units), DEFAULT_TERMS)
        moved = f"{format_cby(units)} CBY to {address}" if receipt.ok else None
        show_receipts(chain, {"transfer": receipt}, as_json=as_json, lead={"sent": moved})
