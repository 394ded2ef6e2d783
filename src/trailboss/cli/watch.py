"""``trailboss watch``: a timer that fires when a slot changes, without an actor of one's own."""

from typing import Annotated

import typer

from trailboss.chain.scheduler import WatchOrder, draft_watch
from trailboss.cli.opening import find_actor, open_chain, resolve_signer
from trailboss.cli.options import DIRECTORY, AsJson, Key, Place, Sender
from trailboss.cli.parsing import parse_amount, parse_bid, parse_payload
from trailboss.cli.timer_options import (
    BidOption,
    ClientNonce,
    ExpiresAt,
    GasLimit,
    Payload,
    Target,
    Value,
    send_order,
)
from trailboss.sdk import watch_key

Watched = Annotated[
    str, typer.Argument(metavar="ACTOR", help="Whose slots: an address, or its first digits.", show_default=False)
]
Slots = Annotated[
    list[str] | None,
    typer.Option(
        "--slot",
        metavar="NAME",
        help="Slots whose names begin so; text, or 0x… for bytes; may be repeated. [dim]\\[default: all][/dim]",
    ),
]


def watch(
    actor: Watched,
    slot: Slots = None,
    payload: Payload = "",
    gas_limit: GasLimit = None,
    expires_at: ExpiresAt = None,
    target: Target = None,
    bid: BidOption = None,
    client_nonce: ClientNonce = None,
    value: Value = None,
    sender: Sender = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Set a timer that fires whenever slots of an actor have changed.

    Under Globalbox. It belongs to a stock actor, one for each sender, which is deployed with the first order.

    When the timer fires, the actor emits the event timer.payload with the payload.

    Example: trailboss watch 0x044d2D5f --slot price --gas-limit 50000
    """
    amount = None if value is None else parse_amount(value)
    signer = resolve_signer(sender, private_key)
    prefixes = [parse_payload(each) for each in slot or [""]]
    with open_chain(place) as chain:
        watched = find_actor(chain, actor)
        order = WatchOrder(
            watch_keys=[watch_key(watched, each) for each in prefixes],
            payload=parse_payload(payload),
            target=None if target is None else find_actor(chain, target),
            gas_limit=gas_limit,
            bid=None if bid is None else parse_bid(bid),
            expires_at=expires_at,
            client_nonce=None if client_nonce is None else parse_payload(client_nonce),
        )
        send_order(chain, signer, draft_watch(chain, signer.address, order, amount), as_json=as_json)
