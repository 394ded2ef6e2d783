"""``trailboss schedule``: a timer without an actor of one's own."""

from typing import Annotated, Any

import typer

from trailboss.chain.stock_timers import TimerOrder, WatchOrder, draft_schedule, draft_watch
from trailboss.cli.failures import Mistake
from trailboss.cli.opening import find_actor, open_chain, resolve_address, resolve_signer
from trailboss.cli.options import DIRECTORY, AsJson, Key, Place, Sender
from trailboss.cli.parsing import parse_amount, parse_bid, parse_payload
from trailboss.cli.timer_options import (
    BidOption,
    ClientNonce,
    ExpiresAt,
    GasLimit,
    Payload,
    Target,
    Text,
    Value,
    amount_option,
    send_order,
)
from trailboss.primitives.units import U64_MAX
from trailboss.sdk import PriorityTier, watch_key

DueHeight = Annotated[
    int | None,
    typer.Option(
        "--height", metavar="H", min=1, max=U64_MAX, help="Block height at which it fires.", show_default=False
    ),
]
Watched = Annotated[
    str | None,
    typer.Option(
        "--watch",
        metavar="ACTOR",
        help="Globalbox: fire whenever slots of this actor have changed, in place of --height.",
        show_default=False,
    ),
]
Slots = Annotated[
    list[str] | None,
    typer.Option(
        "--slot",
        metavar="NAME",
        help="With --watch: slots whose names begin so; text, or 0x… for bytes; may be repeated. "
        "[dim]\\[default: all][/dim]",
    ),
]
MaxFee = Annotated[
    Text, amount_option("Lane, auction: most a cycle may cost, basefee and tip.", "twice the basefee, and the tip")
]
Tip = Annotated[
    Text, amount_option("Lane, auction: tip a cycle.", "the median of the last block in the lane, none in the auction")
]
TipTier = Annotated[
    PriorityTier | None,
    typer.Option(help="Lane: tip as a multiple of that median, in place of --tip.", show_default=False),
]
Agent = Annotated[
    Text,
    typer.Option(
        metavar="ACTOR",
        help="Lane: gas bidding agent of this timer, in place of --max-fee, --tip and --tier.",
        show_default=False,
    ),
]
Payer = Annotated[
    Text,
    typer.Option(
        metavar="WHO",
        help="FIFO, lane: who pays for the fire: whoever signs. [dim]\\[default: the stock actor][/dim]",
        show_default=False,
    ),
]


def schedule(
    height: DueHeight = None,
    watch: Watched = None,
    slot: Slots = None,
    payload: Payload = "",
    gas_limit: GasLimit = None,
    expires_at: ExpiresAt = None,
    max_fee: MaxFee = None,
    tip: Tip = None,
    tier: TipTier = None,
    agent: Agent = None,
    payer: Payer = None,
    target: Target = None,
    bid: BidOption = None,
    client_nonce: ClientNonce = None,
    value: Value = None,
    sender: Sender = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Schedule a timer without an actor of one's own.

    It fires at a height, or with --watch whenever slots of an actor have changed.

    It belongs to a stock actor, one for each sender, which is deployed with the first order.

    When the timer fires, the actor emits the event timer.payload with the payload.

    In the auction a stock agent bids for it, one for each offer.

    Example: trailboss schedule --height 120 --payload "wake up" --gas-limit 50000
    """
    if tip is not None and tier is not None:
        raise Mistake("both --tip and --tier are given", "give one of the two: a tier stands for a tip")
    fees = {"--max-fee": max_fee, "--tip": tip, "--tier": tier, "--agent": agent, "--payer": payer}
    _check_trigger(height, watch, slot, [name for name, given in fees.items() if given is not None])
    amount = None if value is None else parse_amount(value)
    signer = resolve_signer(sender, private_key)
    with open_chain(place) as chain:
        terms: dict[str, Any] = {
            "payload": parse_payload(payload),
            "gas_limit": gas_limit,
            "expires_at": expires_at,
            "target": None if target is None else find_actor(chain, target),
            "bid": None if bid is None else parse_bid(bid),
            "client_nonce": None if client_nonce is None else parse_payload(client_nonce),
        }
        if height is not None:
            order = TimerOrder(
                height=height,
                fee_payer=None if payer is None else resolve_address(payer),
                max_fee_per_cycle=None if max_fee is None else parse_amount(max_fee),
                max_priority_fee_per_cycle=None if tip is None else parse_amount(tip),
                priority_tier_hint=None if tier is None else tier.value,
                gas_bidding_agent=None if agent is None else find_actor(chain, agent),
                **terms,
            )
            instructions = draft_schedule(chain, signer.address, order, amount)
        elif watch is not None:
            watched = find_actor(chain, watch)
            keys = [watch_key(watched, parse_payload(each)) for each in slot or [""]]
            instructions = draft_watch(chain, signer.address, WatchOrder(watch_keys=keys, **terms), amount)
        else:
            raise Mistake("neither --height nor --watch is given", "say when it fires, or whose slots it watches")
        send_order(chain, signer, instructions, as_json=as_json)


def _check_trigger(height: int | None, watch: str | None, slots: list[str] | None, fees: list[str]) -> None:
    if watch is None and slots:
        raise Mistake("--slot is given without --watch", "name the actor whose slots are watched with --watch")
    if watch is not None and height is not None:
        raise Mistake("both --height and --watch are given", "give one of the two")
    if watch is not None and fees:
        raise Mistake(f"{', '.join(fees)} and --watch are given", "give --bid: only Globalbox watches slots")
