"""Timers for people who have no actor: a stock actor, one an owner, sets and schedules them.

Which stock actor that is, and what an order may say, follows from the calls that the chain's mechanism has.
Decision: D-56.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import fields

from trailboss.chain.drafts import draft_deployment
from trailboss.chain.reader import ChainReader
from trailboss.codec.canonical import encode_canonical
from trailboss.crypto.digest import keccak256
from trailboss.execution.globalbox.records import find_ended
from trailboss.model import calls
from trailboss.model.actors import TIMER_SCHEDULE
from trailboss.model.globalbox import TimerStatus
from trailboss.model.timers import Timer
from trailboss.model.transactions import ExecuteActor, FundActor, Instruction
from trailboss.params.loader import PRICE_MAX
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import BASE_UNITS_PER_CBY, check_range

FUNDS: Final = 100 * BASE_UNITS_PER_CBY
"""Base units that a scheduler starts with: some twenty fires, and every one of them with all the gas it may have."""
_SALT: Final = b"trailboss-scheduler"
_AGENT: Final = "bidding_agent.py"


class TimerOrder(Struct, frozen=True, kw_only=True):
    """A timer to schedule. None takes the protocol's default; each mechanism has some of the options only."""

    height: int  # block height at which it fires
    payload: bytes = b""  # what its event holds, or the handler of its target gets
    fee_payer: Address | None = None  # who pays for the fire: the owner, or None for the scheduler; FIFO and lane
    gas_limit: int | None = None  # cycles that the fire may use
    expires_at: int | None = None  # last height at which it may fire; not in the auction
    # Cap of lane basefee and tip together, in the auction of cycle basefee and tip; base units.
    max_fee_per_cycle: int | None = None
    max_priority_fee_per_cycle: int | None = None  # tip, base units
    priority_tier_hint: str | None = None  # tip as a `trailboss.sdk.PriorityTier`, by its value; Lane
    gas_bidding_agent: Address | None = None  # agent that prices it, in place of fees; Lane
    target: Address | None = None  # actor whose handler runs; None for the scheduler; Globalbox
    bid: int | None = None  # Q32.96, as from `trailboss.sdk.bid`; Globalbox
    client_nonce: bytes | None = None  # a name: the same one again gives the timer that has it; Globalbox


class WatchOrder(Struct, frozen=True, kw_only=True):
    """A state watch to set. None takes the protocol's default."""

    watch_keys: Sequence[bytes]  # beginnings of the keys that it watches, as from `trailboss.sdk.watch_key`
    payload: bytes = b""  # what its event holds, or the handler of its target gets
    target: Address | None = None  # actor whose handler runs; None for the scheduler
    gas_limit: int | None = None  # cycles that a fire may use
    bid: int | None = None  # Q32.96, as from `trailboss.sdk.bid`
    expires_at: int | None = None  # last height at which it may fire
    client_nonce: bytes | None = None  # a name: the same one again gives the timer that has it


class TimerChange(Struct, frozen=True, kw_only=True):
    """What later fires of a timer are to have. None stays as it is."""

    timer_id: bytes  # which timer
    payload: bytes | None = None  # what its event holds, or the handler of its target gets
    gas_limit: int | None = None  # cycles that a fire may use
    bid: int | None = None  # Q32.96, as from `trailboss.sdk.bid`


class _Stock(Struct, frozen=True, kw_only=True):
    """A stock actor."""

    file: str  # its source
    options: Mapping[str, str]  # what an order may say, and how its handler calls that
    # What an order may say that an agent is deployed to bid, and how the agent calls that.
    offer: Mapping[str, str] = field(default_factory=dict)
    names_target: bool = False  # whether its timers name the actor that they call


_OWN_NAMES: Final = ("height", "payload", "gas_limit")
_GLOBALBOX_NAMES: Final = {"height": "due_height", "bid": "bid_fp", "expires_at": "expiry_height"}
"""What its calls have another name for."""
_GLOBALBOX_OPTIONS: Final = (*_OWN_NAMES, "expires_at", "target", "bid", "client_nonce")
_FEES: Final = ("max_fee_per_cycle", "max_priority_fee_per_cycle")
_LANE_NAMES: Final = (*_OWN_NAMES, "fee_payer", "expires_at", *_FEES, "priority_tier_hint", "gas_bidding_agent")
_STOCK: Final[Mapping[str, _Stock]] = MappingProxyType(
    {
        calls.SCHEDULE: _Stock(file="scheduler.py", options={name: name for name in _LANE_NAMES}),
        calls.SET_TIMEOUT_AUCTION: _Stock(
            file="auction_scheduler.py",
            options={name: name for name in _OWN_NAMES},
            offer=dict(zip(_FEES, ("max_fee_per_cycle", "tip_per_cycle"), strict=True)),
        ),
        calls.SET_TIMEOUT_GLOBALBOX: _Stock(
            file="globalbox_scheduler.py",
            options={name: _GLOBALBOX_NAMES.get(name, name) for name in _GLOBALBOX_OPTIONS},
            names_target=True,
        ),
    }
)
"""By the call that sets a timer at a height."""


def scheduler_address(chain: ChainReader, owner: Address) -> Address:
    """Return the address of an owner's scheduler under the chain's mechanism, deployed or not."""
    return draft_deployment(owner, stock_source(_stock(chain).file), _SALT)[1]


def draft_schedule(
    chain: ChainReader, owner: Address, order: TimerOrder, value: int | None = None
) -> dict[str, Instruction]:
    """Return the owner's instructions that schedule a timer, for one block, by what each is for; the order is the last.

    Before it stand the deployment of the owner's scheduler, if it is needed, and its funding, if there is any; in the
    auction the deployment of the agent that bids what the order offers, unless there is one.

    The owner signs and pays for the transactions. The value is the base units that the scheduler gets; None for
    ``FUNDS`` when it is deployed, and then none.

    Raises:
        Rejection: ``INVALID_INPUT`` for an option that the chain's mechanism does not have, and in the auction
            for a tip above its cap and for a cap that no basefee can be under; ``OVERFLOW`` or ``INVALID_DATA`` for an
            order that has no encoding.
    """
    stock = _stock(chain)
    given = _given(order)
    for name in given:
        if name not in stock.options and name not in stock.offer:
            raise _no_option(chain, stock, name)
    instructions: dict[str, Instruction] = {}
    asked = {key: given[name] for name, key in stock.options.items() if name in given}
    if stock.offer:
        for name in (each for each in stock.offer if each in given):
            check_range(name, given[name], PRICE_MAX)
        offer = {key: given[name] for name, key in stock.offer.items() if name in given}
        instructions, asked["gba"] = _draft_agent(chain, owner, offer)
    elif stock.names_target:
        asked.setdefault("target", scheduler_address(chain, owner))
    return instructions | _draft(chain, owner, "schedule", encode_canonical(asked), value)


def options_of(chain: ChainReader) -> frozenset[str]:
    """Return the fields of `TimerOrder` that an order may have under the chain's mechanism; fees in a lane alone."""
    stock = _stock(chain)
    own = set(stock.options) if chain.rules().market.rule is not None else set(stock.options).difference(_FEES)
    return frozenset(own.union(stock.offer))


def booking_of(chain: ChainReader, order: TimerOrder, actor: Address) -> dict[str, Any]:
    """Return how an actor sets a timer of its own: what the call names the height, its other arguments, its own bid.

    Raises:
        Rejection: ``INVALID_INPUT`` for an option that the chain's mechanism does not have.
    """
    stock, given = _stock(chain), _given(order)
    for name in given:
        if name not in stock.options and name not in stock.offer:
            raise _no_option(chain, stock, name)
    asked = {key: given[name] for name, key in stock.options.items() if name in given}
    height_name = stock.options["height"]
    del asked[height_name]
    bid: dict[str, int] = {}
    if stock.offer:
        asked["gba"] = actor
        tip = given.get(_FEES[1], 0)
        cap = given.get(_FEES[0], 2 * chain.rules().timer_basefees()[0] + tip)
        bid = dict(zip(stock.offer.values(), (cap, tip), strict=True))
    elif stock.names_target:
        asked.setdefault("target", actor)
    return {"height_name": height_name, "fields": asked, "offer": encode_canonical(bid) if bid else b""}


def draft_watch(
    chain: ChainReader, owner: Address, order: WatchOrder, value: int | None = None
) -> dict[str, Instruction]:
    """Return the owner's instructions that set a state watch; as `draft_schedule`.

    Raises:
        Rejection: ``UNSUPPORTED`` if the chain's mechanism has no state watches, ``INVALID_DATA`` unless the keys are a
            list; else as there.
    """
    _check_call(chain, calls.SET_STATE_WATCH)
    if not isinstance(order.watch_keys, list | tuple):
        # The bytes of one key are a sequence too, of numbers.
        what = f"watch_keys must be a list, got {order.watch_keys!r:.80}"
        raise Rejection(RejectionReason.INVALID_DATA, what, field="watch_keys")
    asked = {_GLOBALBOX_NAMES.get(name, name): each for name, each in _given(order).items()}
    asked.setdefault("target", scheduler_address(chain, owner))
    return _draft(chain, owner, "watch", encode_canonical(asked), value)


def draft_update(chain: ChainReader, owner: Address, change: TimerChange) -> Instruction:
    """Return the owner's instruction that changes a live timer of its scheduler for later fires.

    Raises:
        Rejection: ``UNSUPPORTED`` if timers cannot be changed under the chain's mechanism, ``NOT_FOUND`` if there is no
            such timer, ``OVERFLOW`` or ``INVALID_DATA`` for a change that has no encoding.
    """
    _check_call(chain, calls.UPDATE)
    asked = {_GLOBALBOX_NAMES.get(name, name): each for name, each in _given(change).items()}
    asked["target"] = _live(chain, change.timer_id).target
    return ExecuteActor(scheduler_address(chain, owner), "update", encode_canonical(asked))


def draft_cancel(chain: ChainReader, owner: Address, timer_id: bytes) -> Instruction:
    """Return the owner's instruction that cancels a live timer of its scheduler.

    Raises:
        Rejection: ``NOT_FOUND`` if there is no such timer.
    """
    timer = _live(chain, timer_id)
    payload = timer_id
    if _stock(chain).names_target:
        payload = encode_canonical({"target": timer.target, "timer_id": timer_id})
    return ExecuteActor(scheduler_address(chain, owner), "cancel", payload)


def ended_refusal(chain: ChainReader, timer_id: Hash32) -> Rejection:
    """Return the refusal of an order whose client nonce has a timer that has ended; the nonce is taken for a while.

    Decision: D-64
    """
    what = f"timer {timer_id} has the client nonce and has ended"
    found = find_ended(chain.store.read, timer_id)
    if found is not None:
        how = "was cancelled" if found.status == TimerStatus.CANCELLED else "ended"
        last = found.ended_at + chain.rules().params.globalbox.ended_kept_blocks
        what += f": it {how} in block {found.ended_at}, and the nonce is taken until block {last}"
    return Rejection(RejectionReason.NOT_FOUND, what, timer_id=str(timer_id))


def _draft(
    chain: ChainReader, owner: Address, handler: str, payload: bytes, value: int | None
) -> dict[str, Instruction]:
    source = stock_source(_stock(chain).file)
    deployment, address = draft_deployment(owner, source, _SALT, entitlements=[TIMER_SCHEDULE])
    is_deployed = _has_code(chain, address)
    amount = (0 if is_deployed else FUNDS) if value is None else value
    instructions: dict[str, Instruction] = {} if is_deployed else {"deployment": deployment}
    if amount:
        instructions["funding"] = FundActor(address, amount)
    return instructions | {"order": ExecuteActor(address, handler, payload)}


def _draft_agent(
    chain: ChainReader, owner: Address, offer: Mapping[str, Any]
) -> tuple[dict[str, Instruction], Address]:
    """Return the deployment of the agent that bids an offer, if it is needed, and its address: one for each offer."""
    tip, cap = offer.get("tip_per_cycle", 0), offer.get("max_fee_per_cycle")
    least = chain.rules().least_timer_basefee()
    if cap is not None and cap < least:
        what = f"max_fee_per_cycle is {cap}, and the cycle basefee of timers does not fall below {least}"
        raise Rejection(RejectionReason.INVALID_INPUT, what, max_fee_per_cycle=str(cap), least=str(least))
    if cap is not None and tip > cap:
        # The chain would take it for no bid at all, in every block.
        what = f"the tip is {tip}, above max_fee_per_cycle, {cap}, which caps it"
        raise Rejection(RejectionReason.INVALID_INPUT, what, tip_per_cycle=str(tip), max_fee_per_cycle=str(cap))
    payload = encode_canonical({"tip_per_cycle": 0, **offer})
    deployment, address = draft_deployment(owner, stock_source(_AGENT), keccak256(payload), init_payload=payload)
    return ({} if _has_code(chain, address) else {"agent": deployment}), address


def _stock(chain: ChainReader) -> _Stock:
    had = chain.mechanism.policy.calls
    for form, stock in _STOCK.items():
        if form in had:
            return stock
    raise InvariantError(f"mechanism {chain.mechanism.name} has no call that sets a timer at a height")


def _given(order: TimerOrder | WatchOrder | TimerChange) -> dict[str, Any]:
    given = {each.name: getattr(order, each.name) for each in fields(order)}
    return {name: each for name, each in given.items() if each is not None}


def _live(chain: ChainReader, timer_id: bytes) -> Timer:
    if not isinstance(timer_id, bytes):
        raise Rejection(RejectionReason.INVALID_DATA, f"timer_id must be bytes, got {timer_id!r:.80}", field="timer_id")
    timer = chain.timer(timer_id)
    if timer is None:
        shown = f"0x{timer_id.hex()}"
        raise Rejection(RejectionReason.NOT_FOUND, f"there is no live timer {shown}", timer_id=shown)
    return timer


def _has_code(chain: ChainReader, address: Address) -> bool:
    account = chain.account(address)
    return account is not None and bool(account.code_hash)


def _check_call(chain: ChainReader, form: str) -> None:
    calls.check_call(form, chain.mechanism.policy.calls, chain.mechanism.name)


def _no_option(chain: ChainReader, stock: _Stock, name: str) -> Rejection:
    had = ", ".join([*stock.options, *stock.offer])
    mechanism = chain.mechanism.name
    what = f"{name} is no option of a timer under mechanism {mechanism}, whose options are: {had}"
    return Rejection(RejectionReason.INVALID_INPUT, what, option=name, mechanism=mechanism)


@cache
def stock_source(file: str) -> bytes:
    """Return the source of a stock actor, by its file."""
    return resources.files("trailboss.chain").joinpath("stock_actors", file).read_bytes()
