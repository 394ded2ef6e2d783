"""Changes of timers: ``schedule``, ``update``, ``cancel``; on development chains also ``hold``, ``force``, ``drop``."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from trailboss.chain import stock_timers
from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import Mistake
from trailboss.cli.options import KEPT, PAYLOAD, Number, Text, Texts, TimerId, number, option
from trailboss.cli.options import height as height_option
from trailboss.cli.output import Cell, note
from trailboss.cli.targets import find_actor, find_timer, resolve_address
from trailboss.cli.values import parse_amount, parse_bid, parse_payload
from trailboss.codec.canonical import encode_canonical
from trailboss.model.events import TIMER_SCHEDULED
from trailboss.model.transactions import Instruction
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import format_cby
from trailboss.sdk import PriorityTier, watch_key
from trailboss.views import Receipt

DueHeight = Annotated[Number, height_option("Block height at which it fires.", least=1)]
Watched = Annotated[
    Text, option("ACTOR", "Globalbox: fire whenever slots of this actor have changed, instead of at --height.")
]
Slots = Annotated[
    Texts, option("NAME", "With --watch: slots whose names begin so; text, or 0x… for bytes; may be repeated.", "all")
]
Payload = Annotated[str, option("PAYLOAD", f"Payload of its event: {PAYLOAD}.")]
GasLimit = Annotated[Number, number("Cycles the fire may use.", "the most allowed", least=1)]
ExpiresAt = Annotated[Number, height_option("Last height at which it may fire.", "the farthest", least=1)]
MaxFee = Annotated[
    Text, option("AMOUNT", "Lane, auction: most a cycle may cost, basefee and tip.", "twice the basefee, and the tip")
]
Tip = Annotated[
    Text,
    option("AMOUNT", "Lane, auction: tip a cycle.", "the median of the last block in the lane, none in the auction"),
]
Tier = Annotated[PriorityTier | None, typer.Option(help="Lane: tip as a multiple of that median, instead of --tip.")]
Agent = Annotated[
    Text, option("ACTOR", "Lane: gas bidding agent of this timer, instead of --max-fee, --tip and --tier.")
]
Payer = Annotated[Text, option("WHO", "FIFO, lane: payer of the fire: the signer.", "the stock actor")]
Target = Annotated[Text, option("ACTOR", "Globalbox: actor whose handler runs.", "the stock actor")]
Bid = Annotated[Text, option("PRICE", "Globalbox: tip a cycle, base units, also as a decimal.", "0")]
ClientNonce = Annotated[
    Text, option("NAME", "Globalbox: a name; the same name again returns the same timer. Text, or 0x… for bytes.")
]
Value = Annotated[
    Text, option("AMOUNT", "Additional money for the stock actor.", "100cby when it is deployed, then none")
]


@command("sender", "private_key")
def schedule(
    run: Invocation,
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
    signer, chain = run.signer, run.chain
    terms: dict[str, Any] = {
        "payload": parse_payload(payload),
        "gas_limit": gas_limit,
        "expires_at": expires_at,
        "target": None if target is None else find_actor(chain, target),
        "bid": None if bid is None else parse_bid(bid),
        "client_nonce": None if client_nonce is None else parse_payload(client_nonce),
    }
    if height is not None:
        order = stock_timers.TimerOrder(
            height=height,
            fee_payer=None if payer is None else resolve_address(payer),
            max_fee_per_cycle=None if max_fee is None else parse_amount(max_fee),
            max_priority_fee_per_cycle=None if tip is None else parse_amount(tip),
            priority_tier_hint=None if tier is None else tier.value,
            gas_bidding_agent=None if agent is None else find_actor(chain, agent),
            **terms,
        )
        instructions = stock_timers.draft_schedule(chain, signer.address, order, amount)
    else:
        watched = find_actor(chain, str(watch))
        keys = [watch_key(watched, parse_payload(each)) for each in slot or [""]]
        instructions = stock_timers.draft_watch(
            chain, signer.address, stock_timers.WatchOrder(watch_keys=keys, **terms), amount
        )
    _send_order(run, instructions)


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


def _send_order(run: Invocation, instructions: Mapping[str, Instruction]) -> None:
    """Send an order and the instructions that precede it, and print their receipts.

    Raises:
        Rejection: ``NOT_FOUND`` if the order's client nonce has a timer that has ended.
    """
    receipts = dict(zip(instructions, run.send(*instructions.values()), strict=True))
    chain, receipt = run.chain, receipts.pop("order")
    actor = stock_timers.scheduler_address(chain, run.signer.address)
    identity = Hash32(receipt.return_value) if receipt.ok else None
    lead: dict[str, Cell] = {} if identity is None else {"timer": str(identity)}
    lead |= {"actor": f"{actor}, holds {format_cby(chain.balance(actor))} CBY"}
    run.show_receipts({"order": receipt} | receipts, lead)
    if identity is not None and not any(event.name == TIMER_SCHEDULED for event in receipt.events):
        if chain.timer(identity) is None:
            raise stock_timers.ended_refusal(chain, identity)
        note(f"timer {identity} has the client nonce already: nothing has changed")


@command("sender", "private_key")
def update(
    run: Invocation,
    timer: TimerId,
    payload: Annotated[Text, option("PAYLOAD", f"Payload of its event: {PAYLOAD}.", KEPT)] = None,
    gas_limit: Annotated[Number, number("Cycles a fire may use.", KEPT, least=1)] = None,
    bid: Annotated[Text, option("PRICE", "Tip a cycle, base units, also as a decimal.", KEPT)] = None,
) -> None:
    """Update the payload, gas limit or bid of one of your timers.

    Under Globalbox. A fire that is already queued does not change.

    Example: trailboss update 0x6e3d2443 --gas-limit 80000
    """
    if payload is None and gas_limit is None and bid is None:
        raise Mistake("nothing is to change", "give --payload, --gas-limit or --bid")
    signer, chain = run.signer, run.chain
    change = stock_timers.TimerChange(
        timer_id=find_timer(chain, timer),
        payload=None if payload is None else parse_payload(payload),
        gas_limit=gas_limit,
        bid=None if bid is None else parse_bid(bid),
    )
    [receipt] = run.send(stock_timers.draft_update(chain, signer.address, change))
    _show_change(run, change.timer_id, receipt, "its next fire is queued already, and no other will follow")


@command("sender", "private_key")
def cancel(run: Invocation, timer: TimerId) -> None:
    """Cancel one of your timers.

    It is one that trailboss schedule has set for the same sender. A timer of another actor is cancelled by a handler of
    that actor, or by governance: trailboss govern cancel-timer.

    Example: trailboss cancel 0x6e3d2443
    """
    signer, chain = run.signer, run.chain
    identity = find_timer(chain, timer)
    [receipt] = run.send(stock_timers.draft_cancel(chain, signer.address, identity))
    _show_change(run, identity, receipt, "its fire is in the mailbox already")


def _show_change(run: Invocation, timer_id: bytes, receipt: Receipt, why_not: str) -> None:
    is_late = receipt.ok and receipt.return_value == encode_canonical(False)
    run.show_receipts({"order": receipt}, {"timer": str(Hash32(timer_id)), "too late": why_not if is_late else None})


@command()
def hold(
    run: Invocation,
    timer: TimerId,
    until: Annotated[
        Number, height_option("Height at which it is due instead.", "the last at which it may fire")
    ] = None,
) -> None:
    """Postpone a timer.

    Example: trailboss hold 0x6e3d2443 --until 500
    """
    _alter(run, "hold", timer, until)


@command()
def force(run: Invocation, timer: TimerId) -> None:
    """Make a timer due as early as possible.

    It runs at the end of the same block; in the auction and in Globalbox, where timers run first, in the one after it.

    Example: trailboss force 0x6e3d2443
    """
    _alter(run, "force", timer)


@command()
def drop(run: Invocation, timer: TimerId) -> None:
    """Remove a timer without running it.

    Example: trailboss drop 0x6e3d2443
    """
    _alter(run, "drop", timer)


def _alter(run: Invocation, call: str, timer: str, until: int | None = None) -> None:
    identity = find_timer(run.chain, timer)
    run.show_receipts({"instruction": run.chain.alter_timer(call, identity, until)}, {"timer": identity})
