"""``trailboss schedule``: a timer without an actor of one's own."""

from typing import Annotated, Final

import typer

from trailboss.chain.scheduler import TimerOrder, draft_schedule, scheduler_address
from trailboss.cli.failures import Mistake
from trailboss.cli.opening import open_chain, resolve_address, resolve_signer
from trailboss.cli.options import DIRECTORY, PAYLOAD, AsJson, Directory, Key, Sender
from trailboss.cli.output import Cell
from trailboss.cli.parsing import parse_amount, parse_payload
from trailboss.cli.receipts import send, show_receipts
from trailboss.model.transactions import DeployActor, FundActor
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX, format_cby
from trailboss.sdk import PriorityTier


def _amount(what: str, default: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        metavar="AMOUNT", help=f"{what} [dim]\\[default: {default}][/dim]", show_default=False
    )
    return option


LABELS: Final[dict[type, str]] = {DeployActor: "deployment", FundActor: "funding"}
"""What the instructions before the order are for."""
Number = int | None
Text = str | None
DueHeight = Annotated[
    int, typer.Option("--height", metavar="H", min=1, max=U64_MAX, help="Block height at which it fires.")
]
Payload = Annotated[str, typer.Option(metavar="PAYLOAD", help=f"What its event tells. {PAYLOAD}")]
GasLimit = Annotated[
    Number, typer.Option(metavar="N", min=1, help="Cycles the fire may use. [dim]\\[default: all it may have][/dim]")
]
ExpiresAt = Annotated[
    Number,
    typer.Option(
        metavar="H", min=1, max=U64_MAX, help="Last height at which it may fire. [dim]\\[default: the farthest][/dim]"
    ),
]
MaxFee = Annotated[Text, _amount("Most a cycle may cost in the timer lane, basefee and tip.", "twice the lane basefee")]
Tip = Annotated[Text, _amount("Tip a cycle in the timer lane.", "the median of the last block")]
TipTier = Annotated[
    PriorityTier | None, typer.Option(help="Tip as a multiple of that median, in place of --tip.", show_default=False)
]
Payer = Annotated[
    Text,
    typer.Option(
        metavar="WHO",
        help="Who pays for the fire: whoever signs. [dim]\\[default: the stock actor][/dim]",
        show_default=False,
    ),
]
Value = Annotated[Text, _amount("What the stock actor gets besides.", "100cby when it is deployed, then none")]


def schedule(
    height: DueHeight,
    payload: Payload = "",
    gas_limit: GasLimit = None,
    expires_at: ExpiresAt = None,
    max_fee: MaxFee = None,
    tip: Tip = None,
    tier: TipTier = None,
    payer: Payer = None,
    value: Value = None,
    sender: Sender = None,
    private_key: Key = None,
    directory: Directory = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Schedule a timer without an actor of one's own.

    It belongs to a stock actor, one a sender, which is deployed with the first order.

    When the timer fires, the actor emits the event timer.payload with the payload.
    """
    if tip is not None and tier is not None:
        raise Mistake("both --tip and --tier are given", "give one of the two: a tier stands for a tip")
    order = TimerOrder(
        height=height,
        payload=parse_payload(payload),
        fee_payer=None if payer is None else resolve_address(payer),
        gas_limit=gas_limit,
        expires_at=expires_at,
        max_fee_per_cycle=None if max_fee is None else parse_amount(max_fee),
        max_priority_fee_per_cycle=None if tip is None else parse_amount(tip),
        priority_tier_hint=None if tier is None else tier.value,
    )
    amount = None if value is None else parse_amount(value)
    signer = resolve_signer(sender, private_key)
    with open_chain(directory) as chain:
        instructions = draft_schedule(chain, signer.address, order, amount)
        *before, receipt = send(chain, signer, instructions)
        actor = scheduler_address(signer.address)
        lead: dict[str, Cell] = {"timer": str(Hash32(receipt.return_value))} if receipt.ok else {}
        lead |= {"actor": f"{actor}, holds {format_cby(chain.balance(actor))} CBY"}
        others = {LABELS[type(done)]: each for done, each in zip(instructions[:-1], before, strict=True)}
        show_receipts(chain, {"order": receipt} | others, as_json=as_json, lead=lead)
