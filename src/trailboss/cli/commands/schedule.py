"""Changes of timers: ``schedule``, ``update``, ``cancel``; on development chains also ``hold``, ``force``, ``drop``."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer
from msgspec import Struct

from trailboss.chain import stock_timers
from trailboss.cli import options
from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import Mistake
from trailboss.cli.options import KEPT, PAYLOAD, Number, Text, TimerId, money, number, option
from trailboss.cli.output import note
from trailboss.cli.targets import find_actor, find_timer, resolve_address
from trailboss.cli.values import parse_bid, parse_payload
from trailboss.codec.canonical import encode_canonical
from trailboss.model.events import TIMER_SCHEDULED
from trailboss.model.transactions import Instruction
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import format_cby
from trailboss.sdk import PriorityTier, watch_key
from trailboss.views import Receipt

STOCK: Final = "the stock actor"


class OrderOptions(Struct, frozen=True):
    """The options of an order."""

    height: Number = options.height("Block height at which it fires.", least=1)
    watch: Text = option("ACTOR", "Globalbox: fire whenever slots of this actor have changed, instead of at --height.")
    slot: list[bytes] | None = option(
        "NAME",
        "With --watch: slots whose names begin so; text, or 0x… for bytes; may be repeated.",
        "all",
        parser=parse_payload,
    )
    payload: bytes | None = option("PAYLOAD", f"Payload of its event: {PAYLOAD}.", parser=parse_payload)
    gas_limit: Number = number("Cycles the fire may use.", "the most allowed", least=1)
    expires_at: Number = options.height("Last height at which it may fire.", "the farthest", least=1)
    max_fee: Number = money("Lane, auction: most a cycle may cost, basefee and tip.", "twice the basefee, and the tip")
    tip: Number = money("Lane, auction: tip a cycle.", "the median of the last block in the lane, none in the auction")
    tier: PriorityTier | None = typer.Option(help="Lane: tip as a multiple of that median, instead of --tip.")
    agent: Text = option("ACTOR", "Lane: gas bidding agent of this timer, instead of --max-fee, --tip and --tier.")
    payer: Text = option("WHO", "FIFO, lane: payer of the fire: the signer.", STOCK)
    target: Text = option("ACTOR", "Globalbox: actor whose handler runs.", STOCK)
    bid: Number = option("PRICE", "Globalbox: tip a cycle, base units, also as a decimal.", "0", parser=parse_bid)
    client_nonce: bytes | None = option(
        "NAME",
        "Globalbox: a name; the same name again returns the same timer. Text, or 0x… for bytes.",
        parser=parse_payload,
    )
    value: Number = money("Additional money for the stock actor.", "100cby when it is deployed, then none")


@command("sender", "private_key")
def schedule(run: Invocation, order: OrderOptions) -> None:
    """Schedule a timer without writing an actor.

    It fires at a height, or with --watch whenever slots of an actor have changed. It belongs to the sender's stock
    actor, which is deployed with the first order and emits the event timer.payload with the payload at each fire. In
    the auction a stock agent bids for it, one for each offer.

    Example: trailboss schedule --height 120 --payload "wake up"
    """
    _check_options(order)
    signer, chain = run.signer.address, run.chain
    same = ("gas_limit", "expires_at", "bid", "client_nonce")
    terms: dict[str, Any] = {"payload": order.payload or b""} | {name: getattr(order, name) for name in same}
    terms["target"] = None if order.target is None else find_actor(chain, order.target)
    if order.height is None:
        watched = find_actor(chain, str(order.watch))
        terms["watch_keys"] = [watch_key(watched, name) for name in order.slot or [b""]]
        drafted = stock_timers.draft_watch(chain, signer, stock_timers.WatchOrder(**terms), order.value)
    else:
        terms |= {
            "height": order.height,
            "fee_payer": None if order.payer is None else resolve_address(order.payer),
            "max_fee_per_cycle": order.max_fee,
            "max_priority_fee_per_cycle": order.tip,
            "priority_tier_hint": None if order.tier is None else order.tier.value,
            "gas_bidding_agent": None if order.agent is None else find_actor(chain, order.agent),
        }
        drafted = stock_timers.draft_schedule(chain, signer, stock_timers.TimerOrder(**terms), order.value)
    _send_order(run, drafted)


def _check_options(order: OrderOptions) -> None:
    priced = ("max_fee", "tip", "tier", "agent", "payer")
    fees = [f"--{name.replace('_', '-')}" for name in priced if getattr(order, name) is not None]
    watch, height = order.watch, order.height
    if "--tip" in fees and "--tier" in fees:
        raise Mistake("both --tip and --tier are given", "give one of the two: a tier stands for a tip")
    if watch is None and order.slot:
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
    lead = {"timer": identity, "actor": f"{actor}, holds {format_cby(chain.balance(actor))} CBY"}
    run.show_receipts({"order": receipt} | receipts, lead)
    if identity is not None and not any(event.name == TIMER_SCHEDULED for event in receipt.events):
        if chain.timer(identity) is None:
            raise stock_timers.ended_refusal(chain, identity)
        note(f"timer {identity} has the client nonce already: nothing has changed")


@command("sender", "private_key")
def update(
    run: Invocation,
    timer: TimerId,
    payload: Annotated[
        bytes | None, option("PAYLOAD", f"Payload of its event: {PAYLOAD}.", KEPT, parser=parse_payload)
    ] = None,
    gas_limit: Annotated[Number, number("Cycles a fire may use.", KEPT, least=1)] = None,
    bid: Annotated[
        Number, option("PRICE", "Tip a cycle, base units, also as a decimal.", KEPT, parser=parse_bid)
    ] = None,
) -> None:
    """Update the payload, gas limit or bid of one of your timers.

    Under Globalbox. A fire that is already queued does not change.

    Example: trailboss update 0x6e3d2443 --gas-limit 80000
    """
    if payload is None and gas_limit is None and bid is None:
        raise Mistake("nothing is to change", "give --payload, --gas-limit or --bid")
    signer, identity = run.signer, find_timer(run.chain, timer)
    change = stock_timers.TimerChange(timer_id=identity, payload=payload, gas_limit=gas_limit, bid=bid)
    [receipt] = run.send(stock_timers.draft_update(run.chain, signer.address, change))
    _show_change(run, identity, receipt, "its next fire is queued already, and no other will follow")


@command("sender", "private_key")
def cancel(run: Invocation, timer: TimerId) -> None:
    """Cancel one of your timers.

    It is one that trailboss schedule has set for the same sender. A timer of another actor is cancelled by a handler of
    that actor, or by governance: trailboss govern cancel-timer.

    Example: trailboss cancel 0x6e3d2443
    """
    signer, identity = run.signer, find_timer(run.chain, timer)
    [receipt] = run.send(stock_timers.draft_cancel(run.chain, signer.address, identity))
    _show_change(run, identity, receipt, "its fire is in the mailbox already")


def _show_change(run: Invocation, timer_id: Hash32, receipt: Receipt, why_not: str) -> None:
    is_late = receipt.ok and receipt.return_value == encode_canonical(False)
    run.show_receipts({"order": receipt}, {"timer": timer_id, "too late": why_not if is_late else None})


@command()
def hold(
    run: Invocation,
    timer: TimerId,
    until: Annotated[
        Number, options.height("Height at which it is due instead.", "the last at which it may fire")
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
