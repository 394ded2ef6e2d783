"""``trailboss deploy``: deploy an actor and fund it."""

from pathlib import Path
from typing import Annotated

import typer

from trailboss.chain.drafting import draft_deployment
from trailboss.cli.opening import open_chain, resolve_signer
from trailboss.cli.options import DIRECTORY, PAYLOAD, AsJson, CellsLimit, CyclesLimit, Key, Place, Sender
from trailboss.cli.parsing import parse_amount, parse_payload, read_file
from trailboss.cli.receipts import make_terms, send, show_receipts
from trailboss.model.transactions import FundActor, Instruction
from trailboss.primitives.units import format_cby


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
        )
