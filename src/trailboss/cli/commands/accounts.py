"""Money of accounts and actors: ``balance``, ``send``, ``faucet``, ``set-balance``."""

from typing import Annotated, Final

from trailboss.chain.drafts import DEFAULT_TERMS
from trailboss.cli.options import (
    ANYONE,
    DIRECTORY,
    Amount,
    AsJson,
    Impersonated,
    Key,
    Place,
    Sender,
    Texts,
    Who,
    argument,
    complete_account,
)
from trailboss.cli.output import Cell, columns, print_json, print_table
from trailboss.cli.parsing import parse_amount
from trailboss.cli.targets import open_chain, resolve_actor
from trailboss.cli.transactions import send_one, show_receipts
from trailboss.model.transactions import Transfer
from trailboss.primitives.octets import Address
from trailboss.primitives.units import format_cby
from trailboss.views.accounts import Holder, holder_of, known_names

COLUMNS: Final = columns("account | what | >CBY | >nonce | >timers")


def balance(
    who: Annotated[Texts, argument("WHO", f"Accounts: {ANYONE}.", "all", autocompletion=complete_account)] = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Show the balances of accounts and actors.

    Example: trailboss balance 0 deployer
    """
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
    kind = "no such account" if holder.kind == "none" else holder.kind
    return holder.address, holder.name or kind, format_cby(holder.balance), str(holder.nonce), holder.timers


def send_money(
    to: Annotated[str, argument("TO", f"Recipient: {ANYONE}.", autocompletion=complete_account)],
    amount: Amount,
    sender: Sender = None,
    private_key: Key = None,
    impersonate: Impersonated = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Send money to an account or an actor, in a block of its own.

    Example: trailboss send 0x044d2D5f 1.5cby --from 3
    """
    units = parse_amount(amount)
    with open_chain(place) as chain:
        address = resolve_actor(chain, to)
        receipt = send_one(chain, sender, private_key, impersonate, Transfer(address, units), DEFAULT_TERMS)
        sent = f"{format_cby(units)} CBY to {address}" if receipt.ok else None
        show_receipts(chain, {"transfer": receipt}, as_json=as_json, lead={"sent": sent})


def faucet(who: Who, place: Place = DIRECTORY, as_json: AsJson = False) -> None:
    """Give an account 5,000 CBY from a node's faucet.

    Example: trailboss faucet 3 --url localhost:4000
    """
    with open_chain(place) as chain:
        address = resolve_actor(chain, who)
        amount, receipt = chain.faucet(address)
        given = f"{format_cby(amount)} CBY to {address}" if receipt.ok else None
        show_receipts(chain, {"transfer": receipt}, as_json=as_json, lead={"given": given})


def set_balance(who: Who, amount: Amount, place: Place = DIRECTORY, as_json: AsJson = False) -> None:
    """Set the balance of an account or actor; the supply changes with it.

    Example: trailboss set-balance 3 100cby
    """
    units = parse_amount(amount)
    with open_chain(place) as chain:
        address = resolve_actor(chain, who)
        receipt = chain.set_balance(address, units)
        holds = f"{format_cby(chain.balance(address))} CBY" if receipt.ok else None
        show_receipts(chain, {"instruction": receipt}, as_json=as_json, lead={"account": str(address), "holds": holds})
