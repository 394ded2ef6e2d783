"""What only a development chain does: money from nowhere, timers out of their time, a point to come back to.

Decision: D-69
"""

from typing import Annotated

import typer

from trailboss.cli.opening import find_timer, open_chain, resolve_actor
from trailboss.cli.options import ANYONE, DIRECTORY, AsJson, Place, complete_account
from trailboss.cli.output import print_facts, print_json
from trailboss.cli.parsing import parse_amount
from trailboss.cli.receipts import show_receipts
from trailboss.cli.timer_options import TimerId
from trailboss.primitives.units import U64_MAX, format_cby

Who = Annotated[
    str,
    typer.Argument(metavar="WHO", help=f"Account: {ANYONE}.", show_default=False, autocompletion=complete_account),
]


def faucet(who: Who, place: Place = DIRECTORY, as_json: AsJson = False) -> None:
    """Have a node's faucet give an account 5,000 CBY."""
    with open_chain(place) as chain:
        address = resolve_actor(chain, who)
        amount, receipt = chain.faucet(address)
        given = f"{format_cby(amount)} CBY to {address}" if receipt.ok else None
        show_receipts(chain, {"transfer": receipt}, as_json=as_json, lead={"given": given})


def set_balance(
    who: Who,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="Base units, or CBY as 1.5cby.", show_default=False)],
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Set what an account or an actor holds; the supply moves with it."""
    units = parse_amount(amount)
    with open_chain(place) as chain:
        address = resolve_actor(chain, who)
        receipt = chain.set_balance(address, units)
        holds = f"{format_cby(chain.balance(address))} CBY" if receipt.ok else None
        show_receipts(chain, {"instruction": receipt}, as_json=as_json, lead={"account": str(address), "holds": holds})


def hold(
    timer: TimerId,
    until: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=U64_MAX,
            metavar="H",
            help="Height at which it is due instead. [dim]\\[default: the last one at which it may fire][/dim]",
            show_default=False,
        ),
    ] = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Hold a timer back."""
    with open_chain(place) as chain:
        identity = find_timer(chain, timer)
        show_receipts(chain, {"instruction": chain.hold(identity, until)}, as_json=as_json, lead={"timer": identity})


def force(timer: TimerId, place: Place = DIRECTORY, as_json: AsJson = False) -> None:
    """Make a timer due as early as can be.

    It runs at the end of the same block; in the auction and in Globalbox, where timers run first, in the one after it.
    """
    with open_chain(place) as chain:
        identity = find_timer(chain, timer)
        show_receipts(chain, {"instruction": chain.force(identity)}, as_json=as_json, lead={"timer": identity})


def drop(timer: TimerId, place: Place = DIRECTORY, as_json: AsJson = False) -> None:
    """Take a timer away without running it."""
    with open_chain(place) as chain:
        identity = find_timer(chain, timer)
        show_receipts(chain, {"instruction": chain.drop(identity)}, as_json=as_json, lead={"timer": identity})


def snapshot(place: Place = DIRECTORY, as_json: AsJson = False) -> None:
    """Remember the present point, and print its mark for `trailboss revert`."""
    with open_chain(place) as chain:
        mark, height = chain.mark(), chain.height
    if as_json:
        print_json({"mark": mark, "height": height})
    else:
        print_facts({"mark": mark, "height": height})


def revert(
    mark: Annotated[str, typer.Argument(metavar="MARK", help="What snapshot printed.", show_default=False)],
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Go back to a snapshot: clock, timers, money, everything."""
    with open_chain(place) as chain:
        before = chain.height
        chain.go_back(mark)
        if as_json:
            print_json({"from_height": before, "height": chain.height, "state_root": chain.state_root})
        else:
            print_facts({"height": f"{before} back to {chain.height}", "state root": str(chain.state_root)})
