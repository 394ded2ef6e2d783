"""``trailboss deploy``: deploy an actor and fund it."""

from pathlib import Path
from typing import Annotated

import typer

from trailboss.chain.drafts import draft_deployment
from trailboss.cli.failures import tell
from trailboss.cli.opening import OpenChain, open_chain, resolve_signer
from trailboss.cli.options import DIRECTORY, PAYLOAD, AsJson, CellsLimit, CyclesLimit, Key, Place, Sender
from trailboss.cli.parsing import parse_amount, parse_payload, read_file
from trailboss.cli.receipts import make_terms, send, show_receipts
from trailboss.model.events import TIMER_SCHEDULED
from trailboss.model.transactions import FundActor, Instruction
from trailboss.primitives.octets import Address
from trailboss.primitives.units import format_cby
from trailboss.views import Receipt
from trailboss.views.explain.outlook import unpaid_words
from trailboss.views.text import counted


def _warn_of_unpaid(chain: OpenChain, deployment: Receipt) -> None:
    """Tell of the timers that the creation call has scheduled and that nobody can pay for so far: the first by name."""
    ids = [
        event.timer_id for event in deployment.events if event.name == TIMER_SCHEDULED and event.timer_id is not None
    ]
    unpaid = [
        (timer, words) for timer in map(chain.timer, ids) if timer is not None and (words := unpaid_words(chain, timer))
    ]
    if unpaid:
        timer, words = unpaid[0]
        others = f"; nor can {counted(len(unpaid) - 1, 'more timer')}" if len(unpaid) > 1 else ""
        payer = Address(timer.fee_payer)
        fix = f"give it money before block {timer.height}: `trailboss send {payer} AMOUNT`"
        tell("warning", {"what": f"{words}{others}", "fix": fix})


def deploy(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Source of the actor.", show_default=False)],
    value: Annotated[
        str, typer.Option(metavar="AMOUNT", help="What the actor gets: base units, or CBY as 1.5cby.")
    ] = "0",
    init_payload: Annotated[
        str, typer.Option(metavar="PAYLOAD", help=f"Argument of the creation call. {PAYLOAD}")
    ] = "",
    init_handler: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What the creation call runs. [dim]\\[default: init, else deploy, if there is one][/dim]",
        ),
    ] = None,
    entitlement: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="What the actor's manifest declares, as timer.schedule, which public chains ask for; can be repeated.",
            show_default=False,
        ),
    ] = None,
    cbor: Annotated[bool, typer.Option("--cbor", help="The payload is JSON; send it as CBOR.")] = False,
    sender: Sender = None,
    private_key: Key = None,
    cycles_limit: CyclesLimit = None,
    cells_limit: CellsLimit = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Deploy an actor and fund it, in one block.

    Prints the actor's address. Deploying the same file again makes another actor.

    Example: trailboss deploy clock.py --value 20cby --from 3
    """
    code = read_file(file, "source")
    amount, payload = parse_amount(value), parse_payload(init_payload, as_cbor=cbor)
    signer = resolve_signer(sender, private_key)
    with open_chain(place) as chain:
        account = chain.account(signer.address)
        salt = (0 if account is None else account.nonce).to_bytes(8, "big")
        instruction, address = draft_deployment(
            signer.address,
            code,
            salt,
            init_handler=init_handler,
            init_payload=payload,
            entitlements=entitlement or (),
        )
        wanted: list[Instruction] = [instruction, *([FundActor(address, amount)] if amount else [])]
        receipts = send(chain, signer, wanted, make_terms(cycles_limit, cells_limit))
        show_receipts(
            chain,
            dict(zip(("deployment", "funding"), receipts, strict=False)),
            as_json=as_json,
            lead={
                "actor": str(address) if receipts[0].ok else None,
                "holds": f"{format_cby(chain.balance(address))} CBY" if receipts[0].ok else None,
            },
            followers=("funding",),
        )
        _warn_of_unpaid(chain, receipts[0])
