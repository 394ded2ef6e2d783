"""Money of accounts and actors: ``balance``, ``send``, ``faucet``, ``set-balance``."""

from typing import Annotated, Final

from trailboss.cli.command import Invocation, command
from trailboss.cli.options import ANYONE, Amount, Texts, Who, argument, complete_account
from trailboss.cli.output import columns, print_json, print_table
from trailboss.cli.parsing import parse_amount
from trailboss.cli.targets import resolve_actor
from trailboss.model.transactions import Transfer
from trailboss.primitives.octets import Address
from trailboss.primitives.units import format_cby
from trailboss.views.accounts import holder_of, known_names

COLUMNS: Final = columns("account | what | >CBY | >nonce | >timers")


@command()
def balance(
    run: Invocation,
    who: Annotated[Texts, argument("WHO", f"Accounts: {ANYONE}.", "all", autocompletion=complete_account)] = None,
) -> None:
    """Show the balances of accounts and actors.

    Example: trailboss balance 0 deployer
    """
    chain = run.chain
    if who:
        addresses = [resolve_actor(chain, each) for each in who]
    else:
        addresses = [Address(address) for address, _ in chain.accounts()]
    names = known_names(chain.genesis)
    holders = [holder_of(chain, address, names) for address in addresses]
    if not who:
        places = {address: place for place, address in enumerate(names)}
        holders.sort(key=lambda holder: (places.get(holder.address, len(places)), holder.address))
    if run.as_json:
        print_json(holders)
    else:
        kinds = {"none": "no such account"}
        rows = [
            (
                each.address,
                each.name or kinds.get(each.kind, each.kind),
                format_cby(each.balance),
                str(each.nonce),
                each.timers,
            )
            for each in holders
        ]
        print_table("Balances", COLUMNS, rows)


@command("sender", "private_key", "impersonate")
def send_money(
    run: Invocation,
    to: Annotated[str, argument("TO", f"Recipient: {ANYONE}.", autocompletion=complete_account)],
    amount: Amount,
) -> None:
    """Send money to an account or an actor, in a block of its own.

    Example: trailboss send 0x044d2D5f 1.5cby --from 3
    """
    units = parse_amount(amount)
    address = resolve_actor(run.chain, to)
    receipt = run.send_one(Transfer(address, units))
    sent = f"{format_cby(units)} CBY to {address}" if receipt.ok else None
    run.show_receipts({"transfer": receipt}, lead={"sent": sent})


@command()
def faucet(run: Invocation, who: Who) -> None:
    """Give an account 5,000 CBY from a node's faucet.

    Example: trailboss faucet 3 --url localhost:4000
    """
    address = resolve_actor(run.chain, who)
    amount, receipt = run.chain.faucet(address)
    given = f"{format_cby(amount)} CBY to {address}" if receipt.ok else None
    run.show_receipts({"transfer": receipt}, lead={"given": given})


@command()
def set_balance(run: Invocation, who: Who, amount: Amount) -> None:
    """Set the balance of an account or actor; the supply changes with it.

    Example: trailboss set-balance 3 100cby
    """
    units = parse_amount(amount)
    chain = run.chain
    address = resolve_actor(chain, who)
    receipt = chain.set_balance(address, units)
    holds = f"{format_cby(chain.balance(address))} CBY" if receipt.ok else None
    run.show_receipts({"instruction": receipt}, lead={"account": str(address), "holds": holds})
