"""Changes of timers: ``schedule``, ``update``, ``cancel``; on development chains also ``hold``, ``force``, ``drop``."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from trailboss.chain.stock_timers import (
    TimerChange,
    TimerOrder,
    WatchOrder,
    draft_cancel,
    draft_schedule,
    draft_update,
    draft_watch,
    ended_refusal,
    scheduler_address,
)
from trailboss.cli.errors import Mistake
from trailboss.cli.options import (
    DIRECTORY,
    KEPT,
    PAYLOAD,
    AsJson,
    Key,
    Number,
    Place,
    Sender,
    Text,
    Texts,
    TimerId,
    number,
    option,
)
from trailboss.cli.options import height as height_option
from trailboss.cli.output import Cell, note
from trailboss.cli.parsing import parse_amount, parse_bid, parse_payload
from trailboss.cli.targets import OpenChain, Signer, find_actor, find_timer, open_chain, resolve_address, resolve_signer
from trailboss.cli.transactions import send, show_receipts
from trailboss.codec.canonical import encode_canonical
from trailboss.model.events import TIMER_SCHEDULED
from trailboss.model.transactions import Instruction
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import format_cby
from trailboss.sdk import PriorityTier, watch_key
from trailboss.views import Receipt

DueHeight = Annotated[Number, height_option(text="Block height at which it fires.", least=1)]
Watched = Annotated[
    Text,
    option(metavar="ACTOR", text="Globalbox: fire whenever slots of this actor have changed, instead of at --height."),
]
Slots = Annotated[
    Texts,
    option(
        metavar="NAME",
        text="With --watch: slots whose names begin so; text, or 0x… for bytes; may be repeated.",
        default="all",
    ),
]
Payload = Annotated[str, option(metavar="PAYLOAD", text=f"Payload of its event: {PAYLOAD}.")]
GasLimit = Annotated[Number, number(text="Cycles the fire may use.", least=1, default="the most allowed")]
ExpiresAt = Annotated[Number, height_option(text="Last height at which it may fire.", least=1, default="the farthest")]
MaxFee = Annotated[
    Text,
    option(
        metavar="AMOUNT",
        text="Lane, auction: most a cycle may cost, basefee and tip.",
        default="twice the basefee, and the tip",
    ),
]
Tip = Annotated[
    Text,
    option(
        metavar="AMOUNT",
        text="Lane, auction: tip a cycle.",
        default="the median of the last block in the lane, none in the auction",
    ),
]
Tier = Annotated[PriorityTier | None, typer.Option(help="Lane: tip as a multiple of that median, instead of --tip.")]
Agent = Annotated[
    Text, option(metavar="ACTOR", text="Lane: gas bidding agent of this timer, instead of --max-fee, --tip and --tier.")
]
Payer = Annotated[
    Text, option(metavar="WHO", text="FIFO, lane: payer of the fire: the signer.", default="the stock actor")
]
Target = Annotated[
    Text, option(metavar="ACTOR", text="Globalbox: actor whose handler runs.", default="the stock actor")
]
Bid = Annotated[
    Text, option(metavar="PRICE", text="Globalbox: tip a cycle, base units, also as a decimal.", default="0")
]
ClientNonce = Annotated[
    Text,
    option(
        metavar="NAME", text="Globalbox: a name; the same name again returns the same timer. Text, or 0x… for bytes."
    ),
]
Value = Annotated[
    Text,
    option(
        metavar="AMOUNT", text="Additional money for the stock actor.", default="100cby when it is deployed, then none"
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
    tier: Tier = None,
    agent: Agent = None,
    payer: Payer = None,
    target: Target = None,
    bid: Bid = None,
    client_nonce: ClientNonce = None,
    value: Value = None,
    sender: Sender = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Schedule a timer without writing an actor.

    It fires at a height, or with --watch whenever slots of an actor have changed. It belongs to the sender's stock
    actor, which is deployed with the first order and emits the event timer.payload with the payload at each fire. In
    the auction a stock agent bids for it, one for each offer.

    Example: trailboss schedule --height 120 --payload "wake up"
    """
    fees = {"--max-fee": max_fee, "--tip": tip, "--tier": tier, "--agent": agent, "--payer": payer}
    _check_options(height, watch, slot, [name for name, given in fees.items() if given is not None])
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
        else:
            watched = find_actor(chain, str(watch))
            keys = [watch_key(watched, parse_payload(each)) for each in slot or [""]]
            instructions = draft_watch(chain, signer.address, WatchOrder(watch_keys=keys, **terms), amount)
        _send_order(chain, signer, instructions, as_json=as_json)


def _check_options(height: int | None, watch: str | None, slots: list[str] | None, fees: list[str]) -> None:
    if "--tip" in fees and "--tier" in fees:
        raise Mistake("both --tip and --tier are given", "give one of the two: a tier stands for a tip")
    if watch is None and slots:
        raise Mistake("--slot is given without --watch", "name the actor whose slots are watched with --watch")
    if watch is None and height is None:
        raise Mistake("neither --height nor --watch is given", "give the height, or the actor that it watches")
    if watch is not None and height is not None:
        raise Mistake("both --height and --watch are given", "give one of the two")
    if watch is not None and fees:
        raise Mistake(f"{', '.join(fees)} and --watch are given", "give --bid: only Globalbox watches slots")


def _send_order(chain: OpenChain, signer: Signer, instructions: Mapping[str, Instruction], *, as_json: bool) -> None:
    """Send an order and the instructions that precede it, and print their receipts.

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


def update(
    timer: TimerId,
    payload: Annotated[Text, option(metavar="PAYLOAD", text=f"Payload of its event: {PAYLOAD}.", default=KEPT)] = None,
    gas_limit: Annotated[Number, number(text="Cycles a fire may use.", least=1, default=KEPT)] = None,
    bid: Annotated[
        Text, option(metavar="PRICE", text="Tip a cycle, base units, also as a decimal.", default=KEPT)
    ] = None,
    sender: Sender = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Update the payload, gas limit or bid of one of your timers.

    Under Globalbox. A fire that is already queued does not change.

    Example: trailboss update 0x6e3d2443 --gas-limit 80000
    """
    if payload is None and gas_limit is None and bid is None:
        raise Mistake("nothing is to change", "give --payload, --gas-limit or --bid")
    signer = resolve_signer(sender, private_key)
    with open_chain(place) as chain:
        change = TimerChange(
            timer_id=find_timer(chain, timer),
            payload=None if payload is None else parse_payload(payload),
            gas_limit=gas_limit,
            bid=None if bid is None else parse_bid(bid),
        )
        [receipt] = send(chain, signer, [draft_update(chain, signer.address, change)])
        lead = _lead(change.timer_id, receipt, "its next fire is queued already, and no other will follow")
        show_receipts(chain, {"order": receipt}, as_json=as_json, lead=lead)


def cancel(
    timer: TimerId, sender: Sender = None, private_key: Key = None, place: Place = DIRECTORY, as_json: AsJson = False
) -> None:
    """Cancel one of your timers.

    It is one that trailboss schedule has set for the same sender. A timer of another actor is cancelled by a handler of
    that actor, or by governance: trailboss govern cancel-timer.

    Example: trailboss cancel 0x6e3d2443
    """
    signer = resolve_signer(sender, private_key)
    with open_chain(place) as chain:
        identity = find_timer(chain, timer)
        [receipt] = send(chain, signer, [draft_cancel(chain, signer.address, identity)])
        lead = _lead(identity, receipt, "its fire is in the mailbox already")
        show_receipts(chain, {"order": receipt}, as_json=as_json, lead=lead)


def _lead(timer_id: bytes, receipt: Receipt, why_not: str) -> dict[str, Cell]:
    is_late = receipt.ok and receipt.return_value == encode_canonical(False)
    return {"timer": str(Hash32(timer_id)), "too late": why_not if is_late else None}


def hold(
    timer: TimerId,
    until: Annotated[
        Number, height_option(text="Height at which it is due instead.", default="the last at which it may fire")
    ] = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Postpone a timer.

    Example: trailboss hold 0x6e3d2443 --until 500
    """
    with open_chain(place) as chain:
        identity = find_timer(chain, timer)
        show_receipts(chain, {"instruction": chain.hold(identity, until)}, as_json=as_json, lead={"timer": identity})


def force(timer: TimerId, place: Place = DIRECTORY, as_json: AsJson = False) -> None:
    """Make a timer due as early as possible.

    It runs at the end of the same block; in the auction and in Globalbox, where timers run first, in the one after it.

    Example: trailboss force 0x6e3d2443
    """
    with open_chain(place) as chain:
        identity = find_timer(chain, timer)
        show_receipts(chain, {"instruction": chain.force(identity)}, as_json=as_json, lead={"timer": identity})


def drop(timer: TimerId, place: Place = DIRECTORY, as_json: AsJson = False) -> None:
    """Remove a timer without running it.

    Example: trailboss drop 0x6e3d2443
    """
    with open_chain(place) as chain:
        identity = find_timer(chain, timer)
        show_receipts(chain, {"instruction": chain.drop(identity)}, as_json=as_json, lead={"timer": identity})
