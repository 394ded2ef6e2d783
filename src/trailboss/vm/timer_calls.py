"""The timer calls of ``pvm_host``, of all mechanisms; the `Host` refuses those that the chain's mechanism lacks.

Two names have two forms each. ``set_timeout`` is the auction's if its first argument is a number, and Globalbox's if it
is an actor; if the arguments fit neither, the form that the chain has decides. ``cancel_timer`` is Globalbox's own if
it also names the target. Spec: CIP-5 §4.1, CIP-1v3 §6, CIP-1v1 §3, CIP-5old §6.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from trailboss.model import calls
from trailboss.model.calls import AuctionRequest, GlobalboxRequest, GlobalboxUpdate
from trailboss.model.timers import TimerRequest
from trailboss.params.loader import PRICE_MAX
from trailboss.primitives.errors import RejectionReason
from trailboss.vm.arguments import (
    Check,
    address,
    bind,
    block_height,
    host_call,
    integer,
    octets,
    optional,
    plain,
    sequence,
    wide_integer,
)
from trailboss.vm.engine import CallSite, HostCall

_OFFER: Final = ("max_fee_per_cycle", "max_priority_fee_per_cycle")
_PRICE: Final = partial(integer, maximum=PRICE_MAX)
_REQUEST: Final[Mapping[str, Check]] = {
    "height": integer,
    "payload": octets,
    "fee_payer": optional(address),
    "gas_limit": optional(integer),
    "access_limit": optional(integer),
    "expires_at": optional(integer),
    **dict.fromkeys(_OFFER, optional(_PRICE)),
    "gas_bidding_agent": optional(address),
}
"""The fields of a `TimerRequest`, in the order in which they are checked. Spec: CIP-1v3 §6, CIP-1v3 §7."""
_REQUIRED: Final = 2
_WITHDRAWN: Final = "bid"  # parameter of earlier versions; giving it, even as None, is reported. Spec: CIP-1v3 §6
_BY_NAME: Final = ("gas_bidding_agent", _WITHDRAWN)
_TIMER: Final = ("height", "payload", "fee_payer", "gas_limit", "expires_at")
_SDK_TIMER: Final = ("height", "payload", "fee_payer", "gas_limit", "access_limit", "expires_at")
"""Positional arguments of ``schedule_timer_ex`` as the public SDK calls it. Decision: D-03."""
_SCHEDULE: Final = ("schedule_timer", (*_TIMER, *_OFFER), _BY_NAME)
_SCHEDULE_EX: Final = ("schedule_timer_ex", (*_TIMER, "access_limit"), (*_OFFER, *_BY_NAME))


def _schedule_timer(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    request = _request(_SCHEDULE, positional, named)
    site.meter.charge_cycles(site.params.costs.timer_schedule)
    return plain(site.host.schedule_timer(request))


def _schedule_timer_ex(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    call, _, by_name = _SCHEDULE_EX
    if len(positional) == len(_SDK_TIMER) and all(name in by_name for name in named):
        request = _sdk_request(call, positional, named)
    else:
        request = _request(_SCHEDULE_EX, positional, named)
    site.meter.charge_cycles(site.params.costs.timer_schedule)
    return plain(site.host.schedule_timer(request, calls.SCHEDULE_EX))


def _sdk_request(call: str, positional: Sequence[object], named: Mapping[str, object]) -> TimerRequest:
    # In the public SDK's form no bytes, or 0, mean the default, so a real 0 cannot be distinguished.
    given = dict(named) | dict(zip(_SDK_TIMER, positional, strict=True))
    if octets(call, "fee_payer", given["fee_payer"]) == b"":
        given["fee_payer"] = None
    request = _checked(call, given, named)
    limits = {name: getattr(request, name) or None for name in ("gas_limit", "access_limit", "expires_at")}
    return replace(request, **limits)


def _request(
    form: tuple[str, tuple[str, ...], tuple[str, ...]], positional: Sequence[object], named: Mapping[str, object]
) -> TimerRequest:
    call, names, by_name = form
    values = bind(call, names, positional, named, required=_REQUIRED, named_only=by_name)
    return _checked(call, dict(zip((*names, *by_name), values, strict=True)), named)


def _checked(call: str, given: Mapping[str, object], named: Mapping[str, object]) -> TimerRequest:
    fields: dict[str, Any] = {name: check(call, name, given.get(name)) for name, check in _REQUEST.items()}
    return TimerRequest(**fields, has_bid=_WITHDRAWN in named)


_TARGET: Final = partial(address, reason=RejectionReason.ERR_INVALID_PARAM)
_OPTIONAL_WIDE: Final = optional(wide_integer)
AUCTION_TIMEOUT: Final = ("height", "payload", "gba", "gas_limit")
"""Parameters of ``set_timeout`` in the auction. Spec: CIP-1v1 §3."""
_AUCTIONS_OWN: Final = ("height", "gba")  # parameters that Globalbox's form lacks
_GLOBALBOXS_OWN: Final = ("target", "due_height")  # parameters among the first two that the auction's form lacks
_BOX_REQUIRED: Final = 3
_BOX: Final[Mapping[str, Check]] = {
    "target": _TARGET,
    "payload": octets,
    "gas_limit": _OPTIONAL_WIDE,
    "bid_fp": optional(wide_integer, 0),
    "expiry_height": optional(block_height),
    "client_nonce": optional(octets, b""),
}
"""What ``set_timeout`` and ``set_state_watch`` share in Globalbox. Spec: CIP-5old §6.1."""
_BIDDING: Final = ("payload", "gas_limit", "bid_fp", "expiry_height", "client_nonce")
_UPDATE: Final[Mapping[str, Check]] = {
    "target": _TARGET, "timer_id": octets, "payload": optional(octets), "gas_limit": _OPTIONAL_WIDE,
    "bid_fp": _OPTIONAL_WIDE,
}  # fmt: skip
_AGENT: Final[Mapping[str, Check]] = {"agent": optional(address)}
_EXTENSION: Final[Mapping[str, Check]] = {"timer_id": octets, "new_expires_at": integer}
_IDENTITY_WIDTH: Final = 2  # parameters that name a timer in Globalbox: its target and its id


def _watch_keys(call: str, name: str, value: object) -> tuple[bytes, ...]:
    return tuple(octets(call, name, each) for each in sequence(call, name, value))


def _set_globalbox_timer(site: CallSite, due_height: int, target: bytes, payload: bytes, *rest: Any) -> object:
    request = GlobalboxRequest(target, payload, due_height, None, *rest)
    return site.host.market_call(calls.SET_TIMEOUT_GLOBALBOX, request)


def _set_globalbox_watch(site: CallSite, keys: tuple[bytes, ...], target: bytes, payload: bytes, *rest: Any) -> object:
    return site.host.market_call(calls.SET_STATE_WATCH, GlobalboxRequest(target, payload, None, keys, *rest))


_AUCTION_TIMEOUT: Final = host_call(
    "set_timeout", {"height": integer, "payload": octets, "gba": address, "gas_limit": optional(integer)},
    "timer_schedule",
    lambda site, *values: site.host.market_call(calls.SET_TIMEOUT_AUCTION, AuctionRequest(*values)),
    required=_BOX_REQUIRED,
)  # fmt: skip
_GLOBALBOX_TIMEOUT: Final = host_call(
    "set_timeout", {"due_height": block_height, **_BOX}, "timer_schedule", _set_globalbox_timer,
    names=("target", "due_height", *_BIDDING), required=_BOX_REQUIRED,
)  # fmt: skip
_CANCEL: Final = host_call(
    "cancel_timer", {"timer_id": octets}, "timer_cancel", lambda site, timer_id: site.host.cancel_timer(timer_id)
)
_CANCEL_GLOBALBOX: Final = host_call(
    "cancel_timer",
    {"target": _TARGET, "timer_id": octets},
    "timer_cancel",
    lambda site, target, timer_id: site.host.market_call(calls.CANCEL_GLOBALBOX, (target, timer_id)),
)


def _cancel_timer(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    form = _CANCEL if len(positional) + len(named) < _IDENTITY_WIDTH else _CANCEL_GLOBALBOX
    return form(site, positional, named)


def _set_timeout(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> object:
    form = _AUCTION_TIMEOUT if _is_auctions(site, positional, named) else _GLOBALBOX_TIMEOUT
    return form(site, positional, named)


def _is_auctions(site: CallSite, positional: Sequence[object], named: Mapping[str, object]) -> bool:
    """Return whether ``set_timeout`` is meant in the auction's form.

    Names that only one form has decide; then which of the first two arguments is a number, because the height is the
    first of the auction's and the second of Globalbox's. If neither or both are, the form that the chain has decides.
    """
    for names, is_auctions in ((_AUCTIONS_OWN, True), (_GLOBALBOXS_OWN, False)):
        if any(name in named for name in names):
            return is_auctions
    is_number = [issubclass(type(each), int | float) for each in (*positional, None, None)[:2]]
    if is_number[0] != is_number[1]:
        return is_number[0]
    return site.host.has_call(calls.SET_TIMEOUT_AUCTION) > site.host.has_call(calls.SET_TIMEOUT_GLOBALBOX)


TIMER_CALLS: Final[Mapping[str, HostCall]] = {  # each timer call by its public name
    "schedule_timer": _schedule_timer,
    "schedule_timer_ex": _schedule_timer_ex,
    "extend_timer": host_call(
        "extend_timer", _EXTENSION, "timer_extend", lambda site, *values: site.host.extend_timer(*values)
    ),
    "cancel_timer": _cancel_timer,
    "set_gas_bidding_agent": host_call(
        "set_gas_bidding_agent", _AGENT, "state_write", lambda site, agent: site.host.set_agent(agent)
    ),
    "timer_lane": host_call("timer_lane", {}, "context_read", lambda site: site.host.timer_lane()),
    "set_timeout": _set_timeout,
    "set_state_watch": host_call(
        "set_state_watch", {"watch_keys": _watch_keys, **_BOX}, "timer_schedule", _set_globalbox_watch,
        names=("target", "watch_keys", *_BIDDING), required=_BOX_REQUIRED,
    ),
    "update_timer": host_call(
        "update_timer", _UPDATE, "timer_extend",
        lambda site, *values: site.host.market_call(calls.UPDATE, GlobalboxUpdate(*values)), required=_IDENTITY_WIDTH,
    ),
}  # fmt: skip
