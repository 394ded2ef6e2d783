"""Options of the commands that set, change and cancel timers, and what those commands print."""

from collections.abc import Mapping
from typing import Annotated, Final

import typer

from trailboss.chain.stock_timers import ended_refusal, scheduler_address
from trailboss.cli.opening import OpenChain, Signer
from trailboss.cli.options import PAYLOAD
from trailboss.cli.output import Cell, note
from trailboss.cli.receipts import send, show_receipts
from trailboss.model.events import TIMER_SCHEDULED
from trailboss.model.transactions import Instruction
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX, format_cby

KEPT: Final = "[dim]\\[default: as it is][/dim]"


def amount_option(what: str, default: str) -> typer.models.OptionInfo:
    """Return an option that takes an amount and says what it is without it."""
    option: typer.models.OptionInfo = typer.Option(
        metavar="AMOUNT", help=f"{what} [dim]\\[default: {default}][/dim]", show_default=False
    )
    return option


Number = int | None
Text = str | None
Payload = Annotated[str, typer.Option(metavar="PAYLOAD", help=f"Payload of its event. {PAYLOAD}")]
NewPayload = Annotated[
    Text, typer.Option("--payload", metavar="PAYLOAD", help=f"Payload of its event. {PAYLOAD} {KEPT}")
]
GasLimit = Annotated[
    Number, typer.Option(metavar="N", min=1, help="Cycles the fire may use. [dim]\\[default: all it may have][/dim]")
]
NewGasLimit = Annotated[Number, typer.Option("--gas-limit", metavar="N", min=1, help=f"Cycles a fire may use. {KEPT}")]
ExpiresAt = Annotated[
    Number,
    typer.Option(
        metavar="H", min=1, max=U64_MAX, help="Last height at which it may fire. [dim]\\[default: the farthest][/dim]"
    ),
]
Target = Annotated[
    Text,
    typer.Option(
        metavar="ACTOR",
        help="Globalbox: actor whose handler runs. [dim]\\[default: the stock actor][/dim]",
        show_default=False,
    ),
]
BidOption = Annotated[
    Text,
    typer.Option(
        "--bid",
        metavar="PRICE",
        help="Globalbox: tip a cycle, base units, also as a decimal. [dim]\\[default: 0][/dim]",
        show_default=False,
    ),
]
NewBid = Annotated[
    Text, typer.Option("--bid", metavar="PRICE", help=f"Tip a cycle, base units, also as a decimal. {KEPT}")
]
ClientNonce = Annotated[
    Text,
    typer.Option(
        metavar="NAME",
        help="Globalbox: a name; the same one again gives the timer that has it. Text, or 0x… for bytes.",
        show_default=False,
    ),
]
Value = Annotated[Text, amount_option("What the stock actor gets besides.", "100cby when it is deployed, then none")]
TimerId = Annotated[str, typer.Argument(metavar="ID", help="Its id, or the first digits of it.", show_default=False)]


def send_order(chain: OpenChain, signer: Signer, instructions: Mapping[str, Instruction], *, as_json: bool) -> None:
    """Send an order and what it needs before it, and print what came of it.

    Args:
        chain: On which.
        signer: Who gives the order.
        instructions: By what each is for; the order is the last.
        as_json: Whether to print a JSON document.

    Raises:
        Rejection: ``NOT_FOUND`` if the order's client nonce has a timer that has ended.
    """
    receipts = dict(zip(instructions, send(chain, signer, list(instructions.values())), strict=True))
    receipt = receipts.pop("order")
    actor = scheduler_address(chain, signer.address)
    identity = Hash32(receipt.return_value) if receipt.ok else None
    lead: dict[str, Cell] = {} if identity is None else {"timer": str(identity)}
    lead |= {"actor": f"{actor}, holds {format_cby(chain.balance(actor))} CBY"}
    show_receipts(chain, {"order": receipt} | receipts, as_json=as_json, lead=lead)
    if identity is not None and not any(event.name == TIMER_SCHEDULED for event in receipt.events):
        if chain.timer(identity) is None:
            raise ended_refusal(chain, identity)
        note(f"timer {identity} has the client nonce already: nothing has changed")
