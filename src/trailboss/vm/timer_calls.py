"""The calls of ``pvm_host`` about timers: those of every mechanism, whichever the chain has.

Which of them a chain has, the `Host` says: it refuses the others, by their forms. Two names have two forms each.
``set_timeout`` is the auction's if its first argument is a number, and Globalbox's if it is an actor; where the
arguments fit neither, it is the one that the chain has. ``cancel_timer`` is Globalbox's own if it names the target
besides.

Spec: CIP-5 §4.1, CIP-1v3 §6, CIP-1v1 §3, CIP-5old §6
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from trailboss.model import calls
from trailboss.model.calls import AuctionRequest, GlobalboxRequest, GlobalboxUpdate
from trailboss.model.timers import TimerRequest
from trailboss.params.loader import PRICE_MAX
from trailboss.primitives.errors import RejectionReason
from trailboss.primitives.units import U64_MAX
from trailboss.vm.arguments import address, bind, block_height, integer, octets, sequence, wide_integer
from trailboss.vm.engine import CallSite, HostCall

_REQUIRED: Final = ("height", "payload")
_TIMER: Final = (*_REQUIRED, "fee_payer", "gas_limit", "expires_at")
_SDK_TIMER: Final = ("height", "payload", "fee_payer", "gas_limit", "access_limit", "expires_at")
"""Positional arguments of ``schedule_timer_ex`` as the public SDK calls it. Decision: D-03."""
_OFFER: Final = ("max_fee_per_cycle", "max_priority_fee_per_cycle")
"""What a timer offers in the timer lane. Spec: CIP-1v3 §6."""
_AGENT: Final = "gas_bidding_agent"
"""What names the agent of one timer. Spec: CIP-1v3 §7."""
_WITHDRAWN: Final = "bid"
"""Parameter of earlier versions; whoever gives it, None included, is told. Spec: CIP-1v3 §6."""
AUCTION_TIMEOUT: Final = ("height", "payload", "gba", "gas_limit")
"""Parameters of ``set_timeout`` in the auction. Spec: CIP-1v1 §3."""
_AUCTIONS_OWN: Final = ("height", "gba")
"""Those that Globalbox's form does not have."""
_GLOBALBOXS_OWN: Final = ("target", "due_height")
"""Those that the auction's form does not have, of the first two."""
_BIDDING: Final = ("payload", "gas_limit", "bid_fp", "expiry_height", "client_nonce")
GLOBALBOX_TIMEOUT: Final = ("target", "due_height", *_BIDDING)
"""Parameters of ``set_timeout`` in Globalbox; the last four may be left out. Spec: CIP-5old §6.1."""
GLOBALBOX_WATCH: Final = ("target", "watch_keys", *_BIDDING)
"""Parameters of ``set_state_watch``; the last four may be left out. Spec: CIP-5old §6.1."""
GLOBALBOX_CANCEL: Final = ("target", "timer_id")
"""Parameters of ``cancel_timer`` that tells whether it did. Spec: CIP-5old §6.1."""
_SETTING_REQUIRED: Final = 3
_UPDATE: Final = (*GLOBALBOX_CANCEL, "payload", "gas_limit", "bid_fp")
_INVALID: Final = RejectionReason.ERR_INVALID_PARAM


def _schedule_timer(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    call, names = "schedule_timer", (*_TIMER, *_OFFER)
    by_name = (_AGENT, _WITHDRAWN)
    values = bind(call, names, positional, named, required=len(_REQUIRED), named_only=by_name)
    request = _request(call, dict(zip((*names, *by_name), values, strict=True)), named)
    site.meter.charge_cycles(site.params.costs.timer_schedule)
    return site.host.schedule_timer(request)


def _schedule_timer_ex(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    call, names, by_name = "schedule_timer_ex", (*_TIMER, "access_limit"), (*_OFFER, _AGENT, _WITHDRAWN)
    if len(positional) == len(_SDK_TIMER) and all(name in by_name for name in named):
        request = _sdk_request(call, positional, named)
    else:
        values = bind(call, names, positional, named, required=len(_REQUIRED), named_only=by_name)
        request = _request(call, dict(zip((*names, *by_name), values, strict=True)), named)
    site.meter.charge_cycles(site.params.costs.timer_schedule)
    return site.host.schedule_timer(request, calls.SCHEDULE_EX)


def _sdk_request(call: str, positional: Sequence[object], named: Mapping[str, object]) -> TimerRequest:
    # The public SDK's form: no bytes, or 0, stand for the default, so a real 0 cannot be told from it.
    given = dict(named) | dict(zip(_SDK_TIMER, positional, strict=True))
    if octets(call, "fee_payer", given["fee_payer"]) == b"":
        given["fee_payer"] = None
    request = _request(call, given, named)
    return replace(
        request,
        gas_limit=request.gas_limit or None,
        access_limit=request.access_limit or None,
        expires_at=request.expires_at or None,
    )


def _request(call: str, given: Mapping[str, object], named: Mapping[str, object]) -> TimerRequest:
    def number(name: str, maximum: int = U64_MAX) -> int | None:
        value = given.get(name)
        return None if value is None else integer(call, name, value, maximum)

    fee_payer, agent = given["fee_payer"], given.get(_AGENT)
    return TimerRequest(
        height=integer(call, "height", given["height"], U64_MAX),
        payload=octets(call, "payload", given["payload"]),
        fee_payer=None if fee_payer is None else address(call, "fee_payer", fee_payer),
        gas_limit=number("gas_limit"),
        access_limit=number("access_limit"),
        expires_at=number("expires_at"),
        max_fee_per_cycle=number("max_fee_per_cycle", PRICE_MAX),
        max_priority_fee_per_cycle=number("max_priority_fee_per_cycle", PRICE_MAX),
        gas_bidding_agent=None if agent is None else address(call, _AGENT, agent),
        has_bid=_WITHDRAWN in named,
    )


def _set_gas_bidding_agent(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    (agent,) = bind("set_gas_bidding_agent", ("agent",), positional, named)
    checked = None if agent is None else address("set_gas_bidding_agent", "agent", agent)
    site.meter.charge_cycles(site.params.costs.state_write)
    site.host.set_agent(checked)
    return None


def _timer_lane(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    bind("timer_lane", (), positional, named)
    site.meter.charge_cycles(site.params.costs.context_read)
    return site.host.timer_lane()


def _extend_timer(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    timer_id, height = bind("extend_timer", ("timer_id", "new_expires_at"), positional, named)
    checked = octets("extend_timer", "timer_id", timer_id)
    expires_at = integer("extend_timer", "new_expires_at", height, U64_MAX)
    site.meter.charge_cycles(site.params.costs.timer_extend)
    site.host.extend_timer(checked, expires_at)
    return None


def _cancel_timer(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    call = "cancel_timer"
    if len(positional) + len(named) < len(GLOBALBOX_CANCEL):
        (timer_id,) = bind(call, ("timer_id",), positional, named)
        identity = octets(call, "timer_id", timer_id)
        site.meter.charge_cycles(site.params.costs.timer_cancel)
        site.host.cancel_timer(identity)
        return None
    target, timer_id = bind(call, GLOBALBOX_CANCEL, positional, named)
    to, identity = address(call, "target", target, reason=_INVALID), octets(call, "timer_id", timer_id)
    site.meter.charge_cycles(site.params.costs.timer_cancel)
    return site.host.cancel_globalbox_timer(to, identity)


def _set_timeout(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    call = "set_timeout"
    if _is_auctions(site, positional, named):
        request = _auction_request(call, positional, named)
        site.meter.charge_cycles(site.params.costs.timer_schedule)
        return site.host.set_auction_timer(request)
    values = bind(call, GLOBALBOX_TIMEOUT, positional, named, required=_SETTING_REQUIRED)
    given = dict(zip(GLOBALBOX_TIMEOUT, values, strict=True))
    height = block_height(call, "due_height", given["due_height"])
    timer = _globalbox_request(call, given, due_height=height)
    site.meter.charge_cycles(site.params.costs.timer_schedule)
    return site.host.set_globalbox_timer(timer)


def _is_auctions(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> bool:
    """Return whether ``set_timeout`` was meant in the auction's form.

    Names that one form alone has decide, then which of the first two arguments is a number: the height is the first of
    the auction's and the second of Globalbox's. If neither or both are, it is the form that the chain has.
    """
    for names, is_auctions in ((_AUCTIONS_OWN, True), (_GLOBALBOXS_OWN, False)):
        if any(name in named for name in names):
            return is_auctions
    is_number = [issubclass(type(each), int | float) for each in (*positional, None, None)[:2]]
    if is_number[0] != is_number[1]:
        return is_number[0]
    return site.host.has_call(calls.SET_TIMEOUT_AUCTION) > site.host.has_call(calls.SET_TIMEOUT_GLOBALBOX)


def _set_state_watch(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    call = "set_state_watch"
    values = bind(call, GLOBALBOX_WATCH, positional, named, required=_SETTING_REQUIRED)
    given = dict(zip(GLOBALBOX_WATCH, values, strict=True))
    keys = tuple(octets(call, "watch_keys", each) for each in sequence(call, "watch_keys", given["watch_keys"]))
    watch = _globalbox_request(call, given, watch_keys=keys)
    site.meter.charge_cycles(site.params.costs.timer_schedule)
    return site.host.set_globalbox_timer(watch)


def _update_timer(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    call = "update_timer"
    values = bind(call, _UPDATE, positional, named, required=len(GLOBALBOX_CANCEL))
    target, timer_id, payload, gas_limit, bid = values
    update = GlobalboxUpdate(
        target=address(call, "target", target, reason=_INVALID),
        timer_id=octets(call, "timer_id", timer_id),
        payload=None if payload is None else octets(call, "payload", payload),
        gas_limit=None if gas_limit is None else wide_integer(call, "gas_limit", gas_limit),
        bid=None if bid is None else wide_integer(call, "bid_fp", bid),
    )
    site.meter.charge_cycles(site.params.costs.timer_extend)
    return site.host.update_timer(update)


def _auction_request(call: str, positional: Sequence[object], named: Mapping[str, object]) -> AuctionRequest:
    height, payload, agent, gas_limit = bind(call, AUCTION_TIMEOUT, positional, named, required=_SETTING_REQUIRED)
    return AuctionRequest(
        height=integer(call, "height", height, U64_MAX),
        payload=octets(call, "payload", payload),
        agent=address(call, "gba", agent),
        gas_limit=None if gas_limit is None else integer(call, "gas_limit", gas_limit, U64_MAX),
    )


def _globalbox_request(
    call: str,
    given: Mapping[str, object],
    *,
    due_height: int | None = None,
    watch_keys: tuple[bytes, ...] | None = None,
) -> GlobalboxRequest:
    gas_limit, bid, expiry, nonce = (given[name] for name in ("gas_limit", "bid_fp", "expiry_height", "client_nonce"))
    return GlobalboxRequest(
        target=address(call, "target", given["target"], reason=_INVALID),
        payload=octets(call, "payload", given["payload"]),
        due_height=due_height,
        watch_keys=watch_keys,
        gas_limit=None if gas_limit is None else wide_integer(call, "gas_limit", gas_limit),
        bid=0 if bid is None else wide_integer(call, "bid_fp", bid),
        expiry_height=None if expiry is None else block_height(call, "expiry_height", expiry),
        client_nonce=b"" if nonce is None else octets(call, "client_nonce", nonce),
    )


TIMER_CALLS: Final[Mapping[str, HostCall]] = {
    "schedule_timer": _schedule_timer,
    "schedule_timer_ex": _schedule_timer_ex,
    "extend_timer": _extend_timer,
    "cancel_timer": _cancel_timer,
    "set_gas_bidding_agent": _set_gas_bidding_agent,
    "timer_lane": _timer_lane,
    "set_timeout": _set_timeout,
    "set_state_watch": _set_state_watch,
    "update_timer": _update_timer,
}
"""Every one of them by its public name."""
